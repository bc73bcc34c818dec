"""Groups times directions, over exchangeable sets of targets, with control of multiplicity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.pvalues import check_numbers, tie_width
from wellcal.witnesses.directions import Direction
from wellcal.witnesses.summaries import Cases, splits


@dataclass(frozen=True)
class Candidate:
    """A group of cases that is looked at in a direction."""

    cases: Cases
    direction: Direction


class Candidates:
    """All pairs of group and direction that are looked at, and their sums for sets of targets.

    Parameters
    ----------
    directions
        Directions, each with the summaries whose splits it is looked at in.
    segments
        Groups that are looked at in all directions.
    weights
        Weights of cases, ``(n,)``.
    fewest
        Cases that a group must have at least.
    """

    def __init__(
        self, directions: Sequence[Direction], segments: Sequence[Cases], weights: NDArray, fewest: int
    ) -> None:
        self.weights = weights
        self.listed: list[Candidate] = []
        self._blocks: list[tuple[Direction, NDArray, NDArray]] = []
        everything = Cases("in all cases", np.ones(len(weights), dtype=bool), "all")
        made: dict[tuple[int, ...], tuple[list[Cases], NDArray]] = {}
        for direction in directions:
            key = tuple(id(summary.values) for summary in direction.summaries)
            if key not in made:
                found = [group for summary in direction.summaries for group in splits(summary, fewest)]
                groups = _distinct([everything, *segments, *found], weights, fewest)
                made[key] = groups, np.stack([group.mask * weights for group in groups], axis=1)
            groups, masks = made[key]
            kept = np.flatnonzero(direction.enough(masks.T > 0))
            self.listed.extend(Candidate(groups[k], direction) for k in kept)
            if len(kept):
                self._blocks.append((direction, masks, kept))

    def __len__(self) -> int:
        return len(self.listed)

    def sums(self, targets: NDArray) -> NDArray:
        """Weighted sums ``(r, M)`` over the cases of each candidate, of function minus expectation."""
        if not self._blocks:
            return np.zeros((len(targets), 0))
        parts = [((d.of(targets) - d.expected) @ masks)[:, kept] for d, masks, kept in self._blocks]
        return np.concatenate(parts, axis=1)


def _distinct(groups: Sequence[Cases], weights: NDArray, fewest: int) -> list[Cases]:
    """Groups with enough cases that count, without those that repeat an earlier one; the first stays."""
    seen: set[bytes] = set()
    out: list[Cases] = []
    for group in groups:
        counted = group.mask & (weights > 0)
        key = np.packbits(counted).tobytes()
        if not out or (key not in seen and np.count_nonzero(counted) >= fewest):
            seen.add(key)
            out.append(group)
    return out


@dataclass(frozen=True)
class MaxTest:
    """Sums over exchangeable sets of targets, the observed set first, in units of their spread.

    Attributes
    ----------
    scale
        Root mean square of each sum over all sets, ``(M,)``.
    z
        Standardised sums, ``(R + 1, M)``; zero where there is no spread.
    largest
        Largest absolute value of each set, ``(R + 1,)``.
    """

    scale: NDArray
    z: NDArray
    largest: NDArray

    @classmethod
    def of(cls, sums: NDArray, precision: NDArray | float = 0.0) -> MaxTest:
        """Standardise; sums whose spread is within `precision` are rounding."""
        check_numbers(sums)
        scale = np.sqrt(np.mean(sums**2, axis=0))
        scale = np.where(scale > precision, scale, 0.0)
        z = np.divide(sums, scale, out=np.zeros_like(sums), where=scale > 0)
        return cls(scale, z, np.abs(z).max(axis=1, initial=0.0))

    @property
    def pvalues(self) -> NDArray:
        """Adjusted p-values ``(M,)`` of the observed set: the share of sets whose largest is as large.

        All sets are exchangeable under calibration, and so are their largest values: the probability that
        any p-value is at most a is at most a. If only the targets of some cases follow their predictions,
        this holds for the groups that consist of such cases: control is strong (Westfall, Young, 1993).
        """
        width = tie_width(self.largest)
        ordered = np.sort(self.largest)
        least = cast("NDArray", np.abs(self.z[0]) - width)
        below = np.searchsorted(ordered, least, side="left")
        return (len(ordered) - below) / len(ordered)

    def half_width(self, alpha: float) -> NDArray:
        """Half width ``(M,)`` of a band that any of the sums leaves with probability at most `alpha`."""
        count = len(self.largest)
        # The smallest value that at most floor(alpha (R + 1)) of all sets exceed.
        position = count - 1 - int(np.floor(alpha * count + 1e-9))
        return self.scale * np.sort(self.largest)[max(position, 0)]


def striking(test: MaxTest, count: int, alike: float = 0.5) -> list[int]:
    """Up to `count` candidates by size, without those that vary with one chosen before.

    Two candidates say the same where their sums correlate over sets of targets: groups that overlap,
    directions that imply each other.
    """
    chosen: list[int] = []
    # The drawn sets alone: what is correlated under calibration.
    z = test.z[1:]
    norms = np.sqrt((z**2).sum(axis=0))
    for k in np.argsort(-np.abs(test.z[0]), kind="stable"):
        if len(chosen) == count or norms[k] == 0.0:
            break
        together = np.abs(z[:, chosen].T @ z[:, k]) / (norms[chosen] * norms[k])
        # Sums of zeros and ones correlate by simple fractions: rounding must not decide.
        if float(np.max(together, initial=0.0)) < alike - 1e-9:
            chosen.append(int(k))
    return chosen
