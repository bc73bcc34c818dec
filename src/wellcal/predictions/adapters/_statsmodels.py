"""What fitted results of statsmodels predict for cases; statsmodels itself is not imported."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import label_array
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.columns.column_names import TRUTH, class_labels
from wellcal.columns.frames import is_frame
from wellcal.predictions.adapters._arrays import with_classes
from wellcal.predictions.adapters.registry import converted
from wellcal.predictions.base import Predictions
from wellcal.predictions.discrete import Categorical
from wellcal.predictions.normal import Normal
from wellcal.predictions.scalar import StudentT

_LEVEL = re.compile(r"(.*)\[(.*)\]")  # how formulas name the columns that they make of one variable
_KNOWN = (
    "linear regressions (OLS), generalised linear models (GLM) of most families, discrete models (Logit, "
    "Probit, MNLogit, Poisson, NegativeBinomial) and OrderedModel do; quantile regressions are given by "
    "level, {0.1: low, 0.9: high}"
)


def is_of_statsmodels(model: Any) -> bool:
    """Whether an object holds fitted results of statsmodels."""
    results = sys.modules.get("statsmodels.base.model")  # whoever fitted one has imported it
    wrapper = sys.modules.get("statsmodels.base.wrapper")
    if results is None or wrapper is None:
        return False
    return isinstance(model, (results.Results, wrapper.ResultsWrapper))


def from_statsmodels(model: Any, X: Any) -> Predictions:
    """Predicted distributions for cases `X`, of which formulas leave none out in silence."""
    found = _predicted(model, X)
    if is_frame(X) and len(X) != len(found):
        raise ValueError(
            f"X has {len(X)} rows, and the model predicts {len(found)} of them: formulas leave out rows with "
            "missing values; leave them out of X and of y first"
        )
    return found


def _predicted(model: Any, X: Any) -> Predictions:
    fitted: Any = model.model
    results: Any = getattr(model, "_results", model)
    if _is(fitted, "miscmodels.ordinal_model", "OrderedModel"):
        return _of_grades(fitted.labels, np.asarray(model.predict(X)))
    if _is(fitted, "discrete.discrete_model", "MultinomialModel"):
        return with_classes(np.asarray(model.predict(X)), _names_of(fitted))
    if _is(fitted, "genmod.generalized_linear_model", "GLM"):
        if not hasattr(fitted.family, "get_distribution"):
            raise _no_distribution(fitted.family)
        if np.max(getattr(fitted, "n_trials", 1)) > 1:
            raise TypeError(
                f"{type(fitted).__name__} was fitted to counts of several trials, up to "
                f"{int(np.max(fitted.n_trials))} in a case, and how many there are in new cases it does not "
                "know; give scipy.stats.binom(trials, model.predict(X)) and the counts as targets, or, where "
                "each case is one trial, wc.Bernoulli(model.predict(X))"
            )
        if hasattr(fitted, "formula"):
            return _of_formula(model, X)
    if hasattr(model, "get_distribution") and "exog" in inspect.signature(model.get_distribution).parameters:
        try:
            return converted(model.get_distribution(exog=X))
        except NotImplementedError as error:
            raise _no_distribution(results) from error
    of_quantile = _is(results, "regression.quantile_regression", "QuantRegResults")
    if of_quantile or not _is(results, "regression.linear_model", "RegressionResults"):
        raise _no_distribution(results)
    found = model.get_prediction(X)
    mean, sd = np.asarray(found.predicted_mean), np.asarray(found.se_obs)
    return StudentT(float(model.df_resid), mean, sd) if model.use_t else Normal(mean, sd)


def _is(obj: Any, module: str, name: str) -> bool:
    """Whether an object is of a class of statsmodels, whose module was imported then."""
    home = sys.modules.get(f"statsmodels.{module}")
    return home is not None and isinstance(obj, getattr(home, name))


def _no_distribution(what: Any) -> TypeError:
    return TypeError(f"{type(what).__name__} of statsmodels gives no distribution of its targets; {_KNOWN}")


# -- classes and grades --------------------------------------------------------------------------------


def _names_of(fitted: Any) -> list[Any]:
    """Classes of a multinomial model, of the kind that its targets were: it writes all of them as texts."""
    names = [str(name) for name in cast("dict[int, Any]", fitted._ynames_map).values()]
    endog: Any = getattr(fitted.data, "orig_endog", None)  # none where the model has thrown its data away
    if endog is not None and np.ndim(endog) == 2:
        endog = (endog.iloc[:, 0] if is_frame(endog) else endog[:, 0]) if endog.shape[1] == 1 else None
    return class_labels(names, None if endog is None else to_numpy(label_array(endog, "endog")))


def _of_grades(labels: Any, probs: NDArray) -> Predictions:
    """Probabilities of ordered grades.

    Targets that were numbers stand for themselves. Categories have an order, and no distances: their places
    are the support, as they are wherever an ordered categorical is given.
    """
    numbers = isinstance(labels, np.ndarray)  # categories are an index
    classes = np.asarray(labels)
    support = classes.astype(np.float64) if numbers else np.arange(len(classes))
    if numbers and (support == np.floor(support)).all():
        classes = support.astype(np.int64)  # formulas make floating numbers of all
    return Categorical(probs, classes=classes, support=support)


# -- formulas ------------------------------------------------------------------------------------------


def _of_formula(model: Any, X: Any) -> Predictions:
    """A generalised linear model with a formula: its own `get_distribution` takes columns as they stand."""
    family, mean = model.model.family, model.predict(X)
    levels = _levels(model.model.endog_names)
    if levels is not None:  # of a text or truth value in a formula, the first is what is predicted
        mean = np.asarray(mean)
        return with_classes(np.stack([mean, 1.0 - mean], axis=1), levels)
    return converted(family.get_distribution(mean, model.scale))


def _levels(names: Any) -> list[Any] | None:
    """The two classes that a formula made columns of; None where targets are numbers.

    Examples
    --------
    >>> _levels(["paid[no]", "paid[yes]"]), _levels(["late[False]", "late[True]"]), _levels("paid")
    (['no', 'yes'], [0, 1], None)
    >>> _levels(["wins", "losses"]) is None
    True
    """
    if not isinstance(names, list) or len(cast("list[Any]", names)) != 2:
        return None
    found = [_LEVEL.fullmatch(str(name)) for name in cast("list[Any]", names)]
    if found[0] is None or found[1] is None or found[0][1] != found[1][1]:
        return None
    levels = [found[0][2], found[1][2]]
    if all(level.lower() in TRUTH for level in levels):
        return [int(TRUTH[level.lower()]) for level in levels]
    return class_labels(levels)
