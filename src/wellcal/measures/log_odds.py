"""The line that fits outcomes to predicted log odds best: a logistic regression on one number."""

from __future__ import annotations

import numpy as np
from scipy import special

from wellcal._arrays.namespaces import NDArray

_STEPS, _HALVINGS = 25, 30  # of Newton's method, and of one of its steps
_ENOUGH = 1e-8  # change of the line
_SINGULAR = 1e12  # condition from which there is no one best line


def fitted_line(y: NDArray, logit: NDArray, weights: NDArray | None = None, held: float = 0.0) -> NDArray:
    """Intercept and slope ``(2,)`` of the largest likelihood, by Newton's method from zero.

    Parameters
    ----------
    y, logit
        Outcomes and predicted log odds ``(n,)``.
    weights
        Of cases; None counts each as one.
    held
        How strongly the line is held to what was predicted, intercept 0 and slope 1, by a penalty of half
        the squared distance, for each unit of weight. With any there is always one best line, also where
        outcomes are separated or all predictions are the same; without it nan is returned there.

    Notes
    -----
    Steps that lower the likelihood are halved: full ones from slope 1 overshoot where predictions are far
    too extreme, and never come back.

    Examples
    --------
    >>> x = np.linspace(-2.0, 2.0, 5)
    >>> fitted_line(special.expit(0.3 + 0.7 * x), x).round(6)
    array([0.3, 0.7])
    >>> y = np.array([0.0, 0.0, 1.0, 1.0])
    >>> fitted_line(y, np.full(4, 0.7)), fitted_line(y, np.full(4, 0.7), held=1e-6).round(2)
    (array([nan, nan]), array([-0.47,  0.67]))
    """
    design = np.stack([np.ones_like(logit), logit], axis=1)
    each = np.ones_like(logit) if weights is None else weights
    penalty = held * float(each.sum())
    given, beta = np.array([0.0, 1.0]), np.zeros(2)

    def likelihood(at: NDArray) -> float:
        odds = design @ at
        fit = float(each @ (y * odds - np.logaddexp(0.0, odds)))
        return fit - 0.5 * penalty * float(np.sum((at - given) ** 2))

    reached = likelihood(beta)
    for _ in range(_STEPS):
        p = special.expit(design @ beta)
        information = (design * (each * p * (1.0 - p))[:, None]).T @ design + penalty * np.eye(2)
        if not penalty and not np.linalg.cond(information) < _SINGULAR:
            break
        step = np.linalg.solve(information, design.T @ (each * (y - p)) - penalty * (beta - given))
        if np.abs(step).max() < _ENOUGH:
            return beta + step
        for _ in range(_HALVINGS):
            found = likelihood(beta + step)
            if found >= reached - 1e-12 * abs(reached):
                break
            step = 0.5 * step
        beta, reached = beta + step, max(found, reached)  # pyright: ignore[reportPossiblyUnboundVariable]
    if not penalty:
        return np.full(2, np.nan)
    return beta if reached >= likelihood(given) else given
