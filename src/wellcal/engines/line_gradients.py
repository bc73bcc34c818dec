"""Features of normals on a line less those of targets, and their derivatives, by one kernel of Triton each.

A step of training with few cases takes as long as its kernels are many, whatever they do. Left to PyTorch,
these features and their derivatives are forty of them.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Self

import numpy as np

from wellcal._arrays.namespaces import Array, from_numpy
from wellcal.engines import triton_pairs
from wellcal.expectations.differences import OnALine
from wellcal.expectations.gaussian_features import NORM
from wellcal.expectations.tensor_features import features_by_steps

_ROWS = 16  # of cases
_MOST_FEATURES = 256  # which are in registers, for so many cases


@dataclass(frozen=True)
class LineFeatures:
    """Normals on a line and their targets, for kernels that make features of them.

    Attributes
    ----------
    line
        What features are made of.
    numbers
        Length scale, origin and factor of the features, and their centres.
    """

    line: OnALine
    numbers: Array

    @classmethod
    def of(cls, line: OnALine) -> Self | None:
        """The same, with what kernels read in one array; None for too many features."""
        grid = line.grid
        if grid.size > _MOST_FEATURES:
            return None
        first = [grid.lengthscale, grid.origin[0], NORM * line.factor]
        return cls(line, from_numpy(np.concatenate([first, grid.centres[0]]), line.loc))

    def differences(self) -> Array:
        """Features ``(n, M)``, without gradients."""
        line = self.line
        given = [array.detach().contiguous() for array in (line.loc, line.variance, line.targets)]
        out = given[0].new_empty((len(line.loc), line.grid.size))
        self._start("line_differences", *given, self.numbers, out)
        return out

    def slopes(self, by_features: Array) -> tuple[Array, Array]:
        """Derivatives by locations and variances ``(n,)``, from those by features ``(n, M)``."""
        loc, variance = (array.detach().contiguous() for array in (self.line.loc, self.line.variance))
        by_loc, by_variance = (sys.modules["torch"].empty_like(loc) for _ in range(2))
        self._start("line_slopes", loc, variance, self.numbers, by_features.contiguous(), by_loc, by_variance)
        return by_loc, by_variance

    def by_steps(self, loc: Array, variance: Array) -> Array:
        """Features by operations that PyTorch differentiates as often as it likes."""
        scale, origin, factor = (float(number) for number in self.numbers[:3])
        centres, targets = self.numbers[3:] + origin, self.line.targets[:, None]
        said = features_by_steps(loc[:, None], variance[:, None], centres, scale, factor)
        return said - features_by_steps(targets, targets.new_zeros(()), centres, scale, factor)

    def _start(self, name: str, *arguments: Array) -> None:
        n, count = len(self.line.loc), self.line.grid.size
        size = triton_pairs.power_of_two(count)
        triton_pairs.start(name, -(-n // _ROWS), *arguments, n, count, ROWS=_ROWS, BK=size, num_warps=4)
