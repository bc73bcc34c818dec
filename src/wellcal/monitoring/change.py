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
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.findings.families import findings_in
from wellcal.hypotests.findings.finding import Finding, together
from wellcal.hypotests.resampling.targets import users_form
from wellcal.kernels.base import Kernel
from wellcal.measures.bent_units import units_of
from wellcal.measures.estimate import estimate_text
from wellcal.measures.presentation import Presentable, Row, within
from wellcal.measures.score_units import Units
from wellcal.monitoring.evidence import LEVEL
from wellcal.monitoring.scores import CENTRE, CLASS, LOG_PROBABILITY, SPREAD, Scores, normal_scores
from wellcal.monitoring.state import Onset
from wellcal.monitoring.status import since
from wellcal.predictions import Predictions, Quantiles, Samples
from wellcal.witnesses import Witness, witness

_FEWEST = 10  # cases from which the size of a change is told

WORDS = {
    CENTRE: "the side of their predictions that targets lie on",
    SPREAD: "how far targets lie from the middle of their predictions",
    LOG_PROBABILITY: "how likely targets are",
    "witness": "errors of earlier cases with similar predictions",
}
"""What bets are about. Those on squares win where spreads are wrong, and where targets are far off."""


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
        The score that won most when it was bet on: "witness", "centre", "spread" (the square of "centre",
        which large shifts change, too), "log probability", or a class. It says how the change was seen;
        `findings` say what it is.
    shift, shift_interval
        How much too high targets are, in predicted standard deviations (interquartile ranges where a family
        has no finite variance), with an interval of level 0.95. None for targets without an order, and for
        quantiles.
    spread, spread_interval
        How far targets spread around their predictions, relative to what was predicted, likewise.
    findings
        What kind of error it is, the clearest first: sentences with numbers and intervals, as those of
        :func:`calibration_test` are.
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
    >>> print(change.verdict)
    Miscalibrated since about case 1 (1 to 7): targets are 1.1 standard deviations too high (0.9 to 1.3).
    """

    onset: int
    onset_interval: tuple[int, int]
    n_samples: int
    topic: str
    shift: float | None
    shift_interval: tuple[float, float] | None
    spread: float | None
    spread_interval: tuple[float, float] | None
    findings: tuple[Finding, ...]
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
            "findings": listed(within(Finding, kernel)),
            "witness": optional(within(Witness, kernel)),
        }

    @property
    def verdict(self) -> str:
        """What has changed, in one sentence."""
        found = f"Miscalibrated {since(self.onset, self.onset_interval)}"
        return f"{found}: {together(self.findings)}." if self.findings else f"{found}."

    def _headline(self) -> str:
        return self.verdict

    def _points(self) -> list[str]:
        groups = () if self.witness is None else self.witness.groups
        said = [finding.sentence for finding in self.findings] if len(self.findings) > 1 else []
        return [*said, *(group.statement for group in groups)]

    def _rows(self) -> list[Row]:
        rows = [("cases", f"{self.n_samples:,} since then"), ("bets", f"on {in_words(self.topic)}")]
        if self.witness is not None:
            rows.append(("SKCE", f"{estimate_text(self.witness.estimate)} since then"))
        return rows


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
    said: tuple[Finding, ...] = ()
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
        said = findings_in(y, pred, _holds_targets(pred, y))
    return MonitorChange(
        onset=onset.case,
        onset_interval=(onset.first, onset.last),
        n_samples=kept,
        topic=_named(topic, pred),
        findings=said,
        witness=found,
        **_sizes(_residuals(y, pred), units_of(pred)),
    )


def in_words(topic: str) -> str:
    """What bets were about, as a person would say it.

    Examples
    --------
    >>> in_words("spread"), in_words("class 'cat'")
    ('how far targets lie from the middle of their predictions', "class 'cat'")
    """
    return WORDS.get(topic, topic)


def _named(topic: str, predictions: Predictions) -> str:
    """A class by its label, as people know it."""
    if not topic.startswith(CLASS):
        return topic
    labelled: Any = predictions
    return f"{CLASS}{labelled.labels().tolist()[int(topic.removeprefix(CLASS))]!r}"


def _sizes(z: NDArray | None, units: Units) -> dict[str, Any]:
    """Shift and spread from residuals or normal scores, with intervals; None where there are too few."""
    if z is None or len(z) < _FEWEST or not np.isfinite(z).all():
        return dict.fromkeys(["shift", "shift_interval", "spread", "spread_interval"])
    n, mean = len(z), float(np.mean(z))
    wide = float(special.ndtri(0.5 * (1.0 + LEVEL)))
    second = float(np.mean((z - mean) ** 2))
    error = wide * np.sqrt(second / n)
    # log of the spread by the delta method: its variance has the fourth moment in it.
    fourth = float(np.mean((z - mean) ** 4)) / second**2 if second > 0 else 1.0
    factor = float(np.exp(wide * np.sqrt(max(fourth - 1.0, 0.0) / n) / 2.0))
    spread = float(np.sqrt(second))

    def size(of_scores: float) -> float:
        return float(np.exp(units.log_spread(np.log(of_scores)))) if of_scores > 0.0 else 0.0

    return {
        "shift": units.shift(mean),
        "shift_interval": (units.shift(mean - error), units.shift(mean + error)),
        "spread": size(spread),
        "spread_interval": (size(spread / factor), size(spread * factor)),
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


def _holds_targets(predictions: Predictions, targets: NDArray) -> bool:
    """Whether predictions are draws that were pooled with their targets: these come last."""
    if not isinstance(predictions, Samples) or predictions.holds_objects:
        return False
    return bool(np.array_equal(np.asarray(predictions.values)[:, -1], targets))
