"""Measures of cases that come in parts: each is kept as sums that can be added up."""

from wellcal.measures.running.table import Measured, RunningMeasures

__all__ = ["Measured", "RunningMeasures"]
