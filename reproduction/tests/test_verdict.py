"""A mismatch is a problem unless it is declared, and a declared one that is none is a problem too."""

import numpy as np

from reproduction.catalogue import EXPERIMENTS
from reproduction.known import KNOWN, Known
from reproduction.ranks import Repeated
from reproduction.verdict import judge

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(199, 3))


def numbers(*published):
    return {name: Repeated(value, row) for name, value, row in zip("abc", published, ROWS.T, strict=True)}


def test_nothing_wrong():
    found = judge("x", numbers(0.1, -0.2, 0.3), str, quick=False, known=())
    assert (found.problems, found.missed, found.known) == ([], [], {})


def test_a_mismatch_is_named_in_full_and_quick_runs():
    for quick in (False, True):
        found = judge("x", numbers(0.1, 40.0, 0.3), str, quick=quick, known=())
        assert found.missed == ["b"]
        assert [problem.split(" is ")[0] for problem in found.problems[:1]] == ["x: b"]
        assert "all numbers together" in found.problems[1]


def test_a_declared_mismatch_is_no_problem_and_does_not_hide_others():
    known = [Known("x", "b", "a slip"), Known("y", "a", "elsewhere")]
    found = judge("x", numbers(0.1, 40.0, 0.3), str, quick=False, known=known)
    assert found.problems == []
    assert found.known == {"b": known[0]}
    assert judge("x", numbers(0.1, 40.0, 30.0), str, quick=False, known=known).missed == ["c"]


def test_a_declared_mismatch_that_matches_again_fails_the_full_run():
    known = [Known("x", "a", "a slip"), Known("x", "z", "a slip")]
    found = judge("x", numbers(0.1, -0.2, 0.3), str, quick=False, known=known)
    assert [problem.split(" is ")[0] for problem in found.problems] == ["x: a", "x: z"]
    assert judge("x", numbers(0.1, -0.2, 0.3), str, quick=True, known=known).problems == []


def test_the_committed_list_gives_reasons():
    for entry in KNOWN:
        assert entry.experiment in EXPERIMENTS
        assert len(entry.reason) > 20
