"""Facts that stand in the body of a class: what is proven, how large, what it is made of, and its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

import wellcal as wc
from wellcal import kernels as k
from wellcal.hypotests.methods.distribution_free import bound_of_h
from wellcal.kernels.base import Part, calls_user_function, is_constant, walk
from wellcal.kernels.matrix import contains_callable
from wellcal.kernels.metrics import DISTANCES
from wellcal.kernels.serialization import kernel_from_dict, kernel_to_dict

RNG = np.random.default_rng(0)
NORMAL = wc.Normal(RNG.normal(size=5), RNG.uniform(0.5, 2.0, 5))
LABELS = wc.Categorical(RNG.dirichlet(np.ones(3), 5), classes=["a", "b", "c"])
GAMMA = wc.Gamma(RNG.uniform(0.5, 2.0, 5), RNG.uniform(0.5, 2.0, 5))
VECTORS = wc.Dirichlet(RNG.uniform(0.5, 2.0, (5, 3)))


def box(self: Any, ops: Any, squared: Any) -> Any:
    return ops.where(squared < 1.0, ops.one(squared), 0.0 * squared)


# -- what is not declared is not claimed -------------------------------------------------------------------


def boxes() -> dict[str, type[k.Kernel]]:
    """The same function, which is no kernel, in every disguise."""

    class Box(k.Radial):
        radial = box

    class Forged(k.Radial):
        __module__ = "wellcal.kernels.targets"
        radial = box

    class Renamed(k.Radial):
        radial = box

    Renamed.__module__, Renamed.__name__, Renamed.__qualname__ = k.Gaussian.__module__, "Gaussian", "Gaussian"

    class Derived(k.Gaussian):
        radial = box

    @dataclass(frozen=True)
    class DerivedDataclass(k.Gaussian):
        __module__ = "wellcal.kernels.targets"
        radial = box

    @dataclass(frozen=True, slots=True)
    class Slots(k.Matern):
        radial = box

    return {c.__name__ + c.__module__: c for c in (Box, Forged, Renamed, Derived, DerivedDataclass, Slots)}


BOXES = boxes()


def make(cls: Any) -> Any:
    return cls(1.5) if issubclass(cls, k.Matern) else cls()


@pytest.mark.parametrize("name", BOXES)
def test_a_box_is_never_called_proven(name: str) -> None:
    kernel = make(BOXES[name])
    gram = kernel(np.arange(20) / 3.0, np.arange(20) / 3.0)
    assert np.linalg.eigvalsh(gram)[0] < -0.1
    on_predictions = k.ExpDistance(k.Wasserstein())
    for claimed in (
        kernel,
        2.0 * kernel + k.Gaussian(),
        k.Product((kernel, k.Gaussian())),
        kernel @ k.Gaussian(),
        k.Product((kernel, k.Gaussian())) @ k.Gaussian(),
        on_predictions @ kernel,
        k.ExpDistance(k.MaximumMeanDiscrepancy(kernel)),
    ):
        found = claimed.guarantees(NORMAL)
        assert found.positive_definite is None, claimed
        assert found.characteristic is None, claimed
        assert "nothing is known about the user's kernel" in str(found)
    assert kernel.guarantees(NORMAL).bounded is None
    assert kernel.supremum is None
    for unknown in (on_predictions @ kernel, kernel @ k.Gaussian(), 2.0 * kernel, kernel + k.Gaussian()):
        assert unknown.supremum is None
    assert not is_constant(kernel)


def public_classes() -> list[type[Part]]:
    found = [getattr(k, name) for name in k.__all__]
    closed = (k.Sum, k.Scaled, k.Product, k.Tensor)
    return [c for c in found if isinstance(c, type) and issubclass(c, Part) and c not in closed]


@pytest.mark.parametrize("cls", public_classes(), ids=lambda c: c.__name__)
def test_facts_are_not_inherited(cls: type[Part]) -> None:
    derived: Any = type("Derived", (cls,), {})
    assert derived.proof is None
    assert derived.pure is False
    assert getattr(derived, "supremum", None) is None
    assert derived.calls_user_function is cls.calls_user_function


@pytest.mark.parametrize(
    "metric",
    [k.Euclidean, k.TotalVariation, k.Hellinger, k.Wasserstein, k.RootCovariance, k.MixtureWasserstein],
)
def test_a_derived_metric_is_not_called_proven(metric: type[k.Metric]) -> None:
    derived = type("Derived", (metric,), {})()
    for predictions in (NORMAL, wc.Bernoulli(np.array([0.2, 0.7])), GAMMA):
        assert k.ExpDistance(derived).guarantees(predictions).positive_definite is None
    assert k.ExpDistance(metric()).guarantees(wc.Bernoulli(np.array([0.2, 0.7]))).reasons


def test_a_derived_delta_is_not_called_proven() -> None:
    class Near(k.Delta):
        def at(self, ops: Any, x: Any, y: Any) -> Any:
            return box(self, ops, (x[0] - y[0]) ** 2)

    found = Near().guarantees(wc.Poisson(np.ones(3)))
    assert (found.positive_definite, found.characteristic, found.bounded) == (None, None, None)
    assert k.Delta().guarantees(wc.Poisson(np.ones(3))).positive_definite is True


def test_products_are_universal_only_where_their_factors_are() -> None:
    """Neither labels nor parameters of a gamma distribution have a Euclidean distance."""
    both = k.Gaussian() * k.Laplacian()
    assert both.guarantees(NORMAL).universal is True
    assert both.guarantees(LABELS).characteristic is None
    assert (both @ k.Gaussian()).guarantees(NORMAL).characteristic is True
    assert (both @ k.Gaussian()).guarantees(GAMMA).characteristic is None


# -- what is declared --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cauchy(k.Radial):
    proof = k.Proof("Schoenberg (1938), Theorem 2", gaussian_mixture=True)
    supremum = 1.0

    def radial(self, ops: Any, squared: Any) -> Any:
        return 1.0 / (1.0 + squared)


@dataclass(frozen=True)
class Triangle(k.Radial):
    """Positive definite in one dimension, and in no other."""

    proof = k.Proof("Polya (1949)", universal=True)

    def radial(self, ops: Any, squared: Any) -> Any:
        return ops.maximum(1.0 - ops.root(squared), 0.0 * squared)


def test_a_declared_proof_is_repeated_as_such() -> None:
    found = Cauchy().guarantees(NORMAL)
    assert (found.positive_definite, found.characteristic, found.universal, found.bounded) == (True,) * 4
    assert found.reasons == ("as declared: Schoenberg (1938), Theorem 2",)
    found = (k.ExpDistance(k.Wasserstein()) @ Cauchy()).guarantees(NORMAL)
    assert (found.positive_definite, found.characteristic, found.bounded) == (True, True, True)
    assert "as declared: Schoenberg (1938), Theorem 2" in found.reasons
    assert Cauchy().guarantees(LABELS).positive_definite is None
    assert "needs numeric targets" in str(Cauchy().guarantees(LABELS))


def test_mixtures_of_gaussians_serve_products_and_parameters() -> None:
    assert (Cauchy() * k.Gaussian()).guarantees(NORMAL).characteristic is True
    assert (Triangle() * k.Gaussian()).guarantees(NORMAL).characteristic is None
    found = (Cauchy() @ k.Gaussian()).guarantees(NORMAL)
    assert (found.positive_definite, found.characteristic) == (True, True)
    assert "as declared: Schoenberg (1938), Theorem 2" in found.reasons
    assert (Cauchy() @ k.Gaussian()).guarantees(GAMMA).positive_definite is None
    found = (Triangle() @ k.Gaussian()).guarantees(NORMAL)
    assert (found.positive_definite, found.characteristic) == (None, None)
    assert "parameters of predictions" in str(found)


def test_boundedness_is_declared_or_follows_from_the_largest_value() -> None:
    assert Triangle().guarantees(NORMAL).bounded is None
    assert "(K2)" in str(Triangle().guarantees(NORMAL))

    @dataclass(frozen=True)
    class Linear(k.TargetKernel):
        proof = k.Proof("an inner product", characteristic=False, bounded=False)

        def at(self, ops: Any, x: Any, y: Any) -> Any:
            return x[0] * y[0]

    found = Linear().guarantees(NORMAL)
    assert (found.positive_definite, found.characteristic, found.bounded) == (True, False, False)

    @dataclass(frozen=True)
    class Tall(k.Radial):
        height: float = 2.0
        radial = box

        @property
        def supremum(self) -> float:
            return self.height

    found = Tall(3.0).guarantees(NORMAL)
    assert (found.positive_definite, found.bounded) == (None, True)
    assert "its largest value is 3" in str(found)
    kernel = k.ExpDistance(k.Wasserstein()) @ (2.0 * Tall(3.0) + Cauchy())
    assert kernel.supremum == 7.0
    assert bound_of_h(kernel) == 14.0
    with pytest.raises(ValueError, match=r"a bound of \|h\| is not known"):
        bound_of_h(k.ExpDistance(k.Wasserstein()) @ Triangle())


def test_declarations_are_checked() -> None:
    with pytest.raises(ValueError, match="a proof needs a citation"):
        k.Proof("  ")
    with pytest.raises(TypeError, match=r"proof of Sure must be Proof\(citation, ...\), found 'trust me'"):

        class Sure(k.Radial):
            proof: Any = "trust me"


def test_own_guarantees_count_within_sums_and_metrics() -> None:
    class Answering(k.Radial):
        radial = box

        def guarantees(self, predictions: object) -> k.Guarantees:
            return k.Guarantees(False, None, True, None, ("a box has negative eigenvalues",))

    for kernel in (Answering() + k.Gaussian(), k.ExpDistance(k.MaximumMeanDiscrepancy(Answering()))):
        assert "a box has negative eigenvalues" in kernel.guarantees(NORMAL).reasons


# -- metrics and families of a user ------------------------------------------------------------------------


@dataclass(frozen=True)
class OfMeans(k.Metric):
    """Difference of the means: a distance, though not one that tells all predictions apart."""


@dataclass(frozen=True)
class Declared(k.Metric):
    proof = k.Proof("the Euclidean distance of means", characteristic=False)


class OwnGamma(wc.Gamma):
    """A family of a user, which Hellinger does not know by itself."""


class OwnVectors(wc.Dirichlet):
    """A family of vectors."""


def _unused(*_: Any) -> Any:
    raise AssertionError("what is proven needs no distances")


def test_a_users_metric_is_available_where_it_is_registered_and_proven_where_it_says_so() -> None:
    for metric in (OfMeans(), Declared()):
        found = k.ExpDistance(metric).guarantees(GAMMA)
        assert found.positive_definite is None
        assert "not available for Gamma predictions" in str(found)
    DISTANCES.register(OfMeans, wc.Gamma, replace=True)(_unused)
    DISTANCES.register(Declared, wc.Gamma, replace=True)(_unused)
    for family in (GAMMA, OwnGamma(GAMMA.shape, GAMMA.scale)):
        found = k.ExpDistance(OfMeans()).guarantees(family)
        assert (found.positive_definite, found.characteristic, found.bounded) == (None, None, True)
        assert "nothing is known about the user's metric OfMeans()" in str(found)
        found = k.ExpDistance(Declared()).guarantees(family)
        assert (found.positive_definite, found.characteristic, found.bounded) == (True, False, True)
        assert found.reasons == ("as declared: the Euclidean distance of means",)


def test_a_users_family_has_what_is_registered_for_it() -> None:
    own = OwnGamma(GAMMA.shape, GAMMA.scale)
    assert "not available for OwnGamma" in str(k.ExpDistance(k.Hellinger()).guarantees(own))
    found = k.ExpDistance(k.Wasserstein()).guarantees(own)
    assert (found.positive_definite, found.characteristic) == (True, None)
    assert "finitely many quantiles" in str(found)
    for metric in (k.Hellinger, k.Wasserstein):
        DISTANCES.register(metric, OwnGamma, replace=True)(_unused)
        found = k.ExpDistance(metric()).guarantees(own)
        assert (found.positive_definite, found.characteristic) == (True, True)
        assert k.ExpDistance(metric()).guarantees(GAMMA).characteristic is None


def test_wasserstein_between_vectors_is_not_claimed_for_a_users_family() -> None:
    own = OwnVectors(VECTORS.concentration)
    assert "not available" in str(k.ExpDistance(k.Wasserstein()).guarantees(own))
    DISTANCES.register(k.Wasserstein, OwnVectors, replace=True)(_unused)
    found = k.ExpDistance(k.Wasserstein()).guarantees(own)
    assert (found.positive_definite, found.characteristic) == (None, None)
    assert "need not be Hilbertian" in str(found)


def test_wasserstein_tells_all_predictions_apart_where_it_is_exact() -> None:
    values = np.sort(RNG.normal(size=(4, 3)), axis=1)
    exact: list[tuple[Any, set[int]]] = [
        (NORMAL, {2}),
        (wc.Laplace(NORMAL.loc, NORMAL.scale), {2}),
        (wc.Poisson(NORMAL.scale), {1}),
        (wc.Samples(values), {1, 2}),
        (wc.Samples(values, weights=np.full((4, 3), 1 / 3), kind="atoms"), set()),
        (wc.Quantiles([0.2, 0.5, 0.8], values), {1, 2}),
        (GAMMA, set()),
        (wc.Mixture([NORMAL, NORMAL]), set()),
    ]
    for predictions, orders in exact:
        for order in (1, 2):
            found = k.ExpDistance(k.Wasserstein(order)).guarantees(predictions)
            assert found.positive_definite is True
            assert found.characteristic is (True if order in orders else None), (predictions, order)


# -- one walk ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrapped(k.TargetKernel):
    """A kernel of a user that is made of others."""

    inner: k.Kernel
    others: tuple[k.Kernel, ...] = ()


def test_walk_visits_everything() -> None:
    inside = k.MixtureWasserstein(components=k.MaximumMeanDiscrepancy(k.Gaussian(2.0) + k.Delta()))
    kernel = k.Product((k.ExpDistance(inside), k.Laplacian())) @ Wrapped(3.0 * k.Matern(1.5), (k.Gaussian(),))
    names = [type(part).__name__ for part in walk(kernel)]
    inside = ["MixtureWasserstein", "MaximumMeanDiscrepancy", "Sum", "Gaussian", "Delta"]
    on_targets = ["Wrapped", "Scaled", "Matern", "Gaussian"]
    assert names == ["Tensor", "Product", "ExpDistance", *inside, "Laplacian", *on_targets]


def nested(kernel: k.Kernel) -> Iterator[k.Kernel]:
    yield kernel
    yield 2.0 * (k.Gaussian() + kernel)
    yield k.Product((k.Gaussian(), kernel))
    yield k.ExpDistance(k.Wasserstein()) @ kernel
    yield k.ExpDistance(k.MaximumMeanDiscrepancy(kernel)) @ k.Gaussian()
    yield k.ExpDistance(k.MixtureWasserstein(components=k.MaximumMeanDiscrepancy(kernel))) @ k.Gaussian()
    yield Wrapped(k.Gaussian(), (kernel,))


def test_sums_and_products_are_evaluated_coordinate_by_coordinate_where_all_parts_are() -> None:
    function = k.Callable(min)
    for kernel in (function, 2.0 * (k.Gaussian() + function), k.Product((k.Gaussian(), function))):
        assert contains_callable(kernel), kernel
    assert not contains_callable(2.0 * (k.Gaussian() + k.Laplacian()))


def test_functions_are_found_wherever_they_are() -> None:
    for kernel in nested(k.Callable(min)):
        assert calls_user_function(kernel), kernel
        assert not is_constant(kernel), kernel
    for kernel in nested(k.Laplacian()):
        assert not calls_user_function(kernel), kernel
        assert not contains_callable(kernel), kernel
    assert calls_user_function(k.paper_kernel + k.Joint(min))


def test_what_is_learned_is_found_wherever_it_is() -> None:
    constant = [kernel for kernel in nested(k.Gaussian(0.5)) if not isinstance(kernel, Wrapped)]
    learned = nested(k.Gaussian(torch.tensor(0.5, requires_grad=True)))
    assert all(map(is_constant, constant))
    assert not any(map(is_constant, learned))
    assert not is_constant(torch.tensor(2.0) * k.Gaussian())
    assert not is_constant(Wrapped(k.Gaussian()))  # it does not say that its fields are all that matters


def test_a_tensor_that_fields_do_not_show_has_its_gradient() -> None:
    hidden = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)

    class Own(k.Gaussian):
        def radial(self, ops: Any, squared: Any) -> Any:
            return super().radial(ops, squared * hidden)

    rows = torch.linspace(-1.0, 1.0, 12, dtype=torch.float64)
    kernel = k.ExpDistance(k.Wasserstein()) @ Own()
    found = wc.skce(0.5 * rows, wc.Normal(rows, torch.ones_like(rows)), kernel=kernel, estimator="biased")
    found.value.backward()
    assert hidden.grad is not None
    assert abs(float(hidden.grad)) > 1e-6


def test_equality_is_found_wherever_it_takes_part() -> None:
    @dataclass(frozen=True)
    class SameSign(k.TargetKernel):
        tests_equality: ClassVar[bool] = True

        def at(self, ops: Any, x: Any, y: Any) -> Any:
            return ops.where((x[0] > 0) == (y[0] > 0), ops.one(x[0] + y[0]), 0.0 * (x[0] + y[0]))

    for kernel in (k.Delta(), 2.0 * k.Delta() + k.Gaussian(), SameSign()):
        with pytest.raises(ValueError, match="compares targets for equality"):
            wc.pairing(kernel, GAMMA, GAMMA)


# -- algebra -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", [k.Sum, k.Scaled, k.Product, k.Tensor])
def test_the_algebra_is_closed(cls: Any) -> None:
    with pytest.raises(TypeError, match=rf"Own cannot be derived from {cls.__name__}: derive your own"):
        type("Own", (cls,), {})


def test_another_function_is_not_fused() -> None:
    class Own(k.Gaussian):
        radial = box

    for kernel in (Own() * k.Gaussian(), k.Gaussian() * Own()):
        assert isinstance(kernel, k.Product)
        assert kernel([0.0], [2.0])[0, 0] == 0.0
    assert isinstance(Own() * Own(), k.Product)


@pytest.mark.parametrize("predictions", [NORMAL, GAMMA], ids=["Normal", "Gamma"])
def test_expectations_of_another_function_are_its_own(predictions: Any) -> None:
    """A shortcut for Gaussian is none for a class derived from it."""

    class Half(k.Gaussian):
        def radial(self, ops: Any, squared: Any) -> Any:
            return super().radial(ops, 4.0 * squared)

    expected = wc.pairing(k.Gaussian(0.5), predictions, predictions)
    np.testing.assert_allclose(wc.pairing(Half(), predictions, predictions), expected, rtol=1e-5)
    y, on_predictions = predictions.mean() + 0.5, k.ExpDistance(k.Wasserstein())
    found = wc.skce(y, predictions, kernel=on_predictions @ Half())
    expected = wc.skce(y, predictions, kernel=on_predictions @ k.Gaussian(0.5))
    assert found.value == pytest.approx(expected.value, rel=1e-4)


def test_expectations_of_a_derived_delta_are_its_own() -> None:
    class Near(k.Delta):
        def at(self, ops: Any, x: Any, y: Any) -> Any:
            return box(self, ops, (x[0] - y[0]) ** 2 / 4.0)

    classes = wc.Categorical(np.array([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1]]))
    near = np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0]])
    np.testing.assert_allclose(wc.pairing(Near(), classes, classes), classes.probs @ near @ classes.probs.T)


def test_kernels_of_a_user_say_what_their_products_are() -> None:
    @dataclass(frozen=True)
    class Power(k.Radial):
        exponent: float

        def radial(self, ops: Any, squared: Any) -> Any:
            return (1.0 + squared) ** -self.exponent

        def fuse(self, other: k.Kernel) -> k.Kernel | None:
            if type(other) is Power:
                return Power(self.exponent + other.exponent)
            return self if isinstance(other, Cauchy) else None

    assert Power(1.0) * Power(2.0) == Power(3.0)
    assert Power(1.0) * Cauchy() == Cauchy() * Power(1.0) == Power(1.0)
    assert k.Product((Power(1.0), k.Gaussian())) == Power(1.0) * k.Gaussian()


def test_length_scales_are_multiplied_where_they_are() -> None:
    @dataclass(frozen=True)
    class Banded(k.Radial):
        bandwidth: float = 1.0
        radial = box

        def rescaled(self, factor: Any) -> k.Kernel:
            return Banded(self.bandwidth * factor)

    kernel = 2.0 * k.Gaussian(0.5) + k.Product((Banded(), k.Delta(), k.Matern(1.5, 3.0)))
    wider = 2.0 * k.Gaussian(1.0) + k.Product((Banded(2.0), k.Delta(), k.Matern(1.5, 6.0)))
    assert kernel.rescaled(2.0) == wider
    on_predictions = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian(0.5)), lengthscale=0.25)
    expected = k.ExpDistance(k.MaximumMeanDiscrepancy(k.Gaussian(0.5)), lengthscale=0.5) @ wider
    assert (on_predictions @ kernel).rescaled(2.0) == expected


def test_a_kernel_of_a_user_on_objects() -> None:
    @dataclass(frozen=True)
    class SharedLetters(k.TargetKernel):
        elementwise: ClassVar[bool] = False
        needs_numbers: ClassVar[bool] = False

        def matrix(self, ops: Any, x: Any, y: Any) -> Any:
            return np.array([[float(len(set(a) & set(b))) for b in y] for a in x])

    kernel = SharedLetters() + k.Delta()
    np.testing.assert_array_equal(kernel(["ab", "xyz"], ["bc", "ab", ""]), [[1, 3, 0], [0, 0, 0]])
    words = wc.Samples([["ab", "b"], ["xyz", "x"]])
    np.testing.assert_array_equal(wc.pairing(SharedLetters(), words, words), [[1.25, 0.0], [0.0, 1.5]])


# -- names -------------------------------------------------------------------------------------------------


def restored(kernel: k.Kernel) -> k.Kernel | None:
    return kernel_from_dict(json.loads(json.dumps(kernel_to_dict(kernel))))


@dataclass(frozen=True)
class Gaussian(k.Radial):
    """A name that the package has, too."""

    lengthscale: float = 2.0
    radial = box


def test_kernels_and_metrics_of_a_user_are_restored() -> None:
    kernel = k.ExpDistance(Declared(), 0.5) @ (2.0 * Wrapped(Cauchy(), (Gaussian(3.0), k.Gaussian(4.0))))
    back = restored(kernel)
    assert back == kernel
    assert repr(back) == repr(kernel)
    plain = kernel_to_dict(kernel)
    assert plain["kind"] == "Tensor"
    assert plain["predictions"]["metric"] == {"kind": f"{__name__}.Declared"}
    own, ours = plain["targets"]["kernel"]["others"]
    assert own == {"kind": f"{__name__}.Gaussian", "lengthscale": 3.0}
    assert ours == {"kind": "Gaussian", "lengthscale": 4.0}


def test_a_class_that_is_defined_again_is_the_latest() -> None:
    def define(height: float) -> Any:
        @dataclass(frozen=True)
        class Again(k.Radial):
            supremum = height
            radial = box

        return Again

    first, second = define(1.0), define(2.0)
    back: Any = restored(first())
    assert type(back) is second
    assert back.supremum == 2.0


def test_what_is_not_imported_is_not_restored() -> None:
    plain = kernel_to_dict(k.paper_kernel)
    assert kernel_from_dict(plain) == k.paper_kernel
    plain["targets"] = {"kind": "elsewhere.Gaussian"}
    assert kernel_from_dict(plain) is None
    for kind in ("Kernels", "paper_kernel", "Guarantees", "__name__"):
        plain["targets"] = {"kind": kind}
        with pytest.raises(ValueError, match=r"kernel\.targets\.kind"):
            kernel_from_dict(plain)


def test_what_plain_values_cannot_tell_is_not_restored() -> None:
    class Stateful(k.Radial):
        def __init__(self, width: float) -> None:
            self.width = width

    @dataclass(frozen=True)
    class Kinds(k.Radial):
        kind: str = "soft"

    for kernel in (Stateful(2.0), Kinds()):
        assert kernel_to_dict(kernel)["kind"] == "not restorable"
        assert restored(kernel) is None
