"""Figures: data in the object, drawing in `plot`, in one look. matplotlib is imported when one is drawn.

Displays are made by ``from_predictions(y, pred, ...)``, or by ``from_result`` where there is a result
already. These arguments mean the same in all of them:

ax
    matplotlib's axes; None makes a new figure. Give the axes of one model to the next, and both are told
    apart by colour, dash and marker. Names stand at the curves where there is room, and else in one legend.
    Axes of yours become smaller where their part of the figure has no room for what is written around them,
    unless a layout of matplotlib arranges them.
name
    Name of the model: at its curve or in the legend where there are several, else in the small print.
test, result
    The title says in one line what was found. ``result=`` takes the result of a test that has been run,
    ``test=True`` runs :func:`wellcal.calibration_test` at the error rate of all verdicts, 0.05, and so does
    the default, None, for up to 1,000 cases and 50,000 numbers in draws: the same seed gives the verdict of
    :func:`wellcal.report`. With more, and with ``test=False``, the title says what is seen, such as how many
    bins lie outside of the band, and calls no model miscalibrated. With several models on one axes there is a
    line for each.
rng
    Seed or generator: of the test, of bands, and of values that are randomised. None is the default seed, 0,
    of all functions, so that all figures of a model say the same, and what the test says by itself.
level
    Share of calibrated models whose whole curve lies in the grey band.

A display holds its data as attributes, has the axes and the figure it was drawn on in ``ax_`` and
``figure_``, and draws itself again with ``plot(ax)``. ``with wellcal.displays.style("dark"):`` makes figures
for dark paper; without it they are on the paper of matplotlib's style.
"""

from wellcal.displays._style import COLOURS, CYCLE, DASHES, MARKERS, axes_or_new, style, to_svg
from wellcal.displays.comparisons import ComparisonDisplay
from wellcal.displays.coordinates import CoordinatesDisplay
from wellcal.displays.correlations import CorrelationsDisplay
from wellcal.displays.coverage import CoverageDisplay
from wellcal.displays.discrepancies import DiscrepancyDisplay
from wellcal.displays.monitors import MonitorDisplay
from wellcal.displays.nulls import NullDisplay
from wellcal.displays.plans import PowerDisplay
from wellcal.displays.quantiles import QuantileCalibrationDisplay
from wellcal.displays.recalibration import RecalibrationDisplay
from wellcal.displays.reliability import ReliabilityCurve, ReliabilityDisplay
from wellcal.displays.residuals import ResidualDisplay
from wellcal.displays.segments import SegmentsDisplay
from wellcal.displays.tolerances import ToleranceDisplay
from wellcal.displays.uniformity import PITDisplay
from wellcal.displays.witness_maps import WitnessMapDisplay
from wellcal.displays.witnesses import WitnessDisplay

__all__ = [
    "COLOURS",
    "CYCLE",
    "DASHES",
    "MARKERS",
    "ComparisonDisplay",
    "CoordinatesDisplay",
    "CorrelationsDisplay",
    "CoverageDisplay",
    "DiscrepancyDisplay",
    "MonitorDisplay",
    "NullDisplay",
    "PITDisplay",
    "PowerDisplay",
    "QuantileCalibrationDisplay",
    "RecalibrationDisplay",
    "ReliabilityCurve",
    "ReliabilityDisplay",
    "ResidualDisplay",
    "SegmentsDisplay",
    "ToleranceDisplay",
    "WitnessDisplay",
    "WitnessMapDisplay",
    "axes_or_new",
    "style",
    "to_svg",
]
