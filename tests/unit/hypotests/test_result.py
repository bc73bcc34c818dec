"""The result of a test: for people, for notebooks, for JSON."""

from __future__ import annotations

import html
import json
from dataclasses import FrozenInstanceError, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal.hypotests import METHODS, Block, Exact, TestResult
from wellcal.hypotests.parts.scalars import CONTINUOUS, COUNTS
from wellcal.kernels import Callable, ExpDistance, Gaussian, Wasserstein
from wellcal.measures.estimate import Estimate

RNG = np.random.default_rng(12)
N = 24
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
Y = RNG.normal(MU, SIGMA)
PRED = wc.Normal(MU, SIGMA)
DRAWN = (
    "exact",
    "cme",
    "bootstrap",
    "multiplier",
    "spectrum",
    "aggregated",
    "regularised",
    "omnibus",
    "consistency",
)


def run(method: Any = "auto", y: Any = Y, pred: Any = PRED, **options: Any) -> TestResult:
    return wc.calibration_test(y, pred, method=method, **{"rng": 5, "n_resamples": 99, **options})


def same(a: TestResult, b: TestResult) -> None:
    for name in ("statistic", "pvalue", "method", "statistic_label", "effect_size", "n_samples"):
        assert getattr(a, name) == getattr(b, name), name
    assert (a.null is None) == (b.null is None)
    if a.null is not None:
        np.testing.assert_array_equal(a.null, b.null)
    assert float(a.estimate) == float(b.estimate)
    assert a.estimate.standard_error == b.estimate.standard_error
    assert a.estimate.estimator == b.estimate.estimator
    assert a.guarantees == b.guarantees


# -- what it holds ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_all_of_it_is_there(method: str) -> None:
    found = run(method)
    assert isinstance(found, TestResult)
    assert 0.0 < found.pvalue <= 1.0
    assert np.isfinite(found.statistic)
    assert isinstance(found.estimate, Estimate)
    assert found.n_samples == N
    assert found.method == ("omnibus" if method == "auto" else method)
    assert found.kernel == wc.default_kernel(PRED)
    assert found.guarantees is not None
    assert found.guarantees.positive_definite
    assert found.null is None


@pytest.mark.parametrize("method", METHODS)
def test_effect_size_is_the_ratio_of_skce_to_its_diagonal(method: str) -> None:
    """Beside methods over blocks it is their estimate that is put into proportion."""
    found = run(method)
    biased, unbiased = (float(wc.skce(Y, PRED, estimator=name)) for name in ("biased", "unbiased"))
    diagonal = N * biased - (N - 1) * unbiased
    value = float(found.estimate) if method in ("block", "distribution_free") else unbiased
    assert found.effect_size == pytest.approx(value / diagonal, rel=1e-9)


def test_effect_size_has_no_scale() -> None:
    kernel = wc.default_kernel(PRED)
    expected = pytest.approx(run("pearson").effect_size, rel=1e-9)
    assert run("pearson", kernel=7.0 * kernel).effect_size == expected
    in_mm = run("pearson", 1000.0 * Y + 5.0, wc.Normal(1000.0 * MU + 5.0, 1000.0 * SIGMA))
    assert in_mm.effect_size == expected


def test_effect_size_is_not_known_for_single_draws() -> None:
    found = run("exact", pred=wc.Samples(MU[:, None]))
    assert found.effect_size is None
    assert "not known" in repr(found)
    assert TestResult.from_json(found.to_json()).effect_size is None


@pytest.mark.parametrize("method", METHODS)
def test_draws_are_kept_on_request(method: str) -> None:
    found = run(method, keep_null=True)
    if method in DRAWN:
        assert found.null.shape == (99,)
        assert np.isfinite(found.null).all()
    else:
        assert found.null is None


SHARES = [
    "exact",
    "bootstrap",
    "multiplier",
    "spectrum",
    "consistency",
    "aggregated",
    "regularised",
    "omnibus",
]


@pytest.mark.parametrize("method", SHARES)
def test_pvalue_is_the_share_of_draws(method: str) -> None:
    found = run(method, keep_null=True)
    assert found.pvalue == (1 + np.count_nonzero(found.null >= found.statistic)) / 100


def test_weights_are_as_documented() -> None:
    weights = run("auto").provenance["weights"]
    assert weights == CONTINUOUS
    page = (Path(__file__).parents[3] / "docs" / "research" / "omnibus.md").read_text(encoding="utf-8")
    for name, weight in CONTINUOUS.items():
        assert f"\n| {name} | {weight:g} | {COUNTS[name]:g} |" in page
    assert set(run("aggregated").provenance["weights"].values()) == {1.0}


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_same_seed_same_pvalue_and_none_is_zero(method: str) -> None:
    y = Y + 40.0
    first, second = run(method, y), run(method, y)
    same(first, second)
    assert 0.0 < first.pvalue < (1.0 if method == "distribution_free" else 0.3)
    assert run(method, y, rng=np.random.default_rng(5)).pvalue == first.pvalue


def test_it_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        run().pvalue = 0.0  # type: ignore[misc]


# -- for machines -----------------------------------------------------------------------------------


def decay(a: Any, b: Any) -> Any:
    return np.exp(-((np.asarray(a)[:, None] - np.asarray(b)[None, :]) ** 2))


KERNELS = {
    "default": None,
    "function": ExpDistance(Wasserstein()) @ Callable(decay, vectorized=True),
    "sum": 0.5 * (ExpDistance(Wasserstein()) @ Gaussian()) + ExpDistance(Wasserstein(), 2.0) @ Gaussian(0.3),
}


@pytest.mark.parametrize(
    ("method", "kernel"),
    [(method, "default") for method in ("auto", *METHODS, Block(4, variance="pairs"), Exact(stop_after=3))]
    + [(method, kernel) for method in ("pearson", "exact", "block") for kernel in ("function", "sum")],
    ids=str,
)
def test_json_and_back(method: Any, kernel: str) -> None:
    small = slice(0, 12)
    options = {"kernel": KERNELS[kernel], "keep_null": True, "expectations": wc.Lowering(nodes=48)}
    options |= {"locations": 4} if method == "cme" else {}
    found = run(method, Y[small], PRED[small], **options)
    text = found.to_json(allow_nan=False)
    back = TestResult.from_json(text)
    same(found, back)
    assert back.kernel == (None if kernel == "function" else found.kernel)
    assert json.loads(text)["kernel_text"] == repr(found.kernel)
    assert json.loads(back.to_json())["provenance"] == json.loads(text)["provenance"]
    if kernel != "function":
        assert repr(back) == repr(found)
        assert back.to_dict() == found.to_dict()


def test_json_of_statistics_that_are_infinite() -> None:
    found = run(Exact(statistic=lambda y, pred: float("inf")), keep_null=True)
    text = found.to_json(allow_nan=False)
    same(found, TestResult.from_json(text))
    assert TestResult.from_json(text).statistic == np.inf


def test_options_of_json_pass_through() -> None:
    assert run().to_json(indent=2).startswith('{\n  "method"')


def test_arrays_and_values_of_other_kinds_become_plain() -> None:
    odd = {
        "array": np.arange(2),
        "number": np.float32(0.5),
        "inf": np.inf,
        "kernel": Gaussian(),
        "pair": (1, "a"),
        "thing": object,
        3: None,
    }
    plain = replace(run("pearson"), provenance=odd).to_dict()["provenance"]
    assert plain["array"] == [0, 1]
    assert plain["number"] == 0.5
    assert plain["inf"] == "inf"
    assert plain["kernel"] == repr(Gaussian())
    assert plain["pair"] == [1, "a"]
    assert plain["3"] is None
    json.dumps(plain, allow_nan=False)


# -- for people -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_repr_tells_all_that_matters(method: str) -> None:
    found = run(method)
    text = repr(found)
    lines = {line[2:].split("  ")[0]: line for line in text.splitlines()[1:]}
    head = text.splitlines()[0]
    assert head.startswith("No miscalibration found (p = " if found.pvalue > 0.05 else "Miscalibrated (p = ")
    assert lines["cases"].endswith(f"  {N}")
    assert lines["method"].endswith(f"  {found.method}")
    assert f"{found.pvalue:.3g}" in head or f"{found.pvalue:.1e}" in head
    assert f"{found.effect_size:.3g}" in lines["effect size"]
    assert f"{float(found.estimate):.4g}" in lines["estimate"]
    assert found.estimate.estimator in lines["estimate"]
    assert f"{found.statistic_label} = {found.statistic:.4g}" in lines["statistic"]
    assert repr(found.kernel) in lines["kernel"]
    assert "positive definite: yes" in lines["proven"]
    assert "given the prediction" in lines["tested"]
    if method in DRAWN:
        assert "99" in lines["resamples"]
    if method == "auto":
        assert "within" in lines["chosen"]
        assert "pearson" in lines["alternatives"]
        assert all(name in lines["parts"] for name in ("SKCE", "locations", "distribution", "spread"))
    assert "nan" not in text
    assert "object at 0x" not in text


def test_repr_tells_what_was_lowered_and_dropped() -> None:
    pred = wc.StudentT(np.full(N, 5.0), MU, SIGMA)
    assert "lowered" in repr(run("pearson", pred=pred, expectations=wc.Lowering(nodes=16)))
    assert "(incomplete block)" in repr(run(Block(5)))


def test_small_pvalues_are_not_printed_as_zero() -> None:
    y = np.repeat(Y, 20) + 3.0
    found = run("pearson", y, wc.Normal(np.repeat(MU, 20), np.repeat(SIGMA, 20)))
    assert found.pvalue < 1e-12
    assert f"p = {found.pvalue:.1e}" in repr(found)


def test_html_is_escaped_and_says_the_same() -> None:
    def less_than(y: Any, pred: Any) -> float:
        return float(np.mean(y < pred.loc))

    less_than.__name__ = "<script>alert('x') & more</script>"
    found = run(Exact(statistic=less_than))
    assert less_than.__name__ in repr(found)
    page = found._repr_html_()
    assert "<script>" not in page
    assert html.escape(less_than.__name__) in page
    assert page.count("<tr>") == page.count("</tr>") == len(repr(found).splitlines()) - 1
    assert page.startswith("<table>")
    assert page.endswith("</table>")
    for line in repr(found).splitlines()[1:]:
        assert html.escape(line[2:].split("  ", 1)[1].strip()) in page


def test_repr_without_kernel_or_guarantees() -> None:
    bare = replace(run("pearson"), kernel=None, guarantees=None)
    assert "kernel" not in {line[2:].split()[0] for line in repr(bare).splitlines()[1:]}
    same(bare, TestResult.from_json(bare.to_json()))
