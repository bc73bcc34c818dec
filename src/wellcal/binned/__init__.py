"""Calibration errors from bins of alike predictions: ECE and MCE."""

from wellcal.binned.binning import Binning, EqualMassBins, MedianVarianceBins, UniformBins
from wellcal.binned.calibration_error import ece, mce
from wellcal.binned.tables import BinTable

__all__ = ["BinTable", "Binning", "EqualMassBins", "MedianVarianceBins", "UniformBins", "ece", "mce"]
