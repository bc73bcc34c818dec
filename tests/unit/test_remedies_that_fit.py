"""What an error about targets and predictions advises is what would mend them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import wellcal as wc

N = 30
rng = np.random.default_rng(5)
P = rng.uniform(0.1, 0.9, N)
BOTH = np.column_stack([1.0 - P, P])
HAPPENED = rng.random(N) < P
NAMES = np.where(HAPPENED, "yes", "no")


def refusal(y: Any, pred: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as found:
        wc.calibration_test(y, pred)
    return str(found.value)


def test_a_column_of_probabilities_is_no_draw_and_no_vote() -> None:
    """To divide each row by its sum would make all of them one."""
    assert refusal(HAPPENED, P[:, None]).endswith("the probability of one of two is Bernoulli(probs[:, 0])")


@pytest.mark.parametrize("tiny", [1e-16, 1e-9])
def test_what_rounding_left_outside_is_shown(tiny: float) -> None:
    below = np.vstack([BOTH[:-1], [-tiny, 1.0 + tiny]])
    with pytest.raises(wc.RowError, match=rf"negative in row {N - 1}, column 0: found -1.e-"):
        wc.Categorical(below)
    assert len(wc.Categorical(below.clip(0, 1))) == N
    with pytest.raises(wc.RowError, match=r"in row 1: found 1\.0000000001; check"):
        wc.Bernoulli([0.5, 1.0 + 1e-10])
    with pytest.raises(wc.RowError, match=r"in row 1: found 3\.0000000001; counts are"):
        wc.nll([0.0, 3.0 + 1e-10], wc.Poisson([1.0, 1.0]))


@pytest.mark.parametrize("library", [pd.DataFrame, polars.DataFrame, pyarrow.table])
def test_columns_beside_probabilities_are_told_from_these(library: Any) -> None:
    for further in ({"id": np.arange(N)}, {"label": NAMES.tolist()}):
        frame = library({**further, "no": BOTH[:, 0], "yes": P})
        assert "say which columns are what, such as probs=['no', 'yes']" in refusal(NAMES, frame)
        named = wc.as_predictions(frame, probs=["no", "yes"])
        assert float(wc.nll(NAMES, named)) == pytest.approx(float(wc.nll(HAPPENED, P)), rel=1e-12)


def test_truth_values_beside_names_have_a_remedy() -> None:
    found = refusal(HAPPENED, wc.Bernoulli(P, classes=("no", "yes")))
    assert found.endswith("give y as these, or, if these are False and True, classes=[False, True]")
    named, plain = (
        wc.calibration_test(HAPPENED, wc.Bernoulli(P, **of)) for of in ({"classes": [False, True]}, {})
    )
    assert named.pvalue == plain.pvalue


@pytest.mark.parametrize("made", [np.asarray, pd.Series, list])
def test_predicted_names_are_no_numbers_to_be(made: Any) -> None:
    found = refusal(made(NAMES), made(NAMES[::-1]))
    assert "with 'yes' in row" in found or "with 'no' in row" in found
    swapped = refusal(P, made(NAMES))
    assert "did you swap y and pred?" in swapped
    assert "convert" not in swapped
    assert refusal(HAPPENED, P.astype(str)).endswith("convert them to numbers")


def test_the_first_text_that_is_no_number_is_named() -> None:
    with pytest.raises(wc.RowError, match=r"y must be numeric, not texts.* with 'n/a' in row 2; convert"):
        wc.nll(np.array(["1.5", "2", "n/a"]), wc.Normal(np.zeros(3), 1.0))


def test_one_number_beside_another_is_a_point_prediction() -> None:
    with pytest.raises(wc.RowError, match=r"row 0: found .*; point predictions have no spread"):
        wc.Monitor().update(3.2, 4.1)
    assert "percentages" in refusal(np.where(HAPPENED, 2, 1), 100.0 * P)


def test_a_row_of_any_library_is_a_single_case() -> None:
    wanted = wc.Monitor().update(1, np.array([0.3, 0.7]))
    for row in (polars.Series([0.3, 0.7]), pyarrow.array([0.3, 0.7])):
        assert wc.Monitor().update(1, row).e_value == wanted.e_value


@pytest.mark.parametrize("cov", [2.0, np.ones(3), [1.0, 1.0, 1.0], [[[[1.0]]]]])
def test_variances_in_the_place_of_a_covariance_are_told_where_they_belong(cov: Any) -> None:
    with pytest.raises(ValueError, match=r"cov must have shape \(4, 3, 3\), or \(3, 3\) .*DiagonalNormal"):
        wc.MultivariateNormal(np.zeros((4, 3)), cov)


def test_arguments_of_densities_are_in_the_order_of_the_coordinates() -> None:
    """As targets of tests are."""
    frame = pd.DataFrame({"u": P, "v": 1.0 - P})
    for pred in (wc.DiagonalNormal(frame, np.ones((N, 2))), wc.Dirichlet(frame)):
        with pytest.raises(ValueError, match=r"y and \w+ have the same columns in different orders: 'v'"):
            pred.log_prob(frame[["v", "u"]])
        np.testing.assert_array_equal(pred.log_prob(frame), pred.log_prob(frame.to_numpy()))


@pytest.mark.parametrize("y", [HAPPENED, HAPPENED.astype(float), HAPPENED.tolist()])
def test_probabilities_of_two_classes_are_no_means_and_spreads(y: Any) -> None:
    """They would be normal distributions, and the verdict one on these."""
    question = r"add up to one.*; are these probabilities of two classes\? give wc\.Bernoulli\(p\)"
    for pair in ((1.0 - P, P), (P.tolist(), (1.0 - P).tolist())):
        for ask in (wc.calibration_test, wc.skce, wc.Monitor().update):
            with pytest.raises(ValueError, match=question):
                ask(y, pair)
    with pytest.raises(ValueError, match=question):
        wc.compare(y, {"a": (1.0 - P, P), "b": (P, 1.0 - P)})
    for pair in ((np.zeros(N), np.ones(N)), (P, P)):
        values = np.asarray(y, float)
        assert float(wc.crps(values, pair)) == float(wc.crps(values, wc.Normal(*pair)))
    assert float(wc.crps(P, (1.0 - P, P))) == float(wc.crps(P, wc.Normal(1.0 - P, P)))
