"""Some of the paper's published numbers, with all 500 data sets.

The bounds are those of the page, over the comparisons made here: a faithful library fails with
probability 0.01 at most, and for these seeds it does not.
"""

import numpy as np
import pytest

from reproduction import published
from reproduction.compare import compare_mean_error, compare_proportions, compare_variance
from reproduction.experiments import decisions, estimators


@pytest.mark.parametrize("d", published.DIMENSIONS)
def test_published_errors_of_estimators(d):
    truth = np.array(estimators.truth(0, d, 400, 0, 100)["truth"])
    for model_index, model in enumerate(published.MODELS):
        at = truth.mean() if model == "uncalibrated" else 0.0
        for n in (4, 16):
            found = estimators.estimate(0, model_index, d, n, 0, 500)["values"]
            for name, values in found.items():
                known = published.estimator_errors()[model, d, n, name]
                options = {"published_count": 500, "comparisons": 64}
                error = truth.var(ddof=1) / len(truth) if at else 0.0
                mean = compare_mean_error(
                    np.array(values), at, known.mean_error, truth_variance=error, **options
                )
                variance = compare_variance(np.array(values), known.variance, **options)
                assert mean.matched, (model, n, name)
                assert variance.matched, (model, n, name)


@pytest.mark.parametrize("d", published.DIMENSIONS)
def test_published_errors_of_tests(d):
    for model_index, model in enumerate(published.MODELS):
        for n in (4, 16):
            pvalues = decisions.run_fast(0, model_index, d, n, 0, 500, 1000, 1)["pvalues"]
            for name in decisions.PAPER_TESTS[:3]:
                rejections = int(np.sum(np.array(pvalues[name]) <= 0.05))
                errors = rejections if model == "calibrated" else 500 - rejections
                known = published.decision_errors()[model, d, n, name]
                found = compare_proportions(errors, 500, known.errors, published_count=500, comparisons=24)
                assert found.matched, (model, n, name, found)
