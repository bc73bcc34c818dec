"""Recalibration after training: temperature scaling, and an honest look at what it did."""

from wellcal.scaling.cross_fitting import CrossFitted, cross_fit
from wellcal.scaling.recalibrator import NotFittedError, TemperatureScaling
from wellcal.scaling.temperature import apply_temperature

__all__ = ["CrossFitted", "NotFittedError", "TemperatureScaling", "apply_temperature", "cross_fit"]
