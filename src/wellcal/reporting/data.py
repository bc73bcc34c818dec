"""What a report is about: targets and predictions of all models, checked before any work is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal.columns.labels import Labels, in_order_of, labels_of
from wellcal.hypotests.clusters import number_clusters
from wellcal.hypotests.resampling.targets import users_form
from wellcal.hypotests.setup import numpy_batch
from wellcal.predictions import Bernoulli, Mixture, Predictions, Quantiles, Samples
from wellcal.predictions.alignment import per_case, same_cases
from wellcal.predictions.base import check_inputs, check_truth_first
from wellcal.predictions.class_names import is_ordered
from wellcal.predictions.serialization import fingerprint
from wellcal.predictions.target_spaces import check_one_space

ONLY = "the model"
"""What a model is called that was given without a name."""

FEWEST = 2
"""Cases that a test needs; comparisons need one more."""

DRAWN = 100_000
"""Cases that a picture is drawn from; of more, a random part."""

_MOST_MODELS = 20


@dataclass(frozen=True)
class ModelData:
    """Targets and predictions of one model, in NumPy and in the order of the cases.

    Attributes
    ----------
    name
        What it is called.
    targets
        As a user gives them: labels, not their numbers.
    predictions
        Without an index.
    clusters
        Number of the cluster of each case, or None where all are independent.
    """

    name: str
    targets: NDArray
    predictions: Predictions
    clusters: NDArray | None = None

    def some(self, rows: NDArray | None) -> ModelData:
        """Some of the cases, or all."""
        if rows is None:
            return self
        clusters = None if self.clusters is None else self.clusters[rows]
        return replace(
            self, targets=self.targets[rows], predictions=self.predictions[rows], clusters=clusters
        )

    def __len__(self) -> int:
        return len(self.predictions)


@dataclass(frozen=True)
class Data:
    """All models, with what they have in common.

    Attributes
    ----------
    models
        In the order in which they were given.
    index
        Labels of the cases, an index of pandas, or None.
    named
        Whether the models were given by name.
    y, given
        Targets and predictions as they were given.
    called
        What cases are called, by their numbers; None where their labels say it.
    """

    models: tuple[ModelData, ...]
    index: Labels | None
    named: bool
    y: Any
    given: tuple[object, ...]
    called: Callable[[int], str] | None = None

    def __len__(self) -> int:
        return len(self.models[0])

    def label(self, row: int) -> str | None:
        """The label of a case, where cases have labels other than their numbers."""
        if self.called is not None:
            return self.called(row)
        if self.index is None or _counts_from_zero(self.index):
            return None
        return str(self.index[row])

    def in_order(self, x: Any, name: str) -> Any:
        """A column that was given beside the models, in the order of the cases."""
        for pred in self.given:
            per_case(x, name, self.y, pred)  # an error where its order cannot be known
        return in_order_of(self.index, x, name, "y")

    def in_clusters(self, groups: Any) -> Data:
        """The same with clusters of dependent cases, by a label for each case."""
        numbers = number_clusters(self.in_order(groups, "groups"), len(self))
        if numbers is None:  # all stand alone
            return self
        if len(self.models) > 1:
            raise ValueError(
                "groups: models are compared case by case, as if cases were independent, so that a report "
                "honours clusters for one model at a time; give one, or leave out groups"
            )
        if int(numbers.max()) < 1:
            raise ValueError("groups must name at least 2 clusters, found 1")
        return replace(self, models=tuple(replace(model, clusters=numbers) for model in self.models))

    @property
    def n_clusters(self) -> int | None:
        """How many clusters there are; None where cases are independent."""
        numbers = self.models[0].clusters
        return None if numbers is None else int(numbers.max()) + 1

    @property
    def fingerprint(self) -> str:
        """SHA-256 of targets and of the parameters of all predictions, in their order."""
        return fingerprint((model.name, model.targets, model.predictions) for model in self.models)


def _counts_from_zero(index: Labels) -> bool:
    """Whether labels are the numbers of cases; those of the later part of a frame are others."""
    return type(index).__name__ == "RangeIndex" and (index.start, index.step) == (0, 1)


def gathered(y: object, pred: object) -> Data:
    """Targets and models, checked; errors name the model and the first bad row."""
    check_truth_first(y)
    given, named = _models(pred)
    called = {f"pred[{name!r}]" if named else "pred": one for name, one in given.items()}
    batches = same_cases(y, called)
    models: list[ModelData] = []
    for name, argument, batch in zip(given, called, batches, strict=True):
        try:
            targets, predictions = check_inputs(y, batch, argument)
            predictions.check_judged(targets)
            own = numpy_batch(predictions).with_index(None)
        except (TypeError, ValueError) as error:
            if named:
                error.add_note(f"This was found for the model {name!r}.")
            raise
        models.append(ModelData(name, users_form(own, np.asarray(to_numpy(targets))), own))
    check_one_space([model.predictions for model in models], tuple(given))
    fewest = FEWEST + (len(models) > 1)
    if len(models[0]) < fewest:
        raise ValueError(f"a report needs at least {how_many(fewest)}, found {len(models[0])}; collect more")
    labels = labels_of(y)
    if labels is None:
        labels = next((batch.case_index for batch in batches if batch.case_index is not None), None)
    return Data(tuple(models), labels, named, y, tuple(given.values()))


def _models(pred: object) -> tuple[dict[str, object], bool]:
    """Models by their names, and whether they came with them."""
    if not isinstance(pred, Mapping):
        return {ONLY: pred}, False
    given = cast("Mapping[object, object]", pred)
    if not given:
        raise ValueError("pred is an empty dictionary: give at least one model")
    models = {str(name): one for name, one in given.items()}
    if len(models) != len(given):
        raise ValueError("pred: two models have the same name; give each a name of its own")
    if not all(map(str.strip, models)):
        raise ValueError("pred: the name of a model is empty; give each a name of its own")
    if len(models) > _MOST_MODELS:
        raise ValueError(f"pred has {len(models)} models; a report shows {_MOST_MODELS} at most")
    return models, True


def at_most(rows: int, most: int, rng: np.random.Generator) -> NDArray | None:
    """So many rows, drawn at random, in their order; None where there are no more than that."""
    return None if rows <= most else np.sort(rng.permutation(rows)[:most])


def family_in_words(predictions: Any) -> str:
    """What was predicted: "classification, 10 classes".

    Examples
    --------
    >>> import wellcal as wc
    >>> family_in_words(wc.Categorical(np.full((2, 4), 0.25))), family_in_words(wc.Poisson([1.0, 2.0]))
    ('classification, 4 classes', 'counts, Poisson predictions')
    >>> family_in_words(wc.Samples(np.zeros((3, 50)))), family_in_words(wc.Normal([0.0], [1.0]))
    ('numbers, 50 draws for each case', 'numbers, normal predictions')
    """
    if isinstance(predictions, Quantiles):
        return f"numbers, {how_many(len(predictions.levels), 'predicted quantile')}"
    if predictions.kind == "classes":
        count = 2 if isinstance(predictions, Bernoulli) else int(predictions.class_probs().shape[1])
        if is_ordered(predictions):
            return f"ordered grades, {count} of them"
        return "binary classification" if count == 2 else f"classification, {count:,} classes"
    what = _targets_in_words(predictions)
    if isinstance(predictions, Samples):
        count = int(predictions.values.shape[1])
        return f"{what}, {how_many(count, predictions.kind.removesuffix('s'))} for each case"
    if isinstance(predictions, Mixture):
        parts = sorted({_named(type(part).__name__) for part in predictions.components})
        return f"{what}, mixtures of {len(predictions.components)} {' and '.join(parts)} parts"
    return f"{what}, {_named(type(predictions).__name__)} predictions"


def _targets_in_words(predictions: Any) -> str:
    if isinstance(getattr(predictions, "holds_objects", None), bool) and predictions.holds_objects:
        return "objects"
    if len(predictions.event_shape) == 1:
        return f"vectors of {predictions.event_shape[0]} numbers"
    return "numbers" if predictions.continuous or predictions.target_kind == "real" else "counts"


_WORDS = {
    "Normal": "normal",
    "DiagonalNormal": "diagonal normal",
    "MultivariateNormal": "multivariate normal",
    "LogNormal": "log-normal",
    "NegativeBinomial": "negative binomial",
    "StudentT": "Student t",
    "PowerExponential": "power exponential",
}


def _named(family: str) -> str:
    return _WORDS.get(family, family)
