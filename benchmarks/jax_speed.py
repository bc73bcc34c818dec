"""JAX beside PyTorch, in one process: what is compiled, the first call, and the calls after it."""

from __future__ import annotations

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
from benchmarks.timing import take_turns

LIMIT = 1.5
"""CPU time of a call in JAX, in times of PyTorch's."""

NEARBY = (1, 3, 10)
"""Cases more than those of the first call, for which nothing may be compiled."""

_COMPILED = "/jax/core/compile/backend_compile_duration"


@dataclass(frozen=True)
class _Problem:
    """Targets and a batch of predictions in NumPy, for any number of cases."""

    title: str
    make: Callable[[np.random.Generator, int], tuple[np.ndarray, Any]]


def _normals(rng: np.random.Generator, n: int) -> tuple[np.ndarray, Any]:
    loc, scale = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    return rng.normal(loc, scale), wc.Normal(loc, scale)


def _classes(rng: np.random.Generator, n: int) -> tuple[np.ndarray, Any]:
    probs = rng.dirichlet(np.ones(10), n)
    return (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 9), wc.Categorical(probs)


def _vectors(rng: np.random.Generator, n: int) -> tuple[np.ndarray, Any]:
    loc, scale = rng.normal(size=(n, 10)), rng.uniform(0.5, 1.5, (n, 10))
    return rng.normal(loc, scale), wc.DiagonalNormal(loc, scale)


def _mixtures(rng: np.random.Generator, n: int) -> tuple[np.ndarray, Any]:
    y, first = _normals(rng, n)
    second = wc.Normal(rng.normal(size=n), rng.uniform(0.5, 1.5, n))
    return y, wc.Mixture([first, second], rng.dirichlet(np.ones(2), n))


PROBLEMS = (
    _Problem("normals", _normals),
    _Problem("10 classes", _classes),
    _Problem("vectors, d = 10", _vectors),
    _Problem("mixtures of two", _mixtures),
)


def in_jax(settings: Settings) -> Section:
    """Unbiased SKCE with a given kernel, in float64 and in JAX's float32."""
    try:
        import jax
        import torch
    except ImportError as error:
        raise UnavailableError(f"{error.name} is not installed") from error
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for wide in (True, False):
        with jax.enable_x64(wide):
            for problem in PROBLEMS:
                for n in settings.jax_cases:
                    row, failed = _compared(problem, n, wide, settings, jax, torch)
                    rows.append(row)
                    failures += failed
    head = ("", "n", "", "first call", "compiled", f"for n + {NEARBY[0]} .. {NEARBY[-1]}", "JAX", "PyTorch")
    body = "\n".join(
        [
            "Unbiased SKCE with a given kernel, on arrays that are there already: CPU times of all threads,",
            f"the best of at most {settings.rounds} calls in turns. *Ratio* is JAX's time over PyTorch's on",
            f"the same numbers, and at most {LIMIT}; PyTorch computes in float64 in either case. *Compiled*",
            "counts everything that JAX compiles in the first call; a few cases more must compile nothing.",
            "",
            table((*head, "ratio"), rows),
            "",
            environment.describe(load),
        ]
    )
    return Section("jax", "JAX beside PyTorch", body, tuple(failures))


def _compared(
    problem: _Problem, n: int, wide: bool, settings: Settings, jax: Any, torch: Any
) -> tuple[tuple[str, ...], list[str]]:
    kernel = wc.default_kernel(problem.make(np.random.default_rng(0), 256)[1])
    dtype = np.float64 if wide else np.float32

    def run(convert: Callable[[np.ndarray], Any], cases: int) -> Callable[[], float]:
        y, pred = problem.make(np.random.default_rng(cases), cases)

        def converted(array: np.ndarray) -> Any:
            return convert(array.astype(dtype) if array.dtype.kind == "f" else array.copy())

        targets, batch = converted(y), pred.map_arrays(converted)
        return lambda: float(wc.skce(targets, batch, kernel=kernel).value)

    ours = run(jax.device_put, n)
    first, compiled = _first(ours, jax)
    more = sum(_first(run(jax.device_put, n + k), jax)[1] for k in NEARBY)
    timings = take_turns(
        {"JAX": ours, "PyTorch": run(torch.from_numpy, n)}, budget=settings.budget, rounds=settings.rounds
    )
    times = {name: timing.best_cpu for name, timing in timings.items()}
    ratio = times["JAX"] / times["PyTorch"]
    what = f"{problem.title}, n = {n:,}, {np.dtype(dtype).name}"
    failed: list[str] = []
    if ratio > LIMIT:
        failed.append(f"JAX: {what}: {ratio:.2f} times PyTorch's time, and {LIMIT} are allowed")
    if more:
        failed.append(f"JAX: {what}: {more} compilations for a few cases more")
    row = (problem.title, f"{n:,}", np.dtype(dtype).name, _shown(first), str(compiled), str(more))
    return (*row, _shown(times["JAX"]), _shown(times["PyTorch"]), f"{ratio:.2f}"), failed


def _first(run: Callable[[], float], jax: Any) -> tuple[float, int]:
    """CPU time of a call, and how often something was compiled in it."""
    found: list[str] = []

    def listen(event: str, duration: float, **_: Any) -> None:
        if event == _COMPILED:
            found.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    start = time.process_time()
    try:
        run()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    return time.process_time() - start, len(found)


def _shown(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
