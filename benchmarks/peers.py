"""Measures beside those of other libraries: side by side in one process, from the same arrays."""

from __future__ import annotations

import importlib
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.cases import FloatArray, IntArray
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import Timing, one_thread, take_turns
from wellcal.recalibration import TemperatureScaling

OURS = "wellcal"
WANTED = 1.0
"""CPU time of a peer over ours, at least."""
WANTED_CHECKED = 0.8
"""The same where a peer does the same arithmetic on inputs that it does not look at, and ours are checked."""
BINS = 15

Run = Callable[[], float]


@dataclass(frozen=True)
class Peer:
    """Another library: how it is called, what it needs, and how its number becomes ours."""

    name: str
    modules: tuple[str, ...]
    prepare: Callable[..., Run]
    wanted: float = WANTED
    """Ratio of CPU times."""
    within: float = 1e-9
    """Largest difference of the two numbers."""


@dataclass(frozen=True)
class Contest:
    """A measure, the arrays it is taken of, our call and those of peers."""

    title: str
    ours: Run
    peers: tuple[Peer, ...]


@dataclass(frozen=True)
class Outcome:
    """Ratio of CPU times and difference of numbers of one peer; None where it is absent, and why."""

    contest: str
    peer: str
    ratio: float | None
    ours: float | None
    difference: float | None
    remark: str
    failure: str | None


def peers(settings: Settings) -> Section:
    """One table: measure, peer, CPU times, ratio, difference of numbers."""
    load = environment.load_average()
    found = [outcome for contest in contests(settings) for outcome in held(contest, settings)]
    full = settings.peer_share == 1.0  # of few cases a call costs more than its numbers
    failures = tuple(o.failure for o in found if o.failure is not None and full)
    absent = sorted({o.peer for o in found if o.ratio is None})
    body = "\n".join(
        [
            "Both are given the same arrays and take turns in one process; times are CPU times of the best",
            "of the rounds, libraries kept to one thread. *Ratio* is the time of the peer over ours: above 1",
            "ours is faster. Ours checks its input, and comes with a standard error where there is one; what",
            "a peer does not look at is remarked. *Difference* is that of the two numbers.",
            "",
            shown(found),
            "",
            f"Absent: {', '.join(absent)}." if absent else "Nobody was absent.",
            _verdict(failures, full),
            "",
            environment.describe(load),
        ]
    )
    return Section("peers", "Measures beside their peers", body, failures)


def _verdict(failures: tuple[str, ...], full: bool) -> str:
    if not full:
        return "The ratios that are wanted are for the full sizes."
    return "All ratios are as wanted." if not failures else "Not as wanted: " + "; ".join(failures) + "."


def shown(found: list[Outcome]) -> str:
    """The table of outcomes; who is absent has a row too."""
    rows = [
        (
            o.contest,
            o.peer,
            "" if o.ours is None else f"{1e3 * o.ours:.3g} ms",
            "absent" if o.ratio is None else f"{o.ratio:.2f}",
            "" if o.difference is None else f"{o.difference:.1e}",
            o.remark,
        )
        for o in found
    ]
    return table(("measure", "peer", "ours", "ratio", "difference", "remark"), rows)


def held(contest: Contest, settings: Settings) -> list[Outcome]:
    """What came of a contest, one outcome for each peer."""
    runs: dict[str, Run] = {OURS: contest.ours}
    absent: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for peer in contest.peers:
            try:
                modules = [importlib.import_module(name) for name in peer.modules]
            except ImportError as error:
                absent[peer.name] = f"cannot be imported: {error}"
                continue
            runs[peer.name] = peer.prepare(*modules)
        with one_thread():
            timings = take_turns(runs, budget=settings.budget, rounds=settings.rounds)
    return [_outcome(contest, peer, timings, absent) for peer in contest.peers]


def _outcome(contest: Contest, peer: Peer, timings: dict[str, Timing], absent: dict[str, str]) -> Outcome:
    ours = timings[OURS]
    if peer.name in absent:
        return Outcome(contest.title, peer.name, None, ours.best_cpu, None, absent[peer.name], None)
    theirs = timings[peer.name]
    difference = abs(theirs.value - ours.value)
    if not difference <= peer.within:
        raise AssertionError(
            f"{contest.title}: {OURS} finds {ours.value:.12g} and {peer.name} {theirs.value:.12g}"
        )
    ratio = theirs.best_cpu / ours.best_cpu
    failure = f"{contest.title}, {peer.name}: {ratio:.2f}" if ratio < peer.wanted else None
    remark = "its input is not checked" if peer.wanted == WANTED_CHECKED else ""
    return Outcome(contest.title, peer.name, ratio, ours.best_cpu, difference, remark, failure)


# -- contests --------------------------------------------------------------------------------


def contests(settings: Settings) -> list[Contest]:
    """All of them, at the sizes of `settings`; `peer_share` makes them smaller."""
    share = settings.peer_share

    def size(full: int) -> int:
        return max(200, round(full * share))

    return [
        top_label(size(1_000_000), 10),
        binary(size(1_000_000)),
        debiased(size(1_000_000)),
        brier(size(1_000_000)),
        normals(size(1_000_000)),
        ensembles(size(100_000), 50),
        temperature(size(10_000), 100),
        *(smooth(size(n)) for n in (20_000, 100_000, 1_000_000)),
        smooth(size(100_000), flattened=1.0),
    ]


def class_arrays(n: int, classes: int) -> tuple[FloatArray, IntArray]:
    """Probabilities that are too certain, and labels."""
    rng = np.random.default_rng(n + classes)
    logits = 2.0 * rng.normal(size=(n, classes))
    flat = np.exp(0.6 * logits)
    labels = np.argmax(np.cumsum(flat, axis=1) > rng.random((n, 1)) * flat.sum(axis=1, keepdims=True), axis=1)
    probs = np.exp(logits)
    return probs / probs.sum(axis=1, keepdims=True), labels


def binary_arrays(n: int, flattened: float = 0.6) -> tuple[FloatArray, IntArray]:
    """Probabilities of 1, and targets whose log odds are those predicted times `flattened`."""
    rng = np.random.default_rng(n)
    logits = 2.0 * rng.normal(size=n)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-flattened * logits))).astype(np.int64)
    return 1.0 / (1.0 + np.exp(-logits)), y


def top_label(n: int, classes: int) -> Contest:
    """Whether the most probable class is right as often as its probability says."""
    probs, labels = class_arrays(n, classes)

    def torchmetrics(functional: Any, torch: Any) -> Run:
        p, y = torch.from_numpy(probs), torch.from_numpy(labels)
        return lambda: float(functional.multiclass_calibration_error(p, y, classes, n_bins=BINS))

    return Contest(
        f"top-label ECE, {n:,} x {classes}",
        lambda: float(wc.ece(labels, probs, n_bins=BINS)),
        (
            # It adds up in single precision.
            Peer(
                "torchmetrics",
                ("torchmetrics.functional.classification", "torch"),
                torchmetrics,
                within=1e-5,
            ),
            Peer("netcal", ("netcal.metrics",), lambda m: lambda: float(m.ECE(BINS).measure(probs, labels))),
        ),
    )


def binary(n: int) -> Contest:
    """The same for the probability of one event."""
    p, y = binary_arrays(n)

    def probcal(metrics: Any) -> Run:
        return lambda: float(metrics.ece(y, p, n_bins=BINS, strategy="width"))

    return Contest(
        f"binary ECE, {n:,}",
        lambda: float(wc.ece(y, p, n_bins=BINS)),
        (Peer("probcal", ("probcal.metrics",), probcal),),
    )


def debiased(n: int) -> Contest:
    """Predictions that are equal in each bin, where corrections of squares are the same.

    probcal takes roots of what is left in each bin; its number becomes ours by way of its square where there
    is one bin, so that predictions of one value are compared.
    """
    p, y = binary_arrays(n)
    level = np.full(n, 0.5)
    hit = (np.random.default_rng(n).random(n) < 0.6).astype(np.int64)
    one_bin = wc.ece(hit, level, n_bins=BINS, distance="squared_euclidean", estimator="debiased")

    def probcal(metrics: Any) -> Run:
        theirs = 2.0 * metrics.ece_debiased(hit, level, n_bins=BINS, strategy="width") ** 2
        if not math.isclose(theirs, float(one_bin), rel_tol=1e-9):
            raise AssertionError(f"debiased ECE of one bin: {float(one_bin):.12g} and {theirs:.12g}")

        def run() -> float:
            metrics.ece_debiased(y, p, n_bins=BINS, strategy="width")
            return ours.value

        return run

    ours = wc.ece(y, p, n_bins=BINS, distance="squared_euclidean", estimator="debiased")
    return Contest(
        f"debiased ECE, {n:,}",
        lambda: float(wc.ece(y, p, n_bins=BINS, distance="squared_euclidean", estimator="debiased")),
        (Peer("probcal", ("probcal.metrics",), probcal),),
    )


def brier(n: int) -> Contest:
    """Squared errors of probabilities."""
    p, y = binary_arrays(n)
    return Contest(
        f"Brier score, {n:,}",
        lambda: float(wc.brier(y, p)),
        (
            Peer("scoringrules", ("scoringrules",), lambda sr: lambda: float(sr.brier_score(y, p).mean())),
            Peer("probcal", ("probcal.metrics",), lambda m: lambda: float(m.brier_score(y, p))),
        ),
    )


def normals(n: int) -> Contest:
    """CRPS of normal predictions."""
    rng = np.random.default_rng(n)
    mu, sigma = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    y = rng.normal(mu, 1.3 * sigma)

    def scoringrules(backend: str) -> Callable[..., Run]:
        return lambda sr, *_: lambda: float(sr.crps_normal(y, mu, sigma, backend=backend).mean())

    return Contest(
        f"CRPS of normals, {n:,}",
        lambda: float(wc.crps(y, (mu, sigma))),
        (
            Peer(
                "properscoring",
                ("properscoring",),
                lambda ps: lambda: float(ps.crps_gaussian(y, mu, sigma).mean()),
                WANTED_CHECKED,
            ),
            Peer("scoringrules, NumPy", ("scoringrules",), scoringrules("numpy"), WANTED_CHECKED),
            Peer("scoringrules, numba", ("scoringrules", "numba"), scoringrules("numba"), WANTED_CHECKED),
        ),
    )


def ensembles(n: int, members: int) -> Contest:
    """CRPS of ensembles, members as they are: no correction for their number."""
    rng = np.random.default_rng(n)
    draws = rng.normal(size=(n, members))
    y = 1.3 * rng.normal(size=n)
    return Contest(
        f"CRPS of ensembles, {n:,} x {members}",
        lambda: float(wc.crps(y, wc.Samples(draws), fair=False)),
        (
            Peer(
                "properscoring, numba",
                ("properscoring", "numba"),
                lambda ps, _: lambda: float(ps.crps_ensemble(y, draws).mean()),
                WANTED_CHECKED,
            ),
            Peer(
                "scoringrules, numba",
                ("scoringrules", "numba"),
                lambda sr, _: lambda: float(sr.crps_ensemble(y, draws, backend="numba").mean()),
                WANTED_CHECKED,
            ),
        ),
    )


def temperature(n: int, classes: int) -> Contest:
    """The temperature of the largest likelihood."""
    probs, labels = class_arrays(n, classes)

    def sklearn(calibration: Any) -> Run:
        return lambda: 1.0 / float(calibration._TemperatureScaling().fit(probs, labels).beta_)

    return Contest(
        f"temperature scaling, {n:,} x {classes}",
        lambda: TemperatureScaling().fit(labels, probs).temperature_,
        # A search for the least value of a function finds its place to half of the digits only.
        (Peer("scikit-learn", ("sklearn.calibration",), sklearn, within=1e-6),),
    )


def smooth(n: int, flattened: float = 0.6) -> Contest:
    """Smooth ECE; relplot takes a grid, and ten halvings for the bandwidth."""
    p, y = binary_arrays(n, flattened)
    targets = y.astype(np.float64)
    return Contest(
        f"smooth ECE, {n:,}{', calibrated' if flattened == 1.0 else ''}",
        lambda: float(wc.smooth_ece(y, p)),
        (Peer("relplot", ("relplot",), lambda rp: lambda: float(rp.smECE(p, targets)), within=2e-3),),
    )
