"""Figures: data in the object, drawing in `plot`, in one look. matplotlib is imported when one is drawn."""

from wellcal.displays._style import COLOURS, CYCLE, MARKERS, axes_or_new, style
from wellcal.displays.quantiles import QuantileCalibrationDisplay

__all__ = ["COLOURS", "CYCLE", "MARKERS", "QuantileCalibrationDisplay", "axes_or_new", "style"]
