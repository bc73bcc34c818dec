"""SKCE of many sets of targets, beside one problem prepared for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal._arrays.namespaces import namespace
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import Rows, map_rows, slice_rows
from wellcal.engines import Tiled
from wellcal.expectations.bilinear import ElementForm
from wellcal.hypotests.resampling.kernel_families import kernel_family
from wellcal.hypotests.resampling.targets import draw_targets, target_sets
from wellcal.hypotests.setup import Setup, make_setup
from wellcal.kernels import (
    Callable,
    Delta,
    ExpDistance,
    Gaussian,
    Joint,
    Laplacian,
    Matern,
    MaximumMeanDiscrepancy,
    TotalVariation,
    Wasserstein,
    paper_kernel,
)
from wellcal.measures.target_sets import resampled
from wellcal.measures.target_sets.gaussian_term import GaussianTerm
from wellcal.measures.target_sets.resampled import (
    MEASURED,
    LabelTerm,
    PairTerm,
    ProductTerm,
    ResampledSKCE,
    Ways,
    has_terms,
    make_term,
)
from wellcal.problem.problem import prepare_checked

from ...engines.examples import EXAMPLES, Example

SETS = 5
NO_DRAWS = [name for name in EXAMPLES if name != "Mixture with draws"]
"""Targets of draws within a mixture cannot be drawn exactly; those of all others can."""

LAYOUTS: dict[str, tuple[Ways, dict[str, int]]] = {
    "as it is": (Ways(), {}),
    "features": (Ways(few_cases=4, most_features=100_000), {}),
    "pairs": (Ways(most_features=0), {}),
    "tables": (Ways(most_classes=0), {}),
    "kernel not kept, small tiles": (Ways(rows=1), {"work": 1, "cache": 64}),
    "kernel kept, small tiles": (Ways(rows=4), {"cache": 64}),
    "one set at a time": (Ways(), {"work": 1, "cache": 1}),
}
"""How sums are found: which way is taken, and with how much memory."""


def setup_of(example: Example, kernel: Any = None, **options: Any) -> Setup:
    options = {"expectations": example.expectations, "pool": True, "rng": 4, **options}
    return make_setup(example.targets, example.build(), kernel, **options)


def sets_of(setup: Setup, count: int = SETS) -> np.ndarray:
    """The observed targets and some drawn ones."""
    drawn = draw_targets(setup.predictions, np.random.default_rng(9), count - 1, setup.targets)
    return np.concatenate([setup.targets[None], drawn])


def by_definition(setup: Setup, kernel: Any, targets: np.ndarray) -> tuple[np.ndarray, float]:
    """n SKCE_u of each set from a problem of its own, and the size of what is summed."""
    found: list[float] = []
    size = 0.0
    for y in targets:
        problem = prepare_checked(y, setup.predictions, kernel, expectations=setup.expectations)
        h = np.asarray(problem.h(problem.rows, problem.rows))
        upper = np.triu_indices(setup.n_samples, 1)
        found.append(2.0 * h[upper].sum() / (setup.n_samples - 1))
        size = max(size, 2.0 * np.abs(h[upper]).sum() / (setup.n_samples - 1))
    return np.array(found), size


def agree(
    setup: Setup, kernels: list[Any], targets: np.ndarray, tolerance: float = 1e-10, ways: Ways = MEASURED
) -> None:
    found = ResampledSKCE(setup, kernels, ways)(targets)
    assert found.shape == (len(targets), len(kernels))
    for column, kernel in zip(found.T, kernels, strict=True):
        expected, size = by_definition(setup, kernel, targets)
        np.testing.assert_allclose(column, expected, rtol=0.0, atol=tolerance * size)


@pytest.mark.parametrize("name", NO_DRAWS)
def test_values_are_those_of_a_problem_for_each_set(name: str) -> None:
    """Whichever way is taken, and whatever the chunks."""
    setup = setup_of(EXAMPLES[name])
    kernel, targets = setup.problem.kernel, sets_of(setup)
    expected, size = by_definition(setup, kernel, targets)
    for layout, (ways, sizes) in LAYOUTS.items():
        with limited(**sizes):
            found = ResampledSKCE(setup, [kernel], ways)(targets)[:, 0]
        np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-10 * size, err_msg=layout)


@pytest.mark.parametrize("name", NO_DRAWS)
def test_sums_and_factors_and_several_kernels(name: str) -> None:
    """Kernels that share a kernel on targets share work, and their values stay apart."""
    setup = setup_of(EXAMPLES[name])
    plain = setup.kernel
    wider = plain.predictions.rescaled(2.0) @ plain.targets
    kernels = [plain, 3.0 * plain, 0.5 * plain + 2.0 * (plain + wider), wider]
    targets = sets_of(setup, 3)
    found = ResampledSKCE(setup, kernels)(targets)
    for column, kernel in ((0, plain), (3, wider)):
        expected, size = by_definition(setup, kernel, targets)
        np.testing.assert_allclose(found[:, column], expected, rtol=0.0, atol=1e-10 * size)
    np.testing.assert_allclose(found[:, 1], 3.0 * found[:, 0], rtol=1e-12)
    np.testing.assert_allclose(found[:, 2], 2.5 * found[:, 0] + 2.0 * found[:, 3], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["Normal", "Categorical", "Samples", "DiagonalNormal"])
def test_the_whole_family_of_kernels(name: str) -> None:
    setup = setup_of(EXAMPLES[name])
    kernels = list(kernel_family(setup.kernel))
    assert len(kernels) in (7, 12)
    agree(setup, kernels, sets_of(setup))
    sharing = ResampledSKCE(setup, kernels)
    assert len(sharing.terms) == len({kernel.targets for kernel in kernels})


@pytest.mark.parametrize(
    "on_targets",
    [Laplacian(0.7), Matern(1.5, 0.8), Gaussian(0.02), Gaussian(50.0), Gaussian() * Laplacian()],
    ids=repr,
)
@pytest.mark.parametrize("name", ["Normal", "Samples as atoms", "Laplace"])
def test_other_kernels_on_targets(name: str, on_targets: Any) -> None:
    example = EXAMPLES[name]
    lowering = wc.Lowering(nodes=32)
    setup = setup_of(example, ExpDistance(Wasserstein()) @ on_targets, expectations=lowering)
    agree(setup, [setup.kernel], sets_of(setup))


def squared_exponential(a: Any, b: Any) -> Any:
    return np.exp(-((np.asarray(a)[:, None] - np.asarray(b)[None, :]) ** 2))


def test_a_users_function() -> None:
    on_targets = Callable(squared_exponential, vectorized=True)
    setup = setup_of(
        EXAMPLES["Samples"], ExpDistance(MaximumMeanDiscrepancy(on_targets), power=2.0) @ on_targets
    )
    agree(setup, [setup.kernel], sets_of(setup))


def test_objects() -> None:
    letters = np.array(list("abcd"), dtype=object)
    rng = np.random.default_rng(1)
    on_targets = Callable(lambda a, b: float(a == b))
    kernel = ExpDistance(MaximumMeanDiscrepancy(on_targets), power=2.0) @ on_targets
    draws = wc.Samples(rng.choice(letters, size=(7, 3)))
    setup = make_setup(rng.choice(letters, size=7), draws, kernel, pool=True)
    agree(setup, [kernel], sets_of(setup))


def test_counts_far_beyond_what_was_predicted() -> None:
    """Observed counts may lie anywhere: the common support reaches them."""
    rate = np.array([0.5, 1.0, 2.0, 4.0])
    setup = make_setup([0, 400, 3, 90], wc.Poisson(rate), rng=0)
    agree(setup, [setup.kernel], sets_of(setup))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", ["Normal", "Categorical", "DiagonalNormal", "Laplace", "Poisson"])
def test_many_tiles_and_threads(name: str, threads: int) -> None:
    example = EXAMPLES[name]
    rows = np.random.default_rng(2).integers(len(example.targets), size=150)
    engine = Tiled(threads=threads)
    setup = make_setup(example.targets[rows], example.build(rows=rows), rng=0, engine=engine)
    with limited(cache=1024, work=10_000 if threads == 2 else 1_000_000):  # the kernel is kept, or not
        agree(setup, [setup.kernel], sets_of(setup, 3), ways=Ways(rows=16))


def test_more_cases_than_a_row_of_tiles() -> None:
    """Beyond 2,000 cases the kernel on predictions is not kept, and rows of tiles are cut."""
    rng = np.random.default_rng(6)
    n = 2_100
    setup = make_setup(rng.integers(0, 3, n), wc.Categorical(rng.dirichlet(np.ones(3), n)), rng=0)
    found = ResampledSKCE(setup, [setup.kernel])(setup.targets[None])[0, 0]
    assert found == pytest.approx(n * float(setup.estimate), abs=1e-9)


# -- which way is taken -----------------------------------------------------------------------------


def test_the_way_depends_on_kind_and_number() -> None:
    def way(name: str) -> type:
        setup = setup_of(EXAMPLES[name])
        return type(make_term(setup, setup.kernel.targets))

    assert way("Categorical") is ProductTerm
    assert way("Normal") is PairTerm
    assert way("DiagonalNormal") is GaussianTerm
    rng = np.random.default_rng(0)
    many = make_setup(rng.normal(size=100), wc.Normal(rng.normal(size=100), np.ones(100)))
    assert isinstance(make_term(many, many.kernel.targets), ProductTerm)
    classes = make_setup(np.zeros(5, int), wc.Categorical(rng.dirichlet(np.ones(40), 5)))
    assert isinstance(make_term(classes, Delta()), LabelTerm)


def test_distant_vectors_do_not_go_by_matrix_products() -> None:
    """|x|^2 would drown the distances between neighbours."""
    near = wc.DiagonalNormal(np.zeros((4, 2)), np.ones((4, 2)))
    assert GaussianTerm.prepare(Gaussian(), near) is not None
    distant = wc.DiagonalNormal(np.full((4, 2), 1e6), np.ones((4, 2)))
    assert GaussianTerm.prepare(Gaussian(), distant) is not None  # what matters is how far they lie apart
    far = np.array([[0.0, 0.0], [1e3, 0.0], [0.0, 1.0], [5.0, 5.0]])
    pred = wc.DiagonalNormal(far, np.ones((4, 2)))
    assert GaussianTerm.prepare(Gaussian(), pred) is None
    assert GaussianTerm.prepare(Laplacian(), near) is None
    setup = make_setup(far + 0.3, pred, paper_kernel, rng=0)
    agree(setup, [paper_kernel], sets_of(setup))


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_matrix_products_keep_their_precision(offset: float) -> None:
    rng = np.random.default_rng(8)
    loc = rng.normal(size=(30, 10)) + offset
    setup = make_setup(loc + rng.normal(size=(30, 10)), wc.DiagonalNormal(loc, np.ones((30, 10))), rng=0)
    assert isinstance(make_term(setup, setup.kernel.targets), GaussianTerm)
    agree(setup, [setup.kernel], sets_of(setup), 1e-11 if offset == 0.0 else 1e-8)


def test_kernels_without_terms_are_refused() -> None:
    joint = Joint(lambda P, y, Q, z: np.ones((len(P), len(Q))))
    assert has_terms(paper_kernel + 2.0 * paper_kernel)
    assert not has_terms(paper_kernel + joint)
    setup = setup_of(EXAMPLES["Normal"])
    with pytest.raises(TypeError, match="no product of a kernel on predictions and one on targets"):
        ResampledSKCE(setup, [joint])


def test_cost_grows_with_pairs_and_terms() -> None:
    rng = np.random.default_rng(0)

    def cost(n: int, kernel: Any) -> float:
        mu = rng.normal(size=n)
        return ResampledSKCE(make_setup(mu, wc.Normal(mu, np.ones(n))), [kernel]).cost

    assert cost(20, paper_kernel) == 4.0 * cost(10, paper_kernel)
    assert cost(10, paper_kernel + paper_kernel) == cost(10, paper_kernel)  # one kernel on targets
    other = ExpDistance(Wasserstein()) @ Laplacian()
    assert cost(10, paper_kernel + other) > cost(10, paper_kernel)


@pytest.mark.parametrize(
    ("name", "small"), [("DiagonalNormal", True), ("Normal", True), ("Categorical", False)]
)
def test_many_small_products_keep_blas_to_one_thread(
    name: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two threads that meet for each of many small products take ten times as long on a busy machine."""
    entered: list[int] = []

    @contextmanager
    def one_thread() -> Iterator[None]:
        entered.append(1)
        yield

    monkeypatch.setattr(resampled, "one_blas_thread", one_thread)
    setup = setup_of(EXAMPLES[name], engine=Tiled(threads=1))
    ResampledSKCE(setup, [setup.kernel])(sets_of(setup))
    assert bool(entered) == small


# -- batches of rows --------------------------------------------------------------------------------


def pair_term(setup: Setup, on_targets: Any) -> PairTerm:
    term = make_term(setup, on_targets, Ways(exponents=False))
    assert isinstance(term, PairTerm)
    return term


def entry(rows: Rows, r: int) -> Rows:
    """Rows of one set of several."""
    return map_rows(lambda value: value[r], rows)


ELEMENTWISE = [
    name
    for name in NO_DRAWS
    if not name.startswith(("Bernoulli", "Categorical", "Mixture of c", "Poisson", "Negative", "Quantiles"))
]


CLOSED = ["Normal", "DiagonalNormal", "MultivariateNormal", "Mixture", "Mixture of vectors"]


@pytest.mark.parametrize(
    ("name", "on_targets"),
    [(name, Laplacian(0.7)) for name in ELEMENTWISE] + [(name, Gaussian(0.7)) for name in CLOSED],
    ids=str,
)
def test_batches_are_tiles_one_by_one(name: str, on_targets: Any) -> None:
    setup = setup_of(EXAMPLES[name], expectations=wc.Lowering(nodes=16, points=16))
    term = pair_term(setup, on_targets)
    ops = ops_for(namespace())
    _, cross, observed = term.forms
    targets = sets_of(setup, 3)
    encoded = term.encode(targets)
    shared = map_rows(lambda value: value[None, :4], term.rows)
    left = map_rows(lambda value: value[:, :4], encoded)
    right = map_rows(lambda value: value[:, 4:], encoded)
    among = observed(ops, left, right)
    between = cross(ops, shared, right)
    assert among.shape == between.shape == (3, 4, setup.n_samples - 4)
    for r in range(3):
        row = entry(right, r)
        expected = observed(ops, entry(left, r), row)
        np.testing.assert_allclose(among[r], expected, rtol=1e-12, atol=1e-15)
        expected = cross(ops, entry(shared, 0), row)
        np.testing.assert_allclose(between[r], expected, rtol=1e-12, atol=1e-15)


def test_batches_of_components_with_weights() -> None:
    """Components on both sides, with weights in the rows, and a batch axis of one on either side."""
    setup = setup_of(EXAMPLES["Mixture"])
    term = pair_term(setup, Gaussian(0.7))
    form = term.forms[0]
    assert isinstance(form, ElementForm)
    ops = ops_for(namespace())
    one = map_rows(lambda value: value[None, :3], term.rows)
    two = map_rows(lambda value: np.stack([value[3:8], value[4:9]]), term.rows)
    first = slice_rows(term.rows, slice(0, 3))
    for r, start in enumerate((3, 4)):
        part = slice_rows(term.rows, slice(start, start + 5))
        np.testing.assert_allclose(form(ops, one, two)[r], form(ops, first, part), rtol=1e-12)
        np.testing.assert_allclose(form(ops, two, one)[r], form(ops, part, first), rtol=1e-12)


# -- sets of targets --------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 99, 100, 250])
def test_sets_come_in_blocks_with_the_observed_one_first(count: int) -> None:
    setup = setup_of(EXAMPLES["Normal"], n_resamples=count)
    blocks = list(target_sets(setup))
    together = np.concatenate(blocks)
    assert together.shape == (count + 1, setup.n_samples)
    np.testing.assert_array_equal(together[0], setup.targets)
    assert max(map(len, blocks)) <= 101
    assert len(np.unique(together[:, 0])) == count + 1


@pytest.mark.parametrize("name", NO_DRAWS)
def test_drawn_targets_have_the_form_of_the_observed(name: str) -> None:
    setup = setup_of(EXAMPLES[name])
    drawn = sets_of(setup, 4)[1:]
    assert drawn.dtype == setup.targets.dtype
    assert drawn.shape == (3, *setup.targets.shape)
    for y in drawn:
        checked = setup.predictions.check_targets(_form(setup, y))
        np.testing.assert_array_equal(np.asarray(checked), y)


def _form(setup: Setup, y: np.ndarray) -> Any:
    from wellcal.hypotests.resampling.targets import users_form

    return users_form(setup.predictions, y)


def test_families_of_kernels() -> None:
    family = kernel_family(ExpDistance(Wasserstein(), 2.0) @ Gaussian(0.5))
    scales = {(k.predictions.lengthscale, k.targets.lengthscale) for k in family}
    assert scales == {(p, y) for p in (1.0, 2.0, 8.0) for y in (0.125, 0.25, 0.5, 1.0)}
    without = kernel_family(ExpDistance(TotalVariation(), 1.0) @ Delta())
    assert [k.predictions.lengthscale for k in without] == [0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
    assert kernel_family(paper_kernel + paper_kernel) == (paper_kernel + paper_kernel,)
    inside = ExpDistance(MaximumMeanDiscrepancy(Gaussian(3.0)), 2.0) @ (Gaussian(1.0) + 2.0 * Laplacian(5.0))
    on_predictions = inside.predictions.rescaled(2.0)
    assert on_predictions == ExpDistance(MaximumMeanDiscrepancy(Gaussian(3.0)), 4.0)  # the metric stays
    assert inside.targets.rescaled(2.0) == Gaussian(2.0) + 2.0 * Laplacian(10.0)


# -- counts ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["nodes", "representatives", "features", "grid", "delta"])
def test_resampled_counts_agree_with_single_problems(name: str) -> None:
    rng = np.random.default_rng(0)
    n = 300 if name == "representatives" else 40
    means = np.exp(rng.uniform(0.0, 6.5, n))
    pred: Any = wc.NegativeBinomial(means, 0.7 if name == "representatives" else rng.uniform(0.1, 5.0, n))
    on_targets: Any = Gaussian(9.0)
    if name == "features":
        pred, on_targets = wc.Poisson(means), Gaussian(40.0)
    elif name == "grid":
        pred, on_targets = wc.Poisson(np.minimum(means, 20.0)), Laplacian(3.0)
    elif name == "delta":
        pred, on_targets = wc.NegativeBinomial(np.minimum(means, 20.0), 0.5), Delta()
    kernel = ExpDistance(MaximumMeanDiscrepancy(Gaussian(30.0)), 0.5, 2.0) @ on_targets
    setup = make_setup(pred.sample(rng=1), pred, kernel, rng=2)
    for sizes in ({}, {"work": 1, "cache": 64}):
        with limited(**sizes):
            agree(setup, [kernel], sets_of(setup, 3))


def test_evaluations_are_worth_the_same_everywhere() -> None:
    """The budget of "auto" counts in them: a family may not be ten times as dear as it says."""
    per_pair: dict[str, float] = {}
    for name in ("Normal", "Laplace", "MultivariateNormal", "Poisson", "NegativeBinomial", "Categorical"):
        setup = setup_of(EXAMPLES[name])
        cost = ResampledSKCE(setup, [setup.problem.kernel]).cost
        per_pair[name] = cost / (0.5 * setup.n_samples**2)
    # Nanoseconds for a pair, measured on one core, over 1.5: within a factor of two.
    assert 13.0 < per_pair["Laplace"] < 52.0
    assert 20.0 < per_pair["MultivariateNormal"] < 90.0
    assert 2.0 < per_pair["Poisson"] < 10.0
    assert 2.0 < per_pair["NegativeBinomial"] < 10.0
    assert per_pair["Categorical"] < 4.0
