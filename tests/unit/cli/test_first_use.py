"""What strangers try first, with files as they have them: it works, or the error says what to type."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import wellcal as wc
from wellcal.reading import ReadError, case_batches, read_cases

Run = Callable[..., Any]
TEXTS = "label,prob\n" + "no,0.2\nyes,0.7\nyes,0.6\n" * 3


def test_names_of_classes_go_with_guessed_columns(run: Run) -> None:
    given = ("scores", "-", "--measures", "nll,brier")
    done = run(*given, text=TEXTS, expect=2)
    assert done.stderr.rstrip().endswith(
        "say which of two is predicted by naming it last, e.g. --classes no,yes"
    )
    named = run(*given, "--classes", "no,yes", text=TEXTS)
    assert named.stdout == run(*given, "--classes", "no,yes", "--bernoulli", "prob", text=TEXTS).stdout
    numbers = TEXTS.replace("no", "0").replace("yes", "1")
    assert named.stdout == run(*given, text=numbers).stdout
    other = run(*given, "--classes", "yes,no", text=TEXTS)
    assert other.stdout != named.stdout
    done = run("scores", "stream.csv", "--classes", "no,yes", expect=2)
    assert "--classes is for bernoulli and probs, found normal" in done.stderr


def test_numbers_of_classes_go_with_columns_that_have_names(run: Run, folder: Path) -> None:
    given = ("scores", "-", "--target", "label", "--probs", "p_*", "--measures", "nll")
    text = "label,p_cat,p_dog\ncat,0.8,0.2\ndog,0.3,0.7\n"
    wanted = run(*given, text=text).stdout
    for cat, dog in (("0", "1"), ("1", "2")):
        numbers = text.replace("\ncat", f"\n{cat}").replace("\ndog", f"\n{dog}")
        said = run(*given, text=numbers, expect=2).stderr
        assert said.endswith(f"if its numbers count the classes in this order, --classes {cat},{dog}\n")
        assert run(*given, "--classes", f"{cat},{dog}", text=numbers).stdout == wanted
    said = run(*given, text=text.replace("\ndog", "\n7").replace("\ncat", "\n0"), expect=2).stderr
    assert said.endswith("the classes are 'cat', 'dog'; give target 'label' as these\n")


def test_no_number_depends_on_how_the_file_is_written(run: Run, folder: Path) -> None:
    given = ("--target", "y", "--normal", "mu,sigma")
    text = (folder / "preds.csv").read_text()
    shown = run("scores", "preds.csv", *given).stdout
    assert "(unbiased)" in shown
    assert (
        shown == run("scores", "preds.parquet", *given).stdout == run("scores", "-", *given, text=text).stdout
    )
    assert "(block)" in run("scores", "preds.csv", *given, "--block-size", "20").stdout


@pytest.mark.parametrize(
    ("begins", "goes_on"), [("", "seen again"), ("17", "A17"), ("x" * 70_000, "y" * 70_000)]
)
def test_a_column_that_is_not_asked_for_holds_anything(
    run: Run, tmp_path: Path, begins: str, goes_on: str
) -> None:
    """It has no value at first, or numbers, or lines are longer than what is looked at for the kinds."""
    first, then = (f"0.5,0.25,1.0,{note}\n" for note in (begins, goes_on))
    text = "y,mu,sigma,note\n" + (first * 6_000 if len(first) < 99 else first) + then
    (tmp_path / "notes.csv").write_text(text)
    given = ("--target", "y", "--normal", "mu,sigma", "--measures", "nll")
    shown = run("scores", str(tmp_path / "notes.csv"), *given).stdout
    assert "cases: NLL 0.9502." in shown
    assert run("scores", "-", *given, text=text).stdout == shown


def test_blocks_are_for_cases_without_weights(run: Run) -> None:
    given = ("scores", "preds.csv", "--target", "y", "--normal", "mu,sigma", "--weights", "weight")
    for measures in ((), ("--measures", "skce")):
        done = run(*given, *measures, "--block-size", "20", expect=2)
        assert (
            "--block-size is for the SKCE without weights: with --weights it visits all pairs" in done.stderr
        )


def test_an_e_value_of_any_size_is_a_word(run: Run) -> None:
    done = run("test", "stream.csv", "--target", "y", "--normal", "mu,0", "--resamples", "19")
    assert re.search(r"e-value +more than 10\^1000  \(", done.stdout)


def test_probabilities_that_miss_one_in_a_row_are_no_draws(run: Run) -> None:
    text = "label,p_a,p_b,p_c\n" + "a,0.2,0.5,0.3\nb,0.6,0.2,0.2\n" * 3 + "c,0.5,0.2,0.2\n"
    done = run("scores", "-", text=text, expect=2)
    remedy = "divide each row of probs by its sum: --normalise does so where rounding explains it"
    assert done.stderr.rstrip().endswith(f"in row 7: found 0.9; {remedy}")
    done = run("scores", "-", "--normalise", text=text, expect=2)
    assert "the sum of probs must be one within 0.015 for --normalise in row 7: found 0.9;" in done.stderr
    draws = "label,p_a,p_b,p_c\n" + "a,10.2,9.5,8.3\nb,6.6,4.2,3.2\n"
    done = run("scores", "-", text=draws, expect=2)
    assert done.stderr.rstrip().endswith("draws from the predictions are --samples")


def test_all_parameters_of_a_family_are_asked_for(run: Run) -> None:
    assert "LOC,SCALE,SHAPE" in run("test", "--help").stdout
    done = run("scores", "stream.csv", "--power-exponential", "mu,sigma", expect=2)
    assert "power_exponential takes loc (a column), scale (a column), shape (a column)" in done.stderr
    assert run("scores", "stream.csv", "--power-exponential", "mu,sigma,2", "--measures", "nll").stdout


def test_one_number_for_all_spreads_of_vectors(run: Run, folder: Path) -> None:
    given = ("--target", "y,mu", "--diagonal-normal")
    one = run("scores", "preds.csv", *given, "mu_a,mu_b;1", "--measures", "nll")
    two = run("scores", "preds.csv", *given, "mu_a,mu_b;sigma_a,sigma_b", "--measures", "nll")
    assert one.stdout.splitlines()[0] == two.stdout.splitlines()[0]
    given = (*given, "mu_a,mu_b;1", "--out", "vectors.csv", "--folds", "2", "--resamples", "19")
    run("recalibrate", "preds.csv", *given)
    written = (folder / "vectors.csv").read_text().splitlines()[0]
    assert written.endswith('"scale_mu_a","scale_mu_b"')


def test_one_case_is_too_few_for_the_test_and_not_for_a_method(run: Run) -> None:
    text = "y,mu,sigma\n0.3,0.1,1.0\n"
    assert (
        "wellcal test: the test needs at least 2 cases, found 1"
        in run("test", "-", text=text, expect=2).stderr
    )
    done = run("test", "-", "--method", "bootstrap", text=text, expect=2)
    assert "method='bootstrap' needs at least" in done.stderr


def test_missing_values_are_counted_alike_wherever_they_are_from(tmp_path: Path, monkeypatch: Any) -> None:
    rows = [f"{k / 8},{k / 9},1.0" for k in range(10)]
    rows[5], rows[6], rows[8] = ",0.5,1.0", "0.5,,", "0.5,0.5,"
    text = "y,mu,sigma\n" + "\n".join(rows) + "\n"
    path = tmp_path / "a.csv"
    path.write_text(text)
    with pytest.raises(ReadError) as whole:
        read_cases(path)
    with pytest.raises(ReadError) as parts:
        list(case_batches(path, options={"rows": 4}))
    assert str(parts.value) == str(whole.value)
    with path.open("rb") as file:
        monkeypatch.setattr("sys.stdin", type("Input", (), {"buffer": file}))
        with pytest.raises(ReadError) as piped:
            list(case_batches("-", options={"rows": 4, "format": "csv"}))
    assert "missing in 3 of 10 rows: 'y' (1), 'mu' (1), 'sigma' (2), the first in row 6" in str(whole.value)
    assert "missing in 2 of the first 8 rows: 'y' (1), 'mu' (1), 'sigma' (1), the first in row 6;" in str(
        piped.value
    )


def test_the_seed_is_told_once(run: Run) -> None:
    assert run("test", "stream.csv", "--resamples", "99").stdout.count("seed") == 1


def test_a_witness_names_the_command_that_looks_at_all_cases(run: Run) -> None:
    done = run("witness", "stream.csv", "--resamples", "99")
    assert "for all cases together: wellcal test" in done.stdout


@pytest.mark.parametrize("header", ["label,score,other", "label,f_0,f_1", "0.05,0.5,label"])
def test_columns_without_a_usual_name_are_to_be_named(run: Run, header: str) -> None:
    done = run("scores", "-", text=f"{header}\n0.5,0.25,3\n0.1,0.3,0.2\n", expect=2)
    assert done.stderr.rstrip().endswith("say it, e.g. --normal mu,sigma, --probs no,yes or --samples s0:s99")


def test_what_was_given_was_not_guessed(run: Run) -> None:
    for command in ("scores", "test"):
        more = () if command == "scores" else ("--resamples", "19")
        for given, guessed in (
            ((), "target: y; normal: loc = mu, scale = sigma"),
            (("--target", "y"), "normal: loc = mu, scale = sigma"),
            (("--normal", "mu,sigma"), "target: y"),
        ):
            told = run(command, "stream.csv", *given, *more).stderr
            assert told == f"Guessed from the names of columns: {guessed}.\n"
    assert not run("scores", "stream.csv", "--target", "y", "--normal", "mu,sigma").stderr


def test_a_picture_that_does_not_fit_names_the_command_that_does(run: Run) -> None:
    done = run("plot", "reliability", "stream.csv", "--target", "y", "--normal", "mu,sigma", expect=2)
    assert done.stderr.endswith("found Normal; wellcal plot pit is for numbers, counts and samples\n")


def test_arrays_are_called_by_their_names(run: Run, folder: Path) -> None:
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(12, 8))
    np.savez(folder / "draws.npz", y_true=draws[:, 0], draws=draws[:, 1:])
    np.savez(folder / "forecast.npz", y_true=draws[:, 0], forecast=draws[:, 1:])
    np.savez(folder / "across.npz", y=draws[:, 0], draws=draws[:, 1:].T)
    guessed = run("scores", "draws.npz", "--measures", "crps")
    assert "samples: values = draws_0 .. draws_6 (7 columns)" in guessed.stderr
    named = run("scores", "forecast.npz", "--samples", "forecast", "--measures", "crps")
    assert named.stdout == guessed.stdout.replace("draws_", "forecast_")
    done = run("scores", "across.npz", expect=2)
    assert "found 12 rows in 'y' and 7 in 'draws'; transpose? write draws.T, of shape (12, 7)" in done.stderr


def test_grades_of_a_text_file_have_the_order_that_is_said(run: Run, folder: Path) -> None:
    """Whatever the order of the columns: the same as an ordered categorical in Parquet."""
    names = ["poor", "fair", "good"]
    frame = pd.read_csv(folder / "preds.csv")
    probs = {f"p_{name}": frame[f"p_{old}"] for name, old in zip(names, ("cat", "dog", "eel"), strict=True)}
    label = frame["label"].map(dict(zip(("cat", "dog", "eel"), names, strict=True)))
    ordered = pd.DataFrame({"grade": pd.Categorical(label, names, ordered=True), **probs})
    ordered.to_parquet(folder / "grades.parquet")
    columns = ["p_good", "grade", "p_poor", "p_fair"]
    ordered[columns].astype({"grade": str}).to_csv(folder / "grades.csv", index=False)
    given = ("--target", "grade", "--measures", "crps,skce")
    expected = run("scores", "grades.parquet", *given).stdout.splitlines()[0]
    assert (
        run("scores", "grades.csv", *given, "--grades", "poor,fair,good").stdout.splitlines()[0] == expected
    )
    assert "crps needs predictions of numbers, found" in run("scores", "grades.csv", *given, expect=2).stderr
    done = run("scores", "grades.csv", *given, "--grades", "poor,fair", expect=2)
    assert "grades must name all classes from the lowest to the highest, found 'poor', 'fair'" in done.stderr
    done = run("scores", "stream.csv", "--grades", "poor,fair", expect=2)
    assert "--grades is for probs, found normal; leave it out" in done.stderr
    done = run("scores", "stream.csv", "--normal", "mu,sigma", "--grades", "poor,fair", expect=2)
    assert "--grades is for predictions of classes, found --normal" in done.stderr
    for kind in ("pit", "residuals"):
        done = run("plot", kind, "grades.csv", "--target", "grade", "--out", "g.svg", expect=2)
        assert "pit needs an order, and 3 classes have none" in done.stderr
        assert "give their order with --grades, from the lowest to the highest" in done.stderr
        assert "support=" not in done.stderr
    done = run("scores", "grades.csv", "--target", "grade", "--measures", "pit", expect=2)
    assert "give their order with --grades" in done.stderr
    done = run("scores", "grades.csv", "--target", "grade", "--json", "-")
    found = json.loads(done.stdout)["result"]
    assert "pit" not in found["estimates"]
    assert "3 classes have none" in found["left_out"]["pit"]
    pred = wc.as_predictions(ordered[columns], probs="p_*", grades=names)
    assert pred.labels().tolist() == ["good", "poor", "fair"]
    assert pred.support.tolist() == [2.0, 0.0, 1.0]


@pytest.mark.parametrize("given", ["copy.csv", "./copy.csv", "link.csv"])
def test_what_is_read_is_not_written_over(run: Run, folder: Path, given: str) -> None:
    (folder / "copy.csv").write_bytes((folder / "stream.csv").read_bytes())
    (folder / "link.csv").unlink(missing_ok=True)
    (folder / "link.csv").symlink_to("copy.csv")
    before = (folder / "copy.csv").read_bytes()
    for command in (
        ("recalibrate", "copy.csv", "--out", given),
        ("recalibrate", "copy.csv", "--scaling", given),
        ("report", "copy.csv", "--out", given),
        ("test", "copy.csv", "--json", given),
        ("monitor", "copy.csv", "--state", given),
    ):
        done = run(*command, "--normal", "mu,sigma", expect=2)
        assert f"{command[2]} {given}: the file that is read would be lost; give another name" in done.stderr
        assert (folder / "copy.csv").read_bytes() == before
    twice = ("--out", "new.csv", "--scaling", "./new.csv")
    done = run("recalibrate", "copy.csv", "--normal", "mu,sigma", *twice, expect=2)
    assert "--scaling ./new.csv: --out writes it, too; give another name" in done.stderr
    assert not (folder / "new.csv").exists()


def test_a_glob_without_the_sign_before_names_means_the_same(run: Run, folder: Path) -> None:
    p = np.array([[0.2, 0.8], [0.6, 0.4], [0.7, 0.3]])
    np.savez(folder / "arrays.npz", y=np.array([1, 0, 0]), p=p)
    given = ("scores", "arrays.npz", "--target", "y", "--measures", "nll,brier")
    one, other = (run(*given, "--probs", glob).stdout for glob in ("p_*", "p*"))
    assert one == other
    assert read_cases(folder / "arrays.npz", "y", probs="p*").pred.labels().tolist() == [0, 1]


def test_a_folder_is_no_file_that_was_meant(run: Run, folder: Path) -> None:
    (folder / "predicted.csv.d").mkdir(exist_ok=True)
    done = run("test", "predicted.csv", expect=2)
    assert "predicted.csv.d" not in done.stderr
    assert "there is no such file" in done.stderr
