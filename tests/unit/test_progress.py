"""Long runs say how far they are, whoever started them, and can be broken off."""

from __future__ import annotations

import io
import threading
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from rich.console import Console

import wellcal as wc
from wellcal._arrays.chunks import Span, limited, triangle_tiles
from wellcal._arrays.progress import Progress, following, reporter
from wellcal.cli.bars import Bar
from wellcal.engines import Tiled
from wellcal.engines.pair_blocks import Piece
from wellcal.expectations.features import FeatureGrid, step_of
from wellcal.expectations.grids import grid_probabilities

RNG = np.random.default_rng(3)
MU = RNG.normal(size=300)
Y, PRED = RNG.normal(MU), wc.Normal(MU, np.ones(300))


class Recorder:
    """Notes all steps that it is told of."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, float, float]] = []

    def __call__(self, what: str, done: float, total: float) -> None:
        self.steps.append((what, done, total))


def impatient(told: Any) -> Progress:
    return Progress(told, interval=-1.0)


@pytest.mark.parametrize(("size", "height", "width"), [(37, 8, 5), (40, 64, 64), (17, 3, 40)])
def test_pieces_know_their_pairs(size: int, height: int, width: int) -> None:
    for blocks in (Span(0, 1), Span(2, 6)):
        spans = triangle_tiles(0, size, height, width)
        pairs = sum(Piece(blocks, size, rows, columns).pairs for rows, columns in spans)
        assert pairs == (blocks.stop - blocks.start) * size * (size - 1) // 2


@pytest.mark.parametrize("options", [{}, {"estimator": "block", "block_size": 30}, {"estimator": "biased"}])
def test_estimates_tell_how_far_they_are(options: dict[str, Any]) -> None:
    told = Recorder()
    with limited(cache=2000):
        wc.skce(Y, PRED, engine=Tiled(threads=2), progress=impatient(told), **options)
    assert {what for what, _, _ in told.steps} == {"pairs of cases"}
    done = [done for _, done, _ in told.steps]
    assert done == sorted(done)
    assert len(done) > 5
    assert done[-1] == told.steps[-1][2]


def test_steps_within_steps_are_silent() -> None:
    told = Recorder()
    with following(impatient(told)) as line:
        line("resamples", 0, 2)
        reporter()("pairs of cases", 1, 3)
        line("resamples", 2, 2)
        reporter()("pairs of cases", 3, 3)
    assert told.steps == [("resamples", 0, 2), ("resamples", 2, 2), ("pairs of cases", 3, 3)]


def test_whoever_is_told_first_hears_of_all() -> None:
    told = Recorder()
    with following(impatient(told)), limited(cache=2000):
        wc.skce(Y, PRED)
        assert told.steps
        before = len(told.steps)
        wc.skce(Y, PRED, progress=False)
        assert len(told.steps) == before
    wc.skce(Y, PRED, engine=Tiled(tile=(64, 64)))
    assert len(told.steps) == before


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_that_is_broken_off_leaves_nothing_behind(threads: int, error: type[BaseException]) -> None:
    engine = Tiled(tile=(16, 16), threads=threads)
    before = threading.active_count()

    def stop(what: str, done: float, total: float) -> None:
        if done > total / 3:
            raise error

    with pytest.raises(error):
        wc.skce(Y, PRED, engine=engine, progress=impatient(stop))
    assert threading.active_count() == before
    with pytest.raises(error):
        wc.calibration_test(Y, PRED, method="exact", n_resamples=99, engine=engine, progress=impatient(stop))
    assert threading.active_count() == before
    told = Recorder()
    again = wc.skce(Y, PRED, engine=engine, progress=impatient(told))
    assert told.steps
    assert again.value == wc.skce(Y, PRED, engine=engine).value


def test_a_line_that_was_broken_off_is_taken_away(capsys: pytest.CaptureFixture[str]) -> None:
    line = Progress(True, patience=-1.0, interval=-1.0)

    def broken_off() -> None:
        with following(line):
            line("pairs of cases", 1, 4)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken_off()
    written = capsys.readouterr().err
    assert "25%" in written
    assert written.endswith("\r")


def test_several_short_loops_are_one_long_run() -> None:
    """Each of them takes a second and a half, and the second one is beyond what people wait for."""
    now, stream = [0.0], io.StringIO()
    line = Progress(True, stream, clock=lambda: now[0])
    with following(line):
        for what in ("first", "second"):
            for done in range(16):
                line(what, done, 16)
                now[0] += 0.1
            line(what, 16, 16)
    assert "first" not in stream.getvalue()
    assert "second:  50%, 1 s left" in stream.getvalue()
    shown = len(stream.getvalue())
    with following(line):  # the next run begins anew
        line("third", 1, 4)
        now[0] += 0.3
        line("third", 2, 4)
    assert "third" not in stream.getvalue()[shown:]


def test_loops_of_a_measure_are_one_run() -> None:
    shared: list[bool] = []

    def listening(P: Any, Q: Any) -> np.ndarray:
        shared.append(reporter() is reporter())
        return np.ones((len(P), len(Q)))

    pred, kernel = wc.Normal(np.zeros(100), 1.0), wc.kernels.Callable(listening) @ wc.kernels.Gaussian()
    wc.ucme(np.zeros(100), pred, locations=(pred[:2], np.zeros(2)), kernel=kernel)
    assert shared
    assert all(shared)


def test_many_numbers_come_in_parts() -> None:
    values, told = np.linspace(0.1, 0.9, 60).reshape(3, 20), Recorder()
    family = wc.Gamma(np.linspace(1.0, 3.0, 20), 1.0)
    whole = family.quantile(values)
    with limited(work=100), following(impatient(told)):
        assert np.array_equal(family.quantile(values), whole)
    assert [done for _, done, _ in told.steps] == [0, 3, 6, 9, 12, 15, 18, 20]


@cache
def reported() -> wc.Report:
    with following(Progress(False)):
        return wc.report(Y[:100] + 0.5, PRED[:100], n_resamples=99, rng=0)


SHAPE = np.full(300, 2.0)
SURE = np.linspace(0.1, 0.9, 3000)
EVENTS = np.random.default_rng(4).random(3000) < SURE**2
LONG = {
    "energy score of draws": lambda: wc.energy_score(Y[:, None], wc.Samples(RNG.normal(size=(300, 9, 1)))),
    "energy score of normals": lambda: wc.energy_score(Y[:, None], wc.DiagonalNormal(MU[:, None], 1.0)),
    "CRPS of mixtures": lambda: wc.crps(
        np.abs(Y), wc.Mixture([wc.Gamma(SHAPE, SHAPE), wc.Gamma(SHAPE + 1.0, SHAPE)])
    ),
    "interval coverage": lambda: wc.interval_coverage(np.abs(Y), wc.Gamma(SHAPE, SHAPE)),
    "likelihood": lambda: wc.nll(np.ones(4000), wc.Poisson(np.full(4000, 2.0))),
    "pinball loss": lambda: wc.pinball_loss(np.abs(Y), wc.Gamma(SHAPE, SHAPE)),
    "pinball loss of ensembles": lambda: wc.pinball_loss(Y, wc.Samples(RNG.normal(size=(300, 9)))),
    "quantiles of mixtures": lambda: wc.Mixture([PRED, wc.Normal(MU, SHAPE)]).quantile(
        np.full((40, 300), 0.3)
    ),
    "temperatures of classes": lambda: wc.TemperatureScaling().fit(EVENTS, SURE),
    "sums on a line": lambda: wc.skce(EVENTS, SURE),
    "confidence": lambda: wc.mmce(EVENTS, SURE),
    "kernel at locations": lambda: wc.ucme(Y, PRED, locations=(PRED[:30], Y[:30])),
    "features of ensembles": lambda: wc.skce(
        Y, wc.Samples(RNG.normal(size=(300, 9)), kind="atoms"), engine=Tiled(threads=1)
    ),
    "ECE of counts": lambda: wc.ece(np.arange(300) % 7, wc.NegativeBinomial(0.01 * np.arange(1, 301), SHAPE)),
    "pairing": lambda: wc.pairing(wc.kernels.Gaussian(), PRED, PRED),
    "findings": lambda: wc.calibration_test(Y + 1.0, PRED, rng=0, n_resamples=99).findings,
    "CRPS by numbers": lambda: wc.crps(Y, wc.StudentT(4.0, MU, SHAPE)),
    "pictures": lambda: reported().to_html(),
}


@pytest.mark.parametrize("name", LONG)
def test_loops_that_nobody_asked_to_tell_do_so(name: str) -> None:
    told = Recorder()

    def stop(what: str, done: float, total: float) -> None:
        told(what, done, total)
        if 0 < done < total:
            raise InterruptedError

    with limited(cache=4000, work=4000), following(impatient(stop)), pytest.raises(InterruptedError):
        LONG[name]()
    with limited(cache=4000, work=4000), following(impatient(told)):
        LONG[name]()
    what = "kinds of error" if name == "findings" else told.steps[0][0]
    steps = [(done, total) for each, done, total in told.steps if each == what]
    assert len(steps) > 4
    assert steps[-1][0] == steps[-1][1]


TELLING: dict[str, Any] = {
    "test with a tolerance": lambda progress: wc.equivalence_test(Y, PRED, tolerance=0.1, progress=progress),
    "data sets": lambda progress: wc.plan(
        PRED, against=0.5, method="cme", n_resamples=99, data_sets=20, progress=progress
    ),
    "predictions": lambda progress: wc.local_discrepancy(Y, PRED, progress=progress),
    "cases": lambda progress: wc.Monitor(rng=0).update(Y, PRED, progress=progress),
    "temperatures": lambda progress: wc.TemperatureScaling().fit(Y, PRED, progress=progress),
    "recalibration": lambda progress: wc.recalibration.cross_fit(
        Y, PRED, rng=0, n_resamples=99, objective="skce", progress=progress
    ),
}


@pytest.mark.parametrize("what", TELLING)
def test_whoever_is_asked_to_tell_does_so_and_can_be_broken_off(what: str) -> None:
    """Steps of the whole run, one after the other: what is left can be told from them."""
    told = Recorder()

    def stop(*step: Any) -> None:
        told(*step)
        if step[1] > 0.3 * step[2]:
            raise InterruptedError

    with limited(cache=20_000, work=20_000):
        with pytest.raises(InterruptedError):
            TELLING[what](impatient(stop))
        told.steps.clear()
        TELLING[what](impatient(told))
    steps = [(done, total) for name, done, total in told.steps if name == what]
    assert len(set(steps)) > 4
    assert steps[-1][0] == steps[-1][1]


def test_a_monitor_that_is_broken_off_stands_where_it_stood() -> None:
    monitor = wc.Monitor(rng=0)
    monitor.update(Y[:50], PRED[:50])
    before = monitor.status.log_e_value

    def stop(what: str, done: float, total: float) -> None:
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        monitor.update(Y, PRED, progress=impatient(stop))
    assert (monitor.n_samples, monitor.status.log_e_value) == (50, before)


def test_loops_within_a_step_move_it_on() -> None:
    told = Recorder()
    line = impatient(told)
    line("resamples", 0, 200, until=100)
    for inner in ("first", "second"):
        for done in range(2):
            line(inner, done, 2)
            line("of these", 1, 1)  # a loop within the loop
        line(inner, 2, 2)
    line("resamples", 100, 200)
    line("first", 1, 2)  # nobody knows how far this step goes
    line("resamples", 200, 200)
    assert {(what, total) for what, _, total in told.steps} == {("resamples", 200)}
    done = [done for _, done, _ in told.steps]
    assert done == sorted(done)
    assert set(done) == {0, 25.0, 50.0, 62.5, 75.0, 100, 200}


@pytest.mark.parametrize("method", ["exact", "aggregated"])
def test_a_hundred_sets_of_targets_are_no_single_step(method: str) -> None:
    """All pairs are visited for them, which takes seconds for some thousand cases."""
    told = Recorder()
    sure = np.linspace(0.1, 0.9, 1000)
    pred = wc.Categorical(np.stack([sure, 1.0 - sure], axis=1))
    options: Any = {"method": method, "n_resamples": 99, "rng": 0}
    wc.calibration_test(pred.sample(rng=1), pred, **options, progress=impatient(told))
    done = [done for what, done, _ in told.steps if what == "resamples"]
    assert done == sorted(done)
    assert len({step for step in done if 0 < step < 99}) > 2


def test_steps_within_the_last_step_are_not_all_of_it() -> None:
    told = Recorder()
    line = impatient(told)
    line("resamples", 0, 1, until=1)
    for _ in range(200):
        line("pairs", 1, 1)
    assert max(done for _, done, _ in told.steps) < 1.0
    line("resamples", 1, 1)
    assert told.steps[-1] == ("resamples", 1, 1)


def test_what_is_no_progress_is_refused() -> None:
    for call in (wc.skce, wc.calibration_test, wc.local_discrepancy, wc.Monitor().update):
        with pytest.raises(TypeError, match="progress must be True, False, None or a function"):
            call(Y, PRED, progress="yes")
        with pytest.raises(TypeError, match="progress must be True, False, None or a function"):
            call(Y, PRED, progress=float)


def test_the_bar_of_commands() -> None:
    """After two seconds, with what is left, and gone at the end or where the run is broken off."""
    now = [0.0]
    console = Console(file=io.StringIO(), force_terminal=True, width=100)
    bar = Bar(console, clock=lambda: now[0])
    line = impatient(bar)
    with following(line):
        line("pairs of cases", 0, 100)
        line("pairs of cases", 10, 100)
        assert console.file.getvalue() == ""
        now[0] = 10.0
        line("pairs of cases", 20, 100)
        shown = console.file.getvalue()
        assert "20%" in shown
        assert "40 s left" in shown
    assert "\x1b[2K" in console.file.getvalue().removeprefix(shown), "the line is taken away"


def _whole_run(steps: list[tuple[str, float, float]], what: str) -> None:
    assert {name for name, _, _ in steps} == {what}
    done = [done for _, done, _ in steps]
    assert done == sorted(done)
    assert len(set(done)) > 6
    assert done[0] == 0.0
    assert done[-1] == steps[-1][2]
    assert max(done[:-1]) < steps[-1][2]


def test_a_comparison_is_one_run() -> None:
    told = Recorder()
    wc.compare(Y, {"a": PRED, "b": wc.Normal(MU + 0.5, np.ones(300))}, rng=0, progress=impatient(told))
    _whole_run(told.steps, "comparison")


def test_a_report_is_one_run() -> None:
    told = Recorder()
    n = 100
    models = {"a": PRED[:n], "b": wc.Normal(MU[:n] + 0.5, np.ones(n))}
    half = np.where(np.arange(n) < n // 2, "early", "late")
    wc.report(Y[:n], models, segments={"half": half}, recalibrate=True, rng=0, progress=impatient(told))
    _whole_run(told.steps, "report")


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("when", [0.1, 0.6])
def test_whoever_listens_ends_a_report(error: type[BaseException], when: float) -> None:
    """Also by an error of the kind that a report forgives its parts."""

    def stop(what: str, done: float, total: float) -> None:
        if done > when * total:
            raise error("enough")

    off = wc.Normal(MU + 0.5, np.ones(300))
    with pytest.raises(error, match="enough"):
        wc.report(Y, off, rng=0, recalibrate=True, progress=impatient(stop))


def test_tensors_tell_how_far_they_are_forward_and_backward() -> None:
    told = Recorder()
    loc = torch.tensor(MU, requires_grad=True)
    pred = wc.Normal(loc, torch.ones(300, dtype=torch.float64))
    kernel = wc.default_kernel(PRED)
    with following(impatient(told)):
        found = wc.skce(torch.as_tensor(Y), pred, kernel=kernel, engine=Tiled(tile=(64, 64)))
        assert told.steps[-1] == ("pairs of cases", 300 * 299 // 2, 300 * 299 // 2)
        before = len(told.steps)
        assert before > 5
        found.value.backward()
        assert len(told.steps) == 2 * before

    def enough(what: str, done: float, total: float) -> None:
        if done > 0:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        wc.skce(
            torch.as_tensor(Y), pred, kernel=kernel, engine=Tiled(tile=(64, 64)), progress=impatient(enough)
        )


def test_arrays_of_jax_tell_how_far_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    y, pred = jnp.asarray(Y), wc.Normal(jnp.asarray(MU), jnp.ones(300))
    kernel = wc.default_kernel(PRED)
    programs: Any = {"kernel": kernel, "engine": Tiled(threads=1)}  # few pairs need none
    whole = wc.skce(y, pred, **programs).value
    monkeypatch.setattr("wellcal.engines.jax_loop.UNTOLD", 10_000)
    told = Recorder()
    found = wc.skce(y, pred, **programs, progress=impatient(told)).value
    assert float(found) == float(whole)
    done = [done for _, done, _ in told.steps]
    assert done == sorted(done)
    assert len(done) > 5
    assert done[-1] == told.steps[-1][2]


def test_sums_without_the_square_tell_how_far_they_are() -> None:
    told = Recorder()
    rng = np.random.default_rng(5)
    loc = rng.normal(size=3000)
    y, pred = rng.normal(loc), wc.Normal(loc, np.exp(0.2 * rng.normal(size=3000)))
    wc.skce(y, pred, engine="linear", progress=impatient(told))
    kinds = list(dict.fromkeys(what for what, _, _ in told.steps))
    assert kinds[-2:] == ["features in sums", "control rows"]
    for kind in kinds:
        steps = [(done, total) for what, done, total in told.steps if what == kind]
        assert steps[-1][0] == steps[-1][1]


def test_what_is_prepared_tells_how_far_it_is() -> None:
    """Also where sums take no time: kernels, lowering and features are most of such a run."""

    def fresh() -> Any:  # nothing is known of it yet
        pred = wc.Gamma(1.0 + np.random.default_rng(6).random(2000), np.ones(2000))
        return pred.sample(rng=1), pred

    told = Recorder()
    wc.skce(*fresh(), progress=impatient(told))
    assert told.steps[0][0] == "cases"  # that the kernel is chosen for; features and pairs come later

    def stop(what: str, done: float, total: float) -> None:
        raise KeyboardInterrupt(what)

    with pytest.raises(KeyboardInterrupt) as ended:
        wc.kce(*fresh(), progress=impatient(stop))
    assert str(ended.value) == "cases"


def test_features_of_atoms_and_probabilities_of_counts_tell_how_far_they_are() -> None:
    """These are all that takes long where predictions are many: each of them alone."""
    kinds: list[str] = []
    with following(impatient(lambda what, *_: kinds.append(what))):
        points, line = np.linspace(0.0, 1.0, 400).reshape(4, 50, 2), np.arange(200.0) * step_of(1.0)
        for d in (1, 2):
            FeatureGrid(1.0, (line, line[80:90])[:d], (0.0,) * d).of_points(points[..., :d], None)
            assert kinds == ["features of cases"] * 2 * d
        grid_probabilities(wc.Poisson(np.ones(10)), np.arange(9.0))
        assert kinds[4:] == ["cases"] * 2
