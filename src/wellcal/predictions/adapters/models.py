"""Predictions of fitted models, by the methods that they have: no library of models is imported."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, cast

import numpy as np

import wellcal.predictions as wp
from wellcal._arrays.checks import label_array, plain_array, real_array
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.columns.column_names import TRUTH, class_labels
from wellcal.columns.frames import is_frame
from wellcal.columns.labels import labels_of
from wellcal.predictions.adapters.arrays import with_classes
from wellcal.predictions.adapters.registry import converted
from wellcal.predictions.base import Predictions
from wellcal.predictions.class_names import column_names

_UNDERSTOOD = (
    "a classifier with predict_proba and classes_; a regressor whose predict takes return_std; a model with "
    "pred_dist, as NGBoost; results of statsmodels; regressors by quantile level, {0.1: low, 0.9: high}; a "
    "list of models, for their mixture; a function of X that returns predictions"
)
_OF_STATSMODELS = (
    "OLS, GLM of most families, discrete models (Logit, Probit, MNLogit, Poisson, NegativeBinomial) and "
    "OrderedModel do; quantile regressions are given by level, {0.1: low, 0.9: high}"
)
_SM = "statsmodels"
_LEVEL = re.compile(r"(.*)\[(.*)\]")  # name in a formula of a column that it makes of one variable


def from_model(model: Any, X: Any) -> Predictions:
    """Return predictions of a fitted model for cases `X`, with the index of `X` if it has one.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array(["no", "no", "yes", "yes"])
    >>> from_model(LogisticRegression().fit(X, y), X).labels()
    array(['no', 'yes'], dtype='<U3')
    >>> import pandas as pd
    >>> frame = pd.DataFrame(X, index=["a", "b", "c", "d"])
    >>> from_model(LogisticRegression().fit(frame, y), frame).case_index.tolist()
    ['a', 'b', 'c', 'd']
    """
    pred = _predicted(model, X)
    labels = labels_of(X)
    # Models that return columns have labelled them; a function may predict something else than rows of X.
    if labels is None or pred.case_index is not None or len(labels) != len(pred):
        return pred
    return pred.with_index(labels)


def _predicted(model: Any, X: Any) -> Predictions:
    if isinstance(model, (Mapping, list, tuple)) and not model:
        raise ValueError("an ensemble, or regressors by quantile level, need at least one model, found none")
    if isinstance(model, Mapping):
        by_level = cast("Mapping[Any, Any]", model)
        levels = sorted(by_level)
        columns = [np.asarray(getattr(by_level[u], "predict", by_level[u])(X)) for u in levels]
        return wp.Quantiles(np.asarray(levels, float), np.stack(columns, axis=1))
    if isinstance(model, (list, tuple)):
        return wp.Mixture([from_model(member, X) for member in cast("list[Any]", model)])
    inner = _inner(model)
    for recognises, predict in _KINDS:
        if recognises(inner):
            return predict(model, X)
    name, point = type(model).__name__, hasattr(model, "predict")
    problem = (
        f"{name}.predict gives one value for each case"
        if point
        else f"a model of type {name} is not understood"
    )
    remedy = ", or wc.Normal(model.predict(X), sd) with sd of held-out residuals" if point else ""
    raise TypeError(f"{problem}; give {_UNDERSTOOD}{remedy}")


def _inner(model: Any) -> Any:
    """Return the estimator that predicts: the last step of a pipeline, the best one of a search."""
    steps: Any = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        return _inner(cast("list[Any]", steps)[-1][1])
    best: Any = getattr(model, "best_estimator_", None)
    return model if best is None else _inner(best)


def _is(obj: Any, module: str, name: str) -> bool:
    """True if an object is of a class whose module was imported then."""
    home = sys.modules.get(module)
    return home is not None and isinstance(obj, getattr(home, name))


# -- classifiers, regressors, modules ------------------------------------------------------------------


def _from_classifier(model: Any, X: Any) -> Predictions:
    probs, name = model.predict_proba(X), type(model).__name__
    classes: Any = model.classes_
    if isinstance(probs, list) and all(np.ndim(one) > 1 for one in cast("list[Any]", probs)):
        one = "wc.Categorical(model.predict_proba(X)[k], classes=model.classes_[k])"
        raise TypeError(f"{name} predicts {len(cast('list[Any]', probs))} targets at once; give {one}")
    table: NDArray = np.asarray(to_numpy(plain_array(probs, "probabilities")))
    if table.ndim != 2:
        raise ValueError(
            f"{name}.predict_proba must give a column for each of its {len(classes)} classes, found shape "
            f"{table.shape}; probabilities of the second of two are wc.Bernoulli(p, classes=...)"
        )
    if (names := column_names(probs)) is not None and set(map(str, names)) == set(map(str, classes)):
        classes = names
    possible = bool(((table >= 0) & (table <= 1)).all())
    other_sums = possible and (np.abs(table.sum(axis=1) - 1.0) > 1e-3).mean() > 0.5  # labels of one case
    if any(np.ndim(one) > 0 for one in classes) or other_sums:
        raise TypeError(
            f"{name} gives {table.shape[1]} probabilities that do not sum to one: divide scores by their "
            "sum, and look at several targets one at a time, wc.Bernoulli(model.predict_proba(X)[:, k])"
        )
    return with_classes(probs, classes)


def _takes_return_std(model: Any) -> bool:
    try:
        return "return_std" in inspect.signature(getattr(model, "predict", None) or len).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _from_return_std(model: Any, X: Any) -> Predictions:
    while hasattr(model, "best_estimator_"):  # the search itself does not hand `return_std` on
        model = model.best_estimator_
    return wp.Normal(*model.predict(X, return_std=True))


def _from_module(model: Any, X: Any) -> Predictions:
    """Call a module of PyTorch; arrays that are no tensors become tensors of its precision and device."""
    torch: Any = sys.modules["torch"]
    if isinstance(X, torch.Tensor) or not (isinstance(X, list) or hasattr(X, "__array__")):
        return converted(model(X))
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)
    tensor = torch.as_tensor(np.ascontiguousarray(real_array(plain_array(X, "X"), "X", ndim=(1, 2, 3, 4))))
    if weight is not None:
        tensor = tensor.to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        return converted(model(tensor))


# -- statsmodels ---------------------------------------------------------------------------------------


def _from_statsmodels(model: Any, X: Any) -> Predictions:
    """Return predicted distributions of fitted results, and raise if a formula leaves out cases."""
    pred = _of_results(model, X)
    if is_frame(X) and len(X) != len(pred):
        raise ValueError(
            f"X has {len(X)} rows, and the model predicts {len(pred)} of them: leave rows with missing "
            "values out of X and of y"
        )
    return pred


def _of_results(model: Any, X: Any) -> Predictions:
    fitted: Any = model.model
    results: Any = getattr(model, "_results", model)
    if _is(fitted, f"{_SM}.miscmodels.ordinal_model", "OrderedModel"):
        return _of_grades(fitted.labels, np.asarray(model.predict(X)))
    if _is(fitted, f"{_SM}.discrete.discrete_model", "MultinomialModel"):
        return with_classes(np.asarray(model.predict(X)), _names_of(fitted))
    if _is(fitted, f"{_SM}.genmod.generalized_linear_model", "GLM"):
        if np.max(getattr(fitted, "n_trials", 1)) > 1:
            raise TypeError(
                f"{type(fitted).__name__} was fitted to counts of several trials, up to "
                f"{int(np.max(fitted.n_trials))} in a case, and does not know how many new cases have; give "
                "scipy.stats.binom(trials, model.predict(X)) and the counts as targets"
            )
        if hasattr(fitted.family, "get_distribution"):
            return _of_glm(model, X)
        results = fitted.family
    elif _is(results, f"{_SM}.regression.linear_model", "RegressionResults"):
        if not _is(results, f"{_SM}.regression.quantile_regression", "QuantRegResults"):
            found = model.get_prediction(X)
            mean, sd = np.asarray(found.predicted_mean), np.asarray(found.se_obs)
            return wp.StudentT(float(model.df_resid), mean, sd) if model.use_t else wp.Normal(mean, sd)
    elif hasattr(model, "get_distribution"):
        with suppress(NotImplementedError, TypeError):  # those of survival models take no cases
            return converted(model.get_distribution(exog=X))
    raise TypeError(
        f"{type(results).__name__} of statsmodels gives no distribution of its targets; {_OF_STATSMODELS}"
    )


def _names_of(fitted: Any) -> list[Any]:
    """Return classes of a multinomial model as its targets had them: it writes all of them as texts."""
    names = [str(name) for name in cast("dict[int, Any]", fitted._ynames_map).values()]
    endog: Any = getattr(fitted.data, "orig_endog", None)  # none if the model has thrown its data away
    if endog is not None and np.ndim(endog) == 2:
        endog = (endog.iloc[:, 0] if is_frame(endog) else endog[:, 0]) if endog.shape[1] == 1 else None
    return class_labels(names, None if endog is None else to_numpy(label_array(endog, "endog")))


def _of_grades(labels: Any, probs: NDArray) -> Predictions:
    """Return probabilities of ordered grades.

    Targets that were numbers stand for themselves. Categories have an order, and no distances: their places
    are the support, as for any ordered categorical.
    """
    classes = np.asarray(labels)
    if not isinstance(labels, np.ndarray):  # categories are an index
        return wp.Categorical(probs, classes=classes, support=np.arange(len(classes)))
    support = classes.astype(np.float64)
    whole = bool((support == np.floor(support)).all())  # formulas make floating numbers of all
    return wp.Categorical(probs, classes=support.astype(np.int64) if whole else classes, support=support)


def _of_glm(model: Any, X: Any) -> Predictions:
    """Return predictions of a generalised linear model; a formula with a text predicts its first class."""
    mean, names = model.predict(X), model.model.endog_names
    levels = [_LEVEL.fullmatch(str(name)) for name in names] if issubclass(type(names), list) else []
    if len(levels) == 2 and levels[0] and levels[1] and levels[0][1] == levels[1][1]:
        texts, mean = [level[2] for level in levels if level], np.asarray(mean)
        truths = [TRUTH.get(text.lower()) for text in texts]
        classes = class_labels(texts) if None in truths else [int(bool(truth)) for truth in truths]
        return with_classes(np.stack([mean, 1.0 - mean], axis=1), classes)
    return converted(model.model.family.get_distribution(mean, model.scale))


def _of_distributions(method: str) -> Callable[[Any, Any], Predictions]:
    return lambda model, X: converted(getattr(model, method)(X))


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Predictions]], ...] = (
    (lambda m: _is(m, f"{_SM}.base.model", "Results"), _from_statsmodels),
    (lambda m: _is(m, f"{_SM}.base.wrapper", "ResultsWrapper"), _from_statsmodels),
    # NGBoost's regressors; distributions of its classifiers are none of SciPy.
    (lambda m: hasattr(m, "pred_dist") and not hasattr(m, "predict_proba"), _of_distributions("pred_dist")),
    (lambda m: hasattr(m, "predict_proba") and hasattr(m, "classes_"), _from_classifier),
    # Regressors of skpro return a distribution; NGBoost's classifiers number the classes.
    (lambda m: hasattr(m, "predict_proba"), _of_distributions("predict_proba")),
    (_takes_return_std, _from_return_std),
    (lambda m: _is(m, "torch.nn", "Module"), _from_module),
    (lambda m: callable(m) and not inspect.isclass(m), _of_distributions("__call__")),
)
"""Kinds of models, and how they predict; the first that recognises a model does."""
