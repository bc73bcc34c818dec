"""Study of findings: how often a test that rejects names a kind of error that is not there."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import special, stats

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, simulate
from wellcal.hypotests import Omnibus

CASES = 250
RESAMPLES = 199
MOST_ANYWHERE, MOST_FIRST = 0.1, 0.05
"""Shares of the rejected sets with a false kind among their findings, and as the first of them."""

_BOUND = 0.001  # binomial, one-sided: some forty rows are looked at

ALWAYS = frozenset({"levels", "surprise", "unnamed"})
"""Kinds that only say that something is off, which it is."""

LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
CLASSES = 5

Make = Callable[[np.random.Generator], tuple[Any, Any]]


class Planted(NamedTuple):
    """Data with one kind of error, and the kinds of findings that are true of them."""

    make: Make
    kinds: frozenset[str]


def _normals(noise: Callable[[Any, Any], Any]) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu, sigma = rng.normal(3.0, 2.0, CASES), np.exp(rng.normal(0.0, 0.3, CASES))
        return mu + sigma * noise(rng, mu), wc.Normal(mu, sigma)

    return make


def _laplace(scale: float, shift: float) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, CASES)
        return mu + shift + rng.laplace(0.0, scale, CASES), wc.Laplace(mu, np.ones(CASES))

    return make


def _mixture(scale: float, shift: float) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu, side = rng.normal(3.0, 2.0, CASES), rng.choice([-1.0, 1.0], CASES)
        ones = np.ones(CASES)
        members: Any = [wc.Normal(mu - 1.0, ones), wc.Normal(mu + 1.0, ones)]
        return mu + shift + scale * (side + rng.normal(size=CASES)), wc.Mixture(members)

    return make


def _counts(draw: Callable[[Any, Any], Any], dispersion: float = 0.0) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mean = np.exp(rng.normal(1.2, 0.5, CASES))
        if not dispersion:
            return draw(rng, mean), wc.Poisson(mean)
        varied = mean * rng.gamma(1.0 / dispersion, dispersion, CASES)
        return draw(rng, varied), wc.NegativeBinomial(mean, np.full(CASES, dispersion))

    return make


def _binary(true: Callable[[Any], Any]) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        logit = rng.normal(0.0, 1.5, CASES)
        y: Any = rng.uniform(size=CASES) < special.expit(true(logit))
        return y.astype(int), wc.Bernoulli(special.expit(logit))

    return make


def _classes(true: Callable[[Any], Any], ordered: bool = False) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        logits = 1.5 * rng.normal(size=(CASES, CLASSES))
        upper: Any = special.softmax(true(logits), axis=1).cumsum(axis=1)
        y: Any = np.minimum((upper < rng.uniform(size=(CASES, 1))).sum(axis=1), CLASSES - 1)
        support = np.arange(CLASSES) if ordered else None
        return y, wc.Categorical(special.softmax(logits, axis=1), support=support)

    return make


def _vectors(dimension: int, noise: Callable[[Any], Any]) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(size=(CASES, dimension))
        e = noise(rng.normal(size=(CASES, dimension)))
        return mu + e, wc.DiagonalNormal(mu, np.ones((CASES, dimension)))

    return make


def _tails(rng: np.random.Generator, dimension: int, together: bool) -> Any:
    """Variates of variance 1 with heavy tails; of multivariate t where they are far off together."""
    if not together:
        return rng.standard_t(5, (CASES, dimension)) * np.sqrt(0.6)
    return rng.normal(size=(CASES, dimension)) * np.sqrt(3.0 / rng.chisquare(5, (CASES, 1)))


_CORRELATIONS = np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.0]])


def _vectors_with_tails(together: bool, correlated: bool) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu, e = rng.normal(size=(CASES, 3)), _tails(rng, 3, together)
        if not correlated:
            return mu + e, wc.DiagonalNormal(mu, np.ones((CASES, 3)))
        covariances = np.broadcast_to(_CORRELATIONS, (CASES, 3, 3))
        return mu + e @ np.linalg.cholesky(_CORRELATIONS).T, wc.MultivariateNormal(mu, covariances)

    return make


def _draws_of_vectors(noise: Callable[[Any], Any]) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(size=(CASES, 3))
        return mu + noise(rng), wc.Samples(rng.normal(mu[:, None], 1.0, (CASES, 20, 3)))

    return make


def _heavy(rng: Any, mu: Any) -> Any:
    return rng.standard_t(4, CASES) / np.sqrt(2.0)


def _beside_laplace(noise: Callable[[Any], Any]) -> Make:
    """Targets with the variance of Laplace predictions, and other tails."""

    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, CASES)
        return mu + np.sqrt(2.0) * noise(rng), wc.Laplace(mu, np.ones(CASES))

    return make


def _heavier_student(rng: np.random.Generator) -> tuple[Any, Any]:
    mu = rng.normal(3.0, 2.0, CASES)
    return mu + _heavy(rng, mu), wc.StudentT(np.full(CASES, 10.0), mu, np.full(CASES, np.sqrt(0.8)))


def _gamma(factor: float) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        scale, shape = np.exp(rng.normal(0.0, 0.5, CASES)), np.full(CASES, 4.0)
        return rng.gamma(shape / factor, factor * scale), wc.Gamma(shape, scale)

    return make


def _draws(noise: Callable[[Any, Any], Any]) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, CASES)
        return mu + noise(rng, mu), wc.Samples(rng.normal(mu[:, None], 1.0, (CASES, 20)))

    return make


def _quantiles(noise: Callable[[Any, Any], Any]) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, Any]:
        mu = rng.normal(3.0, 2.0, CASES)
        return mu + noise(rng, mu), wc.Quantiles(LEVELS, mu[:, None] + stats.norm.ppf(LEVELS))

    return make


def _shifted(rng: Any, mu: Any) -> Any:
    return rng.normal(0.3, 1.0, CASES)


def _spread(rng: Any, mu: Any) -> Any:
    return rng.normal(0.0, 1.25, CASES)


def _narrow(rng: Any, mu: Any) -> Any:
    return rng.normal(0.0, 0.8, CASES)


def _sloped(rng: Any, mu: Any) -> Any:
    return rng.normal(0.2 * (mu - 3.0), 1.0)


def _correlated(e: Any) -> Any:
    second = 0.35 * e[:, 0] + np.sqrt(1.0 - 0.35**2) * e[:, 1]
    return np.concatenate([e[:, :1], second[:, None], e[:, 2:]], axis=1)


def _swapped(logits: Any) -> Any:
    return logits[:, [1, 0, *range(2, CLASSES)]]


def _calibrated(rng: Any, mu: Any) -> Any:
    return rng.normal(size=CASES)


def _planted(make: Make, *kinds: str) -> Planted:
    return Planted(make, frozenset(kinds))


_FEW = np.array([-0.9, 0.0, 0.0, 0.0, 0.0])

DESIGNS: dict[str, Planted] = {
    "normals: calibrated": _planted(_normals(_calibrated)),
    "normals: shift": _planted(_normals(_shifted), "shift"),
    "normals: spreads too small": _planted(_normals(_spread), "spread"),
    "normals: spreads too large": _planted(_normals(_narrow), "spread"),
    "normals: slope": _planted(_normals(_sloped), "trend of the centre"),
    "normals: spreads wrong for some": _planted(
        _normals(lambda rng, mu: rng.normal(0.0, np.where(mu > 3.0, 1.3, 1.0 / 1.3))), "trend of the spread"
    ),
    "normals: tails": _planted(_normals(lambda rng, mu: rng.standard_t(4, CASES) / np.sqrt(2.0)), "tails"),
    # A gamma distribution has heavier tails than a normal one, too.
    "normals: skew": _planted(
        _normals(lambda rng, mu: (rng.gamma(4.0, size=CASES) - 4.0) / 2.0), "skew", "tails"
    ),
    "Laplace: shift": _planted(_laplace(1.0, 0.4), "shift"),
    "Laplace: spreads too small": _planted(_laplace(1.35, 0.0), "spread"),
    "Laplace: lighter tails": _planted(_beside_laplace(lambda rng: rng.normal(size=CASES)), "tails"),
    # With heavier tails and the same variance the middle is narrower: most targets spread less. Half of
    # them lie within .90 of what is predicted here, and within .84 below.
    "Laplace: heavier tails": _planted(
        _beside_laplace(lambda rng: rng.standard_t(3, CASES) / np.sqrt(3.0)), "tails", "spread"
    ),
    "Student t: tails": _planted(_heavier_student, "tails", "spread"),
    # Of a gamma distribution with the same mean and a smaller shape the spread is larger.
    "gamma: shape": _planted(_gamma(1.7), "spread", "skew", "tails"),
    "mixtures: shift": _planted(_mixture(1.0, 0.45), "shift"),
    "mixtures: spreads too small": _planted(_mixture(1.25, 0.0), "spread"),
    "Poisson: calibrated": _planted(_counts(lambda rng, mean: rng.poisson(mean))),
    "Poisson: means too small": _planted(_counts(lambda rng, mean: rng.poisson(1.2 * mean)), "shift"),
    # More dispersed counts, and more zeros, are each other's consequence.
    "Poisson: dispersed": _planted(
        _counts(lambda rng, mean: rng.poisson(mean * rng.gamma(4.0, 0.25, CASES))), "dispersion", "zeros"
    ),
    "Poisson: zeros": _planted(
        _counts(lambda rng, mean: rng.poisson(mean / 0.85) * (rng.uniform(size=CASES) > 0.15)),
        "zeros",
        "dispersion",
    ),
    "negative binomial: means too small": _planted(
        _counts(lambda rng, mean: rng.poisson(1.3 * mean), 0.2), "shift"
    ),
    "two classes: calibrated": _planted(_binary(lambda logit: logit)),
    # What is told of groups is true wherever frequencies are off.
    "two classes: more often": _planted(_binary(lambda logit: logit + 0.5), "frequency", "group"),
    "two classes: too extreme": _planted(_binary(lambda logit: 0.55 * logit), "slope", "group"),
    "classes: calibrated": _planted(_classes(lambda logits: logits)),
    "classes: too extreme": _planted(_classes(lambda logits: logits / 1.5), "temperature", "confidence"),
    "classes: one too often": _planted(_classes(lambda logits: logits + _FEW), "class", "confused"),
    "classes: swapped": _planted(_classes(_swapped), "swapped", "confused"),
    "ordered: one too often": _planted(_classes(lambda logits: logits + _FEW, True), "class", "confused"),
    "vectors of 3: calibrated": _planted(_vectors(3, lambda e: e)),
    "vectors of 3: shift of one": _planted(_vectors(3, lambda e: e + np.array([0.0, 0.35, 0.0])), "shift"),
    "vectors of 3: spreads too small": _planted(_vectors(3, lambda e: 1.2 * e), "spread"),
    "vectors of 3: correlated": _planted(_vectors(3, _correlated), "correlation"),
    "vectors of 3: tails of each": _planted(_vectors_with_tails(False, False), "tails"),
    "vectors of 3: tails together": _planted(_vectors_with_tails(True, False), "tails"),
    "full covariances: tails of each": _planted(_vectors_with_tails(False, True), "tails"),
    "full covariances: tails together": _planted(_vectors_with_tails(True, True), "tails"),
    "vectors of 6: spreads too small": _planted(_vectors(6, lambda e: 1.2 * e), "spread"),
    "draws: calibrated": _planted(_draws(_calibrated)),
    # Targets that are shifted, or spread too far, are outside the range of their draws.
    "draws: shift": _planted(_draws(_shifted), "above", "range"),
    "draws: spreads too small": _planted(_draws(_spread), "spread", "range"),
    "draws: slope": _planted(_draws(_sloped), "trend of the centre", "range"),
    "draws of vectors: shift of one": _planted(
        _draws_of_vectors(lambda rng: rng.normal(size=(CASES, 3)) + np.array([0.0, 0.35, 0.0])), "shift"
    ),
    "draws of vectors: spreads too small": _planted(
        _draws_of_vectors(lambda rng: 1.2 * rng.normal(size=(CASES, 3))), "spread"
    ),
    "draws of vectors: tails together": _planted(
        _draws_of_vectors(lambda rng: _tails(rng, 3, True)), "tails"
    ),
    "quantiles: shift": _planted(_quantiles(_shifted), "quantile", "coverage"),
    "quantiles: spreads too small": _planted(_quantiles(_spread), "quantile", "coverage"),
}


class Told(NamedTuple):
    """Of one data set: whether the test rejects, the kinds it names, and whether the first is a guess."""

    rejected: bool
    kinds: tuple[str, ...]
    guess: bool


def told(for_data: Any, for_tests: Any, *, name: str) -> Told:
    """What a test says about a data set; few resamples and no pairs, to be quick."""
    y, pred = DESIGNS[name].make(for_data)
    cheap = Omnibus(pairs=False, most_resamples=0)
    found = wc.calibration_test(y, pred, method=cheap, rng=for_tests, n_resamples=RESAMPLES)
    kinds = tuple(finding.kind for finding in found.findings)
    return Told(found.pvalue <= ALPHA, kinds, any("perhaps" in str(one) for one in found.findings))


def false_in(name: str, found: Told) -> list[bool]:
    """Of each finding, whether its kind is not there."""
    return [kind not in DESIGNS[name].kinds | ALWAYS for kind in found.kinds]


def false_findings(settings: Settings) -> Section:
    """How often findings name what is not there."""
    load = environment.load_average()
    sets = settings.finding_repeats
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    total = np.zeros(3, dtype=int)
    for name, planted in DESIGNS.items():
        found = simulate(("false findings", name), partial(told, name=name), sets)
        rejected = [one for one in found if one.rejected]
        false = [false_in(name, one) for one in rejected]
        anywhere, first = sum(map(any, false)), sum(flags[0] for flags in false)
        named = sorted(
            {
                kind
                for one, flags in zip(rejected, false, strict=True)
                for kind, no in zip(one.kinds, flags, strict=True)
                if no
            }
        )
        guesses = sum(one.guess for one in rejected)
        rows.append((name, *map(str, (len(rejected), anywhere, first, guesses)), ", ".join(named)))
        # Everything is false of a calibrated model: what counts is how often it is told.
        limits = [(anywhere, sets, ALPHA, "told")]
        if planted.kinds:
            total += (len(rejected), anywhere, first)
            limits = [
                (anywhere, len(rejected), MOST_ANYWHERE, "told"),
                (first, len(rejected), MOST_FIRST, "told first"),
            ]
        failures += [
            f"false findings: {name}: {where} in {count} of {of}"
            for count, of, most, where in limits
            if of and not Rate(count, of).within(most, _BOUND, upper_only=True)
        ]
    shares = total[1:] / max(int(total[0]), 1)
    verdict = "All rows keep them." if not failures else "Exceeded: " + "; ".join(failures) + "."
    header = ("data", "rejected", "false", "false first", "guesses", "kinds that were false")
    body = (
        f"{CASES} cases with one kind of error, {sets:,} data sets a row. Of those that the test rejects: "
        "how many have a\nfinding whose kind is not there (a trend where all targets are shifted alike, "
        "tails where spreads are wrong),\nanywhere in the list and at the top of it; how many have nothing "
        'but a guess ("perhaps ..."), which counts like\nany other finding; and which kinds were false. '
        "Kinds that follow from the error are true: zeros where counts are\ntoo dispersed, targets "
        "outside the range of their draws where they are shifted. The test is the omnibus test\n"
        f"without pairs, with {RESAMPLES} resamples.\n\n{table(header, rows)}\n\n"
        f"Over all rows with an error {shares[0]:.1%} of {total[0]:,} rejected sets have a false finding, "
        f"and {shares[1]:.1%} have it first.\nLimits of a row: {MOST_ANYWHERE:.0%} of the rejected sets, and "
        f"{MOST_FIRST:.0%} for the first finding; for calibrated models, of which\nall is false, "
        f"{ALPHA:.0%} of all sets (binomial bounds, one-sided at {_BOUND}). {verdict}\n\n"
        f"{environment.describe(load)}"
    )
    return Section("false-findings", "Findings of what is not there", body, tuple(failures))
