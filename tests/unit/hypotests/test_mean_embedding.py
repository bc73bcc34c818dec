"""The calibration mean embedding test: options, refusals, what it reports."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests.hotellings_statistic import hotelling
from wellcal.hypotests.methods import Exact, MeanEmbedding
from wellcal.hypotests.setup import make_setup

RNG = np.random.default_rng(0)


def setup(n: int = 60, rng: int = 1, shift: float = 0.0, **options: Any) -> Any:
    generator = np.random.default_rng(1000 + rng)
    mu = generator.normal(size=n)
    return make_setup(mu + shift + generator.normal(size=n), wc.Normal(mu, 1.0), rng=rng, **options)


def asymptotic(locations: Any = None) -> MeanEmbedding:
    return MeanEmbedding(locations, reference="F")


@pytest.mark.filterwarnings("ignore:reference=")
@pytest.mark.parametrize(("reference", "told"), [("auto", "exact"), ("exact", "exact"), ("F", "F(10, 50)")])
def test_ten_locations_are_drawn_by_default(reference: str, told: str) -> None:
    found = MeanEmbedding(reference=reference).run(setup())
    assert found.provenance["locations"] == 10
    assert found.provenance["drawn"]
    assert found.provenance["reference"] == told
    assert found.label == "Q"
    assert 0.0 < found.pvalue <= 1.0


@pytest.mark.filterwarnings("ignore:reference=")
@pytest.mark.parametrize("method", [MeanEmbedding(), asymptotic()], ids=repr)
def test_same_seed_same_p_value(method: MeanEmbedding) -> None:
    a, b, c = (method.run(setup(60, 1)).pvalue for _ in range(3))
    assert a == b == c
    again = setup(60, 1)
    other = method.run(make_setup(again.targets, again.predictions, rng=5)).pvalue
    assert other != a


def test_a_shift_is_found() -> None:
    assert asymptotic(5).run(setup(200, shift=0.7)).pvalue < 1e-6
    assert asymptotic(5).run(setup(200)).pvalue > 0.01
    assert MeanEmbedding(5).run(setup(200, shift=0.7)).pvalue == 0.001
    assert MeanEmbedding(5).run(setup(200)).pvalue > 0.01


def test_p_values_are_never_zero() -> None:
    # All targets far out on one side: the deviations are alike up to what the predictions differ in.
    found = MeanEmbedding(3, reference="chi2").run(setup(4000, shift=3.0))
    assert found.pvalue >= np.finfo(float).tiny
    assert found.pvalue < 1e-200


@pytest.mark.parametrize("n", [4, 10])
def test_as_many_locations_as_cases_have_no_limit(n: int) -> None:
    with pytest.raises(ValueError, match=rf"{n} cases and 10 locations.*reference=\"exact\""):
        asymptotic().run(setup(n))
    assert 0.0 < MeanEmbedding().run(setup(n)).pvalue <= 1.0


def test_the_exact_test_of_few_cases_finds_a_shift() -> None:
    assert MeanEmbedding().run(setup(4, shift=4.0)).pvalue < 0.01


def test_unknown_reference() -> None:
    with pytest.raises(ValueError, match="unknown reference 'normal'; known are auto, exact, F, chi2"):
        MeanEmbedding(reference="normal")
    assert MeanEmbedding(reference="f") == MeanEmbedding(reference="F")


def test_it_is_that_of_the_exact_test() -> None:
    case = setup(40, shift=0.3)
    found = MeanEmbedding(6).run(case)
    again = Exact(statistic="cme", locations=6).run(setup(40, shift=0.3))
    assert found.pvalue == again.pvalue
    assert found.statistic == again.statistic


class Unsampled(wc.Normal):
    """A family of a user's that draws nothing."""

    def supports(self, what: str) -> bool:
        return what != "sample" and super().supports(what)


@pytest.mark.filterwarnings("ignore:reference=")
def test_without_draws_there_is_the_limit() -> None:
    mu = RNG.normal(size=40)
    y, pred = mu + RNG.normal(size=40), Unsampled(mu, np.ones(40))
    result = wc.calibration_test(y, pred, method="cme", locations=3, rng=0)
    assert result.provenance["reference"] == "F(3, 37)"
    assert "Unsampled cannot be sampled" in result.provenance["why not exact"]
    assert result.pvalue_floor is None
    with pytest.raises(TypeError, match="Unsampled cannot be sampled"):
        wc.calibration_test(y, pred, method=MeanEmbedding(3, reference="exact"), rng=0)


def test_deviations_that_do_not_vary_are_refused() -> None:
    pred = wc.Bernoulli(np.full(20, 0.5))
    with pytest.raises(ValueError, match=r"the same for all cases.*reference=\"exact\""):
        asymptotic(2).run(make_setup(np.ones(20, dtype=int), pred, rng=0))
    assert MeanEmbedding(2).run(make_setup(np.ones(20, dtype=int), pred, rng=0)).pvalue == 0.001


def test_a_certain_deviation_beside_a_varying_one_is_refused() -> None:
    D = np.stack([RNG.normal(size=30), np.full(30, 0.2)], axis=1)
    found = hotelling(D.mean(axis=0)[None], np.cov(D, rowvar=False)[None], 30)
    assert found.certain[0]
    assert found.rank[0] == 1
    D[:, 1] = 0.0
    assert not hotelling(D.mean(axis=0)[None], np.cov(D, rowvar=False)[None], 30).certain[0]


def test_one_case_more_than_locations() -> None:
    with pytest.warns(UserWarning, match="make up each direction"):
        assert 0.0 < asymptotic(7).run(setup(8)).pvalue <= 1.0


def test_cases_that_are_alike_because_nothing_unlikely_was_seen_are_warned_of() -> None:
    probs = np.where(np.arange(30) % 2, 0.001, 0.999) + 1e-4 * np.linspace(-1.0, 1.0, 30)
    pred = wc.Bernoulli(probs)
    with pytest.warns(UserWarning, match="the p-value may be far too small"):
        wc.calibration_test(probs > 0.5, pred, method=MeanEmbedding(1, reference="F"), rng=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mu = np.linspace(-1.0, 1.0, 100)
        y = np.random.default_rng(0).normal(mu)
        wc.calibration_test(y, wc.Normal(mu, 1.0), method=MeanEmbedding(1, reference="F"), rng=0)


# -- no error of linear algebra -----------------------------------------------------------------------------


def batches() -> dict[str, tuple[Any, Any]]:
    rng = np.random.default_rng(3)
    n = 30
    mu = rng.normal(size=n)
    few = rng.dirichlet(np.full(100, 0.3), n)
    sure = np.where(rng.random(n) < 0.5, 1e-9, 1.0 - 1e-9)
    return {
        "sure": ((sure > 0.5).astype(int), wc.Bernoulli(sure)),
        "sure and wrong": ((sure < 0.5).astype(int), wc.Bernoulli(sure)),
        "certain": (np.zeros(n, dtype=int), wc.Bernoulli(np.zeros(n))),
        "certain and wrong": (np.ones(n, dtype=int), wc.Bernoulli(np.zeros(n))),
        "100 classes": (few.argmax(axis=1), wc.Categorical(few)),
        "constant targets": (np.zeros(n), wc.Normal(mu, np.ones(n))),
        "constant": (np.zeros(n), wc.Normal(np.zeros(n), np.ones(n))),
        "copies": (np.repeat(mu[:3], 10), wc.Normal(np.repeat(mu[3:6], 10), np.ones(n))),
        "two cases": (mu[:2], wc.Normal(mu[2:4], np.ones(2))),
        "tiny": (1e-150 * mu, wc.Normal(1e-150 * mu[::-1], np.full(n, 1e-150))),
        "huge": (1e150 * mu, wc.Normal(1e150 * mu[::-1], np.full(n, 1e150))),
        "far": (1e6 + mu, wc.Normal(mu, np.full(n, 1e-6))),
        "rare counts": (np.zeros(n, dtype=int), wc.Poisson(np.full(n, 1e-8))),
        "draws that are all alike": (mu, wc.Samples(np.zeros((n, 4)))),
    }


@pytest.mark.parametrize("name", batches())
def test_degenerate_cases_have_a_p_value(name: str) -> None:
    result = wc.calibration_test(*batches()[name], method="cme", rng=0, n_resamples=99)
    assert 0.0 < result.pvalue <= 1.0
    if "wrong" in name or name in ("constant", "constant targets", "far"):
        assert result.pvalue <= 0.02
    if name in ("certain", "sure", "rare counts"):
        assert result.pvalue >= 0.5


@pytest.mark.filterwarnings("ignore:reference=")
@pytest.mark.parametrize("name", batches())
@pytest.mark.parametrize("reference", ["F", "chi2"])
def test_degenerate_cases_have_a_limit_or_a_reason(name: str, reference: str) -> None:
    y, pred = batches()[name]
    method = MeanEmbedding(reference=reference)
    refused = None
    try:
        assert 0.0 < wc.calibration_test(y, pred, method=method, rng=0).pvalue <= 1.0
    except ValueError as error:
        refused = error
    assert not isinstance(refused, np.linalg.LinAlgError)
    assert refused is None or 'reference="exact"' in str(refused)


def test_kernels_that_return_nan_are_named() -> None:
    def broken(p: Any, y: Any, q: Any, z: Any) -> Any:
        return np.full((len(y), len(z)), np.nan)

    pred = wc.Normal(np.zeros(8), np.ones(8))
    for reference in ("auto", "chi2"):
        with pytest.raises(ValueError, match="deviations at the locations are not finite"):
            MeanEmbedding(2, reference).run(
                make_setup(np.zeros(8), pred, wc.kernels.Joint(broken), rng=0, n_resamples=19)
            )
