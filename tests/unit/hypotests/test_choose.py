"""What "auto" stands for: by number of cases and family, never by targets."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import Block, Multiplier, Omnibus, Pearson
from wellcal.hypotests import automatic as choose
from wellcal.hypotests.automatic import FEWEST_RESAMPLES, LINEAR_BUDGET, PAIRS_BUDGET
from wellcal.hypotests.setup import make_setup
from wellcal.kernels import (
    Callable,
    ExpDistance,
    Gaussian,
    Joint,
    MaximumMeanDiscrepancy,
    Wasserstein,
    paper_kernel,
)
from wellcal.predictions import Predictions

from ...engines.examples import EXAMPLES


def normals(n: int, **options: Any) -> Any:
    rng = np.random.default_rng(n)
    mu = rng.normal(size=n)
    return make_setup(rng.normal(mu), wc.Normal(mu, np.ones(n)), paper_kernel, **options)


def chosen(n: int, **options: Any) -> choose.Choice:
    return choose.choose(normals(n, **options))


@pytest.mark.parametrize(
    ("n", "method", "resamples"),
    [
        (2, Omnibus(), 999),
        (100, Omnibus(), 999),
        (150, Omnibus(), 999),
        (250, Omnibus(pairs=False), 999),
        (1_000, Omnibus(pairs=False), 999),
        (10_000, Omnibus(pairs=False), 999),
        (50_000, Omnibus(pairs=False), 999),
        (100_000, Omnibus(pairs=False), 499),
        (400_000, Omnibus(pairs=False), 199),
    ],
)
def test_by_number_of_cases(n: int, method: Any, resamples: int) -> None:
    found = chosen(n)
    assert found.method == method
    assert found.n_resamples == resamples
    if n > 50_000:
        with pytest.warns(UserWarning, match="199 are drawn") if n > 300_000 else nullcontext():
            assert chosen(n, n_resamples=999).n_resamples == 999, "as asked for"


def test_too_many_cases_for_exact_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "PAIRS_BUDGET", 1e3)
    monkeypatch.setattr(choose, "LINEAR_BUDGET", 1e3)
    found = chosen(100)
    assert found.method == Pearson()
    assert "100 cases are too many for exact tests" in found.reason
    monkeypatch.setattr(choose, "TRIANGLE_BUDGET", 1e3)
    found = chosen(100)
    assert found.method == Block()
    assert "exceed 1,000" in found.reason
    assert "pearson is stronger" in found.alternatives


def test_a_kernel_of_low_rank_before_fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    from wellcal.measures.target_sets.resampled import ResampledSKCE

    setup = normals(50)
    cost = ResampledSKCE(setup, [setup.kernel]).cost
    monkeypatch.setattr(choose, "PAIRS_BUDGET", 999.0 * cost)
    assert chosen(50).method == Omnibus()
    monkeypatch.setattr(choose, "PAIRS_BUDGET", 998.0 * cost)
    assert (chosen(50).method, chosen(50).n_resamples) == (Omnibus(pairs=False), 999)
    assert chosen(50, n_resamples=998).method == Omnibus()  # who wants fewer can have all pairs


def test_resamples_shrink_before_the_method_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choose, "PAIRS_BUDGET", 0.0)
    cost = choose.linear_cost(normals(50))
    monkeypatch.setattr(choose, "LINEAR_BUDGET", 400.0 * cost)
    assert chosen(50).n_resamples == 400
    assert chosen(50, n_resamples=99).n_resamples == 99
    monkeypatch.setattr(choose, "LINEAR_BUDGET", 199.0 * cost)
    assert chosen(50).n_resamples == FEWEST_RESAMPLES == 199
    monkeypatch.setattr(choose, "LINEAR_BUDGET", 198.0 * cost)
    assert chosen(50).method == Pearson()


def test_nothing_stands_in_for_a_joint_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    joint = Joint(lambda P, y, Q, z: np.ones((len(P), len(Q))))
    mu = np.zeros(20)
    setup = make_setup(mu, wc.Normal(mu, np.ones(20)), joint, expectations=wc.Lowering(nodes=8))
    cost = choose.pairs_cost(setup)
    monkeypatch.setattr(choose, "PAIRS_BUDGET", 0.0)
    monkeypatch.setattr(choose, "JOINT_BUDGET", 300.0 * cost)
    found = choose.choose(setup)
    assert (found.method, found.n_resamples) == (Omnibus(), 300)


@pytest.mark.parametrize("n", [10, 3_000, 40_000])
def test_budgets_are_kept(n: int) -> None:
    from wellcal.measures.target_sets.resampled import ResampledSKCE

    setup = normals(n)
    found = choose.choose(setup)
    assert isinstance(found.method, Omnibus)
    if found.method.pairs:
        assert ResampledSKCE(setup, [paper_kernel]).cost * found.n_resamples <= PAIRS_BUDGET
    assert choose.linear_cost(setup) * found.n_resamples <= LINEAR_BUDGET


def test_by_family() -> None:
    for name, example in EXAMPLES.items():
        setup = make_setup(
            example.targets, example.build(), expectations=example.expectations, pool=True, rng=0
        )
        expected = Pearson() if name == "Mixture with draws" else Omnibus()
        assert choose.choose(setup).method == expected, name


def test_joint_kernels_cost_what_their_problem_costs() -> None:
    joint = Joint(lambda P, y, Q, z: np.ones((len(P), len(Q))))
    mu = np.zeros(20)
    setup = make_setup(mu, wc.Normal(mu, np.ones(20)), joint, expectations=wc.Lowering(nodes=8))
    assert choose.pairs_cost(setup) == 200.0 * setup.problem.cost.entries
    assert choose.choose(setup).method == Omnibus()


def test_clusters_decide_first() -> None:
    found = chosen(100, groups=np.arange(100) // 2)
    assert found.method == Omnibus()
    assert "none of the others honours groups" in found.alternatives


def test_clusters_of_too_many_cases_or_without_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = np.arange(100) // 2
    monkeypatch.setattr(choose, "TRIANGLE_BUDGET", 100.0)
    found = chosen(100, groups=pairs)
    assert found.method == Omnibus(pairs=False)
    assert "without the SKCE" in found.reason
    monkeypatch.setattr(choose, "why_not_resampled", lambda _: "there is nothing to draw from")
    found = chosen(100, groups=pairs)
    assert found.method == Multiplier()
    assert found.reason.endswith("there is nothing to draw from")


def test_vectors_cost_more() -> None:
    rng = np.random.default_rng(0)
    loc = rng.normal(size=(200, 30))
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(5.0)), power=2.0) @ Gaussian(5.0)
    setup = make_setup(loc, wc.DiagonalNormal(loc, np.ones(loc.shape)), kernel)
    assert choose._coordinates(setup) == 30


# -- never by targets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLES)
def test_targets_do_not_matter(name: str) -> None:
    """Observed, permuted, and far-off targets: one choice, one reason, one number of resamples."""
    example = EXAMPLES[name]
    observed = example.targets
    others = [observed[::-1], np.repeat(observed[:1], len(observed), axis=0)]
    if observed.dtype.kind == "f" and observed.max() > 1.0 and "support" not in name and "plane" not in name:
        others.append(np.abs(observed) * 1e3)
    choices = [
        choose.choose(make_setup(y, example.build(), expectations=example.expectations, pool=False))
        for y in [observed, *others]
    ]
    assert all(choice == choices[0] for choice in choices[1:])


@pytest.mark.parametrize("n", [50, 80, 500, 3_000])
def test_wild_targets_do_not_matter(n: int) -> None:
    """Far-off targets are costly to expand into features, which must not make the choice."""
    rng = np.random.default_rng(0)
    mu = rng.normal(size=n)
    pred = wc.Normal(mu, np.ones(n))
    choices = [choose.choose(make_setup(y, pred, pool=True)) for y in (rng.normal(mu), np.zeros(n), 1e4 * mu)]
    assert all(choice == choices[0] for choice in choices[1:])


@pytest.mark.parametrize("n", [50, 80])
def test_wild_counts_do_not_matter(n: int) -> None:
    rng = np.random.default_rng(0)
    rate = rng.gamma(2.0, 2.0, n)
    choices = [
        choose.choose(make_setup(y, wc.Poisson(rate)))
        for y in (rng.poisson(rate), np.zeros(n), np.arange(n) * 100)
    ]
    assert all(choice == choices[0] for choice in choices[1:])


@pytest.mark.parametrize("sampled", [True, False])
def test_cheaper_methods_are_chosen_without_targets_too(
    sampled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between pearson and block the cost of a pair decides, which targets change as well."""
    monkeypatch.setattr(choose, "why_not_resampled", lambda predictions: "it cannot be drawn from")
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(40, 30))
    pred = wc.Samples(draws, kind="atoms")
    if not sampled:
        monkeypatch.setattr(wc.Samples, "draw", Predictions.draw)
    targets = (draws[:, 0], 1e5 * draws[:, 1])
    setups = [make_setup(y, pred, expectations=wc.Lowering(nodes=8)) for y in targets]
    assert setups[0].problem.cost.evaluations != setups[1].problem.cost.evaluations
    for budget in (1e3, 2e4, 1e5, 1e9):
        monkeypatch.setattr(choose, "TRIANGLE_BUDGET", budget)
        first, second = (choose.choose(setup) for setup in setups)
        assert first == second


def test_functions_for_one_pair_count_as_what_they_cost() -> None:
    """A call of a user's function takes as long as hundreds of evaluations on arrays."""
    mu = np.linspace(-1.0, 1.0, 20)

    def found(**options: Any) -> choose.Choice:
        function = Callable(_alike, **options)
        return choose.choose(
            make_setup(mu, wc.Normal(mu, np.ones(20)), ExpDistance(Wasserstein()) @ function)
        )

    assert found(vectorized=True).method == Omnibus()
    assert found().method == Omnibus(pairs=False)
    many = make_setup(np.zeros(20_000), wc.Normal(np.zeros(20_000), 1.0), paper_kernel)
    assert choose.linear_cost(many) * FEWEST_RESAMPLES < LINEAR_BUDGET
    slow = replace(many, kernel=ExpDistance(Wasserstein()) @ Callable(_alike))
    assert choose.linear_cost(slow) * FEWEST_RESAMPLES > LINEAR_BUDGET


def _alike(x: Any, y: Any) -> Any:
    """Of two numbers, or of all pairs of two batches."""
    return np.exp(-0.5 * np.subtract.outer(x, y) ** 2)


def test_the_result_tells_the_choice() -> None:
    mu = np.linspace(-1.0, 1.0, 30)
    y = mu + np.random.default_rng(0).normal(size=30)
    found = wc.calibration_test(y, wc.Normal(mu, np.ones(30)), rng=0)
    setup = make_setup(y, wc.Normal(mu, np.ones(30)))
    expected = choose.choose(setup)
    assert found.provenance["chosen"] == expected.reason
    assert found.provenance["alternatives"] == expected.alternatives
    assert found.provenance["n_resamples"] == expected.n_resamples
