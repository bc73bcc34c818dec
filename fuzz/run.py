"""Inputs by number: which call, with which arguments, and how it ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fuzz.catalogue import CATALOGUE
from fuzz.judge import Ending, judged
from fuzz.mutations import mutated
from fuzz.scenarios import scenario
from fuzz.subjects import Subject
from wellcal._arrays.namespaces import attribute

SEED = 0


@dataclass(frozen=True)
class Input:
    """A call that is to be tried.

    Attributes
    ----------
    number, seed
        What it follows from.
    subject
        What is called.
    arguments
        With these, by name.
    wrong
        Which of them were mutated.
    """

    number: int
    seed: int
    subject: Subject
    arguments: dict[str, Any]
    wrong: tuple[str, ...]

    def run(self) -> Ending:
        """Call it."""
        subject = self.subject
        return judged(lambda: subject.call(**self.arguments), subject.names(), subject.also)

    def line(self) -> str:
        """What was given, and how to repeat it."""
        given = ", ".join(f"{name}={_shown(self.arguments[name])}" for name in self.wrong)
        again = f"python -m fuzz --seed {self.seed} --input {self.number}"
        return f"{self.subject.name}({given or 'all right'})  [{again}]"


def make_input(number: int, seed: int = SEED) -> Input:
    """Input `number` of a seed; one in sixteen is right in all its arguments.

    Examples
    --------
    >>> make_input(3).line() == make_input(3).line()
    True
    """
    rng = np.random.default_rng([seed, number])
    subject = CATALOGUE[int(rng.integers(len(CATALOGUE)))]
    family = None if subject.families is None else str(rng.choice(subject.families))
    problem = scenario(rng, family)
    arguments = {name: valid(problem) for name, valid in subject.needed.items()}
    arguments.update({n: valid(problem) for n, valid in subject.optional.items() if rng.random() < 0.25})
    names = [name for name in subject.arguments if name not in subject.fixed]
    count = 0 if rng.random() < 1 / 16 else (1 if rng.random() < 0.75 else 2)
    wrong = [str(name) for name in rng.permutation(names)[:count]]
    for name in wrong:
        valid = arguments[name] if name in arguments else subject.arguments[name](problem)
        arguments[name] = mutated(valid, rng)
    return Input(number, seed, subject, arguments, tuple(wrong))


def inputs(count: int, seed: int = SEED, start: int = 0) -> Iterator[Input]:
    """Inputs one after the other."""
    return (make_input(number, seed) for number in range(start, start + count))


def _shown(x: Any) -> str:
    """A value in a few words."""
    try:
        text = repr(x).replace("\n", " ")
    except Exception:
        text = object.__repr__(x)
    text = re.sub(r"0x[0-9A-Fa-f]+", "...", text)  # an address is another one in each run
    kind = type(x).__name__
    shape = attribute(x, "shape")
    extra = f" of shape {tuple(shape)} and {attribute(x, 'dtype', '')}" if isinstance(shape, tuple) else ""
    return (text if len(text) <= 60 else f"{text[:57]}...") + f" ({kind}{extra})"
