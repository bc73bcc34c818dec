"""Parts of the omnibus test: the same sums in every array library, computed where the targets are."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import array_api_strict
import numpy as np
import pytest
import torch

from wellcal._arrays import ops, special
from wellcal._arrays.chunks import limited
from wellcal._arrays.namespaces import device_of, namespace, to_numpy
from wellcal.hypotests.parts.families import parts_of
from wellcal.hypotests.resampling.targets import draw_targets

from .examples import EXAMPLES, LIBRARIES, Library

NAMES = [name for name in EXAMPLES if name != "Mixture with draws"]
SETS = 5
DEVICE = array_api_strict.Device("device1")


def sums(name: str, convert: Callable[[Any], Any] = np.asarray) -> Any:
    """Of some sets of targets, the first of which may be impossible."""
    example = EXAMPLES[name]
    pred = example.build()
    observed = np.asarray(pred.check_targets(example.targets))
    parts = parts_of(pred)
    assert parts is not None
    drawn = draw_targets(pred, np.random.default_rng(2), SETS - 1, observed)
    return parts.sums(convert(np.concatenate([observed[None], drawn])))


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(to_numpy(found), expected, rtol=1e-9, atol=1e-9)


# JAX compiles each operation: one family for each way of making sums.
WITH_JAX = [
    "Bernoulli",
    "Categorical",
    "Normal",
    "Poisson",
    "MultivariateNormal",
    "Samples",
    "Quantiles",
]


@pytest.mark.parametrize(
    ("library", "name"), [*(("torch", name) for name in NAMES), *(("jax", name) for name in WITH_JAX)]
)
def test_sums_agree_across_libraries(library: str, name: str) -> None:
    known: Library = LIBRARIES[library]
    with known.setting():
        found = sums(name, known.convert)
        assert namespace(found) is namespace(known.convert(np.ones(1)))
        agree(found, sums(name))


@pytest.mark.parametrize("name", ["Normal", "MultivariateNormal", "Samples", "Quantiles"])
def test_predictions_may_be_elsewhere(name: str) -> None:
    example = EXAMPLES[name]
    parts = parts_of(example.build(torch.as_tensor))
    assert parts is not None
    for convert in (np.asarray, torch.as_tensor):
        agree(parts.sums(convert(example.targets[None])), sums(name)[:1])


@contextmanager
def a_device_apart(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    """Arrays that cannot be read from outside, but number by number by functions that their library lacks."""
    kind: Any = type(array_api_strict.ones(1))

    def refused(*_: Any, **__: Any) -> Any:
        raise RuntimeError("an array left its device")

    def by_number(function: Callable[..., Any], *arrays: Any, **_: Any) -> Any:
        if all(isinstance(x, np.ndarray) for x in arrays):
            return function(*arrays)
        return array_api_strict.asarray(function(*(x._array for x in arrays)), device=DEVICE)

    with monkeypatch.context() as patch:
        for way in ("__dlpack__", "__array__", "__buffer__"):
            patch.setattr(kind, way, refused)
        for module in (ops, special):
            patch.setattr(module, "through_numpy", by_number)
        yield


@pytest.mark.parametrize("name", NAMES)
def test_sums_stay_on_their_device(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with a_device_apart(monkeypatch):
        found = sums(name, lambda x: array_api_strict.asarray(x, device=DEVICE))
    assert device_of(found) == DEVICE
    agree(found, sums(name))


def test_an_array_that_leaves_its_device_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    with a_device_apart(monkeypatch), pytest.raises(RuntimeError, match="left its device"):
        to_numpy(array_api_strict.ones(1, device=DEVICE))


@pytest.mark.parametrize("name", ["MultivariateNormal", "Categorical", "Normal", "Samples"])
def test_sums_do_not_depend_on_how_many_are_taken_at_a_time(name: str) -> None:
    whole = sums(name)
    with limited(cache=1, work=1):
        agree(sums(name), whole)
        agree(sums(name, torch.as_tensor), whole)


@pytest.mark.gpu
@pytest.mark.parametrize("name", NAMES)
def test_sums_on_a_graphics_card(name: str) -> None:
    found = sums(name, lambda x: torch.as_tensor(x, device="cuda"))
    assert found.device.type == "cuda"
    agree(found, sums(name))
