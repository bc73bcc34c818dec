"""Results: frozen, printable, and pytrees where JAX is in use."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from scipy import special

from wellcal._arrays.namespaces import is_array, is_traced, on_first_jax_array, shown, to_numpy
from wellcal.kernels.base import Kernel


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


@dataclass(frozen=True)
class Estimate:
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
    """

    value: Any
    standard_error: Any = None
    name: str = "SKCE"
    estimator: str = ""
    n_samples: int = 0
    kernel: Kernel | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})

    def __float__(self) -> float:
        return float(to_numpy(self.value)) if is_array(self.value) else float(self.value)

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Normal interval ``value -+ z * standard_error``.

        It holds for a fixed, miscalibrated model and many cases. It does not hold near calibration,
        where the estimate is not normal: an interval that covers zero is no test of calibration.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"level must be between 0 and 1, found {level}")
        if self.standard_error is None:
            raise ValueError(f"no standard error is known for the {self.estimator} estimator of {self.name}")
        half = float(special.ndtri(0.5 + 0.5 * level)) * float(to_numpy(self.standard_error))
        return Interval(float(self) - half, float(self) + half, level)

    def __repr__(self) -> str:
        lines = [f"{self.name} = {_number(self.value)}{self._error_text()}"]
        how = ", ".join(
            part for part in (self.estimator, f"{self.n_samples} cases" if self.n_samples else "") if part
        )
        if how:
            lines[0] += f"  ({how})"
        if self.kernel is not None:
            lines.append(f"  kernel: {self.kernel!r}")
        if "lowered" in self.provenance:
            error = self.provenance["expectation_error"]
            estimate = "no error estimate" if math.isnan(error) else f"estimated error {error:.1e}"
            lines.append(f"  expectations: numerical, {estimate}; {'; '.join(self.provenance['lowered'])}")
        if self.provenance.get("dropped"):
            lines.append(f"  left out: the last {self.provenance['dropped']} cases (incomplete block)")
        return "\n".join(lines)

    def _error_text(self) -> str:
        error = self.standard_error
        return "" if error is None or is_traced(error) else f" +- {shown(error)}"


def _number(value: Any) -> str:
    if is_traced(value):
        return "traced"
    return f"{float(to_numpy(value)) if is_array(value) else float(value):.6g}"


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

    jax.tree_util.register_pytree_node(Estimate, flatten, unflatten)


class _Aside:
    """What JAX need not look at. All are equal to it: descriptions do not force a new compilation."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Aside)

    def __hash__(self) -> int:
        return 0


on_first_jax_array(_register_with_jax)
