"""Columns of data frames as predictions: by role, and by what their names suggest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wellcal as wc
from wellcal.cli.role_texts import role_from_text
from wellcal.columns.frames import Table
from wellcal.extend import family, parameter, positive
from wellcal.predictions.column_roles import resolve, roles_by_keyword
from wellcal.predictions.role_inference import target_columns
from wellcal.reading import as_cases, read_cases

FRAMES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "pandas": pd.DataFrame,
    "pandas with missing values": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
}

COLUMNS: dict[str, Any] = {
    "id": ["r1", "r2", "r3"],
    "m": [0.5, 1.0, 2.0],
    "s": [1, 2, 3],
    "half": [0.5, 0.25, 1.0],
    "p_no": [0.5, 0.75, 0.0],
    "p_yes": [0.5, 0.25, 1.0],
    "draw_1": [1.0, 2.0, 3.0],
    "draw_2": [2.0, 3.0, 4.0],
    "q90": [3.0, 4.0, 5.0],
    "q_0.1": [1.0, 2.0, 3.0],
    "mu_b": [1.0, 1.0, 1.0],
    "mu_a": [0.0, 0.0, 0.0],
    "sigma_a": [1.0, 1.0, 1.0],
    "sigma_b": [2.0, 2.0, 2.0],
    "c11": [2.0, 2.0, 2.0],
    "c21": [0.5, 0.5, 0.5],
    "c22": [1.0, 1.0, 1.0],
}

FRAME = pa.table(COLUMNS)
M, S, HALF = np.array(COLUMNS["m"]), np.array(COLUMNS["s"], dtype=float), np.array(COLUMNS["half"])
COV = np.broadcast_to(np.array([[2.0, 0.5], [0.5, 1.0]]), (3, 2, 2))
ZERO_ONE = np.array([[1.0, 0.0]] * 3)

ROLES: dict[str, tuple[dict[str, Any], wc.Predictions]] = {
    "normal": ({"normal": ("m", "s")}, wc.Normal(M, S)),
    "by name": ({"normal": {"scale": 2.0, "loc": "m"}}, wc.Normal(M, 2.0)),
    "laplace": ({"laplace": ("m", "s")}, wc.Laplace(M, S)),
    "student_t": ({"student_t": (5, "m", "s")}, wc.StudentT(5.0, M, S)),
    "gamma": ({"gamma": ["m", "s"]}, wc.Gamma(M, S)),
    "lognormal": ({"lognormal": ("m", "s")}, wc.LogNormal(M, S)),
    "beta": ({"beta": ("m", "s")}, wc.Beta(M, S)),
    "bernoulli": ({"bernoulli": "half"}, wc.Bernoulli(HALF)),
    "poisson": ({"poisson": ("m",)}, wc.Poisson(M)),
    "negative_binomial": ({"negative_binomial": ("m", 0.5)}, wc.NegativeBinomial(M, 0.5)),
    "power_exponential": ({"power_exponential": ("m", "s", 1.5)}, wc.PowerExponential(M, S, 1.5)),
    "probs": ({"probs": "p_*"}, wc.Categorical(np.column_stack([1 - HALF, HALF]), classes=["no", "yes"])),
    "dirichlet": ({"dirichlet": ["m", "s"]}, wc.Dirichlet(np.column_stack([M, S]))),
    "samples": ({"samples": "draw_1:draw_2"}, wc.Samples(np.column_stack([[1.0, 2, 3], [2.0, 3, 4]]))),
    "quantiles": (
        {"quantiles": "q*"},
        wc.Quantiles([0.1, 0.9], np.column_stack([[1.0, 2, 3], [3.0, 4, 5]])),
    ),
    "quantiles by level": (
        {"quantiles": {0.75: "q90", 0.25: "q_0.1"}},
        wc.Quantiles([0.25, 0.75], np.column_stack([[1.0, 2, 3], [3.0, 4, 5]])),
    ),
    "diagonal_normal": (
        {"diagonal_normal": ("mu_*", "sigma_*")},
        wc.DiagonalNormal(ZERO_ONE, ZERO_ONE + 1.0),
    ),
    "multivariate_normal": (
        {"multivariate_normal": (["mu_b", "mu_a"], ["c11", "c21", "c22"])},
        wc.MultivariateNormal(ZERO_ONE, COV),
    ),
    "mixture": (
        {"mixture": [{"normal": ("m", "s"), "weight": "half"}, {"laplace": ("m", 1), "weight": "p_no"}]},
        wc.Mixture([wc.Normal(M, S), wc.Laplace(M, 1.0)], np.column_stack([HALF, 1 - HALF])),
    ),
}


def test_there_is_a_role_for_every_family() -> None:
    tried = {keyword for given, _ in ROLES.values() for keyword in given}
    ours = {key for key, role in roles_by_keyword().items() if role.family.__module__.startswith("wellcal.")}
    assert tried == ours


def fields_of(batch: Any) -> list[np.ndarray]:
    found = [getattr(batch, name) for name in batch.array_fields if getattr(batch, name) is not None]
    return found + [
        x for name in batch.batch_fields for child in getattr(batch, name) for x in fields_of(child)
    ]


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("what", ROLES)
def test_columns_become_what_arrays_do(what: str, library: str) -> None:
    roles, wanted = ROLES[what]
    found = wc.as_predictions(FRAMES[library](COLUMNS), **roles)
    assert type(found) is type(wanted)
    for a, b in zip(fields_of(found), fields_of(wanted), strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("levels", "classes"):
        np.testing.assert_array_equal(getattr(found, name, None), getattr(wanted, name, None))


def test_a_family_of_ones_own_has_a_role() -> None:
    @family
    class HalfWidth(wc.Predictions):
        centre: np.ndarray = parameter(unit="width", usual=("centre",))
        width: np.ndarray = parameter(positive, usual=("width",))

    frame = pd.DataFrame({"y": [0.0], "centre": [1.0], "width": [2.0]})
    assert type(wc.as_predictions(frame, half_width=("centre", "width"))) is HalfWidth
    assert wc.guess_roles(frame).roles == {"half_width": ("centre", "width")}


def test_the_index_of_pandas_is_kept() -> None:
    frame = pd.DataFrame(COLUMNS, index=pd.Index([30, 10, 20]))
    pred = wc.as_predictions(frame, normal=("m", "s"))
    shuffled = frame["draw_1"].iloc[[2, 0, 1]]
    np.testing.assert_array_equal(pred.check_targets(shuffled), frame["draw_1"])


# -- refused -----------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "two roles": ({"normal": ("m", "s"), "poisson": "m"}, "exactly one role .* found normal and poisson"),
    "no role": ({"normal": None}, "exactly one role .* found none"),
    "an unknown role": ({"norml": ("m", "s")}, "did you mean 'normal'"),
    "an unknown column": ({"normal": ("m", "Sigma_A2")}, "normal, scale: there is no column .* 'sigma_a'"),
    "too few columns": ({"normal": "m"}, r"normal takes loc \(a column\), scale \(a column\); found 1 entry"),
    "too many columns": ({"poisson": ("m", "s")}, "found 2 entries"),
    "a glob for one column": ({"bernoulli": "p_*"}, "bernoulli is one column, found 2"),
    "a glob without a match": ({"probs": "x_*"}, "no column matches 'x_\\*'"),
    "an unknown parameter": ({"normal": {"loc": "m", "scal": "s"}}, "did you mean 'scale'"),
    "a parameter left out": ({"normal": {"loc": "m"}}, "no column was named for scale"),
    "a column twice": ({"probs": ["p_*", "p_no"]}, "'p_no' was named twice"),
    "a range with a hole": ({"samples": "draw_1:draw_9"}, "there is no column 'draw_9'"),
    "a range backwards": ({"samples": "draw_2:draw_1"}, "goes backwards"),
    "a range of different names": ({"samples": "m:s"}, "from one number to another"),
    "a text": ({"normal": ("id", "s")}, "column 'id' must hold numbers, .*'r1' in row 0"),
    "a value outside": ({"bernoulli": "m"}, r"bernoulli: probs = m: probs must lie in \[0, 1\] in row 2"),
    "no levels": ({"quantiles": ["m", "s"]}, "'m', 's' say no level"),
    "only numbers": ({"normal": (1, 2)}, "only numbers were given"),
    "weights for some": ({"mixture": [{"poisson": "m"}, {"poisson": "s", "weight": 0.5}]}, "1 of 2 parts"),
    "no list of parts": ({"mixture": "m"}, "mixture takes a list of roles"),
    "vectors that do not match": ({"diagonal_normal": ("mu_*", "p_*")}, "do not match"),
    "covariances of another size": ({"multivariate_normal": (["m", "s"], ["c11", "c22"])}, "takes 4 columns"),
    "no name": ({"bernoulli": None, "poisson": 1.5}, "only numbers|must be"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refusals_name_what_is_wrong(what: str) -> None:
    roles, message = REFUSED[what]
    with pytest.raises((TypeError, ValueError), match=message):
        wc.as_predictions(FRAMES["pyarrow"](COLUMNS), **roles)


@pytest.mark.parametrize("library", FRAMES)
def test_missing_values_are_counted_and_the_first_is_named(library: str) -> None:
    columns = {"m": [0.0, None, 1.0, None], "s": [1, 2, None, None], "t": ["a", None, "", "b"]}
    frame = FRAMES[library](columns)
    with pytest.raises(ValueError, match=r"in 3 of 4 rows: 'm' \(2\), 's' \(2\), the first in row 1"):
        wc.as_predictions(frame, normal=("m", "s"))
    with pytest.raises(ValueError, match=r"3 of 4 rows: 't' \(2\), 's' \(2\), .* in row 1"):
        as_cases(frame, "t", poisson="s")
    kept = wc.reading.drop_missing(frame, ["m", "t"])
    assert (kept.dropped, kept.total, kept.by_column) == (3, 4, {"m": 2, "t": 2})
    assert kept.words() == "3 of 4 rows dropped: values are missing in m (2), t (2)."
    with pytest.raises(ValueError, match="no row is left: 4 of 4"):
        wc.reading.drop_missing(FRAMES[library]({"m": [None, 1.0] * 2, "t": ["a", ""] * 2}))
    assert type(kept.frame) is type(frame)


def test_frames_that_are_none() -> None:
    with pytest.raises(TypeError, match="found ndarray"):
        wc.as_predictions(np.zeros((3, 2)), normal=("a", "b"))
    with pytest.raises(TypeError, match="collect"):
        wc.as_predictions(pl.DataFrame(COLUMNS).lazy(), normal=("m", "s"))
    with pytest.raises(ValueError, match="'a' more than once"):
        wc.as_predictions(pd.DataFrame([[1, 2]], columns=["a", "a"]), poisson="a")
    with pytest.raises(ValueError, match="no rows"):
        wc.as_predictions(pd.DataFrame({"a": [1.0]})[:0], poisson="a")
    for make in FRAMES.values():
        with pytest.raises(ValueError, match=r"^the data frame has no rows"):
            wc.guess_roles(make({"y": np.zeros(0), "mu": np.zeros(0), "sigma": np.zeros(0)}))


# -- targets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "targets", "classes"),
    [
        (["p_no", "p_yes"], ["yes", "no"], ["no", "yes"]),
        (["p_0", "p_1"], [1, 0], [0, 1]),
        (["p_0", "p_1"], ["1", "0"], ["0", "1"]),
        (["p_1.5", "p_2"], [2.0, 1.5], [1.5, 2.0]),
        (["p_False", "p_True"], [True, False], [False, True]),
        (["p_0", "p_1"], [True, False], [0, 1]),
    ],
)
@pytest.mark.parametrize("library", FRAMES)
def test_labels_are_those_of_the_targets(library: str, names: Any, targets: Any, classes: Any) -> None:
    frame = FRAMES[library]({"label": targets, names[0]: [0.3, 0.9], names[1]: [0.7, 0.1]})
    cases = as_cases(frame, "label", probs="p_*")
    assert cases.pred.labels().tolist() == classes
    assert cases.pred.check_targets(cases.y).tolist() == [1, 0]


def test_vectors_of_targets_follow_the_predictions() -> None:
    frame = pa.table({**COLUMNS, "y_a": [5.0] * 3, "y_b": [6.0] * 3})
    cases = as_cases(frame, "y_*", diagonal_normal=("mu_*", "sigma_*"), others=["id"])
    assert cases.y.tolist() == [[6.0, 5.0]] * 3
    assert cases.others["id"].tolist() == COLUMNS["id"]
    with pytest.raises(ValueError, match=r"target is one column .* found 2"):
        as_cases(frame, "y_*", normal=("m", "s"))
    with pytest.raises(ValueError, match="'m' is both the target and part"):
        as_cases(frame, "m", normal=("m", "s"))
    with pytest.raises(TypeError, match="column 'id' must hold numbers"):
        as_cases(frame, "id", normal=("m", "s"))


# -- guesses -----------------------------------------------------------------------------------------------

GUESSED: dict[str, tuple[list[str], dict[str, Any]]] = {
    "normal": (["y", "id", "mu", "sigma"], {"normal": ("mu", "sigma")}),
    "other words": (["Target", "MEAN", "std"], {"normal": ("MEAN", "std")}),
    "classes": (["label", "p_a", "p_b", "q"], {"probs": "p_*"}),
    "classes, written large": (["label", "Proba_a", "Proba_b"], {"probs": "Proba_*"}),
    "quantiles": (["actual", "q_0.9", "q10", "quality"], {"quantiles": ["q_0.9", "q10"]}),
    "draws": (["y", "draw_1", "draw_2"], {"samples": ["draw_1", "draw_2"]}),
    "rate": (["y", "lambda"], {"poisson": "lambda"}),
    "dispersion": (["y", "mu", "dispersion"], {"negative_binomial": ("mu", "dispersion")}),
    "prefixed": (["y_true", "y_pred", "y_std", "id"], {"normal": ("y_pred", "y_std")}),
    "usual before prefixed": (["y", "y_pred", "pred", "mu", "sigma"], {"normal": ("mu", "sigma")}),
    "a prefixed probability": (["y_true", "y_pred", "y_prob"], {"bernoulli": "y_prob"}),
    "an array of probabilities": (["y", "probs_0", "probs_1"], {"probs": "probs_*"}),
    "probability": (["y", "prob"], {"bernoulli": "prob"}),
    "percents": (["y", *(f"q{k}" for k in range(1, 100))], {"quantiles": [f"q{k}" for k in range(1, 100)]}),
}


@pytest.mark.parametrize("what", GUESSED)
def test_names_suggest_roles(what: str) -> None:
    names, roles = GUESSED[what]
    frame = pd.DataFrame([[0.5] * len(names)] * 2, columns=names)
    guess = wc.guess_roles(frame)
    assert guess.target == names[0]
    assert guess.roles == roles
    assert str(guess).startswith(f"target: {names[0]}; {next(iter(roles))}: ")
    wc.as_predictions(frame, **guess.roles)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["y", "mu", "sigma", "rate"], r"\[poisson: rate = rate\] or \[normal: loc = mu, scale = sigma\]"),
        (["y", "mu", "mean", "sigma"], r"loc = mu, scale = sigma\] or \[normal: loc = mean"),
        (["y", "df", "loc", "scale"], r"\[normal.*\] or \[student_t.*, e\.g\. normal=\('loc', 'scale'\)$"),
        (["y", "p_a", "p_b", "prob_a", "prob_b"], r"p_a .. p_b .*\] or \[probs: probs = prob_a"),
        (["y", "target", "mu", "sigma"], "targets may be 'y' or 'target'"),
        (["z", "mu", "sigma"], "no column is called y"),
        (["count", "rate"], "no column is called y.* with target='count', if it is that one$"),
        (["y", "y_pred", "id"], "no columns have names that say"),
        (["y", "y_pred", "pred", "y_std"], r"loc = y_pred, scale = y_std\] or \[normal: loc = pred"),
        (["y", "z"], "no columns have names that say"),
        (["y", "q1", "q2", "q3"], "quartiles"),
        (["y", *(f"q{k}" for k in range(10))], "such as quartiles and deciles"),
        (["y", *(f"y_rep.{k}" for k in range(1, 11))], r"or samples='s0:s99'$"),
        (["y", *(f"s{k}" for k in range(9))], r"say it, .* or samples='s0:s99'$"),
        (["y", "rate", "p_a", "p_b"], r"\[poisson: rate = rate\] or \[probs: .*; say which, e\.g\. poisson"),
        (["y", "s1", "s2"], "no columns have names that say"),
        # Parts of a mixture, and no draws.
        (["y", *(f"{of}{k}" for k in range(9) for of in "msw")], "no columns have names that say"),
    ],
)
def test_what_can_be_read_in_two_ways_is_not_guessed(names: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        wc.guess_roles(pl.DataFrame({name: [0.5] for name in names}))


def test_lists_are_no_parameter_that_is_a_number() -> None:
    with pytest.raises(ValueError, match=r"the columns are 'y', 'mu', 'sigma'; say it, e\.g\. normal="):
        wc.guess_roles(pl.DataFrame({"y": [0.5], "mu": [[0.5]], "sigma": [1.0]}))


def test_targets_that_are_vectors_are_guessed_with_their_predictions() -> None:
    names = ["y_0", "y_1", "sigma_1", "sigma_0", "mu_0", "mu_1"]
    frame = pd.DataFrame([np.arange(1.0, 7.0)] * 2, columns=names)
    guess = wc.guess_roles(frame)
    assert guess.target == ("y_0", "y_1")
    assert guess.roles == {"diagonal_normal": ("mu_*", "sigma_*")}
    assert str(guess).startswith("target: y_0, y_1; diagonal_normal: loc = mu_0 .. mu_1")
    cases = as_cases(frame)
    assert cases.y.tolist() == [[1.0, 2.0]] * 2
    assert cases.pred.scale.tolist() == [[4.0, 3.0]] * 2  # by what the stars stand for
    # Two models of one target are not a model of two.
    with pytest.raises(ValueError, match="no columns have names that say"):
        wc.guess_roles(frame.rename(columns={"y_0": "y", "y_1": "note"}))


@pytest.mark.parametrize("library", FRAMES)
def test_lists_in_a_column_are_draws(library: str) -> None:
    draws = [[0.0, 1.0, 2.0], [1.0, 2.0, 3.5]]
    frame = FRAMES[library]({"y": [0.5, 1.5], "draws": draws})
    assert wc.guess_roles(frame).roles == {"samples": "draws"}
    cases = as_cases(frame)
    assert cases.pred.values.tolist() == draws
    assert as_cases(frame, "y", samples="draws").pred.values.tolist() == draws
    probs = wc.as_predictions(FRAMES[library]({"p": [[0.2, 0.8], [0.5, 0.5]]}), probs="p")
    assert probs.labels().tolist() == [0, 1]
    with pytest.raises(TypeError, match="normal, loc: column 'draws' holds lists"):
        wc.as_predictions(frame, normal=("draws", 1.0))


def test_lists_that_cannot_be_draws() -> None:
    for lists, message in (
        ([[1.0, 2.0], [1.0]], r"lists of one length.*found 1 numbers in row 1 and 2 in row 0"),
        ([[], []], "found 0 numbers in row 0"),
        ([[1.0, None], [1.0, 2.0]], r"missing in 1 of 2 rows: 'draws' \(1\), the first in row 0"),
        ([[1.0, 2.0], [1.0, np.inf]], "finite numbers: found inf in row 1"),
        ([[1.0, 2.0], None], r"missing in 1 of 2 rows: 'draws' \(1\), the first in row 1"),
        ([["a"], ["b"]], "must hold lists of numbers"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            wc.as_predictions(pa.table({"draws": pa.array(lists)}), samples="draws")


def test_options_of_a_family_go_with_its_role() -> None:
    frame = pd.DataFrame({"q10": [1.0, 0.0], "q50": [0.5, 1.0], "q90": [2.0, 2.0]})
    with pytest.raises(ValueError, match=r"cross .* in row 0.*give sort=True"):
        wc.as_predictions(frame, quantiles="q*")
    wanted = [[0.5, 1.0, 2.0], [0.0, 1.0, 2.0]]
    assert wc.as_predictions(frame, quantiles="q*", sort=True).values.tolist() == wanted
    by_name = {0.1: "q10", 0.5: "q50", 0.9: "q90"}
    assert wc.as_predictions(frame, quantiles=by_name, sort=True).values.tolist() == wanted
    assert as_cases(frame.assign(y=0.5), sort=True).pred.values.tolist() == wanted  # guessed
    with pytest.raises(TypeError, match="sort= is for quantiles, found normal"):
        wc.as_predictions(frame, normal=("q50", "q90"), sort=True)
    with pytest.raises(ValueError, match="unknown role of columns 'sorted'"):
        wc.as_predictions(frame, quantiles="q*", sorted=True)
    named = wc.as_predictions(frame.iloc[:1] / 3.5, probs=["q10", "q50", "q90"], classes=["a", "b", "c"])
    assert named.labels().tolist() == ["a", "b", "c"]


def test_ranges_are_written_in_two_ways() -> None:
    frame = pd.DataFrame([[0.0, 1.0, 2.0]], columns=["s0", "s1", "s2"])
    for text in ("s0:s2", "s0..s2"):
        assert wc.as_predictions(frame, samples=text).values.tolist() == [[0.0, 1.0, 2.0]]


def test_ordered_grades_stay_ordered_in_a_file(tmp_path: Path) -> None:
    grades = pd.Categorical(["low", "high", "mid"], ["low", "mid", "high"], ordered=True)
    columns = {"p_high": [0.1, 0.6, 0.2], "p_low": [0.7, 0.1, 0.2], "p_mid": [0.2, 0.3, 0.6]}
    frame = pd.DataFrame({"grade": grades, **columns})
    frame.to_parquet(tmp_path / "grades.parquet")
    wanted = wc.ece(frame["grade"], frame[list(columns)].rename(columns=lambda name: name[2:]))
    for cases in (
        as_cases(frame, "grade", probs="p_*"),
        read_cases(tmp_path / "grades.parquet", "grade", probs="p_*"),
    ):
        assert cases.pred.support.tolist() == [2.0, 0.0, 1.0]
        assert wc.ece(cases.y, cases.pred).value == wanted.value
    plain = frame.assign(grade=pd.Categorical(grades, ordered=False))
    assert as_cases(plain, "grade", probs="p_*").pred.support is None


def test_grades_are_named_one_by_one() -> None:
    frame = pd.DataFrame({"p_b": [0.2], "p_a": [0.8]})
    ordered = wc.as_predictions(frame, probs="p_*", grades=["a", "b"])
    assert ordered.support.tolist() == [1.0, 0.0]
    for text in ("a,b", "a, b"):
        with pytest.raises(TypeError, match=rf"must be a list of names, found .{text}.; give .*'a', 'b'"):
            wc.as_predictions(frame, probs="p_*", grades=text)


def test_names_decide_and_a_text_is_refused() -> None:
    frame = pd.DataFrame({"y": [1.0], "mu": ["a"], "sigma": [1.0]})
    with pytest.raises(TypeError, match=r"column 'mu' must hold numbers, found text .*'a' in row 0"):
        wc.guess_roles(frame)
    with pytest.raises(ValueError, match=r"say which, e\.g\. poisson='rate'$"):
        wc.guess_roles(frame.assign(rate=2.0))


def test_roles_as_texts() -> None:
    frame = FRAMES["polars"](COLUMNS)
    for keyword, text in (
        ("normal", "m, s"),
        ("student_t", "5,m,s"),
        ("probs", "p_*"),
        ("quantiles", "0.25=q_0.1,0.75=q90"),
        ("diagonal_normal", "mu_*;sigma_*"),
        ("mixture", "normal:m,s@half + laplace:m,1@p_no"),
    ):
        assert len(wc.as_predictions(frame, **{keyword: role_from_text(keyword, text)})) == 3
    with pytest.raises(ValueError, match="'x' is no level"):
        role_from_text("quantiles", "x=q90")
    with pytest.raises(ValueError, match="written as normal:mu,sigma@weight"):
        role_from_text("mixture", "m,s")


JUNK = st.recursive(
    st.sampled_from(
        [*COLUMNS, "p_*", "q*", "draw_1:draw_2", "[", ":", "*", "", None, True, 2, -1.5, float("nan"), b"m"]
    )
    | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(
            st.sampled_from(["normal", "weight", "loc", "scale", 0.1, 0.9, "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@settings(max_examples=100)
@given(keyword=st.sampled_from(sorted({key for roles, _ in ROLES.values() for key in roles})), value=JUNK)
def test_whatever_is_given_as_a_role_ends_with_predictions_or_an_error(keyword: str, value: Any) -> None:
    said = "something"
    try:
        assert len(wc.as_predictions(FRAME, **{keyword: value})) == 3
    except (TypeError, ValueError) as error:
        said = str(error)
    assert said


@settings(max_examples=50)
@given(
    names=st.lists(
        st.sampled_from(["y", "mu", "sd", "p_a", "p_b", "q10", "q_0.9", "q1", "count", "rate", "y_sd"])
        | st.text(max_size=4)
    )
)
def test_whatever_columns_are_called_a_guess_fits_or_is_refused(names: list[str]) -> None:
    frame = pa.table([pa.array([0.5])] * len(names), names=names)
    try:
        guess = wc.guess_roles(frame)
    except ValueError:
        return
    targets = {guess.target} if isinstance(guess.target, str) else {*guess.target}
    assert targets | {*guess.unused} <= set(names)
    taken = resolve(names, *next(iter(guess.roles.items()))).columns
    assert len(taken) + len(guess.unused) + len(targets) == len(names)


def test_families_with_the_parameters_of_another_are_not_guessed() -> None:
    from dataclasses import dataclass

    @dataclass(frozen=True, eq=False, repr=False)
    class Renamed(wc.Normal):
        pass

    frame = pd.DataFrame({"y": [0.3, 1.2], "mu": [0.0, 1.0], "sigma": [1.0, 2.0]})
    assert wc.guess_roles(frame).roles == {"normal": ("mu", "sigma")}
    assert isinstance(wc.as_predictions(frame, renamed=("mu", "sigma")), Renamed)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("region", "outcome", "mu", "sigma", "weight"), "with target='outcome', if it is that one$"),
        (("y_obs", "mu", "sigma"), "with target='y_obs', if it is that one$"),
        (("id", "mu", "sigma", "region"), "say which holds the targets with target=$"),
    ],
)
def test_the_column_of_targets_is_asked_for_by_a_likely_name_or_none(names: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        target_columns(Table(pd.DataFrame(np.ones((2, len(names))), columns=list(names))))
