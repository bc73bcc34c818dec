"""What families know of their own scores: registered here, or in a user's own file.

Nothing needs to be registered. Without a rule the CRPS is found by quadrature of the distribution function,
and the energy score from atoms; a rule makes them quicker, and exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wellcal._arrays.namespaces import Array
from wellcal._arrays.registry import Rules
from wellcal.predictions import Predictions

CrpsRule = Callable[[Any, Array], Array]
EnergyRule = Callable[[Any, Array, float], Array]

CRPS_RULES: Rules[CrpsRule] = Rules("a CRPS", exact=True)
"""Functions ``rule(predictions, targets)`` that return scores ``(n,)``, by family.

Targets are as `check_targets` returned them. A function that only NumPy can evaluate is wrapped by
:func:`wellcal.measures.scores.row_functions.by_rows`, which adds the other libraries and derivatives.
"""

MIXTURE_CRPS_RULES: Rules[CrpsRule] = Rules("a CRPS of mixtures", exact=True)
"""The same for mixtures, by the family of components; it serves where all components have this one rule."""

ENERGY_RULES: Rules[EnergyRule] = Rules("an energy score", exact=True)
"""Functions ``rule(predictions, targets, power)`` that return scores ``(n,)``, by family.

Targets are ``(n, d)``, with d = 1 for numbers. Predictions are of that family, or a mixture of families that
have this one rule.
"""


def shared_rule(rules: Rules[Any], predictions: Predictions) -> Any:
    """The rule that all components of a batch have in common, or None."""
    found = {rules.find(type(part)) for part in predictions.parts}
    return found.pop() if len(found) == 1 else None
