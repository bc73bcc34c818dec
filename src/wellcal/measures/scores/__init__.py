"""Proper scores of whole distributions: Brier score, CRPS, energy score."""

from wellcal.measures.scores.energy import energy_score
from wellcal.measures.scores.quadratic import brier
from wellcal.measures.scores.ranked import crps

__all__ = ["brier", "crps", "energy_score"]
