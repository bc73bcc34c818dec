"""SKCE and KCE against loops in plain Python, their options, and what they refuse."""

from __future__ import annotations

import math
from collections.abc import Callable as Function
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

import wellcal as wc
from wellcal.kernels import (
    Callable,
    Delta,
    Euclidean,
    ExpDistance,
    Gaussian,
    Joint,
    Laplacian,
    TotalVariation,
    Wasserstein,
    paper_kernel,
)

RNG = np.random.default_rng(11)
N = 9
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.3, 1.5, N)
Y = RNG.normal(MU, SIGMA) + 0.3
NORMAL = wc.Normal(MU, SIGMA)
PROBS = RNG.dirichlet([1.0, 2.0, 0.5], N)
LABELS = RNG.integers(0, 3, N)

Pair = Function[[int, int], float]


# -- loops ----------------------------------------------------------------------------------------


def unbiased(h: Pair, cases: list[int]) -> float:
    n = len(cases)
    total = sum(h(i, j) for i in cases for j in cases if i != j)
    return total / (n * (n - 1))


def biased(h: Pair, cases: list[int]) -> float:
    return sum(h(i, j) for i in cases for j in cases) / len(cases) ** 2


def blocks(h: Pair, cases: list[int], size: int) -> list[float]:
    whole = len(cases) // size * size
    return [unbiased(h, cases[start : start + size]) for start in range(0, whole, size)]


def normal_h(i: int, j: int) -> float:
    """The four terms, each an integral over the difference of two normals, with the paper's kernel."""

    def term(m: float, variance: float) -> float:
        if variance == 0.0:
            return math.exp(-0.5 * m**2)
        scale = math.sqrt(variance)
        low, high = m - 12 * scale, m + 12 * scale
        value, _ = integrate.quad(
            lambda d: math.exp(-0.5 * d**2 - 0.5 * ((d - m) / scale) ** 2) / (scale * math.sqrt(2 * math.pi)),
            low,
            high,
            points=[p for p in (0.0, m) if low < p < high],
            epsabs=1e-14,
            epsrel=1e-13,
            limit=200,
        )
        return value

    on_predictions = math.exp(-math.hypot(MU[i] - MU[j], SIGMA[i] - SIGMA[j]))
    both = term(MU[i] - MU[j], SIGMA[i] ** 2 + SIGMA[j] ** 2)
    left = term(MU[i] - Y[j], SIGMA[i] ** 2)
    right = term(Y[i] - MU[j], SIGMA[j] ** 2)
    return on_predictions * (both - left - right + term(Y[i] - Y[j], 0.0))


def class_h(on_predictions: Pair, on_classes: np.ndarray) -> Pair:
    """The four terms as explicit sums over classes."""

    def h(i: int, j: int) -> float:
        total = 0.0
        for a in range(3):
            for b in range(3):
                left = PROBS[i, a] - (a == LABELS[i])
                right = PROBS[j, b] - (b == LABELS[j])
                total += left * right * on_classes[a, b]
        return on_predictions(i, j) * total

    return h


def total_variation(i: int, j: int) -> float:
    return math.exp(-0.5 * sum(abs(PROBS[i, c] - PROBS[j, c]) for c in range(3)))


EVERY = list(range(N))


def test_normals_against_integrals() -> None:
    known = {(i, j): normal_h(i, j) for i in EVERY for j in EVERY if i <= j}

    def h(i: int, j: int) -> float:
        return known[min(i, j), max(i, j)]

    def found(**options: Any) -> float:
        return float(wc.skce(Y, NORMAL, kernel=paper_kernel, **options))

    assert_allclose(found(), unbiased(h, EVERY), rtol=0, atol=1e-13)
    assert_allclose(found(estimator="biased"), biased(h, EVERY), rtol=0, atol=1e-13)
    for size in (2, 3, 4, 9):
        value = found(estimator="block", block_size=size)
        assert_allclose(value, np.mean(blocks(h, EVERY, size)), rtol=0, atol=1e-13)
    assert_allclose(
        float(wc.kce(Y, NORMAL, kernel=paper_kernel)), math.sqrt(biased(h, EVERY)), rtol=0, atol=1e-13
    )


def test_classes_against_sums() -> None:
    kernel = ExpDistance(TotalVariation()) @ Delta()
    h = class_h(total_variation, np.eye(3))
    pred = wc.Categorical(PROBS)
    assert_allclose(float(wc.skce(LABELS, pred, kernel=kernel)), unbiased(h, EVERY), rtol=0, atol=1e-15)
    assert_allclose(
        float(wc.skce(LABELS, pred, kernel=kernel, estimator="biased")), biased(h, EVERY), rtol=0, atol=1e-15
    )
    value = float(wc.skce(LABELS, pred, kernel=kernel, estimator="block", block_size=3))
    assert_allclose(value, np.mean(blocks(h, EVERY, 3)), rtol=0, atol=1e-15)
    assert_allclose(
        float(wc.kce(LABELS, pred, kernel=kernel)), math.sqrt(biased(h, EVERY)), rtol=0, atol=1e-15
    )


def test_the_biased_estimate_is_that_of_the_paper_where_no_average_is_known() -> None:
    # h_ii of a point prediction that was right is zero, and so is the whole estimate.
    points = wc.Normal(MU, np.zeros(N))
    assert float(wc.skce(MU, points, estimator="biased")) == 0.0
    assert float(wc.kce(MU, points)) == 0.0


# -- classification with matrix-valued kernels -------------------------------------------------------


def matrix_valued(
    probs: np.ndarray, labels: np.ndarray, K: Function[[np.ndarray, np.ndarray], np.ndarray]
) -> tuple[float, float]:
    """Unbiased and biased mean of (e_y - p)' K(p, p') (e_y' - p')."""
    n, classes = probs.shape
    deviation = np.eye(classes)[labels] - probs
    h = np.array([[deviation[i] @ K(probs[i], probs[j]) @ deviation[j] for j in range(n)] for i in range(n)])
    return (h.sum() - np.trace(h)) / (n * (n - 1)), h.mean()


def check_matrix_valued(kernel: Any, K: Any, **options: Any) -> None:
    rng = np.random.default_rng(3)
    for classes, n in ((2, 10), (3, 40), (7, 25)):
        probs = rng.dirichlet(np.full(classes, 0.7), n)
        labels = rng.integers(0, classes, n)
        given = {name: value(classes) for name, value in options.items()}
        pred = wc.Categorical(probs, **given)
        y = pred.labels()[labels]
        expected = matrix_valued(probs, labels, K(classes))
        used = kernel(classes)
        assert_allclose(float(wc.skce(y, pred, kernel=used)), expected[0], rtol=0, atol=1e-12)
        assert_allclose(
            float(wc.skce(y, pred, kernel=used, estimator="biased")), expected[1], rtol=0, atol=1e-12
        )


GAMMA = 1.7


def test_the_kernel_of_the_first_paper() -> None:
    """K(p, p') = exp(-gamma |p - p'|) I, Widmann et al. (2019)."""
    check_matrix_valued(
        lambda c: ExpDistance(Euclidean(), lengthscale=1.0 / GAMMA) @ Delta(),
        lambda c: lambda p, q: math.exp(-GAMMA * np.linalg.norm(p - q)) * np.eye(c),
    )


def class_matrix(classes: int) -> np.ndarray:
    factor = np.random.default_rng(classes).normal(size=(classes, classes))
    return factor @ factor.T


def test_a_full_matrix_between_classes() -> None:
    check_matrix_valued(
        lambda c: ExpDistance(TotalVariation()) @ Callable(lambda a, b: class_matrix(c)[int(a), int(b)]),
        lambda c: lambda p, q: math.exp(-0.5 * np.abs(p - q).sum()) * class_matrix(c),
    )


def test_a_gaussian_between_the_values_of_classes() -> None:
    def values(classes: int) -> np.ndarray:
        return np.arange(classes) ** 1.5

    def K(classes: int) -> Any:
        gram = np.exp(-0.5 * (values(classes)[:, None] - values(classes)[None, :]) ** 2 / 1.3**2)
        return lambda p, q: math.exp(-GAMMA * np.linalg.norm(p - q)) * gram

    kernel = ExpDistance(Euclidean(), lengthscale=1.0 / GAMMA) @ Gaussian(1.3)
    check_matrix_valued(lambda c: kernel, K, support=values)


def test_a_sum_of_matrix_valued_kernels() -> None:
    first, second = ExpDistance(Euclidean()) @ Delta(), ExpDistance(TotalVariation(), 0.5) @ Laplacian()

    def K(classes: int) -> Any:
        gram = np.exp(-np.abs(np.subtract.outer(np.arange(classes), np.arange(classes))))

        def values(p: np.ndarray, q: np.ndarray) -> np.ndarray:
            d = p - q
            return math.exp(-np.linalg.norm(d)) * np.eye(classes) + 3.0 * math.exp(-np.abs(d).sum()) * gram

        return values

    check_matrix_valued(lambda c: first + 3.0 * second, K, support=lambda c: np.arange(float(c)))


def test_a_matrix_valued_kernel_that_does_not_factor() -> None:
    """k((p, y), (p', y')) = exp(-|w_y p - w_y' p'|^2), which moves classes apart."""

    def weight(y: Any) -> Any:
        return 1.0 + 0.5 * y

    def joint(P: Any, y: Any, Q: Any, z: Any) -> Any:
        a, b = weight(y)[:, None] * P.probs, weight(z)[:, None] * Q.probs
        return np.exp(-((a[:, None, :] - b[None, :, :]) ** 2).sum(-1))

    def K(classes: int) -> Any:
        w = weight(np.arange(classes))
        return lambda p, q: np.array([[np.exp(-((a * p - b * q) ** 2).sum()) for b in w] for a in w])

    check_matrix_valued(lambda c: Joint(joint), K)


# -- blocks --------------------------------------------------------------------------------------------


def many(n: int, seed: int = 0) -> tuple[np.ndarray, wc.Normal]:
    rng = np.random.default_rng(seed)
    mu, sigma = rng.normal(size=n), rng.uniform(0.5, 1.5, n)
    return rng.normal(mu + 0.2, sigma), wc.Normal(mu, sigma)


@pytest.mark.parametrize(
    ("block_size", "size"),
    [
        (2, 2),
        (7, 7),
        (np.int64(5), 5),
        (50.0, 50),
        ("sqrt", 7),
        (None, 7),
        (lambda n: n // 4, 12),
        (lambda n: np.floor(np.sqrt(n)), 7),
    ],
)
def test_block_sizes(block_size: Any, size: int) -> None:
    y, pred = many(50)
    estimate = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=block_size)
    count = 50 // size
    parts = [
        float(wc.skce(y[k * size : (k + 1) * size], pred[k * size : (k + 1) * size], kernel=paper_kernel))
        for k in range(count)
    ]
    assert_allclose(float(estimate), np.mean(parts), rtol=1e-12)
    assert estimate.provenance["block_size"] == size
    assert estimate.provenance["blocks"] == count
    assert estimate.provenance["dropped"] == 50 - count * size
    if count > 1:
        assert_allclose(estimate.standard_error, np.std(parts, ddof=1) / math.sqrt(count), rtol=1e-10)
    else:
        assert estimate.standard_error is None


def test_the_default_block_size_of_few_cases_is_two() -> None:
    for n in (2, 3):
        y, pred = many(n)
        assert wc.skce(y, pred, estimator="block").provenance["block_size"] == 2


def test_large_blocks_are_tiled_alike() -> None:
    y, pred = many(400)
    estimate = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=130)
    parts = [float(wc.skce(y[k : k + 130], pred[k : k + 130], kernel=paper_kernel)) for k in (0, 130, 260)]
    assert_allclose(float(estimate), np.mean(parts), rtol=1e-12)
    assert_allclose(estimate.standard_error, np.std(parts, ddof=1) / math.sqrt(3), rtol=1e-10)
    assert estimate.provenance["dropped"] == 10


def test_the_kernel_is_chosen_from_all_cases_also_for_blocks() -> None:
    y, pred = many(30)
    assert wc.skce(y, pred, estimator="block").kernel == wc.skce(y, pred).kernel == wc.default_kernel(pred)


def test_dropped_cases_are_reported_and_do_not_count() -> None:
    y, pred = many(11)
    estimate = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=4)
    assert estimate.provenance["dropped"] == 3
    assert "left out  the last 3 cases (incomplete block)" in repr(estimate)
    y[8:] = 100.0
    assert float(estimate) == float(wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=4))
    whole = wc.skce(y[:8], pred[:8], kernel=paper_kernel, estimator="block", block_size=4)
    assert whole.provenance["dropped"] == 0
    assert "left out" not in repr(whole)


def test_shuffling_is_a_permutation_by_the_generator() -> None:
    y, pred = many(23)
    plain = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=5)
    shuffled = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=5, rng=8)
    order = np.random.default_rng(8).permutation(23)
    expected = wc.skce(y[order], pred[order], kernel=paper_kernel, estimator="block", block_size=5)
    assert_allclose(float(shuffled), float(expected), rtol=1e-13)
    assert_allclose(shuffled.standard_error, expected.standard_error, rtol=1e-12)
    assert float(shuffled) != float(plain)
    assert shuffled.provenance["shuffled"] is True
    assert plain.provenance["shuffled"] is False
    again = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=5, rng=8)
    assert float(again) == float(shuffled)
    generator = np.random.default_rng(8)
    first, second = (
        float(wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=5, rng=generator))
        for _ in range(2)
    )
    assert first == float(shuffled) != second


# -- standard errors and intervals ---------------------------------------------------------------------


def test_the_standard_error_of_the_unbiased_estimate() -> None:
    n = 15
    y, pred = many(n)
    h = [
        [float(wc.skce(y[[i, j]], pred[[i, j]], kernel=paper_kernel)) if i != j else 0.0 for j in range(n)]
        for i in range(n)
    ]
    row_means = np.sum(h, axis=1) / (n - 1)
    estimate = wc.skce(y, pred, kernel=paper_kernel)
    zeta = np.var(row_means, ddof=1)
    assert_allclose(estimate.standard_error, math.sqrt(4.0 * zeta / n), rtol=1e-10)
    assert isinstance(estimate.standard_error, float)


def test_intervals_over_blocks_have_students_quantile() -> None:
    y, pred = many(60)
    estimate = wc.skce(y, pred, estimator="block")
    for level in (0.5, 0.9, 0.95, 0.999):
        interval = estimate.confidence_interval(level)
        blocks = estimate.provenance["blocks"]
        expected = stats.t.interval(level, blocks - 1, float(estimate), estimate.standard_error)
        assert_allclose((interval.low, interval.high), expected, rtol=1e-12)
        assert (interval.level, interval.method) == (level, "Student")
    assert estimate.confidence_interval() == estimate.confidence_interval(0.95)


@pytest.mark.parametrize(
    "estimate",
    [
        wc.skce(Y, NORMAL, estimator="block", block_size=N),
        wc.skce(Y[:3], NORMAL[:3], estimator="block"),
    ],
    ids=["one block", "one block of few"],
)
def test_no_interval_where_theory_gives_none(estimate: wc.Estimate) -> None:
    assert estimate.standard_error is None
    with pytest.raises(ValueError, match=f"no standard error is known for the {estimate.estimator}"):
        estimate.confidence_interval()


# -- what is refused -----------------------------------------------------------------------------------

CLASSES = wc.Categorical(PROBS, classes=["a", "b", "c"])
ONE = wc.Normal([0.0], [1.0])


def spoiled(value: float, row: int = 3) -> np.ndarray:
    y = Y.copy()
    y[row] = value
    return y


REFUSED: dict[str, tuple[Function[[], Any], type[Exception], str]] = {
    "one case": (
        lambda: wc.skce([0.0], ONE),
        ValueError,
        "the unbiased estimator needs at least 2 cases, found 1",
    ),
    "one case in blocks": (
        lambda: wc.skce([0.0], ONE, estimator="block"),
        ValueError,
        "the block estimator needs at least 2 cases, found 1",
    ),
    "lengths": (
        lambda: wc.skce(Y[:4], NORMAL),
        ValueError,
        "y and predictions must have the same length, found 4 and 9",
    ),
    "a column": (
        lambda: wc.skce(Y[:, None], NORMAL),
        ValueError,
        r"y must be 1-dimensional, found shape \(9, 1\); pass y\[:, 0\]",
    ),
    "parameters as a column": (
        lambda: wc.skce(Y, (MU[:, None], SIGMA)),
        ValueError,
        r"found \(9, 1\) and \(9,\); nothing is broadcast",
    ),
    "a number": (lambda: wc.skce(0.3, NORMAL), ValueError, r"y must be 1-dimensional, found shape \(\)"),
    "NaN": (
        lambda: wc.skce(spoiled(np.nan), NORMAL),
        ValueError,
        "y is not finite in row 3: found nan; drop or impute",
    ),
    "infinity": (lambda: wc.skce(spoiled(np.inf, 5), NORMAL), ValueError, "y is not finite in row 5"),
    "complex": (lambda: wc.skce(Y + 1j, NORMAL), TypeError, "y must be real, found dtype complex128"),
    "words": (
        lambda: wc.skce(list("abcdefghi"), NORMAL),
        TypeError,
        "y must be numeric, not texts, found dtype <U1",
    ),
    "an unknown class": (
        lambda: wc.skce(np.where(np.arange(N) == 2, 3, LABELS), PROBS),
        ValueError,
        "y is not among the classes in row 2: found 3; the classes are 0, 1, 2",
    ),
    "a negative class": (
        lambda: wc.skce(np.where(np.arange(N) == 4, -1, LABELS), PROBS),
        ValueError,
        "y is not among the classes in row 4: found -1",
    ),
    "a fraction of a class": (
        lambda: wc.skce(LABELS + 0.5, PROBS),
        ValueError,
        "y is not among the classes in row 0",
    ),
    "an unknown label": (
        lambda: wc.skce(["a", "x", *"cabcabc"], CLASSES),
        ValueError,
        "y is not among the classes in row 1: found 'x'; the classes are 'a', 'b', 'c'",
    ),
    "labels without classes": (
        lambda: wc.skce(list("abcabcabc"), PROBS),
        TypeError,
        r"y has the names 'a', 'b', 'c', and the predictions have none: .* Categorical\(probs, classes=\('a'",
    ),
    "not binary": (
        lambda: wc.skce(np.where(np.arange(N) == 6, 2, LABELS > 0), PROBS[:, 0]),
        ValueError,
        "y must be 0 or 1 in row 6: found 2",
    ),
    "not a count": (
        lambda: wc.skce(np.arange(N) + 0.5 * (np.arange(N) == 7), wc.Poisson(np.ones(N))),
        ValueError,
        r"y must be a non-negative whole number in row 7: found 7\.5",
    ),
    "vectors of another size": (
        lambda: wc.skce(np.zeros((N, 3)), wc.DiagonalNormal(np.zeros((N, 2)), 1.0)),
        ValueError,
        r"y must have targets of shape \(2,\) as the predictions have, found \(3,\)",
    ),
    "nothing": (
        lambda: wc.skce([], wc.Normal(np.empty(0), np.empty(0))),
        ValueError,
        "Normal is empty: at least one row is needed",
    ),
    "no targets": (lambda: wc.skce([], NORMAL), ValueError, "y and predictions .* found 0 and 9"),
    "no predictions": (
        lambda: wc.skce(Y, None),
        TypeError,
        "predictions of type NoneType are not understood; give",
    ),
    "negative scale": (
        lambda: wc.skce(Y, (MU, np.where(np.arange(N) == 1, -1.0, SIGMA))),
        ValueError,
        "scale must not be negative in row 1",
    ),
    "probabilities that do not sum to one": (
        lambda: wc.skce(LABELS, 1.1 * PROBS),
        ValueError,
        "the sum of probs must be one within 1e-06 in row 0",
    ),
    "estimator": (
        lambda: wc.skce(Y, NORMAL, estimator="ubiased"),
        ValueError,
        "unknown estimator 'ubiased'; known are unbiased, biased, block",
    ),
    "engine": (lambda: wc.skce(Y, NORMAL, engine="gpu"), ValueError, "unknown engine 'gpu'; known are auto"),
    "expectations": (
        lambda: wc.skce(Y, NORMAL, expectations="exact"),
        ValueError,
        "unknown expectations 'exact'; known are auto, closed or a Lowering",
    ),
    "no closed form": (
        lambda: wc.skce(np.ones(N), wc.Gamma(SIGMA, SIGMA), expectations="closed"),
        ValueError,
        "no closed form of Gaussian.* for Gamma; allow numerical expectations",
    ),
    "kernel on targets": (
        lambda: wc.skce(Y, NORMAL, kernel=Gaussian()),
        TypeError,
        "kernel must act on pairs of prediction and target, found Gaussian.*; write kernel_on_predictions @",
    ),
    "kernel on predictions": (
        lambda: wc.skce(Y, NORMAL, kernel=ExpDistance(Wasserstein())),
        TypeError,
        "kernel must act on pairs of prediction and target, found ExpDistance",
    ),
    "factors in the wrong order": (
        lambda: wc.skce(Y, NORMAL, kernel=Gaussian() @ ExpDistance(Wasserstein())),
        TypeError,
        "the right side of @ must be a kernel on targets",
    ),
    "a kernel of targets on the left": (
        lambda: wc.skce(LABELS, PROBS, kernel=Delta() @ Delta()),
        TypeError,
        r"Delta\(\) is not a kernel on predictions; take ExpDistance",
    ),
    "kernel by name": (
        lambda: wc.skce(Y, NORMAL, kernel="gaussian"),  # type: ignore[arg-type]
        TypeError,
        "kernel must be a kernel such as",
    ),
    "a metric of other families": (
        lambda: wc.skce(Y, NORMAL, kernel=ExpDistance(TotalVariation()) @ Gaussian()),
        TypeError,
        r"TotalVariation\(\) is not available for Normal predictions; take",
    ),
    "Delta with densities": (
        lambda: wc.skce(Y, NORMAL, kernel=ExpDistance(Wasserstein()) @ Delta()),
        ValueError,
        r"Delta\(\) compares targets for equality",
    ),
    "block size without blocks": (
        lambda: wc.skce(Y, NORMAL, block_size=2),
        ValueError,
        "block_size is for estimator=\"block\" only, found estimator='unbiased'",
    ),
    "shuffling without blocks": (
        lambda: wc.skce(Y, NORMAL, estimator="biased", rng=2),
        ValueError,
        "rng shuffles cases for estimator=\"block\" only, found estimator='biased'",
    ),
    "one draw": (
        lambda: wc.skce(Y, wc.Samples(MU[:, None]), estimator="biased"),
        ValueError,
        "the biased estimator needs at least two draws for each prediction",
    ),
    "objects without a kernel": (
        lambda: wc.skce(list("abcdefghi"), wc.Samples([list("ab")] * N)),
        ValueError,
        "Samples of objects have no default kernel; give",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_reason(name: str) -> None:
    call, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        call()


@pytest.mark.parametrize(
    ("block_size", "message"),
    [
        (1, "block_size of 9 cases must be a whole number between 2 and 9, found 1"),
        (10, "found 10"),
        (2.5, "found 2.5"),
        (math.nan, "found nan"),
        (math.inf, "found inf"),
        (True, "found True"),
        ([2], r"found \[2\]"),
        ("log", "unknown block_size 'log'; known are sqrt or a whole number, or a function of n"),
        (lambda n: n + 1, "found 10"),
        (lambda n: None, "found None"),
    ],
)
def test_block_sizes_that_are_refused(block_size: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wc.skce(Y, NORMAL, estimator="block", block_size=block_size)


# -- what is taken -------------------------------------------------------------------------------------


def test_one_case_has_a_biased_estimate() -> None:
    estimate = wc.skce([0.5], ONE, kernel=paper_kernel, estimator="biased")
    expected = 1 / math.sqrt(3) - 2 * math.exp(-0.0625) / math.sqrt(2) + 1.0
    assert_allclose(float(estimate), expected, rtol=1e-14)


def test_pairs_probabilities_and_frozen_distributions() -> None:
    expected = float(wc.skce(Y, NORMAL))
    for pred in (
        (MU, SIGMA),
        (MU.tolist(), SIGMA.tolist()),
        stats.norm(MU, SIGMA),
        stats.Normal(mu=MU, sigma=SIGMA),
        [stats.norm(m, s) for m, s in zip(MU, SIGMA, strict=True)],
    ):
        assert float(wc.skce(Y, pred)) == expected
    assert float(wc.skce(Y.tolist(), NORMAL)) == expected
    expected = float(wc.skce(LABELS, wc.Categorical(PROBS)))
    assert float(wc.skce(LABELS, PROBS)) == float(wc.skce(LABELS.tolist(), PROBS.tolist())) == expected
    p = PROBS[:, 0]
    expected = float(wc.skce(LABELS == 0, wc.Bernoulli(p)))
    assert float(wc.skce(LABELS == 0, p)) == float(wc.skce(1 * (LABELS == 0), stats.bernoulli(p))) == expected
    assert float(wc.kce(LABELS, PROBS)) == math.sqrt(float(wc.skce(LABELS, PROBS, estimator="biased")))


def test_labels_may_be_of_any_numeric_type() -> None:
    expected = float(wc.skce(LABELS, PROBS))
    for dtype in (np.uint8, np.int32, np.float32, np.float64):
        assert float(wc.skce(LABELS.astype(dtype), PROBS)) == expected


def test_read_only_arrays_are_left_alone() -> None:
    y, mu, sigma = Y.copy(), MU.copy(), SIGMA.copy()
    for array in (y, mu, sigma):
        array.flags.writeable = False
    assert float(wc.skce(y, wc.Normal(mu, sigma))) == float(wc.skce(Y, NORMAL))


def test_constant_predictions() -> None:
    y = np.linspace(-2.0, 2.0, 20)
    for pred in (
        wc.Normal(np.zeros(20), np.ones(20)),
        wc.Laplace(np.zeros(20), np.ones(20)),
        wc.Samples(np.zeros((20, 4))),
        wc.Samples(np.tile(np.arange(5.0), (20, 1))),
        wc.Gamma(np.full(20, 2.0), np.ones(20)),
    ):
        for estimator in ("unbiased", "biased", "block"):
            estimate = wc.skce(np.abs(y), pred, estimator=estimator)
            assert math.isfinite(float(estimate))
            assert estimate.kernel is not None
            assert estimate.kernel.predictions.lengthscale == 1.0
    same = wc.skce(np.arange(20) % 3, np.full((20, 3), 1 / 3))
    # All predictions are equal, so that k_P is one and h the centred identity.
    counts = np.bincount(np.arange(20) % 3)
    assert_allclose(float(same), ((counts**2).sum() - 20 - 20 * 19 / 3) / (20 * 19), atol=1e-15)


def test_huge_and_tiny_values() -> None:
    expected = float(wc.skce(Y, NORMAL))
    for scale in (1e-150, 1e-30, 1e30, 1e150):
        found = wc.skce(scale * Y, wc.Normal(scale * MU, scale * SIGMA))
        assert_allclose(float(found), expected, rtol=1e-9)
    far = wc.skce(Y + 1e8, wc.Normal(MU + 1e8, SIGMA))
    assert_allclose(float(far), expected, rtol=1e-5)
    # Targets that no prediction allows for: every pairing with them underflows to zero.
    on_predictions = np.exp(-np.hypot(MU[:, None] - MU, SIGMA[:, None] - SIGMA))
    h = on_predictions * (wc.pairing(Gaussian(), NORMAL, NORMAL) + 1.0)
    for estimator, value in (
        ("biased", h.mean()),
        ("unbiased", (h.sum() - np.trace(h)) / (N * (N - 1))),
        ("block", np.mean([h[k, k + 1] for k in range(0, N - 1, 2)])),
    ):
        block_size = 2 if estimator == "block" else None
        lost = wc.skce(
            np.full(N, 1e200), NORMAL, kernel=paper_kernel, estimator=estimator, block_size=block_size
        )
        assert_allclose(float(lost), value, rtol=1e-12)


def test_one_wild_target_does_not_spoil_the_rest() -> None:
    estimate = wc.skce(spoiled(1e300), NORMAL, kernel=paper_kernel)
    assert math.isfinite(float(estimate))
    assert estimate.standard_error is not None
    assert math.isfinite(estimate.standard_error)


def test_expectations_that_are_closed_are_not_lowered() -> None:
    # Enough components that another expansion would be cheaper: "closed" forbids it.
    rng = np.random.default_rng(4)
    members = [wc.Normal(rng.normal(size=N), SIGMA) for _ in range(12)]
    members += [wc.Laplace(rng.normal(size=N), SIGMA) for _ in range(12)]
    ensemble = wc.Mixture(members)
    estimate = wc.skce(Y, ensemble, expectations="closed")
    assert estimate.provenance["expectations"] == "closed"
    assert "lowered" not in estimate.provenance
    auto = wc.skce(Y, ensemble)
    assert auto.provenance["expectations"] == "closed"
    k = estimate.kernel.targets  # type: ignore[union-attr]
    on_predictions = estimate.kernel.predictions  # type: ignore[union-attr]
    both, left = wc.pairing(k, ensemble, ensemble), wc.pairing(k, ensemble, Y)
    squared = np.diag(both)[:, None] + np.diag(both)[None, :] - 2 * both
    h = np.exp(-squared / on_predictions.lengthscale**2) * (both - left - left.T + k(Y, Y))
    assert_allclose(float(estimate), (h.sum() - np.trace(h)) / (N * (N - 1)), rtol=0, atol=1e-12)
    assert_allclose(float(auto), float(estimate), rtol=0, atol=1e-12)


def test_lowered_expectations_are_reported() -> None:
    pred = wc.Gamma(2.0 + SIGMA, SIGMA)
    estimate = wc.skce(pred.sample(0), pred)
    assert estimate.provenance["expectations"] == "lowered"
    assert estimate.provenance["expectation_error"] < 1e-5
    assert any("Gamma" in text for text in estimate.provenance["lowered"])
    coarse = wc.skce(pred.sample(0), pred, expectations=wc.Lowering(nodes=8))
    assert coarse.provenance["expectation_error"] > estimate.provenance["expectation_error"]
    assert "numerical, estimated error" in repr(coarse)


def test_the_kernel_and_the_engine_are_reported() -> None:
    estimate = wc.skce(Y, NORMAL, engine=wc.engines.Tiled(tile=(4, 4), threads=1))
    assert estimate.kernel == wc.default_kernel(NORMAL)
    assert estimate.provenance["engine"] == "tiled"
    assert estimate.provenance["tile"] == (4, 4)
    assert estimate.provenance["threads"] == 1
    assert estimate.provenance["precision"] == "float64"
    assert estimate.n_samples == N
    assert estimate.name == "SKCE"
    assert estimate.estimator == "unbiased"
    assert wc.kce(Y, NORMAL).name == "KCE"
