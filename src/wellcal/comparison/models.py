"""Models on the same cases, prepared for comparisons: what each case adds to each measure of each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.progress import Stages
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.seeds import DEFAULT_SEED, as_generator
from wellcal._arrays.special import LEAST_PROBABILITY
from wellcal.columns.labels import take_cases
from wellcal.comparison.differences import Difference, t_quantile
from wellcal.comparison.pooling import TWO, pooled_kernel
from wellcal.comparison.sizes import (
    CLASSES,
    NUMBERS,
    TWO_CLASSES,
    Size,
    difference_error,
    size_of,
    standard_error,
)
from wellcal.hypotests import calibration_test
from wellcal.hypotests.pvalues import advise_of_few_resamples
from wellcal.hypotests.result import TestResult
from wellcal.hypotests.setup import Setup, make_setup, numpy_batch
from wellcal.kernels.base import Kernel
from wellcal.measures.by_case import Contributions, contributions
from wellcal.measures.scores.casewise import log_prob_of_cases
from wellcal.measures.scores.quadratic import brier_of_cases
from wellcal.measures.scores.ranked import crps_of_cases
from wellcal.measures.wording import impossible_phrase
from wellcal.predictions import Predictions
from wellcal.predictions.alignment import per_case, same_cases
from wellcal.predictions.base import check_inputs, check_truth_first
from wellcal.predictions.target_spaces import check_one_space
from wellcal.problem.weights import MeanOfWeighted, check_weights

SKCE, NLL = "SKCE", "NLL"
"""Measures that several families have; CRPS or Brier score come after them."""

SIZES = (NUMBERS, TWO_CLASSES, CLASSES)
"""Measures that are lengths of an error; models of one kind of target have one of them."""

LEFT_OUT = "left out"
"""What the provenance calls scores that are not compared."""

_TEST = 3.0  # how long the test of a model takes, in kernel sums


@dataclass(frozen=True)
class Model:
    """One of the models.

    Attributes
    ----------
    name
        What it is called.
    parts
        What each case adds to its SKCE under the common kernel.
    size
        How large its error in centre and spread is, of classes in temperature, where that means anything.
    scores
        Proper scores of each case, infinite where an outcome was called impossible.
    test
        What `calibration_test` finds.
    """

    name: str
    parts: Contributions
    size: Size | None
    scores: dict[str, NDArray]
    test: TestResult


@dataclass(frozen=True)
class Models:
    """All of them, with what they have in common."""

    models: tuple[Model, ...]
    kernel: Kernel
    weights: NDArray
    weighted: MeanOfWeighted
    level: float

    @property
    def degrees(self) -> float:
        """Degrees of freedom of standard errors."""
        return self.weighted.degrees

    @property
    def n_samples(self) -> int:
        """Number of cases."""
        return len(self.weights)

    @property
    def measures(self) -> list[str]:
        """Measures that all models have."""
        sizes = {None if model.size is None else model.size.measure for model in self.models}
        with_size = [] if None in sizes or len(sizes) > 1 else [str(size) for size in sizes]
        return [SKCE, *with_size, *(name for name in self._scores if not self._infinite(name))]

    @property
    def _scores(self) -> list[str]:
        return [name for name in self.models[0].scores if all(name in model.scores for model in self.models)]

    def _infinite(self, score: str) -> dict[int, NDArray]:
        """Scores that are not finite, by the positions of models that have some."""
        found = [model.scores[score] for model in self.models]
        lost = {k: values[~np.isfinite(values)] for k, values in enumerate(found)}
        return {k: values for k, values in lost.items() if len(values)}

    def left_out(self, names: Sequence[str]) -> dict[str, str]:
        """Scores that are not compared, with the reason, as a part of the provenance; none where all are."""
        told = [
            _why_left_out(score, {names[k]: values for k, values in lost.items()})
            for score in self._scores
            if (lost := self._infinite(score))
        ]
        if told and (of_classes := [name for name in self.measures if name in (TWO_CLASSES, CLASSES)]):
            told.append(
                f"in the error in {of_classes[0]} probabilities count as {LEAST_PROBABILITY:g} at least"
            )
        return {LEFT_OUT: "; ".join(told)} if told else {}

    def difference(
        self, measure: str, i: int, j: int, critical: float | None = None, *, holds: bool = True
    ) -> Difference:
        """How far two models are apart in a measure."""
        a, b = self.models[i], self.models[j]
        w = self.weights / self.weights.sum()
        if measure == SKCE:
            found = a.parts.minus(b.parts, "", {})
            first, second, error = float(a.parts.estimate), float(b.parts.estimate), found.standard_error
        elif measure in SIZES:
            assert a.size is not None
            assert b.size is not None
            first, second = a.size.length, b.size.length
            error = difference_error(a.size, b.size, w, self.weighted)
        else:
            gaps = a.scores[measure] - b.scores[measure]
            first, second = (float(w @ model.scores[measure]) for model in (a, b))
            error = standard_error(gaps - float(w @ gaps), w, self.weighted)
        chosen = t_quantile(self.degrees, self.level) if critical is None else critical
        return Difference(measure, first, second, float(error), self.degrees, chosen, self.level, holds)

    def terms(self, measure: str, i: int, j: int) -> NDArray:
        """What each case adds to the deviation of a difference from the true one, ``(n,)``, weighted."""
        a, b = self.models[i], self.models[j]
        w = self.weights / self.weights.sum()
        if measure in SIZES:
            assert a.size is not None
            assert b.size is not None
            return w * (a.size.terms - b.size.terms)
        gaps = a.parts.scores - b.parts.scores if measure == SKCE else a.scores[measure] - b.scores[measure]
        return w * (gaps - float(w @ gaps))


def prepare_models(
    y: object,
    given: dict[str, object],
    kernel: Kernel | None,
    level: float,
    weights: object,
    rng: int | np.random.Generator | None,
    options: dict[str, Any],
    tests: Mapping[str, TestResult] | None = None,
) -> Models:
    """Check all models, and compute what comparisons need of each; `tests` are those made before, by name."""
    names = tuple(given)
    seeds = _seeds(rng, len(names))
    check_truth_first(y, ", ".join(names))
    # What errors call them: an argument, or an entry of a dictionary.
    called = {name if name in TWO else f"pred[{name!r}]": pred for name, pred in given.items()}
    batches = same_cases(y, called)
    counted = _that_count(y, batches, per_case(weights, "weights", y, batches[0]))
    # In their own order: with one seed each test is the one that it would be alone.
    tested = list(given.values()) if counted[0] is y else counted[1]
    y, batches, w = counted
    common = kernel
    if common is None:
        checked = _checked(y, batches, names)
        common = pooled_kernel(*checked, names=names, expectations=options["expectations"])
    setups = [_setup(name, y, p, common, options) for name, p in zip(names, batches, strict=True)]
    check_one_space([setup.predictions for setup in setups], names)
    n = setups[0].n_samples
    if n < 3:
        raise ValueError(f"a comparison needs at least 3 cases, found {n}; collect more")
    of_cases = np.ones(n) if w is None else np.asarray(w)
    models: list[Model] = []
    stages = Stages("comparison", len(names) * (_TEST + 1.0))
    for name, setup, pred, seed in zip(names, setups, tested, seeds, strict=True):
        targets, batch = setup.targets, setup.predictions
        with stages.part(_TEST):
            test = (
                calibration_test(y, pred, kernel=kernel, rng=seed, **options)
                if tests is None
                else tests[name]
            )
        with stages.part(1.0):
            parts = contributions(setup.problem, setups[0].engine, w)
            size = size_of(targets, batch, of_cases / of_cases.sum())
            models.append(Model(name, parts, size, all_scores_of_cases(targets, batch), test))
    stages.end()
    pairs = len(models) * (len(models) - 1) // 2
    results = [model.test for model in models]
    what = f"a difference between {len(models)} models"
    advise_of_few_resamples(results, 2.0 * pairs, 1.0 - level, what)
    return Models(tuple(models), common, of_cases, MeanOfWeighted.of(of_cases), level)


def _that_count(
    y: Any, batches: list[Predictions], weights: Any
) -> tuple[Any, list[Predictions], NDArray | None]:
    """Cases whose weight is not zero, and their weights: the others count in no test either."""
    n = len(batches[0])
    if weights is None:
        return y, batches, None
    w = np.asarray(to_numpy(check_weights(weights, n, np.ones(n), at_least=3)))
    if np.all(w > 0.0) or len(y) != n:  # which is an error of its own
        return y, batches, w
    kept = np.flatnonzero(w > 0.0)
    rows = np.asarray(y, dtype=object) if isinstance(y, (list, tuple)) else y
    return take_cases(rows, kept), [take_cases(batch, kept) for batch in batches], w[kept]


def scores_of_cases(targets: NDArray, predictions: Any) -> dict[str, NDArray]:
    """Proper scores ``(n,)`` that predictions have, where all of them are finite.

    Examples
    --------
    >>> from wellcal.predictions import Bernoulli
    >>> scores_of_cases(np.array([0, 1]), Bernoulli(np.array([0.5, 0.5])))["Brier score"]
    array([0.25, 0.25])
    """
    found = all_scores_of_cases(targets, predictions)
    return {name: values for name, values in found.items() if np.isfinite(values).all()}


def all_scores_of_cases(targets: NDArray, predictions: Any) -> dict[str, NDArray]:
    """The same with those that are not finite: a case that predictions call impossible has an infinite NLL.

    Examples
    --------
    >>> from wellcal.predictions import Bernoulli
    >>> all_scores_of_cases(np.array([0, 1]), Bernoulli(np.array([0.5, 0.0])))["NLL"].round(2)
    array([0.69,  inf])
    """
    found: dict[str, Any] = {}
    if predictions.supports("log_prob"):
        found[NLL] = -log_prob_of_cases(targets, predictions)
    with np.errstate(all="ignore"):
        if predictions.kind == "classes":
            found["Brier score"] = brier_of_cases(targets, predictions)
        else:
            with suppress(TypeError, ValueError):  # vectors, objects, families that do not have it
                found["CRPS"] = crps_of_cases(targets, predictions)[0]
    return {name: np.asarray(to_numpy(values), dtype=np.float64) for name, values in found.items()}


def _why_left_out(score: str, lost: Mapping[str, NDArray]) -> str:
    """Which models have a score that is not finite, and in how many cases.

    Examples
    --------
    >>> print(_why_left_out("NLL", {"B": np.array([np.inf, np.inf])}))
    NLL, which is infinite: B (2 cases had probability 0 for what happened)
    """
    impossible = score == NLL and all((values > 0).all() for values in lost.values())
    count = impossible_phrase if impossible else how_many
    told = [f"{name} ({count(len(values))})" for name, values in lost.items()]
    return f"{score}, which is {'infinite' if impossible else 'not finite'}: {', '.join(told)}"


def gate(tests: Sequence[TestResult]) -> float:
    """p-value of all models being calibrated: the smallest, times their number."""
    return min(1.0, len(tests) * min(test.pvalue for test in tests))


def _seeds(rng: int | np.random.Generator | None, count: int) -> Sequence[int | np.random.Generator]:
    """What the tests get as `rng`: a seed itself, so that each is the test that it makes elsewhere.

    They may share it. The smallest p-value times their number is valid however they depend on each other.
    """
    generator = as_generator(rng)
    if isinstance(rng, np.random.Generator):
        return generator.spawn(count)
    return [DEFAULT_SEED if rng is None else rng] * count


def _setup(name: str, y: object, pred: object, kernel: Kernel, options: dict[str, Any]) -> Setup:
    try:
        return make_setup(y, pred, kernel, **options)
    except (TypeError, ValueError) as error:
        error.add_note(f"This was found in {name}; the kernel must serve all models.")
        raise


def _checked(y: object, batches: Sequence[Predictions], names: Sequence[str]) -> list[Predictions]:
    """All batches in NumPy, for these targets."""
    found: list[Predictions] = []
    for name, pred in zip(names, batches, strict=True):
        try:
            _, batch = check_inputs(y, pred, ", ".join(names))
        except (TypeError, ValueError) as error:
            error.add_note(f"This was found for the predictions of {name}.")
            raise
        found.append(numpy_batch(batch))
    return found
