"""Calibration in PyTorch: a loss for training and a metric for validation.

`CalibrationMetric` is made on first use. It is a torchmetrics metric where torchmetrics is installed, which
this module neither needs nor imports by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wellcal.torch.loss import SKCELoss

if TYPE_CHECKING:
    from wellcal.torch.metric import CalibrationMetric

__all__ = ["CalibrationMetric", "SKCELoss"]


def __getattr__(name: str) -> Any:
    if name == "CalibrationMetric":
        from wellcal.torch.metric import CalibrationMetric

        return CalibrationMetric
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
