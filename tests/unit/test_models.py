"""`as_predictions(model, X)`: what fitted models predict."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest
from numpy.testing import assert_array_equal
from scipy import stats
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
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


# -- rows, classes and grades as the model knows them --------------------------------------------------

ROWS = [f"row {k}" for k in range(40)]
FRAME = pd.DataFrame(X, columns=["a", "b"], index=ROWS)
GRADE = np.digitize(NUMBERS + rng.normal(size=40), [-0.6, 0.6])


def fitted_models() -> dict[str, Any]:
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    high = (NUMBERS + rng.normal(size=40) > 0).astype(int)
    data = FRAME.assign(y=NUMBERS, high=high)
    ridge = BayesianRidge().fit(FRAME, NUMBERS)
    return {
        "classes": GaussianNB().fit(FRAME, NAMES),
        "two classes": make_pipeline(StandardScaler(), LogisticRegression()).fit(FRAME, high),
        "process": GaussianProcessRegressor(alpha=0.1).fit(FRAME, NUMBERS),
        "ensemble": [ridge, ridge],
        "levels": {q: LinearRegression().fit(FRAME, NUMBERS + q) for q in (0.1, 0.9)},
        "OLS": sm.OLS(NUMBERS, FRAME).fit(),
        "formula": smf.ols("y ~ a", data).fit(),
        "GLM": smf.glm("high ~ a", data, family=sm.families.Binomial()).fit(),
        "Logit": sm.Logit(high, FRAME).fit(disp=0),
        "MNLogit": sm.MNLogit(GRADE, FRAME).fit(disp=0),
        "function": lambda rows: stats.norm(rows.to_numpy()[:, 0], 1.0),
    }


def test_predictions_have_the_index_of_their_cases() -> None:
    """Else targets in another order would be taken by position."""
    for name, model in fitted_models().items():
        pred = wc.as_predictions(model, FRAME)
        assert pred.case_index is not None, name
        assert pred.case_index.equals(FRAME.index), name
    series = pd.Series(NUMBERS, index=ROWS)
    process = GaussianProcessRegressor(alpha=0.1).fit(X, NUMBERS)
    pred = wc.as_predictions(process, pd.DataFrame(X, index=ROWS))
    assert float(wc.crps(series[::-1], pred)) == float(wc.crps(NUMBERS, pred))
    assert wc.as_predictions(process, X).case_index is None
    functions = wc.as_predictions(lambda rows: (rows["a"].to_numpy(), 1.0), polars.DataFrame({"a": NUMBERS}))
    assert functions.case_index is None
    # What a function predicts of something else than rows has no labels of theirs.
    assert wc.as_predictions(lambda rows: rows.mean().abs().clip(0, 1).to_numpy(), FRAME).case_index is None


@pytest.mark.parametrize(
    ("classes", "wanted"),
    [
        ((1, 2, 6), [1, 2, 6]),
        ((1.0, 2.0, 6.0), [1, 2, 6]),
        ((0.5, 1.0, 1.5), [0.5, 1.0, 1.5]),
        (("1", "2", "6"), ["1", "2", "6"]),
        (("bus", "car", "walk"), ["bus", "car", "walk"]),
        ((0, 1, 2), [0, 1, 2]),
    ],
)
@pytest.mark.parametrize("column", [np.asarray, pd.Series])
@pytest.mark.filterwarnings("ignore:endog contains values")
def test_multinomial_models_have_the_classes_of_their_targets(classes: Any, wanted: Any, column: Any) -> None:
    import statsmodels.api as sm

    y = np.asarray(classes)[GRADE]
    fitted = sm.MNLogit(column(y), X).fit(disp=0)
    pred: Any = wc.as_predictions(fitted, X)
    assert pred.labels().tolist() == wanted
    np.testing.assert_array_equal(pred.check_targets(y), GRADE)
    np.testing.assert_array_equal(pred.class_probs(), fitted.predict(X))


def test_multinomial_models_of_two_classes_or_of_dummies() -> None:
    import statsmodels.api as sm

    two: Any = wc.as_predictions(sm.MNLogit(np.where(GRADE > 0, "yes", "no"), X).fit(disp=0), X)
    assert isinstance(two, wc.Bernoulli)
    assert two.labels().tolist() == ["no", "yes"]
    for table, wanted in ((pd.get_dummies(pd.Series(GRADE + 1)), [1, 2, 3]), (np.eye(3)[GRADE], [0, 1, 2])):
        pred: Any = wc.as_predictions(sm.MNLogit(table.astype(float), X).fit(disp=0), X)
        assert pred.labels().tolist() == wanted
    nullable = sm.MNLogit(pd.Series(GRADE + 1, dtype="Int64"), X).fit(disp=0)
    nullable.remove_data()
    assert wc.as_predictions(nullable, X).check_targets(GRADE + 1).tolist() == GRADE.tolist()


@pytest.mark.parametrize("formula", [False, True])
def test_ordered_models_predict_grades(formula: bool) -> None:
    from statsmodels.miscmodels.ordinal_model import OrderedModel

    grades = pd.Categorical.from_codes(GRADE, ["poor", "fair", "good"], ordered=True)
    for given, classes, support in (
        (pd.Series(grades, index=ROWS), ["poor", "fair", "good"], [0, 1, 2]),
        (pd.Series(np.array([1, 2, 5])[GRADE], index=ROWS), [1, 2, 5], [1, 2, 5]),
    ):
        data = FRAME.assign(y=given)
        model = (
            OrderedModel.from_formula("y ~ a", data, distr="logit")
            if formula
            else OrderedModel(given, FRAME[["a"]], distr="logit")
        )
        fitted = model.fit(disp=0, method="bfgs")
        pred: Any = wc.as_predictions(fitted, FRAME if formula else FRAME[["a"]])
        assert pred.labels().tolist() == classes
        assert pred.support.tolist() == support
        assert pred.case_index.tolist() == ROWS
        np.testing.assert_array_equal(pred.check_targets(given), GRADE)
        np.testing.assert_allclose(pred.mean(), np.asarray(fitted.predict(FRAME[["a"]])) @ support)
        np.testing.assert_array_equal(pred.check_targets(given[::-1]), GRADE)
        assert float(wc.crps(given, pred)) > 0


def test_formulas_of_generalised_linear_models_are_used() -> None:
    """Their `get_distribution` takes columns as they stand: here as many as the formula has."""
    import statsmodels.api as sm
    import statsmodels.formula.api as smf

    y = np.where(NUMBERS + rng.normal(size=40) > 0, "yes", "no")
    data = FRAME.assign(y=y, hit=y == "yes", one=(y == "yes").astype(float))[["b", "a", "y", "hit", "one"]]
    binomial: Any = {"family": sm.families.Binomial()}
    number = smf.glm("one ~ a", data, **binomial).fit()
    p = number.predict(data).to_numpy()
    np.testing.assert_allclose(wc.as_predictions(number, data[["b", "a"]]).mean(), p)
    # Of two columns that a formula makes, statsmodels predicts the first: "no", and False.
    text: Any = wc.as_predictions(smf.glm("y ~ a", data, **binomial).fit(), data)
    assert text.labels().tolist() == ["no", "yes"]
    truth: Any = wc.as_predictions(smf.glm("hit ~ a", data, **binomial).fit(), data)
    assert truth.classes is None
    for pred in (text, truth):
        np.testing.assert_allclose(pred.probs, p, atol=1e-7)
    gamma = smf.glm("np.exp(b) ~ a", data, family=sm.families.Gamma(sm.families.links.Log())).fit()
    found: Any = wc.as_predictions(gamma, data)
    assert isinstance(found, wc.Gamma)
    np.testing.assert_allclose(found.mean(), gamma.predict(data))
    missing = data.copy()
    missing.iloc[3, 1] = np.nan
    with pytest.raises(ValueError, match="X has 40 rows, and the model predicts 39 of them"):
        wc.as_predictions(smf.ols("b ~ a", data).fit(), missing)


def test_counts_of_several_trials_need_their_numbers() -> None:
    import statsmodels.api as sm
    from scipy import stats

    trials = rng.integers(2, 9, 40)
    wins = rng.binomial(trials, 0.4)
    model = sm.GLM(np.column_stack([wins, trials - wins]), X, family=sm.families.Binomial()).fit()
    with pytest.raises(TypeError, match=r"counts of several trials, up to 8 .*scipy\.stats\.binom\(trials"):
        wc.as_predictions(model, X)
    told = stats.binom(trials, model.predict(X))
    assert float(wc.nll(wins, told)) == pytest.approx(-np.mean(told.logpmf(wins)), rel=1e-9)


def test_results_without_a_distribution_are_told_what_has_one() -> None:
    import statsmodels.api as sm

    log = sm.families.links.Log()
    tweedie = sm.GLM(np.exp(NUMBERS), X, family=sm.families.Tweedie(log, var_power=1.5)).fit(maxiter=2)
    hazards = sm.PHReg(np.exp(NUMBERS), X).fit(disp=0)
    for model, name in ((tweedie, "Tweedie"), (hazards, "PHRegResults")):
        with pytest.raises(
            TypeError, match=f"^{name} of statsmodels gives no distribution .*OrderedModel do;"
        ):
            wc.as_predictions(model, X)


@pytest.mark.parametrize("count", [2, 3])
def test_probabilities_of_several_targets_are_not_those_of_classes(count: int) -> None:
    targets = np.stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 0] > X[:, 1]], axis=1)[:, :count].astype(int)
    for model in (OneVsRestClassifier(GaussianNB()), ClassifierChain(GaussianNB())):
        with pytest.raises(
            TypeError, match=rf"gives {count} probabilities that do not sum to one: .*\[:, k\]"
        ):
            wc.as_predictions(model.fit(X, targets), X)


def test_classifiers_with_pred_dist_are_classifiers() -> None:
    """As NGBoost's, whose distributions of classes are none of SciPy."""

    class Boosted:
        def pred_dist(self, rows: Any) -> object:
            return object()

        def predict_proba(self, rows: Any) -> Any:
            return np.full((len(rows), 3), 1 / 3)

    class Framed:
        classes_ = ("no", "yes")

        def predict_proba(self, rows: Any) -> Any:
            return pd.DataFrame({"p": 0.2, "q": 0.8}, index=FRAME.index)

    pred: Any = wc.as_predictions(Boosted(), FRAME)
    assert isinstance(pred, wc.Categorical)
    assert pred.case_index.tolist() == ROWS
    framed: Any = wc.as_predictions(Framed(), X)
    assert framed.labels().tolist() == ["no", "yes"]
    assert framed.case_index.tolist() == ROWS


class Wrapped:
    """A classifier whose probabilities come as they are given."""

    classes_ = np.array(["a", "b", "c"])

    def __init__(self, probs: object) -> None:
        self.probs = probs

    def predict_proba(self, X: object) -> object:
        return self.probs


def test_probabilities_that_are_no_array() -> None:
    """A list of rows is not one of targets; names of columns are not those of `classes_` in their order."""
    rows = np.array([[0.2, 0.3, 0.5], [0.1, 0.7, 0.2]])
    for probs in (
        rows.tolist(),
        pd.DataFrame(rows),
        pd.DataFrame(rows[:, [2, 0, 1]], columns=["c", "a", "b"]),
    ):
        pred = wc.as_predictions(Wrapped(probs), np.zeros((2, 1)))
        assert isinstance(pred, wc.Categorical)
        order = [pred.labels().tolist().index(name) for name in "abc"]
        assert_array_equal(np.asarray(pred.probs)[:, order], rows)
    with pytest.raises(TypeError, match="Wrapped predicts 2 targets at once"):
        wc.as_predictions(Wrapped([rows, rows]), np.zeros((2, 1)))
    with pytest.raises(ValueError, match=r"a column for each of its 3 classes, found shape \(2,\); prob"):
        wc.as_predictions(Wrapped(rows[:, 0]), np.zeros((2, 1)))


def test_functions_by_level() -> None:
    x = np.linspace(0.0, 1.0, 5)
    pred = wc.as_predictions({0.9: lambda x: x + 1.0, 0.1: lambda x: x - 1.0}, x)
    assert_array_equal(pred.quantile([0.1, 0.9]), np.stack([x - 1.0, x + 1.0], axis=1))
