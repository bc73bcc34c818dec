"""Which engine runs a problem, and engines of a user's own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wellcal as wc
from wellcal._arrays.chunks import limited
from wellcal.engines import Engine, Support, Tiled, choose_engine, register_engine
from wellcal.engines.choose import forget_engine
from wellcal.engines.reductions import Sums
from wellcal.kernels import Callable, ExpDistance, Gaussian, Wasserstein
from wellcal.problem.problem import Problem, prepare

RNG = np.random.default_rng(20)
N = 23
MU = RNG.normal(size=N)
Y = RNG.normal(MU, 1.0)
PRED = wc.Normal(MU, RNG.uniform(0.5, 1.5, N))


@dataclass(frozen=True)
class Plain(Engine):
    """Needs nothing but the triangle, and serves an even number of cases only."""

    calls: list[str]
    name: ClassVar[str] = "plain"

    def supports(self, problem: Problem) -> Support:
        return Support(problem.n % 2 == 0, "the number of cases is odd")

    def triangle(self, problem: Problem) -> Sums:
        self.calls.append("triangle")
        h = np.triu(problem.values(slice(None), slice(None)), 1)
        rows = h.sum(axis=0) + h.sum(axis=1)
        return Sums(0.5 * rows.sum(), rows)


@pytest.fixture
def registered() -> Iterator[Plain]:
    engine = register_engine(Plain([]), priority=1.0)
    yield engine
    forget_engine("plain")


def problem(n: int = N) -> Problem:
    return prepare(Y[:n], PRED[:n])


def test_auto_takes_what_supports_the_problem(registered: Plain) -> None:
    assert choose_engine("auto", problem(22)) is registered
    assert isinstance(choose_engine("auto", problem(23)), Tiled)


def test_an_engine_that_cannot_says_why(registered: Plain) -> None:
    with pytest.raises(
        ValueError, match=r"'plain' cannot run this problem: the number of cases is odd.*auto"
    ):
        wc.skce(Y, PRED, engine="plain")
    with pytest.raises(ValueError, match="the number of cases is odd"):
        wc.calibration_test(Y, PRED, engine=registered, method="pearson")


def test_unknown_engines() -> None:
    with pytest.raises(
        ValueError,
        match=r"unknown engine 'tilde'; known are auto, tiled, linear; did you mean 'tiled'",
    ):
        wc.skce(Y, PRED, engine="tilde")
    for wrong in (3, Tiled, None):
        with pytest.raises(TypeError, match="engine must be a name, or an engine such as Tiled"):
            wc.skce(Y, PRED, engine=wrong)  # type: ignore[arg-type]


def test_names_are_taken_once(registered: Plain) -> None:
    with pytest.raises(ValueError, match="an engine 'plain' already"):
        register_engine(Plain([]))
    assert register_engine(Plain(["again"]), replace=True) is choose_engine("plain")
    with pytest.raises(ValueError, match="an engine 'tiled' already"):
        register_engine(Tiled(threads=1))


def test_a_negative_priority_is_for_those_who_ask() -> None:
    register_engine(Plain([]), priority=-1.0)
    try:
        assert isinstance(choose_engine("auto", problem(22)), Tiled)
        assert choose_engine("plain", problem(22)).name == "plain"
    finally:
        forget_engine("plain")


@pytest.mark.parametrize("estimator", ["unbiased", "biased", "block"])
def test_what_an_engine_does_not_say_is_done_for_it(estimator: str) -> None:
    engine = Plain([])
    y, pred = Y[:22], PRED[:22]
    own, usual = (wc.skce(y, pred, estimator=estimator, engine=e) for e in (engine, "tiled"))
    assert_allclose(float(own), float(usual), rtol=1e-13)
    assert own.provenance["engine"] == "plain"
    assert engine.calls


@pytest.mark.parametrize("method", ["multiplier", "pearson", "block", "cme", "exact", "regularised"])
def test_tests_run_on_an_engine_of_ones_own(method: str) -> None:
    y, pred = Y[:22], PRED[:22]
    options: dict[str, Any] = {"method": method, "rng": 1, "n_resamples": 99}
    own, usual = (wc.calibration_test(y, pred, engine=e, **options) for e in (Plain([]), "auto"))
    assert own.pvalue == pytest.approx(usual.pvalue, rel=1e-12)


class Counting(Tiled):
    """Says which rectangles it was asked for."""

    seen: ClassVar[list[tuple[int, int]]] = []

    def rectangle(self, form: Any, ops: Any, a: Any, b: Any) -> Any:
        found = super().rectangle(form, ops, a, b)
        self.seen.append(tuple(found.shape))
        return found


def test_pairs_with_locations_are_the_engines_to_visit() -> None:
    """The calibration mean embedding, its test, and the witness at locations."""
    runs = {
        "ucme": lambda e: wc.ucme(Y, PRED, locations=5, rng=0, engine=e),
        "cme": lambda e: wc.calibration_test(Y, PRED, method="cme", locations=5, rng=0, engine=e),
        "witness": lambda e: wc.witness(Y, PRED, locations=5, rng=0, n_resamples=19, engine=e),
    }
    for name, run in runs.items():
        Counting.seen.clear()
        run(Counting())
        assert (N, 5) in Counting.seen, name


def test_rectangles_do_not_depend_on_chunks_and_threads() -> None:
    kernel = ExpDistance(Wasserstein()) @ Gaussian()
    whole = wc.ucme(Y, PRED, locations=7, rng=0, kernel=kernel)
    for threads in (1, 3):
        with limited(work=11, cache=11):
            part = wc.ucme(Y, PRED, locations=7, rng=0, kernel=kernel, engine=Tiled(threads=threads))
        assert_allclose(float(part), float(whole), rtol=1e-13)


def test_a_users_function_is_not_called_by_several_threads() -> None:
    active = []

    def likeness(a: Any, b: Any) -> Any:
        assert not active, "called while it was running"
        active.append(1)
        value = np.exp(-np.abs(a[:, None] - b[None, :]))
        active.pop()
        return value

    kernel = ExpDistance(Wasserstein()) @ Callable(likeness, vectorized=True)
    with limited(work=11, cache=11):
        found = wc.ucme(Y, PRED, locations=7, rng=0, kernel=kernel, engine=Tiled(threads=4))
    assert_allclose(float(found), float(wc.ucme(Y, PRED, locations=7, rng=0, kernel=kernel)), rtol=1e-12)


def test_the_monitor_asks_its_engine() -> None:
    Counting.seen.clear()
    monitor = wc.Monitor(warmup=5, draws=9, rng=0, engine=Counting())
    monitor.update(Y[:-1], PRED[:-1])
    assert Counting.seen, "in batches"
    Counting.seen.clear()
    monitor.update(Y[-1:], PRED[-1:])
    assert Counting.seen == [(N - 1, 1), (N - 1, 10)], "past cases, and a target and nine draws"
    usual = wc.Monitor(warmup=5, draws=9, rng=0)
    usual.update(Y, PRED)
    assert monitor.log_e_value == pytest.approx(usual.log_e_value, rel=1e-12)


class Refusing(Tiled):
    """Supports nothing."""

    def supports(self, problem: Problem) -> Support:
        assert problem.n == N
        assert isinstance(problem.arrays[0], np.ndarray)
        return Support(False, "it never does")


def test_engines_are_asked_before_cases_meet_locations() -> None:
    engine = Refusing()
    assert engine.name == "refusing"
    with pytest.raises(ValueError, match="it never does"):
        wc.ucme(Y, PRED, locations=3, engine=engine)
    with pytest.raises(ValueError, match="it never does"):
        wc.witness(Y, PRED, locations=3, engine=engine)
    monitor = wc.Monitor(wc.default_kernel(PRED), engine=engine)
    with pytest.raises(ValueError, match="it never does"):
        monitor.update(Y, PRED)
    register_engine(engine, priority=5.0)
    try:
        assert wc.ucme(Y, PRED, locations=3, rng=0).value >= 0.0
        assert wc.local_discrepancy(Y, PRED).values.shape == (N,)
    finally:
        forget_engine("refusing")


def test_no_predictions_are_an_error() -> None:
    with pytest.raises(ValueError, match="empty: at least one"):
        wc.skce(np.zeros(0), PRED[:0])
