"""Monitoring: evidence against calibration that may be looked at after every case."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wellcal._arrays.checks import probability, whole_number
from wellcal._arrays.chunks import check_size, rows_within
from wellcal._arrays.copies import own_copy
from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal._arrays.progress import Listener, Progress, as_progress, reported
from wellcal._arrays.row_errors import retell
from wellcal._arrays.seeds import as_generator
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.setup import numpy_batch, pool_draws
from wellcal.hypotests.tails import SMALLEST
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import text_rows
from wellcal.monitoring.change import MonitorChange, described_change
from wellcal.monitoring.experts import Experts
from wellcal.monitoring.kept import Kept
from wellcal.monitoring.state import STAYS_REFUSED, State, check_run_length, log_threshold
from wellcal.monitoring.status import MonitorStatus
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.adapters import converted_argument
from wellcal.predictions.alignment import as_batch, check_one_order
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import concatenate
from wellcal.predictions.quantile_ties import Ties, counted_only
from wellcal.predictions.target_spaces import check_one_space
from wellcal.problem.defaults import default_kernel
from wellcal.problem.problem import check_pair_kernel, outline
from wellcal.problem.target_resampling import draw_in_turn, why_not_resampled

MEMORY = 1000
"""Past cases that the witness is made of at most."""

_TOGETHER = 256  # cases that are handled at a time, at most
_BETS = 100  # for each candidate of a case, at most about so many


class Monitor(Kept):
    r"""Watch whether predictions stay calibrated, case by case, for as long as one likes.

    Each new case is a bet against the model. A score of the target, and of R draws from its prediction,
    :math:`u_0` and :math:`u_1, \dots, u_R`, makes

    .. math:: e_t(\eta) = \frac{(R + 1) \exp(\eta u_0)}{\sum_{r=0}^R \exp(\eta u_r)}, \qquad
              E_t = \sum_{s \le t} \pi_s \prod_{i = s}^t e_i + \sum_{s > t} \pi_s,

    of which :math:`e_t` has mean one if the target is drawn from its prediction, given all that was known
    before, whatever the score is. :math:`E_t`, the e-value, is what those have who start to bet at any time s
    with a share :math:`\pi_s` of one: the probability that it *ever* reaches :math:`1 / \alpha` is at most
    :math:`\alpha` (Ville's inequality), and a model that drifts after a long time without fault is found
    about as soon as one that is wrong from the beginning. Scores are

    - the witness of the past 50, 200 and `memory` cases, :math:`\sum_{i} k_P(P_i, P_t) \big(k_Y(y_i, u)
      - \mathrm{E}\, k_Y(Z_i, u)\big)` at the target or a draw u;
    - for numbers, counts and ordered classes the place z of the target in its prediction, a normal score,
      and its square; for up to 10 classes without an order each class;
    - the log probability where there is one;

    each with :math:`\eta` 0.1, 0.2, 0.4 and 0.8, and all but the witness in both directions. The e-value is
    the average over them.

    Parameters
    ----------
    kernel
        Kernel on pairs of prediction and target, for the witness. None chooses one for the family, with
        scales from `reference`, or from the first `warmup` predictions.
    alpha
        Probability of a false alarm, ever: 0.05 unless `run_length` is given.
    run_length
        Instead of `alpha`: the mean number of cases until a false alarm, at least. The evidence is then an
        e-detector, with :math:`\pi_s = 1` and nothing held back, and there is an alarm where it reaches
        `run_length`; `restart` begins anew after an alarm. It finds a change as soon after a million cases
        as after a hundred, and false alarms come, rarely, for as long as one goes on.
    reference
        Predictions to choose the kernel from, such as those of a test set.
    warmup
        Cases without a bet on the witness while the kernel is not chosen yet; they are the first past
        cases. Has no effect where `kernel` or `reference` is given.
    draws
        Number R of draws for each case. Predictions that are draws (``Samples(kind="draws")``) are
        compared with their own draws instead.
    memory
        Past cases that are kept for the witness at most: always the most recent ones.
    history
        e-values that are kept at most: always the most recent ones.
    rng
        Seed or generator; None is the default seed, 0. Give monitors seeds of their own where their evidence
        is multiplied.
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
    is bounded, and so is the cost of a case: O(memory) kernel values, at the target and up to 19 draws.

    There are no weights: the e-value is a product over cases, of one bet on every case. Leave out cases that
    do not belong to what is monitored before their targets are known. For the same reason a monitor that had
    to refuse outcomes, since too many fall on their own quantiles (`Quantiles`), refuses all that follow.

    References
    ----------
    Shafer, Shen, Vereshchagin, Vovk (2011), "Test martingales, Bayes factors and p-values"; Shin, Ramdas,
    Rinaldo (2024), "E-detectors: a nonparametric framework for sequential change detection"; Widmann,
    Lindsten, Zachariah (2021).

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> monitor = Monitor(rng=1)
    >>> mu = rng.normal(size=300)
    >>> monitor.update(rng.normal(mu, 1.0), wc.Normal(mu, np.ones(300))).alarm
    False
    >>> status = monitor.update(rng.normal(mu + 0.8, 1.0), wc.Normal(mu, np.ones(300)))
    >>> status.alarm_at, status.onset, status.onset_interval
    (339, 303, (299, 320))
    >>> print(monitor.change(rng=2).findings[0])
    targets are 0.78 standard deviations too high (0.68 to 0.89)
    """

    def __init__(
        self,
        kernel: Kernel | None = None,
        *,
        alpha: float | None = None,
        run_length: float | None = None,
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
        if alpha is not None and run_length is not None:
            raise ValueError(
                "give either alpha, for false alarms ever, or run_length, for how often they come"
            )
        self.run_length = None if run_length is None else check_run_length(run_length, "run_length")
        self.alpha = probability(ALPHA if alpha is None else alpha, "alpha") if run_length is None else None
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

    @property
    def e_value(self) -> float:
        """Evidence against calibration now: infinite where it is beyond the largest number."""
        return _exp(self.log_e_value)

    @property
    def log_e_value(self) -> float:
        """Its natural logarithm."""
        return self._state.log_e_value(detector=self.run_length is not None)

    @property
    def threshold(self) -> float:
        """Evidence at which there is an alarm: ``1 / alpha``, or `run_length`."""
        return _exp(self._log_threshold)

    @property
    def _log_threshold(self) -> float:
        return log_threshold(self.alpha, self.run_length)

    @property
    def alarm(self) -> bool:
        """Whether the evidence has ever reached the threshold, since the start or the last `restart`."""
        return self._state.alarm_at is not None

    @property
    def history(self) -> NDArray:
        """e-value after each of the most recent cases."""
        return np.exp(np.minimum(self._state.history, 709.0))

    @property
    def status(self) -> MonitorStatus:
        """Where it stands."""
        state, value = self._state, self.log_e_value
        onset = state.onset
        status = MonitorStatus(
            n_samples=state.n_samples,
            e_value=_exp(value),
            log_e_value=value,
            pvalue=None if self.alpha is None else min(1.0, max(_exp(-state.largest), SMALLEST)),
            alarm=self.alarm,
            alarm_at=state.alarm_at,
            onset=None if onset is None else onset.case,
            onset_interval=None if onset is None else (onset.first, onset.last),
            refused=state.refused,
            restarted=state.started,
        )
        return status.with_trace(state.history, self._log_threshold)

    def __repr__(self) -> str:
        status, chosen = self.status, f"chosen from the first {self.warmup} predictions"
        rows = [
            *status.standing,
            ("alarm", f"at {self.threshold:,g}"),
            ("kernel", chosen if self.kernel is None else repr(self.kernel)),
        ]
        return "\n".join([status.verdict, *text_rows(rows)])

    # -- new cases ---------------------------------------------------------------------------

    @reported
    def update(
        self, y: object, pred: object, *, progress: bool | Listener | Progress | None = None
    ) -> MonitorStatus:
        """Take in new cases, in the order of time: one, or a batch.

        Parameters
        ----------
        y
            Targets of the new cases, or the target of one: a number, a label, a vector. Where they and the
            predictions have an index, both must have it in the same order.
        pred
            Their predictions, of the family of earlier ones. For one target also what is there of one case: a
            batch of one, ``(mu, sigma)`` as two numbers, a probability, the probabilities of all classes, a
            row of a data frame of them.
        progress
            As in :func:`wellcal.skce`, for batches that take long.

        Returns
        -------
        MonitorStatus
            Where the monitor stands then. After an error it stands where it stood before, but for outcomes
            that fall on their own quantiles: after these it takes no more cases, until `restart`.
        """
        if self._state.refused is not None:
            raise ValueError(self._state.refused)
        y, pred = as_batch(y, pred)
        checked, given = check_inputs(y, pred)
        check_one_order(y, given)
        ties = self._judged(checked, given)
        targets, batch = own_copy(to_numpy(checked)), numpy_batch(given).with_index(None)
        reason = why_not_resampled(batch)
        if reason is not None:
            raise TypeError(f"a monitor draws from the predictions: {reason}")
        candidates: NDArray | None = None
        if isinstance(batch, Samples) and batch.kind == "draws":
            batch = pool_draws(targets, batch)
            candidates = np.swapaxes(np.roll(np.asarray(batch.values), 1, axis=1), 0, 1)  # the target first
        if self._reference is not None:
            check_one_space([self._reference, batch], ["reference", "pred"])
        before = self._rng.bit_generator.state
        try:
            state, done, n, told = self._state, 0, len(batch), as_progress(progress)
            while done < n:
                told("cases", done, n)
                step = min(n - done, self._step(state, batch))
                if step == n:
                    state = self._take(state, batch, targets, candidates)
                else:
                    part = slice(done, done + step)
                    options = None if candidates is None else candidates[:, part]
                    state = self._take(state, batch[part], targets[part], options)
                done += step
            told("cases", n, n)
        except BaseException:
            self._rng.bit_generator.state = before
            raise
        self._state = replace(state, ties=ties)
        return self.status

    def _judged(self, targets: Array, predictions: Predictions) -> Ties | None:
        """Outcomes on quantiles so far, these among them; an error, which is remembered, for too many."""
        earlier = self._state.ties
        with counted_only():
            ties = predictions.check_judged(targets, earlier)
        if ties is not None and ties.worst() is not None:
            self._state = replace(self._state, ties=ties)
            try:
                predictions.check_judged(targets, earlier)  # says in which row
            except ValueError as error:
                retell(error, more=STAYS_REFUSED)
        return ties

    def refuse_as(self, other: Monitor) -> None:
        """Take no more cases, as another monitor that went on from here and had to refuse some.

        For those who keep a monitor only when all cases of a file were taken.

        Parameters
        ----------
        other
            The monitor whose `status.refused` says why.
        """
        self._state = replace(self._state, ties=other._state.ties)

    def _step(self, state: State, batch: Predictions) -> int:
        """Cases that are handled together: as many as memory allows, none beyond the end of the warmup."""
        past = 0 if state.predictions is None else len(state.predictions)
        atoms = int(batch.values.shape[1]) if isinstance(batch, Samples) else 1
        entries = max(past + _TOGETHER, (self.draws + 1) * max(_BETS, atoms))
        room = min(_TOGETHER, rows_within(entries))
        return room if state.kernel is not None else min(room, self.warmup - state.n_samples)

    def _take(self, state: State, batch: Predictions, targets: NDArray, candidates: NDArray | None) -> State:
        """The state after some cases."""
        m = len(batch)
        if state.predictions is None or state.targets is None:
            predictions, together = batch, targets
        else:
            names = ["earlier cases", "pred"]
            predictions = concatenate([state.predictions, batch], names, "predictions of a monitor")
            together = np.concatenate([state.targets, targets])
        experts = Experts.of(batch, self.memory, exchanged=candidates is not None)
        if candidates is None:
            # The same draws for a batch as for single cases.
            drawn = draw_in_turn(batch, self._rng, self.draws, targets)
            candidates = np.concatenate([targets[None], drawn])
        kernel = state.kernel
        engine = (
            None if kernel is None else choose_engine(self.engine, outline(together, predictions, kernel))
        )
        bets = experts.log_bets(
            kernel, predictions, together, candidates, engine=engine, expectations=self.expectations
        )
        if kernel is None and state.n_samples + m >= self.warmup:
            kernel = default_kernel(predictions, expectations=self.expectations)
        keep = slice(max(0, len(together) - self.memory), None)
        if keep.start:
            predictions, together = predictions[keep], together[keep]
        seen = replace(
            state,
            n_samples=state.n_samples + m,
            predictions=predictions,
            targets=together,
            kernel=kernel,
        )
        return seen.betted(
            bets,
            experts.lags,
            log_threshold=self._log_threshold,
            detector=self.run_length is not None,
            history_size=self.history_size,
        )

    def restart(self) -> None:
        """Begin anew with the next case: no evidence, no alarm, nothing refused; past cases are still known.

        With `run_length` that is what to do after an alarm. With `alpha`, each start has a false alarm with
        that probability.
        """
        state = self._state
        self._state = State(
            n_samples=state.n_samples,
            started=state.n_samples,
            predictions=state.predictions,
            targets=state.targets,
            kernel=state.kernel,
        )

    def change(
        self, *, rng: int | np.random.Generator | None = None, n_resamples: int = 999
    ) -> MonitorChange:
        """What has changed: since when, how much, and where, from the cases since the onset.

        Parameters
        ----------
        rng, n_resamples
            As in :func:`wellcal.witness`, which looks for groups of cases that err.

        Returns
        -------
        MonitorChange
            Made from the most recent cases since the onset, at most `memory`.
        """
        state = self._state
        if state.onset is None or state.predictions is None or state.targets is None:
            raise ValueError("there was no alarm: ask for a change where status.alarm is true")
        return described_change(
            state.onset,
            Experts.of(state.predictions, self.memory).topic(state.onset.expert),
            state.n_samples,
            state.targets,
            state.predictions,
            kernel=self.kernel,
            rng=rng,
            n_resamples=n_resamples,
            expectations=self.expectations,
            engine=self.engine,
        )


def _exp(value: float) -> float:
    """Exponential, infinite where it is beyond the largest number."""
    return float(np.exp(value)) if value < 709.0 else float("inf")
