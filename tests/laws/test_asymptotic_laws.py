"""What must not change the p-value of an asymptotic test: order, unit, threads, tiles."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.hypotests.method import Outcome
from wellcal.hypotests.methods import Bootstrap, GammaMoments, Multiplier, Pearson, Spectrum
from wellcal.hypotests.methods.block import Block
from wellcal.hypotests.methods.distribution_free import DistributionFree
from wellcal.hypotests.setup import make_setup

METHODS = [
    Bootstrap(),
    Multiplier(),
    Multiplier("normal"),
    Spectrum(),
    Pearson(),
    Pearson("hutchinson", 8),
    GammaMoments(),
    Block(),
    Block(2, variance="pairs"),
    Block(n_blocks=3, null="weighted_chi2"),
    DistributionFree(),
    DistributionFree("biased"),
]
RNG = np.random.default_rng(0)
N = 45
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 2.0, N)
Y = RNG.normal(MU, SIGMA) + 0.4
DRAWS = RNG.normal(MU[:, None], SIGMA[:, None], (N, 4))


def run(method: Any, y: Any, pred: Any, **options: Any) -> Outcome:
    return method.run(make_setup(y, pred, rng=3, n_resamples=199, pool=True, **options))


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_same_seed_same_pvalue(method: Any) -> None:
    first, second = (run(method, Y, wc.Normal(MU, SIGMA)) for _ in range(2))
    assert first.pvalue == second.pvalue
    assert first.statistic == second.statistic


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("engine", [Tiled(tile=(3, 8), threads=1), Tiled(tile=(16, 5), threads=3)], ids=str)
def test_tiles_and_threads_do_not_matter(method: Any, engine: Tiled) -> None:
    expected = run(method, Y, wc.Normal(MU, SIGMA))
    found = run(method, Y, wc.Normal(MU, SIGMA), engine=engine)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-9)


@pytest.mark.parametrize("method", METHODS, ids=repr)
@pytest.mark.parametrize("family", ["normal", "draws"])
def test_the_unit_does_not_matter(method: Any, family: str) -> None:
    """Metres or millimetres, and where zero is."""

    def of(scale: float, shift: float) -> float:
        y = scale * Y + shift
        if family == "normal":
            return run(method, y, wc.Normal(scale * MU + shift, scale * SIGMA)).pvalue
        return run(method, y, wc.Samples(scale * DRAWS + shift)).pvalue

    assert of(1000.0, 70.0) == pytest.approx(of(1.0, 0.0), rel=1e-8)


@pytest.mark.parametrize(
    "method", [Pearson(), GammaMoments(), Spectrum(), DistributionFree("biased")], ids=repr
)
def test_the_order_of_cases_does_not_matter(method: Any) -> None:
    kernel = wc.kernels.paper_kernel
    order = np.random.default_rng(1).permutation(N)
    expected = run(method, Y, wc.Normal(MU, SIGMA), kernel=kernel)
    found = run(method, Y[order], wc.Normal(MU[order], SIGMA[order]), kernel=kernel)
    assert found.pvalue == pytest.approx(expected.pvalue, rel=1e-9)
    assert found.statistic == pytest.approx(expected.statistic, rel=1e-10)


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_multiple_of_the_kernel_does_not_matter(method: Any) -> None:
    kernel = wc.kernels.paper_kernel
    found = [run(method, Y, wc.Normal(MU, SIGMA), kernel=k).pvalue for k in (kernel, 50.0 * kernel)]
    assert found[1] == pytest.approx(found[0], rel=1e-9)


def test_names_of_clusters_do_not_matter() -> None:
    """Clusters keep their signs where their order is kept."""
    groups = np.arange(N) // 4
    found = [
        run(Multiplier(), Y, wc.Normal(MU, SIGMA), groups=labels).pvalue
        for labels in (groups, 100 + 3 * groups, [f"patient {g:03d}" for g in groups])
    ]
    assert found[0] == found[1] == found[2]
