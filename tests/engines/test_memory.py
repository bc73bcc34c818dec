"""Memory grows with the number of cases, not with that of pairs. Each measurement is a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

PROLOGUE = """
import gc, resource, sys
import numpy as np, wellcal as wc

def peak():
    if sys.platform == "linux":  # where ru_maxrss starts from the parent's peak
        status = open("/proc/self/status").read()
        return int(status.split("VmHWM:")[1].split()[0]) / 2**10
    value = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return value / (2**20 if sys.platform == "darwin" else 2**10)

def normals(n, convert=np.asarray):
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=n), np.exp(rng.normal(0.0, 0.3, n))
    return convert(rng.normal(loc, scale)), convert(loc), convert(scale)

def measure(run, warm_up, n, convert=np.asarray):
    run(*normals(warm_up, convert))  # imports and pools of memory that come with the first call
    given = normals(n, convert)
    gc.collect()
    before = peak()
    run(*given)
    print(peak() - before)
"""


def growth(script: str) -> float:
    """Growth of the largest resident memory of a process, in MiB."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    code = PROLOGUE + textwrap.dedent(script)
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return float(done.stdout.split()[-1])


def test_a_matrix_would_be_noticed() -> None:
    """The measurement itself: 8000^2 numbers are 488 MiB."""
    assert growth("measure(lambda y, m, s: np.subtract.outer(y, m).sum(), 50, 8_000)") > 400


def test_numpy() -> None:
    """20,000 cases within 300 MB above the inputs; the matrix of pairs would have 3200."""
    assert growth("measure(lambda y, m, s: wc.skce(y, wc.Normal(m, s)), 50, 20_000)") < 300


def test_numpy_with_many_classes() -> None:
    """Matrix products over 50 classes; the matrix of pairs would have 488 MiB."""
    script = """
    def run(y, m, s):
        p = np.full((len(y), 50), 0.5 / 49)
        p[:, 3] = 0.5
        wc.skce(np.zeros(len(y), dtype=int), wc.Categorical(p))

    measure(run, 50, 8_000)
    """
    assert growth(script) < 120


def test_blocks_of_a_million_cases() -> None:
    """A list of half a million pairs, some at a time; a case is 64 bytes."""
    script = (
        "measure(lambda y, m, s: wc.skce(y, wc.Normal(m, s), estimator='block', block_size=2), 50, 1_000_000)"
    )
    assert growth(script) < 200


TORCH = """
import torch

def tensor(x):
    return torch.tensor(x, requires_grad=True)

def train(y, m, s):
    wc.skce(y.detach(), wc.Normal(m, s){options}).value.backward()
    assert torch.isfinite(m.grad).all()
"""


def test_training_in_torch() -> None:
    """Forward and backward pass; a graph over 8000^2 pairs would hold some 30 arrays of 488 MiB."""
    assert growth(TORCH.format(options="") + "measure(train, 50, 8_000, tensor)") < 200


def test_training_the_kernel_in_torch() -> None:
    """The same where the length scale has a gradient too."""
    script = """
    from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

    scale = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    """
    options = ", kernel=ExpDistance(Wasserstein()) @ Gaussian(scale)"
    code = TORCH.format(options=options) + textwrap.dedent(script) + "measure(train, 50, 4_000, tensor)"
    assert growth(code) < 300  # of 30 arrays of 122 MiB


def test_gradients_in_jax() -> None:
    script = """
    import jax, jax.numpy as jnp

    def loss(m, s, y):
        return wc.skce(y, wc.Normal(m, s)).value

    gradient = jax.jit(jax.grad(loss))
    measure(lambda y, m, s: gradient(m, s, y).block_until_ready(), 50, 8_000, jnp.asarray)
    """
    assert growth(script) < 200  # single precision: arrays of 244 MiB, some 30 of them
