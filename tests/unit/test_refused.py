"""What is no array of numbers is refused, with the name of the argument and what to do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from fuzz.mutations import Closed

import wellcal as wc

N = 6
MU = np.linspace(-1.0, 1.0, N)
NORMAL = wc.Normal(MU, np.ones(N))
PROBS = np.full((N, 3), 1.0 / 3.0)

BAD: dict[str, tuple[Any, str]] = {
    "masked": (np.ma.masked_greater(MU, 0.0), "is a masked array, and 3 of its 6 entries are masked"),
    "masked nowhere": (np.ma.array(MU), "is a masked array, and 0 of its 6 entries are masked"),
    "dates": (np.arange(N).astype("datetime64[D]"), "not dates"),
    "durations": (np.arange(N).astype("timedelta64[s]"), "not durations"),
    "records": (np.zeros(N, dtype=[("a", float), ("b", float)]), "not records"),
    "complex": (MU + 1j, "must be real"),
    "complex list": (list(MU + 0j), "must be real"),
    "texts": (np.array(["1.0"] * N), "not texts"),
    "list of texts": (["1.0"] * N, "not texts"),
    "bytes": (np.array([b"1.0"] * N), "not texts"),
    "text": ("abcdef", "the one string 'abcdef'"),
    "objects": (np.array(["1.0", *range(N - 1)], dtype=object), "'1.0' in row 0"),
    "None": ([1.0, None, *range(N - 2)], "None in row 1"),
    "dict": ({"a": 1.0}, "found a dict, which has no order"),
    "set": ({1.0, 2.0}, "found a set, which has no order"),
    "iterator": (iter(MU), "found an iterator"),
}

PLACES: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "y": ("y", lambda x: wc.skce(x, NORMAL)),
    "y of nll": ("y", lambda x: wc.nll(x, NORMAL)),
    "y of a test": ("y", lambda x: wc.calibration_test(x, NORMAL)),
    "weights": ("weights", lambda x: wc.skce(MU, NORMAL, weights=x)),
    "weights of a score": ("weights", lambda x: wc.crps(MU, NORMAL, weights=x)),
    "loc": ("loc", lambda x: wc.Normal(x, 1.0)),
    "probs": ("probs", wc.Bernoulli),
    "levels": ("levels", lambda x: wc.pinball_loss(MU, NORMAL, levels=x)),
    "support": ("support", lambda x: wc.Categorical(np.full((2, N), 1.0 / N), support=x)),
    "cdf": ("y", NORMAL.cdf),
    "quantile": ("u", NORMAL.quantile),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("bad", BAD)
def test_what_is_no_array_of_numbers(place: str, bad: str) -> None:
    given, message = BAD[bad]
    name, call = PLACES[place]
    if bad == "iterator":
        given = iter(MU)
    with pytest.raises((TypeError, ValueError), match=f"{name} .*{message}"):
        call(given)


@pytest.mark.parametrize("bad", ["masked", "records", "complex", "text", "dict", "set"])
@pytest.mark.parametrize("name", ["y", "classes", "groups", "segments", "binning"])
def test_what_is_no_array_of_labels(name: str, bad: str) -> None:
    given = BAD[bad][0]
    calls: dict[str, Callable[[], Any]] = {
        "y": lambda: wc.ece(given, wc.Categorical(PROBS, classes=["a", "b", "c"])),
        "classes": lambda: wc.Categorical(PROBS, classes=given),
        "groups": lambda: wc.calibration_test(MU, NORMAL, method="multiplier", groups=given),
        "segments": lambda: wc.witness(MU, NORMAL, segments=given),
        "binning": lambda: wc.ece(np.zeros(N), PROBS, binning=given),
    }
    with pytest.raises((TypeError, ValueError), match=name):
        calls[name]()


@pytest.mark.parametrize("missing", [float("nan"), np.datetime64("NaT")])
def test_classes_without_a_name(missing: Any) -> None:
    for classes in ([1.0, missing, 2.0], np.array([1.0, missing, 2.0], dtype=object)):
        with pytest.raises((ValueError, TypeError), match="classes has no label in position 1"):
            wc.Categorical(PROBS, classes=classes)
    with pytest.raises(ValueError, match="y is not among the classes in row 2"):
        wc.nll([1.0, 2.0, missing, 1.0, 1.0, 1.0], wc.Categorical(PROBS, classes=[1.0, 2.0, 3.0]))


def test_durations_are_not_class_numbers() -> None:
    y = np.array([0, 1, 2, 0, 1, 2])
    for wrong in (y.astype("timedelta64[ns]"), y.astype("datetime64[ns]"), y + 0j):
        for pred in (
            wc.Categorical(PROBS),
            wc.Categorical(PROBS, classes=[0, 1, 2]),
            wc.Categorical(PROBS, support=[0.0, 1.0, 2.0]),
        ):
            with pytest.raises(TypeError, match="y must be"):
                wc.nll(wrong, pred)


def test_dates_may_be_labels() -> None:
    days = np.arange(3).astype("datetime64[D]")
    pred = wc.Categorical(PROBS, classes=days)
    assert float(wc.nll(days[[0, 1, 2, 0, 1, 2]], pred)) == pytest.approx(np.log(3.0))


@pytest.mark.parametrize("values", ["abc", b"abc", 3.0, None, {"a": 1}, ["abc", "def"], [1, "abc"], [None]])
def test_samples_are_rows(values: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="values"):
        wc.Samples(values)


def test_numbers_that_are_objects_are_numbers() -> None:
    from decimal import Decimal
    from fractions import Fraction

    given = np.array([1, 2.5, Decimal("0.5"), Fraction(1, 4), np.float32(2.0), True], dtype=object)
    np.testing.assert_array_equal(wc.Normal(given, 1.0).loc, [1.0, 2.5, 0.5, 0.25, 2.0, 1.0])


@pytest.mark.parametrize("name", ["y", "weights", "loc", "groups"])
def test_tensors_without_values_in_memory(name: str) -> None:
    dense = torch.tensor(MU)
    sparse = dense.to_sparse()
    calls: dict[str, Callable[[Any], Any]] = {
        "y": lambda x: wc.skce(x, NORMAL),
        "weights": lambda x: wc.skce(MU, NORMAL, weights=x),
        "loc": lambda x: wc.Normal(x, 1.0),
        "groups": lambda x: wc.calibration_test(MU, NORMAL, method="multiplier", groups=x),
    }
    with pytest.raises(TypeError, match=f"{name} is a tensor of layout torch.sparse_coo"):
        calls[name](sparse)
    with pytest.raises(TypeError, match=f"{name} is a tensor on the device 'meta'"):
        calls[name](dense.to("meta"))
    if name != "groups":
        with pytest.raises(TypeError, match=f"{name} must be real"):
            calls[name](dense + 0j)


@pytest.mark.parametrize("sign", [-1.0, 0.0])
def test_covariances_that_are_none(sign: float) -> None:
    """A negative definite matrix is refused like a singular one, with its row."""
    cov = np.stack([np.eye(2), sign * np.eye(2)])
    with pytest.raises(ValueError, match="cov must be positive definite in row 1: its smallest eigenvalue"):
        wc.MultivariateNormal(np.zeros((2, 2)), cov)


def test_covariances_of_half_precision() -> None:
    cov = np.stack([np.eye(2), 2.0 * np.eye(2)]).astype(np.float16)
    pred = wc.MultivariateNormal(np.zeros((2, 2), np.float16), cov)
    assert pred.chol.dtype == np.float32
    np.testing.assert_allclose(
        pred.log_prob(np.zeros((2, 2)))[1] - pred.log_prob(np.zeros((2, 2)))[0], -np.log(2.0), rtol=1e-6
    )


@pytest.mark.parametrize(
    "argument", ["y", "pred", "kernel", "weights", "engine", "expectations", "estimator"]
)
def test_objects_that_fail_when_they_are_asked_are_refused(argument: str) -> None:
    right: dict[str, Any] = {"y": np.zeros(3), "pred": wc.Normal(np.zeros(3), 1.0)}
    for given in (Closed(), [Closed()], (Closed(), Closed())):
        with pytest.raises((TypeError, ValueError), match=argument):
            wc.skce(**{**right, argument: given})


def test_numbers_beyond_the_range_of_a_batch_are_refused() -> None:
    import torch

    for dtype in (torch.bfloat16, torch.float16, torch.float32):
        with pytest.raises(ValueError, match="scale is beyond the range of torch"):
            wc.Normal(torch.zeros(3, dtype=dtype), 1e150)
    with pytest.raises(ValueError, match="scale is beyond the range of float16"):
        wc.Normal(np.zeros(3, np.float16), 1e6)


def test_expectations_of_a_joint_kernel_are_checked() -> None:
    kernel = wc.kernels.Joint(lambda *args: 1.0)
    for wrong in ("nonsense", None, np.array([0.2, 0.3])):
        with pytest.raises(ValueError, match="unknown expectations"):
            wc.ucme(np.zeros(3), wc.Normal(np.zeros(3), 1.0), kernel=kernel, expectations=wrong, locations=2)


def test_weights_of_a_loss_may_come_from_another_library() -> None:
    import torch

    from wellcal.jax import skce_loss

    y, pred = jnp.ones(4), wc.Normal(jnp.zeros(4), jnp.ones(4))
    assert float(skce_loss(y, pred, weight=torch.tensor(2.0))) == float(skce_loss(y, pred, weight=2.0))
