"""Fair bets against a model: scores of a target and of draws, turned into e-values."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray

ETAS = (0.1, 0.2, 0.4, 0.8)
"""How bold the bets are, in standard deviations of a score."""

_FLAT = 1e-12  # spread of a witness, relative to its size, that is rounding


def standardised(u: NDArray) -> NDArray:
    """Scores ``(..., R + 1)`` with mean zero and variance one over the places; zero where they are all alike.

    The order of places does not matter: what is exchangeable stays so.
    """
    if not np.isfinite(u).all():
        raise ValueError("the witness is not finite: check the kernel, and what functions of yours return")
    size = np.max(np.abs(u), axis=-1, keepdims=True)
    centred = u - np.mean(u, axis=-1, keepdims=True)
    spread = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True))
    flat = spread <= _FLAT * size
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread))


def log_bets(u: NDArray, etas: Sequence[float] = ETAS) -> NDArray:
    """log e(eta), ``(..., len(etas))``, from scores ``(..., R + 1)`` of the target and of draws.

    The mean of exp over all R + 1 places of the target is 1, whatever u: a fair bet.

    Examples
    --------
    >>> u = np.array([[2.0, 0.5, -1.0]])
    >>> shifted = [np.exp(log_bets(np.roll(u, k, axis=1))) for k in range(3)]
    >>> np.mean(shifted, axis=0).round(12)
    array([[1., 1., 1., 1.]])
    """
    out = np.empty((*u.shape[:-1], len(etas)))
    for cases in in_chunks(len(u), len(etas) * (u.size // max(1, len(u))), within=budget.cache // 4):
        bold = np.asarray(etas)[:, None] * u[cases, ..., None, :]
        most = bold.max(axis=-1)
        first = bold[..., 0] - most
        bold -= most[..., None]
        total = np.exp(bold, out=bold).sum(axis=-1)
        out[cases] = first + np.log(u.shape[-1]) - np.log(total)
    return out
