"""Proper scores of whole distributions: Brier score, CRPS, energy score."""

from wellcal.proper_scores.energy import energy_score
from wellcal.proper_scores.quadratic import brier
from wellcal.proper_scores.ranked import crps

__all__ = ["brier", "crps", "energy_score"]
