"""Which findings a batch of predictions may have, and those that a test has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.decompose import targets_are_indices
from wellcal.hypotests.findings.binary import BinaryClaims
from wellcal.hypotests.findings.claims import ALPHA, Claims, tell
from wellcal.hypotests.findings.classes import ClassClaims
from wellcal.hypotests.findings.counts import CountClaims
from wellcal.hypotests.findings.draws import DrawClaims, QuantileClaims
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.hypotests.findings.scalars import ScalarClaims
from wellcal.hypotests.findings.splits import Summary
from wellcal.hypotests.findings.vectors import VectorClaims
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.families import are_counts, summaries
from wellcal.hypotests.setup import Setup
from wellcal.measures.normal_scores import standing_of
from wellcal.predictions import Normal, Predictions, Quantiles, Samples
from wellcal.problem.drawn_targets import draw_targets

RESAMPLES, MOST_DRAWS = 499, 5 * 10**6
"""Sets of targets that are drawn, and numbers in them, at most: but 99 sets at least."""

_AT_A_TIME = 100
_SEED = 20211  # findings depend on targets and predictions, not on how a test was drawn

UNNAMED = "no single kind of error stands out: wc.witness(y, pred) says for which cases"
"""What is told where a test rejects and no quantity by itself is off."""


def findings_of(setup: Setup, pvalue: float) -> FindingsLater | tuple[()]:
    """What kind of error a test found, once somebody asks; nothing where it did not reject.

    A calibrated model has findings with probability .05 at most, that of the test. Of a model that is wrong,
    a quantity that is right is called wrong with about the same probability, but for a single finding that
    begins with "perhaps".
    """
    if not pvalue <= ALPHA:
        return ()
    return FindingsLater(setup.targets, setup.predictions, setup.pooled is not None, pvalue)


@dataclass(frozen=True, eq=False)
class FindingsLater:
    """Findings of a test that rejected, the clearest first, made when it is called.

    Of a case it keeps targets and predictions alone, which the estimate of a result remembers, too.

    Attributes
    ----------
    targets, predictions, pooled
        As in `findings_in`.
    pvalue
        That of the test.
    """

    targets: NDArray
    predictions: Predictions
    pooled: bool
    pvalue: float

    def __call__(self) -> tuple[Finding, ...]:
        """What kind of error it is: the same whenever it is asked for."""
        found = findings_in(self.targets, self.predictions, self.pooled, perhaps=True)
        return found or (Finding(UNNAMED, "unnamed", UNNAMED, None, None, LEVEL, self.pvalue),)


def findings_in(
    targets: NDArray, predictions: Predictions, pooled: bool, perhaps: bool = False
) -> tuple[Finding, ...]:
    """The same without a test before them.

    Parameters
    ----------
    targets, predictions
        In NumPy.
    pooled
        Whether predictions are draws that include the target.
    perhaps
        Whether the clearest quantity is told where none is certain.
    """
    claims = claims_of(predictions, pooled)
    if claims is None:
        return ()
    return tuple(tell(claims, targets, _drawn(targets, predictions), perhaps))


def _drawn(targets: NDArray, predictions: Predictions) -> Iterator[NDArray]:
    rng = np.random.default_rng(_SEED)
    count = max(min(RESAMPLES, MOST_DRAWS // max(targets.size, 1)), 99)
    size = max(min(_AT_A_TIME, MOST_DRAWS // max(targets.size, 1)), 1)
    for start in range(0, count, size):
        yield draw_targets(predictions, rng, min(size, count - start), targets)


def claims_of(predictions: Predictions, pooled: bool) -> Claims | None:
    """What may be said of targets; None where they are objects. `pooled`: draws include the target."""
    if isinstance(predictions, Samples) and predictions.holds_objects:
        return None
    if targets_are_indices(predictions):
        return _of_classes(predictions)
    if isinstance(predictions, Quantiles):
        return QuantileClaims(np.asarray(predictions.levels), np.asarray(to_numpy(predictions.values)))
    centre, spread = summaries(predictions)
    if predictions.event_shape != ():
        return VectorClaims(centre.reshape(len(centre), -1), spread.reshape(len(spread), -1))
    if isinstance(predictions, Samples):
        values = np.asarray(to_numpy(predictions.values), dtype=np.float64)
        weights = np.broadcast_to(np.asarray(to_numpy(predictions.atom_weights())), values.shape)
        return DrawClaims(values, weights, pooled)
    named = [Summary(name, values) for name, values in _named(predictions, centre, spread)]
    columns = contrasts_of(centre, spread)
    if are_counts(predictions):
        return CountClaims(centre, spread, columns, named)
    standing = standing_of(predictions)
    if standing is None:
        return ScalarClaims(lambda targets: (targets - centre) / spread, columns, named)
    return ScalarClaims(standing, columns, named, normal=isinstance(predictions, Normal))


def _named(predictions: Predictions, centre: NDArray, spread: NDArray) -> list[tuple[str, NDArray]]:
    known = predictions.supports("mean") and bool(np.isfinite(to_numpy(predictions.mean())).all())
    return [(f"predicted {'mean' if known else 'median'}", centre), ("predicted spread", spread)]


def _of_classes(predictions: Predictions) -> Claims:
    probabilities = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    family: Any = predictions
    named: list[Any] = list(family.labels())
    labels = [_name(label, k) for k, label in enumerate(named)]
    if len(labels) == 2:
        return BinaryClaims(probabilities[:, 1], labels[1].replace("class 1", "outcome 1"))
    return ClassClaims(probabilities, labels)


def _name(label: Any, place: int) -> str:
    """What a class is called: its label, or its place where that is a vector."""
    plain: Any = label.tolist() if hasattr(label, "tolist") else label
    if isinstance(plain, list):
        return f"class {place}"
    return f"class {plain:g}" if isinstance(plain, float) else f"class {plain!r}"
