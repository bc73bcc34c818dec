"""Memory grows with the number of cases, not with that of pairs.

NumPy tells `tracemalloc` what it allocates, and XLA plans its memory when it compiles: both are the same in
each run. PyTorch does neither, so that its peaks are those of a process of their own; they are compared with
a graph over all pairs, which is many times larger than the bound.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

from ..processes import run_python

MIB = 2**20
KERNEL = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.9)


def normals(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=n), np.exp(rng.normal(0.0, 0.3, n))
    return rng.normal(loc, scale), loc, scale


# -- NumPy ------------------------------------------------------------------------------------------------


def peak(run: Callable[[], Any]) -> float:
    """The most that is allocated at a time, in MiB."""
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1] / MIB
    finally:
        tracemalloc.stop()


def test_a_matrix_would_be_noticed() -> None:
    """The measurement itself: 4000^2 numbers are 122 MiB."""
    y, m, _ = normals(4_000)
    assert peak(lambda: np.subtract.outer(y, m).sum()) > 120


def test_numpy() -> None:
    """8000 cases on two threads; the matrix of pairs would have 488 MiB."""
    y, m, s = normals(8_000)
    engine = wc.engines.Tiled(threads=2)
    assert peak(lambda: wc.skce(y, wc.Normal(m, s), engine=engine)) < 100


def test_numpy_with_many_classes() -> None:
    """Matrix products over 50 classes; the matrix of pairs would have 275 MiB."""
    p = np.full((6_000, 50), 0.5 / 49)
    p[:, 3] = 0.5

    def run() -> None:
        wc.skce(np.zeros(6_000, dtype=int), wc.Categorical(p))

    run()  # compiles a loop where nobody has, which takes four times as long while memory is watched
    assert peak(run) < 100


def test_blocks_of_many_cases() -> None:
    """Half a million cases in pairs: less than 130 bytes for a case, which itself is 24."""
    y, m, s = normals(500_000)
    options: dict[str, Any] = {"kernel": KERNEL, "estimator": "block", "block_size": 2}
    assert peak(lambda: wc.skce(y, wc.Normal(m, s), **options)) < 60


# -- JAX --------------------------------------------------------------------------------------------------


def planned(function: Callable[..., Any], n: int) -> float:
    """Memory that a compiled function takes beside its arguments and results, in MiB."""
    given = (jax.ShapeDtypeStruct((n,), jnp.float32),) * 3
    return jax.jit(function).lower(*given).compile().memory_analysis().temp_size_in_bytes / MIB


def test_gradients_in_jax() -> None:
    """In single precision an array of 8000^2 pairs is 244 MiB, and a graph over them has some 30."""

    def loss(m: Any, s: Any, y: Any) -> Any:
        return wc.skce(y, wc.Normal(m, s), kernel=KERNEL).value

    assert planned(jax.grad(loss), 8_000) < 100
    assert (
        planned(lambda m, s, y: jnp.sort(m[:, None] * y, axis=0).sum() + s, 8_000) > 240
    )  # would be noticed


# -- PyTorch ----------------------------------------------------------------------------------------------

SCRIPT = """
import gc, resource, sys
import numpy as np, torch, wellcal as wc
from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

def peak():
    if sys.platform == "linux":  # where ru_maxrss starts from the parent's peak
        status = open("/proc/self/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value / (2**20 if sys.platform == "darwin" else 2**10)

def train(n, kernel):
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=n), np.exp(rng.normal(0.0, 0.3, n))
    m, s = torch.tensor(loc, requires_grad=True), torch.tensor(scale, requires_grad=True)
    wc.skce(rng.normal(loc, scale), wc.Normal(m, s), kernel=kernel).value.backward()
    assert torch.isfinite(m.grad).all()

scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
for kernel in (None, ExpDistance(Wasserstein()) @ Gaussian(scale)):
    train(50, kernel)  # imports and pools of memory that come with the first call
    gc.collect()
    before = peak()
    train(2_000, kernel)
    print(peak() - before)
assert scale.grad is not None
"""


def test_training_in_torch() -> None:
    """Forward and backward pass, with a fixed kernel and with one whose length scale has a gradient too.

    A graph over 2000^2 pairs would hold some 30 arrays of 30 MiB.
    """
    for growth in run_python("-c", SCRIPT).stdout.split():
        assert float(growth) < 250
