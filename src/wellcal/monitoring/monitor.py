"""Monitoring: evidence against calibration that may be looked at after every case."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from scipy import special

from wellcal._arrays.checks import probability, whole_number
from wellcal._arrays.files import write_whole
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.resampling.nulls import draw_targets, why_not_resampled
from wellcal.hypotests.setup import numpy_batch, pool_draws
from wellcal.kernels.base import Kernel
from wellcal.kernels.plain import kernel_from_dict, kernel_to_dict
from wellcal.monitoring.bets import ETAS, log_bets, past_witness
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import as_predictions
from wellcal.predictions.base import as_generator
from wellcal.predictions.batches import concatenate
from wellcal.predictions.inputs import check_inputs
from wellcal.predictions.plain import (
    array_from_dict,
    array_to_dict,
    predictions_from_dict,
    predictions_to_dict,
)
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import check_pair_kernel

MEMORY = 1000
"""Past cases that the witness is made of at most."""

_FORMAT = "wellcal monitor 1"
_ELEMENTS = 2_000_000  # kernel values that are held at a time
_TOGETHER = 64  # cases that are handled at a time, at most


@dataclass(frozen=True)
class MonitorStatus:
    """Where a monitor stands.

    Attributes
    ----------
    n_cases
        Cases seen.
    e_value, log_e_value
        Evidence against calibration now, and its natural logarithm.
    pvalue
        Anytime-valid p-value, ``1 / largest e-value so far``, at most 1.
    alarm
        Whether the e-value has ever reached ``1 / alpha``.
    alarm_at
        Number of cases seen when it first did, or None.
    """

    n_cases: int
    e_value: float
    log_e_value: float
    pvalue: float
    alarm: bool
    alarm_at: int | None


@dataclass(frozen=True)
class _State:
    """All that changes with a case."""

    n_cases: int = 0
    predictions: Predictions | None = None
    targets: NDArray | None = None
    kernel: Kernel | None = None
    logs: NDArray = field(default_factory=lambda: np.zeros(len(ETAS)))
    largest: float = 0.0
    alarm_at: int | None = None
    history: tuple[float, ...] = ()


class Monitor:
    r"""Watch whether predictions stay calibrated, case by case, for as long as one likes.

    Each new case is a bet against the model: the witness of the past cases,

    .. math:: u_r = \frac{1}{|\text{past}|} \sum_{i} k_P(P_i, P_t) \big(k_Y(y_i, y_{t,r})
              - \mathrm{E}\, k_Y(Z_i, y_{t,r})\big),

    is looked at for the target :math:`y_{t,0} = y_t` and for R draws :math:`y_{t,1}, \dots, y_{t,R}` from
    its prediction, and standardised over the R + 1. With

    .. math:: e_t(\eta) = \frac{(R + 1) \exp(\eta u_0)}{\sum_{r=0}^R \exp(\eta u_r)}

    the product over cases, averaged over :math:`\eta \in \{0.1, 0.2, 0.4, 0.8\}`, is the e-value. If every
    target is drawn from its prediction, given all that was known before, the probability that it *ever*
    reaches :math:`1 / \alpha` is at most :math:`\alpha` (Ville's inequality).

    Parameters
    ----------
    kernel
        Kernel on pairs of prediction and target. None chooses one for the family, with scales from
        `reference`, or from the first `warmup` predictions.
    alpha
        Probability of a false alarm, ever.
    reference
        Predictions to choose the kernel from, such as those of a test set.
    warmup
        Cases without a bet while the kernel is not chosen yet; they are the first past cases. Has no
        effect where `kernel` or `reference` is given.
    draws
        Number R of draws for each case. Predictions that are draws (``Samples(kind="draws")``) are
        compared with their own draws instead.
    memory
        Past cases that are kept for the witness at most: always the most recent ones.
    history
        e-values that are kept at most: always the most recent ones.
    rng
        Seed or generator.
    expectations
        As in :func:`wellcal.skce`; None takes a numerical rule of fixed size where no closed form is
        known.

    Notes
    -----
    The hypothesis is that each target, *given the past and its prediction*, is drawn from the prediction.
    That is stronger than calibration, and what forecasts should satisfy that are made one after another,
    autoregressive ones included. It does not hold where horizons overlap: if the target of a case is not
    yet known when the next prediction is made, monitor every h-th case of horizon h on its own.

    The kernel must not be chosen from targets. Cases come in the order of time; a batch is the same as its
    cases one by one, to rounding (to the error of numerical expectations where no closed form is known).
    The family, and what the predictions share such as their classes, is that of the first update. Memory
    is bounded, and so is the cost of a case: O(memory * draws) kernel values.

    A model that drifts after a long time without fault has to win back what was lost in vain bets; a monitor
    that is started anew, say every year at ``alpha`` / number of years, does not.

    There are no weights: the e-value is a product over cases, of one bet on every case. Leave out cases that
    do not belong to what is monitored before their targets are known.

    References
    ----------
    Shafer, Shen, Vereshchagin, Vovk (2011), "Test martingales, Bayes factors and p-values"; Widmann,
    Lindsten, Zachariah (2021).

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(rng=1)
    >>> mu = rng.normal(size=300)
    >>> monitor.update(rng.normal(mu, 1.0), wc.Normal(mu, np.ones(300))).alarm
    False
    >>> drifted = Monitor(rng=1)
    >>> drifted.update(rng.normal(mu + 0.8, 1.0), wc.Normal(mu, np.ones(300))).alarm
    True
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        alpha: float = 0.05,
        reference: object = None,
        warmup: int = 20,
        draws: int = 39,
        memory: int = MEMORY,
        history: int = 10_000,
        rng: int | np.random.Generator | None = None,
        expectations: str | Lowering | None = None,
    ) -> None:
        if kernel is not None and reference is not None:
            raise ValueError("give either kernel or reference, from which one would be chosen")
        self.alpha = probability(alpha, "alpha")
        self.warmup = whole_number(warmup, "warmup", least=2)
        self.draws = whole_number(draws, "draws", least=1)
        self.memory = whole_number(memory, "memory", least=1)
        self.history_size = whole_number(history, "history", least=0)
        if self.warmup > self.memory:
            raise ValueError(f"warmup must be at most memory, {self.memory}, found {self.warmup}")
        self.expectations: str | Lowering = Lowering(nodes=64) if expectations is None else expectations
        self._rng = as_generator(rng)
        chosen = None if kernel is None else check_pair_kernel(kernel)
        if reference is not None:
            chosen = default_kernel(numpy_batch(as_predictions(reference)), expectations=self.expectations)
        self._state = _State(kernel=chosen)

    # -- where it stands ---------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, or None while it is not chosen yet."""
        return self._state.kernel

    @property
    def n_cases(self) -> int:
        """Cases seen."""
        return self._state.n_cases

    @property
    def e_value(self) -> float:
        """Evidence against calibration now: infinite where it is beyond the largest number."""
        return _exp(self.log_e_value)

    @property
    def log_e_value(self) -> float:
        """Its natural logarithm."""
        return _log_mean(self._state.logs)

    @property
    def alarm(self) -> bool:
        """Whether the e-value has ever reached ``1 / alpha``."""
        return self._state.alarm_at is not None

    @property
    def history(self) -> NDArray:
        """e-value after each of the most recent cases."""
        return np.exp(np.minimum(np.array(self._state.history), 709.0))

    @property
    def status(self) -> MonitorStatus:
        """Where it stands."""
        state = self._state
        return MonitorStatus(
            n_cases=state.n_cases,
            e_value=self.e_value,
            log_e_value=self.log_e_value,
            pvalue=min(1.0, _exp(-state.largest)),
            alarm=self.alarm,
            alarm_at=state.alarm_at,
        )

    def __repr__(self) -> str:
        state = self._state
        found = f"alarm after {state.alarm_at:,} cases" if self.alarm else "no alarm"
        text = (
            f"Monitor: {found}; e-value {self.e_value:.3g} after {state.n_cases:,} cases "
            f"(alarm at {1.0 / self.alpha:g})"
        )
        if state.kernel is not None:
            return f"{text}\n  kernel: {state.kernel!r}"
        return f"{text}\n  kernel: chosen from the first {self.warmup} predictions"

    # -- new cases ---------------------------------------------------------------------------

    def update(self, y: object, pred: object) -> MonitorStatus:
        """Take in new cases, in the order of time: one, or a batch.

        Parameters
        ----------
        y
            Targets of the new cases.
        pred
            Their predictions, of the family of earlier ones.

        Returns
        -------
        MonitorStatus
            Where the monitor stands then. After an error it stands where it stood before.
        """
        checked, given = check_inputs(y, pred)
        targets, batch = to_numpy(checked), numpy_batch(given)
        reason = why_not_resampled(batch)
        if reason is not None:
            raise TypeError(f"a monitor draws from the predictions: {reason.split(';')[0]}")
        candidates: NDArray | None = None
        if isinstance(batch, Samples) and batch.kind == "draws":
            batch = pool_draws(targets, batch)
            candidates = np.swapaxes(np.roll(np.asarray(batch.values), 1, axis=1), 0, 1)  # the target first
        self._check_family(batch)
        before = self._rng.bit_generator.state
        try:
            state, done, n = self._state, 0, len(batch)
            while done < n:
                step = min(n - done, self._step(state, batch))
                part = slice(done, done + step)
                options = None if candidates is None else candidates[:, part]
                state = self._take(state, batch[part], targets[part], options)
                done += step
        except BaseException:
            self._rng.bit_generator.state = before
            raise
        self._state = state
        return self.status

    def _check_family(self, batch: Predictions) -> None:
        earlier = self._state.predictions
        if earlier is not None:
            concatenate([earlier[:1], batch[:1]], ["earlier cases", "pred"], "predictions of a monitor")

    def _step(self, state: _State, batch: Predictions) -> int:
        """Cases that are handled together: as many as memory allows, none beyond the end of the warmup."""
        if state.kernel is None:
            return self.warmup - state.n_cases
        past = 0 if state.predictions is None else len(state.predictions)
        atoms = int(batch.values.shape[1]) if isinstance(batch, Samples) else 1
        return max(1, min(_TOGETHER, _ELEMENTS // ((past + _TOGETHER) * (self.draws + 1) * atoms)))

    def _take(
        self, state: _State, batch: Predictions, targets: NDArray, candidates: NDArray | None
    ) -> _State:
        """The state after some cases."""
        m = len(batch)
        if state.predictions is None or state.targets is None:
            predictions, together = batch, targets
        else:
            names = ["earlier cases", "pred"]
            predictions = concatenate([state.predictions, batch], names, "predictions of a monitor")
            together = np.concatenate([state.targets, targets])
        kernel = state.kernel
        if kernel is None:
            increments = np.zeros((m, len(ETAS)))
            if state.n_cases + m >= self.warmup:
                kernel = default_kernel(predictions, expectations=self.expectations)
        else:
            if candidates is None:
                drawn = [draw_targets(batch[t], self._rng, self.draws, targets)[:, 0] for t in range(m)]
                candidates = np.concatenate([targets[None], np.stack(drawn, axis=1)])
            u = past_witness(
                kernel, predictions, together, candidates, memory=self.memory, expectations=self.expectations
            )
            increments = log_bets(u)
        # Added one after the other: the same sums for a batch as for single cases.
        paths = np.cumsum(np.concatenate([state.logs[None], increments]), axis=0)[1:]
        values = special.logsumexp(paths, axis=1) - np.log(len(ETAS))
        crossed = np.flatnonzero(values >= -np.log(self.alpha) - 1e-12)
        alarm_at = state.alarm_at
        if alarm_at is None and len(crossed):
            alarm_at = state.n_cases + int(crossed[0]) + 1
        keep = slice(max(0, len(together) - self.memory), None)
        history = (*state.history, *values.tolist())
        return _State(
            n_cases=state.n_cases + m,
            predictions=predictions[keep],
            targets=together[keep],
            kernel=kernel,
            logs=paths[-1],
            largest=max(state.largest, float(values.max())),
            alarm_at=alarm_at,
            history=history[len(history) - self.history_size :]
            if len(history) > self.history_size
            else history,
        )

    # -- to keep and to resume ---------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON: `from_dict` goes on exactly where this one is."""
        state = self._state
        options = self.expectations
        return {
            "format": _FORMAT,
            "alpha": self.alpha,
            "warmup": self.warmup,
            "draws": self.draws,
            "memory": self.memory,
            "history_size": self.history_size,
            "expectations": vars(options) if isinstance(options, Lowering) else options,
            "kernel": None if state.kernel is None else kernel_to_dict(state.kernel),
            "kernel_text": None if state.kernel is None else repr(state.kernel),
            "n_cases": state.n_cases,
            "predictions": None if state.predictions is None else predictions_to_dict(state.predictions),
            "targets": None if state.targets is None else array_to_dict(state.targets),
            "logs": state.logs.tolist(),
            "largest": state.largest,
            "alarm_at": state.alarm_at,
            "history": list(state.history),
            "generator": _generator_to_dict(self._rng),
        }

    @classmethod
    def from_dict(cls, plain: dict[str, Any], *, kernel: Kernel | None = None) -> Monitor:
        """The monitor that `to_dict` described.

        Parameters
        ----------
        plain
            What `to_dict` returned.
        kernel
            Only for a kernel that holds a function, which plain values cannot: the same kernel again.
        """
        if plain.get("format") != _FORMAT:
            raise ValueError(f"this is no state of a monitor: format is {plain.get('format')!r}")
        options = plain["expectations"]
        monitor = cls(
            alpha=plain["alpha"],
            warmup=plain["warmup"],
            draws=plain["draws"],
            memory=plain["memory"],
            history=plain["history_size"],
            rng=_generator_from_dict(plain["generator"]),
            expectations=Lowering(**options) if isinstance(options, dict) else options,
        )
        monitor._state = _State(
            n_cases=plain["n_cases"],
            predictions=None if plain["predictions"] is None else predictions_from_dict(plain["predictions"]),
            targets=None if plain["targets"] is None else array_from_dict(plain["targets"]),
            kernel=_restored_kernel(plain, kernel),
            logs=np.array(plain["logs"]),
            largest=plain["largest"],
            alarm_at=plain["alarm_at"],
            history=tuple(plain["history"]),
        )
        return monitor

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file; whoever reads it sees the old state or the new one."""
        write_whole(path, json.dumps(self.to_dict(), allow_nan=False))

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> Monitor:
        """The monitor whose state `save` wrote; `kernel` as in `from_dict`."""
        try:
            plain = json.loads(Path(path).read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is no state of a monitor: {error}") from error
        if not isinstance(plain, dict):
            raise ValueError(f"{path} is no state of a monitor")
        return cls.from_dict(cast("dict[str, Any]", plain), kernel=kernel)


# -- numbers ---------------------------------------------------------------------------------


def _log_mean(logs: NDArray) -> float:
    return float(special.logsumexp(logs) - np.log(len(logs)))


def _exp(value: float) -> float:
    return float(np.exp(value)) if value < 709.0 else float("inf")


# -- plain values ----------------------------------------------------------------------------


def _restored_kernel(plain: dict[str, Any], given: Kernel | None) -> Kernel | None:
    if plain["kernel"] is None:
        if given is not None:
            raise ValueError("kernel was given, but the monitor has not chosen one yet; start a new monitor")
        return None
    restored = kernel_from_dict(plain["kernel"])
    if restored is None and given is None:
        raise ValueError(
            f"the kernel {plain['kernel_text']} holds a function, which a file cannot; give the kernel again "
            "as kernel="
        )
    if given is not None and repr(given) != plain["kernel_text"]:
        raise ValueError(f"kernel must be the one the monitor has, {plain['kernel_text']}, found {given!r}")
    return given if restored is None else restored


def _generator_to_dict(rng: np.random.Generator) -> dict[str, Any]:
    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: plain(item) for name, item in value.items()}
        return array_to_dict(value) if isinstance(value, np.ndarray) else value

    return plain(dict(rng.bit_generator.state))


def _generator_from_dict(given: dict[str, Any]) -> np.random.Generator:
    def restore(value: Any) -> Any:
        if isinstance(value, dict):
            return array_from_dict(value) if "dtype" in value else {n: restore(v) for n, v in value.items()}
        return value

    state = restore(given)
    bits: Any = getattr(np.random, state["bit_generator"])()
    bits.state = state
    return np.random.Generator(bits)
