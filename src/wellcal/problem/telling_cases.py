"""Cases that say more than others: what is asked of some cases must not miss them."""

from __future__ import annotations

import numpy as np

from wellcal._arrays.namespaces import Array, NDArray, to_numpy
from wellcal.problem.problem import Problem

_FEW_SAY_MOST = 100.0  # times the mean of h_ii


def chances_by(*sizes: Array) -> NDArray:
    """Chances of cases to be drawn: as many parts as there are `sizes`, each in proportion to one of them.

    What is negative, or no number, counts as zero.

    Examples
    --------
    >>> chances_by(np.ones(4), np.array([2.0, 0.0, 0.0, 0.0]))
    array([0.625, 0.125, 0.125, 0.125])
    """
    found = np.zeros(len(sizes[0]))
    for given in sizes:
        size = np.asarray(to_numpy(given), dtype=np.float64)
        size = np.where(np.isfinite(size), np.maximum(size, 0.0), 0.0)
        if (largest := float(size.max())) > 0.0:
            size = size / largest
            found += size / size.sum()
    return found / found.sum()


def few_say_most(own: Array) -> bool:
    """Whether some h_ii of all cases is far above their mean.

    Examples
    --------
    >>> few_say_most(np.ones(1000)), few_say_most(np.array([1.0] + 999 * [1e-4]))
    (False, True)
    """
    return float(own.max()) > _FEW_SAY_MOST * float(own.mean())


def uneven_chances(problem: Problem) -> NDArray | None:
    """Chances by which cases are to be looked at, half alike and half by h_ii, where few of them say most.

    None where no case says much more than others: any are as good as others then. h_ij^2 is at most
    h_ii h_jj, so that what some pairs are off by may be most of what all are, and hardly ever seen.
    """
    own = problem.own_values()
    return chances_by(np.ones(problem.n), own) if few_say_most(own) else None
