"""What the page says of published numbers among repeats."""

import numpy as np

from reproduction.known import Known
from reproduction.page import placed
from reproduction.ranks import Repeated, proportion_scale
from reproduction.verdict import judge

RNG = np.random.default_rng(0)
WIDE, NARROW = RNG.uniform(size=(199, 3)), RNG.beta(2.0, 200.0, (199, 3))


def numbers(*published):
    """Three that could be anything between 0 and 1, and three that could not."""
    columns = (*WIDE.T, *NARROW.T)
    names = [f"{kind}, iteration {i}" for kind in ("wide", "narrow") for i in (1, 2, 5)]
    scale = proportion_scale(1000)
    cells = zip(names, published, columns, strict=True)
    return {name: Repeated(value, column, scale) for name, value, column in cells}


def page(*published, known=()):
    return "\n".join(placed.overview(judge("x", numbers(*published), str, quick=False, known=known)))


def test_cells_that_cannot_fail_are_counted_and_named_together():
    text = page(0.1, 0.9, 0.5, 0.01, 0.01, 0.01)
    assert "3 of 3 published numbers are matched" in text
    assert "3 more are left out" in text
    assert "could not fail: wide, iteration 1, iteration 2, iteration 5." in text
    assert "0 of them lie below or above all 199 repeats, where 3 × 2 / 200 = 0.0 are expected" in text


def test_mismatches_are_named_with_their_reason_if_there_is_one():
    published = (0.1, 0.9, 0.5, 0.4, 0.5, 0.01)
    text = page(*published, known=[Known("x", "narrow, iteration 1", "a slip of the pen")])
    assert "Not matched:\n\n- narrow, iteration 2\n" in text
    assert "- narrow, iteration 1: a slip of the pen" in text
    assert "**are not matched**" in text
    assert "2 of them lie below or above" in text


def test_rows_of_tables():
    found = judge("x", numbers(0.1, 0.9, 0.5, 0.4, 0.01, 0.01), str, quick=False, known=())
    cells = found.ranking.cells
    assert placed.cells(cells["wide, iteration 1"])[-1] == "left out"
    assert placed.cells(cells["narrow, iteration 1"])[2:] == ["199 of 199", "**0.005**"]
    assert len(placed.cells(cells["narrow, iteration 2"])) == len(placed.HEAD)
