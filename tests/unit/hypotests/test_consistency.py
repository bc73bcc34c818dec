"""Consistency resampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.methods.consistency import Consistency
from wellcal.hypotests.setup import make_setup
from wellcal.predictions import Predictions

RNG = np.random.default_rng(3)
N = 20
MU = RNG.normal(size=N)
Y = MU + RNG.normal(size=N)
PRED = wc.Normal(MU, 1.0)


def run(method: Consistency, y: Any = Y, pred: Any = PRED, **options: Any) -> Any:
    return method.run(make_setup(y, pred, **{"rng": 1, "n_resamples": 19, **options}))


def test_default_statistic_is_n_times_the_unbiased_skce() -> None:
    found = run(Consistency())
    assert found.statistic == pytest.approx(N * wc.skce(Y, PRED).value, rel=1e-10)
    assert found.label == "n SKCE_u"
    assert run(Consistency("skce")).pvalue == found.pvalue


def test_resamples_are_those_of_the_definition() -> None:
    """The same generator, by hand: predictions with replacement, targets from them, the observed kernel."""
    found = run(Consistency(), n_resamples=5)
    kernel, rng = wc.default_kernel(PRED), np.random.default_rng(1)
    for r in range(5):
        index = rng.integers(N, size=N)
        batch = wc.Normal(MU[index], 1.0)
        y = rng.normal(MU[index], 1.0, (1, N))[0]
        assert found.null[r] == pytest.approx(N * wc.skce(y, batch, kernel=kernel).value, rel=1e-9)


def test_p_value_counts_resamples() -> None:
    found = run(Consistency())
    assert found.pvalue == (1 + np.sum(found.null >= found.statistic)) / 20
    assert len(found.null) == 19


def test_a_shift_is_found() -> None:
    assert run(Consistency(), Y + 2.0, n_resamples=199).pvalue == 1.0 / 200.0


def test_any_statistic_in_the_users_form() -> None:
    seen: list[tuple[Any, Any]] = []

    def share_of_yes(y: Any, pred: Any) -> float:
        seen.append((y, pred))
        return abs(float(np.mean(y == "yes")) - float(np.mean(pred.probs[:, 1])))

    pred = wc.Categorical(np.full((N, 2), 0.5), classes=["no", "yes"])
    found = run(Consistency(share_of_yes), ["yes"] * N, pred, n_resamples=199)
    assert found.statistic == 0.5
    assert found.label == "share_of_yes"
    assert found.pvalue == 1.0 / 200.0
    assert all(set(y) <= {"no", "yes"} for y, _ in seen)
    assert all(isinstance(p, wc.Categorical) and len(p) == N for _, p in seen)


def test_statistic_of_a_measure() -> None:
    found = run(Consistency(lambda y, p: wc.kce(y, p)))
    assert found.statistic == pytest.approx(float(wc.kce(Y, PRED)))


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (float("nan"), ValueError, "nan for the observed data"),
        ("much", TypeError, "must return a number, found str for the observed data"),
        (np.zeros(2), TypeError, "must return a number, found ndarray"),
    ],
)
def test_bad_statistics(returned: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        run(Consistency(lambda y, p: returned))


def test_nan_in_a_resample_is_refused() -> None:
    calls = iter([0.0, 1.0, float("nan")])
    with pytest.raises(ValueError, match="nan for resample 2"):
        run(Consistency(lambda y, p: next(calls)))


def test_unknown_statistic() -> None:
    with pytest.raises(ValueError, match="unknown statistic 'cme'"):
        Consistency("cme")


@dataclass(frozen=True, repr=False, eq=False)
class Silent(Predictions):
    """A family that cannot be sampled."""

    loc: Any

    array_fields: ClassVar[tuple[str, ...]] = ("loc",)

    def quantile(self, u: Any) -> Any:
        return self.loc + np.asarray(u) - 0.5

    def cdf(self, y: Any) -> Any:
        return np.clip(np.asarray(y) - self.loc + 0.5, 0.0, 1.0)


def test_families_that_cannot_be_sampled_are_refused() -> None:
    with pytest.raises(TypeError, match=r'Silent cannot be sampled.*method="pearson"'):
        run(Consistency(), Y, Silent(MU))


@pytest.mark.parametrize(
    ("y", "pred"),
    [
        (RNG.integers(3, size=N), wc.Categorical(RNG.dirichlet(np.ones(3), N))),
        (RNG.poisson(2.0, N), wc.Poisson(np.full(N, 2.0))),
        (Y, wc.Samples(RNG.normal(size=(N, 5)))),
        (Y, wc.Mixture([PRED, wc.Laplace(MU, 1.0)])),
        (Y, wc.Quantiles([0.2, 0.5, 0.8], np.sort(RNG.normal(size=(N, 3)), axis=1))),
    ],
    ids=["classes", "counts", "draws", "mixture", "quantiles"],
)
def test_families(y: Any, pred: Any) -> None:
    found = run(Consistency(), y, pred, n_resamples=3)
    assert np.isfinite(found.null).all()
    assert 0.25 <= found.pvalue <= 1.0


def test_objects() -> None:
    words = np.array([["a", "b"]] * N, dtype=object)
    same = wc.kernels.Callable(lambda a, b: float(a == b))
    flat = wc.kernels.Callable(lambda P, Q: np.ones((len(P), len(Q))))
    found = run(Consistency(), ["a"] * N, wc.Samples(words, kind="atoms"), n_resamples=49, kernel=flat @ same)
    assert found.pvalue == 0.02
