"""Figures of the page, in the look of :mod:`wellcal.displays`."""

from reproduction.page.displays.curves import Curve, CurvesDisplay
from reproduction.page.displays.densities import DensityDisplay
from reproduction.page.displays.proportions import ProportionsDisplay

__all__ = ["Curve", "CurvesDisplay", "DensityDisplay", "ProportionsDisplay"]
