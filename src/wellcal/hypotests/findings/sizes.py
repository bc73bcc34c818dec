"""Findings and the yardstick beside them: one direction, or none."""

from __future__ import annotations

import math
from collections.abc import Sequence

from wellcal.hypotests.findings.finding import Finding
from wellcal.measures import yardstick
from wellcal.measures.estimate import Estimate
from wellcal.measures.yardstick import Yardstick
from wellcal.predictions.alterations import MEANS, SPREADS, TEMPERATURE

OF_ALL_CASES = {
    SPREADS: {"spread": 1, "dispersion": -1, "coverage": 1, "range": -1},
    TEMPERATURE: {"slope": 1, "temperature": -1},
    MEANS: {"shift": 0},
}
"""Findings about all cases that give a kind of yardstick its direction.

1 where a size below 1, or a share below the expected one, means predictions that are too small, -1 where it
means too large, and 0 where the likelihood of the targets says it.
"""


def yardstick_with(estimate: Estimate, findings: Sequence[Finding]) -> Yardstick | None:
    """The yardstick of an estimate beside what was found: they say the same, or it has no direction.

    Counts that are more dispersed than predicted are measured by spreads that are too small.
    """
    size = (estimate.yardstick_of(SPREADS) if _too_dispersed(findings) else None) or estimate.yardstick
    if size is None:
        return None
    known = OF_ALL_CASES[size.kind]
    for place, found in enumerate(findings):
        # Shares are off where targets are shifted, too: they have a direction where nothing is clearer.
        if found.kind in known and found.size is not None and (place == 0 or found.expected is None):
            sign = known[found.kind]
            own = 1 if size.high > 1.0 else -1
            right = 1.0 if found.expected is None else found.expected
            return size.towards(own if sign == 0 else sign if found.size > right else -sign)
    return size.towards(None)


def surely_not_slight(estimate: Estimate, findings: Sequence[Finding]) -> bool:
    """Whether the yardstick beside what was found is not slight, for less than it takes to find it."""
    cases = estimate.cases
    if cases is None or estimate.known_yardstick is not None:  # nothing to find, or found already
        return False
    root = float(estimate) if estimate.name == "KCE" else math.sqrt(max(float(estimate), 0.0))
    kinds = (SPREADS, None) if _too_dispersed(findings) else (None,)
    return all(yardstick.surely_not_slight(cases, root, kind) for kind in kinds)


def _too_dispersed(findings: Sequence[Finding]) -> bool:
    """Whether counts are more dispersed than predicted, and not shifted: errors in spreads measure that."""
    first = next((found for found in findings if found.kind in ("shift", "dispersion")), None)
    return first is not None and first.kind == "dispersion" and (first.size or 0.0) > 1.0
