"""Many predictions of counts as sums of a few measures that they span, whatever they differ in.

Smooth distributions are nearly dependent: thousands of negative binomial ones with dispersions of their own
span less than a hundred dimensions to rounding. Random sums of all predictions find the dimensions, and what
is left of each prediction is looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import linalg

from wellcal._arrays.chunks import budget, in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.expectations.lattice import Nodes
from wellcal.predictions import Predictions

_FEWEST = 256  # predictions, and nodes, from which fewer dimensions pay
_SHARE = 4  # nodes for each dimension, at least
_SPARE = 8  # random sums beyond the dimensions that they find
_RESOLVED = 1e-13  # probability that may be left out of a prediction

NOTHING = 1e-15
"""Size of a dimension that is rounding, for random sums of one prediction."""


@dataclass(frozen=True)
class CountSpan:
    """Measures that span a batch.

    Attributes
    ----------
    nodes
        The lattice on which they live.
    axes
        Their masses at its nodes, orthonormal: ``(r, G)``.
    """

    nodes: Nodes
    axes: NDArray

    @property
    def size(self) -> int:
        """Number of measures."""
        return len(self.axes)

    @property
    def probabilities(self) -> NDArray:
        """Their values at the nodes, ``(r, G)``."""
        return self.axes / self.nodes.lattice.weights()

    def weights(self, predictions: Predictions) -> NDArray:
        """Weights ``(n, r)`` of the measures in predictions of the batch."""
        lattice = self.nodes.lattice
        return (np.asarray(lattice.probabilities(predictions)) * lattice.weights()) @ self.axes.T


def span_of(predictions: Predictions, nodes: Nodes, most: int) -> tuple[CountSpan, NDArray] | None:
    """What a batch in NumPy spans, and its weights; None where that is no less, or a table exceeds `most`."""
    lattice, n = nodes.lattice, len(predictions)
    if min(n, lattice.size) < _FEWEST or n * lattice.size > most:
        return None
    masses = np.asarray(lattice.probabilities(predictions, nodes.blocks[0]))
    masses *= lattice.weights()
    sums = np.random.default_rng(0).standard_normal((lattice.size // _SHARE, n)) @ masses
    found = linalg.qr(sums.T, mode="economic", pivoting=True, overwrite_a=True, check_finite=False)
    columns, triangle = cast("tuple[NDArray, NDArray, Any]", found)[:2]
    size = int(np.count_nonzero(np.abs(np.diag(triangle)) > NOTHING * np.sqrt(n)))
    if size + _SPARE > len(sums):
        return None
    axes = np.ascontiguousarray(columns[:, :size].T)
    weights = masses @ axes.T
    for rows in in_chunks(n, lattice.size, within=budget.cache):
        rest = weights[rows] @ axes
        rest -= masses[rows]
        if not float(np.abs(rest, out=rest).sum(axis=1).max()) <= _RESOLVED:
            return None
    return CountSpan(nodes, axes), weights
