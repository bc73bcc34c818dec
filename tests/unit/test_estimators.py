"""SKCE and KCE against first principles, the matrix-valued formulation, and every kind of bad input."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.kernels import Callable, Delta, Euclidean, ExpDistance, Gaussian, Wasserstein

PAPER = ExpDistance(Wasserstein()) @ Gaussian()


@pytest.fixture
def normals():
    rng = np.random.default_rng(1)
    mu, sigma = rng.normal(size=11), np.exp(0.4 * rng.normal(size=11))
    return rng.normal(mu, 1.3 * sigma), wc.Normal(mu, sigma)


def h_by_quadrature(y, pred, i, j):
    """The paper's four terms, each expectation by adaptive quadrature."""
    left, right = (stats.norm(float(pred.loc[k]), float(pred.scale[k])) for k in (i, j))

    def k(a, b):
        return math.exp(-0.5 * (a - b) ** 2)

    def mean(distribution, function):
        low, high = distribution.ppf(1e-15), distribution.isf(1e-15)
        return integrate.quad(
            lambda z: distribution.pdf(z) * function(z), low, high, epsabs=1e-13, epsrel=1e-12
        )[0]

    both = mean(left, lambda z: mean(right, lambda w: k(z, w)))
    distance = math.hypot(pred.loc[i] - pred.loc[j], pred.scale[i] - pred.scale[j])
    bracket = k(y[i], y[j]) - mean(left, lambda z: k(z, y[j])) - mean(right, lambda z: k(y[i], z)) + both
    return math.exp(-distance) * bracket


def h_normals(y, pred):
    """All of h for the paper's kernel, from its closed forms."""

    def expectation(m, v, m2, v2):
        s = 1.0 + v[:, None] + v2[None, :]
        return np.exp(-0.5 * (m[:, None] - m2[None, :]) ** 2 / s) / np.sqrt(s)

    mu, v, zero = pred.loc, pred.scale**2, np.zeros(len(y))
    distance = np.hypot(mu[:, None] - mu, pred.scale[:, None] - pred.scale)
    four = (
        expectation(mu, v, mu, v)
        - expectation(mu, v, y, zero)
        - expectation(y, zero, mu, v)
        + expectation(y, zero, y, zero)
    )
    return np.exp(-distance) * four


def test_h_from_first_principles(normals):
    y, pred = normals
    h = h_normals(y, pred)
    for i, j in ((0, 1), (3, 3), (7, 2)):
        assert h[i, j] == pytest.approx(h_by_quadrature(y, pred, i, j), abs=1e-10)


def test_estimators_are_means_of_h(normals):
    y, pred = normals
    n, h = len(y), h_normals(*normals)
    off = h.sum() - np.trace(h)
    assert wc.skce(y, pred, kernel=PAPER).value == pytest.approx(off / (n * (n - 1)), abs=1e-15)
    assert wc.skce(y, pred, kernel=PAPER, estimator="biased").value == pytest.approx(h.mean(), abs=1e-15)
    assert wc.kce(y, pred, kernel=PAPER).value == pytest.approx(math.sqrt(h.mean()), abs=1e-15)
    blocks = [h[b : b + 3, b : b + 3] for b in (0, 3, 6)]
    means = [(block.sum() - np.trace(block)) / 6 for block in blocks]
    block = wc.skce(y, pred, kernel=PAPER, estimator="block", block_size=3)
    assert block.value == pytest.approx(np.mean(means), abs=1e-15)
    assert block.standard_error == pytest.approx(np.std(means, ddof=1) / math.sqrt(3), abs=1e-15)
    assert block.provenance["dropped"] == 2
    assert "last 2 cases" in repr(block)


def test_standard_error_of_the_u_statistic(normals):
    y, pred = normals
    n, h = len(y), h_normals(*normals)
    rows = (h.sum(1) - np.diag(h)) / (n - 1)
    estimate = wc.skce(y, pred, kernel=PAPER)
    assert estimate.standard_error == pytest.approx(math.sqrt(4 * rows.var(ddof=1) / n), abs=1e-15)
    interval = estimate.confidence_interval(0.9)
    assert interval.high - interval.low == pytest.approx(2 * 1.6448536269514722 * estimate.standard_error)
    assert wc.skce(y, pred, estimator="biased").standard_error is None
    assert wc.skce(y[:2], pred[:2]).standard_error is None


@pytest.mark.parametrize("classes", [2, 3, 10])
def test_matrix_valued_formulation_of_classification(classes):
    """(e_y - p)' K(p, p') (e_y' - p') with K = exp(-gamma |p - p'|) M, as in the paper's appendix."""
    rng = np.random.default_rng(classes)
    n, gamma = 40, 1.7
    p = rng.dirichlet(np.ones(classes), n)
    y = rng.integers(classes, size=n)
    root = rng.normal(size=(classes, classes))
    residual = np.eye(classes)[y] - p
    kernel_p = np.exp(-gamma * np.linalg.norm(p[:, None] - p[None], axis=2))
    on_predictions = ExpDistance(Euclidean(), lengthscale=1.0 / gamma)
    for matrix, on_targets in (
        (np.eye(classes), Delta()),
        (root @ root.T, Callable(lambda a, b: (root @ root.T)[int(a), int(b)])),
    ):
        h = kernel_p * (residual @ matrix @ residual.T)
        scale = np.abs(h).mean()
        kernel = on_predictions @ on_targets
        biased = wc.skce(y, wc.Categorical(p), kernel=kernel, estimator="biased").value
        unbiased = wc.skce(y, wc.Categorical(p), kernel=kernel).value
        assert abs(biased - h.mean()) < 1e-12 * scale
        assert abs(unbiased - (h.sum() - np.trace(h)) / (n * (n - 1))) < 1e-12 * scale


@pytest.mark.parametrize(
    ("block_size", "expected"), [(None, 5), ("sqrt", 5), (7, 7), (lambda n: n // 2, 15), (30, 30)]
)
def test_block_sizes(block_size, expected):
    rng = np.random.default_rng(0)
    y, pred = rng.normal(size=30), wc.Normal(np.zeros(30), np.ones(30))
    estimate = wc.skce(y, pred, estimator="block", block_size=block_size)
    assert estimate.provenance["block_size"] == expected
    assert estimate.provenance["blocks"] == 30 // expected
    assert estimate.provenance["dropped"] == 30 % expected


def test_one_block_is_the_unbiased_estimator(normals):
    y, pred = normals
    whole = wc.skce(y, pred, estimator="block", block_size=len(y))
    assert whole.value == pytest.approx(wc.skce(y, pred).value, abs=1e-16)
    assert whole.standard_error is None


def test_shuffling_is_reproducible_and_shuffles(normals):
    y, pred = normals

    def estimate(rng):
        return wc.skce(y, pred, estimator="block", block_size=2, rng=rng).value

    assert estimate(5) == estimate(5) == estimate(np.random.default_rng(5))
    assert len({estimate(seed) for seed in range(4)} | {estimate(None)}) == 5


@pytest.mark.parametrize("bad", [0, 1, 31, 2.5, True, "log", lambda n: 1])
def test_bad_block_sizes(bad):
    with pytest.raises(ValueError, match="block_size"):
        wc.skce(np.zeros(30), wc.Normal(np.zeros(30), np.ones(30)), estimator="block", block_size=bad)


def test_foreign_predictions(normals):
    y, pred = normals
    expected = wc.skce(y, pred).value
    assert wc.skce(y, (pred.loc, pred.scale)).value == expected
    assert wc.skce(list(y), stats.norm(pred.loc, pred.scale)).value == expected
    p = np.random.default_rng(0).dirichlet(np.ones(3), 9)
    assert wc.skce([0, 1, 2] * 3, p).value == wc.skce([0, 1, 2] * 3, wc.Categorical(p)).value


def test_constant_predictions_use_unit_scale():
    y = np.array([0.3, -0.2, 1.0, 0.1])
    estimate = wc.skce(y, wc.Normal(np.zeros(4), np.ones(4)))
    assert estimate.kernel.predictions.lengthscale == 1.0
    assert np.isfinite(estimate.value)


def test_far_targets_and_tiny_scales_stay_finite():
    y = np.array([1e200, -1e200, 0.0, 1.0])
    for scale in (1e-200, 1.0, 1e100):
        estimate = wc.skce(y, wc.Normal(np.zeros(4), np.full(4, scale)), kernel=PAPER)
        assert np.isfinite(estimate.value)


def normal_batch(n=4):
    return wc.Normal(np.zeros(n), np.ones(n))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wc.skce([1.0], normal_batch(1)), ValueError, "at least 2 cases, found 1"),
        (lambda: wc.skce([1.0, 2.0], normal_batch()), ValueError, "same length, found 2 and 4"),
        (
            lambda: wc.skce(np.zeros((4, 1)), normal_batch()),
            ValueError,
            r"y must be 1-dimensional.*y\[:, 0\]",
        ),
        (lambda: wc.skce([0, 1, np.nan, 0], normal_batch()), ValueError, "y is not finite in row 2"),
        (lambda: wc.skce([], normal_batch()), ValueError, "same length, found 0 and 4"),
        (lambda: wc.skce(["a"] * 4, normal_batch()), TypeError, "y must be numeric"),
        (lambda: wc.skce([0, 1, 2, 0], np.full((4, 2), 0.5)), ValueError, "row 2"),
        (lambda: wc.skce([0, 1, 0.5, 0], wc.Bernoulli(np.full(4, 0.5))), ValueError, "row 2"),
        (
            lambda: wc.skce(np.zeros(4), normal_batch(), estimator="best"),
            ValueError,
            "unbiased, biased, block",
        ),
        (lambda: wc.skce(np.zeros(4), normal_batch(), engine="quick"), ValueError, "unknown engine 'quick'"),
        (lambda: wc.skce(np.zeros(4), normal_batch(), expectations="exact"), ValueError, "expectations"),
        (lambda: wc.skce(np.zeros(4), normal_batch(), block_size=2), ValueError, "block_size is for"),
        (lambda: wc.skce(np.zeros(4), normal_batch(), rng=2), ValueError, "rng shuffles"),
        (
            lambda: wc.skce(np.zeros(4), normal_batch(), kernel=Gaussian()),
            TypeError,
            "pairs of prediction and target",
        ),
        (lambda: wc.skce(np.zeros(4), normal_batch(), kernel="rbf"), TypeError, "kernel must be a kernel"),
        (lambda: Gaussian() @ ExpDistance(Wasserstein()), TypeError, "right side of @"),
        (
            lambda: wc.skce(np.zeros(4), wc.StudentT(5.0, np.zeros(4), np.ones(4)), expectations="closed"),
            ValueError,
            "no closed form of Gaussian.*StudentT",
        ),
        (
            lambda: wc.skce(np.zeros(4), wc.Samples(np.zeros((4, 1))), estimator="biased"),
            ValueError,
            "at least two draws",
        ),
    ],
)
def test_bad_input_names_the_argument_and_the_remedy(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_one_case_has_a_biased_estimate():
    assert wc.skce([0.3], normal_batch(1), estimator="biased", kernel=PAPER).value > 0


def test_engine_objects_are_accepted(normals):
    y, pred = normals
    engine = Tiled(tile=(2, 3), threads=1)
    estimate = wc.skce(y, pred, engine=engine)
    assert estimate.provenance["tile"] == (2, 3)
    assert estimate.value == pytest.approx(wc.skce(y, pred).value, abs=1e-16)
