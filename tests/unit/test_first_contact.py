"""What a person tries first: tables, names, shapes and words as other packages have them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import torch
import xarray as xr
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats

import wellcal as wc
from wellcal.hypotests import automatic
from wellcal.hypotests.setup import make_setup
from wellcal.predictions.batches import concatenate
from wellcal.predictions.serialization import predictions_from_dict, predictions_to_dict

N = 30
rng = np.random.default_rng(11)
PROBS = rng.dirichlet(np.ones(3), N)
TOP = rng.integers(0, 3, N)
NAMES = np.array(["low", "mid", "high"])
GRADES = pd.CategoricalDtype(NAMES, ordered=True)
MU = rng.normal(size=N)
Y = rng.normal(MU)


# -- names of classes -------------------------------------------------------------------------------


def test_columns_of_a_frame_name_the_classes() -> None:
    frame = pd.DataFrame(PROBS[:, [2, 0, 1]], columns=NAMES[[2, 0, 1]])
    for pred in (wc.as_predictions(frame), wc.Categorical(frame)):
        assert isinstance(pred, wc.Categorical)
        assert pred.labels().tolist() == ["high", "low", "mid"]
        assert float(wc.nll(NAMES[TOP], pred)) == pytest.approx(float(wc.nll(TOP, PROBS)), rel=1e-14)
    assert wc.Categorical(frame, classes=["a", "b", "c"]).labels().tolist() == ["a", "b", "c"]
    for plain in (pd.DataFrame(PROBS), pd.DataFrame(PROBS, columns=pd.Index([0, 1, 2]))):
        assert wc.Categorical(plain).classes is None
    assert wc.Categorical(pd.DataFrame(PROBS, columns=[1, 2, 5])).check_targets([5] * N).tolist() == [2] * N
    named = xr.DataArray(PROBS, dims=("case", "class"), coords={"class": NAMES})
    assert wc.as_predictions(named).check_targets(["mid"] * N).tolist() == [1] * N  # type: ignore[attr-defined]
    with pytest.raises(
        ValueError, match=r"row 0: found 0 .*; the classes are 'high'.*in this order, classes=\[0, 1, 2\]$"
    ):
        wc.nll(np.zeros(N, dtype=int), frame)


def test_frames_of_one_column_or_of_several_levels_are_told_apart() -> None:
    frame = pd.DataFrame({"y": np.arange(3.0)})
    for y, taken in (
        (frame, r"y\.iloc\[:, 0\]"),
        (polars.from_pandas(frame), r"y\[:, 0\]"),
        (pyarrow.Table.from_pandas(frame), r"y\[0\]"),
        (frame.to_numpy(), r"y\[:, 0\]"),
    ):
        for pred in (wc.Normal(np.zeros(3), 1.0), wc.Categorical(PROBS[:3])):
            with pytest.raises(ValueError, match=rf"found shape \(3, 1\); pass {taken} if its one column"):
                wc.nll(y, pred)
    levels = pd.MultiIndex.from_product([["p"], NAMES])
    with pytest.raises(ValueError, match=r"several levels .*\(columns.get_level_values\(-1\)\)"):
        wc.nll(np.zeros(N), pd.DataFrame(PROBS, columns=levels))
    with pytest.raises(ValueError, match=r"found shape \(2, 9\); transpose\?$"):
        wc.Quantiles([0.1, 0.9], np.ones((2, 9)))


def test_frames_of_polars_name_the_classes_too() -> None:
    pred = wc.as_predictions(polars.DataFrame(PROBS, schema=list(NAMES)))
    assert pred.check_targets(["mid"] * N).tolist() == [1] * N
    assert wc.as_predictions(polars.DataFrame(PROBS)).check_targets(TOP).tolist() == TOP.tolist()


def test_ordered_categoricals_are_grades_with_names() -> None:
    expected = wc.Categorical(PROBS, support=[0, 1, 2])
    y = pd.Series(NAMES[TOP], dtype=GRADES)
    for given in (GRADES, pd.Categorical(NAMES, dtype=GRADES)):
        pred = wc.Categorical(PROBS, classes=given)
        assert_array_equal(pred.support, [0.0, 1.0, 2.0])
        assert_allclose(pred.mean(), expected.mean(), rtol=1e-14)
        assert float(wc.crps(y, pred)) == pytest.approx(float(wc.crps(TOP, expected)), rel=1e-13)
        assert set(pred.sample(0).tolist()) <= set(NAMES)
    columns = pd.CategoricalIndex(NAMES[[1, 2, 0]], dtype=GRADES)
    mixed = wc.as_predictions(pd.DataFrame(PROBS[:, [1, 2, 0]], columns=columns))
    assert_allclose(mixed.mean(), expected.mean(), rtol=1e-14)
    # Targets alone know the order: it counts, whatever the columns.
    one = float(wc.skce(TOP, expected))
    for given in (
        PROBS,
        pd.DataFrame(PROBS[:, [2, 0, 1]], columns=NAMES[[2, 0, 1]]),
        wc.Categorical(PROBS, NAMES),
    ):
        assert float(wc.skce(y, given)) == pytest.approx(one, rel=1e-12)
    found = wc.interval_coverage(y, PROBS).coverage
    assert_array_equal(found, wc.interval_coverage(TOP, expected).coverage)
    named, numbered = (
        wc.calibration_test(*given, rng=0, n_resamples=199) for given in ((y, PROBS), (TOP, expected))
    )
    assert (named.pvalue, named.statistic) == (numbered.pvalue, numbered.statistic)
    # Categories without an order are names.
    assert wc.Categorical(PROBS, classes=pd.Categorical(NAMES)).support is None
    again = predictions_from_dict(predictions_to_dict(wc.Categorical(PROBS, NAMES, [0, 1, 2])))
    assert again.check_targets(NAMES[TOP]).tolist() == TOP.tolist()


def test_two_classes_have_names() -> None:
    p, hit = PROBS[:, 0], TOP == 0
    words = np.where(hit, "yes", "no")
    pred = wc.Bernoulli(p, classes=("no", "yes"))
    plain = wc.Bernoulli(p)
    for score in (wc.nll, wc.brier, wc.skce, wc.ece, wc.crps):
        assert float(score(words, pred)) == float(score(hit, plain))
    assert_array_equal(pred.log_prob(words), plain.log_prob(hit))
    assert_array_equal(pred.log_prob("yes"), plain.log_prob(1))
    assert set(pred.sample(0, 20).ravel().tolist()) == {"no", "yes"}
    assert_array_equal(pred.sample(0) == "yes", plain.sample(0))
    assert pred[3:5].labels().tolist() == concatenate([pred, pred], ["a", "b"], "c").labels().tolist()
    tests = [wc.calibration_test(y, q, rng=0).pvalue for y, q in ((words, pred), (hit, plain))]
    assert tests[0] == tests[1]
    scaled = wc.TemperatureScaling().fit(words, pred).transform(pred)
    assert scaled.labels().tolist() == ["no", "yes"]
    assert wc.recalibration.cross_fit(words, pred, rng=0, n_resamples=99).before.n_samples == N
    monitor = wc.Monitor(rng=0, warmup=10)
    monitor.update(words, pred)
    assert wc.Monitor.from_dict(monitor.to_dict()) == monitor
    assert predictions_from_dict(predictions_to_dict(plain)).classes is None
    with pytest.raises(ValueError, match=r"row 0: found 'maybe' .*; the classes are 'no', 'yes'$"):
        wc.nll(["maybe"] * N, pred)
    with pytest.raises(ValueError, match="one label for each of the 2 values 0 and 1, found 3"):
        wc.Bernoulli(p, classes=("a", "b", "c"))


# -- shapes ------------------------------------------------------------------------------------------


def test_draws_along_other_axes() -> None:
    draws = rng.normal(size=(N, 4, 5))
    flat = draws.reshape(N, 20)
    chains = np.moveaxis(draws, 0, 2)
    for values, axis in ((flat.T, 0), (flat.T, -2), (flat, 1), (chains, (0, 1)), (chains, [0, 1])):
        assert_array_equal(wc.Samples(values, axis=axis).values, flat)
    assert_array_equal(wc.Samples(torch.as_tensor(flat.T.copy()), axis=0).values, flat)
    assert_array_equal(wc.Samples(flat.T.tolist(), axis=0).values, flat)
    vectors = rng.normal(size=(6, N, 2))
    assert_array_equal(wc.Samples(vectors, axis=0).values, np.swapaxes(vectors, 0, 1))
    cases = [f"case {k}" for k in range(N)]
    framed = wc.Samples(pd.DataFrame(flat.T, columns=cases), axis=0)
    assert list(framed.case_index) == cases
    posterior = xr.DataArray(chains, dims=("chain", "draw", "case"), coords={"case": cases})
    stacked = posterior.stack(sample=("chain", "draw"))  # as ArviZ does
    for named in (
        wc.Samples(posterior, axis=("chain", "draw")),
        wc.Samples(posterior),
        wc.Samples(posterior, kind="atoms"),
        wc.Samples(stacked),
        wc.Samples(stacked.transpose("sample", "case")),
    ):
        assert_array_equal(named.values, flat)
        assert list(named.case_index) == cases
    square = xr.DataArray(flat[:20], dims=("draw", "case"))
    assert_array_equal(wc.Samples(square).values, flat[:20].T)
    both = xr.DataArray(np.stack([chains, -chains], axis=3), dims=("chain", "draw", "case", "coordinate"))
    assert_array_equal(wc.Samples(both).values, np.stack([flat, -flat], axis=2))
    with pytest.raises(ValueError, match=r"axis must say which axes of values.*leave one for the cases"):
        wc.Samples(posterior[:, :, 0])


def test_draws_that_do_not_fit_ask_whether_to_transpose() -> None:
    with pytest.raises(
        ValueError, match=r"transpose\? values has shape \(7, 30\): \(draws, n\) is .* axis=0"
    ):
        wc.skce(Y, wc.Samples(np.zeros((7, N))))
    with pytest.raises(
        ValueError, match=r"transpose\? .*\(chain, draw, n\) is Samples\(values, axis=\(0, 1\)\)"
    ):
        wc.skce(Y, wc.Samples(np.zeros((2, 7, N))))
    with pytest.raises(ValueError, match=r"same length, found 30 and 7$"):
        wc.skce(Y, wc.Samples(np.zeros((7, 9))))
    for values in (np.zeros((N, N)), torch.zeros(N, N), pd.DataFrame(np.zeros((N, N))), np.zeros((4, 4, 2))):
        with pytest.raises(
            ValueError, match="both of its first two axes could be that of the draws: say which"
        ):
            wc.Samples(values)
    square = np.arange(9.0).reshape(3, 3)
    table = pd.DataFrame(square, columns=["draw_0", "draw_1", "draw_2"])
    assert_array_equal(wc.as_predictions(table, samples="draw_*").values, square)  # columns are draws
    assert_array_equal(wc.Samples(square, axis=1).values, square)
    assert_array_equal(wc.Samples(square, axis=0).values, square.T)
    assert_array_equal(wc.Samples(square.tolist()).values, square)  # rows that somebody wrote
    stored = predictions_from_dict(predictions_to_dict(wc.Samples(square, axis=1)))
    assert_array_equal(stored.values, square)
    for axis in (2, (0, 1), "draw", (0, 0), True):
        with pytest.raises(ValueError, match="axis must say which axes of values"):
            wc.Samples(np.zeros((3, 4)), axis=axis)


def test_one_covariance_for_all() -> None:
    loc, cov = rng.normal(size=(N, 2)), np.array([[2.0, 0.3], [0.3, 1.0]])
    each = wc.MultivariateNormal(loc, np.broadcast_to(cov, (N, 2, 2)))
    for given in (cov, cov.tolist(), pd.DataFrame(cov)):
        pred = wc.MultivariateNormal(loc, given)
        assert pred.cov.shape == pred.chol.shape == (N, 2, 2)
        assert_array_equal(pred.log_prob(loc + 1.0), each.log_prob(loc + 1.0))
    assert isinstance(wc.as_predictions((loc, cov)), wc.MultivariateNormal)
    assert float(wc.skce(loc, (loc, cov))) == float(wc.skce(loc, each))
    given = torch.tensor(cov, requires_grad=True)
    wc.MultivariateNormal(torch.as_tensor(loc), given).log_prob(torch.zeros(N, 2)).sum().backward()
    assert given.grad is not None
    with pytest.raises(ValueError, match=r"cov must be symmetric .* in row 0"):
        wc.MultivariateNormal(loc, np.array([[1.0, 0.5], [0.0, 1.0]]))


FAMILIES: dict[str, Callable[[], Any]] = {
    "Normal": lambda: wc.Normal(MU, 1.0),
    "Normal of torch": lambda: wc.Normal(torch.as_tensor(MU), 1.0),
    "Poisson": lambda: wc.Poisson(np.exp(MU)),
    "Samples": lambda: wc.Samples(rng.normal(size=(N, 5))),
    "Quantiles": lambda: wc.Quantiles([0.05, 0.5, 0.95], MU[:, None] + [-1.0, 0.0, 1.0]),
    "Categorical": lambda: wc.Categorical(PROBS, support=[1.0, 2.0, 4.0]),
    "Mixture": lambda: wc.Mixture([wc.Normal(MU, 1.0), wc.Laplace(MU, 2.0)]),
    "scipy": lambda: wc.as_predictions(stats.gumbel_r(MU, 1.0)),
}
CONTINUOUS = ("Normal", "Normal of torch", "scipy")  # those with quantiles of upper tails


@pytest.mark.parametrize("name", FAMILIES)
def test_quantiles_at_levels_that_all_share(name: str) -> None:
    pred, levels = FAMILIES[name](), [0.1, 0.5, 0.9]
    expected = np.stack([np.asarray(pred.quantile(u)) for u in levels], axis=1)
    for given in (levels, tuple(levels), np.array(levels)):
        found = pred.quantile(given)
        assert found.shape == (N, 3)
        assert_allclose(np.asarray(found), expected, rtol=1e-12)
    assert_allclose(np.asarray(pred.quantile(np.array(levels)[:, None])), expected.T, rtol=1e-12)
    with pytest.raises(ValueError, match="u must be a number or end in shape"):
        pred.quantile(np.full((2, 4), 0.5))


@pytest.mark.parametrize(
    ("name", "method"),
    [*((name, "quantile") for name in FAMILIES), *((name, "upper_quantile") for name in CONTINUOUS)],
)
def test_as_many_levels_as_cases_are_still_levels(name: str, method: str) -> None:
    pred, levels = FAMILIES[name]()[:3], [0.1, 0.5, 0.9]
    ask = getattr(pred, method)
    expected = np.stack([np.asarray(ask(u)) for u in levels], axis=1)
    for given in (levels, tuple(levels), np.array(levels), pred.constant(levels)):
        assert_allclose(np.asarray(ask(given)), expected, rtol=1e-12)
    # A level for each prediction is asked for with a second axis.
    each = np.asarray(ask(np.array([levels, levels[::-1]])))
    assert_allclose(each, [np.diag(expected), np.diag(expected[:, ::-1])], rtol=1e-12)
    assert_allclose(np.asarray(ask(np.array([levels]))), np.diag(expected)[None], rtol=1e-12)


def test_a_level_for_each_of_many_predictions_is_told_its_form() -> None:
    pred = wc.Normal(np.zeros(100_000), 1.0)
    with pytest.raises(ValueError, match=r"100,000 x 100,000 quantiles.*u\[None, :\]"):
        pred.quantile(np.full(100_000, 0.5))
    assert pred.quantile(np.full((1, 100_000), 0.5)).shape == (1, 100_000)


def test_quantiles_that_cross_are_sorted_on_request() -> None:
    values = np.array([[1.0, 3.0, 2.0], [0.0, 1.0, 5.0]])
    with pytest.raises(ValueError, match=r"cross .* in row 0: .* give sort=True"):
        wc.Quantiles([0.1, 0.5, 0.9], values)
    pred = wc.Quantiles([0.1, 0.5, 0.9], values, sort=True)
    assert_array_equal(pred.values, np.sort(values, axis=1))
    turned = wc.Quantiles([0.9, 0.1, 0.5], pd.DataFrame(values[:, [2, 0, 1]], index=["a", "b"]), sort=True)
    assert_array_equal(turned.levels, [0.1, 0.5, 0.9])
    assert_array_equal(turned.values, pred.values)
    assert list(turned.case_index) == ["a", "b"]
    with pytest.raises(ValueError, match=r"strictly increasing, .* sort=True"):
        wc.Quantiles([0.9, 0.1, 0.5], values)
    with pytest.raises(TypeError, match="sort must be True or False"):
        wc.Quantiles([0.1, 0.5, 0.9], values, sort="yes")  # type: ignore[arg-type]


def test_grades_that_are_not_predicted_leave_the_others_in_order() -> None:
    frame = pd.DataFrame(np.tile([0.2, 0.5, 0.3], (30, 1)), columns=["top", "low", "mid"])
    y = pd.Series(["low", "mid", "top"] * 10)
    values = [
        wc.skce(y.astype(pd.CategoricalDtype(grades, ordered=True)), frame)
        for grades in (["low", "mid", "top"], ["none", "low", "mid", "high", "top"])
    ]
    assert values[0].value == values[1].value
    assert values[0].value != wc.skce(y, frame).value
    unseen = pd.Series(pd.Categorical(["low", "high"] * 15, ["low", "mid", "high", "top"], ordered=True))
    with pytest.raises(ValueError, match="not among the classes in row 1: found 'high'"):
        wc.skce(unseen, frame)


def test_a_row_of_a_data_frame_is_a_single_case_for_the_monitor() -> None:
    frame = pd.DataFrame([[0.2, 0.7, 0.1], [0.5, 0.2, 0.3]], columns=["a", "b", "c"])
    one, batch = wc.Monitor(), wc.Monitor()
    for k, label in enumerate(["b", "a"]):
        one.update(label, frame.iloc[k])
    batch.update(["b", "a"], frame)
    assert one.e_value == batch.e_value
    with pytest.raises(ValueError, match="'d'"):
        one.update("d", frame.iloc[0])


def test_a_single_case_for_the_monitor() -> None:
    batch, single = wc.Monitor(rng=0, warmup=5), wc.Monitor(rng=0, warmup=5)
    batch.update(Y, wc.Normal(MU, 1.0))
    for y, mu in zip(Y, MU, strict=True):
        status = single.update(float(y), (float(mu), 1.0))
    assert status.n_samples == N
    assert status.log_e_value == pytest.approx(batch.log_e_value, rel=1e-9)
    single.update(np.float64(0.3), wc.Normal([0.0], 1.0))
    single.update(0.3, stats.norm(0.0, 1.0))
    classes = wc.Monitor(rng=0, warmup=5)
    for given in (PROBS[0], PROBS[0].tolist(), wc.Categorical(PROBS[:1]), PROBS[:1]):
        classes.update(2, given)
    assert classes.n_samples == 4
    assert wc.Monitor(rng=0).update("yes", wc.Bernoulli([0.3], classes=("no", "yes"))).n_samples == 1
    assert wc.Monitor(rng=0).update(1, 0.3).n_samples == 1
    assert wc.Monitor(rng=0).update(np.zeros(2), (np.ones(2), np.eye(2))).n_samples == 1
    assert wc.Monitor(rng=0).update([0.0, 1.0], wc.DiagonalNormal(np.zeros((1, 2)), 1.0)).n_samples == 1


# -- questions in errors -----------------------------------------------------------------------------

POINTS = r"in row \d.* in all\); .*; point predictions have no spread: give \(mu, sigma\)"
SWAP = r"did you swap y and pred\? the order is \(y, pred\), truth first"


@pytest.mark.parametrize(
    ("y", "pred", "question"),
    [
        (wc.Normal(MU, 1.0), Y, SWAP),
        (PROBS, TOP, SWAP),
        (PROBS, TOP.tolist(), SWAP),
        (PROBS[:, 0], (TOP == 0).astype(int), SWAP),
        (PROBS[:, 0], TOP == 0, SWAP),
        ((MU, np.ones(N)), Y, SWAP),
        (stats.norm(MU, 1.0), Y, SWAP),
        (rng.normal(MU[:, None], 1.0, (N, 9)), Y, rf"in all\); {SWAP}"),
        (rng.normal(MU, 1.0, (9, N)), Y, rf"in all\); {SWAP}"),
        (pd.DataFrame(rng.normal(9.0, 1.0, (N, 9))), pd.Series(9.0 + Y), rf"in all\); {SWAP}"),
        (rng.normal(size=(N, 9, 2)), rng.normal(size=(N, 2)), SWAP),
        (rng.poisson(3.0, (N, 9)), TOP, SWAP),
        ({"a": wc.Normal(MU, 1.0), "b": wc.Normal(MU, 2.0)}, Y, SWAP),
        ({"a": PROBS}, TOP, SWAP),
        (TOP == 0, MU, r"are these logits\? give 1 / \(1 \+ np.exp\(-x\)\)"),
        (TOP, rng.normal(size=(N, 3)), r"in row \d.*are these logits\? give their softmax"),
        (TOP, rng.normal(size=(N, 3)), r"draws from the predictions are wc.Samples\(x\)"),
        (np.eye(3)[TOP], PROBS, r"is y one-hot\? give y.argmax\(axis=1\)"),
        (TOP, np.log(PROBS), r"are these logits\?"),
        (TOP, 100.0 * PROBS, r"are these percentages\? divide by 100"),
        (TOP == 0, 100.0 * PROBS[:, 0], r"are these percentages\?"),
        (Y, MU, POINTS),
        (Y, PROBS[:, 0], r"y must be 0 or 1 in row 0"),
        (TOP, MU, POINTS),
        (TOP, PROBS.T, r"sum of probs must be one .* in row 0"),
    ],
)
def test_likely_mistakes_are_asked_about(y: Any, pred: Any, question: str) -> None:
    for measure in (wc.nll, wc.calibration_test):
        with pytest.raises((ValueError, TypeError), match=question):
            measure(y, pred)


def test_reports_ask_about_point_predictions() -> None:
    with pytest.raises(wc.RowError, match=POINTS):
        wc.report(Y, MU)
    with pytest.raises(wc.RowError, match=POINTS) as found:
        wc.compare(Y, MU, wc.Normal(MU, 1.0))
    assert found.value.__notes__ == ["This was found for the predictions of pred_a."]


@pytest.mark.parametrize("absent", [None, np.nan, pd.NA, "nan"])
def test_labels_that_are_missing_are_called_so(absent: Any) -> None:
    y = NAMES[TOP].astype(object)
    y[7] = absent
    for given in (y, pd.Series(y)):
        with pytest.raises(wc.RowError, match=r"in row 7: found .*; what is missing: drop its row of y"):
            wc.nll(given, wc.Categorical(PROBS, classes=NAMES))
    called_so = wc.Categorical(PROBS, classes=["low", "mid", "nan"])
    assert wc.nll(["nan"] * N, called_so).n_samples == N


def test_names_of_columns_with_a_prefix_are_told_from_names_of_classes() -> None:
    frame = pd.DataFrame(PROBS, columns=[f"p_{name}" for name in NAMES])
    with pytest.raises(wc.RowError, match=r"are 'p_low'.*; .* give as_predictions\(frame, probs=\"p_\*\"\)$"):
        wc.nll(NAMES[TOP], frame)
    assert wc.nll(NAMES[TOP], wc.as_predictions(frame, probs="p_*")) == wc.nll(TOP, PROBS)
    with pytest.raises(wc.RowError, match=r"the classes are 'p_low', 'p_mid', 'p_high'$"):
        wc.nll(np.full(N, "lower"), frame)


def test_an_error_that_is_planned_for_is_a_number() -> None:
    for against in ("20%", None, True):
        with pytest.raises(
            TypeError, match=rf"number, such as 0\.8 .*\{{\"shift\": 0\.3\}}.*found .?{against}"
        ):
            wc.plan(wc.Normal(MU, 1.0), against=against)


def test_an_error_asks_no_prediction_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A million of them would take minutes, before a word is said about one target."""
    asked: list[Any] = []
    whole = wc.Normal.__getitem__
    monkeypatch.setattr(wc.Normal, "__getitem__", lambda self, k: asked.append(k) or whole(self, k))
    with pytest.raises(wc.RowError, match="y is not finite in row 0"):
        wc.nll(np.where(MU[0] == MU, np.nan, Y), wc.Normal(MU, 1.0))
    assert not asked


def test_reports_and_comparisons_ask_about_swapped_arguments() -> None:
    words = np.array(["a", "b", "c"])[TOP]
    with pytest.raises(TypeError, match=SWAP):
        wc.report(PROBS, words)
    with pytest.raises(TypeError, match=r"did you swap y and pred\['first'\]\?"):
        wc.report(PROBS, {"first": words, "second": words})
    with pytest.raises(TypeError, match=r"did you swap y and pred_a\?"):
        wc.compare(PROBS, words, words)
    several = {"first": wc.Normal(MU, 1.0), "second": wc.Normal(MU, 2.0)}
    with pytest.raises(TypeError, match=rf"found a dictionary; {SWAP}"):
        wc.report(several, Y)
    for given in (several, several["first"]):
        with pytest.raises(TypeError, match=r"did you swap y and pred_a\? the order is \(y, pred_a\)"):
            wc.compare(given, Y)  # type: ignore[call-overload]
    for given, target in ((several, [0.3]), (several, 0.3), ({"a": [0.2]}, wc.Normal([0.0], 1.0))):
        with pytest.raises(TypeError, match=rf"found a dictionary; {SWAP}"):
            wc.Monitor().update(given, target)


def test_targets_that_are_vectors_are_not_called_swapped() -> None:
    """A matrix beside probabilities, a column or a vector of classes is something else."""
    for y, pred in ((rng.integers(0, 2, (N, 2)), PROBS[:, 0]), (Y[:, None], MU), (np.eye(3)[TOP], TOP)):
        with pytest.raises((TypeError, ValueError)) as found:
            wc.nll(y, pred)
        assert "swap" not in str(found.value)


@pytest.mark.parametrize("shape", [(N, 20), (N, 3)])
def test_raw_draws_are_asked_whether_they_are_draws(shape: tuple[int, int]) -> None:
    """And nobody is told to divide them by their sum."""
    draws = np.random.default_rng(3).normal(10.0, 1.0, size=shape)
    with pytest.raises(ValueError, match=r"must be one .*; draws from the predictions are wc\.Samples\(x\)$"):
        wc.calibration_test(Y, draws)
    for values in (np.random.default_rng(3).poisson(9.0, size=shape), draws / 20.0):
        with pytest.raises(ValueError, match=r"draws from the predictions are wc\.Samples\(x\)"):
            wc.as_predictions(values)
    with pytest.raises(ValueError, match=r"found 0.99 .*; divide each row of probs by its sum$"):
        wc.as_predictions(np.full((N, 3), 0.33))


@pytest.mark.parametrize(
    ("probs", "row", "remedy"),
    [
        (
            [[1.5, 0.2, 0.1]],
            0,
            r"draws from the predictions are wc.Samples\(x\)",
        ),
        ([[0.2, 0.3, 0.5]] * 4 + [[1.5, 0.2, 0.1]], 4, "divide each row of probs by its sum"),
        ([[3, 4, 3], [1, 5, 4]], 0, r"draws from the predictions are wc.Samples\(x\)"),
        ([[20, 30, 49], [20, 70, 10]], 0, "are these percentages[?] divide by 100"),
        ([[0.2, 0.3, 0.4]], 0, "divide each row of probs by its sum"),
    ],
)
def test_sums_that_are_not_one_have_a_remedy_that_fits(probs: Any, row: int, remedy: str) -> None:
    with pytest.raises(
        wc.RowError, match=rf"the sum of probs must be one .* in row {row}: .*; {remedy}"
    ) as e:
        wc.Categorical(probs)
    assert (e.value.argument, e.value.row) == ("probs", row)
    assert bool(wc.Categorical([[0.2, 0.8]]).probs.sum() == 1.0)


def test_sums_are_divided_by_within_a_tolerance_that_is_told() -> None:
    from wellcal.reading import as_cases

    frame = pd.DataFrame({"y": ["a", "b"], "p_a": [0.51, 0.333], "p_b": [0.5, 0.661]})
    cases = as_cases(frame, "y", probs="p_*", normalise=True)
    assert cases.pred.probs.sum(axis=1) == pytest.approx(1.0, abs=1e-15)
    further = frame.assign(p_b=[0.5, 0.6])
    with pytest.raises(
        wc.RowError, match=r"one within 0.01 for normalise=True in row 1: found 0.933; rounding of 2 classes"
    ) as e:
        as_cases(further, "y", probs="p_*", normalise=True)
    assert e.value.argument == "probs"
    with pytest.raises(wc.RowError, match=r"normalise=True in row 0: .*; are these percentages\?"):
        as_cases(frame.assign(p_a=[51, 33], p_b=[50, 66]), "y", probs="p_*", normalise=True)
    with pytest.raises(wc.RowError, match="must not be negative in row 0"):
        as_cases(frame.assign(p_a=[-0.5, 0.333]), "y", probs="p_*", normalise=True)


@pytest.mark.parametrize("sort", [False, True])
def test_levels_have_one_check(sort: bool) -> None:
    """Sorting concerns values: it makes neither equal levels different nor missing ones known."""
    values = np.arange(6.0).reshape(2, 3)
    with pytest.raises(ValueError, match=r"levels must differ, found 0.5 twice; drop one of them") as e:
        wc.Quantiles([0.5, 0.9, 0.5], values, sort=sort)
    assert "sort=True" not in str(e.value)
    for bad, found in ((np.nan, "nan"), (50, "50; levels are shares: 50% is 0.5"), (0.0, "0")):
        with pytest.raises(
            ValueError, match=rf"levels must be numbers strictly between 0 and 1, found {found}$"
        ):
            wc.Quantiles([0.1, bad, 0.9], values, sort=sort)
    assert wc.Quantiles([0.9, 0.5, 0.1], values, sort=True).levels.tolist() == [0.1, 0.5, 0.9]


def test_levels_of_a_curve_are_checked_and_all_shown() -> None:
    pred = wc.Normal(MU, np.ones(N))
    found = wc.quantile_calibration(MU, pred, levels=[0.1, 0.0])
    assert found.to_dict()["levels"] == [0.1, 0.0]
    assert [line.split()[0] for line in repr(found).splitlines()[2:]] == ["10%", "0%"]
    draw = wc.displays.QuantileCalibrationDisplay.from_predictions
    with pytest.raises(
        ValueError, match="levels must be numbers between 0 and 1, found 10; levels are shares"
    ):
        draw(MU, pred, levels=[10, 50])
    assert draw(MU, pred, levels=[0.5, 0.1], test=False).levels.tolist() == [0.1, 0.5]


def test_a_label_that_is_missing_in_a_dictionary_of_arrow_is_no_other_label() -> None:
    column = pyarrow.chunked_array([pyarrow.array(["a", None, "b"]).dictionary_encode()])
    with pytest.raises(wc.RowError, match="not among the classes in row 1: found None"):
        wc.nll(column, wc.Categorical(np.full((3, 2), 0.5), classes=["a", "b"]))


@pytest.mark.parametrize("library", [pd.DataFrame, polars.DataFrame, pyarrow.table])
def test_a_frame_without_a_role_is_refused_with_the_way_to_give_one(library: Any) -> None:
    role = (
        r"a data frame without a role .*: say which columns are what, such as probs=\['no', 'yes'\] or norm"
    )
    for columns in (
        {"y": Y, "mu": MU, "sigma": np.ones(N)},
        {f"draw_{k}": MU + k for k in range(30)},
        {"y": [1.0], "p_a": [0.2], "p_b": [0.8]},
    ):
        with pytest.raises(ValueError, match=role):
            wc.as_predictions(library(columns))
    with pytest.raises(ValueError, match=role):
        wc.calibration_test(Y, library({"y": Y, "mu": MU, "sigma": np.ones(N)}))
    assert wc.as_predictions(library({"a": [0.2], "b": [0.8]})).labels().tolist() == ["a", "b"]
    for names in (("a", "b"), ("p_a", "p_b")):  # classes indeed, and something is wrong with a row
        with pytest.raises(ValueError, match=r"sum of probs .*divide each row of probs by its sum; a data"):
            wc.as_predictions(library(dict(zip(names, ([0.2], [0.7]), strict=True))))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_module_takes_arrays_and_frames(dtype: Any) -> None:
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.Softmax(dim=1)).to(dtype)
    inputs = np.column_stack([MU, Y])
    wanted = wc.as_predictions(network, torch.as_tensor(inputs, dtype=dtype))
    for given in (inputs, inputs.astype(np.float32), inputs.tolist(), pd.DataFrame(inputs)):
        found = wc.as_predictions(network, given)
        assert not found.probs.requires_grad
        assert_allclose(found.probs.numpy(), wanted.probs.detach().numpy(), rtol=1e-6)
    assert wanted.probs.requires_grad
    with pytest.raises(TypeError, match="X must be numeric, not texts"):
        wc.as_predictions(network, np.array(["a", "b"]))


@pytest.mark.parametrize(
    ("y", "pred"), [(TOP, PROBS[:-1]), (TOP + 1, PROBS), (Y, (MU, -np.ones(N))), (TOP, 2.0 * PROBS)]
)
def test_other_errors_ask_nothing(y: Any, pred: Any) -> None:
    with pytest.raises(ValueError, match=r"^[^?]*$"):
        wc.nll(y, pred)


# -- defaults that say what they did -----------------------------------------------------------------


def test_errors_of_classes_are_those_of_the_top_label() -> None:
    for measure in (wc.ece, wc.mce):
        found = measure(TOP, PROBS)
        assert found == measure(TOP, PROBS, reduce="confidence")
        assert "compared  the top label of 3 classes" in repr(found)
        assert found.provenance["reduce"] == "confidence"
        everything = measure(TOP, PROBS, reduce="none")
        assert "all probabilities of 3 classes" in repr(everything)
        assert everything.value != found.value
        assert "each of 3 classes" in repr(measure(TOP, PROBS, reduce="classwise"))
        assert "compared" not in repr(measure(TOP == 0, PROBS[:, 0]))
        assert measure(TOP == 0, PROBS[:, 0]).provenance["reduce"] is None
    assert wc.Estimate.from_json(wc.ece(TOP, PROBS).to_json()) == wc.ece(TOP, PROBS)


def test_resamples_that_were_asked_for_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    pred = wc.Normal(MU, 1.0)
    cost = automatic.linear_cost(make_setup(Y, pred))
    monkeypatch.setattr(automatic, "PAIRS_BUDGET", 0.0)
    monkeypatch.setattr(automatic, "LINEAR_BUDGET", 250.0 * cost)
    cut = wc.calibration_test(Y, pred, rng=0)
    assert cut.pvalue_floor == pytest.approx(1 / 251)
    with pytest.warns(
        UserWarning, match=r"n_resamples=400 takes about .* minutes of one core .* 250 are drawn"
    ):
        asked = wc.calibration_test(Y, pred, rng=0, n_resamples=400)
    assert asked.pvalue_floor == pytest.approx(1 / 401)
    monkeypatch.setattr(automatic, "LINEAR_BUDGET", 100.0 * cost)
    with pytest.warns(UserWarning, match=r"n_resamples=400 has no effect: 30 cases are too many .*omnibus"):
        assert wc.calibration_test(Y, pred, rng=0, n_resamples=400).method == "pearson"


def test_coverage_prints_a_table() -> None:
    found = wc.interval_coverage(Y, wc.Normal(MU, 1.0))
    lines = repr(found).splitlines()
    assert lines[1].split() == ["level", "covered", "95%", "limits", "if", "calibrated", "mean", "width"]
    assert [line.split()[0] for line in lines[2:]] == ["50%", "80%", "90%", "95%"]
    assert lines[2].split()[1] == f"{100 * found.coverage[0]:.1f}%"
    shown = found._repr_html_()
    assert shown.count("<tr>") == 5
    assert "<th>mean width</th>" in shown
    assert wc.interval_coverage(Y, wc.Normal(MU, 1.0)).from_json(found.to_json()) == found


@pytest.mark.parametrize(
    ("levels", "expected", "note"),
    [
        ([0.1, 0.5, 0.9], [0.8], "those between two of the predicted quantiles, not 50%, 90%, 95%"),
        ([0.25, 0.3, 0.5, 0.7, 0.75], [0.4, 0.5], "of the predicted quantiles, not 80%, 90%, 95%"),
        ([0.025, 0.5, 0.975], [0.95], "of the predicted quantiles, not 50%, 80%, 90%"),
        ([0.1, 0.2, 0.5, 0.9, 0.95], [0.8], "not 50%, 90%, 95%"),
        ([0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975], [0.5, 0.8, 0.9, 0.95], None),
        (np.arange(1, 20) / 20, [0.5, 0.8, 0.9], "not 95%"),  # of many, those nearest to the usual ones
        (np.array([0.05, 0.95], dtype=np.float32), [0.9], "not 50%, 80%, 95%"),
    ],
)
def test_intervals_of_quantiles_are_those_that_exist(levels: Any, expected: Any, note: str | None) -> None:
    pred = wc.Quantiles(levels, MU[:, None] + stats.norm.ppf(levels))
    found = wc.interval_coverage(Y, pred)
    assert_allclose(found.levels, expected, rtol=1e-12)
    assert (note is None and "levels  " not in repr(found)) or (note is not None and note in repr(found))
    _, _, below = found._repr_html_().partition("</table><p>levels: ")
    assert below == "" if note is None else f"{note}</p>" in below


COVERED = (wc.interval_coverage, wc.displays.CoverageDisplay.computed)


@pytest.mark.parametrize("covered", COVERED)
@pytest.mark.parametrize("levels", [[0.1, 0.5], [0.2, 0.9], [0.5]])
def test_quantiles_without_any_interval(covered: Any, levels: Any) -> None:
    pred = wc.Quantiles(levels, MU[:, None] + stats.norm.ppf(levels))
    with pytest.raises(ValueError, match=r"have no central interval: no two of them.*0\.05 and 0\.95 make"):
        covered(Y, pred)


@pytest.mark.parametrize("covered", COVERED)
def test_intervals_that_quantiles_do_not_have_are_refused(covered: Any) -> None:
    levels = [0.05, 0.25, 0.75, 0.95]
    pred = wc.Quantiles(levels, MU[:, None] + stats.norm.ppf(levels))
    message = r"central interval of 0\.8, found intervals of 0\.5, 0\.9; .* quantiles at 0\.1 and 0\.9"
    with pytest.raises(ValueError, match=message):
        covered(Y, pred, levels=[0.5, 0.8])
    assert_allclose(covered(Y, pred, levels=[0.9]).levels, [0.9])


# -- rows that belong together ------------------------------------------------------------------------


def test_a_default_index_is_no_licence_to_guess() -> None:
    """What a model returned has pandas' default index, and a test set the labels of its rows: who is who?"""
    chosen = rng.permutation(1000)[:N] + N
    pred = wc.Normal(pd.Series(MU), pd.Series(np.ones(N)))
    assert pred.case_index.equals(pd.RangeIndex(N))
    expected = float(wc.nll(Y, (MU, np.ones(N))))
    for labels in (chosen, range(1, N + 1), range(0, 2 * N, 2)):
        with pytest.raises(ValueError, match=r"is not in that of y.*y\.to_numpy\(\)"):
            wc.nll(pd.Series(Y, index=labels), pred)
    assert float(wc.nll(pd.Series(Y, index=chosen).to_numpy(), pred)) == expected
    order = rng.permutation(N)  # a shuffle of the same labels is matched
    assert float(wc.nll(pd.Series(Y)[order], pred)) == pytest.approx(expected, rel=1e-13)
    with pytest.raises(ValueError, match="same labels"):
        wc.nll(pd.Series(Y[:-1], index=chosen[:-1]), pred)


# -- targets that are names ----------------------------------------------------------------------------

FOUR = pd.Categorical(["low", "mid", "high", "top"] * 10, ["low", "mid", "high", "top"], ordered=True)
THREE = np.full((40, 3), 1 / 3)
ASKED = {
    "two": (
        ["no", "yes"] * 20,
        wc.Bernoulli(np.full(40, 0.4)),
        r"Bernoulli\(probs, classes=\('no', 'yes'\)\)",
    ),
    "an array": (
        ["no", "yes"] * 20,
        np.full(40, 0.4),
        r"classes=\('no', 'yes'\)\) if probs are those of 'yes'",
    ),
    "a column": (pd.Series(["no", "yes"] * 20), np.full(40, 0.4), r"classes=\('no', 'yes'\)"),
    "three for two": (["a", "b", "c", "a"] * 10, np.full(40, 0.4), "'c': 3 for two classes; Categorical"),
    "four grades for three": (
        FOUR,
        wc.Categorical(THREE),
        "'low' < 'mid' < 'high' < 'top': 4 for 3 columns",
    ),
    "grades in a column": (
        pd.Series(FOUR),
        THREE,
        "has the grades .*: 4 for 3 columns of probs; Categorical",
    ),
    "unused": (pd.Categorical(["low"] * 40, FOUR.categories), THREE, r"leave those out, y\.remove_unused"),
    "no names": (
        list("abca") * 10,
        THREE,
        r"which column .* Categorical\(probs, classes=\('a', 'b', 'c'\)\)",
    ),
}


@pytest.mark.parametrize("what", ASKED)
def test_targets_that_are_names_ask_for_classes(what: str) -> None:
    y, pred, message = ASKED[what]
    for function in (wc.calibration_test, wc.brier, wc.report):
        with pytest.raises(TypeError, match=message):
            function(y, pred)


def test_grades_that_no_column_predicts_are_told() -> None:
    named = wc.Categorical(THREE, classes=["low", "mid", "high"])
    three = pd.Categorical(["low", "mid", "high", "low"] * 10, FOUR.categories, ordered=True)
    with pytest.warns(UserWarning, match="y has the grade 'top', which is not among the classes"):
        told = wc.brier(three, named)
    with warnings.catch_warnings(action="error"):
        assert float(wc.brier(three.remove_unused_categories(), named)) == float(told)


def test_events_of_which_some_are_missing_are_no_numbers() -> None:
    with pytest.raises(ValueError, match=r"y is not finite in row 0: found nan") as found:
        wc.ece(np.array([np.nan, 1.0, 0.0, 1.0]), np.array([0.2, 0.7, 0.4, 0.9]))
    assert "point predictions" not in str(found.value)


def test_classes_that_are_counted_from_one() -> None:
    probs = np.full((4, 3), 1.0 / 3.0)
    frame = pd.DataFrame(probs, columns=["p_0", "p_1", "p_2"])
    for y in ([1, 2, 3, 3], [1.0, 2.0, 3.0, 3.0]):
        for pred in (probs, wc.as_predictions(frame, probs="p_*")):
            with pytest.raises(ValueError, match=r"0, 1, 2; if these are counted from 1, subtract 1$"):
                wc.ece(np.array(y), pred)
    with pytest.raises(ValueError, match=r"classes are 0, 1, 2$"):
        wc.ece(np.array([0, 2, 3, 3]), probs)
