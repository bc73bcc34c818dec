"""Some of the paper's published numbers, found again.

The bounds are those of the page, over the comparisons made here: a faithful library fails with probability
0.01 at most, and for these seeds it does not.
"""

import numpy as np
import pytest

from reproduction import published
from reproduction.compare import compare_mean_error, compare_proportions, compare_variance
from reproduction.experiments import decisions, estimators

CASES = (4, 16)
DATA_SETS = 200


@pytest.mark.parametrize("d", published.DIMENSIONS)
def test_published_errors_of_estimators(d):
    truth = np.array(estimators.truth(0, d, 400, 0, 100)["truth"])
    options = {"published_count": published.DATA_SETS, "comparisons": 64}
    for model_index, model in enumerate(published.MODELS):
        at = truth.mean() if model == "uncalibrated" else 0.0
        error = truth.var(ddof=1) / len(truth) if at else 0.0
        for n in CASES:
            found = estimators.estimate(0, model_index, d, n, 0, DATA_SETS)["values"]
            for name, values in found.items():
                known = published.estimator_errors()[model, d, n, name]
                mean = compare_mean_error(
                    np.array(values), at, known.mean_error, truth_variance=error, **options
                )
                variance = compare_variance(np.array(values), known.variance, **options)
                assert mean.matched, (model, n, name)
                assert variance.matched, (model, n, name)


@pytest.mark.parametrize("d", published.DIMENSIONS)
def test_published_errors_of_tests(d):
    options = {"published_count": published.DATA_SETS, "comparisons": 24}
    methods = decisions.skce_methods(resamples=1000)
    for model_index, model in enumerate(published.MODELS):
        for n in CASES:
            found = decisions.run_tests(0, model_index, d, n, range(DATA_SETS), methods)["pvalues"]
            for name, pvalues in found.items():
                rejections = int(np.sum(np.array(pvalues) <= decisions.ALPHA))
                errors = rejections if model == "calibrated" else DATA_SETS - rejections
                known = published.decision_errors()[model, d, n, name]
                match = compare_proportions(errors, DATA_SETS, known.errors, **options)
                assert match.matched, (model, n, name, match)
