"""What a check found: a report of laws that hold, or an error that says which one does not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from wellcal._arrays.namespaces import NDArray


class ConformanceError(AssertionError):
    """A law that every kernel or family must obey does not hold.

    Attributes
    ----------
    law
        Name of the law, such as "symmetry".
    detail
        Where it is broken, and by how much.

    Examples
    --------
    >>> str(ConformanceError("symmetry", "k(1, 2) = 1 but k(2, 1) = 0"))
    'symmetry: k(1, 2) = 1 but k(2, 1) = 0'
    """

    def __init__(self, law: str, detail: str) -> None:
        super().__init__(law, detail)
        self.law = law
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.law}: {self.detail}"


@dataclass(frozen=True)
class Report:
    """Laws that were checked.

    Attributes
    ----------
    subject
        What was checked.
    passed
        Names of the laws that hold.
    skipped
        Laws that do not apply, each with the reason.

    Examples
    --------
    >>> print(Report("Normal", ("sampling",), {"density": "there is no log_prob"}))
    Normal: 1 law holds
      holds: sampling
      not applicable: density (there is no log_prob)
    """

    subject: str
    passed: tuple[str, ...]
    skipped: dict[str, str]

    def __str__(self) -> str:
        count = len(self.passed)
        lines = [f"{self.subject}: {count} {'law holds' if count == 1 else 'laws hold'}"]
        lines += [f"  holds: {law}" for law in self.passed]
        lines += [f"  not applicable: {law} ({why})" for law, why in self.skipped.items()]
        return "\n".join(lines)


class LawBrokenError(Exception):
    """Raised by a check; `run` adds which law it is."""


Check = Callable[[], str | None]
"""Returns None where the law holds, or why it does not apply; raises where it is broken."""


def run(subject: str, laws: Iterable[tuple[str, Check]]) -> Report:
    """Check laws in order, up to the first that is broken."""
    passed: list[str] = []
    skipped: dict[str, str] = {}
    for law, check in laws:
        try:
            reason = check()
        except LawBrokenError as broken:
            raise ConformanceError(law, f"{broken} [{subject}]") from None
        except Exception as error:
            raise ConformanceError(law, f"raised {type(error).__name__}: {error} [{subject}]") from error
        if reason is None:
            passed.append(law)
        else:
            skipped[law] = reason
    return Report(subject, tuple(passed), skipped)


def require(ok: NDArray | bool, message: Callable[[tuple[int, ...]], str]) -> None:
    """Raise unless `ok` holds everywhere; `message` describes the first index where it does not."""
    array = np.asarray(ok)
    if not array.all():
        raise LawBrokenError(message(tuple(int(i) for i in np.argwhere(~array)[0])))


def require_close(
    found: NDArray, expected: NDArray, tolerance: NDArray | float, what: str, other: str
) -> None:
    """Raise where two arrays differ by more than `tolerance`, showing the worst entry."""
    if found.shape != expected.shape:
        raise LawBrokenError(f"{what} has shape {found.shape}, but {other} has shape {expected.shape}")
    with np.errstate(invalid="ignore"):
        excess = np.abs(found - expected) - tolerance
    # Infinities of one sign agree; so does what is not a number on both sides.
    agree = (found == expected) | (np.isnan(found) & np.isnan(expected)) | (excess <= 0)
    if agree.all():
        return
    badness = np.where(agree, -np.inf, np.nan_to_num(excess, nan=np.inf))
    worst = tuple(int(i) for i in np.unravel_index(int(np.argmax(badness)), badness.shape))
    allowed = float(np.broadcast_to(tolerance, found.shape)[worst])
    raise LawBrokenError(
        f"{what} is {found[worst]:.10g} at index {worst}, but {other} is {expected[worst]:.10g}: they differ "
        f"by {abs(found[worst] - expected[worst]):.3g}, and {allowed:.3g} is allowed"
    )
