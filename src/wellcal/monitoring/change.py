"""What has changed: since when, how much, and where."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.schema import Check, listed, number, optional, text, whole
from wellcal.engines import Engine
from wellcal.expectations.decompose import targets_are_indices
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.resampling.targets import users_form
from wellcal.kernels.base import Kernel
from wellcal.measures.estimate import estimate_text
from wellcal.measures.presentation import Presentable, Row, within
from wellcal.monitoring.evidence import LEVEL
from wellcal.monitoring.scores import Scores, normal_scores
from wellcal.monitoring.state import Onset
from wellcal.predictions import Predictions, Quantiles
from wellcal.witnesses import Witness, witness

_FEWEST = 10  # cases from which the size of a change is told


@dataclass(frozen=True, eq=False, repr=False)
class MonitorChange(Presentable):
    """A change that a monitor has found.

    Attributes
    ----------
    onset, onset_interval
        The case, counted from 1, at which it began, and the first and last case of an interval of level
        0.95.
    n_samples
        Cases since then that are still known, which all that follows is made of.
    topic
        What the bets that won most were about: "witness", "centre", "spread", "log probability", "class 3".
    shift, shift_interval
        How much too high targets are, in predicted standard deviations, with an interval of level 0.95.
        Of continuous predictions other than normals that is the mean of normal scores. None for targets
        without an order, and for quantiles.
    spread, spread_interval
        How far targets spread around their predictions, relative to what was predicted, likewise.
    findings
        The size of the change in sentences: shift and spread of numbers and of each coordinate of vectors,
        classes that are seen more or less often than predicted, where intervals leave no doubt; and the
        calibration error since the onset.
    witness
        Where, and in which direction, predictions are wrong since the onset, or None where there are too
        few cases. Its `estimate` is the calibration error since then.

    Notes
    -----
    The cases that raised the alarm are among those that are looked at, and the onset was chosen by them:
    soon after an alarm a change looks somewhat larger than it is. Intervals are those of many cases, and
    that of the onset is exact where the bets are likelihood ratios of what has happened.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> y = np.random.default_rng(0).normal(1.0, 1.0, 100)
    >>> monitor = wc.Monitor(rng=0)
    >>> monitor.update(y, wc.Normal(np.zeros(100), np.ones(100))).alarm
    True
    >>> change = monitor.change(rng=0, n_resamples=99)
    >>> change.onset_interval, change.findings[0]
    ((1, 7), 'targets are 1.08 predicted standard deviations too high (0.89 to 1.27)')
    """

    onset: int
    onset_interval: tuple[int, int]
    n_samples: int
    topic: str
    shift: float | None
    shift_interval: tuple[float, float] | None
    spread: float | None
    spread_interval: tuple[float, float] | None
    findings: tuple[str, ...]
    witness: Witness | None

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of it."""
        pair = optional(listed(number(infinite=True, nan=True), length=2))
        return {
            "onset": whole(least=1),
            "onset_interval": listed(whole(least=1), length=2),
            "n_samples": whole(least=1),
            "topic": text,
            "shift": optional(number(infinite=True, nan=True)),
            "shift_interval": pair,
            "spread": optional(number(infinite=True, nan=True)),
            "spread_interval": pair,
            "findings": listed(text),
            "witness": optional(within(Witness, kernel)),
        }

    def _headline(self) -> str:
        first, last = self.onset_interval
        return f"Change since about case {self.onset:,} ({first:,} to {last:,})"

    def _points(self) -> list[str]:
        groups = () if self.witness is None else self.witness.groups
        return [*self.findings, *(group.statement for group in groups)]

    def _rows(self) -> list[Row]:
        return [("bets", f"on {self.topic}"), ("cases", f"{self.n_samples:,} since then")]


def described_change(
    onset: Onset,
    topic: str,
    n_samples: int,
    targets: NDArray,
    predictions: Predictions,
    *,
    kernel: Kernel | None,
    rng: int | np.random.Generator | None,
    n_resamples: int,
    expectations: str | Lowering,
    engine: str | Engine,
) -> MonitorChange:
    """Describe a change from the most recent of `n_samples` cases."""
    kept = min(len(targets), n_samples - onset.case + 1)
    y, pred = targets[-kept:], predictions[len(predictions) - kept :]
    sizes = _sizes(_residuals(y, pred))
    said = [*_sentences(sizes), *_class_sentences(y, pred), *_coordinate_sentences(y, pred)]
    found = None
    if kept >= _FEWEST:
        # Draws were pooled with their targets, and are resampled by exchange as atoms, too.
        options: Any = {
            "rng": rng,
            "n_resamples": n_resamples,
            "expectations": expectations,
            "engine": engine,
        }
        found = witness(users_form(pred, y), pred, kernel=kernel, progress=False, **options)
        said.append(f"the squared calibration error (SKCE) since then is {estimate_text(found.estimate)}")
    return MonitorChange(
        onset=onset.case,
        onset_interval=(onset.first, onset.last),
        n_samples=kept,
        topic=topic,
        findings=tuple(said),
        witness=found,
        **sizes,
    )


def _sizes(z: NDArray | None, level: float = LEVEL) -> dict[str, Any]:
    """Mean and spread of standardised residuals, with intervals; None where there are too few."""
    if z is None or len(z) < _FEWEST or not np.isfinite(z).all():
        return dict.fromkeys(["shift", "shift_interval", "spread", "spread_interval"])
    n, mean = len(z), float(np.mean(z))
    wide = float(special.ndtri(0.5 * (1.0 + level)))
    second = float(np.mean((z - mean) ** 2))
    error = wide * np.sqrt(second / n)
    # log of the spread by the delta method: its variance has the fourth moment in it.
    fourth = float(np.mean((z - mean) ** 4)) / second**2 if second > 0 else 1.0
    factor = float(np.exp(wide * np.sqrt(max(fourth - 1.0, 0.0) / n) / 2.0))
    spread = float(np.sqrt(second))
    return {
        "shift": mean,
        "shift_interval": (mean - error, mean + error),
        "spread": spread,
        "spread_interval": (spread / factor, spread * factor),
    }


def _residuals(targets: NDArray, predictions: Predictions) -> NDArray | None:
    """Normal scores of continuous predictions; of others residuals in predicted standard deviations."""
    if not Scores.of(predictions).ordered or isinstance(predictions, Quantiles):
        return None  # known up to bins, quantiles have no spread
    if predictions.continuous and predictions.supports("cdf"):
        return normal_scores(predictions, targets)
    if not (predictions.supports("mean") and predictions.supports("variance")):
        return None
    values = np.asarray(users_form(predictions, targets), float)
    mean, variance = (np.asarray(to_numpy(x), float) for x in (predictions.mean(), predictions.variance()))
    unsure = variance > 0  # targets that are certain have no standard deviation
    return (values - mean)[unsure] / np.sqrt(variance[unsure])


def _coordinate_sentences(targets: NDArray, predictions: Predictions) -> list[str]:
    """The same for each coordinate of vectors."""
    known = len(predictions.event_shape) == 1 and targets.dtype != object
    if not (known and predictions.supports("mean") and predictions.supports("variance")):
        return []
    mean, variance = (np.asarray(to_numpy(x), float) for x in (predictions.mean(), predictions.variance()))
    d = targets.shape[1]
    out: list[str] = []
    for c in range(d):
        unsure = variance[:, c] > 0
        z = (targets - mean)[unsure, c] / np.sqrt(variance[unsure, c])
        out.extend(_sentences(_sizes(z, 1.0 - (1.0 - LEVEL) / d), f"coordinate {c}", "is", "spreads"))
    return out


def _sentences(
    sizes: dict[str, Any], what: str = "targets", are: str = "are", spreads: str = "spread"
) -> list[str]:
    out: list[str] = []
    if sizes["shift"] is None:
        return out
    (low, high), shift = sizes["shift_interval"], sizes["shift"]
    if low > 0 or high < 0:
        a, b = sorted((abs(low), abs(high)))
        size, side = f"{abs(shift):.2f} predicted standard deviations", "high" if shift > 0 else "low"
        out.append(f"{what} {are} {size} too {side} ({a:.2f} to {b:.2f})")
    (low, high), spread = sizes["spread_interval"], sizes["spread"]
    if low > 1 or high < 1:
        out.append(f"{what} {spreads} {spread:.2f} times as far as predicted ({low:.2f} to {high:.2f})")
    return out


def _class_sentences(targets: NDArray, predictions: Predictions) -> list[str]:
    """Classes that are seen more or less often than predicted."""
    if not targets_are_indices(predictions) or len(targets) < _FEWEST:
        return []
    probs = np.asarray(to_numpy(predictions.class_probs()), float)
    labels: Any = predictions
    names = labels.labels()
    classes = len(names)
    wide = float(special.ndtri(1.0 - 0.5 * (1.0 - LEVEL) / classes))
    out: list[tuple[float, str]] = []
    for c in range(1 if classes == 2 else 0, classes):
        seen, expected = float(np.count_nonzero(targets == c)) / len(targets), float(probs[:, c].mean())
        error = float(np.sqrt(np.sum(probs[:, c] * (1.0 - probs[:, c])))) / len(targets)
        if error > 0 and abs(seen - expected) > wide * error:
            words = f"class {names[c]} is seen in {seen:.0%} of the cases, predicted were {expected:.0%}"
            out.append((abs(seen - expected) / error, words))
    return [words for _, words in sorted(out, reverse=True)][:3]
