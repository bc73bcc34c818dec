"""The largest deviation over groups and directions, with control of multiplicity; which groups to tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import cast

import numpy as np

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.pvalues import check_numbers, tie_width
from wellcal.witnesses.axes import Region
from wellcal.witnesses.candidates import Candidate, Candidates, Scanned
from wellcal.witnesses.directions import Direction
from wellcal.witnesses.refine import PRICE, refined
from wellcal.witnesses.regions import runs

_ALIKE = 0.5  # correlation of groups that say the same, and share of a group that must be new
_SHOWN = 0.7  # share of the deviation of a candidate that a group about it must have
_STARTS = 3  # groups of each grid from which the one that is told is searched


@dataclass(frozen=True)
class Told:
    """A candidate that is told.

    Attributes
    ----------
    candidate
        Group and direction.
    z
        Its standardised sum.
    pvalue
        Its adjusted p-value.
    meant
        The group that it stands for, where that has nearly all cases, and so all are told: what errs among
        the others is still to be told. None where it stands for itself.
    """

    candidate: Candidate
    z: float
    pvalue: float
    meant: Candidate | None = None

    @property
    def covered(self) -> Candidate:
        """Whose cases have been told."""
        return self.candidate if self.meant is None else self.meant


class ScanTest:
    """The largest deviation of all candidates over exchangeable sets of targets, the observed set first.

    Sums are in units of their spread. There are many more small groups than large ones, and more boxes than
    intervals, so that the largest of them is larger by chance. From each the median, over all sets, of the
    largest among its rivals, groups of its kind and about its size, is subtracted: a simple description
    wins over one that is hardly more striking, and boxes cost simple groups little of their power.

    Parameters
    ----------
    candidates
        What is looked at.
    cells
        Sums over cells of all sets, ``(R + 1, C)``.

    Attributes
    ----------
    z
        Standardised sums of the observed set, ``(M,)``; zero where there is no spread.
    excess
        Their absolute values beyond what is usual among their rivals, ``(M,)``.
    pvalues
        Adjusted p-values ``(M,)``: the share of sets whose largest excess is as large.
    """

    def __init__(self, candidates: Scanned, cells: NDArray) -> None:
        check_numbers(cells)
        self._candidates, self._cells = candidates, cells
        self._scales = candidates.scales()
        rivals = np.unique([rival for block in candidates.blocks for rival in np.unique(block.rivals)])
        largest = np.zeros((len(rivals), len(cells)))
        observed: list[NDArray] = [np.zeros(0)]
        for block, scale in zip(candidates.blocks, self._scales, strict=True):
            found = np.zeros(len(scale))
            look = block.grid.looked_up(block.kept, _ratio(np.ones(len(scale)), scale))
            table = np.ascontiguousarray(cells[:, block.cells].T)
            rows, pieces = np.searchsorted(rivals, block.rivals), block.grid.piece[block.kept]
            alike: dict[int, list[slice[int, int]]] = {}  # rivals within a piece stand together
            for run in runs(pieces * len(rivals) + rows):
                alike.setdefault(int(pieces[run.start]), []).append(run)
            for chunk in in_chunks(len(cells), 16 * len(table)):
                for part, z in look(table[:, chunk]):
                    if chunk.start == 0:
                        found[part] = z[:, 0]
                    np.abs(z, out=z)
                    for run in alike[int(pieces[part.start])]:
                        own = z[run.start - part.start : run.stop - part.start]
                        most = largest[rows[run.start], chunk]
                        np.maximum(most, np.max(own, axis=0), out=most)
            observed.append(found)
        usual = np.median(largest, axis=1)
        self.z = np.concatenate(observed)
        own = np.concatenate([np.zeros(0, np.intp), *(block.rivals for block in candidates.blocks)])
        self.excess = np.abs(self.z) - usual[np.searchsorted(rivals, own)]
        most_of_set = np.max(largest.T - usual, axis=1, initial=-np.inf)
        self.pvalues = _adjusted(self.excess, most_of_set)
        self._chance = float(np.median(most_of_set))  # what the largest excess is by chance

    def told(self, k: int) -> Told:
        """A candidate as it was looked at in all sets."""
        return Told(self._candidates[k], float(self.z[k]), float(self.pvalues[k]))

    def striking(self, count: int, alpha: float) -> list[Told]:
        """Up to `count` groups: the one with the largest excess first, then those with other cases.

        A group is told after others only for the cases that have not been told in its direction, or in one
        that varies with it, and only if these are most of it: a part of a group that errs is no news. It ends
        where the excess of such cases is no larger than chance would give.

        Of groups that say the same, and are significant at `alpha`, or as significant as any, the one is told
        under which targets are most likely, after a price for each number in its description: where all
        cases err, the largest deviation is hardly ever that of all, but of nearly all. Its ends need not be
        those of a candidate.
        """
        usual = np.abs(self.z) - self.excess
        left = (np.concatenate([np.zeros(0), *self._scales]) > 0.0) & self._candidates.tellable()
        beyond = self.excess
        chosen: list[Told] = []
        while len(chosen) < count and left.any():
            k = _first_largest(beyond, left)
            if chosen and beyond[k] < self._chance:
                break
            most = max(float(self.pvalues[k]), alpha)
            same = left & (self.pvalues <= most) & (beyond >= min(float(beyond[k]), self._chance))
            k = _first_largest(self._worth, same)
            same &= self._alike(k)
            chosen.append(self._likeliest(k, same, most, [told.covered for told in chosen]))
            rest, new = self._untold([told.covered for told in chosen])
            beyond = np.minimum(np.sign(self.z) * rest, np.abs(self.z)) - usual
            left &= new >= _ALIKE
            left[k] = False
        return chosen

    @cached_property
    def _worth(self) -> NDArray:
        """Twice the log-likelihood of all candidates, less the price of their descriptions, ``(M,)``."""
        candidates = self._candidates
        parts = [np.zeros(0)]
        for block, start in zip(candidates.blocks, candidates.starts, strict=False):
            z = self.z[start : start + len(block.kept)]
            parts.append(candidates.gains(block, z) - PRICE * block.grid.numbers[block.kept])
        return np.concatenate(parts)

    def _alike(self, k: int) -> NDArray:
        """Candidates that say the same as one, ``(M,)``: its direction and sign, most of its cases."""
        some = np.sign(self.z) == np.sign(self.z[k])
        scales = np.concatenate(self._scales)
        some &= self._overlap(self._candidates[k], float(scales[k])) >= _ALIKE
        some[k] = True
        return some

    def _likeliest(self, k: int, same: NDArray, most: float, told: Sequence[Candidate]) -> Told:
        """The best description of what is the same, by candidates and by groups that grow from them."""
        candidates = self._candidates
        best = _first_largest(self._worth, same)
        found = self.told(best)
        if not isinstance(candidates, Candidates):  # cases are not at hand
            return found
        direction, sign = candidates[k].direction, float(np.sign(self.z[k]))
        deviation = candidates.deviation(direction, candidates.untold_cases(direction, told))
        worth = deviation.worth(found.candidate.cases.mask, sign, candidates.numbers(best))
        for region in self._starts(same, direction):
            for outwards in (False, True):
                new = refined(deviation, region, sign, outwards=outwards)
                cases = new.region.cases() if new.worth > worth + 1e-9 else None
                grown = None if cases is None else self._told_as(Candidate(cases, direction), k)
                if grown is not None and grown.pvalue <= most:
                    found, worth = grown, new.worth
        return found

    def _told_as(self, candidate: Candidate, k: int) -> Told | None:
        """A group that grew from candidates; all cases, where it has nearly all of them."""
        candidates = self._candidates
        assert isinstance(candidates, Candidates)
        if not candidates.nearly_all(candidate):
            return self.grown(candidate, k)
        found = self.grown(Candidate(candidates.everything, candidate.direction), k)
        return None if found is None else replace(found, meant=candidate)

    def _starts(self, same: NDArray, direction: Direction) -> list[Region]:
        """Some regions of each grid, those first that are worth most."""
        candidates = self._candidates
        found: list[Region | None] = []
        for block, start in zip(candidates.blocks, candidates.starts, strict=False):
            if block.direction is direction:
                some = start + np.flatnonzero(same[start : start + len(block.kept)])
                best = some[np.argsort(-self._worth[some], kind="stable")[:_STARTS]]
                found.extend(candidates.region(int(s)) for s in best)
        return [region for region in found if region is not None]

    def grown(self, candidate: Candidate, k: int) -> Told | None:
        """A group that is no candidate, with the p-value of one in it; None where that does not help.

        If all cases of the group follow their predictions, those of each candidate within it do: where a
        candidate is significant, so is the group that it is a part of, at the same error rate. But numbers
        that are told are those of the whole group, which must show what the candidate shows: cases that were
        told before, because they are off to the other side, may be in it.
        """
        candidates = self._candidates
        assert isinstance(candidates, Candidates)
        total, scale = candidates.sum_of(candidate)
        if not candidates.enough(candidate) or total * self.z[k] <= 0.0 or scale <= 0.0:
            return None
        if abs(total) < _SHOWN * scale * abs(self.z[k]):
            return None
        overlap = self._overlap(candidate, scale)
        within = (overlap >= _ALIKE) & (np.sign(self.z) == np.sign(total)) & candidates.within(candidate)
        if overlap[k] < _ALIKE or not within.any():
            return None
        return Told(candidate, total / scale, float(self.pvalues[within].min()))

    def _overlap(self, candidate: Candidate, own: float) -> NDArray:
        """Correlations of all candidates with another, of scale `own`; zero for other directions than its."""
        shared = self._candidates.shared(candidate)
        parts = [_ratio(found, scale * own) for found, scale in zip(shared, self._scales, strict=True)]
        return np.concatenate(parts)

    def _untold(self, told: Sequence[Candidate]) -> tuple[NDArray, NDArray]:
        """Standardised sums over cases that have not been told, and the share of the variance they have."""
        sums: list[NDArray] = []
        shares: list[NDArray] = []
        for (total, variance), scale in zip(self._candidates.untold(told), self._scales, strict=True):
            sums.append(_ratio(total, np.sqrt(variance)))
            shares.append(_ratio(variance, scale**2))
        return np.concatenate(sums), np.concatenate(shares)


def _first_largest(values: NDArray, among: NDArray) -> int:
    """The first of those that rounding may tell apart."""
    some = np.where(among, values, -np.inf)
    return int(np.argmax(some >= some.max() - 1e-9))


def _ratio(sums: NDArray, scale: NDArray) -> NDArray:
    """Sums in units of their spread; zero where there is none."""
    known = scale > 0
    return sums * np.where(known, 1.0 / np.where(known, scale, 1.0), 0.0)


def _adjusted(observed: NDArray, largest: NDArray) -> NDArray:
    """Share of sets ``(R + 1,)`` whose largest value is at least as large as each of the observed.

    All sets are exchangeable under calibration, and so are their largest values: the probability that
    any p-value is at most a is at most a. If only the targets of some cases follow their predictions,
    this holds for the groups that consist of such cases: control is strong (Westfall, Young, 1993).
    """
    width = tie_width(largest)
    ordered = np.sort(largest)
    below = np.searchsorted(ordered, cast("NDArray", observed - width), side="left")
    return (len(ordered) - below) / len(ordered)


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
        z = _ratio(sums, scale)
        return cls(scale, z, np.abs(z).max(axis=1, initial=0.0))

    @property
    def pvalues(self) -> NDArray:
        """Adjusted p-values ``(M,)`` of the observed set: the share of sets whose largest is as large."""
        return _adjusted(np.abs(self.z[0]), self.largest)

    def half_width(self, alpha: float) -> NDArray:
        """Half width ``(M,)`` of a band that any of the sums leaves with probability at most `alpha`."""
        count = len(self.largest)
        # The smallest value that at most floor(alpha (R + 1)) of all sets exceed.
        position = count - 1 - int(np.floor(alpha * count + 1e-9))
        return self.scale * np.sort(self.largest)[max(position, 0)]
