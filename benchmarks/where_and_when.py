"""Studies of comparisons and of the witness: how often each claims what is not so."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc
from benchmarks import environment
from benchmarks.data_sets import CALIBRATED, SAMPLES, calibrated
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, rates
from wellcal.comparison import compare
from wellcal.comparison.models import prepare_models
from wellcal.comparison.several import compare_several
from wellcal.engines import Tiled
from wellcal.witnesses import witness

ONE_THREAD = Tiled(threads=1)
RESAMPLES = 99
OPTIONS: Any = {"expectations": "auto", "engine": ONE_THREAD, "n_resamples": RESAMPLES}


# -- comparison ------------------------------------------------------------------------------

NULL = (
    "both calibrated",
    "equal errors",
    "small equal errors",
    "narrow in halves",
    "two classes, both calibrated",
    "two classes, equal errors",
    "two classes, too sure in halves",
    "three classes, equal errors",
)
"""Two models whose calibration errors are equal."""

COMPARISONS = (
    *NULL,
    "nearly the same",
    "one calibrated",
    "spreads times 0.6",
    "two classes, log odds times 2",
    "two classes, log odds times 6",
    "three classes, log odds times 2",
)
CALIBRATED_BOTH = ("both calibrated", "two classes, both calibrated")


def _models(kind: str, n: int, rng: np.random.Generator) -> Any:
    """Targets, and the two models in the place of one."""
    if "classes" in kind:
        return _models_of_classes(kind, n, rng)
    mu, one = rng.normal(size=n), np.ones(n)
    y = rng.normal(mu, 1.0)
    if kind == "both calibrated":  # one of them knows nothing about the case
        return y, (wc.Normal(mu, one), wc.Normal(0.0 * mu, np.sqrt(2.0) * one))
    if kind == "spreads times 0.6":
        return y, (wc.Normal(mu, one), wc.Normal(mu, 0.6 * one))
    if kind == "narrow in halves":  # each model errs where the other does not
        half = rng.permutation(n) < n // 2
        return y, tuple(wc.Normal(mu, np.where(here, 0.6, 1.0)) for here in (half, ~half))
    shifts = {
        "equal errors": (0.5, -0.5),
        "small equal errors": (0.2, -0.2),
        "nearly the same": (0.5, 0.6),
        "one calibrated": (0.0, 0.5),
    }[kind]
    return y, tuple(wc.Normal(mu + shift, one) for shift in shifts)


def _models_of_classes(kind: str, n: int, rng: np.random.Generator) -> Any:
    """The same for classes: log odds are symmetric, so that errors to either side are equal."""
    count = 3 if kind.startswith("three") else 2
    logits = rng.normal(size=(n, count))
    probs = special.softmax(logits, axis=1)
    y = (rng.random(n)[:, None] > np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)

    def with_errors(*changed: Any) -> Any:
        return y, tuple(wc.Categorical(special.softmax(logit, axis=1)) for logit in changed)

    if kind.endswith("both calibrated"):  # one of them knows nothing about the case
        return with_errors(logits, 0.0 * logits)
    if kind.endswith("equal errors"):
        return with_errors(*(logits + 0.8 * (np.arange(count) == k) for k in (0, 1)))
    if kind.endswith("in halves"):
        half = (rng.permutation(n) < n // 2)[:, None]
        return with_errors(*(np.where(here, 3.0, 1.0) * logits for here in (half, ~half)))
    return with_errors(logits, float(kind.rpartition(" ")[2]) * logits)


def _compared(y: Any, models: Any, *, rng: np.random.Generator) -> dict[str, float]:
    found = compare(y, *models, rng=rng, n_resamples=RESAMPLES, engine=ONE_THREAD)
    error = np.hypot(float(found.a.standard_error), float(found.b.standard_error))
    return {
        "compare": found.pvalue,
        "SKCE alone": found.difference_pvalue,
        "length alone": found.differences[1].pvalue,
        "unpaired": float(2.0 * special.ndtr(-abs(float(found.estimate)) / error)),
        "gate": float(found.degenerate),  # 0 where one of the models is said to be miscalibrated
    }


def comparison(settings: Settings) -> Section:
    """Size and power of `compare`."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    names: tuple[str, ...] = ()
    sizes = (64, 100, 256)
    cells = len(sizes) * (len(NULL) + len(CALIBRATED_BOTH))
    for kind in COMPARISONS:
        for n in sizes:
            found = rates(("compare", kind, n), partial(_models, kind), n, _compared, settings.data_sets)
            names = tuple(found)
            rows.append((kind, str(n), *map(str, found.values())))
            if kind in NULL and not found["compare"].within(ALPHA, 0.01 / cells, upper_only=True):
                failures.append(f"compare, {kind}, n = {n}: {found['compare']}")
            if kind == "spreads times 0.6" and n == 100 and found["compare"].value < 0.9:
                failures.append(f"power of compare, {kind}, n = {n}: {found['compare']}")
            # Each of two tests may reject at alpha.
            if kind in CALIBRATED_BOTH and not found["gate"].within(2 * ALPHA, 0.01 / cells, upper_only=True):
                failures.append(f"gate of compare, {kind}, n = {n}: {found['gate']}")
    body = (
        f"Rejection rates at alpha = {ALPHA} of equal calibration errors, {settings.data_sets:,} data sets "
        f"a cell, {RESAMPLES} resamples. In the\nfirst eight settings the errors are equal. *Length* is that "
        "of the error in centre and spread, of classes in what\nanother temperature (and of two classes "
        "another frequency) would mend. *Unpaired* takes the standard errors of both\nmodels as independent; "
        "*gate* is how often at least one model is said to be miscalibrated.\n\n"
        f"{table(('models', 'n', *names), rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("compare", "Comparison of two models", body, tuple(failures))


SEVERAL = 4
"""Models whose six differences are covered together."""


def _several(n: int, rng: np.random.Generator) -> Any:
    """Targets, and models of which none is calibrated, with errors that are known."""
    mu, one = rng.normal(size=n), np.ones(n)
    models = {f"model {k}": wc.Normal(mu + 0.4 + 0.2 * k, (1.0 + 0.1 * k) * one) for k in range(SEVERAL)}
    return rng.normal(mu, 1.0), models


def _true_size(k: int) -> float:
    scale = 1.0 + 0.1 * k
    return float(np.hypot((0.4 + 0.2 * k) / scale, np.sqrt(2.0) * np.log(scale)))


def _true_nll(k: int) -> float:
    shift, scale = 0.4 + 0.2 * k, 1.0 + 0.1 * k
    return float(np.log(scale) + 0.5 * (1.0 + shift**2) / scale**2)


def _missed(y: Any, models: Any, *, rng: np.random.Generator) -> dict[str, float]:
    """0 where an interval of any pair misses the true difference, 1 where none does."""
    found = prepare_models(y, models, None, 0.95, None, rng, dict(OPTIONS))
    table_of = compare_several(found)
    truth = {"centre and spread": _true_size, "NLL": _true_nll}
    out: dict[str, float] = {}
    for name, true in truth.items():
        inside = True
        for pair in table_of.pairs:
            i, j = (table_of.names.index(model) for model in (pair.first, pair.second))
            each = next(each for each in pair.differences if each.measure == name)
            interval = each.confidence_interval()
            inside &= interval.low <= true(i) - true(j) <= interval.high
        out[name] = float(inside)
    return out


def several(settings: Settings) -> Section:
    """Coverage of intervals of several models together."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    names: tuple[str, ...] = ()
    for n in (64, 256):
        found = rates(("several", n), _several, n, _missed, settings.data_sets)
        names = tuple(found)
        rows.append((str(n), *map(str, found.values())))
        wrong = [name for name, rate in found.items() if not rate.between(0.0, 0.07, 0.01 / 4)]
        failures.extend(f"{name}, n = {n}: {found[name]}" for name in wrong)
    body = (
        f"Share of {settings.data_sets:,} data sets in which any of the 95% intervals of {SEVERAL} models, "
        "six pairs, misses the true\ndifference; held to 0.07, since the limit is one of many cases.\n\n"
        f"{table(('n', *names), rows)}\n\n{_verdict(failures)}\n\n{environment.describe(load)}"
    )
    return Section("several", "Intervals of several models together", body, tuple(failures))


# -- witness ---------------------------------------------------------------------------------


def _witnessed(y: Any, pred: Any, *, rng: np.random.Generator) -> dict[str, float]:
    segments = rng.integers(0, 4, len(pred))
    options: Any = {"rng": rng, "n_resamples": RESAMPLES, "engine": ONE_THREAD}
    found = witness(y, pred, 10, segments=segments, **options)
    return {"groups": found.pvalue, "band": float(np.min(found.pvalues))}


def groups(settings: Settings) -> Section:
    """Family-wise error of the statements of `witness`."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    families = (*CALIBRATED, SAMPLES)
    for family in families:
        found = rates(("witness", family), partial(calibrated, family), 64, _witnessed, settings.data_sets)
        rows.append((family, *map(str, found.values())))
        failures.extend(
            f"{what} on {family}: {rate}"
            for what, rate in found.items()
            if not rate.within(ALPHA, 0.01 / (2 * len(families)), upper_only=True)
        )
    body = (
        f"Share of {settings.data_sets:,} data sets for each family from calibrated models, 64 cases, about "
        f"which anything false\nis stated at alpha = {ALPHA}: that any of all groups and segments is "
        "miscalibrated, or that the witness leaves its\nband anywhere.\n\n"
        f"{table(('predictions', 'groups', 'band'), rows)}\n\n{_verdict(failures)}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("witness", "False statements of the witness", body, tuple(failures))


def _verdict(failures: list[str]) -> str:
    if not failures:
        return "All cells are within their bounds: binomial, 1% over the table together."
    return "Out of bounds: " + "; ".join(failures) + "."
