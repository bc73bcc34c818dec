"""Studies of how large an error is: coverage of intervals of KCE, and tests with a tolerance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, generators, simulate
from wellcal.engines import Tiled
from wellcal.hypotests import Omnibus
from wellcal.hypotests.sensitivity import FEW, FREQUENCIES, SmallestError, smallest_error
from wellcal.measures.deviations import Cases
from wellcal.predictions.misspecification import draw_misspecified, kind_of_error, misspecified
from wellcal.problem.alternatives import OnAverage

ONE_THREAD = Tiled(threads=1)
LEVEL = 0.95
COIN = 0.4
ALIKE = {"3 classes, alike": (0.4, 0.35, 0.25), "5 classes, alike": (0.2, 0.2, 0.2, 0.2, 0.2)}
"""Predictions that are the same for all cases: no temperature shows an error of these, but frequencies do."""

PILOT = 1500
"""Predictions that the kernel and the true KCE of a model are computed from."""


@dataclass(frozen=True)
class Model:
    """Predictions, and an error of some kind and amount; without one they are calibrated."""

    family: str
    kind: str | None = None
    amount: float = 1.0

    def predictions(self, rng: np.random.Generator, n: int) -> Any:
        if self.family == "normals":
            return wc.Normal(rng.normal(size=n), rng.gamma(8.0, 0.125, n))
        if self.family == "classes":
            return wc.Categorical(rng.dirichlet(np.ones(4), n))
        if self.family == "binary":
            return wc.Bernoulli(rng.uniform(0.05, 0.95, n))
        if self.family in ALIKE:
            return wc.Categorical(np.tile(ALIKE[self.family], (n, 1)))
        if self.family == "coins":
            return wc.Bernoulli(np.full(n, COIN))
        if self.family == "draws":
            return wc.Samples(rng.normal(size=(n, 1)) + rng.normal(size=(n, 20)), axis=1)
        if self.family == "vectors":
            return wc.DiagonalNormal(rng.normal(size=(n, 3)), np.ones((n, 3)))
        if self.family == "quantiles":
            levels = np.linspace(0.1, 0.9, 9)
            return wc.Quantiles(levels, rng.normal(size=(n, 1)) + special.ndtri(levels))
        return wc.Poisson(rng.gamma(2.0, 2.0, n))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Any, Any]:
        """Targets, and the predictions that they belong to."""
        pred = self.predictions(rng, n)
        if self.kind is None:
            return pred.sample(rng), pred
        return draw_misspecified(pred, self.kind, self.amount, rng, 1)[0], pred


MODELS: dict[str, Model] = {
    "normals, calibrated": Model("normals"),
    "normals, spreads 15% too small": Model("normals", "spreads", 0.85),
    "normals, spreads 50% too small": Model("normals", "spreads", 0.5),
    "normals, shift 1": Model("normals", "shift", 1.0),
    "classes, calibrated": Model("classes"),
    "classes, temperature 30% too low": Model("classes", "temperature", 0.7),
    "classes, temperature 80% too low": Model("classes", "temperature", 0.2),
}
"""Calibrated models, and weak and strong errors."""

INTERVAL_MODELS = (
    "normals, calibrated",
    "normals, spreads 15% too small",
    "normals, shift 1",
    "classes, calibrated",
    "classes, temperature 30% too low",
    "classes, temperature 80% too low",
)


@cache
def setting(name: str) -> tuple[Any, float]:
    """The kernel, with scales of other predictions of the model, and the KCE under it.

    E h is known for each pair of predictions, so that the KCE has no error but that of a mean over pairs of
    1,500 predictions.
    """
    model = MODELS[name]
    some = model.predictions(generators(("interval", "kernel", model.family), 0)[0], PILOT)
    kernel = wc.default_kernel(some)
    if model.kind is None:
        return kernel, 0.0
    return kernel, OnAverage(some, kernel).root(misspecified(some, model.kind, model.amount))


def one_estimate(rng: np.random.Generator, name: str, n: int) -> wc.Estimate:
    """KCE of one data set."""
    y, pred = MODELS[name].draw(rng, n)
    return wc.kce(y, pred, kernel=setting(name)[0], engine=ONE_THREAD)


def _ends(rng: np.random.Generator, _: object, *, name: str, n: int) -> tuple[float, float]:
    interval = one_estimate(rng, name, n).confidence_interval(LEVEL)
    return interval.low, interval.high


def _pvalues(rng: np.random.Generator, _: object, *, name: str, n: int) -> list[tuple[float, float]]:
    """p-values of KCE <= tolerance and of KCE >= tolerance, for all tolerances.

    Those of `calibration_test` and `equivalence_test`, from one estimate: the suite holds them to each other.
    """
    found = one_estimate(rng, name, n).deviations()
    assert found is not None
    truth = setting(name)[1]
    distances = [found.root - factor * truth for factor in TOLERANCES.values()]
    return [(found.pvalue(distance), found.pvalue(-distance)) for distance in distances]


def intervals(settings: Settings) -> Section:
    """Coverage of 95% intervals of KCE."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    missed: list[tuple[str, int, Rate]] = []
    for name in INTERVAL_MODELS:
        truth = setting(name)[1]
        cells: list[str] = []
        for n in settings.interval_cases:
            found = simulate(("interval", name, n), partial(_ends, name=name, n=n), settings.interval_sets)
            below = sum(high < truth for _, high in found)
            above = sum(low > truth for low, _ in found)
            missed.append((name, n, Rate(below + above, len(found))))
            width = float(np.median([high - low for low, high in found]))
            cells.append(f"{1.0 - (below + above) / len(found):.3f} ({width:.3f})")
        rows.append((name, f"{truth:.4f}", *cells))
    failures = [
        f"{name}, n = {n}: missed by {rate} of {rate.total}"
        for name, n, rate in missed
        if not rate.within(1.0 - LEVEL, 0.01 / len(missed), upper_only=True)
    ]
    header = ("model", "KCE", *(f"n = {n}" for n in settings.interval_cases))
    body = (
        f"Share of {settings.interval_sets:,} data sets whose 95% interval of KCE holds the true one, and "
        "the median width. Bounds: binomial,\nmisses at most 5%, 1% over all cells together.\n\n"
        f"{table(header, rows)}\n\n{'; '.join(failures) or 'All cells are within their bounds.'}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("intervals", "Intervals of KCE", body, tuple(failures))


# -- smallest errors -------------------------------------------------------------------------

SMALLEST_CASES = (20, 40, 100, 400)
SMALLEST_RESAMPLES = 199
FAMILIES = ("normals", "classes", "binary", "counts", "draws", "vectors", "quantiles", "coins", *ALIKE)
LEAST_POWER, MOST_POWER = 0.7, 0.95
"""Where the power at the smallest error, 0.8 by design, is to lie: it is an approximation.

Of few cases it is cautious: what they would have found must be found, and may be found with more power.
"""

LEAST_TOLD = 0.05
"""Share of data sets that must have such an error for its power to be shown."""


def _sharp(y: Any, pred: Any, rng: np.random.Generator) -> bool:
    """Whether the test rejects that looks at all pairs, as `auto` does for few cases."""
    method = Omnibus()
    options: dict[str, Any] = {"n_resamples": SMALLEST_RESAMPLES, "rng": rng, "engine": ONE_THREAD}
    return wc.calibration_test(y, pred, method=method, **options).pvalue <= ALPHA


def _at_the_smallest_error(
    rng: np.random.Generator, for_tests: np.random.Generator, *, family: str, n: int
) -> tuple[bool | None, bool | None] | None:
    """Whether the smallest error is found, of predictions that are too small and too large by it.

    None where the cases are said to be too few for an error of any size that is told, and on a side where
    there is no room for it.
    """
    pred = Model(family).predictions(rng, n)
    least = smallest_error(Cases(np.zeros(n), pred, wc.default_kernel(pred)))
    assert least is not None
    if least.beyond:
        return None
    found: list[bool | None] = []
    for side in (-1, 1):
        targets = _wrong_by(pred, least, side, rng)
        y = None if targets is None else pred.labels()[targets] if pred.target_kind == "labels" else targets
        found.append(None if y is None else _sharp(y, pred, for_tests))
    return found[0], found[1]


def _wrong_by(pred: Any, least: SmallestError, side: int, rng: np.random.Generator) -> Any:
    """Targets of predictions that are too small, or too large, by the smallest error; None without room."""
    if least.kind != FREQUENCIES:
        kind = kind_of_error(pred)
        assert kind is not None
        return draw_misspecified(pred, kind, (1.0 + least.share) ** side, rng, 1)[0]
    p = np.asarray(pred.class_probs())[0]
    place = int(np.argmax(p * (1.0 - p)))
    share = float(p[place]) - side * least.share  # what is predicted too small occurs more often
    if not 0.0 <= share <= 1.0:
        return None
    true = p * (1.0 - share) / (1.0 - p[place])
    true[place] = share
    return rng.choice(len(p), size=len(pred), p=true)


def smallest_errors(settings: Settings) -> Section:
    """Power of `auto` at the smallest error that it says it would have found."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for family in FAMILIES:
        for n in SMALLEST_CASES:
            run = partial(_at_the_smallest_error, family=family, n=n)
            sets = simulate(("smallest", family, n), run, settings.data_sets)
            found = [pair for pair in sets if pair is not None]
            told = f"{len(found) / len(sets):.0%}"
            if len(found) < LEAST_TOLD * len(sets):
                rows.append((family, str(n), told, "", ""))
                continue
            sides = [[pair[k] for pair in found if pair[k] is not None] for k in (0, 1)]
            rates = [Rate(sum(side), len(side)) for side in sides if side]
            rows.append((family, str(n), told, *(str(Rate(sum(s), len(s))) if s else "" for s in sides)))
            worst = min(rates, key=lambda rate: rate.value)
            if not worst.between(LEAST_POWER, MOST_POWER if n >= FEW else 1.0, 0.001):
                failures.append(f"{family}, n = {n}: power {worst}")
    body = (
        f"Power of `auto` at alpha = {ALPHA} over {settings.data_sets:,} data sets, {SMALLEST_RESAMPLES} "
        "resamples, at the smallest error that a test\nwhich does not reject says it would have found with "
        "power 0.8: predictions too small, and too large, by it. The\nsmaller of the two is to lie between "
        f"{LEAST_POWER} and {MOST_POWER}, below {FEW} cases above {LEAST_POWER}, within binomial bounds "
        "(0.1% a row). *Told* is the share of data sets with such an error;\n"
        "others say that they are too few. Where all predictions are alike the error is one of frequencies, "
        "and a\nside without room for it is empty.\n\n"
        f"{table(('predictions', 'n', 'told', 'too small', 'too large'), rows)}\n\n"
        f"{'; '.join(failures) or 'All are there.'}\n\n{environment.describe(load)}"
    )
    return Section("smallest-errors", "Smallest errors", body, tuple(failures))


# -- tolerances ------------------------------------------------------------------------------

TOLERANCE_MODELS = (
    "normals, spreads 15% too small",
    "normals, spreads 50% too small",
    "classes, temperature 80% too low",
)
TOLERANCES = {"half": 0.5, "boundary": 1.0, "double": 2.0}
"""Tolerances, in units of the true KCE."""


def tolerances(settings: Settings) -> Section:
    """Rejection rates of tests with a tolerance: at the boundary, and on either side of it."""
    load = environment.load_average()
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    count = len(TOLERANCE_MODELS) * len(settings.interval_cases) * 2
    for name in TOLERANCE_MODELS:
        truth = setting(name)[1]
        for n in settings.interval_cases:
            cells: list[str] = []
            found = simulate(
                ("tolerance", name, n), partial(_pvalues, name=name, n=n), settings.tolerance_sets
            )
            for at, (where, factor) in enumerate(TOLERANCES.items()):
                rates = [Rate(sum(p[at][k] <= ALPHA for p in found), len(found)) for k in (0, 1)]
                cells += [str(rates[0]), str(rates[1])]
                wrong = [(rates[0], "KCE <= tolerance")] if factor >= 1.0 else []
                wrong += [(rates[1], "KCE >= tolerance")] if factor <= 1.0 else []
                failures += [
                    f"{name}, n = {n}, tolerance {where}: {rate} of {hypothesis}"
                    for rate, hypothesis in wrong
                    if not rate.within(ALPHA, 0.01 / count, upper_only=True)
                ]
            rows.append((name, f"{truth:.4f}", str(n), *cells))
    header = ("model", "KCE", "n", *(f"{w}, {h}" for w in TOLERANCES for h in ("beyond", "within")))
    body = (
        f"Rejection rates at alpha = {ALPHA} over {settings.tolerance_sets:,} data sets: tolerances of half "
        "the true KCE, of all of it, and of twice that.\n*beyond* is the test of KCE <= tolerance, *within* "
        "that of KCE >= tolerance. Where the hypothesis is true they must\nnot exceed alpha; both are "
        f"cautious there.\n\n{table(header, rows)}\n\n"
        f"{'; '.join(failures) or 'All cells are within their bounds.'}"
        f"\n\n{environment.describe(load)}"
    )
    return Section("tolerances", "Tests with a tolerance", body, tuple(failures))
