"""What commands do with files of predictions."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wellcal as wc
from wellcal.cli.inputs import read, segment_columns
from wellcal.cli.options import ReadOptions
from wellcal.cli.screen import in_options
from wellcal.reading import read_cases, read_table

Run = Callable[..., Any]


NORMAL = ("--target", "y", "--normal", "mu,sigma")


def test_the_written_files_hold_what_they_should(run: Run, folder: Path) -> None:
    run(
        "recalibrate",
        "preds.csv",
        "--target",
        "y",
        "--normal",
        "mu,sigma",
        "--out",
        "new.parquet",
        "--resamples",
        "99",
    )
    old, new = read_table(folder / "preds.csv"), pq.read_table(folder / "new.parquet")
    assert new.column_names == old.column_names
    same = [name for name in old.column_names if name not in ("mu", "sigma")]
    assert new.select(same).to_pylist() == old.select(same).to_pylist()
    assert np.allclose(new["mu"].to_numpy(), old["mu"].to_numpy())
    assert np.all(new["sigma"].to_numpy() > 1.5 * old["sigma"].to_numpy())
    run("plot", "coverage", "stream.csv", "--out", "c.png", "--resamples", "99")
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    run("plot", "pit", "stream.csv", "--out", "p.svg", "--resamples", "99")
    assert "<text" in (folder / "p.svg").read_text()


@pytest.mark.parametrize("end", ["csv", "tsv", "parquet", "jsonl"])
def test_other_columns_are_passed_on_as_they_are_written(run: Run, tmp_path: Path, end: str) -> None:
    rest = ["10935374292672221319,02602,1.10,TRUE,a b", "10935374292672221320,12602,1.9,FALSE,a"]
    lines = [f"{rest[k % 2]},{np.sin(k)},0,1" for k in range(12)]
    source, out = tmp_path / "preds.csv", tmp_path / f"out.{end}"
    source.write_text("id,zip,ver,ok,note,y,mu,sigma\n" + "\n".join(lines))
    run("recalibrate", str(source), "--normal", "mu,sigma", "--resamples", "50", "--out", str(out))
    names = ["id", "zip", "ver", "ok", "note"]
    if end in ("csv", "tsv"):
        sign = "\t" if end == "tsv" else ","
        written = [line.split(sign)[:5] for line in out.read_text().splitlines()[1:]]
    else:
        written = [[row[name] for name in names] for row in read_table(out).to_pylist()]
    assert written == [rest[k % 2].split(",") for k in range(12)]


@pytest.mark.parametrize(
    ("y", "columns", "row", "decimal"),
    [
        (("TRUE", "FALSE"), "id,p", "7,0.5", "."),
        (("TRUE", "FALSE"), "id;p", "7;0,5", ","),
        (("1", "01"), "p_01,p_02", "0.5,0.5", "."),
        (("0.10", "1.50"), "mu,sigma", "0.5,0.5", "."),
    ],
)
def test_targets_are_passed_on_as_they_are_written(
    run: Run, tmp_path: Path, y: tuple[str, str], columns: str, row: str, decimal: str
) -> None:
    sign = ";" if decimal == "," else ","
    source, out = tmp_path / "preds.csv", tmp_path / "out.csv"
    rows = "".join(f"{label}{sign}{row}\n" for label in ("", *y * 6))
    source.write_text(f"y{sign}{columns}\n{rows}")
    given = ("--drop-missing", "--decimal", decimal, "--resamples", "50")
    run("recalibrate", str(source), *given, "--out", str(out))
    written = [line.split(",")[0] for line in out.read_text().splitlines()[1:]]
    assert written == [*y] * 6


@pytest.mark.parametrize("end", ["csv", "tsv", "parquet", "arrow", "jsonl", "npz"])
def test_recalibrated_probabilities_in_every_format(run: Run, folder: Path, end: str) -> None:
    given = ("--target", "label", "--probs", "p_*")
    run(
        "recalibrate",
        "preds.csv",
        *given,
        "--out",
        f"p.{end}",
        "--folds",
        "2",
        "--scaling",
        "s.json",
        "--resamples",
        "39",
    )
    old, new = (read_cases(folder / name, "label", probs="p_*") for name in ("preds.csv", f"p.{end}"))
    assert new.y.tolist() == old.y.tolist()
    assert np.allclose(np.asarray(new.pred.probs).sum(axis=1), 1.0)
    scaling = wc.TemperatureScaling.load(folder / "s.json")
    assert scaling.family_ == "Categorical"


# -- what is read --------------------------------------------------------------------------------------


def test_roles_are_guessed_and_shown_before_use(run: Run) -> None:
    done = run("test", "good.csv", "--resamples", "99")
    assert done.stderr.startswith(
        "Guessed from the names of columns: target: y; normal: loc = mu, scale = sd.\n"
    )
    done = run("test", "preds.csv", expect=2)
    assert "the targets may be 'y' or 'label'; say which, e.g. --target y" in done.stderr


def test_standard_input_ranges_numbers_and_rounded_probabilities(run: Run, folder: Path) -> None:
    text = (folder / "stream.csv").read_bytes()
    direct, piped = (
        run("test", "stream.csv", "--resamples", "99"),
        run("test", "-", "--resamples", "99", text=text),
    )
    assert piped.stdout == direct.stdout
    done = run("scores", "stream.csv", "--target", "y", "--normal", "mu,0.4")
    assert done.stdout == run("scores", "stream.csv").stdout.replace("scale = sigma", "scale = 0.4")
    text = "label,p_0,p_1,p_2\n1,0.2,0.5,0.3\n0,0.6,0.2,0.2\n"
    assert (
        "p_0 .. p_2 (3 columns)"
        in run("scores", "-", "--target", "label", "--probs", "p_0:p_2", text=text).stdout
    )
    rounded = "label,p_0,p_1\n0,0.333,0.666\n1,0.5,0.5\n"
    done = run("scores", "-", "--target", "label", "--probs", "p_*", text=rounded, expect=2)
    assert "sum" in done.stderr
    assert run("scores", "-", "--target", "label", "--probs", "p_*", "--normalise", text=rounded).stdout
    two_digits = "label,p_0,p_1,p_2\n0,0.33,0.33,0.33\n1,0.34,0.33,0.34\n"
    assert run("scores", "-", "--target", "label", "--probs", "p_*", "--normalise", text=two_digits).stdout
    far = rounded.replace("0.666", "0.5")
    assert "sum" in run("scores", "-", "--probs", "p_*", "--normalise", text=far, expect=2).stderr


def test_a_key_that_comes_late_in_standard_input(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may come after what was looked at, and the error says so; not where all was looked at."""
    early, late = '{"y": 1, "q": 0.5}\n', '{"y": 1, "q": 0.5, "p": 0.5}\n'
    given = ("scores", "-", "--bernoulli", "p", "--drop-missing")
    whole = run(*given, text=early * 40, expect=2).stderr
    assert "there is no column 'p'" in whole
    assert "goes on" not in whole
    monkeypatch.setattr("wellcal.reading.texts.BLOCK", 256)
    done = run(*given, text=early * 40 + late * 40, expect=2)
    assert "after its first 13 rows is not known: write null where a value is missing" in done.stderr
    null = early.replace("}", ', "p": null}')
    assert run(*given, text=null + early * 40 + late * 40).stdout.startswith("40 cases")


def test_classes_have_names(run: Run) -> None:
    text = "y,p\nno,0.2\nyes,0.7\nyes,0.6\n"
    numbers = text.replace("no", "0").replace("yes", "1")
    done = run("scores", "-", "--target", "y", "--bernoulli", "p", text=text, expect=2)
    assert "are texts ('no', 'yes'): say which of two is predicted" in done.stderr
    assert "--classes no,yes" in done.stderr
    given = ("scores", "-", "--target", "y", "--bernoulli", "p")
    given = (*given, "--measures", "nll,brier")
    assert run(*given, "--classes", "no,yes", text=text).stdout == run(*given, text=numbers).stdout
    given = ("scores", "preds.csv", "--target", "label", "--probs")
    named = run(*given, "p_cat,p_dog,p_eel", "--classes", "cat,dog,eel")
    assert named.stdout == run(*given, "p_*").stdout
    done = run("scores", "stream.csv", "--target", "y", "--normal", "mu,sigma", "--classes", "a,b", expect=2)
    assert "--classes is for predictions of classes" in done.stderr


def test_guessed_columns_that_hold_no_numbers(run: Run) -> None:
    done = run("test", "-", text="y;mu;sigma\n0,1;0,2;1,0\n", expect=2)
    assert "column 'mu' must hold numbers" in done.stderr
    assert "read the file with --decimal ','" in done.stderr


def test_entries_that_are_no_numbers_have_a_remedy(run: Run) -> None:
    def said(*entries: str) -> str:
        rows = "".join(f'"{entry}",1100,100\n' for entry in entries)
        return run("test", "-", *NORMAL, text=f"y,mu,sigma\n{rows}", expect=2).stderr

    assert "read the file with --decimal ',' if the comma is decimal; write" in said("1,037", "951")
    assert "('oops' in row 2); mend that entry, or name another column" in said("1037", "oops")
    assert "('25%' in row 1); write shares without the sign, such as 0.25 for 25%" in said("25%", "30 %")
    assert "('low' in row 1); name another column" in said("low", "high")


def test_missing_values_are_refused_or_counted(run: Run) -> None:
    text = "y,mu,sigma\n" + "0.1,0.0,1.0\n" * 8 + ",0.0,1.0\n0.2,,1.0\n"
    done = run("test", "-", text=text, expect=2)
    assert "missing in 2 of 10 rows: 'y' (1), 'mu' (1), the first in row 9;" in done.stderr
    for command in ("scores", "test", "monitor"):
        done = run(command, "-", "--drop-missing", text=text)
        assert "2 of 10 rows dropped" in done.stderr
    done = run("test", "-", "--drop-missing", "--json", "-", text=text)
    assert json.loads(done.stdout)["dropped"] == 2


def test_examples_of_a_report_are_named_by_their_rows_in_the_file(run: Run, tmp_path: Path) -> None:
    """Counted from 1, as in errors, and with those that were dropped."""
    rng = np.random.default_rng(0)
    y = np.round(rng.normal(np.repeat([0.0, 4.0], 15), 1.0), 4)
    lines = [f"{a},{b},1.0" for a, b in zip(y, np.repeat([0.0, 1.0], 15), strict=True)]
    lines[10:10] = [",0.0,1.0"] * 7
    path, found = tmp_path / "rows.csv", tmp_path / "found.json"
    path.write_text("\n".join(["y,mu,sigma", *lines, ""]))
    run("report", str(path), "--drop-missing", "--json", str(found))
    groups = json.loads(found.read_text())["result"]["models"][0]["worst_groups"]
    examples = [example for group in groups for example in group["examples"]]
    assert examples
    for example in examples:
        row = int(example["label"].removeprefix("row "))
        assert lines[row - 1].split(",")[0] == f"{y[example['row']]}"
        assert float(example["observed"]) == pytest.approx(y[example["row"]], rel=0.01)


def test_targets_may_be_called_by_the_whole_names_of_columns(run: Run, tmp_path: Path) -> None:
    """The columns are listed then: a star or a range stands for the rest of the names."""
    path = tmp_path / "p.csv"
    path.write_text("kind,class_0,class_1\n" + "class_0,0.8,0.2\nclass_1,0.3,0.7\n,0.5,0.5\n" * 4)
    for command in ("scores", "monitor"):
        run(command, str(path), "--target", "kind", "--probs", "class_0,class_1", "--drop-missing")
    done = run("scores", str(path), "--target", "kind", "--probs", "class_*", "--drop-missing", expect=2)
    assert "found 'class_0'" in done.stderr
    assert "the classes are '0', '1'" in done.stderr


def test_weights_that_are_texts_are_refused_with_the_entry(run: Run) -> None:
    text = "y;p;ead\n1;0,5;14.420,22\n0;0,5;2.546,23\n"
    done = run("scores", "-", "--decimal", ",", "--weights", "ead", text=text, expect=2)
    assert "column 'ead' must hold numbers, found text or objects ('14.420,22' in row 1)" in done.stderr


def test_weights_segments_and_groups(run: Run, folder: Path) -> None:
    cases = read_cases(
        folder / "preds.csv", "y", normal=("mu", "sigma"), others=["weight", "patient", "region"]
    )
    model = ("--target", "y", "--normal", "mu,sigma")
    found = json.loads(run("scores", "preds.csv", *model, "--weights", "weight", "--json", "-").stdout)
    weights = cases.others["weight"]
    for name, function in {"nll": wc.nll, "crps": wc.crps, "skce": wc.skce}.items():
        wanted = function(cases.y, cases.pred, weights=weights)
        assert found["result"]["estimates"][name]["value"] == pytest.approx(float(wanted), rel=1e-12)
    found = json.loads(
        run("test", "preds.csv", *model, "--groups", "patient", "--resamples", "99", "--json", "-").stdout
    )
    wanted = wc.calibration_test(cases.y, cases.pred, groups=cases.others["patient"], rng=0, n_resamples=99)
    assert found["result"]["pvalue"] == wanted.pvalue
    assert found["result"]["provenance"]["clusters"] == 30
    report = json.loads(run("report", "preds.csv", *model, "--groups", "patient", "--json", "-").stdout)
    clustered = wc.calibration_test(cases.y, cases.pred, groups=cases.others["patient"], rng=0)
    assert report["result"]["models"][0]["test"]["pvalue"] == clustered.pvalue
    found = json.loads(
        run(
            "witness", "preds.csv", *model, "--weights", "weight", "--segments", "region", "--json", "-"
        ).stdout
    )
    labels = {"region": cases.others["region"]}
    witness = wc.witness(cases.y, cases.pred, weights=weights, segments=labels, rng=0)
    assert found["result"]["segments"] == json.loads(witness.to_json())["segments"]
    line = (
        "compare",
        "preds.csv",
        "--resamples",
        "99",
        "--target",
        "y",
        "--normal",
        "mu_a,sigma_a",
        "--versus-normal",
        "mu_b,sigma_b",
    )
    found = json.loads(run(*line, "--weights", "weight", "--json", "-").stdout)
    assert "weights" in found["result"]["provenance"]
    done = run("scores", "preds.csv", *model, "--weights", "weight", "--measures", "coverage", expect=2)
    assert "weights have no meaning for coverage" in done.stderr


# -- what comes out ------------------------------------------------------------------------------------


def test_status_one_where_it_is_rejected_and_that_counts(run: Run) -> None:
    few = ("--resamples", "99")
    assert run("test", "stream.csv", *few).exit_code == 0
    run("test", "stream.csv", "--fail-on-reject", *few, expect=1)
    run("test", "good.csv", "--fail-on-reject", *few)
    run("test", "stream.csv", "--fail-on-reject", "--tolerance", "5")
    run("monitor", "stream.csv", "--fail-on-reject", *few, expect=1)
    run("witness", "stream.csv", "--fail-on-reject", *few, expect=1)


def test_json_holds_everything_and_goes_where_it_should(run: Run, folder: Path) -> None:
    done = run("test", "stream.csv", "--json", "out.json", "--seed", "3", "--resamples", "99")
    found = json.loads((folder / "out.json").read_text())
    assert found["verdict"] == done.stdout.splitlines()[0]
    assert (found["rejected"], found["seed"], found["cases"]) == (True, 3, 60)
    result = wc.TestResult.from_dict(found["result"])
    cases = read_cases(folder / "stream.csv")
    assert result == wc.calibration_test(cases.y, cases.pred, rng=3, n_resamples=99)


def test_what_cannot_be_written_is_refused_before_the_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("wellcal.reading.read_models", never)
    monkeypatch.setattr("wellcal.reading.case_batches", never)
    options = {"test": "--json", "report": "--out", "recalibrate": "--scaling", "monitor": "--state"}
    for command, option in options.items():
        done = run(command, "good.csv", option, "no/such/folder.html", expect=2)
        assert f"{option} no/such/folder.html: there is no folder no/such" in done.stderr
        done = run(command, "good.csv", option, ".", expect=2)
        assert f"{option} .: is a folder; give the name of a file" in done.stderr


def test_all_figures_of_one_model_have_the_verdict_of_its_test(run: Run, folder: Path) -> None:
    """Though the SKCE by itself would say something else of these."""
    rng = np.random.default_rng(4)
    p = rng.dirichlet(np.ones(3), size=60)
    y = (p.cumsum(axis=1) < rng.random((60, 1))).sum(axis=1)
    rows = [f"{y[i]},{p[i, 0]:.17g},{p[i, 1]:.17g},{p[i, 2]:.17g}" for i in range(60)]
    (folder / "verdicts.csv").write_text("y,p_0,p_1,p_2\n" + "\n".join(rows) + "\n")
    model = ("verdicts.csv", "--target", "y", "--probs", "p_*", "--json", "-")
    told = json.loads(run("test", *model).stdout)
    alone = wc.calibration_test(y, wc.Categorical(p), method="exact", rng=0)
    assert abs(alone.pvalue - told["result"]["pvalue"]) > 0.02
    for kind in ("null", "reliability"):
        drawn = json.loads(run("plot", kind, *model, "--out", "v.svg").stdout)
        assert drawn["verdict"] == told["verdict"]


def test_a_name_with_a_comma_is_a_name(run: Run, folder: Path) -> None:
    """A text that is the name of a column is that column, before it is taken for several."""
    header = '"yield, kg","mu, kg",sigma,y_1,y_2,"soil, kind",region,area'
    (folder / "commas.csv").write_text(
        "\n".join([header, *["0.5,0.0,1.0,1,2,a,N,x", "1.5,1.0,1.0,3,4,b,S,y"] * 3])
    )
    role = ("--normal", '"mu, kg",sigma', "--json", "-")
    for target in ("yield, kg", '"yield, kg"'):
        found = json.loads(run("scores", "commas.csv", "--target", target, *role).stdout)
        assert found["taken"] == "target: yield, kg; normal: loc = mu, kg, scale = sigma"
    given = ReadOptions(
        str(folder / "commas.csv"),
        target="y_1, y_2",
        segments=["soil, kind", "region, area"],
        roles={"diagonal_normal": 'sigma,"mu, kg";1'},
    )
    cases = read(given)
    assert cases.taken == {
        "A": "target: y_1, y_2; diagonal_normal: loc = sigma .. mu, kg (2 columns), scale = 1"
    }
    segments = segment_columns(cases, given)
    assert segments is not None
    assert [(name, labels[0]) for name, labels in segments.items()] == [
        ("soil, kind", "a"),
        ("region", "N"),
        ("area", "x"),
    ]
    for many in ("region,area", "y_*"):
        refused = run("test", "commas.csv", "--target", "yield, kg", *role, "--groups", many, expect=2)
        assert f"--groups: {many!r} stands for 2 columns" in refused.stderr


def test_scores_say_what_outcomes_on_quantiles_forbid(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the screen with the reason; of a measure that was asked for, with the file and the row in it."""
    monkeypatch.setattr("wellcal.cli.inputs.ROWS", 7)
    lines = ["y,q25,q75", *["5.5,0,2"] * 3, ",0,2", *["5.5,0,2"] * 12, ",0,2", *["2,0,2"] * 8, *[",0,2"] * 9]
    (folder / "ties.csv").write_text("\n".join(lines) + "\n")
    shown = run("scores", "ties.csv", "--drop-missing").stdout
    assert re.search(
        r"\n  left out +ECE, coverage, PIT, SKCE: y equals its own quantile of level 0.75", shown
    )
    given = ("--drop-missing", "--measures", "pinball_loss,coverage")
    refused = run("scores", "ties.csv", *given, expect=2).stderr
    assert "ties.csv: y equals its own quantile" in refused
    assert "in 8 of 23 cases, first in row 18 (line 19)" in refused


@pytest.mark.parametrize("option", ["--groups", "--segments", "--weights"])
def test_a_column_that_is_not_there_is_that_of_its_option(run: Run, option: str) -> None:
    done = run("witness" if option != "--groups" else "test", "good.csv", option, "nowhere", expect=2)
    assert f"good.csv: {option}: there is no column 'nowhere'" in done.stderr


def test_figures_refuse_what_they_would_not_heed(run: Run) -> None:
    model = ("preds.csv", "--target", "y", "--normal", "mu,sigma")
    second = ("--versus-normal", "mu_a,sigma_a")
    for kind in ("witness", "null", "comparison", "monitor", "recalibration"):
        done = run("plot", kind, *model, "--groups", "patient", expect=2)
        assert "--groups has no meaning for this figure" in done.stderr
    for kind in ("witness", "null", "monitor", "recalibration"):
        done = run("plot", kind, *model, *second, expect=2)
        assert "--versus-normal has no meaning for this figure" in done.stderr
    done = run("plot", "pit", *model, *second, "--groups", "patient", expect=2)
    assert "--groups has no meaning for several models" in done.stderr


def test_figures_of_segments_of_maps_and_of_coordinates(run: Run, folder: Path) -> None:
    model = ("preds.csv", "--target", "y", "--normal", "mu,sigma", "--resamples", "199")
    done = run("plot", "segments", *model, "--segments", "region", "--out", "s.svg", "--json", "-")
    found = json.loads(done.stdout)
    frame = read_table(folder / "preds.csv")
    y, mu, sigma, region = (frame[name].to_numpy() for name in ("y", "mu", "sigma", "region"))
    report = wc.report(y, wc.Normal(mu, sigma), segments={"region": region}, rng=0, n_resamples=199)
    assert found["result"]["verdict"] == report.best.segments.verdict
    assert "for region = north" in (folder / "s.svg").read_text()
    assert "--segments is needed for this figure" in run("plot", "segments", *model, expect=2).stderr
    refused = run("plot", "pit", *model, "--segments", "region", expect=2).stderr
    assert "it is for segments and witness" in refused
    run("plot", "map", *model, "--out", "m.svg")
    assert "predicted mean" in (folder / "m.svg").read_text()
    vectors = ("preds.csv", "--target", "y,mu_b", "--diagonal-normal", "mu,mu_a;sigma,sigma_a")
    run("plot", "coordinates", *vectors, "--out", "v.svg", "--resamples", "99")
    assert "coordinate 2" in (folder / "v.svg").read_text()
    run("plot", "correlations", *vectors, "--out", "c.svg", "--resamples", "99")
    assert "1 and 2" in (folder / "c.svg").read_text()
    assert "coordinates are for predictions of vectors" in run("plot", "coordinates", *model, expect=2).stderr


def test_a_monitor_goes_on_from_its_state(run: Run, folder: Path) -> None:
    text = (folder / "good.csv").read_text().splitlines(keepends=True)
    first, second = "".join(text[:31]), text[0] + "".join(text[31:])
    given = ("--target", "y", "--normal", "mu,sd")
    run("monitor", "-", *given, "--state", "m.json", text=first)
    done = run("monitor", "-", *given, "--state", "m.json", "--json", "-", text=second)
    whole = json.loads(run("monitor", "good.csv", *given, "--json", "-").stdout)
    assert json.loads(done.stdout)["result"] == whole["result"]
    assert (json.loads(done.stdout)["new"], whole["new"]) == (30, 60)
    assert (
        "--run-length was chosen"
        in run("monitor", "good.csv", "--state", "m.json", "--run-length", "100", expect=2).stderr
    )


def test_several_models_have_names(run: Run) -> None:
    line = ("--target", "y", "--normal", "mu_a,sigma_a", "--versus-normal", "mu_b,sigma_b")
    third = ("--versus-normal", "mu,sigma", "--names", "good,shifted,narrow", "--resamples", "199")
    done = run("compare", "preds.csv", *line, *third)
    assert done.stdout.startswith("good is better calibrated than ")
    assert "2 different names" in run("compare", "preds.csv", *line, "--names", "a,a", expect=2).stderr
    done = run(
        "plot", "pit", "preds.csv", *line, "--names", "good,shifted", "--out", "two.svg", "--resamples", "99"
    )
    assert done.stdout.startswith("good is better calibrated than shifted")


def test_long_results_are_cut_with_a_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wellcal.cli.screen.MOST_LINES", 3)
    lines = run("test", "stream.csv", "--resamples", "99").stdout.splitlines()
    assert len(lines) == 4
    assert re.search(r"and \d+ lines more: --json - shows everything", lines[-1])
    lines = run("report", "stream.csv", "--out", "page.html").stdout.splitlines()
    assert len(lines) == 4
    assert re.fullmatch(r"  page +page.html", lines[2])


def test_a_file_that_needs_too_much_memory_is_refused_unread(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it was read")

    monkeypatch.setattr("wellcal.reading.models.read_labelled", never)
    for name in ("preds.parquet", "preds.csv"):
        done = run("test", name, "--memory", "50kB", expect=2)
        assert "60 rows of 14 columns" in done.stderr
        assert re.search(r"about 2 MB of memory are needed, and 50 kB may be used", done.stderr)
    counts = run("test", "preds.csv", "--poisson", "mu", "--memory", "50kB", expect=2).stderr
    assert "about 2.7 MB of memory are needed" in counts  # and five times as much for a case of counts
    model = ("preds.csv", "--normal", "mu,sigma", "--memory", "50kB")
    for command in (
        ("report",),
        ("witness",),
        ("recalibrate",),
        ("plot", "pit"),
        ("compare",),
    ):
        second = ("--versus-normal", "mu_a,sigma_a") if command == ("compare",) else ()
        assert "of memory are needed" in run(*command, *model, *second, expect=2).stderr
    monkeypatch.setattr("wellcal.reading.sizes.free_memory", lambda: 1000)
    assert "are free; scores and monitor" in run("test", "preds.csv", expect=2).stderr
    run("scores", "stream.csv")  # part by part
    for command in ("scores", "monitor"):
        done = run(command, "stream.csv", "--memory", "4GB", expect=2)
        assert "--memory has no meaning here: the file is read in parts" in done.stderr


def test_memory_that_is_needed_depends_on_what_is_done(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    n = 100_000
    rate = np.linspace(1.0, 9.0, n)
    table = pa.table({"y": np.arange(n) % 9, "rate": rate, "other": rate})
    pq.write_table(table, folder / "counts.parquet")
    monkeypatch.setattr("wellcal.reading.models.read_labelled", lambda *_, **__: pytest.fail("it was read"))

    def needed(command: str, *more: str) -> float:
        told = run(command, "counts.parquet", *more, "--memory", "1MB", expect=2).stderr
        found = re.search(r"about ([\d.]+) (GB|MB) of memory are needed", told)
        assert found, told
        return float(found[1]) * {"GB": 1e9, "MB": 1e6}[found[2]]

    counts = needed("test", "--poisson", "rate")
    assert needed("test", "--target", "y") == counts  # the family was guessed
    assert needed("test", "--normal", "rate,other") < 0.4 * counts
    assert needed("compare", "--poisson", "rate", "--versus-poisson", "other") > 1.8 * counts
    assert needed("witness", "--poisson", "rate") > counts
    assert needed("report", "--poisson", "rate") < 0.7 * counts  # which tests a part of the cases


def test_words_of_python_become_options() -> None:
    said = "with decimal=','; e.g. target=['y'] or normal=('mu', 'sigma'); not kind='draws', x=1, format="
    assert in_options(said) == (
        "with --decimal ','; e.g. --target y or --normal mu,sigma; not kind='draws', x=1, --format"
    )
    said = "(bernoulli={'probs': ..., 'classes': ['no', 'yes']} in Python)"
    assert in_options(said) == said
    said = "(ReliabilityDisplay, wellcal plot reliability); CoordinatesDisplay (wellcal plot coordinates)"
    assert in_options(said) == "(wellcal plot reliability); wellcal plot coordinates"
    said = "as quantiles={0.1: 'low', 0.9: 'high'}, take objective=\"skce\" with n_resamples=39, rng=3"
    assert in_options(said) == (
        "as --quantiles 0.1=low,0.9=high, take --objective skce with --resamples 39, --seed 3"
    )


def test_notes_and_colour(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = run("test", "stream.csv", "--resamples", "9", "--method", "exact")
    assert "Note: with --resamples 9 no p-value is below" in done.stderr
    from wellcal.cli.screen import show

    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    # What nobody asks for as JSON is not made: of a million cases that took seconds.
    show("test", "Miscalibrated [x].", ["  a  b"], to=None, content=lambda: 1 / 0, bad=True)
    assert re.fullmatch(r"\x1b\[[0-9;]+mMiscalibrated \[x\]\.\x1b\[0m\n  a  b\n", capsys.readouterr().out)
    monkeypatch.setenv("NO_COLOR", "1")
    show("test", "Miscalibrated.", [], to=None, content=dict, bad=True)
    assert capsys.readouterr().out == "Miscalibrated.\n"


def test_an_interruption_is_handed_on(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """What started the command says "Stopped." and ends with status 130."""

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(wc, "calibration_test", stop)
    with pytest.raises(KeyboardInterrupt):
        run("test", "good.csv")


@pytest.mark.parametrize("command", ["scores", "monitor"])
def test_progress_knows_how_much_is_left(
    run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    told: list[tuple[str, float, float]] = []
    monkeypatch.setattr(
        "wellcal.hypotests.progress.Progress.__call__", lambda _, *steps, **options: told.append(steps)
    )
    monkeypatch.setattr("wellcal.cli.inputs.ROWS", 20)
    few = ("--resamples", "19") if command == "monitor" else ()
    run(command, "preds.parquet", "--target", "y", "--normal", "mu,sigma", *few)
    steps = [(done, total) for what, done, total in told if what == command]
    assert steps == [(20, 60), (40, 60), (60, 61), (1, 1)]


def test_quantiles_that_cross_are_sorted_by_a_flag(run: Run) -> None:
    text = "y,q10,q50,q90\n" + "0.1,-1.0,0.0,1.0\n" * 30 + "0.1,1.0,0.0,2.0\n"
    done = run("test", "-", "--quantiles", "q*", text=text, expect=2)
    assert "cross (are not in increasing order) in row 31: found [1. 0. 2.]; give --sort" in done.stderr
    for given in (["--quantiles", "q*"], []):
        run("scores", "-", *given, "--sort", text=text)
    done = run("scores", "-", "--sort", text="y,mu,sigma\n0.1,0.0,1.0\n", expect=2)
    assert "--sort is for quantiles, found normal" in done.stderr


def test_errors_about_single_cases_name_the_file_and_its_row(run: Run, folder: Path) -> None:
    (folder / "weights.csv").write_text("y,mu,sigma,w\n0.1,0,1,1\n0.2,0,1,1\n0.3,0,1,-2\n")
    for command in ("scores", "witness"):
        done = run(command, "weights.csv", "--weights", "w", expect=2)
        assert "weights.csv: " in done.stderr
        assert "row 3 (line 4): found -2" in done.stderr
