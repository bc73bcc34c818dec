"""Calibration errors from bins of similar predictions: ECE and MCE."""

from wellcal.measures.binned.binning import Binning, EqualMassBins, MedianVarianceBins, UniformBins
from wellcal.measures.binned.calibration_error import ece, mce
from wellcal.measures.binned.tables import BinTable

__all__ = ["BinTable", "Binning", "EqualMassBins", "MedianVarianceBins", "UniformBins", "ece", "mce"]
