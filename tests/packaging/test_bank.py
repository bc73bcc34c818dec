"""The bank of errors: what it stores, what its tables say, and rivals beside SciPy's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special, stats

import wellcal as wc
from benchmarks.bank import levels, record, run, store, table
from benchmarks.bank.alternatives import ALTERNATIVES, of_half
from benchmarks.bank.errors import CHOOSE, CONFIRM
from benchmarks.bank.paired import Loss
from benchmarks.bank.rivals import RIVALS, intercept_and_slope
from benchmarks.bank.seen import Seen
from benchmarks.bank.settings import FULL

SMALL = replace(FULL, sets=((100, 5),), resamples=19, null_sets=39)
NAMES = ["shift", "ensemble bias", "binary over-confidence"]


def test_the_bank_has_both_halves() -> None:
    assert len(ALTERNATIVES) >= 30
    chosen, confirmed = ({error.family for error in of_half(half)} for half in (CHOOSE, CONFIRM))
    assert min(len(of_half(CHOOSE)), len(of_half(CONFIRM))) >= 24
    assert {"normals", "Poisson", "binary", "ten classes", "pairs", "quantiles"} <= chosen & confirmed
    assert len({store.slug(name) for name in (*ALTERNATIVES, *record.names_of_nulls())}) == len(
        (*ALTERNATIVES, *record.names_of_nulls())
    )


@pytest.mark.parametrize("name", ALTERNATIVES)
def test_errors_have_data_and_rivals(name: str) -> None:
    error = ALTERNATIVES[name]
    assert set(error.sizes) == {n for n, _ in FULL.sets}
    assert error.sizes[1000] < error.sizes[100]
    for size in (0.0, None):
        y, pred = error.draw(100, np.random.default_rng(1), size)
        assert len(pred) == len(pred.check_targets(y)) == 100
        seen = Seen(y, pred, np.random.default_rng(2))
        assert all(np.isfinite(RIVALS[rival].statistic(seen)) for rival in error.rivals)


# -- rivals ----------------------------------------------------------------------------------


def seen(name: str) -> Seen:
    return Seen(*ALTERNATIVES[name].draw(100, np.random.default_rng(3)), np.random.default_rng(4))


def test_rivals_are_what_scipy_has() -> None:
    found = seen("shift")
    assert RIVALS["KS"].statistic(found) == pytest.approx(stats.kstest(found.u, "uniform").statistic)
    fit = stats.goodness_of_fit(stats.norm, found.z, known_params={"loc": 0, "scale": 1}, statistic="ad",
                                n_mc_samples=1)  # fmt: skip
    assert RIVALS["AD"].statistic(found) == pytest.approx(fit.statistic)
    z = found.z
    ratio = 2.0 * np.sum(stats.norm.logpdf(z, np.mean(z), np.std(z)) - stats.norm.logpdf(z))
    assert RIVALS["Berkowitz"].statistic(found) == pytest.approx(ratio)
    both = seen("correlation ignored")
    r = stats.pearsonr(*both.scores.T).statistic
    assert RIVALS["correlation"].statistic(both) == pytest.approx(abs(np.arctanh(r)) * np.sqrt(97.0))


def test_intercept_and_slope_are_at_their_maximum() -> None:
    y, p = seen("binary over-confidence").binary

    def minus(b: Any) -> float:
        eta = b[0] + b[1] * special.logit(p)
        return -float(np.sum(y * eta - np.logaddexp(0.0, eta)))

    best = optimize.minimize(minus, [0.0, 1.0]).fun
    assert intercept_and_slope(y, p) == pytest.approx(2.0 * (minus([0.0, 1.0]) - best), abs=1e-6)


class Ends:
    """A generator whose uniform numbers are all at one end."""

    def __init__(self, end: float) -> None:
        self.end = end

    def uniform(self, size: int) -> Any:
        return np.full(size, self.end)


def test_the_transform_of_a_discrete_target_covers_its_step() -> None:
    below, above = np.array([0.0, 0.25]), np.array([0.25, 0.5])
    cases = {
        "draws": (np.array([-5.0, 2.5]), wc.Samples(np.array([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]))),
        "quantiles": (
            np.array([-5.0, 2.5]),
            wc.Quantiles([0.25, 0.5, 0.75], np.array([[1.0, 2.0, 3.0]] * 2) + 1),
        ),
    }
    for y, pred in cases.values():
        for end, expected in ((0.0, below), (1.0, above)):
            found = special.ndtr(Seen(y, pred, Ends(end)).scores)  # type: ignore[arg-type]
            assert found == pytest.approx(expected, abs=1e-12)
    counts = wc.Poisson(np.array([1.0, 3.0]))
    for end, less in ((0.0, 1.0), (1.0, 0.0)):
        found = special.ndtr(Seen([0.0, 2.0], counts, Ends(end)).scores)  # type: ignore[arg-type]
        assert found == pytest.approx(stats.poisson.cdf([0.0 - less, 2.0 - less], [1.0, 3.0]), abs=1e-12)


def test_pvalues_are_ranks_among_the_null() -> None:
    null = np.arange(9.0)[:, None]
    assert levels.pvalues(np.array([[9.0], [8.0], [-1.0]]), null)[:, 0] == pytest.approx([0.1, 0.2, 1.0])


# -- runs ------------------------------------------------------------------------------------


def parts(y: Any, pred: Any, n_resamples: int, rng: np.random.Generator) -> dict[str, Any]:
    return {"one": np.arange(n_resamples + 1.0), "other": rng.normal(size=n_resamples + 1)}


def test_a_run_is_stored_resumed_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [*NAMES, "null: normals"]
    address = f"{__name__}:parts"
    record.resolve.cache_clear()
    run.run(tmp_path, names, [100], None, SMALL, parts=address, workers=1)
    found = store.load(record.path_of(tmp_path, "shift", 100))
    assert found is not None
    assert found["pvalues"].shape == (5,)
    assert found["rival_pvalues"].shape == (5, len(ALTERNATIVES["shift"].rivals))
    assert found["part_pvalues"].shape == (5, len(found["part_names"]))
    assert found["part_pvalues"].size
    kept_names, kept = record.stored_parts(tmp_path, "shift", 100)
    assert kept_names == ["one", "other"]
    assert kept.shape == (5, 20, 2)
    assert kept.dtype == np.float32
    capsys.readouterr()
    run.run(tmp_path, names, [100], None, SMALL, parts=address, workers=1)
    assert capsys.readouterr().err.count("there") == len(names)
    run.run(tmp_path, ["shift"], [100], 3, replace(SMALL, resamples=39), workers=1)
    again = store.load(record.path_of(tmp_path, "shift", 100))
    assert again is not None
    assert again["rival_statistics"].tolist() == found["rival_statistics"][:3].tolist()
    told = table.section(tmp_path, "all", SMALL)
    assert all(
        name in told.body for name in (*NAMES, "calibrated predictions", "3 or 5 data sets at n = 100")
    )
    assert all("|" not in name for name in (*ALTERNATIVES, *RIVALS)), "they stand in tables"
    lacking = table.missing(tmp_path, "all", SMALL)
    assert "shift, n = 100: 3 of 5 data sets" in lacking
    assert "slope, n = 100: 0 of 5 data sets" in lacking
    assert not [line for line in lacking if line.startswith(NAMES[1])]


def test_losses_are_paired() -> None:
    ours = np.repeat([True, False, True], [50, 30, 20])
    rival = np.repeat([True, True, False], [50, 30, 20])
    loss = Loss.of(ours, rival)
    assert loss.value == pytest.approx(0.1)
    assert loss.standard_error == pytest.approx(np.sqrt(0.5 - 0.1**2) / 10.0)
    row = table.Row("shift", 100, np.zeros(400, bool), {"KS": np.arange(400) < 200}, {})
    assert len(row.failures(FULL)) == 1
    near = table.Row("shift", 100, np.arange(400) < 145, {"KS": np.arange(400) < 200}, {})
    assert not near.failures(FULL)
