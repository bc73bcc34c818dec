"""Methods of one's own: what the base class gives them, how they are found, and what is refused."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import wellcal as wc
from wellcal import hypotests
from wellcal.hypotests import METHODS, Block, Method, Outcome, Setup
from wellcal.kernels import Kernel, paper_kernel

RNG = np.random.default_rng(0)
N = 12
MU = RNG.normal(size=N)
Y = RNG.normal(MU)
PRED = wc.Normal(MU, np.ones(N))
SEEN: list[Setup] = []


def run(method: Any, y: Any = Y, pred: Any = PRED, **options: Any) -> Any:
    return wc.calibration_test(y, pred, method=method, **{"rng": 0, "n_resamples": 99, **options})


@dataclass(frozen=True)
class Bare(Method):
    """A method that takes all defaults and notes what it was given."""

    locations: object = None
    kernels: Sequence[Kernel] | None = None

    def run(self, setup: Setup) -> Outcome:
        SEEN.append(setup)
        return Outcome(1.0, 0.5, "one", provenance={"locations": self.locations, "kernels": self.kernels})


# -- by value and by name -------------------------------------------------------------------------


def test_any_subclass_is_accepted() -> None:
    found = run(Bare())
    assert (found.method, found.statistic, found.pvalue) == ("Bare", 1.0, 0.5)
    assert float(found.estimate) == float(wc.skce(Y, PRED))
    assert "Bare" in repr(found)


def test_a_class_without_a_name_is_not_known_by_one() -> None:
    assert Bare.name == "Bare"
    assert "Bare" not in METHODS
    with pytest.raises(ValueError, match="unknown method 'Bare'"):
        run("Bare")


def test_a_declared_name_is_enough() -> None:
    @dataclass(frozen=True)
    class Named(Method):
        pvalue: float = 0.25

        name: ClassVar[str] = "of one's own"

        def run(self, setup: Setup) -> Outcome:
            return Outcome(0.0, self.pvalue, "nothing")

    assert METHODS["of one's own"] is Named
    assert run("of one's own").pvalue == 0.25
    assert run(Named(0.75)).pvalue == 0.75
    assert run(Named()).method == "of one's own"


def test_a_class_derived_from_a_method_of_ours() -> None:
    @dataclass(frozen=True)
    class Pairs(Block):
        variance: str = "pairs"

    found = run(Pairs(), block_size=3)
    assert found.method == "Pairs"
    assert found.pvalue == run(Block(3, variance="pairs")).pvalue
    assert METHODS["block"] is Block


def test_the_example_is_neymans_test() -> None:
    path = Path(__file__).parents[3] / "examples" / "your_own_test.py"
    example = runpy.run_path(str(path))
    u = np.array([0.1, 0.35, 0.8])
    z = 2 * u - 1
    polynomials = [np.sqrt(3) * z, np.sqrt(5) * (3 * z**2 - 1) / 2, np.sqrt(7) * (5 * z**3 - 3 * z) / 2]
    expected = sum(p.sum() ** 2 / 3 for p in polynomials)
    pred = wc.Normal(np.zeros(3), np.ones(3))
    method = example["NeymanSmooth"](3)
    assert method.statistic(pred, pred.quantile(u[None]))[0] == pytest.approx(expected, rel=1e-12)
    found = run("neyman_smooth", keep_null=True)
    assert found.pvalue == (1 + np.count_nonzero(found.null >= found.statistic)) / 100
    assert run("neyman_smooth", Y + 3.0).pvalue == 0.01


# -- names that are taken -------------------------------------------------------------------------


@pytest.mark.parametrize("taken", ["block", "auto"])
def test_two_methods_of_one_name_are_an_error(taken: str) -> None:
    with pytest.raises(ValueError, match=f"a method '{taken}' exists already.*another name"):
        type("Impostor", (Bare,), {"name": taken})
    assert METHODS["block"] is Block
    assert "auto" not in METHODS


def test_a_class_may_be_defined_again() -> None:
    """As in a notebook, whose cells are run twice."""
    first, second = (type("Again", (Bare,), {"name": "again"}) for _ in range(2))
    assert first is not second
    assert METHODS["again"] is second


def test_methods_by_name_are_read_only() -> None:
    with pytest.raises(TypeError, match="does not support item assignment"):
        METHODS["mine"] = Bare  # type: ignore[index]


def test_every_method_of_ours_states_its_name() -> None:
    ours = {kind for kind in METHODS.values() if kind.__module__.startswith("wellcal.")}
    assert {getattr(hypotests, kind.__name__) for kind in ours} == ours
    assert all(METHODS[kind.name] is kind for kind in ours)


# -- what a class states about itself -------------------------------------------------------------


def test_defaults() -> None:
    assert (Bare.exchanges_draws, Bare.resamples, Bare.clusters, Bare.fewest) == (True, True, False, 2)
    pooled = wc.Samples(RNG.normal(size=(N, 3)))
    run(Bare(), pred=pooled)
    assert SEEN[-1].pooled == 3
    with pytest.raises(ValueError, match="method='Bare' needs at least 2 cases, found 1"):
        run(Bare(), Y[:1], PRED[:1])
    with pytest.raises(ValueError, match="method='Bare' takes cases as independent"):
        run(Bare(), groups=np.arange(N) // 2)
    with pytest.warns(UserWarning, match="n_resamples=9 no p-value is below"):
        run(Bare(), n_resamples=9)


def test_facts_of_ones_own(recwarn: pytest.WarningsRecorder) -> None:
    @dataclass(frozen=True)
    class Other(Bare):
        exchanges_draws: ClassVar[bool] = False
        resamples: ClassVar[bool] = False
        clusters: ClassVar[bool] = True
        fewest: ClassVar[int] = N

    run(Other(), n_resamples=1)
    run(Other(), pred=wc.Samples(RNG.normal(size=(N, 3))), groups=np.arange(N) // 2)
    assert not recwarn.list
    with pytest.raises(ValueError, match=f"needs at least {N} cases, found {N - 1}"):
        run(Other(), Y[1:], PRED[1:])
    assert SEEN[-1].pooled is None
    np.testing.assert_array_equal(SEEN[-1].groups, np.arange(N) // 2)


def test_options_reach_fields_of_the_same_name() -> None:
    assert run(Bare(), locations=5).provenance["locations"] == 5
    found = run(Bare(), kernel=[paper_kernel, 2.0 * paper_kernel])
    assert SEEN[-1].kernel == paper_kernel
    assert found.kernel == paper_kernel
    assert len(found.provenance["kernels"]) == 2
    with pytest.raises(ValueError, match="block_size has no meaning for method='Bare'"):
        run(Bare(), block_size=3)


def test_a_method_must_know_what_to_do() -> None:
    with pytest.raises(TypeError, match="abstract"):
        Method()  # type: ignore[abstract]


def test_classes_that_are_no_dataclasses_have_no_options() -> None:
    class Plain(Method):
        def __init__(self, pvalue: float) -> None:
            self.pvalue = pvalue

        def run(self, setup: Setup) -> Outcome:
            return Outcome(0.0, self.pvalue, "nothing")

    assert run(Plain(0.5)).pvalue == 0.5
    assert Plain(0.5) != Plain(0.5)
    with pytest.raises(ValueError, match="locations has no meaning for method='Plain'"):
        run(Plain(0.5), locations=3)
