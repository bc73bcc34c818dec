"""Tensors on a graphics card: sums over all pairs, training and tests, each with the limit of its time.

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

import wellcal as wc
from benchmarks import environment
from benchmarks.competitors import UnavailableError
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from wellcal.engines.grid_sums import CELLS, Grid
from wellcal.engines.kernel_sums import DecayKernel
from wellcal.expectations.features import NORM, step_of

DEVICE = "cuda"
_AT_A_TIME = 2_500_000  # cases whose features are made together
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


def _normals(torch: Any, n: int, seed: int = 1) -> tuple[Any, Any]:
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    loc, log_scale, noise = (
        torch.empty(n, device=DEVICE, dtype=torch.float64).normal_(generator=generator) for _ in range(3)
    )
    scale = 0.6 * torch.exp(0.3 * log_scale)
    return loc + scale * noise, wc.Normal(loc, scale)


def _classes(torch: Any, n: int, count: int) -> tuple[Any, Any]:
    generator = torch.Generator(device=DEVICE).manual_seed(1)
    probs = torch.empty((n, count), device=DEVICE, dtype=torch.float64).exponential_(generator=generator)
    probs /= probs.sum(dim=1, keepdim=True)
    return torch.multinomial(probs, 1, generator=generator)[:, 0], wc.Categorical(probs)


def _with_rows(n: int, **options: Any) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _normals(torch, n)
        return lambda: wc.skce(y, pred, **options)

    return make


def _of_classes(n: int, count: int, **options: Any) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _classes(torch, n, count)
        return lambda: wc.skce(y, pred, **options)

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


@dataclass(frozen=True)
class _Sum:
    """A sum over pairs, described as results are."""

    value: float
    provenance: dict[str, Any]


def _streamed(chunks: int, cases: int = 25_000_000) -> Callable[[Any], Callable[[], Any]]:
    """Sum over all pairs of a stream of normals, whose chunks add their features to a grid."""

    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _normals(torch, 20_000)
        kernel: Any = wc.default_kernel(pred)
        length, scale = kernel.targets.lengthscale, kernel.predictions.lengthscale
        centres = torch.arange(-10.0, 10.0, step_of(length), device=DEVICE)

        def features(y: Any, pred: Any) -> Any:
            y, loc, variance = (given.float()[:, None] for given in (y, pred.loc, pred.scale**2))
            spread = 1.0 + (2.0 / length**2) * variance
            said = ((loc - centres) / length).square_().neg_().div_(spread).exp_().div_(spread.sqrt())
            return said.sub_(((y - centres) / length).square_().neg_().exp_()).mul_(NORM)

        some = features(y, pred).double()
        energy, directions = torch.linalg.eigh(some.T @ some)
        kept = directions[:, energy > 1e-13 * energy[-1]].float()
        low, high = (torch.tensor(ends, device=DEVICE, dtype=torch.float64) for ends in ((-7, 0.05), (7, 5)))
        spacing = float(((high - low).prod() / CELLS).sqrt())
        across, along = (2 * int(0.5 * float(width) / spacing) + 3 for width in high - low)
        nodes = Grid.of(DecayKernel(scale, 1.0), low, spacing, (across, along))
        places, some = torch.stack([pred.loc, pred.scale], dim=1)[:4000], some[:4000]
        h = torch.exp(-torch.cdist(places, places) / scale) * (some @ some.T)
        unit = float(h.fill_diagonal_(0.0).square().mean().sqrt()) * 0.5**0.5 * chunks * cases

        def run() -> _Sum:
            states: list[Any] = []
            for seed in range(chunks):
                y, pred = _normals(torch, cases, seed)
                points = torch.stack([pred.loc, pred.scale], dim=1).clamp(low, high)
                parts = zip(
                    y.split(_AT_A_TIME), pred.loc.split(_AT_A_TIME), pred.scale.split(_AT_A_TIME), strict=True
                )
                phi = torch.cat([features(a, wc.Normal(b, c)) @ kept for a, b, c in parts])
                encoded = nodes.encode(points)
                for k, columns in enumerate(phi.split(nodes.columns, dim=1)):
                    state = nodes.chunk(encoded, columns.contiguous())
                    state = state._replace(fields=state.fields.double())
                    if seed:
                        states[k] = nodes.merge(states[k], state)
                    else:
                        states.append(state)
            sums = [nodes.finish(state) for state in states]
            total, half = sum(one.total for one in sums), sum(one.half for one in sums)
            return _Sum(total, {"sums": "a grid", "grid_error": abs(total - half) / unit})

        return run

    return make


def _test(n: int) -> Callable[[Any], Callable[[], Any]]:
    def make(torch: Any) -> Callable[[], Any]:
        y, pred = _normals(torch, n)
        return lambda: wc.calibration_test(y, pred, rng=0, n_resamples=999, progress=False)

    return make


ROWS = (  # those with a limit come first
    _Row("SKCELoss, 10,000 normals, forward and backward", 0.020, _training(10_000), 10),
    _Row("SKCELoss, 1,024 normals, forward and backward", 0.006, _training(1_024), 300),
    _Row("4,000 x 1,000 classes", 0.1, _of_classes(4_000, 1_000), 3),
    _Row("50,000 x 1,000 classes", 4.0, _of_classes(50_000, 1_000), 2, 12.0),
    _Row("1,000,000 normals, sum and sums of cases", 0.05, _with_rows(1_000_000), 5),
    _Row("10,000,000 normals, sum and sums of cases", 0.15, _with_rows(10_000_000), 3, 2.0),
    _Row("100,000,000 normals, sum and sums of cases", 1.5, _with_rows(100_000_000), 2, 8.0),
    _Row("1,000,000,000 normals in chunks, drawn on the way, sum", 10.0, _streamed(40), 1, 25.0),
    _Row("test, 100,000 normals, 999 resamples", 5.0, _test(100_000), 1, 6.0),
    _Row("test, 1,000,000 normals, 999 resamples", 30.0, _test(1_000_000), 0, 16.0),
    _Row("SKCELoss, 10,000 x 10 classes, forward and backward", None, _training(10_000, 10), 10, 3.0),
    _Row("SKCELoss, 1,024 x 10 classes, forward and backward", None, _training(1_024, 10), 300),
    _Row("4,000 x 1,000 classes, float64", None, _of_classes(4_000, 1_000, precision="float64"), 3),
    _Row("100,000 normals, sum and sums of cases", None, _with_rows(100_000)),
    _Row("100,000 normals, float64", None, _with_rows(100_000, precision="float64", engine="tiled")),
)


def in_cuda(settings: Settings) -> Section:
    """Measure times on a graphics card against their limits, with the errors that rounded sums report."""
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
    device = torch.cuda.get_device_properties(0)
    body = (
        "Whole calls on tensors that are on the device already; the best of some calls, after a first one,\n"
        "whose time is in brackets. Errors are reported by the call, in standard deviations of the sum.\n\n"
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
    parts = [str(said[key]) for key in ("engine", "sums", "precision") if key in said]
    parts += [
        f"{key} {said[key]:.0e}" for key in said if isinstance(said[key], float) and key.endswith("_error")
    ]
    if hasattr(found, "pvalue"):
        parts.append(f"p = {found.pvalue:.3g}")
    return ", ".join(parts)


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
