"""One table: every engine, libraries beside them, and limits of the machine, measured in the same run."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import competitors, environment, feature_speed, peers, ratios
from benchmarks.cases import Case, ClassCase, NormalCase
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import Timing, one_thread, take_turns
from wellcal._arrays.chunks import triangle_tiles
from wellcal.engines import Linear, Tiled
from wellcal.problem.feature_form import closed_forms

Run = Callable[[], float]
_BUDGET, _ROUNDS = 4.0, 5  # seconds for each, and runs at most
_TILE = 256, 512


@dataclass(frozen=True)
class Line:
    """One contender at one piece of work.

    `ratio` is larger where we are better: for an engine the time of closed forms over its own, for others
    their time over that of the default, for a limit its time over that of the quickest engine that it is for.
    """

    work: str
    who: str
    kind: str
    seconds: float
    ratio: float

    @property
    def name(self) -> str:
        return f"{self.work}: {self.who}"


@dataclass(frozen=True)
class Work:
    """What is to be done, by our engines, by others, and by the machine at its best.

    `bounded` is how the names of the engines begin that limits are for.
    """

    title: str
    engines: dict[str, Run]
    others: dict[str, Run]
    limits: dict[str, Run]
    bounded: str = "tiles"


def side_by_side(settings: Settings) -> Section:
    """All of it; ratios are compared with those stored where sizes are the full ones."""
    load = environment.load_average()
    lines: list[Line] = []
    with one_thread():
        for work in works(settings.side_cases):
            _tell(work.title)
            lines += held(work, settings)
    for contest in peers.contests(settings):
        _tell(contest.title)
        lines += [
            Line(o.contest, o.peer, "library", o.ratio * o.ours, o.ratio)
            for o in peers.held(contest, settings)
            if o.ratio is not None and o.ours is not None
        ]
    found = {line.name: line.ratio for line in lines}
    full = settings.side_cases == Settings().side_cases
    stored = ratios.read() if full else {}
    failures = ratios.fallen(found, stored)
    if settings.store_ratios:
        ratios.write(found)
    new = [] if settings.store_ratios else [name for name in found if name not in stored]
    rows = [
        (x.work, x.who, x.kind, _time(x.seconds), f"{x.ratio:.2f}", _stored(stored, x.name)) for x in lines
    ]
    body = (
        "CPU times of one thread, best of a few runs in turns in one process. *Ratio* is larger where\n"
        "wellcal is better: for an engine the time of closed forms over its own; for others theirs over\n"
        "that of the default engine; for a limit its time over that of the quickest of the tiles, or of\n"
        "linear sums, so that 1 is all there is. Limits are the products and exponentials that pairs need,\n"
        "or a sort and a running sum. *Stored* is the ratio of an earlier run (`benchmarks/ratios.csv`): a\n"
        "fall by more than its "
        "margin is an error.\n\n"
        f"{table(('work', 'who', 'kind', 'CPU time', 'ratio', 'stored'), rows)}\n\n"
        f"{_verdict(failures, new, full)}\n\n{environment.describe(load)}"
    )
    return Section("side-by-side", "Every engine and peer, side by side", body, tuple(failures))


def held(work: Work, settings: Settings) -> list[Line]:
    """Times of one piece of work, all in turns."""
    runs = {**work.engines, **work.others, **work.limits}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timings = take_turns(runs, budget=min(_BUDGET, settings.budget), rounds=min(_ROUNDS, settings.rounds))
    return lines_of(work, timings)


def lines_of(work: Work, timings: dict[str, Timing]) -> list[Line]:
    """The first engine is the one that others are measured by, the second the default."""
    first, default = list(work.engines)[:2]
    own = {name: timings[name].best_cpu for name in work.engines}
    quickest = min(seconds for name, seconds in own.items() if name.startswith(work.bounded))
    lines = [Line(work.title, name, "engine", s, own[first] / s) for name, s in own.items()]
    for name in work.others:
        seconds = timings[name].best_cpu
        lines.append(Line(work.title, name, "library", seconds, seconds / own[default]))
    for name in work.limits:
        seconds = timings[name].best_cpu
        lines.append(Line(work.title, name, "limit", seconds, seconds / quickest))
    return lines


# -- works -------------------------------------------------------------------------------------------


def works(n: int) -> list[Work]:
    """Sums over all pairs of predictions of several kinds."""
    rng = np.random.default_rng
    normals, classes = NormalCase(n), ClassCase.with_default_scale(n, 10)
    found = [
        Work(
            f"SKCE of {n:,} normals",
            {**_engines(*_prediction(normals), normals.kernel), **_tensors(normals)},
            _others(normals),
            {"a product of 42 and an exponential": _pairs_limit(n, 42)},
        ),
        Work(
            f"SKCE of {n:,} x 10 classes",
            _engines(*_prediction(classes), None),
            _others(classes),
            {"a product of 10 and an exponential": _pairs_limit(n, 10)},
        ),
    ]
    for name, make in feature_speed.FAMILIES.items():
        if name not in ("normals", "10 classes"):
            y, pred, kernel = make(n, rng(1))
            found.append(Work(f"SKCE of {n:,}: {name}", _engines(y, pred, kernel), {}, {}))
    y, pred, _ = feature_speed._events(n, rng(2))
    events = _engines(y, pred, None)
    limits = {"a sort and a running sum": _line_limit(n)}
    found.append(Work(f"SKCE of {n:,} Bernoulli", events, {}, limits, "linear"))
    return found


def _prediction(case: Case) -> tuple[Any, Any]:
    if isinstance(case, NormalCase):
        mu, sigma, y = case.arrays
        return y, wc.Normal(mu, sigma)
    probabilities, labels = case.arrays
    return labels, wc.Categorical(probabilities)


def _engines(y: Any, pred: Any, kernel: Any) -> dict[str, Run]:
    kernel = wc.default_kernel(pred) if kernel is None else kernel

    def by(engine: Any) -> Run:
        return lambda: wc.skce(y, pred, kernel=kernel, engine=engine).value

    def closed() -> float:
        with closed_forms():
            return by(Tiled(threads=1, precision="float64"))()

    runs = {
        "closed forms": closed,
        "tiles, float64": by(Tiled(threads=1, precision="float64")),
        "tiles, mixed": by(Tiled(threads=1, precision="mixed")),
    }
    try:
        by(Linear(threads=1))()
    except ValueError:  # neither on a line nor in a plane
        return runs
    return {**runs, "linear": by(Linear(threads=1))}


def _others(case: Case) -> dict[str, Run]:
    runs: dict[str, Run] = {}
    for competitor in competitors.COMPETITORS:
        if not competitor.name.startswith(competitors.OURS):
            try:
                runs[competitor.name] = competitor.prepare(case)
            except competitors.UnavailableError as reason:
                _tell(f"{competitor.name} is left out: {reason}")
    return runs


def _tensors(case: NormalCase) -> dict[str, Run]:
    """Our own engine on arrays of PyTorch and JAX."""
    runs: dict[str, Run] = {}
    for name, module, make in (("PyTorch", "torch", "as_tensor"), ("JAX", "jax.numpy", "asarray")):
        try:
            convert = getattr(importlib.import_module(module), make)
        except ImportError:
            continue
        mu, sigma, y = (convert(array) for array in case.arrays)
        pred = wc.Normal(mu, sigma)
        runs[f"arrays of {name}"] = _called(y, pred, case.kernel)
    return runs


def _called(y: Any, pred: Any, kernel: Any) -> Run:
    return lambda: float(wc.skce(y, pred, kernel=kernel).value)


# -- limits ------------------------------------------------------------------------------------------


def _pairs_limit(n: int, size: int) -> Run:
    """One product of vectors and one exponential for each pair, in arrays that stay in the cache."""
    rows = np.random.default_rng(0).normal(size=(n, size)) / size

    def run() -> float:
        total = 0.0
        for i, j in triangle_tiles(0, n, *_TILE):
            h = rows[i.index] @ rows[j.index].T
            np.exp(h, out=h)
            total += float(h[0, 0])
        return total

    return run


def _line_limit(n: int) -> Run:
    x = np.random.default_rng(0).random(n)

    def run() -> float:
        order = np.argsort(x)
        return float(np.cumsum(np.exp(x[order]))[-1])

    return run


# -- words -------------------------------------------------------------------------------------------


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _time(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 0.9995 else f"{seconds:.3g} s"


def _stored(stored: dict[str, ratios.Stored], name: str) -> str:
    return f"{stored[name].ratio:.2f}" if name in stored else "-"


def _verdict(failures: list[str], new: list[str], full: bool) -> str:
    if not full:
        return "Stored ratios are for the full sizes."
    said = "No ratio has fallen." if not failures else "Fallen: " + "; ".join(failures) + "."
    return said if not new else f"{said} Nothing is stored to compare these with: {'; '.join(new)}."
