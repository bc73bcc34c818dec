"""Wide predictions of counts, on a few nodes and by a few representatives, beside plain sums."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import threadpoolctl  # pyright: ignore[reportMissingTypeStubs]
from scipy import signal, stats

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations import continuations, count_plan, count_span, lattice
from wellcal.expectations.continuations import windows
from wellcal.expectations.count_basis import representatives_of
from wellcal.expectations.count_panels import gauss_rule, polynomials
from wellcal.expectations.count_span import CountSpan, span_of
from wellcal.expectations.decompose import Targets
from wellcal.expectations.lattice import lattice_of
from wellcal.problem.problem import prepare

MEANS = np.array([0.0, 0.3, 7.0, 150.0, 1000.0])
DISPERSIONS = np.array([1.0, 4.0, 0.01, 1.0, 0.5])
BATCHES = {
    "Poisson": wc.Poisson(MEANS),
    "NegativeBinomial": wc.NegativeBinomial(MEANS, DISPERSIONS),
}
TARGETS = np.array([0.0, 2.0, 9.0, 21_000.0, 777.0])
GAUSSIANS = [0.1, 1.3, 1.5, 6.0, 40.0, 900.0]


def table(predictions: Any, top: int = 26_000) -> np.ndarray:
    """Probabilities of all counts up to `top`, by scipy."""
    mean, counts = np.asarray(predictions.mean())[:, None], np.arange(top)
    if isinstance(predictions, wc.Poisson):
        return stats.poisson.pmf(counts, mean)
    dispersion = np.asarray(predictions.dispersion)[:, None]
    return stats.nbinom.pmf(counts, 1.0 / dispersion, 1.0 / (1.0 + dispersion * mean))


def by_sums(kernel: Any, p: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``E k(Z, Z')``, ``E k(Z, y)`` and ``k(y, y')`` for a kernel of differences."""
    lags = np.arange(-p.shape[1] + 1, p.shape[1])
    smooth = signal.fftconvolve(p, kernel(lags)[None, :], mode="valid", axes=1)
    return smooth @ p.T, smooth[:, y.astype(int)], kernel(y[:, None] - y[None, :])


def gaussian(scale: float) -> Any:
    return lambda x: np.exp(-0.5 * (x / scale) ** 2)


# -- rules -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "size"), [(64, 16), (160, 24), (5000, 24), (97, 48), (10**6, 48)])
def test_a_rule_sums_polynomials_over_counts(count: int, size: int) -> None:
    nodes, weights = gauss_rule(count, size)
    x = 2.0 * nodes / (count - 1) - 1.0
    for degree in (0, 1, 2, size, 2 * size - 2, 2 * size - 1):
        if count <= 5000:
            exact = float(sum(Fraction(2 * j - count + 1, count - 1) ** degree for j in range(count)))
        else:
            exact = float(np.sum((2.0 * np.arange(count) / (count - 1) - 1.0) ** degree))
        assert weights @ x**degree == pytest.approx(exact, rel=1e-11, abs=1e-11 * count)


def test_polynomials_are_orthonormal() -> None:
    values = polynomials(200, 24, np.arange(200.0))
    np.testing.assert_allclose(values @ values.T, np.eye(24), atol=1e-13)


@pytest.mark.parametrize("name", BATCHES)
def test_windows_hold_the_mass(name: str) -> None:
    low, high = windows(BATCHES[name])
    upper = BATCHES[name].cdf(high)
    below = np.where(low > 0, BATCHES[name].cdf(low - 1.0), 0.0)
    assert (upper >= 1.0 - 1e-13).all()
    assert (below <= 1e-13).all()


# -- expectations ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", GAUSSIANS)
@pytest.mark.parametrize("name", BATCHES)
def test_gaussian(name: str, scale: float) -> None:
    P = BATCHES[name]
    both, cross, observed = by_sums(gaussian(scale), table(P), TARGETS)
    kernel = k.Gaussian(scale)
    np.testing.assert_allclose(wc.pairing(kernel, P, P, expectations="closed"), both, rtol=0, atol=1e-12)
    found = wc.pairing(kernel, P, TARGETS, expectations="closed")
    np.testing.assert_allclose(found, cross, rtol=0, atol=1e-12)
    problem = prepare(TARGETS, P, k.ExpDistance(k.MaximumMeanDiscrepancy(kernel), 1e9, 2.0) @ kernel)
    h = both - cross - cross.T + observed
    np.testing.assert_allclose(problem.values(slice(None), slice(None)), h, rtol=0, atol=2e-12)
    np.testing.assert_allclose(problem.diagonal(), np.diag(h), rtol=0, atol=2e-12)


def test_delta_and_sums_of_kernels_with_wide_counts() -> None:
    """Refused once, with a reason that was false."""
    P = BATCHES["NegativeBinomial"]
    p = table(P)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, P), p @ p.T, rtol=0, atol=1e-13)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, TARGETS), p[:, TARGETS.astype(int)], atol=1e-13)
    mixed = 2.0 * k.Delta() + k.Gaussian(5.0) * 0.5
    both, cross, _ = by_sums(lambda x: 2.0 * (x == 0) + 0.5 * gaussian(5.0)(x), p, TARGETS)
    np.testing.assert_allclose(wc.pairing(mixed, P, P), both, rtol=0, atol=3e-12)
    np.testing.assert_allclose(wc.pairing(mixed, P, TARGETS), cross, rtol=0, atol=3e-12)


def test_what_is_refused_is_said() -> None:
    far = wc.NegativeBinomial(np.geomspace(1.0, 1e15, 500), np.full(500, 1e-9))
    with pytest.raises(ValueError, match="single counts, and these NegativeBinomial predictions lie so far"):
        wc.pairing(k.Delta(), far, far)


def test_mixtures_of_wide_counts() -> None:
    parts = [BATCHES["Poisson"], BATCHES["NegativeBinomial"]]
    weights = np.linspace(0.1, 0.9, 10).reshape(5, 2)
    weights /= weights.sum(axis=1, keepdims=True)
    p = sum(w[:, None] * table(part) for w, part in zip(weights.T, parts, strict=True))
    both, cross, _ = by_sums(gaussian(8.0), p, TARGETS)
    P = wc.Mixture(parts, weights)
    np.testing.assert_allclose(wc.pairing(k.Gaussian(8.0), P, P), both, rtol=0, atol=1e-12)
    np.testing.assert_allclose(wc.pairing(k.Gaussian(8.0), P, TARGETS), cross, rtol=0, atol=1e-12)


# -- representatives -------------------------------------------------------------------------------------


FAMILIES = ["Poisson", "dispersion 0.01", "dispersion 0.5", "dispersion 3", "dispersions 0.01 to 3"]


@pytest.mark.parametrize("family", FAMILIES)
def test_representatives_stand_for_all(family: str) -> None:
    means = np.concatenate([[0.0], np.geomspace(0.01, 500.0, 1199)])
    P: Any = wc.Poisson(means)
    if family.startswith("dispersion "):
        P = wc.NegativeBinomial(means, float(family.split()[1]))
    elif family != "Poisson":
        P = wc.NegativeBinomial(means, np.resize(np.geomspace(0.01, 3.0, 7), 1200))
        nodes = lattice_of([P])
        assert nodes is not None
        assert span_of(P, nodes, 10**8) is not None
        assert span_of(P, nodes, 1000) is None
    assert (representatives_of(P) is None) == family.startswith("dispersions")
    some = np.linspace(0, 1199, 12).astype(int)
    p = table(P[some], 60_000)
    for scale in (0.7, 4.0, 200.0):
        kernel = k.Gaussian(scale)
        scheme = count_plan.plan_of_counts(kernel, [P])
        assert scheme is not None
        rows = scheme.rows([(1.0, P)])
        found = scheme.form(rows, rows)(P.ops, rows, rows)[np.ix_(some, some)]
        y = np.array([0.0, 3.0, 480.0, 5000.0])
        both, cross, _ = by_sums(gaussian(scale), p, y)
        np.testing.assert_allclose(found, both, rtol=0, atol=1e-12)
        np.testing.assert_allclose(wc.pairing(kernel, P, y)[some], cross, rtol=0, atol=1e-12)
    np.testing.assert_allclose(wc.pairing(k.Delta(), P, P)[np.ix_(some, some)], p @ p.T, rtol=0, atol=1e-13)


def test_a_span_that_leaves_something_out_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    P = wc.NegativeBinomial(np.geomspace(0.5, 1000.0, 300), np.resize([0.5, 1.0, 2.0], 300))
    nodes = lattice_of([P])
    assert nodes is not None
    assert span_of(P, nodes, 10**8) is not None
    monkeypatch.setattr(count_span, "NOTHING", 1e-11)
    assert span_of(P, nodes, 10**8) is None


def test_one_prediction_unlike_all_others_is_in_the_span() -> None:
    dispersions = np.resize([0.5, 1.0, 2.0], 600)
    dispersions[17] = 1e-5
    P = wc.NegativeBinomial(np.geomspace(1.0, 800.0, 600)[::-1].copy(), dispersions)
    scheme = count_plan.plan_of_counts(k.Gaussian(3.0), [P])
    assert scheme is not None
    assert isinstance(scheme.memory.basis, CountSpan)
    rows = scheme.rows([(1.0, P)])
    found = scheme.form(rows, rows)(P.ops, rows, rows)
    some = np.array([17, 16, 300])
    both = by_sums(gaussian(3.0), table(P[some]), TARGETS)[0]
    np.testing.assert_allclose(found[np.ix_(some, some)], both, rtol=0, atol=1e-12)


def test_slices_of_a_batch_have_its_weights_in_the_span() -> None:
    P = wc.NegativeBinomial(np.geomspace(0.5, 1000.0, 300), np.resize([0.5, 1.0, 2.0], 300))
    nodes = lattice_of([P])
    assert nodes is not None
    found = span_of(P, nodes, 10**8)
    assert found is not None
    span, weights = found
    np.testing.assert_allclose(span.weights(P[40:60]), weights[40:60], rtol=0, atol=1e-14)


@pytest.mark.parametrize("dispersion", [None, 0.5, np.resize([0.5, 1.0, 2.0], 300)])
def test_equality_of_targets_and_many_predictions(dispersion: Any) -> None:
    """Targets meet representatives, and what predictions span, under a kernel without features."""
    means = np.geomspace(0.5, 1000.0, 300)
    P: Any = wc.Poisson(means) if dispersion is None else wc.NegativeBinomial(means, dispersion)
    y = np.resize([0.0, 1.0, 7.0, 480.0, 5000.0], 300)
    scheme = count_plan.plan_of_counts(k.Delta(), [P, Targets(y, P)])
    assert scheme is not None
    assert scheme.memory.basis is not None
    of_predictions, of_targets = ([(1.0, P)], [(1.0, Targets(y, P))])
    both = [*of_predictions, (-1.0, Targets(y, P))]
    some = np.arange(0, 300, 29)
    p, at = table(P[some], 30_000), y[some].astype(int)
    pairs, cross, equal = p @ p.T, p[:, at], (at[:, None] == at).astype(float)
    expected = {
        "predictions, targets": (of_predictions, of_targets, cross),
        "both, both": (both, both, pairs - cross - cross.T + equal),
        "both, targets": (both, of_targets, cross - equal),
        "targets, both": (of_targets, both, cross.T - equal),
    }
    for name, (left, right, values) in expected.items():
        rows = scheme.rows(left), scheme.rows(right)
        found = scheme.form(*rows)(P.ops, *rows)[np.ix_(some, some)]
        np.testing.assert_allclose(found, values, rtol=0, atol=1e-12, err_msg=name)


def test_predictions_of_nothing_but_zero() -> None:
    nothing = wc.Poisson(np.zeros(2))
    nodes = lattice_of([nothing])
    assert nodes is not None
    assert nodes.lattice.count == 1
    np.testing.assert_array_equal(wc.pairing(k.Gaussian(2.0), nothing, np.zeros(1)), np.ones((2, 1)))


def test_a_family_of_ones_own_has_neither_nodesbetween_counts_nor_representatives() -> None:
    class Doubled(wc.Poisson):
        def log_prob(self, y: Any) -> Any:
            return 2.0 * super().log_prob(y)

    batch = Doubled(np.linspace(1.0, 900.0, 300))
    assert continuations.CONTINUATIONS.find(Doubled) is None
    assert representatives_of(batch) is None
    found = lattice_of([batch])
    assert found is not None
    assert found.lattice.dense


# -- how much is done ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dispersion", "longest"),
    [(None, 300), (0.01, 200), (0.5, 120), (5.0, 120), ((0.05, 20.0), 140)],
    ids=str,
)
def test_products_are_short_for_means_up_to_a_thousand(dispersion: Any, longest: int) -> None:
    """The work for a pair is a product of this length, whatever the number of counts."""
    rng = np.random.default_rng(0)
    means = np.exp(rng.uniform(np.log(0.5), np.log(1000.0), 2000))
    if isinstance(dispersion, tuple):
        dispersion = np.exp(rng.uniform(*np.log(dispersion), 2000))
    P = wc.Poisson(means) if dispersion is None else wc.NegativeBinomial(means, dispersion)
    scheme = count_plan.plan_of_counts(k.Gaussian(10.0), [P])
    assert scheme is not None
    assert scheme.size <= longest


def test_wide_counts_of_any_dispersion_take_few_nodes() -> None:
    rng = np.random.default_rng(0)
    P = wc.NegativeBinomial(np.exp(rng.uniform(0.0, 7.0, 200)), np.exp(rng.normal(size=200)))
    found = lattice_of([P])
    assert found is not None
    assert found.lattice.count > 20_000
    assert found.lattice.size < 600


def test_nodes_are_chosen_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    original = count_plan.lattice_of
    monkeypatch.setattr(count_plan, "lattice_of", lambda batches: made.append(1) or original(batches))
    P = wc.NegativeBinomial(np.geomspace(1.0, 1e3, 60), np.linspace(0.1, 5.0, 60))
    wc.skce(P.sample(rng=0), P)
    assert len(made) == 1


# -- what preparing counts costs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dispersion", "low", "high"), [(50.0, 0.5, 1e3), (5.0, 1e-3, 1e4), (1e-3, 2e4, 4e4)]
)
def test_a_look_at_some_counts_finds_enough_representatives(
    dispersion: float, low: float, high: float
) -> None:
    P = wc.NegativeBinomial(np.geomspace(low, high, 600), dispersion)
    basis = representatives_of(P)
    assert basis is not None
    some = np.array([0, 3, 151, 299, 431, 598, 599])
    exact = np.asarray(basis.nodes.lattice.probabilities(P[some]))
    left = (basis.weights(P[some]) @ basis.probabilities - exact) * basis.nodes.lattice.weights()
    assert np.abs(left).sum(axis=1).max() <= 5e-13


def test_panels_that_are_too_long_are_seen_from_a_few_predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    P = wc.NegativeBinomial(
        np.exp(rng.uniform(np.log(0.5), np.log(1e3), 2000)), np.exp(rng.normal(size=2000))
    )
    plain, evaluated = lattice.between_counts, [0]

    def counted(predictions: Any, nodes: np.ndarray) -> np.ndarray:
        evaluated[0] += len(predictions) * len(nodes)
        return plain(predictions, nodes)

    monkeypatch.setattr(lattice, "between_counts", counted)
    found = lattice_of([P])
    assert found is not None
    kept = sum(block[1].size for block in found.blocks[0] if block is not None)
    assert evaluated[0] <= 1.6 * kept


def test_blas_has_one_thread_where_counts_are_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads would wait for the next small product, at full speed, through all that is between."""
    seen: list[int] = []

    def looked_at(*arguments: Any) -> Any:
        found = threadpoolctl.threadpool_info()
        seen.extend(library["num_threads"] for library in found if library["user_api"] == "blas")
        return span_of(*arguments)

    monkeypatch.setattr(count_plan, "span_of", looked_at)
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        P = wc.NegativeBinomial(np.geomspace(0.5, 1000.0, 300), np.resize([0.5, 1.0, 2.0], 300))
        assert count_plan.plan_of_counts(k.Gaussian(3.0), [P]) is not None
    assert set(seen) == {1}


def test_quantiles_of_single_levels_are_remembered_but_not_shared() -> None:
    P = wc.Poisson(np.array([1.0, 30.0]))
    first = P.quantile(0.25)
    first[0] = 99.0
    np.testing.assert_array_equal(P.quantile(0.25), stats.poisson.ppf(0.25, [1.0, 30.0]))
