"""The same data and the same call have the same answer, and no two functions contradict each other.

Data sets are chosen so near to the error rate of 0.05 that other draws would change verdicts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import special, stats
from typer.testing import CliRunner

import wellcal as wc
from wellcal._arrays.seeds import DEFAULT_SEED, as_generator, known_seed
from wellcal.cli import app
from wellcal.hypotests.result import seed_text

N = 80


def case(name: str) -> tuple[Any, Any]:
    """Targets and predictions of a family, whose p-value is between 0.03 and 0.07."""
    rng = np.random.default_rng(SEEDS[name])
    mu = rng.normal(size=N)
    if name == "normals":
        return rng.normal(mu, 1.25), wc.Normal(mu, np.ones(N))
    if name == "counts":
        return rng.poisson(np.exp(mu) * 1.2), wc.Poisson(np.exp(mu))
    if name == "binary":
        return rng.uniform(size=N) < special.expit(0.6 * mu), wc.Bernoulli(special.expit(1.4 * mu))
    if name in ("classes", "grades"):
        logits = rng.normal(size=(N, 3))
        upto = special.softmax(logits, axis=1).cumsum(axis=1)
        y = (upto < rng.uniform(size=(N, 1))).sum(axis=1)
        p = special.softmax(1.8 * logits, axis=1)
        return (y, wc.Categorical(p)) if name == "classes" else (y + 1, wc.Categorical(p, support=[1, 2, 3]))
    if name == "draws":
        return rng.normal(mu, 1.3), wc.Samples(rng.normal(mu[:, None], 1.0, (N, 12)))
    if name == "quantiles":
        levels = np.array([0.1, 0.5, 0.9])
        return rng.normal(mu, 1.3), wc.Quantiles(levels, mu[:, None] + special.ndtri(levels))
    if name == "vectors":
        return rng.normal(size=(N, 2)) * 1.15, wc.DiagonalNormal(np.zeros((N, 2)), np.ones((N, 2)))
    parts = [wc.Normal(mu + by, np.ones(N)) for by in (-0.3, 0.3)]
    return rng.normal(mu, 1.3), wc.Mixture(parts)


SEEDS = {
    "normals": 17,
    "counts": 29,
    "binary": 5,
    "classes": 7,
    "grades": 23,
    "draws": 13,
    "quantiles": 4,
    "vectors": 21,
    "mixtures": 21,
}


def pictures(name: str, y: Any, pred: Any) -> dict[str, Any]:
    """Displays of a family that have a verdict in their title."""
    shown = wc.displays
    kinds: dict[str, Any] = {}
    if name in ("binary", "classes", "grades"):
        kinds["reliability"] = shown.ReliabilityDisplay
    elif name == "vectors":
        kinds |= {"coordinates": shown.CoordinatesDisplay, "correlations": shown.CorrelationsDisplay}
    else:
        kinds |= {"pit": shown.PITDisplay, "coverage": shown.CoverageDisplay}
    found = {key: display.computed(y, pred) for key, display in kinds.items()}
    drawn = {"null": shown.NullDisplay, "drawn": shown.PITDisplay} if name == "normals" else {}
    return found | {key: display.from_predictions(y, pred) for key, display in drawn.items()}


@pytest.mark.parametrize("name", SEEDS)
def test_all_functions_say_the_same_of_a_model(name: str) -> None:
    """By the same p-value, though other seeds would change what is said."""
    y, pred = case(name)
    first = wc.calibration_test(y, pred)
    assert 0.03 < first.pvalue < 0.07
    assert wc.calibration_test(y, pred, rng=1).pvalue != first.pvalue
    told = wc.report(y, pred)
    shown = pictures(name, y, pred)
    pvalues = {
        "again": wc.calibration_test(y, pred).pvalue,
        "default seed": wc.calibration_test(y, pred, rng=DEFAULT_SEED).pvalue,
        "report": told.best.test.pvalue,
        "comparison": wc.compare(y, pred, pred).tests[0].pvalue,
        "several": wc.compare(y, {"a": pred, "b": pred}).tests[1].pvalue,
    }
    if name in ("normals", "classes"):
        found = wc.recalibration.cross_fit(y, pred)
        pvalues["recalibration"] = found.before.pvalue
    assert pvalues == dict.fromkeys(pvalues, first.pvalue)
    verdicts = {key: display.verdict for key, display in shown.items()}
    assert verdicts == dict.fromkeys(verdicts, first.verdict)
    rejected = {told.best.rejected, told.verdict.startswith("Miscalibrated"), bool(told.best.findings)}
    assert rejected == {first.rejected}
    if name == "normals":
        assert next(iter(told.figures.values())).display.verdict == first.verdict


def test_the_same_call_has_the_same_answer() -> None:
    """Of everything that draws numbers and is given no seed."""
    y, pred = case("counts")

    def answers() -> dict[str, Any]:
        monitor = wc.Monitor(warmup=5)
        monitor.update(y[:40], pred[:40])
        return {
            "report": wc.report(y, pred).to_dict(),
            "witness": wc.witness(y, pred, n_resamples=99).to_json(),
            "pit": wc.pit(y, pred).tolist(),
            "monitor": monitor.e_value,
            "ucme": float(wc.ucme(y, pred, locations=5)),
            "cross_fit": wc.recalibration.cross_fit(*case("binary"), n_resamples=99).after.pvalue,
            "plan": wc.plan(pred, against={"means": 0.5}, data_sets=20, n_resamples=19).to_json(),
        }

    assert answers() == answers()


def test_draws_of_predictions_are_new_each_time() -> None:
    """They are for simulations, which would otherwise meet the targets that a test draws."""
    pred = wc.Normal(np.zeros(5), 1.0)
    assert pred.sample().tolist() != pred.sample().tolist()
    assert pred.sample(3).tolist() == pred.sample(3).tolist()


@pytest.mark.parametrize("p", [0.3, 0.6])
def test_targets_that_were_simulated_with_the_default_seed_have_uniform_ranks(p: float) -> None:
    """Ranks are not randomised with the very numbers that the targets were made of."""
    y = as_generator(None).random(2000) < p
    for values in (
        wc.pit(y, wc.Bernoulli(np.full(2000, p))),
        wc.displays.PITDisplay.from_predictions(y, wc.Bernoulli(np.full(2000, p)), test=False).values,
    ):
        assert stats.kstest(values, "uniform").pvalue > 1e-4
    wrong = wc.pit(y, wc.Bernoulli(np.full(2000, p)), rng=DEFAULT_SEED)
    assert stats.kstest(wrong, "uniform").pvalue < 1e-4, "the very numbers: the check can fail"


def test_results_say_which_seed_they_took() -> None:
    y, pred = case("normals")
    assert wc.calibration_test(y, pred, n_resamples=99).provenance["seed"] == DEFAULT_SEED
    seeded = wc.calibration_test(y, pred, n_resamples=99, rng=7)
    assert seeded.provenance["seed"] == 7
    assert "99, seed 7" in repr(seeded)
    given = wc.calibration_test(y, pred, n_resamples=99, rng=np.random.default_rng(7))
    assert "seed" not in given.provenance
    assert (given.pvalue, "seed" in repr(given)) == (seeded.pvalue, False)
    told = dict(wc.report(y, pred, n_resamples=99).choices.rows)
    assert told["seed"] == seed_text(DEFAULT_SEED) == f"{DEFAULT_SEED} (default)"
    assert [known_seed(rng) for rng in (None, np.int64(3), True)] == [DEFAULT_SEED, 3, None]


def test_the_command_line_agrees(tmp_path: Path) -> None:
    y, pred = case("normals")
    first = wc.calibration_test(y, pred)
    rows = "\n".join(f"{a!r},{b!r},1.0" for a, b in zip(y.tolist(), pred.loc.tolist(), strict=True))
    (tmp_path / "preds.csv").write_text(f"y,mu,sigma\n{rows}\n")
    given = [str(tmp_path / "preds.csv"), "--target", "y", "--normal", "mu,sigma"]
    for command in (["test"], ["report", "--out", str(tmp_path / "r.html")]):
        out = tmp_path / f"{command[0]}.json"
        done = CliRunner().invoke(app, [command[0], *given, *command[1:], "--json", str(out)])
        assert done.exit_code == 0, done.output
        found = json.loads(out.read_text())["result"]
        test = found["models"][0]["test"] if command[0] == "report" else found
        assert test["pvalue"] == first.pvalue
