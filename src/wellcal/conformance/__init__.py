"""Checks for kernels and families of your own.

A family derives from :class:`wellcal.Predictions`, declares its parameters, and can be sampled or has a
quantile function. A kernel is a :class:`wellcal.kernels.Callable`, or derives from
:class:`wellcal.kernels.TargetKernel` or :class:`wellcal.kernels.Radial`. :func:`check_predictions` and
:func:`check_kernel` compare them with simulation, and with the laws that everything in this library obeys;
call them in your own tests. All checks are made with a fixed seed: what passes once passes again.
"""

from wellcal.conformance.families import check_predictions
from wellcal.conformance.kernels import check_kernel
from wellcal.conformance.report import ConformanceError, Report

__all__ = ["ConformanceError", "Report", "check_kernel", "check_predictions"]
