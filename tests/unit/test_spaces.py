"""Batches meet where their targets live in one space, and nowhere else."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wellcal as wc
from wellcal import kernels as k

RNG = np.random.default_rng(5)
N = 3


def probs(count: int, n: int = N) -> Any:
    return RNG.dirichlet(np.ones(count), n)


def vectors(d: int) -> Any:
    return RNG.normal(size=(N, d))


def objects(rows: list[list[str]]) -> Any:
    return wc.Samples(np.array(rows, dtype=object))


ONE, UNIT = np.ones(N), np.full(N, 0.4)

FAMILIES: dict[str, tuple[Any, str]] = {
    "Normal": (wc.Normal(ONE, ONE), "numbers"),
    "Laplace": (wc.Laplace(ONE, ONE), "numbers"),
    "StudentT": (wc.StudentT(4.0, ONE, ONE), "numbers"),
    "Gamma": (wc.Gamma(ONE, ONE), "numbers"),
    "LogNormal": (wc.LogNormal(ONE, ONE), "numbers"),
    "Beta": (wc.Beta(ONE, ONE), "numbers"),
    "PowerExponential": (wc.PowerExponential(ONE, ONE, 3.0), "numbers"),
    "Poisson": (wc.Poisson(ONE), "numbers"),
    "NegativeBinomial": (wc.NegativeBinomial(ONE, 0.5), "numbers"),
    "Samples": (wc.Samples(RNG.normal(size=(N, 4))), "numbers"),
    "Mixture": (wc.Mixture([wc.Normal(ONE, ONE), wc.Gamma(ONE, ONE)]), "numbers"),
    "support": (wc.Categorical(probs(3), support=[0.0, 1.0, 4.0]), "numbers"),
    "Bernoulli": (wc.Bernoulli(UNIT), "zero and one"),
    "two classes": (wc.Categorical(probs(2)), "two classes"),
    "three classes": (wc.Categorical(probs(3)), "three classes"),
    "four classes": (wc.Categorical(probs(4)), "four classes"),
    "names": (wc.Categorical(probs(3), classes=["a", "b", "c"]), "names"),
    "names in another order": (wc.Categorical(probs(3), classes=["b", "c", "a"]), "names"),
    "other names": (wc.Categorical(probs(3), classes=["a", "b", "d"]), "other names"),
    "quartiles": (wc.Quantiles([0.25, 0.5, 0.75], np.sort(vectors(3), axis=1)), "quartiles"),
    "thirds": (wc.Quantiles([1 / 3, 2 / 3], np.sort(vectors(2), axis=1)), "thirds"),
    "objects": (objects([["a", "b"], ["x", "c"], ["a", "a"]]), "objects"),
    "DiagonalNormal 2": (wc.DiagonalNormal(vectors(2), np.ones((N, 2))), "2"),
    "DiagonalNormal 1": (wc.DiagonalNormal(vectors(1), np.ones((N, 1))), "1"),
    "MultivariateNormal 2": (wc.MultivariateNormal(vectors(2), np.stack([np.eye(2)] * N)), "2"),
    "MultivariateNormal 3": (wc.MultivariateNormal(vectors(3), np.stack([np.eye(3)] * N)), "3"),
    "PowerExponential 2": (wc.PowerExponential(vectors(2), shape=3.0, cov=np.stack([np.eye(2)] * N)), "2"),
    "Dirichlet 2": (wc.Dirichlet(np.ones((N, 2))), "2"),
    "Dirichlet 3": (wc.Dirichlet(np.ones((N, 3))), "3"),
    "Samples 3": (wc.Samples(RNG.normal(size=(N, 4, 3))), "3"),
    "support of vectors": (wc.Categorical(probs(3), support=vectors(2)), "2"),
    "Mixture 2": (wc.Mixture([wc.DiagonalNormal(vectors(2), 1.0 + 0.0 * vectors(2))]), "2"),
}

ALSO = {
    frozenset({"zero and one", "numbers"}),
    frozenset({"zero and one", "two classes"}),
    frozenset({"objects", "names"}),
    frozenset({"objects", "other names"}),
}


def same_letter(a: Any, b: Any) -> float:
    return float(a == b)


def kernel_for(*spaces: str) -> k.Kernel:
    if {"objects", "names", "other names"} & set(spaces):
        return k.Callable(same_letter)
    return k.Gaussian()


@pytest.mark.parametrize("left", FAMILIES)
def test_pairing_of_every_two_families(left: str) -> None:
    P, space_p = FAMILIES[left]
    for right, (Q, space_q) in FAMILIES.items():
        kernel = kernel_for(space_p, space_q)
        if space_p == space_q or frozenset({space_p, space_q}) in ALSO:
            found = wc.pairing(kernel, P, Q, expectations=wc.Lowering(nodes=4, points=4))
            assert found.shape == (N, N), right
            assert np.isfinite(found).all(), right
        else:
            with pytest.raises(ValueError, match="P and Q must predict targets of one kind: P ") as error:
                wc.pairing(kernel, P, Q)
            assert f"({type(Q).__name__}) predicts" in str(error.value), right


@pytest.mark.parametrize(
    ("P", "Q", "message"),
    [
        ("Normal", "DiagonalNormal 2", "numbers and Q (DiagonalNormal) predicts vectors of length 2"),
        (
            "three classes",
            "four classes",
            "and Q (Categorical) predicts the classes 0, 1, 2, 3; give both the",
        ),
        (
            "names",
            "Normal",
            "the classes 'a', 'b', 'c' and Q (Normal) predicts numbers; give classes numbers",
        ),
        ("quartiles", "thirds", "quantiles at 2 levels; give quantiles at the same levels"),
    ],
)
def test_errors_say_what_each_predicts(P: str, Q: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        wc.pairing(k.Gaussian(), FAMILIES[P][0], FAMILIES[Q][0])


# -- other places ------------------------------------------------------------------------------

NORMALS = wc.Normal(RNG.normal(size=6), 1.0)
Y = RNG.normal(size=6)
PLANE = wc.DiagonalNormal(RNG.normal(size=(2, 2)), np.ones((2, 2)))


def joint(P: Any, y: Any, Q: Any, z: Any) -> Any:
    return np.exp(-np.abs(np.asarray(y)[:, None] - np.asarray(z)[None, :]))


MEETINGS: dict[str, Callable[[], Any]] = {
    "ucme": lambda: wc.ucme(Y, NORMALS, locations=(PLANE, np.zeros((2, 2)))),
    "ucme of a joint kernel": lambda: wc.ucme(
        Y, wc.Samples(Y[:, None]), locations=(PLANE, np.zeros((2, 2))), kernel=k.Joint(joint)
    ),
    "witness": lambda: wc.witness(Y, NORMALS, locations=(PLANE, np.zeros((2, 2)))),
    "cme": lambda: wc.calibration_test(Y, NORMALS, method="cme", locations=(PLANE, np.zeros((2, 2)))),
    "local_discrepancy": lambda: wc.local_discrepancy(Y, NORMALS, PLANE),
    "compare": lambda: wc.compare(
        [0, 1, 2, 0, 1, 2],
        wc.Categorical(probs(3, 6)),
        wc.Categorical(probs(4, 6)),
        kernel=k.ExpDistance(k.TotalVariation()) @ k.Delta(),
    ),
    "compare with the default kernel": lambda: wc.compare(
        [0, 1, 2, 0, 1, 2], wc.Categorical(probs(3, 6)), wc.Categorical(probs(4, 6))
    ),
    "the reference of a monitor": lambda: wc.Monitor(reference=PLANE).update(Y, NORMALS),
    "updates of a monitor": lambda: (
        monitor := wc.Monitor(warmup=2),
        monitor.update(Y, NORMALS),
        monitor.update(np.zeros((2, 2)), PLANE),
    ),
    "updates of a monitor, of one family": lambda: (
        monitor := wc.Monitor(warmup=2),
        monitor.update(np.zeros((2, 2)), PLANE),
        monitor.update(np.zeros((2, 3)), wc.DiagonalNormal(np.zeros((2, 3)), np.ones((2, 3)))),
    ),
    "kernel": lambda: k.Gaussian()(np.zeros(3), np.zeros((3, 2))),
    "targets": lambda: wc.pairing(k.Gaussian(), PLANE, np.zeros(3)),
    "targets of another length": lambda: wc.pairing(k.Gaussian(), PLANE, np.zeros((3, 3))),
}


@pytest.mark.parametrize("place", MEETINGS)
def test_elsewhere_too(place: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises((TypeError, ValueError)) as error:
            MEETINGS[place]()
    said = re.search(
        r"must predict targets of one kind|must be of one family|targets? of (one )?shape"
        r"|must be 2-dimensional|no kernel is known that serves both",
        str(error.value),
    )
    assert said, str(error.value)
