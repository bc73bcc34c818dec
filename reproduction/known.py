"""Published numbers that are known not to be matched, each with its reason.

An entry says that the published number itself is different: a mistake of ours does not belong here. Entries
are checked: one whose number is matched by a full run, or that names none, makes the run fail.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Known:
    """A mismatch that is explained.

    Attributes
    ----------
    experiment
        Its name.
    number
        The published number, as the page names it.
    reason
        Why it differs.
    """

    experiment: str
    number: str
    reason: str


KNOWN: tuple[Known, ...] = ()
"""None is known."""
