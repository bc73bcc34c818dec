"""A part of the fuzz: ``make fuzz`` tries more."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import torch
from fuzz.catalogue import CATALOGUE, OTHERS
from fuzz.judge import judged
from fuzz.run import inputs, make_input

import wellcal as wc

COUNT, PARTS = 500, 10


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize("part", range(PARTS))
def test_every_ending_is_a_result_or_an_error_that_helps(part: int) -> None:
    size = COUNT // PARTS
    faults = [(item.line(), found) for item in inputs(size, start=part * size) if (found := item.run()).fault]
    assert not faults, "\n".join(f"{line}\n    {found.fault}\n    {found.text}" for line, found in faults)


def test_inputs_follow_from_their_number() -> None:
    assert [make_input(k).line() for k in range(20)] == [make_input(k).line() for k in range(20)]
    assert make_input(3, seed=1).line() != make_input(3).line()


def test_all_of_the_interface_is_tried() -> None:
    """A public name is in the catalogue, or in the list of those that are not, with the reason."""
    tried = {subject.name.split("(")[0].split(" ")[0] for subject in CATALOGUE}
    tried |= {subject.call.__name__ for subject in CATALOGUE}
    left_out = {name for names in OTHERS.values() for name in names.split()}
    modules = ("kernels", "engines", "hypotests", "recalibration", "displays", "conformance", "torch")
    public: set[str] = set()
    for module in (wc, *(importlib.import_module(f"wellcal.{name}") for name in modules)):
        public |= {name for name in module.__all__ if callable(getattr(module, name))}
    assert public - tried - left_out == {"paper_kernel"} & public
    assert left_out <= public


# -- the judge ----------------------------------------------------------------------------------------


def _raise(error: Exception) -> Any:
    raise error


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: wc.skce(np.zeros(3), wc.Normal(np.zeros(3), 1.0)), ""),
        (lambda: wc.skce(np.zeros(2), wc.Normal(np.zeros(3), 1.0)), ""),
        (lambda: np.zeros(3)[5], "IndexError is neither"),
        (lambda: _raise(KeyError("y")), "KeyError is neither"),
        (lambda: np.linalg.cholesky(-np.eye(2)), "the message is not our own"),
        (lambda: _raise(ValueError("y is wrong")), "the message is not our own"),
        (lambda: wc.Normal(np.zeros(3), -1.0), "the message names no argument"),
        (lambda: _raise(MemoryError()), "MemoryError is neither"),
    ],
)
def test_the_judge_can_find_fault(call: Any, fault: str) -> None:
    found = judged(call, ("y", "pred"))
    assert found.fault.startswith(fault)
    assert bool(found.fault) == bool(fault)


def test_the_judge_stops_what_takes_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.judge.LONGEST", 0.05)

    def never() -> None:
        while True:
            pass

    assert "took more than" in judged(never, ()).fault


# -- what was found once --------------------------------------------------------------------------------


def test_memory_is_asked_for_before_it_is_taken() -> None:
    y, pred = np.zeros(10), wc.Normal(np.zeros(10), 1.0)
    with pytest.raises(ValueError, match="locations = 1000000000 would need arrays of 74 GiB"):
        wc.ucme(y, pred, locations=10**9)
    with pytest.raises(ValueError, match="locations = 1000000000 would need"):
        wc.calibration_test(y, pred, method="cme", locations=10**9)
    with pytest.raises(ValueError, match="locations = 1000000000 would need"):
        wc.witness(y, pred, 10**9)
    with pytest.raises(ValueError, match="draws = 10000000 would need arrays of 74 GiB"):
        wc.Monitor(draws=10**7)
    with pytest.raises(ValueError, match="draws must be a whole number"):
        wc.Monitor(draws=float("inf"))  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="size = 1000000000 would need"):
        pred.sample(0, 10**9)
    with pytest.raises(ValueError, match="n_resamples must be a whole number between 1 and"):
        wc.calibration_test(y, pred, n_resamples=10**12)


@pytest.mark.parametrize(
    "rng", [-1, 2.5, "seed", True, np.zeros(3), np.asmatrix([1.0]), [], [1, -1], object()]
)
def test_what_is_no_seed(rng: Any) -> None:
    with pytest.raises(TypeError, match="rng must be a seed"):
        wc.pit(np.zeros(3), wc.Poisson(np.ones(3)), rng=rng)


def test_options_that_are_none_of_ours() -> None:
    y, pred = np.zeros(10), wc.Normal(np.zeros(10), 1.0)
    with pytest.raises(TypeError, match="engine must be a name"):
        wc.skce(y, pred, engine=None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="n_resamples must be a whole number between 1"):
        wc.compare(y, pred, pred, n_resamples=0)
    with pytest.raises(TypeError, match="kernels must be a tuple of at least one kernel"):
        wc.kernels.Sum(())


class Forecast:
    """Distributions as NGBoost hands them out: everything else is asked of one of scipy.stats."""

    def __init__(self, dist: Any) -> None:
        self.dist = dist

    def __getattr__(self, name: str) -> Any:
        return getattr(self.dist, name)


def test_distributions_that_hold_another() -> None:
    from scipy import stats

    found = wc.as_predictions(Forecast(stats.norm(np.arange(3.0), 2.0)))
    assert isinstance(found, wc.Normal)
    np.testing.assert_array_equal(found.scale, [2.0, 2.0, 2.0])
    with pytest.raises(TypeError, match=r"predictions of the scipy\.stats distribution Forecast"):
        wc.as_predictions(Forecast(type("Odd", (), {"rvs": None})()))


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_half_precision(name: str) -> None:
    """Arithmetic is in double precision, so that values are those of the rounded inputs."""
    rng = np.random.default_rng(0)
    mu, sigma, y = rng.normal(size=20), rng.uniform(0.5, 2.0, 20), rng.normal(size=20)
    half = [torch.tensor(x).to(getattr(torch, name)) for x in (y, mu, sigma)]
    wide = [x.double() for x in half]
    found = wc.skce(half[0], wc.Normal(half[1], half[2]))
    expected = wc.skce(wide[0], wc.Normal(wide[1], wide[2]), kernel=found.kernel)
    assert float(found) == pytest.approx(float(expected), rel=1e-9)
    if name == "float16":
        plain = [x.numpy() for x in half]
        assert float(wc.skce(plain[0], wc.Normal(plain[1], plain[2]), kernel=found.kernel)) == pytest.approx(
            float(expected), rel=1e-9
        )
