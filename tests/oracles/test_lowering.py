"""Numerical expectations against quadrature of densities, and whether their error estimates hold."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from scipy.integrate import quad
from torch.overrides import TorchFunctionMode

import wellcal as wc
from wellcal import kernels as k
from wellcal.expectations.quadrature_error import Probe
from wellcal.predictions import Predictions, family, parameter, positive
from wellcal.problem.problem import prepare

from ..statistical.designs import check_value

SCALE = 0.7
Profile = Callable[[Any], Any]
KERNELS: dict[str, tuple[k.Kernel, Profile]] = {
    "Gaussian": (k.Gaussian(SCALE), lambda r: np.exp(-((r / SCALE) ** 2) / 2)),
    "Laplacian": (k.Laplacian(SCALE), lambda r: np.exp(-r / SCALE)),
    "Matern": (k.Matern(1.5, SCALE), lambda r: (1 + 3**0.5 * r / SCALE) * np.exp(-(3**0.5) * r / SCALE)),
    "RationalQuadratic": (k.RationalQuadratic(0.8, SCALE), lambda r: (1 + (r / SCALE) ** 2 / 1.6) ** -0.8),
}


# -- oracle: Gauss-Legendre panels on densities of scipy.stats ---------------------------------------------

NODES = 12
X, W = (0.5 * (t + s) for t, s in zip(np.polynomial.legendre.leggauss(NODES), (1.0, 0.0), strict=True))
LEVELS = np.concatenate([10.0 ** -np.arange(18.0, 1.0, -2.0), np.linspace(0.05, 0.5, 8)])


def panels(*distributions: Any, at: float | None = None) -> np.ndarray:
    """Ends of panels in which densities are smooth and the kernel hardly changes."""
    ends = [] if at is None else [at]
    for d in distributions:
        ends += [*d.ppf(LEVELS), *d.isf(LEVELS), *np.arange(d.ppf(1e-4), d.isf(1e-4), SCALE)]
        low = d.ppf(1e-18)
        if d.support()[0] == 0.0:  # densities may be a power there
            ends += list(np.geomspace(max(low, 1e-100), d.ppf(0.5), max(2, int(np.log(d.ppf(0.5) / low)))))
    found = np.unique([e for e in ends if np.isfinite(e)])
    return found[np.append(True, np.diff(found) > 1e-13 * np.abs(found[1:]))]


def expectation(profile: Profile, p: Any, q: Any) -> float:
    """``E k(|Z - Z'|)`` for a kernel that may have a kink at 0: a panel with itself is two triangles."""
    ends = panels(p, q)
    start, width = ends[:-1, None], np.diff(ends)[:, None]
    x, w = start + width * X, width * W
    flat = x.reshape(-1)
    values = profile(np.abs(flat[:, None] - flat[None, :])).reshape(*x.shape, *x.shape)
    blocks = np.einsum("ai,aibj,bj->ab", p.pdf(x) * w, values, q.pdf(x) * w, optimize=True)
    total = blocks.sum() - np.trace(blocks)
    step = (x - start)[:, :, None]
    below = start[:, :, None] + step * X
    inside = profile(x[:, :, None] - below) * (w[:, :, None] * step * W)
    for one, other in ((p, q), (q, p)):
        total += (one.pdf(x)[:, :, None] * other.pdf(below) * inside).sum()
    return float(total)


def expectation_at(profile: Profile, p: Any, y: float) -> float:
    ends = panels(p, at=y)
    x, w = ends[:-1, None] + np.diff(ends)[:, None] * X, np.diff(ends)[:, None] * W
    return float((p.pdf(x) * w * profile(np.abs(x - y))).sum())


@pytest.mark.parametrize("name", ["Gaussian", "Laplacian"])
def test_oracle_agrees_with_closed_forms(name: str) -> None:
    kernel, profile = KERNELS[name]
    p, q = stats.norm(0.0, 1.0), stats.laplace(0.8, 0.4)
    P, Q = wc.Normal([0.0], [1.0]), wc.Laplace([0.8], [0.4])
    assert expectation(profile, p, q) == pytest.approx(wc.pairing(kernel, P, Q)[0, 0], rel=1e-13)
    assert expectation(profile, q, q) == pytest.approx(wc.pairing(kernel, Q, Q)[0, 0], rel=1e-13)
    assert expectation_at(profile, q, 0.3) == pytest.approx(wc.pairing(kernel, Q, [0.3])[0, 0], rel=1e-13)


def test_oracle_agrees_with_adaptive_quadrature() -> None:
    profile = KERNELS["Laplacian"][1]
    p, q = stats.gamma(0.5, scale=0.5), stats.gamma(3.0, scale=0.5)

    def inner(y: float) -> float:
        # x = t^2 takes the singularity of the first density away.
        def integrand(t: float) -> float:
            return math.exp(-2 * t * t - abs(t * t - y) / SCALE) * 2 / math.sqrt(0.5 * math.pi)

        return sum(quad(integrand, *ends, epsabs=1e-12)[0] for ends in ((0.0, y**0.5), (y**0.5, 6.0)))

    outer = quad(lambda y: q.pdf(y) * inner(y), 0.0, 25.0, epsabs=1e-11, limit=200)[0]
    assert expectation(profile, p, q) == pytest.approx(outer, rel=1e-9)


# -- scalar families ---------------------------------------------------------------------------------------


def two(*values: float) -> np.ndarray:
    return np.array(values)


FAMILIES: dict[str, tuple[Any, list[Any]]] = {
    "StudentT": (
        wc.StudentT(two(12.0, 6.0), two(0.0, 1.0), two(1.0, 0.3)),
        [stats.t(12.0), stats.t(6.0, 1.0, 0.3)],
    ),
    "StudentT heavy": (
        wc.StudentT(two(3.0, 2.2), two(0.0, 1.0), two(1.0, 0.3)),
        [stats.t(3.0), stats.t(2.2, 1.0, 0.3)],
    ),
    "Gamma": (wc.Gamma(two(3.0, 1.2), two(0.5, 1.0)), [stats.gamma(3.0, scale=0.5), stats.gamma(1.2)]),
    "Gamma singular": (
        wc.Gamma(two(0.5, 0.3), two(0.5, 1.0)),
        [stats.gamma(0.5, scale=0.5), stats.gamma(0.3)],
    ),
    "LogNormal": (
        wc.LogNormal(two(0.0, 0.4), two(0.5, 1.0)),
        [stats.lognorm(0.5), stats.lognorm(1.0, scale=math.exp(0.4))],
    ),
    "Beta": (wc.Beta(two(2.0, 0.4), two(5.0, 3.0)), [stats.beta(2.0, 5.0), stats.beta(0.4, 3.0)]),
    "PowerExponential": (
        wc.PowerExponential(two(0.0, 1.0), two(1.0, 0.5), two(1.5, 4.0)),
        [stats.gennorm(1.5), stats.gennorm(4.0, 1.0, 0.5)],
    ),
    "PowerExponential peaked": (
        wc.PowerExponential(two(0.0, 1.0), two(1.0, 0.5), two(0.7, 1.0)),
        [stats.gennorm(0.7), stats.gennorm(1.0, 1.0, 0.5)],
    ),
}
ERROR = {"Gaussian": 1e-6, "Laplacian": 1e-3, "Matern": 5e-5, "RationalQuadratic": 1e-6}
"""What is reached by default: smooth kernels converge quickly, those with a kink at the origin slowly."""

ONE = k.Callable(lambda P, Q: np.ones((len(P), len(Q))), vectorized=True)
"""A constant kernel on predictions, so that h is the pairing of P - d(y)."""


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("family", FAMILIES)
def test_scalar_families(family: str, name: str) -> None:
    P, exact = FAMILIES[family]
    kernel, profile = KERNELS[name]
    y = two(exact[0].mean(), exact[1].ppf(0.9))
    cross = expectation(profile, *exact)
    pairs = np.array([[expectation(profile, exact[0], exact[0]), cross], [cross, 0.0]])
    pairs[1, 1] = expectation(profile, exact[1], exact[1])
    points = np.array([[expectation_at(profile, p, t) for t in y] for p in exact])
    h = pairs[0, 1] - points[0, 1] - points[1, 0] + profile(abs(y[0] - y[1]))
    estimate = wc.skce(y, P, kernel=ONE @ kernel)
    bound = 3.0 * estimate.provenance["expectation_error"] + 1e-9
    found = [wc.pairing(kernel, P, P) - pairs, wc.pairing(kernel, P, y) - points, estimate.value - h]
    errors = [float(np.abs(e).max()) for e in found]
    assert max(errors) <= bound, (errors, bound)
    assert max(errors) < ERROR[name], errors
    assert estimate.provenance["expectations"] == "lowered"
    (text,) = estimate.provenance["lowered"]
    assert type(P).__name__ in text
    assert "trapezoidal rule in the normal score" in text
    assert "estimated error" in repr(estimate)


def test_more_nodes_are_more_exact() -> None:
    P, exact = FAMILIES["Gamma"]
    kernel, profile = KERNELS["Matern"]
    wanted = expectation(profile, *exact)
    errors: list[float] = []
    for nodes in (16, 64, 256, 1024):
        scheme = wc.Lowering(nodes=nodes)
        errors.append(abs(wc.pairing(kernel, P, P, expectations=scheme)[0, 1] - wanted))
        reported = wc.skce(two(0.0, 1.0), P, kernel=ONE @ kernel, expectations=scheme).provenance
        assert errors[-1] <= 3.0 * reported["expectation_error"] + 1e-9
        assert f"{nodes} nodes" in reported["lowered"][0]
    assert errors[3] < 1e-6 < 1e-5 < errors[0]


def test_tolerance_is_met_where_it_can_be() -> None:
    P, _ = FAMILIES["Gamma"]
    kernel = KERNELS["RationalQuadratic"][0]
    for tolerance in (1e-3, 1e-7):
        scheme = wc.Lowering(tolerance=tolerance)
        reported = wc.skce(two(0.0, 1.0), P, kernel=ONE @ kernel, expectations=scheme).provenance
        assert reported["expectation_error"] <= tolerance


# -- counts that are too large for a table -----------------------------------------------------------------


def count_expectations(d: Any, kernel: Any, y: np.ndarray) -> tuple[float, np.ndarray]:
    """``E k(Z, Z')`` of two equal counts through the distribution of their difference, and ``E k(Z, y)``."""
    low, high = (
        int(max(0.0, d.mean() + reach * d.std()))
        for reach in (-9.0, 40.0 if d.dist.name == "nbinom" else 9.0)
    )
    counts = np.arange(low, high + 1)
    p = d.pmf(counts)
    if d.dist.name == "poisson":  # scipy's has nine digits here: from neighbour to neighbour none are lost
        mode = int(d.mean()) - low
        up = np.cumprod(d.mean() / counts[mode + 1 :])
        down = np.cumprod(counts[mode:0:-1] / d.mean())
        p = np.concatenate([down[::-1], [1.0], up])
        p /= p.sum()
    size = 2 * len(p)
    differences = np.fft.irfft(np.abs(np.fft.rfft(p, size)) ** 2, size)
    lags = np.minimum(np.arange(size), size - np.arange(size))
    return float(differences @ kernel(lags)), np.array([p @ kernel(counts - t) for t in y])


def huge_counts(kind: str) -> tuple[Any, Any, np.ndarray]:
    if kind == "Poisson":
        d, P = stats.poisson(1e6), wc.Poisson(two(1e6, 1e6))
    else:
        d, P = stats.nbinom(2.0, 1.0 / (1.0 + 1e4)), wc.NegativeBinomial(two(2e4, 2e4), 0.5)
    return d, P, np.rint(d.mean() + d.std() * two(0.0, 1.5))


@pytest.mark.parametrize("kind", ["Poisson", "NegativeBinomial"])
def test_huge_counts_are_lowered_for_other_kernels(kind: str) -> None:
    d, P, y = huge_counts(kind)
    scale = d.std()
    pair, points = count_expectations(d, lambda x: np.exp(-np.abs(x) / scale), y)
    kernel = k.Laplacian(scale)
    estimate = wc.skce(y, P, kernel=ONE @ kernel)
    bound = 3.0 * estimate.provenance["expectation_error"] + 1e-9
    assert kind in estimate.provenance["lowered"][0]
    errors = [
        float(np.abs(wc.pairing(kernel, P, P) - pair).max()),
        float(np.abs(wc.pairing(kernel, P, y) - points).max()),
    ]
    assert max(errors) <= bound, (errors, bound)
    assert max(errors) < 1e-3


@pytest.mark.parametrize("kind", ["Poisson", "NegativeBinomial"])
@pytest.mark.parametrize("share", [1e-3, 1.0])
def test_huge_counts_under_a_gaussian_kernel(kind: str, share: float) -> None:
    d, P, y = huge_counts(kind)
    scale = share * d.std()
    pair, points = count_expectations(d, lambda x: np.exp(-((x / scale) ** 2) / 2), y)
    kernel = k.Gaussian(scale)
    allowed = wc.skce(y, P, kernel=ONE @ kernel).provenance["expectation_error"] + 1e-12
    assert allowed < 2e-6
    np.testing.assert_allclose(wc.pairing(kernel, P, P), pair, rtol=0, atol=allowed)
    found = wc.pairing(kernel, P, y)
    np.testing.assert_allclose(found, np.broadcast_to(points, (2, 2)), rtol=0, atol=allowed)


# -- vectors -----------------------------------------------------------------------------------------------

DRAWS = 150_000


def direction(rng: np.random.Generator, size: int, d: int) -> np.ndarray:
    z = rng.normal(size=(size, d))
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def draw_power_exponential(rng: np.random.Generator, loc: Any, cov: Any, shape: float) -> np.ndarray:
    """Radius with density ~ r^(d-1) exp(-r^shape / 2): half of its power is gamma distributed."""
    d = len(loc)
    radius = (2.0 * rng.gamma(d / shape, size=DRAWS)) ** (1.0 / shape)
    return loc + radius[:, None] * direction(rng, DRAWS, d) @ np.linalg.cholesky(cov).T


LOC, ROOT = (
    np.array([[0.0, 0.5], [1.0, -0.5]]),
    np.array([[[1.0, 0.0], [0.6, 0.5]], [[0.4, 0.0], [0.0, 1.2]]]),
)
COV = ROOT @ np.swapaxes(ROOT, 1, 2)
VECTORS: dict[str, tuple[Any, Callable[[np.random.Generator, int], np.ndarray], list[str]]] = {
    "DiagonalNormal": (
        wc.DiagonalNormal(LOC, np.abs(ROOT[:, 1]) + 0.1),
        lambda rng, i: rng.normal(LOC[i], np.abs(ROOT[i, 1]) + 0.1, (DRAWS, 2)),
        ["Laplacian", "RationalQuadratic"],
    ),
    "MultivariateNormal": (
        wc.MultivariateNormal(LOC, COV),
        lambda rng, i: LOC[i] + rng.normal(size=(DRAWS, 2)) @ ROOT[i].T,
        ["Laplacian", "Matern"],
    ),
    "PowerExponential": (
        wc.PowerExponential(LOC, shape=two(1.0, 3.0), cov=COV),
        lambda rng, i: draw_power_exponential(rng, LOC[i], COV[i], (1.0, 3.0)[i]),
        ["Gaussian", "Laplacian"],
    ),
    "Dirichlet": (
        wc.Dirichlet(np.array([[1.0, 2.0, 0.5], [5.0, 1.0, 1.0]])),
        lambda rng, i: rng.dirichlet(([1.0, 2.0, 0.5], [5.0, 1.0, 1.0])[i], DRAWS),
        ["Gaussian", "Matern"],
    ),
}


def check_simulated(found: float, values: np.ndarray, slack: float) -> None:
    """An expectation is the mean of simulated values, up to the error that is stated for it."""
    error = float(values.std()) / DRAWS**0.5
    options = {"error": error, "size": DRAWS, "find": slack + 0.01, "slack": slack}
    check_value("vectors by simulation", float(found), float(values.mean()), **options)


@pytest.mark.parametrize(
    ("family", "name"), [(f, name) for f, (_, _, names) in VECTORS.items() for name in names]
)
def test_vector_families(family: str, name: str) -> None:
    """Against Monte Carlo, whose own standard error is about 5e-4."""
    P, draw, _ = VECTORS[family]
    kernel, profile = KERNELS[name]
    rng = np.random.default_rng(11)
    draws = [draw(rng, i) for i in (0, 1)]
    y = np.array([draws[0][0], draws[1][1]])
    estimate = wc.skce(y, P, kernel=ONE @ kernel)
    bound = 3.0 * estimate.provenance["expectation_error"] + 1e-9
    scheme = "Gauss rules" if family == "Dirichlet" else "Sobol'"
    assert scheme in estimate.provenance["lowered"][0]
    found = wc.pairing(kernel, P, P)
    at_targets = wc.pairing(kernel, P, y)
    for i, j in itertools.product((0, 1), repeat=2):
        other = draws[j] if i != j else rng.permutation(draws[j])
        values = profile(np.linalg.norm(draws[i] - other, axis=1))
        check_simulated(found[i, j], values, bound)
        values = profile(np.linalg.norm(draws[i] - y[j], axis=1))
        check_simulated(at_targets[i, j], values, bound)
    assert bound < 0.2


# -- what a user defines -----------------------------------------------------------------------------------


@family
class Uniform(Predictions):
    """Uniform on [0, width]: a family that can only be sampled."""

    width: Any = parameter(positive)

    def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
        return rng.uniform(0.0, self.width, (size, len(self)))


def uniform_pairing(a: float, b: float, lengthscale: float) -> float:
    def inner(x: float) -> float:
        to = math.sqrt(2.0) * lengthscale
        return math.sqrt(math.pi / 2) * lengthscale / b * (math.erf((b - x) / to) + math.erf(x / to))

    return quad(inner, 0.0, a)[0] / a


@pytest.mark.parametrize("points", [64, 1024])
def test_family_that_can_only_be_sampled(points: int) -> None:
    width = two(1.0, 2.5, 4.0)
    P = Uniform(width)
    scheme = wc.Lowering(points=points)
    exact = np.array([[uniform_pairing(a, b, 0.8) for b in width] for a in width])
    kernel = k.Gaussian(0.8)
    found = wc.pairing(kernel, P, P, expectations=scheme)
    error = float(np.abs(found - exact).max())
    estimate = wc.skce(two(0.2, 1.0, 3.0), P, kernel=ONE @ kernel, expectations=scheme)
    assert "Monte Carlo" in estimate.provenance["lowered"][0]
    assert error <= 3.0 * estimate.provenance["expectation_error"] + 1e-9
    assert error < 3.0 / points**0.5
    np.testing.assert_array_equal(found, wc.pairing(kernel, P, P, expectations=scheme))


def test_own_family_in_a_mixture() -> None:
    P = wc.Mixture([Uniform(two(1.0, 2.0)), wc.Normal(two(0.0, 1.0), two(1.0, 1.0))])
    y = two(0.5, 1.0)
    estimate = wc.skce(y, P, kernel=k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian())) @ k.Gaussian())
    assert np.isfinite(estimate.value)
    assert "Uniform" in " ".join(estimate.provenance["lowered"])


# -- refusals and reports ----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["Gamma", "LogNormal", "Beta", "StudentT", "PowerExponential"])
def test_closed_refuses_and_names_kernel_and_family(family: str) -> None:
    P, _ = FAMILIES[family]
    y = two(0.5, 0.6)
    for kernel in (k.Gaussian(0.7), k.Matern(1.5, 0.7)):
        for act in (
            lambda kernel=kernel: wc.pairing(kernel, P, P, expectations="closed"),
            lambda kernel=kernel: wc.pairing(kernel, P, y, expectations="closed"),
            lambda kernel=kernel: wc.skce(y, P, kernel=ONE @ kernel, expectations="closed"),
        ):
            with pytest.raises(
                ValueError, match=rf"no closed form of {type(kernel).__name__}\(.*for {family}.*'auto'"
            ):
                act()


def test_closed_refuses_kernels_without_a_closed_form() -> None:
    P = wc.Normal(two(0.0, 1.0), two(1.0, 1.0))
    for kernel in (
        k.Matern(2.5),
        k.RationalQuadratic(),
        k.Gaussian() * k.Laplacian(),
        k.Callable(lambda x, y: 1.0),
    ):
        with pytest.raises(ValueError, match=r"no closed form of .* for Normal"):
            wc.pairing(kernel, P, P, expectations="closed")


def test_closed_refuses_a_lowered_kernel_on_predictions() -> None:
    P, _ = FAMILIES["Gamma"]
    kernel = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian())) @ k.Gaussian()
    with pytest.raises(ValueError, match="for Gamma"):
        wc.skce(two(0.5, 0.6), P, kernel=kernel, expectations="closed")
    normal = wc.Normal(two(0.0, 1.0), two(1.0, 1.0))
    inner = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Matern(2.5))) @ k.Gaussian()
    with pytest.raises(ValueError, match="for Normal"):
        wc.skce(two(0.5, 0.6), normal, kernel=inner, expectations="closed")
    with pytest.raises(ValueError, match="Gamma"):
        wc.skce(two(0.5, 0.6), P, kernel=k.ExpDistance(k.Wasserstein()) @ k.Delta(), expectations="closed")


def test_closed_forms_are_reported_as_such() -> None:
    P = wc.Normal(two(0.0, 1.0), two(1.0, 1.0))
    provenance = wc.skce(two(0.0, 0.5), P, expectations="closed").provenance
    assert provenance["expectations"] == "closed"
    assert "expectation_error" not in provenance
    assert any(
        "Gaussian" in rule and "Normal" in rule and "closed form" in rule for rule in provenance["rules"]
    )


@pytest.mark.parametrize("options", [{"nodes": 3}, {"nodes": 5}, {"points": 100}, {"points": 2}])
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        wc.Lowering(**options)


def test_bad_expectations() -> None:
    with pytest.raises(ValueError, match=r"unknown expectations.*known are auto, closed or a Lowering"):
        wc.pairing(k.Gaussian(), wc.Normal([0.0], [1.0]), [0.0], expectations="numerical")


# -- features ----------------------------------------------------------------------------------------------


def test_points_far_from_atoms_see_nothing() -> None:
    probe = Probe(k.Gaussian(1e-3), np.zeros(1))
    x, at = np.array([[0.0, 1e-3, 5.0, 1e200]]), np.array([[0.0, 0.03, 0.04, 7.0]])
    found = probe.expected(np.ones((1, 4)), x, at)
    direct = np.exp(-0.5 * np.array([0.0, 1.0])).sum(), np.exp(-450.0) + np.exp(-0.5 * 29.0**2)
    np.testing.assert_allclose(found[0, :2], direct, rtol=1e-12)
    assert (found[0, 2:] < 1e-250).all()


def calibration_matrix(
    values: np.ndarray, weights: np.ndarray, y: np.ndarray, lengthscale: float
) -> np.ndarray:
    """``<P_i - d(y_i), P_j - d(y_j)>`` of a Gaussian kernel, atom by atom."""
    x = np.concatenate([values, y[:, None]], axis=1)
    w = np.concatenate([weights, -np.ones((len(y), 1))], axis=1)
    gram = np.exp(-((x[:, :, None, None] - x[None, None]) ** 2) / (2 * lengthscale**2))
    return np.einsum("is,isjt,jt->ij", w, gram, w)


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_many_samples_go_through_features(offset: float) -> None:
    """Above some number of atoms: the same as atom by atom to 1e-12."""
    values = offset + np.random.default_rng(7).normal(size=(6, 30))
    y = values[:, 0] + 0.1
    problem = prepare(y, wc.Samples(values, kind="atoms"), ONE @ k.Gaussian(0.5), expectations="closed")
    direct = calibration_matrix(values, np.full((6, 30), 1 / 30), y, 0.5)
    np.testing.assert_allclose(problem.h(problem.rows, problem.rows), direct, rtol=0, atol=1e-12)
    found = problem.notes.as_dict()
    assert found["expectations"] == "closed"
    assert "features" in found["rules"][0]


@pytest.mark.parametrize("n", [4, 300])
def test_outliers_are_not_forgotten(n: int) -> None:
    """A target may lie at an atom of little weight far from all others, however many of these exist."""
    rng = np.random.default_rng(9)
    values = rng.normal(size=(n, 8))
    values[:, 0] = 1e3 * np.arange(1, n + 1)
    weights = np.full((n, 8), (1 - 1e-4) / 7)
    weights[:, 0] = 1e-4
    y = values[::-1, 0].copy()
    P = wc.Samples(values, weights=weights, kind="atoms")
    problem = prepare(y, P, ONE @ k.Gaussian(0.5), expectations="closed")
    direct = calibration_matrix(values, weights, y, 0.5)
    np.testing.assert_allclose(problem.h(problem.rows, problem.rows), direct, rtol=0, atol=1e-12)


def test_closed_forms_are_not_lowered_for_speed() -> None:
    """Many samples beside a family that has closed forms, but no features."""
    rng = np.random.default_rng(10)
    laplace = wc.Laplace(rng.normal(size=3), rng.uniform(0.5, 1.0, 3))
    values = rng.normal(size=(3, 40))
    P = wc.Mixture([laplace, wc.Samples(values, kind="atoms")], [0.25, 0.75])
    y = rng.normal(size=3)
    kernel = k.Gaussian(0.5)
    problem = prepare(y, P, ONE @ kernel, expectations="closed")
    assert problem.notes.as_dict()["expectations"] == "closed"
    cross = wc.pairing(kernel, laplace, values.reshape(-1)).reshape(3, 3, 40).mean(axis=2)
    inside = np.exp(-((values[:, :, None, None] - values[None, None]) ** 2) / 0.5).mean(axis=(1, 3))
    pairs = wc.pairing(kernel, laplace, laplace) / 16 + 3 / 16 * (cross + cross.T) + 9 / 16 * inside
    at = 0.25 * wc.pairing(kernel, laplace, y) + 0.75 * np.exp(-((values[:, :, None] - y) ** 2) / 0.5).mean(
        axis=1
    )
    h = pairs - at - at.T + np.exp(-((y[:, None] - y) ** 2) / 0.5)
    np.testing.assert_allclose(problem.h(problem.rows, problem.rows), h, rtol=0, atol=1e-12)


def test_tensors_of_wide_predictions_meet_near_features_only() -> None:
    """Thousands of atoms times tens of thousands of features took minutes; numbers and slopes are NumPy's."""
    entries: list[int] = []

    class Counted(TorchFunctionMode):
        def __torch_function__(self, function: Any, types: Any, given: Any = (), options: Any = None) -> Any:
            if function is torch.exp:
                entries.append(given[0].numel())
                assert entries[-1] < 3_000_000
            return function(*given, **(options or {}))

    kernel, y = k.Gaussian(0.3), np.array([0.3, 1.1])
    both = k.ExpDistance(k.MaximumMeanDiscrepancy(kernel), power=2) @ kernel
    given = [np.array([0.0, 0.5]), np.array([3.0, 2.5])]
    tensors = [torch.tensor(p, requires_grad=True) for p in given]
    with Counted():
        found = wc.skce(torch.tensor(y), wc.LogNormal(*tensors), kernel=both)
    assert entries
    found.value.backward()
    assert "features" in found.provenance["rules"][0]
    expected = float(wc.skce(y, wc.LogNormal(*given), kernel=both))
    np.testing.assert_allclose(float(found.value.detach()), expected, rtol=0, atol=1e-6)
    for which, tensor in enumerate(tensors):
        ends: list[float] = []
        for move in (-1e-3, 1e-3):
            moved = [p.copy() for p in given]
            moved[which][0] += move
            ends.append(float(wc.skce(y, wc.LogNormal(*moved), kernel=both)))
        np.testing.assert_allclose(float(tensor.grad[0]), (ends[1] - ends[0]) / 2e-3, rtol=1e-3, atol=1e-5)
