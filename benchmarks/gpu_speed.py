"""Tensors on a graphics card: sums over all pairs, training and tests, each beside what it should take.

`profile` shows in which functions the time of each row goes.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import wellcal as wc
from benchmarks import environment
from benchmarks.competitors import UnavailableError
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from wellcal.engines.pair_terms import as_pair_terms
from wellcal.engines.tensor_pairs import couple_sums
from wellcal.problem.feature_form import in_products
from wellcal.problem.problem import Problem, prepare

DEVICE = "cuda"
LONGEST = 90.0
"""Seconds: what is likely to end later is not begun."""


@dataclass(frozen=True)
class _Row:
    """What is timed: title, most seconds it may take, how often it is repeated, and seconds in all."""

    title: str
    limit: float | None
    make: Callable[[Any], Callable[[], Any]]
    repeats: int = 3
    expected: float = 1.0


def _normals(torch: Any, n: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(1)
    loc, scale = rng.normal(size=n), 0.6 * np.exp(0.3 * rng.normal(size=n))
    y, loc, scale = (torch.tensor(a, device=DEVICE) for a in (rng.normal(loc, scale), loc, scale))
    return y, wc.Normal(loc, scale)


def _classes(torch: Any, n: int, count: int) -> tuple[Any, Any]:
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    probs = torch.empty((n, count), device=DEVICE, dtype=torch.float64).exponential_(generator=generator)
    probs /= probs.sum(dim=1, keepdim=True)
    return torch.multinomial(probs, 1, generator=generator)[:, 0], wc.Categorical(probs)


def _sum(n: int, precision: str) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _normals(torch, n)
        kernel = wc.default_kernel(pred)
        return lambda: wc.kce(y, pred, kernel=kernel, precision=precision)

    return make


def _with_rows(n: int, precision: str, **options: Any) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _normals(torch, n)
        return lambda: wc.skce(y, pred, precision=precision, **options)

    return make


def _of_classes(n: int, count: int) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _classes(torch, n, count)
        return lambda: wc.skce(y, pred)

    return make


def _training(n: int, count: int = 0) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        from wellcal.torch import SKCELoss

        loss = SKCELoss()
        if count:
            y, pred = _classes(torch, n, count)
            logits = pred.probs.log().requires_grad_()
            return lambda: loss(y, wc.Categorical(logits.softmax(dim=1))).backward()
        y, pred = _normals(torch, n)
        loc, log_scale = pred.loc.clone().requires_grad_(), pred.scale.log().requires_grad_()
        return lambda: loss(y, wc.Normal(loc, log_scale.exp())).backward()

    return make


def _test(n: int) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _normals(torch, n)
        return lambda: wc.calibration_test(y, pred, rng=0, n_resamples=999, progress=False)

    return make


ROWS = (  # those with a limit come first
    _Row("SKCELoss, 10,000 normals, forward and backward", 0.020, _training(10_000), 10),
    _Row("SKCELoss, 1,024 normals, forward and backward", 0.003, _training(1_024), 300),
    _Row("1,000,000 normals, sum", 0.6, _sum(1_000_000, "auto"), 3, 6.0),
    _Row("1,000,000 normals, sum and sums of cases", 1.2, _with_rows(1_000_000, "auto"), 2, 5.0),
    _Row("50,000 x 1,000 classes", 3.0, _of_classes(50_000, 1_000), 2, 7.0),
    _Row("test, 100,000 normals, 999 resamples", 5.0, _test(100_000), 1, 6.0),
    _Row("test, 1,000,000 normals, 999 resamples", 30.0, _test(1_000_000), 0, 16.0),
    _Row("SKCELoss, 10,000 x 10 classes, forward and backward", None, _training(10_000, 10), 10, 3.0),
    _Row("SKCELoss, 1,024 x 10 classes, forward and backward", None, _training(1_024, 10), 300),
    _Row("100,000 normals, sum and sums of cases", None, _with_rows(100_000, "auto")),
    _Row("100,000 normals, float64", None, _with_rows(100_000, "float64"), 3, 3.0),
    _Row(
        "100,000 normals, without Triton",
        None,
        _with_rows(100_000, "auto", engine=wc.engines.Fused(triton=False)),
        3,
        2.0,
    ),
    _Row("1,000,000 normals, sum, float64", None, _sum(1_000_000, "float64"), 0, 18.0),
)
_ERROR_TAKES = 20.0  # seconds: a sum in float64 once more


def in_cuda(settings: Settings) -> Section:
    """Times on a graphics card beside the most that they may be, and errors of rounded sums."""
    torch = _torch()
    load = environment.load_average()
    started = time.perf_counter()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for row in ROWS:
        left = LONGEST - (time.perf_counter() - started)
        if row.expected > left:
            rows.append((row.title, "not begun", _limit(row), ""))
            continue
        try:
            first, best, said = _timed(torch, row)
        except Exception as error:  # one that fails leaves the others
            rows.append((row.title, type(error).__name__, _limit(row), str(error).splitlines()[0][:80]))
            failures.append(f"gpu: {row.title}: {type(error).__name__}: {error}")
            continue
        rows.append((row.title, f"{_shown(best)} ({_shown(first)})", _limit(row), said))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
        if row.limit is not None and best > row.limit:
            failures.append(f"gpu: {row.title}: {_shown(best)}, and {_shown(row.limit)} are allowed")
    title, found = "1,000,000 normals, error of the rounded sum", "not begun"
    try:
        if time.perf_counter() - started + _ERROR_TAKES < LONGEST:
            found = _error(torch, 1_000_000)
    except Exception as error:
        found = type(error).__name__
        failures.append(f"gpu: {title}: {found}: {error}")
    rows.append((title, found, "1%", ""))
    device = torch.cuda.get_device_properties(0)
    body = (
        "Whole calls on tensors that are on the device already; the best of some calls, after a first one,\n"
        "whose time is in brackets: it compiles kernels. Sums alone are those of `kce`; the error is the\n"
        "difference of the rounded sum from that in float64, in standard deviations of the sum where\n"
        "predictions are calibrated.\n\n"
        f"{table(('', 'time (first call)', 'limit', 'how'), rows)}\n\n"
        f"{_verdict(failures)}\n\n"
        f"{device.name}, PyTorch {torch.__version__}. {environment.describe(load)}"
    )
    return Section("gpu", "On a graphics card", body, tuple(failures))


def _verdict(failures: list[str]) -> str:
    if not failures:
        return "All that has a limit is within it."
    return "Not as wanted: " + "; ".join(one.removeprefix("gpu: ") for one in failures) + "."


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise UnavailableError(f"{error.name} is not installed") from error
    if not torch.cuda.is_available():
        raise UnavailableError("there is no CUDA device")
    return torch


def _limit(row: _Row) -> str:
    return "" if row.limit is None else _shown(row.limit)


def _timed(torch: Any, row: _Row) -> tuple[float, float, str]:
    """Seconds of the first call and of the quickest of the others, and what it says of itself."""
    run = row.make(torch)
    spent: list[float] = []
    found: Any = None
    for _ in range(1 + row.repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        found = run()
        torch.cuda.synchronize()
        spent.append(time.perf_counter() - start)
        if len(spent) > 1 and sum(spent) > 30.0:
            break
    return spent[0], min(spent[1:], default=spent[0]), _said(found)


def _said(found: Any) -> str:
    said: dict[str, Any] = getattr(found, "provenance", {}) or {}
    parts = [str(said[key]) for key in ("kernels", "precision") if key in said]
    if "precision_error" in said:
        parts.append(f"error {said['precision_error']:.0e}")
    if hasattr(found, "pvalue"):
        parts.append(f"p = {found.pvalue:.3g}")
    return ", ".join(parts)


def _error(torch: Any, n: int) -> str:
    """Difference of the rounded sum from that in float64, in units of the null's standard deviation."""
    y, pred = _normals(torch, n)
    problem = prepare(y, pred, wc.default_kernel(pred))
    rounded, exact = (
        float(wc.engines.Fused(precision=precision).total(_fresh(problem)))
        for precision in ("mixed", "float64")
    )
    terms = as_pair_terms(in_products(problem, tensors=True) or problem)
    assert terms is not None
    generator = torch.Generator(device=DEVICE).manual_seed(5)
    some = torch.randperm(n, generator=generator, device=DEVICE)[: 2 * 128 * 512].reshape(-1, 2, 128)
    squares = couple_sums(terms, some)[1]
    deviation = float(squares.mean().sqrt()) * (0.5 * n * (n - 1.0)) ** 0.5
    return f"{abs(rounded - exact) / deviation:.1e}"


def _fresh(problem: Problem) -> Problem:
    problem.kept.clear()
    return problem


def _shown(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1.0 else f"{seconds:.3g} s"


def profile(*titles: str) -> None:
    """Print where the time of rows goes whose titles begin with one of those given."""
    torch = _torch()
    for row in ROWS:
        if not row.title.startswith(titles):
            continue
        run = row.make(torch)
        run()
        torch.cuda.synchronize()
        found = cProfile.Profile()
        found.enable()
        run()
        torch.cuda.synchronize()
        found.disable()
        print(f"## {row.title}", flush=True)
        pstats.Stats(found).strip_dirs().sort_stats("tottime").print_stats(16)
