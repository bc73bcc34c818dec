"""Names of columns decide on their roles; values confirm columns that are called by the classes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import wellcal as wc
from wellcal.reading import as_cases

PROBS = {"p_a": [0.5, 0.4], "p_b": [0.5, 0.6]}
NORMAL = {"mean": [0.0, 1.0], "std": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        ({"y": ["a", "b"], "rate": [1.0, 2.0], **PROBS}, None),
        ({"y": ["a", None], **PROBS}, {"probs": "p_*"}),
        ({"y": ["a", "b"], "rate": [1.0, 2.0], **NORMAL}, None),
        ({"y": [1, 0], "rate": [1.0, 2.0], "prob": [0.5, 0.6]}, None),
        ({"y": [1, 0], "probs": [[0.5, 0.5], [0.4, 0.6]]}, {"probs": "probs"}),
        ({"y": [1, 0], "probs": [0.5, 0.4]}, {"bernoulli": "probs"}),
        ({"y": [1.0, 0.0], "id": [8, 9], "0": [0.3, 0.4], "1": [0.7, 0.6]}, {"probs": ["0", "1"]}),
        ({"y": ["cat", "dog"], "cat": [0.3, 0.4], "dog": [0.7, 0.6]}, {"probs": ["cat", "dog"]}),
        ({"y": ["cat", "eel"], "cat": [0.3, 0.4], "dog": [0.7, 0.6]}, None),
        ({"y": [1, 0], "0": [0.3, 0.4], "1": [0.7, 0.8]}, None),
    ],
)
def test_names_decide_on_the_reading(columns: dict[str, Any], roles: dict[str, Any] | None) -> None:
    """If two readings are possible, or none, the error says how to choose."""
    frame = pd.DataFrame(columns)
    if roles is None:
        with pytest.raises(ValueError, match="; say "):
            wc.guess_roles(frame)
    else:
        assert wc.guess_roles(frame).roles == roles


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"y": ["a", "b"], "rate": [1.0, 2.0]}, r"'y' must hold numbers, found text .*'a' in row 0"),
        ({"y": ["a", "b"], **NORMAL}, r"'y' must hold numbers, found text .*; name another column"),
        ({"y": [1, 0.3, 1.2, 2.5], "p": [0.5] * 4}, r"target 'y' must be 0 or 1 in row 1: found 0\.3"),
    ],
)
def test_targets_that_do_not_fit_the_reading_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        as_cases(pd.DataFrame(columns))


@pytest.mark.parametrize("y", [["1", "2", "x"], ["1,5", "2,5", "3,5"], [1.0, 0.0, 0.5]])
def test_an_entry_that_is_mistyped_does_not_change_the_reading(y: list[Any]) -> None:
    """Who reads the targets says which it is, with its row."""
    assert wc.guess_roles(pd.DataFrame({"y": y, "rate": [1.0] * 3})).roles == {"poisson": "rate"}
    assert wc.guess_roles(pd.DataFrame({"y": y, "p": [0.5] * 3})).roles == {"bernoulli": "p"}


@pytest.mark.parametrize(
    ("columns", "roles"),
    [
        ({"y": [1, None, 0], "0": [0.3, 0.4, 0.5], "1": [0.7, 0.6, 0.5]}, ["0", "1"]),
        ({"y": [1, 0, 0], "0": [None, 0.4, 0.5], "1": [0.7, 0.6, 0.5], "id": [None, 7, 8]}, ["0", "1"]),
        ({"y": ["a", None, "b"], "a": [0.3, 0.4, 0.5], "b": [0.7, None, 0.5]}, ["a", "b"]),
        ({"y": ["a", None, "b"], "a": [0.3, 0.4, 0.5], "b": [0.7, None, 0.4]}, None),
        ({"y": ["a", "b", "b"], "a": [None, None, 0.5], "b": [0.7, 0.6, None]}, None),
        ({"y": ["a", None, "c"], "a": [0.3, 0.4, 0.5], "b": [0.7, 0.6, 0.5]}, None),
    ],
)
@pytest.mark.parametrize("library", [pd.DataFrame, pa.table])
def test_what_is_missing_does_not_hide_columns_called_by_classes(
    library: Any, columns: dict[str, Any], roles: Any
) -> None:
    """The rows that are whole decide, and rows that are not may be left out by who asked for it."""
    frame = library(columns)
    if roles is None:
        with pytest.raises(ValueError, match="; say it"):
            wc.guess_roles(frame)
        return
    assert wc.guess_roles(frame).roles == {"probs": roles}
    cases = as_cases(frame, drop_missing=True)
    assert len(cases.y) == 3 - cases.dropped < 3
    with pytest.raises(ValueError, match=r"values are missing in \d of 3 rows"):
        as_cases(frame)


def test_probabilities_of_a_classifier_are_read_as_they_are() -> None:
    """Columns are numbers, as those of an array are, and the target is beside them."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=20)
    y = rng.integers(3, size=20)
    frame = pd.DataFrame(probs).assign(y=y)
    guess = wc.guess_roles(frame)
    pred = wc.as_predictions(frame, **guess.roles)
    assert wc.nll(y, pred).value == wc.nll(y, wc.Categorical(probs)).value


def test_other_columns_from_zero_to_one_do_not_hide_columns_called_by_classes() -> None:
    probs = {"0": [0.3, 0.4, 0.5], "1": [0.6, 0.4, 0.1], "2": [0.1, 0.2, 0.4]}
    other = {"fold": [0, 1, 1], "weight": [0.5, 0.25, 1.0]}
    for y in ([1, 0, 0], [1.0, 0.0, 1.0]):  # class 2 is not seen
        assert wc.guess_roles(pd.DataFrame({"y": y, **other, **probs})).roles == {"probs": ["0", "1", "2"]}
    named = dict(zip(["ant", "bee", "cat"], probs.values(), strict=True))
    guess = wc.guess_roles(pd.DataFrame({"y": ["bee", "cat", "ant"], **named, **other}))
    assert guess.roles == {"probs": ["ant", "bee", "cat"]}


@pytest.mark.parametrize("rounded", [False, True])
def test_rare_classes_among_other_columns_are_named_by_the_user(rounded: bool) -> None:
    """No target says that an unseen class is one; without other columns, all of them are classes."""
    cat = np.linspace(0.2, 0.7, 12)
    bird = np.full(12, 0.1)
    probs = {"cat": cat, "dog": 1.0 - cat, "fold": np.zeros(12)}
    rare = {"cat": cat, "dog": 1.0 - cat - bird, "bird": bird}
    if rounded:
        probs, rare = ({name: np.round(p, 2) for name, p in each.items()} for each in (probs, rare))
    y = np.array(["cat", "dog"] * 6)
    assert wc.guess_roles(pd.DataFrame({"y": y, **probs})).roles == {"probs": ["cat", "dog"]}
    frame = pd.DataFrame({"y": y, **rare})
    assert wc.guess_roles(frame).roles == {"probs": ["cat", "dog", "bird"]}
    with pytest.raises(ValueError, match=r"say it, e\.g\. .* probs=\['no', 'yes'\]"):
        wc.guess_roles(frame.assign(fold=np.arange(12) % 2))
    assert len(as_cases(frame.assign(fold=0), probs=["cat", "dog", "bird"], normalise=True).y) == 12


@pytest.mark.parametrize("classes", [3, 12, 40])
@pytest.mark.parametrize("cases", [8, 300])
def test_columns_called_by_classes_that_were_rounded(classes: int, cases: int) -> None:
    """What can be normalised is recognised, and the error says that it wants to be."""
    rng = np.random.default_rng(classes)
    probs = rng.dirichlet(np.ones(classes), size=cases).round(2)
    frame = pd.DataFrame(probs, columns=[str(k + 1) for k in range(classes)])
    frame = frame.assign(y=rng.integers(1, classes + 1, size=cases), weight=rng.random(cases))
    assert wc.guess_roles(frame).roles == {"probs": [str(k + 1) for k in range(classes)]}
    assert len(as_cases(frame, normalise=True).y) == cases
    with pytest.raises(ValueError, match="divide each row of probs by its sum"):
        as_cases(frame)
    if cases > 8:  # of which the mean of sums says enough
        with pytest.raises(ValueError, match="; say it"):
            wc.guess_roles(frame.drop(columns="1"))


def test_texts_with_commas_in_columns_called_by_classes_are_named() -> None:
    probs = {"barolo": ["0,25", "0,5"], "barbera": ["0,75", "0,5"], "fold": [0, 1]}
    message = r"column 'barolo' must hold numbers, found text .*'0,25' in row 0.*decimal=','"
    with pytest.raises(TypeError, match=message):
        wc.guess_roles(pd.DataFrame({"y": ["barolo", "barbera"], **probs}))
