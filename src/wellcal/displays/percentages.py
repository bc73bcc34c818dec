"""Shares in per cent, as people write them: for the ticks of axes, and for sentences of pictures."""

from __future__ import annotations

import numpy as np

_IN_FULL = 999.5  # from where on numbers of three digits would need an exponent


def percent(share: float, _: object = None) -> str:
    """A share in per cent, also for the ticks of an axis.

    Examples
    --------
    >>> percent(0.9), percent(0.1234), percent(12.5), percent(2e-7)
    ('90%', '12.3%', '1,250%', '0.00002%')
    """
    value = 100.0 * share
    if abs(value) >= _IN_FULL:
        return f"{value:,.0f}%"
    return f"{np.format_float_positional(value, precision=3, fractional=False, trim='-')}%"


def signed_percent(share: float, _: object = None) -> str:
    """The same of a difference, with its sign.

    Examples
    --------
    >>> signed_percent(0.125), signed_percent(-0.125), signed_percent(0.0)
    ('+12.5%', '-12.5%', '0')
    """
    return f"{'-' if share < 0.0 else '+'}{percent(abs(share))}" if share else "0"
