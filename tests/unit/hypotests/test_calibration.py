"""`calibration_test`: arguments, what it refuses and with which remedy, and what it makes of odd data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal.engines import Tiled
from wellcal.hypotests import (
    METHODS,
    Aggregated,
    Block,
    Exact,
    MeanEmbedding,
    Multiplier,
    Omnibus,
    Pearson,
    Regularised,
)
from wellcal.hypotests.progress import Progress
from wellcal.kernels import (
    Callable,
    ExpDistance,
    Gaussian,
    Joint,
    Laplacian,
    MaximumMeanDiscrepancy,
    Wasserstein,
    paper_kernel,
)
from wellcal.predictions import Predictions

RNG = np.random.default_rng(11)
N = 20
MU, SIGMA = RNG.normal(size=N), RNG.uniform(0.5, 1.5, N)
Y = RNG.normal(MU, SIGMA)
PRED = wc.Normal(MU, SIGMA)
ALL = ["auto", *METHODS]
SAMPLING = ["exact", "aggregated", "regularised", "omnibus", "consistency"]
"""Methods that draw targets from the predictions."""


def run(y: Any = Y, pred: Any = PRED, **options: Any) -> Any:
    return wc.calibration_test(y, pred, **{"rng": 0, "n_resamples": 99, **options})


# -- methods and their options --------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_a_name_or_a_value(name: str) -> None:
    by_name, by_value = run(method=name), run(method=METHODS[name]())
    assert by_name.method == name
    assert by_name.pvalue == by_value.pvalue
    assert by_name.statistic == by_value.statistic


def test_an_unknown_method_is_told_the_known_ones() -> None:
    with pytest.raises(ValueError, match="unknown method 'wald'") as error:
        run(method="wald")
    for name in ALL:
        assert name in str(error.value)


@pytest.mark.parametrize("wrong", [3, None, Block, paper_kernel], ids=repr)
def test_what_is_no_method(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"a name or a method such as wellcal\.hypotests\.Block\(\)"):
        run(method=wrong)


OPTIONS = {"block_size": 2, "locations": 3, "statistic": "skce"}
TAKERS = {
    "block_size": ("block", "distribution_free", "exact"),
    "locations": ("cme", "exact", "omnibus", "regularised"),
    "statistic": ("bootstrap", "consistency", "exact"),
}


@pytest.mark.parametrize(
    ("option", "method"),
    [(o, m) for o in OPTIONS for m in METHODS if m not in TAKERS[o]],
)
def test_options_without_meaning_are_refused(option: str, method: str) -> None:
    with pytest.raises(ValueError, match=f"{option} has no meaning for method='{method}'") as error:
        run(method=method, **{option: OPTIONS[option]})
    assert str(error.value).endswith(", ".join(TAKERS[option]))


@pytest.mark.parametrize("option", ["block_size", "statistic"])
def test_auto_takes_no_option_of_one_method(option: str) -> None:
    with pytest.raises(ValueError, match=f"{option} has no meaning for method='auto'; methods") as error:
        run(**{option: OPTIONS[option]})
    assert str(error.value).endswith(", ".join(TAKERS[option]))


def test_auto_takes_locations() -> None:
    assert run(locations=5).pvalue == run(method=Omnibus(locations=5)).pvalue
    assert run(locations=5).provenance["pvalues"] != run().provenance["pvalues"]


def test_options_reach_their_method() -> None:
    assert run(method="block", block_size=4).provenance["block_size"] == 4
    assert run(method=Block(variance="pairs"), block_size=4).provenance["block_size"] == 4
    assert run(method="cme", locations=3).provenance["locations"] == 3
    assert run(method="regularised", locations=3).provenance["locations"] == 3
    assert run(method="exact", statistic="block", block_size=5).statistic_label == "n SKCE over blocks"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"block_size": 4}, 'block_size is for statistic="block"'),
        ({"locations": 4}, 'locations is for statistic="cme"'),
        ({"statistic": "cme", "block_size": 4}, 'block_size is for statistic="block"'),
        ({"statistic": "ece"}, "unknown statistic 'ece'; known are skce, block, cme and functions"),
    ],
    ids=str,
)
def test_exact_refuses_what_its_statistic_does_not_use(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(method="exact", **options)


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True])
def test_exact_stops_after_a_whole_number(wrong: Any) -> None:
    with pytest.raises(ValueError, match="stop_after must be a whole number of at least 1, found"):
        Exact(stop_after=wrong)


@pytest.mark.parametrize("locations", ["many", [1, 2], (PRED,), 0], ids=repr)
def test_locations_are_a_number_or_a_pair(locations: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="locations must be"):
        run(locations=locations)


def test_there_are_no_weights() -> None:
    """A calibrated model has no error under any weights: the page on tests says what to do instead."""
    with pytest.raises(TypeError, match="unexpected keyword argument 'weights'"):
        run(weights=np.ones(N))
    w = np.linspace(0.0, 1.0, N)
    weighted = run(method="exact", statistic=lambda y, pred: wc.skce(y, pred, weights=w))
    assert weighted.statistic == pytest.approx(float(wc.skce(Y, PRED, weights=w)), rel=1e-12)


# -- kernels --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", [m for m in ALL if m != "aggregated"])
def test_a_list_of_kernels_is_for_aggregated(method: str) -> None:
    with pytest.raises(ValueError, match=r"list of kernels .*, or their sum.*: aggregated"):
        run(kernel=[paper_kernel], method=method)


def test_aggregated_takes_the_kernels_of_a_list() -> None:
    other = ExpDistance(Wasserstein()) @ Laplacian(0.3)
    found = run(kernel=[paper_kernel, other], method="aggregated")
    assert list(found.provenance["pvalues"]) == [repr(paper_kernel), repr(other)]
    assert found.kernel == paper_kernel  # estimate and effect size are those of the first
    assert found.pvalue == run(kernel=paper_kernel, method=Aggregated([paper_kernel, other])).pvalue


def test_kernels_that_are_none() -> None:
    with pytest.raises(ValueError, match="kernel is an empty list: give at least one"):
        run(kernel=[], method="aggregated")
    with pytest.raises(ValueError, match="kernels is empty"):
        run(method=Aggregated([]))
    with pytest.raises(TypeError, match="write kernel_on_predictions @ kernel_on_targets"):
        run(kernel=Gaussian())
    with pytest.raises(TypeError, match="kernel must be a kernel such as"):
        run(kernel="gaussian")
    with pytest.raises(TypeError, match="3 cannot be used as a kernel on pairs"):
        run(kernel=[paper_kernel, 3], method="aggregated")


def product_of_gaussians(P: Any, y: Any, Q: Any, z: Any) -> Any:
    left = np.asarray(P.loc)[:, None] - np.asarray(Q.loc)[None, :]
    right = np.asarray(y)[:, None] - np.asarray(z)[None, :]
    return np.exp(-0.5 * left**2 - 0.5 * right**2)


@pytest.mark.parametrize("method", ["aggregated", "regularised"])
def test_kernels_that_do_not_separate_are_told_of_a_remedy(method: str) -> None:
    with pytest.raises(TypeError, match=r'does not separate.*or method="exact"'):
        run(kernel=Joint(product_of_gaussians), method=method)


@pytest.mark.parametrize("method", ["auto", "exact", "omnibus", "pearson", "consistency"])
def test_kernels_that_do_not_separate_are_served_otherwise(method: str) -> None:
    options = {"kernel": Joint(product_of_gaussians), "expectations": wc.Lowering(nodes=12)}
    assert 0.0 < run(method=method, **options).pvalue <= 1.0


# -- resamples ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [0, -3, 9.5, True, "99"])
def test_resamples_are_a_whole_number(wrong: Any) -> None:
    with pytest.raises(ValueError, match="n_resamples must be a whole number between 1 and 100000000, found"):
        run(n_resamples=wrong)


@pytest.mark.parametrize("count", [1, 18])
@pytest.mark.parametrize("method", ["exact", "bootstrap", "consistency", Omnibus(most_resamples=0)])
def test_too_few_resamples_for_the_level_are_told(count: int, method: Any) -> None:
    with pytest.warns(
        UserWarning, match=f"n_resamples={count} no p-value is below .*alpha = 0.05; take"
    ) as told:
        found = run(method=method, n_resamples=count)
    assert len([w for w in told if "no p-value is below" in str(w.message)]) == 1
    assert len(told) == 1 or isinstance(method, Omnibus)  # whose smallest p-value has a floor of its own
    assert {w.filename for w in told} == {__file__}  # the caller's line, not ours
    assert found.pvalue >= 1.0 / (count + 1.0)


@pytest.mark.parametrize("count", [19, 57])
@pytest.mark.parametrize("method", ["auto", "exact", "bootstrap", "consistency"])
def test_resamples_that_reach_the_level_of_the_verdict_are_silent(count: int, method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(method=method, n_resamples=count)


@pytest.mark.parametrize("count", [1, 18])
def test_a_test_that_draws_on_does_not_warn_of_few_resamples(count: int) -> None:
    with pytest.warns(UserWarning, match=f"n_resamples={count} no p-value is below"):
        run(method="auto", n_resamples=count)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(method=Omnibus(most_resamples=999), n_resamples=count).pvalue >= 0.001


@pytest.mark.parametrize("method", ["pearson", "gamma", "block", "distribution_free"])
def test_methods_without_resamples_do_not_warn_of_them(method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(method=method, n_resamples=1)


@pytest.mark.parametrize("method", ALL)
def test_enough_resamples_are_silent(method: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(method=method, n_resamples=239)


# -- clusters -------------------------------------------------------------------------------------

PAIRS = np.arange(N) // 2


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("multiplier", "omnibus")])
def test_methods_that_cannot_honour_clusters_refuse_them(method: str) -> None:
    with pytest.raises(
        ValueError, match=f"method='{method}' takes cases as independent.*can: multiplier, omnibus"
    ):
        run(method=method, groups=PAIRS)


def test_auto_looks_for_everything_with_signs_of_clusters() -> None:
    found = run(groups=PAIRS)
    assert found.method == "omnibus"
    assert (found.provenance["clusters"], found.provenance["largest_cluster"]) == (N // 2, 2)
    assert "asymptotic: cases are clustered" in found.provenance["chosen"]
    assert set(found.provenance["pvalues"]) == set(run().provenance["pvalues"])
    assert found.estimate.estimator == "unbiased, between clusters"


@pytest.mark.parametrize("method", ["auto", "omnibus", "multiplier"])
def test_cases_that_all_stand_alone_are_no_clusters(method: str) -> None:
    assert run(method=method, groups=[f"p{i}" for i in range(N)]) == run(method=method)


@pytest.mark.parametrize(
    "labels",
    [
        [f"p{i:02d}" for i in PAIRS],
        PAIRS.astype(float),
        torch.as_tensor(PAIRS),
        np.array([f"p{i:02d}" for i in PAIRS], dtype=object),
        [np.datetime64("2020-01-01") + i for i in PAIRS],
    ],
    ids=["texts", "floats", "tensor", "objects", "dates"],
)
def test_labels_of_clusters_may_be_anything(labels: Any) -> None:
    assert run(groups=labels).pvalue == run(groups=PAIRS).pvalue


def test_labels_of_several_types() -> None:
    mixed = [("a", 3, 2.5)[i % 3] if i < 9 else i for i in range(N)]
    found = run(groups=mixed)
    assert found.provenance["clusters"] == 14
    assert found.provenance["largest_cluster"] == 3


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (PAIRS[:-1], "groups and predictions must have the same length, found 19 and 20"),
        (PAIRS[:, None], "groups must be 1-dimensional, one value for each case"),
        ([1.0, np.nan, *PAIRS[2:]], r"groups has no value in row 1 \(1 in all\); give cases that stand"),
        (["a", "b", None, *["c"] * (N - 3)], "groups has no value in row 2"),
        (["a", float("nan"), *["c"] * (N - 2)], "groups has no value in row 1"),
        (np.array([np.datetime64("NaT"), *[np.datetime64("2020-01-01")] * (N - 1)]), "no value in row 0"),
        (np.zeros(N), "at least 2 clusters, found 1"),
    ],
    ids=str,
)
def test_labels_that_are_refused(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        run(groups=labels)


def test_few_clusters_are_told() -> None:
    with pytest.warns(UserWarning, match="4 clusters have 8 different patterns of signs"):
        run(groups=np.arange(N) % 4)
    with pytest.warns(UserWarning, match="10 clusters are few: .* its error rate may be off"):
        run(groups=PAIRS)
    with pytest.warns(UserWarning, match="4 clusters are few"):
        run(groups=np.arange(N) % 4, method=Multiplier("normal"))


# -- families that cannot be sampled --------------------------------------------------------------


@dataclass(frozen=True, repr=False, eq=False)
class Unsampled(wc.Normal):
    """Normals whose sampler is not known."""

    draw: ClassVar[Any] = Predictions.draw


UNSAMPLED = Unsampled(MU, SIGMA)
KERNEL = ExpDistance(Wasserstein()) @ Gaussian()


@pytest.mark.parametrize("method", SAMPLING)
def test_methods_that_sample_refuse_what_cannot_be_sampled(method: str) -> None:
    with pytest.raises(TypeError, match="Unsampled") as error:
        run(pred=UNSAMPLED, kernel=KERNEL, method=method)
    assert "cannot be sampled" in str(error.value)
    assert '"pearson" or "block"' in str(error.value)


def test_auto_takes_pearson_for_what_cannot_be_sampled() -> None:
    found = run(pred=UNSAMPLED, kernel=KERNEL)
    assert found.method == "pearson"
    assert "Unsampled cannot be sampled" in found.provenance["chosen"]
    assert found.pvalue == pytest.approx(run(kernel=KERNEL, method="pearson").pvalue, rel=1e-9)


@pytest.mark.parametrize("method", ["exact", "aggregated", "regularised", "omnibus"])
def test_draws_within_a_mixture_are_refused(method: str) -> None:
    mixed = wc.Mixture([PRED, wc.Samples(RNG.normal(size=(N, 3)))])
    with pytest.raises(TypeError, match=r'a Mixture with Samples\(kind="draws"\).*kind="atoms"'):
        run(pred=mixed, method=method)
    assert run(pred=mixed).method == "pearson"
    as_atoms = wc.Mixture([PRED, wc.Samples(RNG.normal(size=(N, 3)), kind="atoms")])
    assert run(pred=as_atoms, method=method).method == method


# -- data -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_one_case_is_too_few(method: str) -> None:
    with pytest.raises(ValueError, match=r"needs at least \d cases, found 1; collect more"):
        run([0.3], wc.Normal([0.0], [1.0]), method=method)


def test_two_cases_are_enough_or_refused_with_a_remedy() -> None:
    y, pred = [0.3, 0.2], wc.Normal([0.0, 1.0], [1.0, 1.0])
    for method in ("auto", "exact", "aggregated", "regularised", "cme", "bootstrap", "spectrum", "gamma"):
        assert 0.0 < run(y, pred, method=method).pvalue <= 1.0
    with pytest.raises(ValueError, match="method='pearson' needs at least 3 cases, found 2"):
        run(y, pred, method="pearson")
    with pytest.raises(ValueError, match=r'one block of 2 of 2 cases .*; take variance="pairs" or null='):
        run(y, pred, method="block")
    with pytest.raises(ValueError, match=r'"F" needs more cases than locations.*take locations=1'):
        run(y, pred, method=MeanEmbedding(reference="F"))
    with pytest.raises(ValueError, match=r"one block of 15 of 20 cases .*block_size of at most 10"):
        run(method="block", block_size=15)


@pytest.mark.parametrize("method", ALL)
def test_constant_predictions(method: str) -> None:
    y = np.random.default_rng(2).normal(size=30)
    pred = wc.Normal(np.zeros(30), np.ones(30))
    assert 0.01 < run(y, pred, method=method).pvalue <= 1.0
    if method not in ("distribution_free", "block"):
        assert run(y + 1.5, pred, method=method).pvalue <= 0.01


@pytest.mark.parametrize("method", [m for m in ALL if m != "cme"])
def test_certain_predictions_that_come_true(method: str) -> None:
    y = np.array([0, 1, 1, 0, 1] * 3)
    found = run(y, wc.Bernoulli(y.astype(float)), method=method)
    assert found.pvalue == 1.0
    assert found.effect_size == 0.0
    assert "nan" not in repr(found)


@pytest.mark.parametrize("n", [2, 3, 20])
@pytest.mark.parametrize("kind", ["draws", "atoms"])
def test_single_draws_that_come_true(kind: str, n: int) -> None:
    """Where no set of targets is off at all, sums of squares are rounding."""
    y = np.sqrt(np.arange(n))
    found = run(y, wc.Samples(y[:, None], kind=kind))
    assert found.pvalue == 1.0
    assert not found.findings


def test_points_that_are_all_off_alike() -> None:
    """Errors without any spread have no standard error to compare coordinates by."""
    y = np.stack([np.arange(3.0)] * 2, axis=1)
    found = run(y + 0.1, wc.Samples(y[:, None], kind="atoms", axis=1))
    assert found.pvalue <= 0.01
    assert found.findings


@pytest.mark.parametrize("method", ["auto", "exact", "aggregated", "regularised"])
def test_certain_predictions_that_fail_are_rejected(method: str) -> None:
    y = np.array([0, 1, 1, 0, 1] * 3)
    wrong = y.copy()
    wrong[[0, 3]] = 1  # two errors of a kind make one pair
    assert run(wrong, wc.Bernoulli(y.astype(float)), method=method).pvalue <= 0.01


@pytest.mark.parametrize(
    "pred",
    [wc.Beta([0.5, 2.0, 2.0, 2.0], [2.0] * 4), wc.Gamma([0.5, 2.0, 2.0, 2.0], [1.0] * 4)],
    ids=repr,
)
def test_densities_both_infinite_and_zero(pred: Any) -> None:
    """A target of 0 has an infinite density in the first case, and is impossible in the second."""
    found = run([0.0, 0.0, 0.5, 0.2], pred)
    assert found.provenance["pvalues"]["tails"] <= 0.02
    assert found.pvalue <= 0.02


def test_targets_in_a_column_are_refused() -> None:
    with pytest.raises(ValueError, match=r"y must be 1-dimensional.*pass y\[:, 0\]"):
        run(Y[:, None])
    with pytest.raises(ValueError, match=r"loc must be 1-dimensional.*pass loc\[:, 0\]"):
        run(Y, wc.Normal(MU[:, None], SIGMA[:, None]))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_that_are_not_finite_are_refused(bad: float) -> None:
    y = Y.copy()
    y[3] = bad
    with pytest.raises(ValueError, match="y is not finite in row 3"):
        run(y)


def test_arguments_in_the_wrong_order_or_of_the_wrong_length() -> None:
    with pytest.raises(TypeError, match=r"the order is \(y, pred\), truth first"):
        run(PRED, Y)
    with pytest.raises(ValueError, match="same length"):
        run(Y[:-1])


def same_letter(a: str, b: str) -> float:
    return float(a == b)


def test_samples_of_objects() -> None:
    rng = np.random.default_rng(5)
    letters = np.array(list("abcd"), dtype=object)
    draws = rng.choice(letters, size=(11, 3))
    on_targets = Callable(same_letter)
    kernel = ExpDistance(MaximumMeanDiscrepancy(on_targets), power=2.0) @ on_targets
    y = rng.choice(letters, size=11)
    for method in ALL:
        if method == "distribution_free":
            with pytest.raises(ValueError, match="bound"):
                run(y, wc.Samples(draws), kernel=kernel, method=method)
        else:
            assert 0.0 < run(y, wc.Samples(draws), kernel=kernel, method=method).pvalue <= 1.0
    elsewhere = np.full(11, "z", dtype=object)
    for method in ("auto", "exact", "aggregated", "regularised"):
        assert run(elsewhere, wc.Samples(draws), kernel=kernel, method=method).pvalue <= 0.02
    with pytest.raises(ValueError, match="Samples of objects have no default kernel"):
        run(y, wc.Samples(draws))


# -- array libraries ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_lists_and_tensors_give_the_same_pvalue(method: str) -> None:
    expected = run(method=method).pvalue
    assert run(list(Y), (list(MU), list(SIGMA)), method=method).pvalue == expected
    parameters = (torch.as_tensor(MU).requires_grad_(), torch.as_tensor(SIGMA).requires_grad_())
    assert run(torch.as_tensor(Y), wc.Normal(*parameters), method=method).pvalue == expected
    with jax.enable_x64(True):
        assert (
            run(jnp.asarray(Y), wc.Normal(jnp.asarray(MU), jnp.asarray(SIGMA)), method=method).pvalue
            == expected
        )


def test_classes_from_tensors() -> None:
    probs = RNG.dirichlet(np.ones(3), N)
    labels = RNG.integers(0, 3, N)
    expected = run(labels, wc.Categorical(probs)).pvalue
    assert run(torch.as_tensor(labels), wc.Categorical(torch.as_tensor(probs))).pvalue == expected
    assert run(labels.tolist(), probs.tolist()).pvalue == expected
    words = np.array(["no", "maybe", "yes"])
    assert run(words[labels], wc.Categorical(probs, classes=words)).pvalue == expected


def test_single_precision_is_tested_in_double() -> None:
    narrow = wc.Normal(torch.as_tensor(MU, dtype=torch.float32), torch.as_tensor(SIGMA, dtype=torch.float32))
    found = run(torch.as_tensor(Y, dtype=torch.float32), narrow, method="pearson")
    assert found.pvalue == pytest.approx(run(method="pearson").pvalue, rel=1e-4)


# -- engine and progress --------------------------------------------------------------------------


@pytest.mark.parametrize("method", ALL)
def test_threads_do_not_matter(method: str) -> None:
    one, two = (run(method=method, engine=Tiled(threads=k)) for k in (1, 2))
    assert one.pvalue == pytest.approx(two.pvalue, rel=1e-12)


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown engine 'abacus'"):
        run(engine="abacus")


def test_progress_is_quiet_unless_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    def impatient(shown: bool | None) -> Progress:
        return Progress(shown, patience=-1.0, interval=-1.0)

    for method in ("exact", "bootstrap", "consistency"):
        run(method=method, n_resamples=199, progress=impatient(None))
    assert capsys.readouterr() == ("", "")
    run(method="exact", n_resamples=199, progress=impatient(True))
    out, err = capsys.readouterr()
    assert out == ""
    assert "resamples:" in err
    run(method="exact", n_resamples=199, progress=impatient(False))
    assert capsys.readouterr().err == ""


def test_nothing_is_drawn_from_the_global_generator() -> None:
    state = np.random.get_state()  # noqa: NPY002
    for method in ALL:
        run(method=method)
    after = np.random.get_state()  # noqa: NPY002
    assert all(np.array_equal(a, b) for a, b in zip(state, after, strict=True))


def test_a_generator_is_shared_and_moves_on() -> None:
    rng = np.random.default_rng(0)
    first, second = (run(method="exact", rng=rng, keep_null=True) for _ in range(2))
    assert not np.array_equal(first.null, second.null)
    assert np.array_equal(first.null, run(method="exact", rng=0, keep_null=True).null)


def test_methods_are_values() -> None:
    assert Exact(stop_after=5) == Exact(stop_after=5)
    assert {Pearson(), Pearson()} == {Pearson()}
    assert repr(Regularised(locations=3)) == "Regularised(locations=3)"


def test_the_null_of_the_default_test_is_that_of_calibrated_models_alone() -> None:
    """Targets far off change the p-value, not what the statistic would have been without them."""
    mu = np.linspace(-1.0, 1.0, 60)
    y, pred = np.random.default_rng(0).normal(mu, 1.0), wc.Normal(mu, np.ones(60))
    right, wrong = (
        wc.calibration_test(targets, pred, rng=1, n_resamples=199, keep_null=True) for targets in (y, y + 5.0)
    )
    assert right.null is not None
    assert wrong.null is not None
    assert len(right.null) == len(wrong.null) == 199
    # The covariance of deviations at locations is that of all sets still, so that they differ a little.
    levels = [0.1, 0.5, 0.9]
    np.testing.assert_allclose(np.quantile(right.null, levels), np.quantile(wrong.null, levels), atol=0.05)
    assert wrong.pvalue < 0.01 < right.pvalue
