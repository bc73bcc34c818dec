"""Experiments piece by piece: what depends on what, and agreement with direct computations."""

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from reproduction import published
from reproduction.catalogue import EXPERIMENTS
from reproduction.experiments import decisions, estimators, friedman, ols, synthetic
from reproduction.experiments.locations import cme_pvalues
from reproduction.experiments.plant import NOTHING, Plant
from wellcal.hypotests import MeanEmbedding, calibration_test
from wellcal.kernels import paper_kernel


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_keys_are_unique_and_costs_positive(experiment):
    for sizes in (experiment.quick, experiment.full):
        tasks = experiment.tasks(sizes, 0)
        assert len({task.key for task in tasks}) == len(tasks)
        assert min(task.cost for task in tasks) > 0


def test_full_sizes_are_the_papers_and_repeats_are_enough():
    """Fixed before the first full run: 199 repeats, so that p-values of 0.005 and 0.01 are there."""
    assert estimators.Sizes((4, 16, 64, 256, 1024), 500, 199, 20) == estimators.FULL
    sizes = decisions.FULL
    assert (sizes.cases, sizes.bootstrap_resamples, sizes.location_sets) == (
        (4, 16, 64, 256, 1024),
        1000,
        199,
    )
    assert min(sizes.data_sets.values()) >= 1000
    assert (friedman.FULL.iterations, friedman.NETWORKS, friedman.FULL.repeats) == (5000, 10, 199)
    assert friedman.FULL.compared == friedman.PUBLISHED
    assert ols.Sizes(100_000, 1000, 999) == ols.FULL
    for experiment in EXPERIMENTS.values():
        assert "/" not in repr(experiment.full), "what a store is known by does not depend on the machine"


# -- synthetic models ------------------------------------------------------------------------


@pytest.mark.parametrize("model", published.MODELS)
def test_synthetic_cases(model):
    y, pred = synthetic.draw_cases(np.random.default_rng(0), 4000, 3, model)
    centre = np.asarray(pred.loc)
    assert np.ptp(centre, axis=1).max() == 0.0
    assert stats.kstest(centre[:, 0], "uniform").pvalue > 1e-3
    first = 0.1 if model == "uncalibrated" else centre[:, 0]
    assert stats.kstest((y[:, 0] - first) / 0.1, "norm").pvalue > 1e-3
    assert stats.kstest((y[:, 2] - centre[:, 2]) / 0.1, "norm").pvalue > 1e-3


def test_repeats_do_not_depend_on_how_they_are_cut_into_tasks():
    whole = estimators.repeat(5, 1, 10, 16, 0, 4, 20, NOTHING)["found"]
    parts = [estimators.repeat(5, 1, 10, 16, start, start + 2, 20, NOTHING)["found"] for start in (0, 2)]
    for name, found in whole.items():
        for number, values in found.items():
            assert values == parts[0][name][number] + parts[1][name][number]
    assert estimators.repeat(6, 1, 10, 16, 0, 4, 20, NOTHING)["found"] != whole


def test_estimators_have_data_sets_of_their_own():
    first = [
        estimators.data_sets(0, 0, 1, 4, name, 0, 3, NOTHING).y[0, 0, 0] for name in estimators.ESTIMATORS
    ]
    assert len(set(first)) == len(first)


def test_estimator_summary():
    sizes = estimators.Sizes((4, 16), 15, 2, 1)
    records = {task.key: task.function(*task.arguments) for task in estimators.tasks(sizes, 0)}
    found = estimators.summarise(dict(reversed(records.items())), sizes, 0)
    assert len(found.numbers) == 2 * 2 * 2 * 2 * 4
    data = [estimators.data_sets(0, 1, 10, 4, "SKCE", index, 15, NOTHING) for index in (0, 1)]
    values = [estimators.estimates("SKCE", each, 1.0) for each in data]
    number = found.numbers["uncalibrated", 10, 4, "SKCE", "variance"]
    np.testing.assert_allclose(number.repeats, np.var(values, axis=1, ddof=1))
    number = found.numbers["uncalibrated", 10, 4, "SKCE", "mean error"]
    near = [np.mean(np.abs(v - found.truth[10])) for v in values]
    np.testing.assert_allclose(number.repeats, near, atol=4 * estimators.TRUTH_ERRORS[10])
    assert number.published == 0.060516420977492005
    assert set(found.seconds) == set(found.cells)


# -- tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n"), [(1, 64), (10, 16)])
def test_cme_of_many_data_sets_is_the_librarys(d, n):
    """Written without the library's code for locations, and with the same decisions, near singularity too."""
    method = MeanEmbedding(reference="chi2")
    rejected = []
    for index in range(4):
        at = decisions.fixed_locations(0, "calibrated", d, index)
        data = synthetic.draw_data_sets(np.random.default_rng(index), 6, n, d, "calibrated")
        known = [
            calibration_test(
                data.y[i], data.predictions(i), kernel=paper_kernel, method=method, locations=at
            ).pvalue
            for i in range(6)
        ]
        found = cme_pvalues(data, at)
        if d == 10:
            np.testing.assert_allclose(found, known, rtol=1e-6)
        rejected.append((found <= 0.05, np.array(known) <= 0.05))
    ours, theirs = np.swapaxes(rejected, 0, 1)
    np.testing.assert_array_equal(ours, theirs)
    assert 0 < ours.sum() < ours.size, "an example in which something is decided"


def test_cme_is_refused_at_four_cases():
    record = decisions.hold_cme(0, "calibrated", 10, (4, 16))
    assert "more cases than locations" in record["cme refused"]["4"]
    assert set(record["cme seconds"]) == {"16"}


def test_tests_do_not_depend_on_how_they_are_cut_into_tasks():
    def rejections(start, stop, name="SKCE (B = 2)"):
        return decisions.decide(0, "calibrated", 1, 16, name, start, stop, 99, NOTHING)["rejected"][name]

    assert rejections(0, 40) == rejections(0, 15) + rejections(15, 40) > 0


def test_the_bootstrap_test_is_there_with_both_statistics():
    """At n = 4 the authors' statistic is a third larger, and rejects more."""
    found = decisions.decide(0, "uncalibrated", 10, 4, "SKCE (B = n)", 0, 100, 200, NOTHING)["rejected"]
    planted = decisions.decide(
        0, "uncalibrated", 10, 4, "SKCE (B = n)", 0, 100, 200, Plant(statistic="skce")
    )["rejected"]
    assert found["SKCE (B = n)"] > found["bootstrap, n SKCE_u"]
    assert planted["SKCE (B = n)"] == planted["bootstrap, n SKCE_u"] == found["bootstrap, n SKCE_u"]


def test_test_summary_counts_wrong_decisions():
    place = {"d": 1, "n": 16, "count": 1000, "seconds": {"SKCE (B = 2)": 1.0}}
    records = {
        model: {**place, "model": model, "rejected": {"SKCE (B = 2)": 100}} for model in published.MODELS
    }
    records |= {
        f"{model} {start}": {"model": model, "d": 1, "start": start, "cme": {"16": [450 + start] * 2}}
        for model in published.MODELS
        for start in (2, 0)
    }
    sizes = decisions.Sizes({16: 1000}, 99, {}, {}, location_sets=4)
    found = decisions.summarise(records, sizes, 0)
    calibrated, uncalibrated = (found.cells[model, 1, 16, "SKCE (B = 2)"] for model in published.MODELS)
    assert (calibrated.errors, uncalibrated.errors, calibrated.count) == (100, 900, 1000)
    repeats = found.numbers["uncalibrated", 1, 16, "CME"].repeats
    np.testing.assert_allclose(repeats, [0.1, 0.1, 0.096, 0.096])
    assert found.cells["uncalibrated", 1, 16, "CME"].count == 2000
    assert found.numbers["calibrated", 1, 16, "SKCE (B = 2)"].published == 0.05


def test_repeats_of_a_proportion_are_splits_of_all_decisions():
    """Published are 25 errors in 500: with 975 in 9500, 500 of all have 50 +- 6.5."""
    place = {"model": "calibrated", "d": 1, "n": 16, "count": 9500, "seconds": {"SKCE (B = 2)": 1.0}}
    records = {"a": {**place, "rejected": {"SKCE (B = 2)": 975}}}
    sizes = decisions.Sizes({16: 9500}, 99, {}, {}, location_sets=5000)
    number = decisions.summarise(records, sizes, 0).numbers["calibrated", 1, 16, "SKCE (B = 2)"]
    assert number.ours == 975 / 9500
    counts = 500 * number.repeats
    assert counts.mean() == pytest.approx(50.0, abs=0.4)
    assert counts.std() == pytest.approx(np.sqrt(500 * 0.1 * 0.9 * 9500 / 9999), abs=0.3)


# -- ordinary least squares ------------------------------------------------------------------


def test_ols_fit_is_the_least_squares_line():
    fit = ols.draw_fit(0, 3)
    slope, offset = np.polyfit(fit.train_x, fit.train_y, 1)
    assert (fit.slope, fit.offset) == pytest.approx((slope, offset))
    residuals = fit.train_y - offset - slope * fit.train_x
    assert fit.spread == pytest.approx(residuals.std(ddof=1))
    assert (len(fit.train_x), len(fit.x)) == (100, 50)


def test_ols_data_follow_the_true_distribution():
    fits = [ols.draw_fit(1, r) for r in range(40)]
    x = np.concatenate([fit.x for fit in fits])
    y = np.concatenate([fit.y for fit in fits])
    assert stats.kstest((x + 1) / 2, "uniform").pvalue > 1e-3
    assert stats.kstest((y - np.sin(np.pi * x)) / (0.15 * np.abs(1 + x)), "norm").pvalue > 1e-3


def test_quantile_check_is_the_exact_test_of_kolmogorov_and_smirnov():
    fit = ols.draw_fit(0, 1)
    pred = fit.predict(fit.x)
    known = stats.kstest(pred.cdf(fit.y), "uniform", method="exact").pvalue
    assert ols.quantile_check(fit.y, pred) == pytest.approx(known, rel=1e-9)


def test_typical_repetition_has_the_median_distance():
    distances = [
        float(wc.quantile_calibration(p.y, p.predict(p.x))) for p in (ols.draw_fit(0, r) for r in range(5))
    ]
    assert distances[ols.typical_repetition(0, 5)] == np.median(distances)


# -- Friedman --------------------------------------------------------------------------------


def test_a_repeat_depends_on_its_number_alone():
    first, again, other = (friedman.train(0, repeat, (2, 4), True, NOTHING) for repeat in (1, 1, 2))
    assert first == again
    assert first["evaluations"] != other["evaluations"]


def test_the_first_repeat_holds_matrices_of_the_ensemble_to_the_library(monkeypatch):
    found = friedman.train(0, 0, (3,), False, NOTHING)["evaluations"]["3"]
    assert set(found["test"]) == {"models", "ensemble", "published formula", "proven kernel"}
    assert found["train"]["published formula"]["SKCE (biased)"] < found["train"]["ensemble"]["SKCE (biased)"]
    assert friedman.OUR_PVALUE in found["train"]["models"]
    monkeypatch.setattr(friedman, "unbiased_skce", lambda h: 2.0)
    with pytest.raises(RuntimeError, match="SKCE \\(unbiased\\) of the ensemble"):
        friedman.train(0, 0, (3,), False, NOTHING)


def test_friedman_targets():
    x, y = friedman.draw_data(np.random.default_rng(0), 5000)
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    assert stats.kstest(y - mean, "norm").pvalue > 1e-3


def test_evaluated_iterations():
    sizes = friedman.FULL
    assert set(friedman.PUBLISHED) == set(sizes.evaluated(1)) < set(sizes.evaluated(0))
    assert max(sizes.evaluated(0)) == sizes.iterations == max(sizes.evaluated(1))


def test_friedman_summary():
    sizes = friedman.Sizes(2, (0, 1))
    records = {task.key: task.function(*task.arguments) for task in friedman.tasks(sizes, 0)}
    found = friedman.summarise(dict(reversed(records.items())), sizes, 0)
    assert len(found.numbers) == 2 * 2 * 2 * 6
    number = found.numbers["models", "test", 1, "p-value"]
    values = [records[f"repeat {r}"]["evaluations"]["1"]["test"]["models"]["p-value"] for r in (0, 1)]
    np.testing.assert_allclose(number.repeats, np.mean(values, axis=1))
    assert number.published == 0.0
    number = found.numbers["ensemble", "train", 1, "SKCE (biased)"]
    values = [records[f"repeat {r}"]["evaluations"]["1"]["train"]["published formula"] for r in (0, 1)]
    np.testing.assert_allclose(number.repeats, [value["SKCE (biased)"] for value in values])
    assert number.published == 0.099944129
