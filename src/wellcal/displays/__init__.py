"""Figures: data in the object, drawing in `plot`, in one look. matplotlib is imported when one is drawn."""

from wellcal.displays.curves import Curve, CurvesDisplay
from wellcal.displays.densities import DensityDisplay
from wellcal.displays.proportions import ProportionsDisplay
from wellcal.displays.quantiles import QuantileCalibrationDisplay
from wellcal.displays.style import COLOURS, CYCLE, MARKERS, style

__all__ = [
    "COLOURS",
    "CYCLE",
    "MARKERS",
    "Curve",
    "CurvesDisplay",
    "DensityDisplay",
    "ProportionsDisplay",
    "QuantileCalibrationDisplay",
    "style",
]
