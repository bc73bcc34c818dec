"""Figures: data in the object, drawing in `plot`, in one look. matplotlib is imported when one is drawn.

Displays are made by ``from_predictions(y, pred, ...)``, or by ``from_result`` where there is a result
already. These arguments mean the same in all of them:

ax
    matplotlib's axes; None makes a new figure. Give the axes of one model to the next, and both are told
    apart by colour, dash and marker, in one legend.
name
    Name of the model, for the legend and the small print.
test, result
    What a test says of the model becomes the title: ``test=True`` runs :func:`wellcal.calibration_test`, and
    ``result=`` takes the result of one that has been run. Without them the title asks the question that the
    figure answers.
rng
    Seed or generator: of the test, of bands, and of values that are randomised.
level
    Share of calibrated models whose whole curve lies in the grey band.

A display holds its data as attributes, has the axes and the figure it was drawn on in ``ax_`` and
``figure_``, and draws itself again with ``plot(ax)``. ``with wellcal.displays.style("dark"):`` makes figures
for dark paper.
"""

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
