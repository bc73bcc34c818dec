"""Which findings a batch of predictions may have, and those that a test has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.hypotests.findings.binary import BinaryClaims
from wellcal.hypotests.findings.claims import Claims, certain, evidence, likely
from wellcal.hypotests.findings.classes import CLASS, GRADE, ClassClaims
from wellcal.hypotests.findings.closer import closer_look, drawn_sets
from wellcal.hypotests.findings.counts import CountClaims
from wellcal.hypotests.findings.draws import DrawClaims, QuantileClaims
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.impossible import clipped, impossible_finding
from wellcal.hypotests.findings.pooled import PooledClaims
from wellcal.hypotests.findings.pooled_vectors import PooledVectors
from wellcal.hypotests.findings.reasons import ALPHA, NO_REASONS, Reasons, Seen, reasons_in, unnamed
from wellcal.hypotests.findings.scalars import ScalarClaims
from wellcal.hypotests.findings.splits import OUTER, SPREAD, Summary, name_of_means
from wellcal.hypotests.findings.vector_pools import spread_is_known
from wellcal.hypotests.findings.vectors import VectorClaims
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.families import summaries
from wellcal.hypotests.setup import Setup
from wellcal.measures.bent_units import units_of
from wellcal.measures.normal_scores import FARTHEST_RESIDUAL, standing_of
from wellcal.measures.wording import percent
from wellcal.predictions import Normal, Predictions, Quantiles, Samples, simplex
from wellcal.predictions.class_names import is_ordered

_FARTHEST_TOLD = 1e9  # residuals of normals


def findings_of(
    setup: Setup, pvalue: float, provenance: Mapping[str, Any] | None = None
) -> FindingsLater | tuple[()]:
    """What kind of error a test found, once somebody asks; nothing where it did not reject.

    A calibrated model has findings with probability .05 at most, that of the test. Of a model that is wrong,
    a quantity that is right is called wrong with about the same probability, but for a single finding that
    begins with "perhaps". `provenance` of the test has p-values of its parts: those that are its reason are
    looked at more closely.
    """
    seen = Seen(setup.targets, setup.predictions, setup.pooled is not None, setup.groups)
    return findings_about(seen, pvalue, {} if provenance is None else provenance)


def findings_about(seen: Seen, pvalue: float, provenance: Mapping[str, Any]) -> FindingsLater | tuple[()]:
    """Return findings about cases, once somebody asks, with p-value and provenance of a test of some of them.

    >>> import wellcal as wc
    >>> seen = Seen(np.zeros(3), wc.Normal(np.zeros(3), 1.0), False)
    >>> findings_about(seen, 0.5, {})
    ()
    """
    if not pvalue <= ALPHA:
        return ()
    return FindingsLater(*seen[:3], pvalue, seen.groups, reasons_in(provenance))


@dataclass(frozen=True, eq=False)
class FindingsLater:
    """Findings of a test that rejected, the clearest first, made when it is called.

    Of a case it keeps targets and predictions alone, which the estimate of a result remembers, too.

    Attributes
    ----------
    targets, predictions, pooled, groups, reasons
        As in `findings_in`.
    pvalue
        That of the test.
    """

    targets: NDArray
    predictions: Predictions
    pooled: bool
    pvalue: float
    groups: NDArray | None = None
    reasons: Reasons = NO_REASONS

    def __call__(self) -> tuple[Finding, ...]:
        """What kind of error it is: the same whenever it is asked for."""
        found = findings_in(
            self.targets,
            self.predictions,
            self.pooled,
            groups=self.groups,
            reasons=self.reasons,
            perhaps=True,
        )
        return found or (unnamed(self.reasons, self.pvalue),)


def findings_in(
    targets: NDArray,
    predictions: Predictions,
    pooled: bool,
    *,
    groups: NDArray | None = None,
    reasons: Reasons = NO_REASONS,
    perhaps: bool = False,
) -> tuple[Finding, ...]:
    """The same without a test before them.

    Parameters
    ----------
    targets, predictions
        In NumPy.
    pooled
        Whether predictions are draws that include the target.
    groups
        Number of the cluster of each case, or None where cases are independent.
    reasons
        Parts of a test to look at more closely.
    perhaps
        Whether the clearest quantity is told where none is certain.
    """
    seen = Seen(targets, predictions, pooled, groups)
    claims = claims_of(seen.predictions, seen.pooled, targets)
    if claims is None:
        return ()
    claims = claims.within(seen.groups)
    every = evidence(claims, targets, drawn_sets(seen))
    found = certain(claims, every, targets, claims.tested, claims.with_trends(_about(claims, reasons.small)))
    if not found and reasons.clear:
        # A part that rejects by itself need not compete with what other parts look for.
        found = certain(claims, every, targets, _about(claims, reasons.clear))
    found = closer_look(seen, claims, found, reasons)
    if (lost := impossible_finding(targets, seen.predictions)) is not None:
        found = [*found[:1], lost, *found[1:]]
    if not found and perhaps:
        known = claims.tested if reasons.leading is None else claims.about(reasons.leading)
        found = likely(claims, every, targets, known)
        found = found or closer_look(seen, claims, [], reasons, perhaps=True)
    return tuple(found)


def _about(claims: Claims, parts: Iterable[str]) -> list[str]:
    """Quantities that tell what some parts look for; all of them, where there are no parts."""
    wanted = {name for part in parts for name in claims.about(part)} or set(claims.tested)
    return [name for name in claims.tested if name in wanted]


def claims_of(predictions: Predictions, pooled: bool, targets: NDArray | None = None) -> Claims | None:
    """What may be said of targets; None where they are objects. `pooled`: draws include the target.

    With `targets` probabilities are clipped in logarithms if an impossible class was observed.
    """
    if predictions.target_kind == "objects":
        return None
    if predictions.kind == "classes":
        return _of_classes(predictions, targets)
    centre, spread = summaries(predictions)
    if predictions.event_shape != ():
        return _of_vectors(predictions, pooled, centre, spread)
    if pooled:
        family: Any = predictions
        return PooledClaims(np.asarray(to_numpy(family.values), dtype=np.float64))
    named = [Summary(name, values) for name, values in _named(predictions, centre, spread)]
    columns = contrasts_of(centre, spread)
    if isinstance(predictions, Quantiles):
        levels, values = np.asarray(predictions.levels), np.asarray(to_numpy(predictions.values))
        return QuantileClaims(levels, values, columns, named)
    if isinstance(predictions, Samples):
        values = np.asarray(to_numpy(predictions.values), dtype=np.float64)
        weights = np.broadcast_to(np.asarray(to_numpy(predictions.atom_weights())), values.shape)
        if predictions.kind == "draws" and not spread_is_known(spread, values.shape[1]):
            columns, named = contrasts_of(centre, 0.0 * spread), named[:1]
        return DrawClaims(values, weights, columns, named)
    if predictions.kind == "counts":
        return CountClaims(centre, spread, columns, named)
    # A wrong unit puts residuals far off, and how far is to be told; those of points are infinite.
    points = isinstance(predictions, Normal) and bool(np.any(np.asarray(predictions.scale) == 0.0))
    standing = standing_of(predictions, FARTHEST_RESIDUAL if points else _FARTHEST_TOLD)
    if standing is None:
        return ScalarClaims(lambda targets: (targets - centre) / spread, columns, named)
    normal = isinstance(predictions, Normal)
    return ScalarClaims(standing, columns, named, normal=normal, units=units_of(predictions))


def _of_vectors(predictions: Any, pooled: bool, centre: NDArray, spread: NDArray) -> VectorClaims:
    tied = _sum_is_known(predictions)
    centre, spread = (values.reshape(len(values), -1) for values in (centre, spread))
    if pooled:
        pool = np.asarray(to_numpy(predictions.values), dtype=np.float64)
        if pool.shape[1] > 2:
            return PooledVectors(pool.reshape(*pool.shape[:2], -1), tied=tied)
        # A single draw cannot say where a case lies and be compared with the target, too.
        return VectorClaims(centre, spread, 0.0 * centre, 0.0 * spread, tied=tied)
    width = spread
    if predictions.kind == "draws":
        draws = predictions.values.shape[1]
        width = np.stack([one if spread_is_known(one, draws) else 0.0 * one for one in spread.T], axis=1)
    return VectorClaims(centre, spread, centre, width, tied=tied)


def _sum_is_known(predictions: Any) -> bool:
    """Whether coordinates always have the same sum, as shares of a whole have."""
    if isinstance(predictions, Samples):
        values = np.asarray(to_numpy(predictions.values), dtype=np.float64)
        sums = values.reshape(*values.shape[:2], -1).sum(axis=2)
        return bool(np.ptp(sums) <= 1e-6 * np.abs(values).max())
    return all(part.target_domain is simplex for part in predictions.parts)


def _named(predictions: Predictions, centre: NDArray, spread: NDArray) -> Iterator[tuple[str, NDArray]]:
    if isinstance(predictions, Quantiles):
        levels = np.asarray(predictions.levels)
        level = float(levels[np.argmin(np.abs(levels - 0.5))])
        yield (f"predicted {'median' if level == 0.5 else f'{percent(level)} quantile'}", centre)
        yield (OUTER, spread)
        return
    known = predictions.supports("mean") and bool(np.isfinite(to_numpy(predictions.mean())).all())
    yield (name_of_means() if known else "predicted median", centre)
    yield (SPREAD, spread)


def _of_classes(predictions: Predictions, targets: NDArray | None) -> Claims:
    probabilities = np.asarray(to_numpy(predictions.class_probs()), dtype=np.float64)
    labels = class_names(predictions)
    for_logs = probabilities if targets is None else clipped(probabilities, targets, predictions)
    if len(labels) == 2:
        return BinaryClaims(probabilities[:, 1], labels[1], for_logs[:, 1])
    return ClassClaims(probabilities, labels, for_logs)


def class_names(predictions: Predictions) -> list[str]:
    """What classes are called in sentences; the numbers 0 and 1 are outcomes, and more of them grades.

    Examples
    --------
    >>> import wellcal as wc
    >>> class_names(wc.Bernoulli([0.3])), class_names(wc.Categorical([[0.3, 0.7]], classes=["cat", "dog"]))
    (['outcome 0', 'outcome 1'], ["class 'cat'", "class 'dog'"])
    >>> class_names(wc.Categorical([[0.2, 0.3, 0.5]], support=[1, 2, 3]))
    ['grade 1', 'grade 2', 'grade 3']
    """
    family: Any = predictions
    names = [_name(label, k) for k, label in enumerate(list(family.labels()))]
    if len(names) > 2:
        return [f"{GRADE}{name.removeprefix(CLASS)}" for name in names] if is_ordered(family) else names
    return [{"class 0": "outcome 0", "class 1": "outcome 1"}.get(name, name) for name in names]


def _name(label: Any, place: int) -> str:
    """What a class is called: its label, or its place where that is a vector."""
    plain: Any = label.tolist() if hasattr(label, "tolist") else label
    if isinstance(plain, list):
        return f"class {place + 1}"
    return f"class {plain:g}" if isinstance(plain, float) else f"class {plain!r}"
