"""`as_predictions(model, X)`: what fitted models predict."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import wellcal as wc

rng = np.random.default_rng(1)
X = rng.normal(size=(40, 2))
NUMBERS = X[:, 0] + 0.3 * rng.normal(size=40)
NAMES = np.array(["low", "mid", "top"])[np.digitize(NUMBERS, [-0.4, 0.4])]


def test_classifiers_bring_the_names_of_their_classes() -> None:
    fitted = GaussianNB().fit(X, NAMES)
    pred: Any = wc.as_predictions(fitted, X)
    assert isinstance(pred, wc.Categorical)
    assert pred.labels().tolist() == ["low", "mid", "top"]
    np.testing.assert_array_equal(pred.probs, fitted.predict_proba(X))


@pytest.mark.parametrize("labels", [("no", "yes"), (0, 1), (1, 2)])
def test_two_classes_are_the_probability_of_the_second(labels: Any) -> None:
    y = np.asarray(labels)[(NUMBERS > 0).astype(int)]
    fitted = LogisticRegression().fit(X, y)
    pred: Any = wc.as_predictions(fitted, X)
    assert isinstance(pred, wc.Bernoulli)
    np.testing.assert_array_equal(pred.probs, fitted.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(pred.check_targets(y), NUMBERS > 0)


@pytest.mark.parametrize(
    "model",
    [
        BayesianRidge(),
        GaussianProcessRegressor(alpha=0.1),
        make_pipeline(StandardScaler(), BayesianRidge()),
        GridSearchCV(make_pipeline(StandardScaler(), BayesianRidge()), {}, cv=2),
    ],
    ids=["plain", "process", "pipeline", "search"],
)
def test_regressors_that_give_a_spread_are_normals(model: Any) -> None:
    pred: Any = wc.as_predictions(model.fit(X, NUMBERS), X)
    assert isinstance(pred, wc.Normal)
    np.testing.assert_allclose(pred.loc, model.predict(X))
    assert (pred.scale > 0).all()


def test_regressors_by_level_are_quantiles_and_a_list_is_a_mixture() -> None:
    options: Any = {"loss": "quantile", "n_estimators": 3, "max_depth": 1}
    models = {q: GradientBoostingRegressor(alpha=q, **options).fit(X, NUMBERS) for q in (0.9, 0.1)}
    pred: Any = wc.as_predictions(models, X)
    assert isinstance(pred, wc.Quantiles)
    np.testing.assert_array_equal(pred.values[:, 0], models[0.1].predict(X))
    halves = [BayesianRidge().fit(X[rows], NUMBERS[rows]) for rows in (slice(0, 20), slice(20, 40))]
    mixture = wc.as_predictions(halves, X)
    assert isinstance(mixture, wc.Mixture)
    np.testing.assert_allclose(mixture.mean(), np.mean([each.predict(X) for each in halves], axis=0))


def test_statsmodels_give_the_family_that_was_fitted() -> None:
    import statsmodels.api as sm

    counts = rng.poisson(np.exp(0.3 * X[:, 0]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of statsmodels, on convergence
        fitted = sm.GLM(counts, X, family=sm.families.Poisson()).fit()
        discrete = sm.NegativeBinomial(counts, X).fit(disp=0)
        several = sm.MNLogit(np.minimum(counts, 2), X).fit(disp=0)
    pred: Any = wc.as_predictions(fitted, X)
    assert isinstance(pred, wc.Poisson)
    np.testing.assert_allclose(pred.rate, fitted.predict(X))
    assert isinstance(wc.as_predictions(discrete, X), wc.NegativeBinomial)
    np.testing.assert_allclose(wc.as_predictions(several, X).class_probs(), several.predict(X))
    linear = sm.OLS(NUMBERS, X).fit()
    student: Any = wc.as_predictions(linear, X[:5])
    assert isinstance(student, wc.StudentT)
    # The limits that statsmodels itself prints for a new observation.
    limits = linear.get_prediction(X[:5]).summary_frame(alpha=0.1)
    np.testing.assert_allclose(student.quantile(0.05), limits["obs_ci_lower"])
    binary = sm.GLM(NUMBERS > 0, X, family=sm.families.Binomial()).fit()
    assert len(wc.report(NUMBERS > 0, wc.as_predictions(binary, X), rng=0, n_resamples=99).verdict) > 0
    with pytest.raises(TypeError, match="QuantRegResults of statsmodels gives no distribution"):
        wc.as_predictions(sm.QuantReg(NUMBERS, X).fit(0.5), X)


def test_models_with_pred_dist_give_the_family_that_they_predict() -> None:
    """As NGBoost's, which the gallery of the documentation runs: its distributions hold one of SciPy."""

    class Predicted:
        def __init__(self, loc: Any) -> None:
            self.dist = stats.norm(loc, 0.5)
            self.rvs = self.dist.rvs

    class Boosted:
        def pred_dist(self, rows: Any) -> Predicted:
            return Predicted(rows[:, 0])

    pred: Any = wc.as_predictions(Boosted(), X)
    assert isinstance(pred, wc.Normal)
    np.testing.assert_array_equal(pred.loc, X[:, 0])


def test_functions_and_modules_are_called() -> None:
    import torch

    pred: Any = wc.as_predictions(lambda rows: (rows[:, 0], np.ones(len(rows))), X)
    assert isinstance(pred, wc.Normal)
    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Softmax(dim=1))
    assert isinstance(wc.as_predictions(module, torch.as_tensor(X, dtype=torch.float32)), wc.Categorical)


def test_what_gives_no_distribution_is_refused_with_what_would() -> None:
    with pytest.raises(TypeError, match=r"LinearRegression.predict gives one value .* return_std"):
        wc.as_predictions(LinearRegression().fit(X, NUMBERS), X)
    both = MultiOutputClassifier(GaussianNB()).fit(X, np.stack([NUMBERS > 0, NUMBERS > 1], axis=1))
    with pytest.raises(TypeError, match="predicts 2 targets at once"):
        wc.as_predictions(both, X)
    with pytest.raises(TypeError, match="X is for models"):
        wc.as_predictions(BayesianRidge(), X, normal=("mu", "sigma"))
    with pytest.raises(TypeError, match="a model of type int is not understood"):
        wc.as_predictions(3, X)
    with pytest.raises(ValueError, match="at least one model"):
        wc.as_predictions([], X)
