"""Deprecated: bins are reached as ``wellcal.UniformBins`` and so on, measures as ``wellcal.ece``."""

from wellcal._arrays.deprecation import renamed_names

_MOVED = ("BinTable", "Binning", "EqualMassBins", "MedianVarianceBins", "UniformBins", "ece", "mce")

__getattr__ = renamed_names(__name__, {name: f"wellcal.{name}" for name in _MOVED})
