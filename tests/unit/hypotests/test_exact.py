"""The exact test: its statistics, exchanged draws, ties, early stopping."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.hypotests import Exact
from wellcal.hypotests.pvalues import monte_carlo_pvalue, tie_width
from wellcal.hypotests.resampling.statistics import BlockStatistic, skce_statistic
from wellcal.hypotests.resampling.targets import draw_targets
from wellcal.hypotests.setup import make_setup, pool_draws
from wellcal.kernels import Delta, ExpDistance, Gaussian, Joint, TotalVariation, Wasserstein, paper_kernel
from wellcal.measures._skce import resolve_block_size
from wellcal.measures.target_sets.resampled import ResampledSKCE

from ...statistical.designs import check_counts, check_value

RNG = np.random.default_rng(21)
N = 18
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
Y = RNG.normal(MU, SIGMA)
PRED = wc.Normal(MU, SIGMA)


def run(method: Any = "exact", y: Any = Y, pred: Any = PRED, **options: Any) -> Any:
    options = {"rng": 2, "n_resamples": 199, "keep_null": True, **options}
    return wc.calibration_test(y, pred, method=method, **options)


def drawn_sets(setup: Any, count: int) -> np.ndarray:
    return draw_targets(setup.predictions, np.random.default_rng(3), count, setup.targets)


# -- statistics ---------------------------------------------------------------------------------------


def test_draws_are_skce_of_targets_from_the_predictions() -> None:
    """By hand: the same stream, R sets of targets, one estimate for each with the same kernel."""
    found = run(n_resamples=99)
    kernel = wc.default_kernel(PRED)
    key = np.random.default_rng(2).integers(2**64, size=2, dtype=np.uint64)
    drawn = np.random.Generator(np.random.Philox(key=key)).normal(MU, SIGMA, (99, N))
    expected = [N * float(wc.skce(y, PRED, kernel=kernel)) for y in drawn]
    np.testing.assert_allclose(found.null, expected, rtol=1e-9, atol=1e-12)
    assert found.statistic == pytest.approx(N * float(wc.skce(Y, PRED)), rel=1e-12)
    assert found.pvalue == (1 + np.sum(np.array(expected) >= found.statistic)) / 100


@pytest.mark.parametrize("block_size", [2, 5, "sqrt", None, 18], ids=str)
def test_blocks(block_size: Any) -> None:
    found = run(statistic="block", block_size=block_size)
    expected = N * float(wc.skce(Y, PRED, estimator="block", block_size=block_size))
    assert found.statistic == pytest.approx(expected, rel=1e-9)
    setup = make_setup(Y, PRED, rng=0)
    sets = drawn_sets(setup, 7)
    size = resolve_block_size(block_size, N)
    by_hand = [
        N * float(wc.skce(y, PRED, kernel=setup.kernel, estimator="block", block_size=size)) for y in sets
    ]
    np.testing.assert_allclose(BlockStatistic(setup, size)(sets), by_hand, rtol=1e-9)


def test_blocks_in_pieces() -> None:
    setup = make_setup(Y, PRED, rng=0)
    sets = drawn_sets(setup, 7)
    together = BlockStatistic(setup, 4)(sets)
    with limited(work=1):
        np.testing.assert_allclose(BlockStatistic(setup, 4)(sets), together, rtol=1e-12)


def test_locations() -> None:
    few, many = run(statistic="cme", locations=4), run(statistic="cme", locations=30)
    assert few.statistic == pytest.approx(run("cme", locations=4).statistic, rel=1e-9)
    for found in (few, many):
        assert found.statistic_label == "Q"
        assert found.pvalue == (1 + np.sum(found.null >= found.statistic)) / 200


def product(P: Any, y: Any, Q: Any, z: Any) -> Any:
    """The kernel of the paper, written as one that does not factor."""
    left = np.hypot(P.loc[:, None] - Q.loc[None, :], P.scale[:, None] - Q.scale[None, :])
    return np.exp(-left - 0.5 * (np.asarray(y)[:, None] - np.asarray(z)[None, :]) ** 2)


def test_kernels_that_do_not_factor() -> None:
    lowering = wc.Lowering(nodes=64)
    setups = [
        make_setup(Y[:8], PRED[:8], kernel, expectations=lowering)
        for kernel in (paper_kernel, Joint(product))
    ]
    sets = drawn_sets(setups[0], 4)
    values = [skce_statistic(setup)(sets) for setup in setups]
    np.testing.assert_allclose(values[1], values[0], rtol=1e-6)


# -- a user's statistic -------------------------------------------------------------------------------


def test_any_function_is_a_statistic() -> None:
    seen: list[np.ndarray] = []

    def mean_error(y: Any, pred: Any) -> float:
        assert pred is not None
        seen.append(np.asarray(y))
        return abs(float(np.mean(y - pred.loc)))

    found = run(statistic=mean_error)
    assert found.statistic_label == "mean_error"
    assert found.statistic == abs(np.mean(Y - MU))
    assert len(seen) == 200
    np.testing.assert_array_equal(seen[0], Y)
    np.testing.assert_allclose(found.null, [abs(np.mean(y - MU)) for y in seen[1:]])
    assert found.pvalue == (1 + np.sum(found.null >= found.statistic)) / 200
    assert run(statistic=mean_error, y=Y + 2.0).pvalue == 1 / 200


def test_targets_come_in_the_users_form() -> None:
    words = np.array(["no", "maybe", "yes"])
    probs = RNG.dirichlet(np.ones(3), 12)
    labels = words[RNG.integers(0, 3, 12)]
    seen: set[str] = set()

    def share(y: Any, pred: Any) -> float:
        seen.update(y)
        pred.check_targets(y)
        return float(np.mean(y == "yes"))

    run(y=labels, pred=wc.Categorical(probs, classes=words), statistic=share)
    assert seen == set(words)
    support = np.array([-1.0, 0.5, 4.0])
    found = run(
        y=support[RNG.integers(0, 3, 12)],
        pred=wc.Categorical(probs, support=support),
        statistic=lambda y, pred: abs(float(np.mean(y - pred.mean()))),
    )
    assert np.isfinite(found.statistic)


@pytest.mark.parametrize(
    ("function", "error", "message"),
    [
        (lambda y, pred: float("nan"), ValueError, "nan for the observed targets"),
        (
            lambda y, pred: 0.0 if y is Y or np.array_equal(y, Y) else np.nan,
            ValueError,
            r"drawn targets \(set 1\)",
        ),
        (lambda y, pred: None, TypeError, "must return a number, found NoneType for the observed"),
        (lambda y, pred: y, TypeError, "must return a number, found ndarray"),
    ],
)
def test_functions_that_return_no_number(function: Any, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        run(statistic=function)


# -- draws --------------------------------------------------------------------------------------------

DRAWS = RNG.normal(MU[:, None], 1.0, (N, 4))


def test_a_function_sees_draws_exchanged_with_the_target() -> None:
    calls: list[tuple[np.ndarray, np.ndarray]] = []

    def record(y: Any, pred: Any) -> float:
        assert isinstance(pred, wc.Samples)
        assert pred.kind == "draws"
        calls.append((np.asarray(y), np.asarray(pred.values)))
        return float(np.mean((y - pred.mean()) ** 2))

    run(pred=wc.Samples(DRAWS), statistic=record, n_resamples=499)
    np.testing.assert_array_equal(calls[0][0], Y)
    np.testing.assert_array_equal(calls[0][1], DRAWS)
    pool = np.concatenate([DRAWS, Y[:, None]], axis=1)
    chosen = np.empty((499, N), int)
    for r, (y, values) in enumerate(calls[1:]):
        assert values.shape == DRAWS.shape
        together = np.concatenate([values, y[:, None]], axis=1)
        np.testing.assert_array_equal(np.sort(together, axis=1), np.sort(pool, axis=1))
        chosen[r] = np.argmax(pool == y[:, None], axis=1)
    check_counts(
        "exchanged draws", np.bincount(chosen.ravel(), minlength=5), np.full(5, chosen.size / 5), find=0.15
    )
    pairs = np.bincount(5 * chosen[:, 0] + chosen[:, 1], minlength=25)
    check_counts("exchanged draws", pairs, np.full(25, 499 / 25), find=0.5)


def test_skce_of_exchanged_draws_by_definition() -> None:
    """k_P between pools; the prediction is what is left of the pool once the target is taken out."""
    n = 6
    kernel = ExpDistance(Wasserstein(), 0.8) @ Gaussian(0.7)
    setup = make_setup(Y[:n], wc.Samples(DRAWS[:n]), kernel, pool=True)
    pool = np.concatenate([DRAWS[:n], Y[:n, None]], axis=1)
    np.testing.assert_array_equal(setup.predictions.values, pool)
    chosen = np.concatenate([np.full((1, n), 4), np.random.default_rng(0).integers(5, size=(6, n))])
    found = skce_statistic(setup)(pool[np.arange(n), chosen])

    def k(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.exp(-0.5 * ((a[:, None] - b[None, :]) / 0.7) ** 2).mean())

    for value, out in zip(found, chosen, strict=True):
        total = 0.0
        for i, j in itertools.combinations(range(n), 2):
            distance = math.sqrt(np.mean((np.sort(pool[i]) - np.sort(pool[j])) ** 2))
            left, right = np.delete(pool[i], out[i]), np.delete(pool[j], out[j])
            u, v = pool[i, [out[i]]], pool[j, [out[j]]]
            total += math.exp(-distance / 0.8) * (k(left, right) - k(left, v) - k(u, right) + k(u, v))
        assert value == pytest.approx(2.0 * total / (n - 1), rel=1e-9, abs=1e-13)


def test_vectors_and_objects_are_pooled() -> None:
    draws = RNG.normal(size=(5, 3, 2))
    y = RNG.normal(size=(5, 2))
    pooled = pool_draws(y, wc.Samples(draws))
    assert pooled.kind == "atoms"
    assert pooled.values.shape == (5, 4, 2)
    np.testing.assert_array_equal(pooled.values[:, -1], y)
    setup = make_setup(y, wc.Samples(draws, kind="atoms"), pool=True)
    assert setup.pooled is None  # atoms are the prediction
    assert setup.problem.kernel == setup.kernel


def test_pooling_shows_in_numbers_and_not_in_the_kernel() -> None:
    """P - d(y) is (S + 1) / S of pool - d(y): h is larger by the square, and nothing else is told of it."""
    pred = wc.Samples(DRAWS)
    setup = make_setup(Y, pred, paper_kernel, pool=True)
    assert setup.kernel == paper_kernel
    assert setup.problem.kernel == (5 / 4) ** 2 * paper_kernel
    assert setup.estimate.kernel == paper_kernel
    for method in ("exact", "pearson", "block", "cme", "multiplier"):
        found = run(method, pred=pred, kernel=paper_kernel)
        assert found.kernel == found.estimate.kernel == paper_kernel
        assert found.guarantees == paper_kernel.guarantees(setup.predictions)
        assert "pooled" in found.estimate.provenance
        assert "pooled" not in found.provenance


# -- ties ---------------------------------------------------------------------------------------------

PROBS = np.array([0.25, 0.25, 0.25, 0.5, 0.5, 0.75, 0.75, 0.75])
ALL_TARGETS = np.array(list(itertools.product([0, 1], repeat=8)))
CHANCES = np.prod(np.where(ALL_TARGETS == 1, PROBS, 1.0 - PROBS), axis=1)


def enumerated() -> tuple[np.ndarray, np.ndarray]:
    """The statistic of all 256 sets of targets: by our batches, and as integers that tell ties apart.

    With p in quarters, k_P takes three values and every h_ij is k_P times (p - y)(p' - y') times a constant:
    the numerators of these are integers, and two statistics are equal just if all three sums of them are.
    """
    setup = make_setup(ALL_TARGETS[0], wc.Bernoulli(PROBS), ExpDistance(TotalVariation(), 0.5) @ Delta())
    values = ResampledSKCE(setup, [setup.kernel])(ALL_TARGETS)[:, 0]
    quarters = np.rint(4 * (PROBS - ALL_TARGETS)).astype(int)
    apart = np.rint(4 * np.abs(PROBS[:, None] - PROBS[None, :])).astype(int)
    upper = np.triu(np.ones((8, 8), bool), 1)
    sums = [np.einsum("ri,ij,rj->r", quarters, (apart == a) & upper, quarters) for a in range(3)]
    return values, np.stack(sums, axis=1)


def test_ties_are_recognised_among_all_sets_of_targets() -> None:
    values, sums = enumerated()
    weights = np.exp(-np.arange(3) * 0.25 / 0.5)
    np.testing.assert_allclose(values, 2.0 * 2.0 * (sums @ weights) / 16 / 7, rtol=1e-12, atol=1e-14)
    width = tie_width(values)
    equal = (sums[:, None, :] == sums[None, :, :]).all(axis=2)
    close = np.abs(values[:, None] - values[None, :]) <= width
    np.testing.assert_array_equal(close, equal)
    assert len(np.unique(sums, axis=0)) < 100  # most sets of targets share their statistic with others


@pytest.mark.parametrize("resamples", [1, 7, 19, 99])
def test_the_level_is_kept_by_enumeration(resamples: int) -> None:
    """P(p <= a) over all observed and drawn targets, from the binomial number of draws as large."""
    values, sums = enumerated()
    width = tie_width(values)
    tail = np.array([CHANCES[values >= value - width].sum() for value in values])
    equal = (sums[:, None, :] == sums[None, :, :]).all(axis=2)
    exact_tail = np.array([CHANCES[(values >= v) | equal[i]].sum() for i, v in enumerate(values)])
    np.testing.assert_allclose(tail, exact_tail, rtol=1e-12)
    for count in range(1, resamples + 1):
        level = count / (resamples + 1)
        rejects = stats.binom.cdf(count - 1, resamples, np.minimum(tail, 1.0))
        assert float(CHANCES @ rejects) <= level * (1 + 1e-12)


def test_pvalues_of_all_pairs_of_sets() -> None:
    """R = 1 without any theory: each observed set with each drawn one."""
    values, _ = enumerated()
    distinct, index = np.unique(np.round(values, 12), return_inverse=True)
    mass = np.bincount(index, weights=CHANCES)
    table = np.array([[monte_carlo_pvalue(a, np.array([b])) for b in distinct] for a in distinct])
    assert set(np.unique(table)) == {0.5, 1.0}
    assert float(mass @ (table <= 0.5) @ mass) <= 0.5


def test_runs_on_all_sets_of_targets_keep_the_level() -> None:
    """`calibration_test` itself on each of the 256 sets; the chance of p <= a, up to the noise of R draws."""
    pred = wc.Bernoulli(PROBS)
    found = np.array([run(y=y, pred=pred, n_resamples=99, rng=i).pvalue for i, y in enumerate(ALL_TARGETS)])
    noise = math.sqrt(float(np.sum(CHANCES**2)) * 0.25)
    for alpha in (0.05, 0.1, 0.25, 0.5):
        rate = float(CHANCES @ (found <= alpha))
        # The noise is that of p-values around a bound: rates below it are no departure.
        check_value("all sets of targets", max(rate, alpha), alpha, error=noise, size=10**6, find=0.4)


# -- early stopping -----------------------------------------------------------------------------------


@pytest.mark.parametrize("stop_after", [1, 3, 10])
@pytest.mark.parametrize("statistic", ["skce", "block", "function"])
def test_stopping_early_is_by_definition(statistic: str, stop_after: int) -> None:
    chosen: Any = (
        (lambda y, pred: abs(float(np.mean(y - pred.loc)))) if statistic == "function" else statistic
    )
    full = run(Exact(statistic=chosen))
    found = run(Exact(statistic=chosen, stop_after=stop_after))
    exceeds = np.flatnonzero(full.null >= full.statistic)
    assert len(exceeds) >= stop_after  # the case is hopeless
    drawn = int(exceeds[stop_after - 1]) + 1
    assert found.pvalue == stop_after / drawn
    assert found.provenance["n_resamples"] == drawn
    assert f"after {drawn} of 199" in found.provenance["stopped"]
    np.testing.assert_array_equal(found.null, full.null[:drawn])


def test_functions_are_not_called_beyond_the_stop() -> None:
    calls: list[int] = []

    def count(y: Any, pred: Any) -> float:
        calls.append(1)
        return 0.0

    found = run(Exact(statistic=count, stop_after=4))
    assert found.pvalue == 1.0
    assert len(calls) == 5


def test_promising_cases_draw_all() -> None:
    stopped, full = run(Exact(stop_after=5), y=Y + 3.0), run("exact", y=Y + 3.0)
    assert stopped.pvalue == full.pvalue == 1 / 200
    assert "stopped" not in stopped.provenance
    assert stopped.provenance["n_resamples"] == 199
