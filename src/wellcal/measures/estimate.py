"""Estimates: frozen, printable, and pytrees where JAX is in use."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from scipy import special

from wellcal._arrays.checks import probability
from wellcal._arrays.namespaces import Array, is_array, is_traced, on_first_jax_array, shown, to_numpy
from wellcal._arrays.schema import Check, described, listed, number, optional, text, whole
from wellcal.kernels.base import Kernel
from wellcal.measures.presentation import KERNEL, Presentable, Row


@dataclass(frozen=True)
class Interval:
    """A confidence interval.

    Attributes
    ----------
    low, high
        Its ends.
    level
        Nominal coverage.
    """

    low: float
    high: float
    level: float


class WhenAsked:
    """A field that holds a dictionary, or a function that makes it when it is first asked for.

    Words take longer than the numbers that they describe, and most of them are never read.
    """

    def __get__(self, owner: Any, kind: type | None = None) -> Any:
        if owner is None:
            return dict  # the default of the field: an empty dictionary, made when it is asked for
        found = owner.__dict__["provenance"]
        if callable(found):
            owner.__dict__["provenance"] = found = found()
        return found

    def __set__(self, owner: Any, value: Any) -> None:
        owner.__dict__["provenance"] = value


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Presentable):
    """An estimate of a calibration error.

    Attributes
    ----------
    value
        The estimate: a float for NumPy input, a scalar tensor with gradient for PyTorch, a scalar
        array for JAX.
    standard_error
        Standard error where theory gives one, else None; without gradient.
    name
        What was estimated, such as "SKCE".
    estimator
        How, such as "unbiased".
    n_samples
        Number of cases.
    kernel
        The kernel used.
    provenance
        What was chosen and how it was computed: rules or numerical schemes for expectations with an
        error estimate, engine, cases left out, precision.

    Examples
    --------
    >>> estimate = Estimate(0.25, 0.05, "SKCE", "unbiased", 100)
    >>> float(estimate)
    0.25
    >>> round(estimate.confidence_interval().low, 6)
    0.152002
    >>> Estimate.from_json(estimate.to_json()) == estimate
    True
    """

    value: Array
    standard_error: Array = None
    name: str = "SKCE"
    estimator: str = ""
    n_samples: int = 0
    kernel: Kernel | None = None
    provenance: WhenAsked = WhenAsked()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "provenance": self.provenance}

    def __float__(self) -> float:
        return _float(self.value)

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Normal interval ``value -+ z * standard_error``.

        It holds for a fixed, miscalibrated model and many cases. It does not hold near calibration,
        where the estimate is not normal: an interval that covers zero is no test of calibration.
        """
        level = probability(level, "level")
        if self.standard_error is None:
            raise ValueError(f"no standard error is known for the {self.estimator} estimator of {self.name}")
        half = float(special.ndtri(0.5 + 0.5 * level)) * _float(self.standard_error)
        return Interval(float(self) - half, float(self) + half, level)

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of an estimate."""
        any_number = number(infinite=True, nan=True)
        shown = {
            "lowered": listed(text),
            "expectation_error": any_number,
            "dropped": whole(least=0),
        }
        return {
            "value": any_number,
            "standard_error": optional(number(least=0.0, infinite=True, nan=True)),
            "name": text,
            "estimator": text,
            "n_samples": whole(least=0),
            **KERNEL,
            "provenance": described(shown),
        }

    # -- for people --------------------------------------------------------------------------

    def _headline(self) -> str:
        error = self.standard_error
        spread = "" if error is None or is_traced(error) else f" +- {shown(error)}"
        cases = f"{self.n_samples} cases" if self.n_samples else ""
        how = ", ".join(part for part in (self.estimator, cases) if part)
        number = "traced" if is_traced(self.value) else f"{float(self):.6g}"
        return f"{self.name} = {number}{spread}" + (f"  ({how})" if how else "")

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        if self.kernel is not None:
            rows.append(("kernel", repr(self.kernel)))
        if "lowered" in self.provenance:
            error = self.provenance.get("expectation_error", math.nan)
            known = "no error estimate" if math.isnan(error) else f"estimated error {error:.1e}"
            rows.append(("expectations", f"numerical, {known}; {'; '.join(self.provenance['lowered'])}"))
        if self.provenance.get("dropped"):
            rows.append(("left out", f"the last {self.provenance['dropped']} cases (incomplete block)"))
        return rows


def estimate_text(estimate: Estimate) -> str:
    """The value with its standard error, as it is shown within other results.

    Examples
    --------
    >>> estimate_text(Estimate(0.0123456, 0.0012345))
    '0.01235 +- 0.0012'
    """
    error = estimate.standard_error
    return f"{float(estimate):.4g}" + ("" if error is None else f" +- {_float(error):.2g}")


def _float(value: Array) -> float:
    return float(to_numpy(value)) if is_array(value) else float(value)


def _register_with_jax() -> None:
    """Let estimates pass through ``jax.jit`` and ``grad``."""
    import jax

    static = [f.name for f in fields(Estimate) if f.name not in ("value", "standard_error")]

    def flatten(estimate: Estimate) -> tuple[tuple[Any, Any], _Aside]:
        return (estimate.value, estimate.standard_error), _Aside(
            {name: getattr(estimate, name) for name in static}
        )

    def unflatten(aside: _Aside, children: tuple[Any, Any]) -> Estimate:
        return Estimate(*children, **aside.values)

    trees: Any = jax.tree_util  # its own annotations leave parameters open
    trees.register_pytree_node(Estimate, flatten, unflatten)


class _Aside:
    """What JAX need not look at. All are equal to it: descriptions do not force a new compilation."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Aside)

    def __hash__(self) -> int:
        return 0


on_first_jax_array(_register_with_jax)
