"""Many data sets at once, against the library one by one, and against simulation."""

import numpy as np
import pytest

import wellcal as wc
from reproduction.experiments import estimators
from reproduction.experiments.batches import pair_sums, true_skce
from reproduction.experiments.plant import NOTHING, Plant
from reproduction.experiments.synthetic import draw_data_sets


@pytest.mark.parametrize("plant", [NOTHING, Plant(spread=1.3, lengthscale=0.7)])
@pytest.mark.parametrize("model", ["calibrated", "uncalibrated"])
@pytest.mark.parametrize(("d", "n"), [(1, 4), (1, 150), (1, 300), (3, 16), (10, 4), (10, 150)])
def test_sums_are_the_librarys(d, n, model, plant):
    """Up to n = 128 in one tile, then in several; in one dimension by features from there on."""
    data = draw_data_sets(np.random.default_rng(0), 3, n, d, model, plant)
    sums = pair_sums(data.centres, data.y, data.spread, plant.lengthscale)
    for index in range(3):
        arguments = data.y[index], data.predictions(index)
        biased = float(wc.skce(*arguments, kernel=plant.kernel, estimator="biased"))
        unbiased = float(wc.skce(*arguments, kernel=plant.kernel))
        assert (sums.different[index] + sums.same[index]) / n**2 == pytest.approx(biased, abs=1e-13)
        assert sums.different[index] / (n * (n - 1)) == pytest.approx(unbiased, abs=1e-13)


@pytest.mark.parametrize(("d", "count"), [(1, 400), (10, 60)])
def test_the_true_value_and_the_error_of_the_authors_estimate_of_it(d, count):
    """Theirs is the mean of 1000 unbiased estimates from 1000 cases each; four standard errors here."""
    data = draw_data_sets(np.random.default_rng(d), count, 1000, d, "uncalibrated")
    values = estimators.estimates("SKCE (B = n)", data, 1.0)
    spread = values.std(ddof=1)
    assert true_skce(d, 0.1, 1.0) == pytest.approx(values.mean(), abs=4 * spread / count**0.5)
    assert estimators.TRUTH_ERRORS[d] == pytest.approx(spread / 1000**0.5, rel=4 / (2 * count) ** 0.5)


@pytest.mark.parametrize("name", estimators.ESTIMATORS)
@pytest.mark.parametrize("n", [4, 16, 20])
def test_estimates_are_the_librarys(name, n):
    data = draw_data_sets(np.random.default_rng(2), 2, n, 10, "uncalibrated")
    found = estimators.estimates(name, data, 1.0)
    for index in range(2):
        options = estimators.ESTIMATORS[name]
        known = wc.skce(data.y[index], data.predictions(index), kernel=NOTHING.kernel, **options)
        assert found[index] == pytest.approx(float(known), abs=1e-14)


def test_a_library_that_estimates_something_else_is_found(monkeypatch):
    assert set(estimators.measure(0, 0, 1, 16, 20, 2)["seconds"]) == set(estimators.ESTIMATORS)
    monkeypatch.setattr(estimators, "skce", lambda *args, **options: wc.skce(*args, **options).value + 1e-9)
    with pytest.raises(RuntimeError, match="the library estimates"):
        estimators.measure(0, 0, 1, 16, 20, 2)
