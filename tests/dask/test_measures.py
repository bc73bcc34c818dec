"""Scores, ECE, coverage and SKCE in partitions are those of the same cases in memory."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from tests.dask.examples import cut, example, in_memory, partitioned, tied

import wellcal as wc
import wellcal.dask
from wellcal._arrays.progress import Progress
from wellcal.dask.parquet import RowGroups
from wellcal.engines import Tiled

EXACT = Tiled(threads=1, precision="float64")


def assert_same(found: Any, expected: Any) -> None:
    assert_allclose(float(found), float(expected), rtol=1e-10, atol=1e-16)
    assert (found.standard_error is None) == (expected.standard_error is None)
    if expected.standard_error is not None:
        assert_allclose(found.standard_error, expected.standard_error, rtol=1e-10)
    assert (found.name, found.estimator, found.n_samples) == (
        expected.name,
        expected.estimator,
        expected.n_samples,
    )
    assert found.kernel == expected.kernel


@pytest.mark.parametrize(
    ("measure", "family"),
    [
        (wc.nll, "normal"),
        (wc.crps, "normal"),
        (wc.mse, "vectors"),
        (wc.energy_score, "draws"),
        (wc.pinball_loss, "normal"),
        (wc.brier, "categorical"),
        (wc.ece, "bernoulli"),
        (wc.ece, "categorical"),
        (wc.interval_coverage, "normal"),
        (wc.nll, "poisson"),
        (wc.pinball_loss, "quantiles"),
    ],
)
def test_a_measure_adds_up(measure: Any, family: str) -> None:
    found = example(family, 700)
    for size in (700, 300, (1, 600, 99)):
        assert_same(measure(*partitioned(found, size)), measure(*in_memory(found)))


def test_weights_and_options_of_measures() -> None:
    found = example("normal", 500)
    w = np.random.default_rng(1).uniform(size=500)
    y, pred = partitioned(found, 200)
    assert_same(wc.nll(y, pred, weights=cut(w, 170)), wc.nll(*in_memory(found), weights=w))
    classes = example("categorical", 500)
    in_bins = {"n_bins": 7, "reduce": "classwise"}
    assert_same(wc.ece(*partitioned(classes, 200), **in_bins), wc.ece(*in_memory(classes), **in_bins))
    levels = [0.3, 0.6]
    covered = wc.interval_coverage(y, pred, levels=levels)
    expected = wc.interval_coverage(*in_memory(found), levels=levels)
    assert_allclose(covered.coverage, expected.coverage, rtol=1e-12)
    assert_allclose(covered.widths, expected.widths, rtol=1e-12)


@pytest.mark.parametrize(
    "measure", [wc.interval_coverage, wc.skce, partial(wc.skce, estimator="block", block_size=20)]
)
def test_outcomes_on_quantiles_are_counted_over_all_partitions(measure: Any) -> None:
    """One in each partition is too many of all, and five in one partition are a few of all."""
    for places, fine in ((slice(0, 5), True), (slice(50, 400, 35), False)):
        found = tied(example("quantiles", 400), places)
        for size in (40, 400):
            if fine:
                assert_same(measure(*partitioned(found, size)), measure(*in_memory(found)))
                continue
            for cases in (partitioned(found, size), in_memory(found)):
                with pytest.raises(wc.RowError, match=r"of level 0\.5 in 10 of 400 cases, first in row 50:"):
                    measure(*cases)


@pytest.mark.parametrize("family", ["normal", "categorical", "poisson", "draws"])
def test_skce_over_pairs_of_partitions(family: str) -> None:
    found = example(family, 1800)
    for estimator in ("unbiased", "biased"):
        expected = wc.skce(*in_memory(found), estimator=estimator, engine=EXACT)
        for size in (700, (5, 1200, 595)):
            assert_same(wc.skce(*partitioned(found, size), estimator=estimator), expected)


@pytest.mark.parametrize("family", ["normal", "draws"])
def test_weighted_skce_over_pairs_of_partitions(family: str) -> None:
    """Whatever their unit is, with zeros among them, and where one case has nearly all weight."""
    found, rng = example(family, 700), np.random.default_rng(1)
    some = rng.uniform(size=700) * (np.arange(700) % 7 > 0)
    weights = [1e200 * some, np.where(np.arange(700) < 300, 0.0, some)]
    weights.append(np.where(np.arange(700) == 11, 1e6, some))
    for w in weights:
        for estimator in ("unbiased", "biased"):
            expected = wc.skce(*in_memory(found), estimator=estimator, weights=w, engine=EXACT)
            result = wc.skce(*partitioned(found, (300, 310, 90)), estimator=estimator, weights=cut(w, 250))
            assert_same(result, expected)
            assert result.provenance["weights"] == expected.provenance["weights"]
    y, pred = partitioned(found, 400)
    with pytest.raises(ValueError, match=r"weights must be positive for at least 2 .* only 1 is"):
        wc.skce(y, pred, weights=cut((np.arange(700) == 3) * 1.0, 400))
    with pytest.raises(ValueError, match='no meaning for estimator="block"'):
        wc.skce(y, pred, weights=cut(some, 400), estimator="block")


def test_skce_over_blocks_that_cross_partitions() -> None:
    found = example("normal", 1000)
    kernel = wc.default_kernel(in_memory(found)[1])
    for options in ({"block_size": 7}, {"block_size": None}, {"block_size": 7, "kernel": kernel}):
        expected = wc.skce(*in_memory(found), estimator="block", **options)
        for size in (300, (1, 2, 997)):
            estimate = wc.skce(*partitioned(found, size), estimator="block", **options)
            assert_same(estimate, expected)
            assert estimate.provenance["dropped"] == expected.provenance["dropped"]


def test_kce_is_the_root_of_the_biased_estimate() -> None:
    found = example("bernoulli", 300)
    assert_allclose(float(wc.kce(*partitioned(found, 110))), float(wc.kce(*in_memory(found))), rtol=1e-10)


def test_the_default_kernel_is_that_of_all_predictions() -> None:
    """2,000 of 5,000 predictions give the scales: the same ones, however they are cut."""
    found = example("normal", 5000)
    expected = wc.default_kernel(in_memory(found)[1])
    assert wc.default_kernel(in_memory(found)[1][:2000]) != expected, "the example must tell them apart"
    for size in (5000, 1700):
        assert wc.default_kernel(partitioned(found, size)[1]) == expected


def test_data_frames_arrays_and_tuples() -> None:
    y, _, (mu, sigma) = example("normal", 400)
    frame = pd.DataFrame({"y": y, "mu": mu, "sigma": sigma})
    expected = wc.nll(y, (mu, sigma))
    parts = dd.from_pandas(frame, npartitions=3)
    pred = wc.as_predictions(parts, normal=("mu", "sigma"))
    assert_same(wc.nll(parts["y"], pred), expected)
    assert_same(wc.nll(cut(y, 150), (cut(mu, 100), cut(sigma, 130))), expected)
    assert_same(wc.nll(cut(y, 150), (cut(mu, 100), 1.5)), wc.nll(y, (mu, 1.5)))
    probs = np.column_stack([0.3 + 0.1 * np.tanh(mu), 0.7 - 0.1 * np.tanh(mu)])
    labels = (y > 0).astype(int)
    two_axes = da.from_array(probs, chunks=(90, 1))
    assert_same(wc.brier(cut(labels, 90), two_axes), wc.brier(labels, probs))
    assert len(wc.as_predictions(two_axes).compute()) == 400
    named = pd.DataFrame({"p_no": probs[:, 0], "p_yes": probs[:, 1], "y": np.where(labels, "yes", "no")})
    by_name = dd.from_pandas(named, npartitions=3)
    made = wc.as_predictions(by_name, probs="p_*")
    assert_same(wc.ece(by_name["y"], made), wc.ece(named["y"], wc.as_predictions(named, probs="p_*")))


def test_columns_of_one_frame_stay_in_the_same_partitions(tmp_path: Any) -> None:
    """Dask joins small files by the columns that are read, which differ for targets and predictions."""
    found = example("normal", 400)
    y, _, (mu, sigma) = found
    frame = pd.DataFrame({"y": y, "mu": mu, "sigma": sigma, "other": "text"})
    for k in range(4):
        frame[100 * k : 100 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    parts = dd.read_parquet(tmp_path)
    pred = wc.as_predictions(parts, normal=("mu", "sigma"))
    assert_same(wc.skce(parts["y"], pred), wc.skce(*in_memory(found), engine=EXACT))
    with pytest.raises(ValueError, match="sigmas"):
        wc.as_predictions(parts, normal=("mu", "sigmas"))


def test_empty_partitions_have_no_say() -> None:
    y, _, (mu, sigma) = example("normal", 400)
    frame = pd.DataFrame({"y": y, "mu": np.sort(mu), "sigma": sigma})
    parts = dd.from_pandas(frame, npartitions=4)
    some = parts[parts["mu"] > 0.5]
    kept = frame[frame["mu"] > 0.5]
    pred = wc.as_predictions(some, normal=("mu", "sigma"))
    expected = wc.Normal(kept["mu"], kept["sigma"])
    assert_same(wc.crps(some["y"], pred), wc.crps(kept["y"], expected))
    assert_same(wc.skce(some["y"], pred), wc.skce(kept["y"].to_numpy(), in_numpy(expected), engine=EXACT))
    none = parts[parts["mu"] > 99.0]
    with pytest.raises(ValueError, match="none of its partitions has a case"):
        wc.nll(none["y"], wc.as_predictions(none, normal=("mu", "sigma")))


def in_numpy(pred: Any) -> Any:
    return wc.Normal(np.asarray(pred.loc), np.asarray(pred.scale))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_whoever_listens_hears_of_tasks_and_ends_them(scheduler: str) -> None:
    y, pred = partitioned(example("normal", 600), 100)
    told: list[tuple[str, float, float]] = []

    def stop(what: str, done: float, total: float) -> None:
        if done > total / 2:
            raise InterruptedError

    with dask.config.set(scheduler=scheduler, num_workers=2):
        wc.skce(y, pred, progress=Progress(lambda *step: told.append(step), interval=-1.0))
        with pytest.raises(InterruptedError):
            wc.skce(y, pred, progress=Progress(stop, interval=-1.0))
    assert {what for what, _, _ in told} == {"tasks on partitions"}
    last = [done for _, done, total in told if done == total]
    assert max(last) > 21, "a task for each pair of partitions, and more"
    assert [done for _, done, _ in told[-int(last[-1]) - 1 :]] == list(range(int(last[-1]) + 1))


def test_threads_give_the_same_numbers() -> None:
    found = example("normal", 1500)
    alone = wc.skce(*partitioned(found, 400))
    with dask.config.set(scheduler="threads", num_workers=2):
        together = wc.skce(*partitioned(found, 400))
    assert (alone.value, alone.standard_error) == (together.value, together.standard_error)


def test_a_folder_of_files(tmp_path: Any) -> None:
    found = example("normal", 900)
    y, _, (mu, sigma) = found
    frame = pd.DataFrame({"y": y, "mu": mu, "sigma": sigma, "other": "text"})
    for name, rows in (("b", slice(500, 900)), ("a", slice(0, 500))):
        frame[rows].to_parquet(tmp_path / f"{name}.parquet", row_group_size=150)
    targets, pred = wellcal.dask.read_parquet(tmp_path, y="y", rows=300, normal=("mu", "sigma"))
    assert pred.sizes == (300, 200, 300, 100)
    assert_same(wc.skce(targets, pred), wc.skce(*in_memory(found), engine=EXACT))
    assert_same(wc.interval_coverage(targets, pred), wc.interval_coverage(*in_memory(found)))
    with pytest.raises(ValueError, match=r"a\.parquet: y: there is no column 'z'; .* 'y', 'mu'"):
        wellcal.dask.read_parquet(tmp_path, y="z", normal=("mu", "sigma"))
    with pytest.raises(ValueError, match=r"a\.parquet: .*sigmas"):
        wellcal.dask.read_parquet(tmp_path, y="y", normal=("mu", "sigmas"))
    empty = tmp_path.parent / "empty"
    empty.mkdir()
    with pytest.raises(FileNotFoundError, match=r"end in \.parquet"):
        wellcal.dask.read_parquet(empty, y="y", normal=("mu", "sigma"))
    (tmp_path / "c.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(ValueError, match=r"c\.parquet is not a Parquet file"):
        wellcal.dask.read_parquet(tmp_path, y="y", normal=("mu", "sigma"))


def test_files_come_in_the_order_of_their_numbers(tmp_path: Any) -> None:
    """As Dask writes and reads them: which cases come first decides on random numbers."""
    frame = pd.DataFrame({"y": np.arange(24.0), "mu": 0.0, "sigma": 1.0})
    dd.from_pandas(frame, npartitions=12).to_parquet(tmp_path)
    targets, _ = wellcal.dask.read_parquet(tmp_path, y="y", normal=("mu", "sigma"))
    found = np.concatenate([part.load() for part in targets.parts])
    assert found.tolist() == dd.read_parquet(tmp_path)["y"].compute().tolist() == frame["y"].tolist()
    pd.DataFrame({"y": [1.0, np.nan], "mu": 0.0, "sigma": 1.0}).to_parquet(tmp_path / "part.5.parquet")
    bad = wellcal.dask.read_parquet(tmp_path, y="y", normal=("mu", "sigma"))
    with pytest.raises(ValueError, match=r"partition 5 \(.*part\.5\.parquet\): .* missing .* 'y' .* row 1"):
        wc.mse(*bad)


def test_files_that_differ_are_read_as_one_table(tmp_path: Any) -> None:
    """Columns in another order, of another type, ordered, and without a value."""
    labels, _, (probs,) = example("categorical", 60)
    frame = pd.DataFrame(probs, columns=["p_c", "p_b", "p_d", "p_a"])
    frame["y"] = np.array(list("cbda"))[labels]
    pred = wc.as_predictions(frame, probs="p_*", grades=list("abcd"))
    frame["y"] = pd.Categorical(frame["y"], categories=list("abcd"), ordered=True)
    frame[:40].to_parquet(tmp_path / "1.parquet")
    frame.loc[40:, sorted(frame.columns)].to_parquet(tmp_path / "2.parquet")
    found = wellcal.dask.read_parquet(tmp_path, y="y", probs="p_*")
    for measure in (wc.crps, wc.skce, partial(wc.ece, reduce="classwise")):
        assert_same(measure(*found), measure(frame["y"], pred))
    frame.loc[50, "y"] = None
    frame[40:].to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet\): values are missing in 1 of 20 rows: 'y'"):
        wc.brier(*wellcal.dask.read_parquet(tmp_path, y="y", probs="p_*"))
    frame.rename(columns={"p_a": "p_e"}).to_parquet(tmp_path / "2.parquet")
    with pytest.raises(ValueError, match=r"2\.parquet and .*1\.parquet differ .* has 'p_a', 'p_e'"):
        wellcal.dask.read_parquet(tmp_path, y="y", probs="p_*")


@pytest.mark.parametrize("y", ["y", ["y1", "y2"], "y1:y2"])
def test_vectors_of_files(tmp_path: Any, y: Any) -> None:
    given, _, (loc, scale) = found = example("vectors", 60)
    names = {"y2": given[:, 1], "m1": loc[:, 0], "m2": loc[:, 1], "s1": scale[:, 0], "s2": scale[:, 1]}
    pd.DataFrame({**names, "y1": given[:, 0], "y": list(given)}).to_parquet(tmp_path / "a.parquet")
    read = wellcal.dask.read_parquet(tmp_path, y=y, rows=25, diagonal_normal=("m*", "s*"))
    assert_same(wc.nll(*read), wc.nll(*in_memory(found)))


def test_files_are_read_by_each_task_and_not_kept(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    y, _, (mu, sigma) = example("normal", 80)
    pd.DataFrame({"y": y, "mu": mu, "sigma": sigma}).to_parquet(tmp_path / "a.parquet", row_group_size=20)
    targets, pred = wellcal.dask.read_parquet(tmp_path, y="y", rows=20, normal=("mu", "sigma"))
    alive: list[int] = []
    most: list[int] = []
    load = RowGroups.load

    def counted(self: Any) -> Any:
        found = load(self)
        if isinstance(found, np.ndarray):
            alive.append(1)
            most.append(len(alive))
            weakref.finalize(found, alive.pop)
        return found

    monkeypatch.setattr(RowGroups, "load", counted)
    wc.skce(targets, pred, kernel=wc.default_kernel(wc.Normal(mu, sigma)))
    assert len(most) == 4 + 2 * 6, "one for each partition, two for each pair"
    assert max(most) <= 4, "targets of a pair, and those of the pair before that are not yet collected"


def test_a_sample_does_not_depend_on_partitions() -> None:
    found = example("normal", 600)
    samples = [wellcal.dask.sample_cases(*partitioned(found, size), 50, rng=3) for size in (600, 170)]
    (y, pred), (again, also) = samples
    np.testing.assert_array_equal(y, again)
    np.testing.assert_array_equal(pred.loc, also.loc)
    rows = np.searchsorted(np.sort(found[0]), y)
    assert len(set(rows.tolist())) == 50
    np.testing.assert_array_equal(found[2][0][np.argsort(found[0])[rows]], pred.loc)


# -- what is refused -----------------------------------------------------------------------------

Y, _, (MU, SIGMA) = example("normal", 60)
IN_PARTS, PRED = partitioned(example("normal", 60), 25)
LABELS = cut((Y > 0).astype(int), 25)
COLUMN = dd.from_pandas(pd.DataFrame({"mu": MU}), npartitions=3)["mu"]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: wc.Normal(cut(MU, 20), 1.0), TypeError, r"loc is in partitions.*from_arrays"),
        (lambda: wc.skce(IN_PARTS, wc.Normal(MU, SIGMA)), TypeError, "pred is in memory and y is in part"),
        (
            lambda: wc.nll(IN_PARTS, (MU, SIGMA)),
            TypeError,
            "Dask's, found .*; give arrays in memory to",
        ),
        (
            lambda: wc.nll(IN_PARTS, (COLUMN, COLUMN)),
            TypeError,
            "an object of type Series, .* names, wc",
        ),
        (lambda: wc.skce(Y, PRED), TypeError, "y is in memory, and other arguments are in partitions"),
        (lambda: wc.skce(PRED, IN_PARTS), TypeError, "did you swap y and pred"),
        (lambda: wc.report(IN_PARTS, PRED), TypeError, r"needs cases in memory.*sample_cases"),
        (lambda: wc.compare(IN_PARTS, PRED, PRED), TypeError, "needs cases in memory"),
        (lambda: wc.ucme(IN_PARTS, PRED, locations=3), TypeError, "needs cases in memory"),
        (lambda: wc.pit(IN_PARTS, PRED), TypeError, "needs cases in memory"),
        (lambda: wc.RunningMeasures().update(IN_PARTS, PRED), TypeError, "needs cases in memory"),
        (lambda: wc.nll(IN_PARTS, (cut(MU, 20), -1.0)), ValueError, r"partition \d: scale must not be neg"),
        (lambda: wc.nll(cut(Y[:50], 25), PRED), ValueError, "same length, found 50 and 60"),
        (
            lambda: wc.skce(IN_PARTS, PRED, weights=IN_PARTS),
            ValueError,
            r"partition \d: weights must not",
        ),
        (lambda: wc.skce(IN_PARTS, PRED, engine="linear"), ValueError, "engine is not supported"),
        (lambda: wc.skce(IN_PARTS, PRED, precision="mixed"), ValueError, "precision"),
        (lambda: wc.skce(IN_PARTS, PRED, estimator="block", rng=0), ValueError, "shuffle the rows"),
        (lambda: wc.skce(IN_PARTS, PRED, blocksize=4), TypeError, "blocksize"),
        (lambda: wc.ece(LABELS, cut(SIGMA / 3, 25), binning="equal_mass"), ValueError, "binning is not supp"),
        (lambda: wc.crps(IN_PARTS, PRED, fair=True), ValueError, "fair is not supported"),
        (
            lambda: wc.calibration_test(IN_PARTS, PRED, groups=Y),
            TypeError,
            "groups must be an array of Dask's",
        ),
        (lambda: wc.as_predictions(PRED, normal=("a", "b")), TypeError, "roles are for data frames"),
        (lambda: wc.as_predictions(IN_PARTS, normal=("a", "b")), TypeError, "roles are for data frames"),
        (lambda: wellcal.dask.sample_cases(IN_PARTS, PRED, 0), ValueError, "count"),
    ],
)
def test_refused_with_a_remedy(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_counts_have_no_bins_in_partitions() -> None:
    with pytest.raises(TypeError, match=r"equal mass.*not supported for cases in partitions"):
        wc.ece(*partitioned(example("poisson", 60), 25))


def test_unknown_sizes_must_be_as_many() -> None:
    frame = pd.DataFrame({"y": Y, "mu": MU, "sigma": SIGMA})
    parts = dd.from_pandas(frame, npartitions=3)
    with pytest.raises(ValueError, match="y is in 2 partitions and pred in 3"):
        wc.nll(dd.from_pandas(frame, npartitions=2)["y"], wc.as_predictions(parts, normal=("mu", "sigma")))
