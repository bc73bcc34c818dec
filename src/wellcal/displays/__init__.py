"""Figures: data in the object, drawing in `plot`, in one look. matplotlib is imported when one is drawn."""

from wellcal.displays._style import COLOURS, CYCLE, DASHES, MARKERS, axes_or_new, style, to_svg
from wellcal.displays.comparisons import ComparisonDisplay
from wellcal.displays.coverage import CoverageDisplay
from wellcal.displays.monitors import MonitorDisplay
from wellcal.displays.nulls import NullDisplay
from wellcal.displays.quantiles import QuantileCalibrationDisplay
from wellcal.displays.recalibration import RecalibrationDisplay
from wellcal.displays.reliability import ReliabilityCurve, ReliabilityDisplay
from wellcal.displays.residuals import ResidualDisplay
from wellcal.displays.uniformity import PITDisplay
from wellcal.displays.witness_maps import WitnessMapDisplay
from wellcal.displays.witnesses import WitnessDisplay

__all__ = [
    "COLOURS",
    "CYCLE",
    "DASHES",
    "MARKERS",
    "ComparisonDisplay",
    "CoverageDisplay",
    "MonitorDisplay",
    "NullDisplay",
    "PITDisplay",
    "QuantileCalibrationDisplay",
    "RecalibrationDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "WitnessDisplay",
    "WitnessMapDisplay",
    "axes_or_new",
    "style",
    "to_svg",
]
