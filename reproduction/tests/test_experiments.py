"""Experiments piece by piece: what depends on what, and agreement with direct computations."""

import numpy as np
import pytest
from scipy import stats

import wellcal as wc
from reproduction import published
from reproduction.catalogue import EXPERIMENTS
from reproduction.experiments import decisions, estimators, friedman, ols, synthetic
from reproduction.experiments.locations import cme_pvalues
from wellcal.hypotests import MeanEmbedding, calibration_test
from wellcal.kernels import paper_kernel


@pytest.mark.parametrize("experiment", EXPERIMENTS.values(), ids=EXPERIMENTS)
def test_keys_are_unique_and_costs_positive(experiment, tmp_path):
    for sizes in (experiment.quick, experiment.full):
        tasks = [task for stage in experiment.stages(sizes, 0, tmp_path) for task in stage]
        assert len({task.key for task in tasks}) == len(tasks)
        assert min(task.cost for task in tasks) > 0


def test_full_sizes_are_the_papers():
    assert estimators.Sizes((4, 16, 64, 256, 1024), 500, 1000, 1000) == estimators.FULL
    sizes = decisions.FULL
    assert (sizes.cases, sizes.data_sets, sizes.bootstrap_resamples) == ((4, 16, 64, 256, 1024), 500, 1000)
    assert sizes.exact_sets[1024] >= 50
    assert (friedman.FULL.iterations, friedman.NETWORKS) == (5000, 10)
    assert friedman.FULL.repeats >= 5
    assert ols.Sizes(100_000, 1000, 999) == ols.FULL


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


def test_data_sets_do_not_depend_on_how_they_are_cut_into_tasks():
    whole = estimators.estimate(5, 1, 10, 16, 0, 4)
    parts = [estimators.estimate(5, 1, 10, 16, start, start + 2) for start in (0, 2)]
    for name, values in whole["values"].items():
        assert values == parts[0]["values"][name] + parts[1]["values"][name]
    other_seed = estimators.estimate(6, 1, 10, 16, 0, 4)
    assert other_seed["values"] != whole["values"]


def test_estimators_are_the_librarys():
    record = estimators.estimate(0, 0, 1, 16, 3, 4)
    y, pred = synthetic.draw_cases(estimators.generator(0, 2, 0, 1, 16, 3), 16, 1, "calibrated")
    for name, size in (("SKCE (B = 2)", 2), ("SKCE (B = √n)", 4), ("SKCE (B = n)", 16)):
        found = wc.skce(y, pred, kernel=paper_kernel, estimator="block", block_size=size)
        assert record["values"][name] == pytest.approx([float(found)], rel=1e-9)


def test_estimator_summary():
    records = {
        str(i): estimators.estimate(0, model, d, n, start, start + 15)
        for i, (model, d, n, start) in enumerate(
            (model, d, n, start) for model in (0, 1) for d in (1, 10) for n in (4, 16) for start in (15, 0)
        )
    }
    records |= {f"truth {d}": estimators.truth(0, d, 50, 0, 10) for d in (1, 10)}
    found = estimators.summarise(records, estimators.QUICK, 0)
    assert len(found.comparisons) == 2 * 2 * 2 * 2 * 4
    values = np.concatenate([records["13"]["values"]["SKCE"], records["12"]["values"]["SKCE"]])
    cell = found.cells["uncalibrated", 10, 4, "SKCE"]
    assert cell.variance.ours == pytest.approx(values.var(ddof=1))
    truth = np.mean(records["truth 10"]["truth"])
    assert cell.mean_error.ours == pytest.approx(np.abs(values - truth).mean())
    assert cell.mean_error.published == 0.060516420977492005


# -- tests -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "n"), [(1, 64), (10, 16)])
def test_cme_of_many_location_sets_is_the_librarys(d, n):
    """Written without the library's code for locations, and with the same decisions, near singularity too."""
    sets = [decisions.fixed_locations(0, d, index) for index in range(4)]
    method = MeanEmbedding(reference="chi2")
    rejected = []
    for data_set in range(6):
        rng = decisions.generator(0, 3, 0, d, n, data_set)
        y, pred = synthetic.draw_cases(rng, n, d, "calibrated")
        known = [
            calibration_test(y, pred, kernel=paper_kernel, method=method, locations=at).pvalue for at in sets
        ]
        found = cme_pvalues(y, pred, sets)
        if d == 10:
            np.testing.assert_allclose(found, known, rtol=1e-6)
        rejected.append((found <= 0.05, np.array(known) <= 0.05))
    ours, theirs = np.swapaxes(rejected, 0, 1)
    np.testing.assert_array_equal(ours, theirs)
    assert 0 < ours.sum() < ours.size, "an example in which something is decided"


def test_cme_is_refused_at_four_cases():
    record = decisions.run_fast(0, 0, 10, 4, 0, 2, 99, 3)
    assert "more cases than locations" in record["refused"]
    assert "CME" not in record["pvalues"]
    assert "spread" not in record


def test_tests_do_not_depend_on_their_neighbours():
    whole = decisions.run_exact(0, 1, 1, 16, 0, 2, 99)
    alone = decisions.run_exact(0, 1, 1, 16, 1, 2, 99)
    assert {name: values[1:] for name, values in whole["pvalues"].items()} == alone["pvalues"]


def test_test_summary_counts_wrong_decisions():
    place = {"start": 0, "seconds": {"CME": 1.0, "exact": 2.0}, "unbounded": {}, "refused": None}
    pvalues = {"CME": [0.01, 0.05, 0.2, 0.9], "exact": [0.5, 0.5]}
    records = {
        model: {**place, "model": model, "d": 1, "n": 16, "pvalues": pvalues, "spread": [2, 4]}
        for model in published.MODELS
    }
    found = decisions.summarise(records, decisions.QUICK, 0)
    calibrated, uncalibrated = (found.cells[model, 1, 16, "CME"] for model in published.MODELS)
    assert (calibrated.errors, uncalibrated.errors) == (2, 2)
    assert [rate for rate, _ in calibrated.spread] == [0.5, 1.0]
    assert [rate for rate, _ in uncalibrated.spread] == [0.5, 0.0]
    assert found.cells["uncalibrated", 1, 16, "exact"].rate == 1.0
    assert len(found.compared) == 2
    # Published: no errors in 500. Two in four cannot be told from that by the first set; none fits better.
    assert uncalibrated.comparison.published == 0.0
    assert uncalibrated.spread[1][1]


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


def test_training_in_legs_is_training_in_one_go(tmp_path):
    at_once = friedman.train(0, 1, 0, 6, (6,), str(tmp_path / "a"))
    first = friedman.train(0, 1, 0, 2, (), str(tmp_path / "b"))
    second = friedman.train(0, 1, 2, 6, (6,), str(tmp_path / "b"))
    assert not first["evaluations"]
    assert at_once == second


def test_friedman_targets():
    x, y = friedman.draw_data(np.random.default_rng(0), 5000)
    mean = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    assert stats.kstest(y - mean, "norm").pvalue > 1e-3


def test_evaluated_iterations():
    sizes = friedman.FULL
    assert {iteration for _, iteration, _ in published.friedman()} <= set(sizes.evaluated(0))
    assert set(friedman.COMPARED) <= set(sizes.evaluated(sizes.repeats - 1))
    assert max(sizes.evaluated(0)) == sizes.iterations
    covered = [i for stage in friedman.stages(sizes, 0, ".") for task in stage[:1] for i in task.arguments[4]]
    assert covered == sizes.evaluated(0)
