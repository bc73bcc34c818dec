"""What the functions of the package do with cases in partitions, and what they refuse."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

HOMES = {
    "as_predictions": "building.as_partitioned",
    "brier": "running.brier",
    "calibration_test": "testing.calibration_test",
    "crps": "running.crps",
    "default_kernel": "kernels.default_kernel",
    "ece": "running.ece",
    "energy_score": "running.energy_score",
    "equivalence_test": "tolerating.equivalence_test",
    "interval_coverage": "running.interval_coverage",
    "mse": "running.mse",
    "nll": "running.nll",
    "pinball_loss": "running.pinball_loss",
    "skce": "pairs.skce",
    "witness": "witnessing.witness",
}
"""Where in this room functions of the package are."""


def __wellcal_function__(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:  # noqa: N807
    """A public function of the package, called with something in partitions."""
    module, _, function = HOMES[name].partition(".")
    found = getattr(importlib.import_module(f"wellcal.dask.{module}"), function)
    try:
        inspect.signature(found).bind(*arguments, **options)
    except TypeError as error:
        raise TypeError(f"{name}(): {error}, for cases in partitions; see the page on Dask") from None
    return found(*arguments, **options)


def refuse(name: str, options: dict[str, Any], remedy: str) -> None:
    """Refuse options that were given and are not known for partitions."""
    for option, value in options.items():
        if value is not None:
            raise ValueError(
                f"{name}: {option} is not supported for cases in partitions; leave it out, or {remedy}"
            )


IN_MEMORY = "sample cases into memory (wellcal.dask.sample_cases) and call it with these"
"""What to do where all else fails."""
