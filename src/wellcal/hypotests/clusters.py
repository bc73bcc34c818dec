"""Clusters of dependent cases: their labels, and whether there are enough of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.warnings import advise
from wellcal.columns.labels import label_of_each

_FEW = 6  # units with signs below which p cannot fall under 0.05


def number_clusters(groups: Any, n_samples: int) -> NDArray | None:
    """Clusters numbered 0 .. G - 1 from a label for each case; None where no cluster has two cases.

    Examples
    --------
    >>> number_clusters(["b", "a", "b"], 3)
    array([1, 0, 1])
    >>> number_clusters(["b", "a", "c"], 3) is None
    True
    """
    if groups is None:
        return None
    remedy = "give cases that stand alone a label of their own"
    labels = label_of_each(groups, "groups", n_samples, remedy)
    try:
        found: NDArray = np.unique(labels, return_inverse=True)[1]
    except TypeError:  # labels of several types have no order
        numbers: dict[Any, int] = {}
        found = np.array([numbers.setdefault(label, len(numbers)) for label in labels])
    # Cases that all stand alone are independent, and are treated as if nothing had been said.
    return None if n_samples > 1 and int(found.max()) + 1 == n_samples else found


def check_clusters(count: int, what: str = "clusters", *, patterns: bool = True, few: int = 0) -> None:
    """Whether there are enough clusters, or cases, for random signs of them to tell anything.

    Parameters
    ----------
    count
        How many there are.
    what
        What they are called.
    patterns
        Whether multipliers are signs, of which there are finitely many patterns.
    few
        Number below which a test with signs may be far from its limit.
    """
    if count < 2:
        raise ValueError(
            f"groups must name at least 2 clusters, found {count}: pairs within a cluster are not used"
        )
    if count < _FEW and patterns:
        advise(
            f"{count} {what} have {2 ** (count - 1)} different patterns of signs, so that p rarely "
            f"falls below {2.0 ** (1 - count):.2g}; more {what} are needed to reject at 0.05"
        )
    elif count < _FEW and what == "clusters":
        advise(f"{count} clusters are few: the test is valid for many of them only, and rarely rejects")
    elif count < few:
        advise(
            f"{count} clusters are few: signs of clusters make a test that is valid for many of them, and "
            "its error rate may be off; collect more clusters rather than more cases of each"
        )
