"""Monitoring: evidence against calibration that may be looked at after every case."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from scipy import special

from wellcal._arrays.checks import probability, whole_number
from wellcal._arrays.chunks import check_size, rows_within
from wellcal._arrays.deprecation import renamed_attribute
from wellcal._arrays.equality import ByState
from wellcal._arrays.files import InUseError, locked, write_whole
from wellcal._arrays.namespaces import NDArray, to_numpy
from wellcal._arrays.ownership import own_copy
from wellcal._arrays.schema import parse_json, reading
from wellcal._arrays.seeds import as_generator
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.resampling.targets import draw_targets, why_not_resampled
from wellcal.hypotests.setup import numpy_batch, pool_draws
from wellcal.hypotests.tails import SMALLEST
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import text_rows
from wellcal.monitoring.bets import ETAS, log_bets, past_witness
from wellcal.monitoring.state import FORMAT, State, generator_to_dict, read_state
from wellcal.monitoring.status import MonitorStatus
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import concatenate
from wellcal.predictions.spaces import check_one_space
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import check_pair_kernel, outline

MEMORY = 1000
"""Past cases that the witness is made of at most."""

_WHAT = "the state of a monitor"
_WAIT = 10.0  # seconds for another process that saves; it takes milliseconds
_TOGETHER = 64  # cases that are handled at a time, at most


class Monitor(ByState):
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
    engine
        Name of an engine, or an engine, which evaluates kernels between cases; it is not saved.

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

    Where a model drifts after a long time without fault, the evidence first has to make up for the bets that
    were lost until then; a monitor that is started anew, say every year at ``alpha`` / number of years, does
    not have to.

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
        engine: str | Engine = "auto",
    ) -> None:
        if kernel is not None and reference is not None:
            raise ValueError("give either kernel or reference, from which one would be chosen")
        self.alpha = probability(alpha, "alpha")
        self.engine = engine
        self.warmup = whole_number(warmup, "warmup", least=2)
        self.draws = whole_number(draws, "draws", least=1)
        self.memory = whole_number(memory, "memory", least=1)
        check_size((self.memory + 1) * (self.draws + 1), "draws", self.draws)
        self.history_size = whole_number(history, "history", least=0)
        if self.warmup > self.memory:
            raise ValueError(f"warmup must be at most memory, {self.memory}, found {self.warmup}")
        self.expectations: str | Lowering = Lowering(nodes=64) if expectations is None else expectations
        self._rng = as_generator(rng)
        chosen = None if kernel is None else check_pair_kernel(kernel)
        self._reference: Predictions | None = None
        if reference is not None:
            known = numpy_batch(converted_argument(reference, "reference"))
            self._reference = known[:1]
            chosen = default_kernel(known, expectations=self.expectations)
        self._state = State(kernel=chosen)
        self._files: dict[str, str] = {}  # what files held when this monitor last read or wrote them

    # -- where it stands ---------------------------------------------------------------------

    @property
    def kernel(self) -> Kernel | None:
        """The kernel, or None while it is not chosen yet."""
        return self._state.kernel

    @property
    def n_samples(self) -> int:
        """Cases seen."""
        return self._state.n_samples

    n_cases = renamed_attribute("n_cases", "n_samples")

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
            n_samples=state.n_samples,
            e_value=self.e_value,
            log_e_value=self.log_e_value,
            pvalue=min(1.0, max(_exp(-state.largest), SMALLEST)),
            alarm=self.alarm,
            alarm_at=state.alarm_at,
        )

    def __repr__(self) -> str:
        chosen = f"chosen from the first {self.warmup} predictions"
        rows = [
            ("alarm", f"at an e-value of {1.0 / self.alpha:g}"),
            ("kernel", chosen if self.kernel is None else repr(self.kernel)),
        ]
        return "\n".join([repr(self.status), *text_rows(rows)])

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
        targets, batch = own_copy(to_numpy(checked)), numpy_batch(given).with_index(None)
        reason = why_not_resampled(batch)
        if reason is not None:
            raise TypeError(f"a monitor draws from the predictions: {reason}")
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
        if self._reference is not None:
            check_one_space([self._reference, batch], ["reference", "pred"])
        earlier = self._state.predictions
        if earlier is not None:
            concatenate([earlier[:1], batch[:1]], ["earlier cases", "pred"], "predictions of a monitor")

    def _step(self, state: State, batch: Predictions) -> int:
        """Cases that are handled together: as many as memory allows, none beyond the end of the warmup."""
        if state.kernel is None:
            return self.warmup - state.n_samples
        past = 0 if state.predictions is None else len(state.predictions)
        atoms = int(batch.values.shape[1]) if isinstance(batch, Samples) else 1
        return min(_TOGETHER, rows_within((past + _TOGETHER) * (self.draws + 1) * atoms))

    def _take(self, state: State, batch: Predictions, targets: NDArray, candidates: NDArray | None) -> State:
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
            if state.n_samples + m >= self.warmup:
                kernel = default_kernel(predictions, expectations=self.expectations)
        else:
            if candidates is None:
                drawn = [draw_targets(batch[t], self._rng, self.draws, targets)[:, 0] for t in range(m)]
                candidates = np.concatenate([targets[None], np.stack(drawn, axis=1)])
            u = past_witness(
                kernel,
                predictions,
                together,
                candidates,
                memory=self.memory,
                engine=choose_engine(self.engine, outline(together, predictions, kernel)),
                expectations=self.expectations,
            )
            increments = log_bets(u)
        # Added one after the other: the same sums for a batch as for single cases.
        paths = np.cumsum(np.concatenate([state.logs[None], increments]), axis=0)[1:]
        values = special.logsumexp(paths, axis=1) - np.log(len(ETAS))
        crossed = np.flatnonzero(values >= -np.log(self.alpha) - 1e-12)
        alarm_at = state.alarm_at
        if alarm_at is None and len(crossed):
            alarm_at = state.n_samples + int(crossed[0]) + 1
        keep = slice(max(0, len(together) - self.memory), None)
        history = (*state.history, *values.tolist())
        return State(
            n_samples=state.n_samples + m,
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

    # -- to compare, to keep and to resume -----------------------------------------------------

    def compared(self) -> dict[str, Any]:
        """What decides whether two monitors are equal: all that is stored of them."""
        return {**self.to_dict(), "kernel": self.kernel}

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, ready for JSON: `from_dict` continues exactly from here."""
        options = self.expectations
        return {
            "format": FORMAT,
            "alpha": self.alpha,
            "warmup": self.warmup,
            "draws": self.draws,
            "memory": self.memory,
            "history_size": self.history_size,
            "expectations": vars(options) if isinstance(options, Lowering) else options,
            **self._state.to_dict(),
            "generator": generator_to_dict(self._rng),
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
        with reading(_WHAT):
            return cls._read(plain, kernel)

    @classmethod
    def _read(cls, plain: Any, kernel: Kernel | None) -> Monitor:
        found = read_state(plain)
        names = ("alpha", "warmup", "memory", "history_size")
        monitor = cls(
            alpha=found["alpha"],
            warmup=found["warmup"],
            draws=found["draws"],
            memory=found["memory"],
            history=found["history_size"],
            rng=found["generator"],
            expectations=found["expectations"],
        )
        monitor._state = State.of(found, kernel)
        monitor._state.check(**{name: found[name] for name in names})
        return monitor

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the state to a JSON file; whoever reads it sees the old state or the new one.

        Two processes that monitor the same cases must not share a file: each would undo what the other has
        seen. A file that this monitor has loaded or saved before, and that somebody else has changed since,
        is left as it is, with an error.
        """
        content = json.dumps(self.to_dict(), allow_nan=False).encode()
        where = os.path.realpath(path)
        with locked(path, wait=_WAIT):
            expected = self._files.get(where)
            if expected is not None and _digest(where) not in (expected, None):
                raise InUseError(
                    f"{os.fspath(path)} was changed by another process since this monitor last read or wrote "
                    "it: load it again, or save to another file"
                )
            write_whole(path, content)
            self._files[where] = hashlib.sha256(content).hexdigest()

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, kernel: Kernel | None = None) -> Monitor:
        """The monitor whose state `save` wrote; `kernel` as in `from_dict`."""
        content = Path(path).read_bytes()
        with reading(_WHAT, os.fspath(path)):
            monitor = cls._read(parse_json(content), kernel)
        monitor._files[os.path.realpath(path)] = hashlib.sha256(content).hexdigest()
        return monitor


def _digest(path: str) -> str | None:
    """What a file holds, in short; None where it is gone."""
    try:
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except FileNotFoundError:
        return None


def _log_mean(logs: NDArray) -> float:
    """Logarithm of the mean of exponentials."""
    return float(special.logsumexp(logs) - np.log(len(logs)))


def _exp(value: float) -> float:
    """Exponential, infinite where it is beyond the largest number."""
    return float(np.exp(value)) if value < 709.0 else float("inf")
