"""Cases are matched by their labels wherever both sides have some, and never by position then."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pandas as pd
import polars
import pytest
import xarray as xr
from scipy import stats

import wellcal as wc
from wellcal.predictions.alignment import per_case, same_cases
from wellcal.predictions.batches import concatenate

N = 40
rng = np.random.default_rng(7)
MU = rng.normal(size=N)
SIGMA = rng.uniform(0.5, 2.0, N)
Y = rng.normal(MU, SIGMA)
NAMES = [f"case {k}" for k in range(N)]
ORDER = rng.permutation(N)
FRAME = pd.DataFrame({"mu": MU, "sigma": SIGMA, "y": Y, "w": rng.uniform(0.5, 2.0, N)}, index=NAMES)
PROBS = pd.DataFrame(rng.dirichlet(np.ones(3), N), index=NAMES)
CLASSES = pd.Series(rng.integers(0, 3, N), index=NAMES)
DRAWS = pd.DataFrame(rng.normal(MU[:, None], SIGMA[:, None], (N, 5)), index=NAMES)


def shuffled(x: Any) -> Any:
    return x.iloc[ORDER]


def normal() -> wc.Normal:
    return wc.Normal(FRAME.mu, FRAME.sigma)


# -- every public function that takes cases -----------------------------------------------------------

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "skce": wc.skce,
    "skce biased": lambda y, p: wc.skce(y, p, estimator="biased"),
    "skce blocks": lambda y, p: wc.skce(y, p, estimator="block", block_size=4),
    "kce": wc.kce,
    "ucme": lambda y, p: wc.ucme(y, p, locations=4, rng=0),
    "nll": wc.nll,
    "mse": wc.mse,
    "pinball_loss": wc.pinball_loss,
    "crps": wc.crps,
    "energy_score": wc.energy_score,
    "quantile_calibration": wc.quantile_calibration,
    "interval_coverage": wc.interval_coverage,
    "pit": lambda y, p: wc.pit(y, p, rng=0)[3],
    "local_discrepancy": lambda y, p: wc.local_discrepancy(y, p).values[3],
    "exact": lambda y, p: wc.calibration_test(y, p, method="exact", n_resamples=99, rng=0).statistic,
    "cme": lambda y, p: wc.calibration_test(y, p, method="regularised", n_resamples=99, rng=0).statistic,
    "witness": lambda y, p: wc.witness(y, p, rng=0, n_resamples=99).scores[3],
    "compare": lambda y, p: wc.compare(y, p, normal(), n_resamples=99, rng=0).a,
    "temperature": lambda y, p: wc.TemperatureScaling().fit(y, p).temperature_,
    "cross_fit": lambda y, p: wc.recalibration.cross_fit(y, p, rng=0, n_resamples=99).before.statistic,
    "log_prob": lambda y, p: p.log_prob(y)[3],
    "cdf": lambda y, p: p.cdf(y)[3],
    "check_targets": lambda y, p: p.check_targets(y)[3],
}
OF_CLASSES: dict[str, Callable[[Any, Any], Any]] = {
    "ece": wc.ece,
    "mce": wc.mce,
    "ece of confidence": lambda y, p: wc.ece(y, p, reduce="confidence"),
    "smooth_ece": lambda y, p: wc.smooth_ece(y, p, reduce="confidence"),
    "mmce": wc.mmce,
    "brier": wc.brier,
    "nll": wc.nll,
    "confidence": lambda y, p: wc.confidence(y, p)[0][3],
    "log_prob": lambda y, p: p.log_prob(y)[3],
}


@pytest.mark.filterwarnings("ignore:with n_resamples")
@pytest.mark.parametrize("name", CALLS)
def test_targets_are_matched_by_label(name: str) -> None:
    call = CALLS[name]
    expected = float(call(Y, wc.Normal(MU, SIGMA)))
    assert float(call(FRAME.y, normal())) == expected
    assert np.isclose(float(call(shuffled(FRAME.y), normal())), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"'case 0' is not in that of y|'another' is not in that of pred_a"):
        call(FRAME.y.rename({"case 0": "another"}), normal())


def test_a_monitor_takes_no_other_order() -> None:
    """Cases in the order of the predictions would be cases in no order of time."""
    monitor = wc.Monitor(rng=0, warmup=10)
    first = NAMES[ORDER[0]]
    for y, pred, words in (
        (shuffled(FRAME.y), normal(), f"row 0 is '{first}' in y and 'case 0' in the predictions"),
        (
            FRAME.y,
            wc.Normal(shuffled(FRAME.mu), FRAME.sigma),
            f"'case 0' in y and '{first}' in the predictions",
        ),
    ):
        with pytest.raises(ValueError, match=rf"{words}; .* sort both by time"):
            monitor.update(y, pred)
    expected = wc.Monitor(rng=0, warmup=10).update(Y, wc.Normal(MU, SIGMA)).log_e_value
    assert monitor.n_samples == 0
    assert monitor.update(FRAME.y, normal()).log_e_value == expected
    again = wc.Monitor(rng=0, warmup=10)
    assert again.update(shuffled(FRAME.y).to_numpy()[np.argsort(ORDER)], normal()).log_e_value == expected
    with pytest.raises(ValueError, match="'case 0' is not in that of y"):
        monitor.update(FRAME.y.rename({"case 0": "another"}), normal())


@pytest.mark.parametrize("name", OF_CLASSES)
def test_classes_are_matched_by_label(name: str) -> None:
    call = OF_CLASSES[name]
    expected = float(call(CLASSES.to_numpy(), wc.Categorical(PROBS.to_numpy())))
    assert float(call(shuffled(CLASSES), wc.Categorical(PROBS))) == expected
    with pytest.raises(ValueError, match="index"):
        call(CLASSES.set_axis(range(N)), wc.Categorical(PROBS))


def test_a_shuffle_of_the_targets_is_no_miscalibration() -> None:
    """What was seen: p = .002 for a perfect model whose targets came in another order."""
    mixed = FRAME.sample(frac=1.0, random_state=1)
    found = wc.calibration_test(mixed.y, normal(), rng=0)
    assert found.pvalue == wc.calibration_test(FRAME.y, normal(), rng=0).pvalue > 0.05


@pytest.mark.parametrize(
    "score", [wc.skce, wc.nll, wc.mse, wc.pinball_loss, wc.crps, wc.energy_score, wc.kce]
)
def test_weights_are_matched_by_label(score: Callable[..., Any]) -> None:
    expected = float(score(Y, wc.Normal(MU, SIGMA), weights=FRAME.w.to_numpy()))
    assert float(score(Y, normal(), weights=shuffled(FRAME.w))) == expected
    # Predictions without an index: the labels are those of the targets.
    assert float(score(FRAME.y, wc.Normal(MU, SIGMA), weights=shuffled(FRAME.w))) == expected
    # Neither has one: by position.
    assert float(score(Y, wc.Normal(MU, SIGMA), weights=FRAME.w)) == expected
    with pytest.raises(ValueError, match="weights has no index"):
        score(shuffled(FRAME.y), normal(), weights=FRAME.w.to_numpy())


def test_weights_of_classes() -> None:
    w = FRAME.w
    for score in (wc.brier, wc.mmce):
        expected = float(score(CLASSES.to_numpy(), PROBS.to_numpy(), weights=w.to_numpy()))
        assert float(score(CLASSES, PROBS, weights=shuffled(w))) == expected


@pytest.mark.filterwarnings("ignore:with n_resamples")
def test_groups_segments_and_bins() -> None:
    groups = pd.Series(np.arange(N) // 2, index=NAMES)
    options: dict[str, Any] = {"method": "multiplier", "n_resamples": 99, "rng": 0}
    expected = wc.calibration_test(Y, wc.Normal(MU, SIGMA), groups=groups.to_numpy(), **options).pvalue
    assert wc.calibration_test(Y, normal(), groups=shuffled(groups), **options).pvalue == expected
    segments = pd.DataFrame({"half": np.where(MU > 0, "up", "down"), "third": np.arange(N) % 3}, index=NAMES)
    for given in (segments, segments.half, dict(segments.items())):
        found = [
            wc.witness(Y, normal(), segments=g, rng=0, n_resamples=99, weights=w).segments
            for g, w in ((given, FRAME.w), (_mixed(given), shuffled(FRAME.w)))
        ]
        assert {(s.where, s.statistic) for s in found[0]} == {(s.where, s.statistic) for s in found[1]}
    bins = pd.Series(np.arange(N) % 4, index=NAMES)
    plain = float(wc.ece(CLASSES.to_numpy(), PROBS.to_numpy(), binning=bins.to_numpy()))
    assert float(wc.ece(CLASSES, PROBS, binning=shuffled(bins))) == plain


def _mixed(given: Any) -> Any:
    return {k: shuffled(v) for k, v in given.items()} if isinstance(given, dict) else shuffled(given)


# -- several models -----------------------------------------------------------------------------------


def test_both_models_of_a_comparison() -> None:
    other = wc.Normal(FRAME.mu + 0.3, FRAME.sigma)
    expected = wc.compare(Y, wc.Normal(MU, SIGMA), wc.Normal(MU + 0.3, SIGMA), rng=0, n_resamples=99)
    for y, b in ((FRAME.y, other[ORDER]), (shuffled(FRAME.y), other), (FRAME.y, wc.Normal(MU + 0.3, SIGMA))):
        found = wc.compare(y, normal(), b, rng=0, n_resamples=99)
        assert np.isclose(float(found.estimate), float(expected.estimate), rtol=1e-10)
        alone = [wc.calibration_test(y, pred, rng=0, n_resamples=99).pvalue for pred in (normal(), b)]
        assert [test.pvalue for test in found.tests] == alone
    with pytest.raises(ValueError, match="y has no index, and the rows of pred_a and of pred_b"):
        wc.compare(Y, normal(), other[ORDER])
    with pytest.raises(ValueError, match="do not hold the same labels"):
        same_cases(Y, {"pred_a": normal(), "pred_b": other[:-1]})


# -- what a batch remembers ---------------------------------------------------------------------------


def test_parameters_of_one_batch_are_matched() -> None:
    batch = wc.Normal(FRAME.mu, shuffled(FRAME.sigma))
    np.testing.assert_array_equal(batch.scale, SIGMA)
    with pytest.raises(ValueError, match="the indexes of scale and loc do not hold the same labels"):
        wc.Normal(FRAME.mu, FRAME.sigma.iloc[1:])
    with pytest.raises(ValueError, match=r"\(they have 39 and 40 rows\): 'case 0' is not in that of scale"):
        wc.Normal(FRAME.mu, FRAME.sigma.iloc[1:])
    members = [normal(), normal()[ORDER]]
    mixture = wc.Mixture(members, weights=pd.DataFrame(np.full((N, 2), 0.5), index=NAMES).iloc[::-1])
    np.testing.assert_array_equal(mixture.components[1].loc, MU)
    assert mixture.case_index.equals(FRAME.index)


@pytest.mark.parametrize(
    "make",
    [
        lambda: wc.as_predictions(PROBS),
        lambda: wc.as_predictions(PROBS[0]),
        lambda: wc.as_predictions((FRAME.mu, FRAME.sigma)),
        lambda: wc.as_predictions((FRAME.mu, 1.0)),
        lambda: wc.as_predictions(stats.norm(FRAME.mu, shuffled(FRAME.sigma))),
        lambda: wc.as_predictions(stats.uniform(FRAME.mu, scale=shuffled(FRAME.sigma))),
        lambda: wc.as_predictions(stats.binom(3, PROBS[0])),
        lambda: wc.Samples(DRAWS),
        lambda: wc.Quantiles([0.1, 0.5, 0.9], pd.DataFrame(np.sort(DRAWS.to_numpy()[:, :3]), index=NAMES)),
        lambda: wc.DiagonalNormal(FRAME[["mu", "sigma"]], 1.0),
        lambda: wc.Poisson(FRAME.sigma),
        lambda: wc.confidence(CLASSES, PROBS)[1],
        lambda: wc.recalibration.apply_temperature(normal(), 2.0),
        lambda: wc.TemperatureScaling().fit(FRAME.y, normal()).transform(normal()),
        lambda: normal()[ORDER][np.argsort(ORDER)],
        lambda: concatenate([normal()[:10], normal()[10:]], ["a", "b"], "both"),
        lambda: pickle.loads(pickle.dumps(normal())),
    ],
)
def test_a_batch_remembers_its_index(make: Callable[[], Any]) -> None:
    assert make().case_index.equals(FRAME.index)


def test_scipy_parameters_in_different_orders() -> None:
    for make in (stats.norm, stats.uniform):
        mixed = wc.as_predictions(make(FRAME.mu, shuffled(FRAME.sigma)))
        np.testing.assert_array_equal(mixed.quantile(0.3), wc.as_predictions(make(MU, SIGMA)).quantile(0.3))


def test_rows_keep_their_labels() -> None:
    batch = normal()
    assert list(batch[3].case_index) == ["case 3"]
    assert list(batch[2:4].case_index) == ["case 2", "case 3"]
    assert list(batch[[5, 1]].case_index) == ["case 5", "case 1"]
    assert list(batch[::-1].case_index) == NAMES[::-1]
    mask = FRAME.mu > 0
    assert list(batch[mask.to_numpy()].case_index) == list(FRAME.index[mask])
    np.testing.assert_array_equal(batch[shuffled(mask)].loc, MU[MU > 0])
    assert float(wc.nll(FRAME.y.iloc[[1, 5]], batch[[5, 1]])) == float(wc.nll(Y[[5, 1]], batch[[5, 1]]))
    assert batch.with_index(None).case_index is None
    with pytest.raises(ValueError, match="index and predictions must have the same length"):
        batch.with_index(FRAME.index[1:])


def test_labels_of_a_part_are_no_labels() -> None:
    joined = concatenate([normal(), wc.Normal(MU, SIGMA)], ["a", "b"], "both")
    assert joined.case_index is None


# -- which indexes match ------------------------------------------------------------------------------


def test_one_side_without_an_index_is_taken_by_position() -> None:
    expected = float(wc.nll(Y, wc.Normal(MU, SIGMA)))
    assert float(wc.nll(FRAME.y.sample(frac=1.0).set_axis(range(N)), wc.Normal(MU, SIGMA))) != expected
    assert float(wc.nll(FRAME.y, wc.Normal(MU, SIGMA))) == expected
    assert float(wc.nll(list(Y), normal())) == expected


def test_default_indexes_are_the_same() -> None:
    plain = FRAME.reset_index(drop=True)
    assert float(wc.nll(plain.y, wc.Normal(plain.mu, plain.sigma))) == float(wc.nll(Y, normal()))


def test_the_default_index_of_another_length() -> None:
    plain = FRAME.reset_index(drop=True)
    with pytest.raises(ValueError, match=r"\(they have 39 and 40 rows\): 39 is not in that of y"):
        wc.nll(plain.y[:-1], wc.Normal(plain.mu, plain.sigma))
    with pytest.raises(ValueError, match=r"0 is not in that of y, nor are 4 more; give y\.to_numpy"):
        wc.nll(plain.y[5:10], wc.Normal(plain.mu[:5], plain.sigma[:5]))


def test_labels_that_occur_twice() -> None:
    twice = FRAME.set_axis([0, 0, *range(2, N)])
    batch = wc.Normal(twice.mu, twice.sigma)
    assert float(wc.nll(twice.y, batch)) == float(wc.nll(Y, batch))
    with pytest.raises(ValueError, match="that of y has the label 0 twice"):
        wc.nll(shuffled(twice.y), batch)


def test_labels_of_several_levels_and_dates() -> None:
    for index in (
        pd.MultiIndex.from_product([["a", "b"], range(N // 2)]),
        pd.date_range("2024-01-01", periods=N),
        pd.Index(np.arange(N) / 2.0),
    ):
        named = FRAME.set_axis(index)
        batch = wc.Normal(named.mu, named.sigma)
        assert float(wc.nll(shuffled(named.y), batch)) == float(wc.nll(Y, normal()))


def test_missing_values_have_a_row() -> None:
    for dtype in ("Float64", object):
        missing = FRAME.y.astype(dtype)
        missing.iloc[2] = pd.NA
        with pytest.raises((TypeError, ValueError), match=r"y .* row 2"):
            wc.nll(missing, normal())


def test_an_array_with_coordinates_is_matched() -> None:
    y = xr.DataArray(Y, dims="case", coords={"case": NAMES})
    assert float(wc.nll(y[ORDER], normal())) == float(wc.nll(Y, normal()))
    assert float(wc.nll(xr.DataArray(Y, dims="case"), normal())) == float(wc.nll(Y, normal()))
    batch = wc.Normal(xr.DataArray(MU, dims="case", coords={"case": NAMES}), 1.0)
    assert list(batch.case_index) == NAMES


class Column:
    """A column of another library's data frame: an array, and no index."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(self.values, dtype=dtype)


def test_other_data_frames_have_no_index() -> None:
    batch = wc.Normal(Column(MU), Column(SIGMA))
    assert batch.case_index is None
    assert float(wc.nll(Column(Y), batch)) == float(wc.nll(Y, normal()))


def test_per_case_needs_labels_on_both_sides() -> None:
    given = [1.0, 2.0]
    assert per_case(given, "weights", Y[:2], wc.Normal(MU[:2], 1.0)) is given
    assert per_case(None, "weights", FRAME.y, normal()) is None


def test_jax_carries_the_index() -> None:
    jax.numpy.zeros(1)
    wc.Normal(jax.numpy.zeros(1), 1.0)  # families are registered when the first array of JAX is seen
    moved = jax.tree_util.tree_map(lambda x: x + 1.0, normal())
    assert moved.case_index.equals(FRAME.index)
    np.testing.assert_allclose(moved.loc, MU + 1.0)


def test_columns_of_vectors_in_another_order_are_refused() -> None:
    """As rows of pandas in another order are not taken by position: a perfect model was rejected."""
    rng = np.random.default_rng(2)
    mean = pd.DataFrame(rng.normal(size=(40, 3)), columns=["u", "v", "w"])
    y = mean + rng.normal(size=(40, 3))
    turned = y[["w", "u", "v"]]
    ones = mean * 0.0 + 1.0
    diagonal = wc.DiagonalNormal(mean, ones)
    full = wc.MultivariateNormal(mean, np.eye(3))
    for pred in (diagonal, full, diagonal[::-1], wc.Mixture([diagonal, diagonal]), (mean, np.eye(3))):
        with pytest.raises(
            ValueError, match=r"y and loc have the same columns .* as in y\[\['u', 'v', 'w'\]\]"
        ):
            wc.calibration_test(turned, pred)
    with pytest.raises(ValueError, match=r"scale and loc have the same columns in different orders"):
        wc.DiagonalNormal(mean, ones[["v", "u", "w"]])
    with pytest.raises(ValueError, match=r"components\[1\] and loc have the same columns"):
        wc.Mixture([diagonal, wc.DiagonalNormal(mean[["v", "u", "w"]], 1.0)])
    wanted = float(wc.skce(y.to_numpy(), wc.DiagonalNormal(mean.to_numpy(), ones.to_numpy())))
    for same in (turned[["u", "v", "w"]], y.set_axis(["a", "b", "c"], axis=1), y.set_axis(range(3), axis=1)):
        assert float(wc.skce(same, diagonal)) == pytest.approx(wanted, rel=1e-12)
    with pytest.raises(ValueError, match="y and loc have the same columns"):
        wc.nll(polars.DataFrame(turned), wc.DiagonalNormal(polars.DataFrame(mean), 1.0))


def test_a_covariance_whose_columns_are_in_another_order_is_refused() -> None:
    """One for all predictions, with names of the coordinates both ways."""
    loc = pd.DataFrame(np.zeros((5, 2)), columns=["u", "v"])
    cov = pd.DataFrame([[1.0, 0.5], [0.5, 4.0]], index=["u", "v"], columns=["u", "v"])
    turned = cov.loc[["v", "u"], ["v", "u"]]
    with pytest.raises(ValueError, match=r"cov and loc .* as in cov\.loc\[\['u', 'v'\], \['u', 'v'\]\]"):
        wc.MultivariateNormal(loc, turned)
    np.testing.assert_array_equal(wc.MultivariateNormal(loc, cov).cov[4], cov.to_numpy())
