"""Where, and in which direction, predictions are miscalibrated."""

from wellcal.witness.compute import witness
from wellcal.witness.result import Group, Witness

__all__ = ["Group", "Witness", "witness"]
