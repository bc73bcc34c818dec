"""The two sides of an error, too small and too large: how far it goes on each, in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from wellcal.measures.wording import RATIOS, amount, ratio_told, share_of, wrong_phrase


class Bound(NamedTuple):
    """How far an error may go to one side, predicted over true.

    Attributes
    ----------
    ratio
        The largest error to that side; of an open one, the largest that was looked at.
    open
        Whether it may be larger still, so that there is no bound.
    """

    ratio: float
    open: bool = False


class Side(NamedTuple):
    """The size of an error to one side, with its interval; all of them predicted over true.

    Attributes
    ----------
    ratio, low, high
        The size and the ends of its interval, the nearer to 1 first.
    beyond, high_beyond
        Whether `ratio` and `high` are only the largest that was looked at.
    """

    ratio: float
    low: float
    high: float
    beyond: bool = False
    high_beyond: bool = False

    @property
    def bound(self) -> Bound:
        """How far it may go."""
        return Bound(self.high, self.high_beyond)

    def sized(self, kind: str) -> str:
        """The size with its interval, to be read after "spreads are".

        Examples
        --------
        >>> Side(0.64, 0.75, 0.54).sized("spreads"), Side(2.7, 1.5, 10.0, False, True).sized("temperature")
        ('36% too small (25% to 46%)', '2.7 times too high (1.5 to 10 times or more)')
        """
        size, ends, _ = ratio_told(self.ratio, (min(self.low, self.high), max(self.low, self.high)))
        if self.beyond or self.high_beyond:
            ends = f"{amount(self.low) if self.low == self.high else ends} or more"
        return f"{size} {way(kind, self.ratio)} ({ends})"


def way(kind: str, ratio: float) -> str:
    """To which side an error is.

    Examples
    --------
    >>> way("spreads", 0.8), way("temperature", 1.2)
    ('too small', 'too high')
    """
    _, below, above = RATIOS[kind]
    return f"too {below if ratio < 1.0 else above}"


def either_side(kind: str, bounds: Iterable[Bound], most: str = "") -> str:
    """How wrong something is on one side or the other, the larger error first; what is right is left out.

    A side without a bound is told after one that has it; where there is no bound at all, sides are alike.

    Examples
    --------
    >>> either_side("spreads", (Bound(0.8), Bound(1.42)), " at most")
    '42% too large or 20% too small at most'
    >>> either_side("temperature", (Bound(0.7), Bound(1.0)))
    '30% too low'
    >>> either_side("spreads", (Bound(10.0, open=True), Bound(0.54)), " at most")
    '46% too small at most, or 10 times too large or more'
    >>> either_side("spreads", (Bound(10.0, open=True), Bound(0.1, open=True)), " at most")
    'wrong by a factor of 10 or more'
    """
    wrong = sorted(bounds, key=lambda bound: share_of(bound.ratio), reverse=True)
    known = [_told(kind, bound.ratio) for bound in wrong if not bound.open and bound.ratio != 1.0]
    far = [bound.ratio for bound in wrong if bound.open]
    if not far:
        return (" or ".join(known) or wrong_phrase(1.0)) + most
    if len(far) > 1:
        return f"{wrong_phrase(far[0])} or more"
    told = [f"{phrase}{most}" for phrase in known]
    return ", or ".join([*told, f"{_told(kind, far[0])} or more"])


def _told(kind: str, ratio: float) -> str:
    return f"{amount(ratio)} {way(kind, ratio)}"
