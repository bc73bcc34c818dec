"""The SKCE with a kernel of low rank, beside that over all pairs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal._arrays import special
from wellcal._arrays.special import draw_index
from wellcal.hypotests.resampling import low_rank
from wellcal.hypotests.resampling.low_rank import low_rank_skce
from wellcal.hypotests.resampling.statistics import skce_statistic
from wellcal.hypotests.resampling.targets import target_sets
from wellcal.hypotests.setup import Setup, make_setup
from wellcal.problem.locations import Locations, draw_locations

pytestmark = pytest.mark.filterwarnings("ignore:with n_resamples")


def setup_of(pred: Any, resamples: int = 39) -> Setup:
    y = pred.sample(np.random.default_rng(5))
    return make_setup(y, pred, n_resamples=resamples, rng=3, pool=True)


def sets_of(setup: Setup) -> Any:
    return np.concatenate(list(target_sets(setup)))


def everything(setup: Setup) -> Locations:
    """All predictions, and all classes, as anchors."""
    n = setup.n_samples
    classes = setup.predictions.class_probs().shape[1]
    return Locations(setup.predictions, np.arange(n) % classes, (setup.predictions, np.arange(n)))


@pytest.mark.parametrize("support", [None, [0.0, 1.0, 2.5, 3.0, 7.0]])
def test_with_all_predictions_and_classes_as_anchors_it_is_the_skce(support: Any) -> None:
    rng = np.random.default_rng(0)
    values = None if support is None else np.array(support)
    setup = setup_of(wc.Categorical(rng.dirichlet(np.ones(5), 30), support=values))
    sets = sets_of(setup)
    found = low_rank_skce(setup, everything(setup))(sets)
    np.testing.assert_allclose(found, skce_statistic(setup)(sets), rtol=1e-8, atol=1e-10)


def families() -> dict[str, Any]:
    rng = np.random.default_rng(1)
    loc, scale = rng.normal(size=60), np.exp(0.3 * rng.normal(size=60))
    levels = np.array([0.1, 0.5, 0.9])
    return {
        "normals": wc.Normal(loc, scale),
        "Laplace": wc.Laplace(loc, scale),
        "counts": wc.Poisson(np.exp(loc)),
        "classes": wc.Categorical(rng.dirichlet(np.ones(6), 60)),
        "many classes": wc.Categorical(rng.dirichlet(np.ones(40), 60)),
        "binary": wc.Bernoulli(rng.uniform(size=60)),
        "grades": wc.Categorical(rng.dirichlet(np.ones(4), 60), support=np.array([0.0, 1.0, 3.0, 4.0])),
        "vectors": wc.DiagonalNormal(rng.normal(size=(60, 3)), np.ones((60, 3))),
        "covariances": wc.MultivariateNormal(
            rng.normal(size=(60, 2)), np.tile(np.array([[1.0, 0.5], [0.5, 2.0]]), (60, 1, 1))
        ),
        "draws": wc.Samples(loc[:, None] + rng.normal(size=(60, 8))),
        "quantiles": wc.Quantiles(levels, loc[:, None] + scale[:, None] * np.array([-1.3, 0.0, 1.3])),
        "mixtures": wc.Mixture([wc.Normal(loc, scale), wc.Normal(loc + 2.0, scale)]),
    }


@pytest.mark.parametrize("name", families())
def test_it_sees_what_all_pairs_see(name: str) -> None:
    """Two dozen anchors: on drawn targets the two statistics go together."""
    setup = setup_of(families()[name], resamples=199)
    sets = sets_of(setup)
    exact, found = skce_statistic(setup)(sets), low_rank_skce(setup)(sets)
    assert np.corrcoef(exact, found)[0, 1] > 0.95
    assert np.std(found) < 1.1 * np.std(exact)
    assert abs(np.mean(found)) < 0.3 * np.std(found)  # no case is paired with itself


def test_sums_of_kernels_add_up() -> None:
    from wellcal.kernels import ExpDistance, Gaussian, Wasserstein

    pred = families()["normals"]
    y = pred.sample(np.random.default_rng(5))
    one, other = (
        ExpDistance(Wasserstein(), 0.5) @ Gaussian(0.7),
        ExpDistance(Wasserstein(), 2.0) @ Gaussian(2.0),
    )
    anchors = draw_locations(pred, 20, 0)
    values = []
    for kernel in (one, other, one + 3.0 * other):
        setup = make_setup(y, pred, kernel, n_resamples=19, rng=0)
        here = Locations(anchors.predictions, anchors.targets, (setup.predictions, anchors.drawn[1]))
        values.append(low_rank_skce(setup, here)(sets_of(setup)))
    np.testing.assert_allclose(values[2], values[0] + 3.0 * values[1], rtol=1e-6, atol=1e-9)


def test_the_omnibus_test_uses_it_without_pairs() -> None:
    from wellcal.hypotests import Omnibus

    rng = np.random.default_rng(0)
    mu = rng.normal(size=300)
    y = mu + rng.normal(size=300) + 1.2 * ((mu > 0.3) & (mu < 0.8))
    found = {
        pairs: wc.calibration_test(y, wc.Normal(mu, np.ones(300)), method=Omnibus(pairs=pairs), rng=0)
        for pairs in (True, False)
    }
    assert all(result.provenance["pvalues"]["SKCE"] < 0.02 for result in found.values())


@pytest.mark.parametrize("kind", ["draws", "atoms"])
def test_objects_have_one_too(kind: Any) -> None:
    """Words: `auto` takes it for many cases."""
    kernels = wc.kernels
    same = kernels.Callable(lambda a, b: float(a == b))
    words = np.random.default_rng(2).choice(np.array(["a", "b", "c"], dtype=object), (20, 4))
    pred = wc.Samples(words, kind=kind)
    kernel = kernels.ExpDistance(kernels.MaximumMeanDiscrepancy(same)) @ same
    method = wc.hypotests.Omnibus(pairs=False)
    found = wc.calibration_test(words[:, 0], pred, kernel=kernel, method=method, n_resamples=39, rng=0)
    assert 0.0 < found.pvalue <= 1.0
    assert set(found.provenance["pvalues"]) == {"SKCE", "locations"}


def test_sets_for_tails_are_no_resamples() -> None:
    """Without a kernel that separates there are sums over cases alone, and all of them see more sets."""
    from wellcal.hypotests import Omnibus
    from wellcal.kernels import Joint

    mu = np.linspace(-1.0, 1.0, 20)
    kernel = Joint(lambda P, y, Q, z: np.exp(-((np.asarray(y)[:, None] - np.asarray(z)[None, :]) ** 2)))
    found = wc.calibration_test(
        mu + 0.1,
        wc.Normal(mu, np.ones(20)),
        kernel=kernel,
        method=Omnibus(pairs=False, most_resamples=0),
        n_resamples=19,
        keep_null=True,
        rng=0,
    )
    assert found.null.shape == (19,)
    assert round(20 * found.pvalue, 9) % 1 == 0


def test_vectors_of_many_coordinates_get_more_anchors() -> None:
    """Two dozen targets leave out most directions of 20 coordinates: with them it is 0.75."""
    rng = np.random.default_rng(2)
    setup = setup_of(wc.DiagonalNormal(rng.normal(size=(150, 20)), np.ones((150, 20))), resamples=99)
    sets = sets_of(setup)
    exact, found = skce_statistic(setup)(sets), low_rank_skce(setup)(sets)
    assert np.corrcoef(exact, found)[0, 1] > 0.93


def test_few_classes_have_the_sums_and_draws_of_many(monkeypatch: pytest.MonkeyPatch) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 40)
    setup = make_setup(np.zeros(40, dtype=int), wc.Categorical(probs), n_resamples=19, rng=0)
    sets = draw_index(probs, np.random.default_rng(1), 6)
    found = low_rank_skce(setup, everything(setup))(sets)
    for module in (low_rank, special):
        monkeypatch.setattr(module, "FEW_CLASSES", 0)
    assert np.array_equal(draw_index(probs, np.random.default_rng(1), 6), sets)
    np.testing.assert_allclose(low_rank_skce(setup, everything(setup))(sets), found, rtol=1e-11, atol=1e-13)
