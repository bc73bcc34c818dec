"""Several measures at once, of cases that come in parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from wellcal._arrays.checks import one_of, plain_array
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, Schema, listed, mapping, text, whole, word
from wellcal._arrays.seeds import as_generator
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import Estimate, estimate_text
from wellcal.measures.presentation import Presentable, Row
from wellcal.measures.quantiles import IntervalCoverage, QuantileCalibration
from wellcal.measures.quantiles.coverage import if_calibrated
from wellcal.measures.running.accumulator import Accumulator
from wellcal.measures.running.bins import RunningECE
from wellcal.measures.running.means import SCORES, RunningMean
from wellcal.measures.running.pairs import RunningSKCE
from wellcal.measures.running.shares import RunningCoverage, RunningPIT
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import in_numpy
from wellcal.predictions.quantile_ties import Ties, counted_only
from wellcal.problem.weights import check_weights

MEASURES = (*SCORES, "ece", "coverage", "pit", "skce")
"""Names of all of them."""

_CALLED = {
    **{name: called for name, (called, _) in SCORES.items()},
    "ece": "ECE",
    "coverage": "coverage",
    "pit": "PIT",
    "skce": "SKCE",
}
_HEADLINE = ("nll", "crps", "brier", "energy_score", "pinball_loss")


@dataclass(frozen=True, eq=False, repr=False)
class Measured(Presentable):
    """Measures of all cases that were seen.

    Attributes
    ----------
    n_samples
        Number of cases.
    estimates
        Results by the name of the measure, as the functions for cases in memory return them. "pit" is a
        `QuantileCalibration`: shares of :func:`wellcal.pit` below 101 levels, or below those of `Quantiles`,
        with their band.
    left_out
        Measures that these predictions do not have, with the reason.
    forbidden
        Those among them that the family has, and these cases forbid: their reasons are shown.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> running = wc.RunningMeasures()
    >>> running.update([1], wc.Bernoulli(np.array([0.7])))
    >>> measured = running.result()
    >>> round(float(measured.estimates["brier"]), 4)
    0.09
    >>> print(measured.left_out["skce"])
    the unbiased estimator needs at least 2 cases, found 1
    """

    n_samples: int
    estimates: dict[str, Estimate]
    left_out: dict[str, str] = field(default_factory=lambda: {})
    forbidden: tuple[str, ...] = ()

    added: ClassVar[Mapping[str, Any]] = {"forbidden": ()}

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        classes = {"coverage": IntervalCoverage, "pit": QuantileCalibration}

        def estimates(plain: Any, name: str) -> dict[str, Estimate]:
            return {
                key: classes.get(key, Estimate).read(value, f"{name}.{key}", kernel=kernel)
                for key, value in mapping(plain, name).items()
            }

        reasons = Schema(dict.fromkeys(MEASURES, text), dict.fromkeys(MEASURES))

        def left_out(plain: Any, name: str) -> dict[str, str]:
            return {key: value for key, value in reasons(plain, name).items() if value is not None}

        return {
            "n_samples": whole(least=1),
            "estimates": estimates,
            "left_out": left_out,
            "forbidden": listed(word(*MEASURES)),
        }

    def _headline(self) -> str:
        known = [self.estimates[name] for name in _HEADLINE if name in self.estimates][:2]
        told = ", ".join(f"{found.name} {float(found):.4g}" for found in known)
        return f"{how_many(self.n_samples)}{': ' if told else ''}{told}."

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        for found in self.estimates.values():
            if isinstance(found, IntervalCoverage):
                shares = zip(found.levels, found.coverage, found.expected, strict=True)
                rows.append(("coverage", ", ".join(_in_interval(*each) for each in shares)))
            elif isinstance(found, QuantileCalibration):
                low, high = found.band()
                outside = int(np.sum((found.frequencies < low) | (found.frequencies > high)))
                band = "all levels are" if not outside else f"{outside} of {len(low)} levels are not"
                rows.append(("PIT", f"{float(found):.4g} from uniform at most; {band} in the 95% band"))
            else:
                rows.append((found.name, f"{estimate_text(found)}  ({found.estimator})"))
        reasons = dict.fromkeys(self.left_out[name] for name in self.forbidden if name in self.left_out)
        for reason in reasons:
            alike = [_CALLED[name] for name in self.forbidden if self.left_out.get(name) == reason]
            rows.append(("left out", f"{', '.join(alike)}: {reason}"))
        return rows


def _in_interval(level: float, share: float, expected: float) -> str:
    """A share, and that of a calibrated model where it is another than the level: of counts, or few draws."""
    return f"{100 * share:.1f}% in {100 * level:.4g}% intervals{if_calibrated(level, expected)}"


class RunningMeasures:
    """Scores, ECE, coverage, PIT and SKCE of cases that come in parts, in memory that does not grow.

    Each measure is kept as sums over the cases seen. The result is that of the functions for cases in memory
    (:func:`wellcal.nll`, :func:`wellcal.ece`, :func:`wellcal.interval_coverage`, :func:`wellcal.skce`: of up
    to 2,000 cases over all pairs, of more over blocks), up to rounding, however they were cut into parts.

    Parameters
    ----------
    measures
        Names: nll, crps, brier, energy_score, mse, pinball_loss, ece, coverage, pit, skce. None takes those
        that the first predictions have, and `result` says why others are left out.
    kernel, block_size
        For "skce". None takes the default kernel of the first 2,000 predictions, and blocks of 100 cases
        where there are more than that; a size that is given holds for few cases, too. Blocks are cut in the
        order in which cases come, which must not depend on the targets.
    levels
        Of intervals; None as in :func:`wellcal.interval_coverage`.
    n_bins
        Bins of ECE; None for ten.
    rng
        For the PIT of discrete predictions.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> running = wc.RunningMeasures(["nll", "crps"])
    >>> for _ in range(3):
    ...     mu = rng.normal(size=100)
    ...     running.update(rng.normal(mu, 1.0), wc.Normal(mu, np.ones(100)))
    >>> running.result()
    300 cases: NLL 1.351, CRPS 0.5252.
      NLL   1.351 +- 0.037  (mean)
      CRPS  0.5252 +- 0.021  (mean)
    """

    def __init__(
        self,
        measures: Sequence[str] | None = None,
        *,
        kernel: Kernel | None = None,
        block_size: int | None = None,
        levels: Sequence[float] | None = None,
        n_bins: int | None = None,
        rng: int | np.random.Generator | None = None,
    ) -> None:
        if isinstance(measures, str):
            raise TypeError(f"measures must be a list of names, found the text {measures!r}")
        names = MEASURES if measures is None else tuple(measures)
        for name in names:
            one_of(name, "measure", MEASURES)
        if not names:
            raise ValueError("measures is an empty list: give at least one name, or None for all")
        self._chosen = measures is not None
        self._rng = as_generator(rng)
        others: dict[str, Accumulator] = {
            "ece": RunningECE(n_bins),
            "coverage": RunningCoverage(levels if levels is None else tuple(levels)),
            "pit": RunningPIT(self._rng),
            "skce": RunningSKCE(kernel, block_size),
        }
        self._running: dict[str, Accumulator] = {
            name: RunningMean(name) if name in SCORES else others[name] for name in dict.fromkeys(names)
        }
        self._left_out: dict[str, str] = {}
        self._without_weights: list[str] = []  # that the family has, and weights forbid
        self._ties: Ties | None = None
        self.n_samples = 0

    def update(self, y: object, pred: object, *, weights: object = None) -> None:
        """Take in some cases. After an error nothing has changed.

        Parameters
        ----------
        y, pred
            Targets and predictions, as for :func:`wellcal.nll`.
        weights
            How much each case counts, for scores only; for all cases, or for none.
        """
        checked, predictions = check_inputs(y, pred)
        targets, batch = np.asarray(to_numpy(predictions.align(y))), in_numpy(predictions)
        w = None if weights is None else _checked_weights(per_case(weights, "weights", y, pred), len(batch))
        before, before_these = self._rng.bit_generator.state, self._running
        try:
            # Whether outcomes fall on quantiles too often is known when all were seen.
            with counted_only():
                grown, reasons = self._grown(targets, batch, w)
                ties = predictions.check_judged(checked, self._ties) if _judged(grown) else None
        except BaseException:
            self._rng.bit_generator.state = before
            raise
        self._running = grown
        self._left_out.update(reasons)
        if w is not None:
            left = {name: unweighted for name, unweighted in before_these.items() if name in reasons}
            self._without_weights += [name for name in left if _are_for(left[name], targets, batch)]
        self._ties = ties
        self.n_samples += len(batch)

    def _grown(
        self, targets: NDArray, batch: Any, weights: NDArray | None
    ) -> tuple[dict[str, Accumulator], dict[str, str]]:
        """All measures with some cases more; of the first cases, those that these have."""
        grown: dict[str, Accumulator] = {}
        reasons: dict[str, str] = {}
        for name, running in self._running.items():
            try:
                grown[name] = running.updated(targets, batch, weights)
            except (TypeError, ValueError) as error:
                if self.n_samples or self._chosen:
                    raise
                reasons[name] = str(error)
        if not grown:
            raise TypeError(f"pred has none of the measures: {next(iter(reasons.values()))}")
        if not self._chosen and "crps" in grown:
            grown.pop("energy_score", None)  # it is the same for numbers
        return grown, reasons

    def merge(self, other: RunningMeasures) -> None:
        """Take in all that another one has seen, as if it had been seen here."""
        if not isinstance(other, RunningMeasures):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"other must be a RunningMeasures, found {type(other).__name__}")
        if not other.n_samples:
            return
        if self.n_samples and set(self._running) != set(other._running):
            raise ValueError(
                f"other has the measures {', '.join(other._running)}, and this one {', '.join(self._running)}"
            )
        names = list(other._running)
        seen = [ties for ties in (self._ties, other._ties) if ties is not None]
        ties = seen[0].merged(seen[1]) if len(seen) == 2 else (*seen, None)[0]
        with counted_only():
            self._running = {name: self._running[name].merged(other._running[name]) for name in names}
        self._ties = ties
        self._left_out.update(other._left_out)
        self._without_weights = list(dict.fromkeys([*self._without_weights, *other._without_weights]))
        self.n_samples += other.n_samples

    def result(self) -> Measured:
        """The measures of all cases that were seen."""
        if not self.n_samples:
            raise ValueError("no case was seen yet: call update before result")
        found: dict[str, Estimate] = {}
        forbidden: dict[str, str] = {}
        for name, running in self._running.items():
            try:
                if self._ties is not None and _judged([name]):
                    self._ties.refuse(located=self._chosen)  # reasons are told where nobody knows rows
                with counted_only():
                    found[name] = _defined(name, running.result())
            except ValueError as error:
                if self._chosen:
                    raise
                forbidden[name] = str(error)
        told = (*self._without_weights, *forbidden)
        return Measured(self.n_samples, found, self._left_out | forbidden, told)


def _are_for(running: Accumulator, targets: NDArray, batch: Any) -> bool:
    """Whether a measure is for such predictions, as the first of them says, without weights."""
    try:
        running.updated(targets[:1], batch[:1], None)
    except (TypeError, ValueError):
        return False
    return True


def _judged(names: Iterable[str]) -> bool:
    """Whether some measures tell of calibration; scores take outcomes that fall on quantiles as they are."""
    return any(name not in SCORES for name in names)


def _defined(name: str, found: Estimate) -> Estimate:
    """An estimate as it is; of means that are not defined the squared errors say nothing."""
    if name == "mse" and math.isnan(float(found)):
        raise ValueError(
            "mse needs predictions with a mean, and some have none, as Student's t with df of at most 1"
        )
    return found


def _checked_weights(weights: object, n: int) -> NDArray:
    """Weights as they are, since those of different parts are compared; a part may have none above zero."""
    found = np.asarray(to_numpy(plain_array(weights, "weights")))
    if found.ndim != 1 or len(found) != n or np.any(found != 0):
        check_weights(weights, n, None)
    return found.astype(np.float64)
