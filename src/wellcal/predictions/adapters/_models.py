"""What a fitted model predicts for cases, by the methods that it has: no library of models is imported."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import plain_array, real_array
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.columns.labels import labels_of
from wellcal.predictions.adapters._arrays import with_classes
from wellcal.predictions.adapters._statsmodels import from_statsmodels, is_of_statsmodels
from wellcal.predictions.adapters.registry import converted
from wellcal.predictions.base import Predictions
from wellcal.predictions.class_names import column_names
from wellcal.predictions.mixture import Mixture
from wellcal.predictions.normal import Normal
from wellcal.predictions.quantiles import Quantiles

UNDERSTOOD = (
    "a classifier with predict_proba and classes_; a regressor whose predict takes return_std; a model with "
    "pred_dist, as NGBoost has; fitted results of statsmodels for linear, generalised linear, discrete or "
    "ordered models; regressors by quantile level, {0.1: low, 0.9: high}; a list of models, whose mixture is "
    "taken; a function of X that returns predictions"
)


def from_model(model: Any, X: Any) -> Predictions:
    """What a fitted model predicts for cases `X`, with the index of `X` where it has one.

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
    found = _predicted(model, X)
    labels = labels_of(X)
    # Whoever returns columns has labelled them; a function may predict something else than rows of X.
    if labels is None or found.case_index is not None or len(labels) != len(found):
        return found
    return found.with_index(labels)


def _predicted(model: Any, X: Any) -> Predictions:
    if isinstance(model, Mapping):
        return _by_level(cast("Mapping[Any, Any]", model), X)
    if isinstance(model, (list, tuple)):
        members = cast("list[Any]", model)
        if not members:
            raise ValueError("an ensemble needs at least one model, found none")
        return Mixture([from_model(member, X) for member in members])
    inner = _inner(model)
    for recognises, predict in _KINDS:
        if recognises(inner):
            return predict(model, X)
    name = type(model).__name__
    if hasattr(model, "predict"):
        raise TypeError(
            f"{name}.predict gives one value for each case, and no distribution; give {UNDERSTOOD}. With "
            "residuals of held-out cases, wc.Normal(model.predict(X), their standard deviation) is one"
        )
    raise TypeError(f"a model of type {name} is not understood; give {UNDERSTOOD}")


def _inner(model: Any) -> Any:
    """The estimator that predicts: the last step of a pipeline, the best one of a search."""
    steps: Any = getattr(model, "steps", None)
    if isinstance(steps, list) and steps:
        return _inner(cast("list[Any]", steps)[-1][1])
    best: Any = getattr(model, "best_estimator_", None)
    return model if best is None else _inner(best)


# -- kinds of models -------------------------------------------------------------------------


def _is_classifier(model: Any) -> bool:
    return hasattr(model, "predict_proba") and hasattr(model, "classes_")


def _from_classifier(model: Any, X: Any) -> Predictions:
    probs, name = model.predict_proba(X), type(model).__name__
    if isinstance(probs, list) and all(np.ndim(one) > 1 for one in cast("list[Any]", probs)):
        raise TypeError(
            f"{name} predicts {len(cast('list[Any]', probs))} targets at once, and "
            "probabilities of each by itself; look at one target at a time: "
            "wc.Categorical(model.predict_proba(X)[k], classes=model.classes_[k])"
        )
    classes: Any = model.classes_
    table = np.asarray(to_numpy(plain_array(probs, "probabilities")))
    if table.ndim != 2:
        raise ValueError(
            f"{name}.predict_proba must give a column for each of its {len(classes)} classes, found shape "
            f"{table.shape}; probabilities of the second of two are wc.Bernoulli(p, classes=...)"
        )
    if (names := column_names(probs)) is not None and set(map(str, names)) == set(map(str, classes)):
        classes = names
    if any(np.ndim(one) > 0 for one in classes) or _are_of_several_targets(table):
        raise TypeError(
            f"{name} gives {table.shape[1]} probabilities that do not sum to one: if they are those of as "
            "many targets at once, look at one at a time, wc.Bernoulli(model.predict_proba(X)[:, k]); if "
            "they are scores of classes, divide each row by its sum"
        )
    return with_classes(probs, classes)


def _are_of_several_targets(table: NDArray) -> bool:
    """Whether columns are probabilities that do not sum to one, but by chance: of labels that go together."""
    possible = ((table >= 0) & (table <= 1)).all()
    return bool(possible and (np.abs(table.sum(axis=1) - 1.0) > 1e-3).mean() > 0.5)


def _gives_distributions(model: Any) -> bool:
    """As NGBoost's regressors do; those of its classifiers are no distributions of SciPy."""
    return hasattr(model, "pred_dist") and not hasattr(model, "predict_proba")


def _from_distributions(model: Any, X: Any) -> Predictions:
    return converted(model.pred_dist(X))


def _gives_probabilistic_regressions(model: Any) -> bool:
    """Regressors of skpro: `predict_proba` returns a distribution; NGBoost's classifiers count classes."""
    return hasattr(model, "predict_proba")


def _from_predict_proba(model: Any, X: Any) -> Predictions:
    return converted(model.predict_proba(X))


def _takes_return_std(model: Any) -> bool:
    predict = getattr(model, "predict", None)
    try:
        return predict is not None and "return_std" in inspect.signature(predict).parameters
    except (TypeError, ValueError):  # a builtin without a signature
        return False


def _from_return_std(model: Any, X: Any) -> Predictions:
    best = model
    while hasattr(best, "best_estimator_"):  # the search itself does not hand `return_std` on
        best = best.best_estimator_
    mean, sd = best.predict(X, return_std=True)
    return Normal(mean, sd)


def _is_function(model: Any) -> bool:
    return callable(model) and not inspect.isclass(model)


def _from_function(model: Any, X: Any) -> Predictions:
    return converted(model(X))


def _is_module_of_torch(model: Any) -> bool:
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    return torch is not None and isinstance(model, torch.nn.Module)


def _from_module(model: Any, X: Any) -> Predictions:
    """What a module of PyTorch predicts; of arrays that are none of its tensors, in its own precision."""
    torch: Any = sys.modules["torch"]
    if isinstance(X, torch.Tensor) or not (isinstance(X, list) or hasattr(X, "__array__")):
        return converted(model(X))
    weight = next((p for p in model.parameters() if p.is_floating_point()), None)
    array = real_array(plain_array(X, "X"), "X", ndim=tuple(range(1, 9)))
    tensor = torch.as_tensor(np.ascontiguousarray(array))
    if weight is not None:
        tensor = tensor.to(device=weight.device, dtype=weight.dtype)
    with torch.no_grad():
        return converted(model(tensor))


_KINDS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Any], Predictions]], ...] = (
    (is_of_statsmodels, from_statsmodels),
    (_gives_distributions, _from_distributions),
    (_is_classifier, _from_classifier),
    (_gives_probabilistic_regressions, _from_predict_proba),
    (_takes_return_std, _from_return_std),
    (_is_module_of_torch, _from_module),
    (_is_function, _from_function),
)
"""The first that recognises a model predicts."""


def _by_level(models: Mapping[Any, Any], X: Any) -> Predictions:
    """Quantiles by a regressor for each level."""
    if not models:
        raise ValueError("regressors by quantile level: found none")
    levels = sorted(models)
    predict = [getattr(models[level], "predict", models[level]) for level in levels]
    columns = [np.asarray(function(X)) for function in predict]
    return Quantiles(np.asarray(levels, float), np.stack(columns, axis=1))
