"""Figures: data in the object, drawing in `plot`, in one look. matplotlib is imported when one is drawn."""

from wellcal.displays._style import COLOURS, CYCLE, DASHES, MARKERS, axes_or_new, style, to_svg
from wellcal.displays.quantiles import QuantileCalibrationDisplay
from wellcal.displays.reliability import ReliabilityCurve, ReliabilityDisplay
from wellcal.displays.uniformity import PITDisplay

__all__ = [
    "COLOURS",
    "CYCLE",
    "DASHES",
    "MARKERS",
    "PITDisplay",
    "QuantileCalibrationDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "axes_or_new",
    "style",
    "to_svg",
]
