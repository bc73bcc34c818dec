"""Recalibration after training: temperature scaling, and an honest look at what it did."""

from wellcal.recalibration.cross_fitting import CrossFitted, cross_fit
from wellcal.recalibration.recalibrator import NotFittedError, TemperatureScaling
from wellcal.recalibration.temperature import apply_temperature

__all__ = ["CrossFitted", "NotFittedError", "TemperatureScaling", "apply_temperature", "cross_fit"]
