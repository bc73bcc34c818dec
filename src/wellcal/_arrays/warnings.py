"""Warnings at the line of the user's code that called the package."""

from __future__ import annotations

import sys
import warnings

_PACKAGE = __name__.partition(".")[0]


def advise(message: str) -> None:
    """Warn at the line outside this package that led here: the one that its author can change.

    Examples
    --------
    >>> with warnings.catch_warnings(record=True, action="always") as seen:
    ...     advise("take more resamples")
    >>> print(seen[0].message)
    take more resamples
    """
    depth = 1
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and _inside(frame.f_globals.get("__name__", "")):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=depth + 1)


def _inside(module: str) -> bool:
    return module == _PACKAGE or module.startswith(f"{_PACKAGE}.")
