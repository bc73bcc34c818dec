"""Predicted quantiles: where targets fall among them, and how often they should."""

from wellcal.measures.quantiles._pit import pit
from wellcal.measures.quantiles.calibration import QuantileCalibration, quantile_calibration
from wellcal.measures.quantiles.coverage import IntervalCoverage, interval_coverage

__all__ = ["IntervalCoverage", "QuantileCalibration", "interval_coverage", "pit", "quantile_calibration"]
