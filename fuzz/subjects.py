"""What is called: a subject, its arguments, and how errors may call these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from fuzz.scenarios import Scenario, as_foreign

Valid = Callable[[Scenario], Any]
"""A value that is right for a problem."""


@dataclass(frozen=True)
class Subject:
    """Something that is called.

    Attributes
    ----------
    name
        Its name.
    call
        What is called, with arguments by name.
    needed, optional
        Arguments, with what makes a right value of them; optional ones are given now and then.
    families
        Families of predictions that it is tried with; None for all.
    called
        Other words for its arguments in errors.
    also
        Errors that are right for it besides ValueError and TypeError.
    fixed
        Arguments that are always right: the object whose method is called.
    """

    name: str
    call: Callable[..., Any]
    needed: dict[str, Valid]
    optional: dict[str, Valid] = field(default_factory=lambda: {})
    families: tuple[str, ...] | None = None
    called: tuple[str, ...] = ()
    also: tuple[type[Exception], ...] = ()
    fixed: tuple[str, ...] = ("s",)

    @property
    def arguments(self) -> dict[str, Valid]:
        """All of them."""
        return {**self.needed, **self.optional}

    def names(self) -> set[str]:
        """Words of which an error must have one."""
        words = {*self.arguments, *self.called} - set(self.fixed)
        for name in words & _OTHER_WORDS.keys():
            words = words | _OTHER_WORDS[name]
        return words


_OTHER_WORDS = {
    "pred": {"predictions", "cases"},
    "pred_a": {"predictions", "cases"},
    "pred_b": {"predictions", "cases"},
    "reference": {"predictions"},
    "obj": {"predictions", "probs", "loc", "scale", "cov", "mu", "sigma", "distribution", "distributions"}
    | {"list"},
    "P": {"predictions"},
    "kernel": {"kernels"},
}


def one_of(*values: Any) -> Valid:
    """One of some values."""
    return lambda s: values[int(s.rng.integers(len(values)))]


def of(name: str) -> Valid:
    """An attribute of the problem."""
    return lambda s: getattr(s, name)


def pred_of(s: Scenario) -> Any:
    """Its predictions, now and then in the form of another library."""
    return s.pred if s.rng.random() < 0.8 else as_foreign(s)
