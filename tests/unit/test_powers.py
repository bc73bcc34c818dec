"""Exponentials in float32 by powers of two."""

from __future__ import annotations

import numpy as np
import pytest

from wellcal._arrays import powers
from wellcal._arrays.powers import quick_exponential


@pytest.mark.parametrize("vectors", [True, False])
def test_whichever_function_is_taken_it_is_the_exponential(
    vectors: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(powers, "vector_powers_of_two", lambda: vectors)
    exponents = -np.linspace(0.0, 80.0, 4001)
    found = quick_exponential(np.float32)
    assert (found.function is np.exp2) == vectors
    values = found.in_place((found.scale * exponents).astype(np.float32))
    assert values.dtype == np.float32
    # An exponent in float32 is off by 6e-8 of itself, and so is its exponential for each unit of it.
    assert np.max(np.abs(values / np.exp(exponents) - 1.0) / (1.0 - exponents)) < 2e-7


def test_float64_is_never_anything_but_exp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(powers, "vector_powers_of_two", lambda: True)
    found = quick_exponential(np.dtype(np.float64))
    assert found.function is np.exp
    assert found.scale == 1.0
