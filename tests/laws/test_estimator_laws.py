"""Laws of the estimators, for any data: symmetry, order, blocks, linearity in the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose

import wellcal as wc
from wellcal.kernels import (
    Callable,
    Delta,
    ExpDistance,
    Gaussian,
    Kernel,
    Laplacian,
    MaximumMeanDiscrepancy,
    RootCovariance,
    TotalVariation,
    Wasserstein,
    paper_kernel,
)
from wellcal.problem.problem import prepare

from ..statistical.designs import check_mean

law = settings(max_examples=25, derandomize=True, deadline=None)
places = st.floats(-5.0, 5.0)
scales = st.floats(0.01, 10.0)


@dataclass
class Data:
    """Targets, predictions, and a kernel with another that can be added to it."""

    y: Any
    pred: wc.Predictions
    kernel: Kernel
    other: Kernel

    @property
    def n(self) -> int:
        return len(self.pred)

    def skce(self, **options: Any) -> float:
        return float(wc.skce(self.y, self.pred, **{"kernel": self.kernel, **options}))

    def h(self) -> np.ndarray:
        problem = prepare(self.y, self.pred, self.kernel)
        return problem.h(problem.rows, problem.rows)

    def part(self, index: Any) -> Data:
        return Data(self.y[index], self.pred[index], self.kernel, self.other)


def vector(n: int, elements: Any = places) -> Any:
    return arrays(np.float64, n, elements=elements)


def probabilities(n: int, classes: int) -> Any:
    def normalised(weights: np.ndarray) -> np.ndarray:
        return weights / weights.sum(axis=1, keepdims=True)

    return arrays(np.float64, (n, classes), elements=st.floats(0.01, 1.0)).map(normalised)


@st.composite
def normal(draw: Any, n: int) -> Data:
    pred = wc.Normal(draw(vector(n)), draw(vector(n, scales)))
    return Data(draw(vector(n)), pred, paper_kernel, ExpDistance(Wasserstein(), 2.0) @ Laplacian(0.5))


@st.composite
def laplace(draw: Any, n: int) -> Data:
    pred = wc.Laplace(draw(vector(n)), draw(vector(n, scales)))
    kernel = ExpDistance(Wasserstein()) @ Laplacian()
    return Data(draw(vector(n)), pred, kernel, ExpDistance(Wasserstein(), power=2.0) @ Gaussian(2.0))


@st.composite
def vectors(draw: Any, n: int) -> Data:
    loc, factor = (
        draw(arrays(np.float64, (n, 2), elements=places)),
        draw(arrays(np.float64, (n, 2, 2), elements=st.floats(-1.0, 1.0))),
    )
    cov = factor @ factor.transpose(0, 2, 1) + 0.1 * np.eye(2)
    kernel = ExpDistance(RootCovariance()) @ Gaussian()
    y = draw(arrays(np.float64, (n, 2), elements=places))
    return Data(
        y, wc.MultivariateNormal(loc, cov), kernel, ExpDistance(RootCovariance(), 3.0) @ Gaussian(0.3)
    )


@st.composite
def classes(draw: Any, n: int) -> Data:
    pred = wc.Categorical(draw(probabilities(n, 3)), support=[0.0, 1.0, 3.0])
    y = draw(arrays(np.int64, n, elements=st.sampled_from([0, 1, 3])))
    kernel = ExpDistance(TotalVariation()) @ Delta()
    return Data(y, pred, kernel, ExpDistance(TotalVariation(), 0.3) @ Gaussian())


@st.composite
def counts(draw: Any, n: int) -> Data:
    pred = wc.Poisson(draw(vector(n, st.floats(0.0, 20.0))))
    y = draw(arrays(np.float64, n, elements=st.integers(0, 30).map(float)))
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(2.0)), power=2.0) @ Gaussian(2.0)
    return Data(y, pred, kernel, ExpDistance(Wasserstein(1)) @ Delta())


@st.composite
def atoms(draw: Any, n: int) -> Data:
    values = draw(arrays(np.float64, (n, 4), elements=places))
    pred = wc.Samples(values, draw(probabilities(n, 4)), kind="atoms")
    kernel = ExpDistance(MaximumMeanDiscrepancy(Laplacian()), power=2.0) @ Laplacian()
    return Data(draw(vector(n)), pred, kernel, ExpDistance(MaximumMeanDiscrepancy(Gaussian())) @ Gaussian())


@st.composite
def mixture(draw: Any, n: int) -> Data:
    members = [wc.Normal(draw(vector(n)), draw(vector(n, scales))) for _ in range(2)]
    members.append(wc.Laplace(draw(vector(n)), draw(vector(n, scales))))
    pred = wc.Mixture(members, draw(probabilities(n, 3)))
    metric = MaximumMeanDiscrepancy(Gaussian())
    return Data(
        draw(vector(n)),
        pred,
        ExpDistance(metric, power=2.0) @ Gaussian(),
        ExpDistance(metric) @ Gaussian(3.0),
    )


FAMILIES = (normal, laplace, vectors, classes, counts, atoms, mixture)
sizes = st.integers(2, 7)


def data(n: Any = sizes) -> Any:
    """Data of any family."""
    return st.tuples(st.sampled_from(FAMILIES), n).flatmap(lambda drawn: drawn[0](drawn[1]))


@law
@given(data())
def test_h_is_symmetric(case: Data) -> None:
    h = case.h()
    assert_allclose(h, h.T, rtol=0, atol=1e-14)


@law
@given(data())
def test_h_is_positive_semidefinite(case: Data) -> None:
    h = case.h()
    assert np.linalg.eigvalsh(0.5 * (h + h.T))[0] >= -1e-12 * case.n


@law
@given(data())
def test_estimators_are_the_means_of_h(case: Data) -> None:
    h, n = case.h(), case.n
    assert_allclose(case.skce(), (h.sum() - np.trace(h)) / (n * (n - 1)), rtol=0, atol=1e-13)
    assert_allclose(case.skce(estimator="biased"), h.mean(), rtol=0, atol=1e-13)


@law
@given(data(), st.randoms(use_true_random=False))
def test_the_order_of_cases_does_not_matter(case: Data, random: Any) -> None:
    order = np.array(random.sample(range(case.n), case.n))
    other = case.part(order)
    for estimator in ("unbiased", "biased"):
        assert_allclose(other.skce(estimator=estimator), case.skce(estimator=estimator), rtol=0, atol=1e-13)
    error = [wc.skce(c.y, c.pred, kernel=c.kernel).standard_error for c in (case, other)]
    if case.n > 2:
        assert_allclose(error[0], error[1], rtol=0, atol=1e-13)


@law
@given(data())
def test_the_default_kernel_does_not_depend_on_the_order_of_cases(case: Data) -> None:
    order = np.arange(case.n)[::-1]
    assert_allclose(case.part(order).skce(kernel=None), case.skce(kernel=None), rtol=0, atol=1e-8)


@law
@given(data())
def test_the_biased_estimate_is_not_negative(case: Data) -> None:
    assert case.skce(estimator="biased") >= -1e-14
    root = float(wc.kce(case.y, case.pred, kernel=case.kernel))
    assert_allclose(root**2, max(case.skce(estimator="biased"), 0.0), rtol=1e-12, atol=1e-300)


@law
@given(data())
def test_biased_and_unbiased_estimates_differ_by_the_diagonal(case: Data) -> None:
    n = case.n
    problem = prepare(case.y, case.pred, case.kernel)
    expected = (n - 1) / n * case.skce() + float(np.mean(problem.diagonal())) / n
    assert_allclose(case.skce(estimator="biased"), expected, rtol=0, atol=1e-13)
    assert_allclose(problem.diagonal(), np.diag(case.h()), rtol=0, atol=1e-13)


@law
@given(data())
def test_one_block_of_all_cases_is_the_unbiased_estimate(case: Data) -> None:
    assert_allclose(case.skce(estimator="block", block_size=case.n), case.skce(), rtol=0, atol=1e-13)


@law
@given(data(st.integers(4, 9)), st.integers(2, 4))
def test_the_block_estimate_is_the_mean_over_blocks(case: Data, size: int) -> None:
    count = case.n // size
    parts = [case.part(slice(k * size, (k + 1) * size)).skce() for k in range(count)]
    estimate = wc.skce(case.y, case.pred, kernel=case.kernel, estimator="block", block_size=size)
    assert_allclose(float(estimate), np.mean(parts), rtol=0, atol=1e-13)
    assert estimate.provenance["dropped"] == case.n - count * size
    if count > 1:
        assert_allclose(estimate.standard_error, np.std(parts, ddof=1) / np.sqrt(count), rtol=0, atol=1e-12)


@law
@given(data(), st.floats(0.01, 100.0))
def test_the_estimate_is_linear_in_the_kernel(case: Data, factor: float) -> None:
    for estimator in ("biased", "block"):
        one, two = (case.skce(estimator=estimator, kernel=k) for k in (case.kernel, case.other))
        assert_allclose(
            case.skce(estimator=estimator, kernel=case.kernel + factor * case.other),
            one + factor * two,
            rtol=0,
            atol=1e-13 * (1 + factor),
        )


@law
@given(data(), st.floats(0.1, 10.0))
def test_factors_of_either_side_are_factors_of_the_whole(case: Data, factor: float) -> None:
    kernel: Any = case.kernel
    expected = factor * case.skce()
    for scaled in (
        factor * kernel,
        (factor * kernel.predictions) @ kernel.targets,
        kernel.predictions @ (factor * kernel.targets),
    ):
        assert_allclose(case.skce(kernel=scaled), expected, rtol=0, atol=1e-13 * (1 + factor))


@law
@given(data())
def test_sums_of_factors_multiply_out(case: Data) -> None:
    kernel: Any = case.kernel
    other: Any = case.other
    together = (kernel.predictions + other.predictions) @ kernel.targets
    apart = kernel.predictions @ kernel.targets + other.predictions @ kernel.targets
    assert_allclose(case.skce(kernel=together), case.skce(kernel=apart), rtol=0, atol=1e-13)
    if isinstance(case.pred, wc.Poisson):
        return  # Delta beside a Gaussian is a grid for one and a Bessel function for the other
    together = kernel.predictions @ (kernel.targets + other.targets)
    apart = kernel.predictions @ kernel.targets + kernel.predictions @ other.targets
    assert_allclose(case.skce(kernel=together), case.skce(kernel=apart), rtol=0, atol=1e-9)


@law
@given(data(st.integers(3, 7)))
def test_repeating_all_cases_keeps_the_biased_estimate(case: Data) -> None:
    twice = case.part(np.tile(np.arange(case.n), 2))
    assert_allclose(twice.skce(estimator="biased"), case.skce(estimator="biased"), rtol=0, atol=1e-13)


# -- draws ------------------------------------------------------------------------------------------------


def brute_force(y: np.ndarray, values: np.ndarray, kernel: Any, *, own: bool) -> np.ndarray:
    """h between predictions of draws, from loops; `own` keeps pairs of a draw with itself on the diagonal."""
    n, size = values.shape
    k = kernel(
        np.concatenate([values.ravel(), y]), np.concatenate([values.ravel(), y])
    )  # draws, then targets
    h = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            places = [(i * size + s, j * size + t) for s in range(size) for t in range(size)]
            kept = [k[a, b] for a, b in places if own or a != b]
            left = np.mean([k[i * size + s, n * size + j] for s in range(size)])
            right = np.mean([k[n * size + i, j * size + t] for t in range(size)])
            h[i, j] = np.mean(kept) - left - right + k[n * size + i, n * size + j]
    return h


def constant() -> Kernel:
    """A kernel on predictions that is one."""
    return Callable(lambda P, Q: np.ones((len(P), len(Q))))


@law
@given(st.integers(1, 4), st.integers(2, 4), st.data())
def test_draws_leave_out_pairs_of_a_draw_with_itself(n: int, size: int, chosen: Any) -> None:
    values = chosen.draw(arrays(np.float64, (n, size), elements=places))
    y = chosen.draw(vector(n))
    for target in (Gaussian(1.5), Laplacian()):
        kernel = constant() @ target
        for kind, own in (("draws", False), ("atoms", True)):
            h = brute_force(y, values, target, own=own)
            pred = wc.Samples(values, kind=kind, axis=1)
            found = float(wc.skce(y, pred, kernel=kernel, estimator="biased"))
            assert_allclose(found, h.mean(), rtol=0, atol=1e-12)
            if n > 1:
                off = (h.sum() - np.trace(h)) / (n * (n - 1))
                assert_allclose(float(wc.skce(y, pred, kernel=kernel)), off, rtol=0, atol=1e-12)


@law
@given(st.data())
def test_draws_within_a_mixture_leave_out_pairs_with_themselves_only(chosen: Any) -> None:
    values = chosen.draw(arrays(np.float64, (2, 3, 2), elements=places))
    y = chosen.draw(vector(2))
    weight = 0.3
    target = Gaussian()
    ensemble = wc.Mixture([wc.Samples(values[..., 0]), wc.Samples(values[..., 1])], [weight, 1 - weight])
    found = float(wc.skce(y, ensemble, kernel=constant() @ target, estimator="biased"))
    total = 0.0
    for i in range(2):
        for j in range(2):
            a, b = values[i], values[j]
            both = np.empty((2, 2))
            for k in range(2):
                for m in range(2):
                    gram = target(a[:, k], b[:, m])
                    same = i == j and k == m
                    both[k, m] = (gram.sum() - np.trace(gram)) / 6 if same else gram.mean()
            w = np.array([weight, 1 - weight])
            left = w @ [target(a[:, k], [y[j]]).mean() for k in (0, 1)]
            right = w @ [target(b[:, k], [y[i]]).mean() for k in (0, 1)]
            total += w @ both @ w - left - right + target([y[i]], [y[j]])[0, 0]
    assert_allclose(found, total / 4, rtol=0, atol=1e-12)


@pytest.mark.parametrize("estimator", ["unbiased", "biased"])
def test_draws_estimate_the_value_of_their_distribution(estimator: str) -> None:
    """On average over draws, the estimate is that of the distribution drawn from; with atoms it is not."""
    rng = np.random.default_rng(12)
    n, size, repetitions = 5, 3, 200
    pred = wc.Normal(rng.normal(size=n), rng.uniform(0.5, 1.5, n))
    y = rng.normal(size=n)
    kernel = constant() @ Gaussian()
    exact = float(wc.skce(y, pred, kernel=kernel, estimator=estimator))
    found: dict[str, list[float]] = {"draws": [], "atoms": []}
    for _ in range(repetitions):
        values = pred.sample(rng, size).T
        for kind, values_of_kind in found.items():
            estimate = wc.skce(y, wc.Samples(values, kind=kind), kernel=kernel, estimator=estimator)
            values_of_kind.append(float(estimate))
    check_mean("estimates from draws", found["draws"], exact, find=0.45 * np.std(found["draws"]))
    if estimator == "biased":
        # Plugging the draws in adds (1 - <P, P>) / S to each h_ii.
        own = 1.0 - np.diag(wc.pairing(Gaussian(), pred, pred))
        excess = np.subtract(found["atoms"], found["draws"])
        expected = float(np.mean(own)) / size / n
        check_mean("estimates from draws", excess, expected, find=expected)
