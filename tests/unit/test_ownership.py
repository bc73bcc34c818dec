"""A batch is a snapshot: what its caller does with the arrays afterwards changes nothing."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import array_api_strict as xp
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from scipy import stats

import wellcal as wc
from wellcal._arrays.namespaces import to_numpy
from wellcal.kernels import ExpDistance, Gaussian, Laplacian, Wasserstein

N = 12
rng = np.random.default_rng(3)
UNIT = rng.uniform(0.1, 0.9, N)
REAL = rng.normal(size=N)
TABLE = np.sort(rng.normal(size=(N, 3)), axis=1)
SIMPLEX = rng.dirichlet(np.ones(3), N)
COV = np.stack([np.eye(3) * (1.0 + k) for k in range(N)])

FAMILIES: dict[str, tuple[Callable[..., Any], tuple[np.ndarray, ...]]] = {
    "Bernoulli": (wc.Bernoulli, (UNIT,)),
    "Categorical": (wc.Categorical, (SIMPLEX,)),
    "classes": (lambda p, c: wc.Categorical(p, classes=c), (SIMPLEX, np.array([4, 5, 6]))),
    "support": (lambda p, c: wc.Categorical(p, support=c), (SIMPLEX, np.array([4.0, 5.0, 6.0]))),
    "Normal": (wc.Normal, (REAL, UNIT)),
    "Laplace": (wc.Laplace, (REAL, UNIT)),
    "DiagonalNormal": (wc.DiagonalNormal, (TABLE, SIMPLEX)),
    "MultivariateNormal": (wc.MultivariateNormal, (TABLE, COV)),
    "Poisson": (wc.Poisson, (UNIT,)),
    "NegativeBinomial": (wc.NegativeBinomial, (UNIT, UNIT + 1.0)),
    "StudentT": (wc.StudentT, (UNIT + 3.0, REAL, UNIT)),
    "Gamma": (wc.Gamma, (UNIT, UNIT + 1.0)),
    "LogNormal": (wc.LogNormal, (REAL, UNIT)),
    "Beta": (wc.Beta, (UNIT + 1.0, UNIT + 2.0)),
    "Dirichlet": (wc.Dirichlet, (SIMPLEX + 1.0,)),
    "PowerExponential": (wc.PowerExponential, (REAL, UNIT, UNIT + 1.0)),
    "vectors": (lambda a, b, c: wc.PowerExponential(a, shape=b, cov=c), (TABLE, UNIT + 1.0, COV)),
    "Samples": (wc.Samples, (TABLE,)),
    "atoms": (lambda v, w: wc.Samples(v, w, kind="atoms"), (TABLE, SIMPLEX)),
    "shared weights": (lambda v, w: wc.Samples(v, w, kind="atoms"), (TABLE, SIMPLEX[0])),
    "Quantiles": (lambda v: wc.Quantiles([0.1, 0.5, 0.9], v), (TABLE,)),
    "levels": (wc.Quantiles, (np.array([0.1, 0.5, 0.9]), TABLE)),
    "Mixture": (
        lambda a, b, w: wc.Mixture([wc.Normal(a, b), wc.Normal(b, b)], w),
        (REAL, UNIT, np.array([0.3, 0.7])),
    ),
    "as_predictions": (lambda p: wc.as_predictions(p), (SIMPLEX,)),
    "pair": (lambda a, b: wc.as_predictions((a, b)), (REAL, UNIT)),
    "scipy norm": (lambda a, b: wc.as_predictions(stats.norm(a, b)), (REAL, UNIT)),
    "scipy uniform": (lambda a, b: wc.as_predictions(stats.uniform(a, b)), (REAL, UNIT)),
}
NUMPY_ONLY = ("scipy norm", "scipy uniform", "levels", "classes", "support", "shared weights")


def snapshot(batch: Any) -> list[bytes]:
    """Everything that a batch holds and draws."""
    held: list[bytes] = []
    batch.map_arrays(lambda a: held.append(to_numpy(a).tobytes()) or a)
    held += [np.asarray(value).tobytes() for value in vars(batch).values() if isinstance(value, np.ndarray)]
    return [*held, np.asarray(to_numpy(batch.sample(rng=0, size=3))).tobytes()]


@pytest.mark.parametrize("name", FAMILIES)
def test_changing_numpy_arrays_changes_no_batch(name: str) -> None:
    make, given = FAMILIES[name]
    arrays = [array.copy() for array in given]
    batch = make(*arrays)
    before = snapshot(batch)
    for array in arrays:
        array[...] = array[::-1].copy()
        array += 1
    assert snapshot(batch) == before


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in NUMPY_ONLY])
def test_changing_tensors_changes_no_batch(name: str) -> None:
    make, given = FAMILIES[name]
    for source in (torch.tensor, torch.from_numpy):
        tensors = [source(array.copy()) for array in given]
        batch = make(*tensors)
        before = snapshot(batch)
        for tensor in tensors:
            tensor += 1.0
        assert snapshot(batch) == before


@pytest.mark.parametrize("name", ["Normal", "Gamma", "StudentT"])
@pytest.mark.parametrize("library", ["torch", "jax"])
def test_numpy_arrays_carried_into_another_library(name: str, library: str) -> None:
    """The first parameter is of that library, the others are NumPy's and come along."""
    make, given = FAMILIES[name]
    arrays = [array.copy() for array in given]
    first: Any = torch.tensor(arrays[0]) if library == "torch" else jnp.asarray(arrays[0])
    batch = make(first, *arrays[1:])
    before = snapshot(batch)
    for array in arrays[1:]:
        array += 1.0
    assert snapshot(batch) == before


def test_a_strict_library() -> None:
    given = xp.asarray(REAL.copy())
    batch = wc.Normal(given, xp.asarray(UNIT))
    given[0] = 99.0
    assert float(batch.loc[0]) == REAL[0]


def test_gradients_reach_what_was_given() -> None:
    mu = torch.tensor(REAL, requires_grad=True)
    sigma = torch.tensor(UNIT, requires_grad=True)
    batch = wc.Normal(mu, sigma)
    with torch.no_grad():
        mu += 5.0
    wc.skce(torch.tensor(REAL), batch).value.backward()
    expected = torch.tensor(REAL, requires_grad=True)
    wc.skce(torch.tensor(REAL), wc.Normal(expected, torch.tensor(UNIT))).value.backward()
    torch.testing.assert_close(mu.grad, expected.grad)
    assert sigma.grad is not None


@pytest.mark.parametrize("make", [wc.Gamma, wc.Beta, wc.NegativeBinomial])
def test_no_stale_results(make: Callable[..., Any]) -> None:
    """Families whose atoms are remembered as long as the batch lives."""
    a, b = UNIT + 1.0, UNIT + 0.5
    kernel = ExpDistance(Wasserstein()) @ Gaussian() if make is wc.Normal else None
    y = np.zeros(N) + (0.5 if make is wc.Beta else 1.0)
    batch = make(a, b)
    first = float(wc.skce(y, batch, kernel=kernel))
    kernel = wc.default_kernel(batch)
    a *= 3.0
    assert float(wc.skce(y, batch)) == first
    assert float(wc.skce(y, make(a, b), kernel=kernel)) != first


# -- nobody writes to a batch -------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_arrays_of_a_batch_are_read_only(name: str) -> None:
    make, given = FAMILIES[name]
    whole = make(*given)
    copies = (pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole), copy.copy(whole))
    for batch in (whole, whole[2:5], whole[[1, 3]], whole[np.arange(N) > 3], *copies):
        for value in vars(batch).values():
            if isinstance(value, np.ndarray):
                with pytest.raises(ValueError, match="read-only"):
                    value[...] = value


def test_given_arrays_stay_writable() -> None:
    for name, (make, given) in FAMILIES.items():
        arrays = [array.copy() for array in given]
        make(*arrays)[1:]
        assert all(array.flags.writeable for array in arrays), name


def test_replacing_a_field_leaves_the_given_array_alone() -> None:
    given = REAL.copy()
    batch = wc.Normal(UNIT, UNIT).with_fields(loc=given)
    given[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        batch.loc[0] = 2.0


def test_a_read_only_view_of_memory_that_changes() -> None:
    memory = REAL.copy()
    view = memory[:]
    view.flags.writeable = False
    batch = wc.Normal(view, UNIT)
    memory += 1.0
    np.testing.assert_array_equal(batch.loc, REAL)


def test_a_family_of_ones_own() -> None:
    from wellcal.extend import family, parameter, positive

    @family
    class Box(wc.Predictions):
        width: np.ndarray = parameter(positive)
        table: Any = None

        def __post_init__(self) -> None:
            super().__post_init__()
            self.store(table=np.stack([self.width, self.width], axis=1))

        def draw(self, rng: np.random.Generator, size: int) -> np.ndarray:
            return rng.random((size, len(self))) * self.width

    given = UNIT.copy()
    box = Box(given)
    given += 1.0
    np.testing.assert_array_equal(box.width, UNIT)
    for array in (box.width, box.table):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


# -- kernels, monitors, results -----------------------------------------------------------------------


def test_numbers_of_kernels_are_copied() -> None:
    scale = np.array(2.0)
    kernels = [Gaussian(scale), Laplacian(scale), ExpDistance(Wasserstein(), lengthscale=scale)]
    product = scale * Gaussian()
    scale[...] = 5.0
    assert [kernel.lengthscale for kernel in kernels] == [2.0] * 3
    assert product.factor == 2.0


def test_tensors_of_kernels() -> None:
    """A constant is copied; what requires a gradient is a parameter, and the kernel follows its training."""
    constant, learned = torch.tensor(2.0), torch.tensor(2.0, requires_grad=True)
    fixed, trained = Gaussian(constant), Gaussian(learned)
    with torch.no_grad():
        constant += 3.0
        learned += 3.0
    assert float(fixed.lengthscale) == 2.0
    assert trained.lengthscale is learned


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_a_monitor_keeps_what_it_saw(library: str) -> None:
    if library == "torch":
        y, mu, sigma = (torch.tensor(x) for x in (REAL, REAL, UNIT))
    else:
        y, mu, sigma = REAL.copy(), REAL.copy(), UNIT.copy()
    kernel = ExpDistance(Wasserstein()) @ Gaussian()
    monitor, other = wc.Monitor(kernel, rng=0), wc.Monitor(kernel, rng=0)
    pred = wc.Normal(mu, sigma)
    monitor.update(y, pred)
    other.update(REAL, wc.Normal(REAL, UNIT))
    y += 7.0
    mu += 7.0
    if library == "torch":
        pred.loc[...] = 7.0  # tensors cannot be made read-only
    again = REAL, wc.Normal(REAL, UNIT)
    assert monitor.update(*again) == other.update(*again)


def test_locations_of_a_witness() -> None:
    targets = REAL[:3].copy()
    found = wc.witness(
        REAL, wc.Normal(REAL, UNIT), (wc.Normal(REAL[:3], 1.0), targets), rng=0, n_resamples=99
    )
    targets += 1.0
    np.testing.assert_array_equal(found.locations[1], REAL[:3])
