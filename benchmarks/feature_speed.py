"""Sums over all pairs: closed forms, features in two precisions, and no square at all, side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.timing import take_turns
from wellcal.engines import Linear, Tiled
from wellcal.engines.linear import FEWEST_IN_A_PLANE, FEWEST_ON_A_LINE
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein
from wellcal.problem.feature_form import closed_forms
from wellcal.problem.problem import Problem, prepare

Data = tuple[Any, Any, Any]
_BYTES = 1900.0  # for each case in a plane: 10,000,000 normals took 18.6 GB


def _normals(n: int, rng: np.random.Generator) -> Data:
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    return rng.normal(loc, scale), wc.Normal(loc, scale), None


def _laplace(n: int, rng: np.random.Generator) -> Data:
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    return rng.laplace(loc, scale), wc.Laplace(loc, scale), ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


def _mixtures(n: int, rng: np.random.Generator) -> Data:
    y, pred, _ = _normals(n, rng)
    return y, wc.Mixture([pred, wc.Normal(pred.loc + 1.0, pred.scale)], weights=[0.9, 0.1]), None


def _ensembles(n: int, rng: np.random.Generator) -> Data:
    y, pred, _ = _normals(n, rng)
    return y, wc.Samples(rng.normal(pred.loc, pred.scale, (50, n)).T), None


def _lowered(n: int, rng: np.random.Generator) -> Data:
    scale = 0.6 * np.exp(0.3 * rng.normal(size=n))
    return rng.gamma(3.0, scale), wc.Gamma(np.full(n, 3.0), scale), None


def _counts(n: int, rng: np.random.Generator) -> Data:
    mean = 3.0 * np.exp(0.3 * rng.normal(size=n))
    pred = wc.NegativeBinomial(mean, np.full(n, 0.3))
    return pred.sample(rng=rng), pred, None


def _vectors(size: int) -> Callable[[int, np.random.Generator], Data]:
    def make(n: int, rng: np.random.Generator) -> Data:
        loc, scale = rng.normal(size=(n, size)), 0.6 * np.exp(0.3 * rng.normal(size=(n, size)))
        return rng.normal(loc, scale), wc.DiagonalNormal(loc, scale), None

    return make


def _classes(count: int) -> Callable[[int, np.random.Generator], Data]:
    def make(n: int, rng: np.random.Generator) -> Data:
        probabilities = rng.dirichlet(np.ones(count), size=n)
        y = np.argmax(np.log(probabilities) + rng.gumbel(size=(n, count)), axis=1)
        return y, wc.Categorical(probabilities), None

    return make


def _events(n: int, rng: np.random.Generator) -> Data:
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), wc.Bernoulli(p), None


FAMILIES: dict[str, Callable[[int, np.random.Generator], Data]] = {
    "normals": _normals,
    "Laplace, Gaussian kernel": _laplace,
    "mixtures of two normals": _mixtures,
    "ensembles of 50": _ensembles,
    "gamma, lowered": _lowered,
    "counts, negative binomial": _counts,
    "normals in 2 dimensions": _vectors(2),
    "normals in 10 dimensions": _vectors(10),
    "10 classes": _classes(10),
    "1,000 classes": _classes(1000),
}


def _prepared(data: Data) -> Callable[[], Problem]:
    y, pred, kernel = data
    kernel = wc.default_kernel(pred) if kernel is None else kernel
    prepare(y, pred, kernel)  # what a batch remembers is there for all of them
    return lambda: prepare(y, pred, kernel)


_WAYS = ("features", "mixed", "linear")


def features(settings: Settings) -> Section:
    """CPU time of one thread for the sums over all pairs of each family, by closed forms and by features."""
    load = environment.load_average()
    n = settings.feature_cases
    rows: list[tuple[str, ...]] = []
    for name, make in FAMILIES.items():
        fresh = _prepared(make(n, np.random.default_rng(1)))
        sums = take_turns(_runs(fresh), budget=settings.budget, rounds=min(3, settings.rounds))
        closed, exact, single = sums["closed"], sums["float64"], sums["mixed"]
        linear = sums.get("linear")
        problem = fresh()
        Tiled(threads=1, precision="mixed").triangle(problem)
        said = Tiled(threads=1, precision="mixed").describe(problem)
        rows.append(
            (
                name,
                f"{said.get('features', '-')}",
                f"{closed.best_cpu:.3g} s",
                f"{closed.best_cpu / exact.best_cpu:.1f}",
                f"{closed.best_cpu / single.best_cpu:.1f}",
                "-" if linear is None else f"{closed.best_cpu / linear.best_cpu:.1f}",
                f"{said['control_error']:.0e}" if "control_error" in said else "-",
            )
        )
    header = ("family", "features", "closed forms", *(f"{way}: times faster" for way in _WAYS), "error")
    body = (
        f"Sums over all pairs of {n:,} prepared cases, one thread, CPU time with the making of features.\n"
        "The error is the standard error of products in float32 that is reported, in standard deviations\n"
        "that the sum would have for calibrated predictions. Normals in two dimensions or more have no\n"
        "features worth it: their exponents are matrix products. Pairs of classes go through compiled\n"
        "loops. *Linear* takes no square, where there is a way without.\n\n"
        f"{table(header, rows)}\n\n{environment.describe(load)}"
    )
    return Section("features", "Features before pairs", body)


def _runs(fresh: Callable[[], Problem]) -> dict[str, Callable[[], float]]:
    def by_closed_forms() -> float:
        with closed_forms():
            return float(Tiled(threads=1, precision="float64").triangle(fresh()).total)

    def by_features(precision: str) -> float:
        return float(Tiled(threads=1, precision=precision).triangle(fresh()).total)

    def without_the_square() -> float:
        return float(Linear(threads=1).triangle(fresh()).total)

    runs = {
        "closed": by_closed_forms,
        "float64": lambda: by_features("float64"),
        "mixed": lambda: by_features("mixed"),
    }
    return {**runs, "linear": without_the_square} if Linear().supports(fresh()) else runs


def no_square(settings: Settings) -> Section:
    """CPU time of all of `skce` against the number of cases, where sums need no square."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    for name, make, sizes in (
        ("normals", _normals, settings.plane_cases),
        ("Laplace, Gaussian kernel", _laplace, settings.laplace_cases),
        ("gamma, lowered", _lowered, settings.spanned_cases),
        ("ensembles of 50", _ensembles, settings.spanned_cases),
        ("Bernoulli", _events, settings.line_cases),
    ):
        for n in sizes:
            if make is not _events and not _fits(n):
                rows.append((name, f"{n:,}", "not run", "-", f"up to {_gigabytes(n):.0f} GB of memory", "-"))
                continue
            y, pred, kernel = make(n, np.random.default_rng(2))
            started = time.process_time()
            found = wc.skce(y, pred, kernel=kernel)
            spent = time.process_time() - started
            said = found.provenance
            how = said.get("sums", f"tiles, {said.get('precision', 'float64')}")
            error = f"{said['control_error']:.0e}" if "control_error" in said else "-"
            rows.append((name, f"{n:,}", f"{spent:.3g} s", f"{1e6 * spent / n:.3g} us", how, error))
    header = ("predictions", "cases", "CPU time", "for a case", "how", "error")
    lines, failures = _break_even(settings)
    body = (
        'The whole call, with the default kernel, as `engine="auto"` chooses. The error is that of control\n'
        "rows, in standard deviations that the estimate would have for calibrated predictions.\n\n"
        f"{table(header, rows)}\n\n"
        "Where it pays: CPU times of one thread, from the number of cases on that `auto` takes it for, and\n"
        "for fewer; there it must not be slower than tiles in float64.\n\n"
        f"{table(('predictions', 'cases', 'tiles', 'linear', 'ratio'), lines)}\n\n"
        "`witness` of normals, with 999 sets of targets: its contributions are sums over all pairs.\n\n"
        f"{table(('cases', 'CPU time'), _witnesses(settings))}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("no-square", "Sums over all pairs without the square", body, tuple(failures))


def _gigabytes(n: int) -> float:
    return n * _BYTES / 1e9


def _fits(n: int) -> bool:
    """Whether so many cases with their features fit into the memory that is free."""
    free = environment.available_memory()
    return free is None or n * _BYTES < free


def _witnesses(settings: Settings) -> list[tuple[str, str]]:
    """CPU times of `witness` against the number of cases."""
    rows: list[tuple[str, str]] = []
    for n in settings.witness_cases:
        y, pred, _ = _normals(n, np.random.default_rng(4))
        started = time.process_time()
        wc.witness(y, pred, rng=1)
        rows.append((f"{n:,}", f"{time.process_time() - started:.3g} s"))
    return rows


def _break_even(settings: Settings) -> tuple[list[tuple[str, ...]], list[str]]:
    """Tiles beside sums without the square, about the number of cases from which `auto` takes these."""
    lines: list[tuple[str, ...]] = []
    failures: list[str] = []
    for name, make, fewest in (
        ("normals", _normals, FEWEST_IN_A_PLANE),
        ("Bernoulli", _events, FEWEST_ON_A_LINE),
    ):
        for n in (fewest // 10, fewest // 4, fewest):
            y, pred, _ = make(n, np.random.default_rng(3))
            kernel = wc.default_kernel(pred)
            runs = {
                "tiles": _called(y, pred, kernel, Tiled(threads=1, precision="float64")),
                "linear": _called(y, pred, kernel, Linear(threads=1)),
            }
            found = take_turns(runs, budget=min(5.0, settings.budget), rounds=min(5, settings.rounds))
            tiles, linear = (found[k].best_cpu for k in runs)
            lines.append((name, f"{n:,}", f"{tiles:.3g} s", f"{linear:.3g} s", f"{tiles / linear:.2f}"))
            if n == fewest and tiles < linear:
                failures.append(f"{n:,} {name} are slower without the square")
    return lines, failures


def _called(y: Any, pred: Any, kernel: Any, engine: Any) -> Callable[[], float]:
    return lambda: wc.skce(y, pred, kernel=kernel, engine=engine).value
