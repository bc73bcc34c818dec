"""One call that says what a person would ask for: is it wrong, how much, where, and what would mend it."""

from wellcal.reporting._report import report
from wellcal.reporting.family_pictures import pictures_of
from wellcal.reporting.pictures import ReportFigure
from wellcal.reporting.pieces import Choices, ExampleCase, Mended, SegmentReport, Segments, WorstGroup
from wellcal.reporting.result import ModelReport, Report

__all__ = [
    "Choices",
    "ExampleCase",
    "Mended",
    "ModelReport",
    "Report",
    "ReportFigure",
    "SegmentReport",
    "Segments",
    "WorstGroup",
    "pictures_of",
    "report",
]
