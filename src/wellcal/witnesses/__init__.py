"""Where, and in which direction, predictions are miscalibrated."""

from wellcal.witnesses.compute import witness
from wellcal.witnesses.result import Group, Witness

__all__ = ["Group", "Witness", "witness"]
