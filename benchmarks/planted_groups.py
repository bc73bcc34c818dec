"""Study of the witness: how well it finds groups of cases that were made to err."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from scipy import special

import wellcal as wc
from benchmarks import environment
from benchmarks.results import Section, table
from benchmarks.settings import Settings
from benchmarks.studies import ALPHA, Rate, simulate
from wellcal.engines import Tiled
from wellcal.witnesses import witness

CASES = 1000
RESAMPLES = 99
LOCATIONS = 5
WANTED = 0.7
"""Median overlap with the planted group."""

POSITIONS = (0.07, 0.32, 0.53)
"""Share of cases, by a summary, at which a group begins: not at a cut."""

WIDTHS = {"interval": 0.25, "box": 0.4}
"""Shares of cases, by each of its summaries, that a group spans."""

SHIFT = 1.0  # of normal targets, in predicted standard deviations
ODDS = 1.5  # by how much the logit of a class grows
CLASSES = 4
_STRIPS = 100

MODELS = ("normals, by mean", "normals, by spread", "classes, by probability", "normals, box", "classes, box")


def planted(model: str, position: float, rng: np.random.Generator) -> tuple[Any, Any, np.ndarray]:
    """Targets, predictions, and which cases err."""
    width = WIDTHS["box" if model.endswith("box") else "interval"]
    if model.startswith("normals"):
        a, b = rng.random((2, CASES))
        scores: Any = special.ndtri(np.stack([a, b]))
        mu, sigma = scores[0], np.exp(0.4 * scores[1])
        within = _within(a if model != MODELS[1] else b, position, width)
        if model.endswith("box"):
            within &= _within(b, position, width)
        y: Any = mu + sigma * (rng.standard_normal(CASES) + SHIFT * within)
        return y, wc.Normal(mu, sigma), within
    probs = rng.dirichlet(np.ones(CLASSES), CASES)
    first = probs[:, 0]
    within = _within(_ranks(first), position, width)
    if model.endswith("box"):
        within &= _within(_ranks(probs.max(axis=1)), position, width)
    raised = special.expit(special.logit(first) + ODDS * within)
    truth = probs * ((1.0 - raised) / (1.0 - first))[:, None]
    truth[:, 0] = raised
    drawn: Any = (rng.random((CASES, 1)) > np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
    return drawn, wc.Categorical(probs), within


def _within(u: np.ndarray, position: float, width: float) -> np.ndarray:
    return (u > position) & (u < position + width)


def _ranks(values: np.ndarray) -> np.ndarray:
    return (np.argsort(np.argsort(values)) + 0.5) / len(values)


def likeliest(model: str, y: Any, pred: Any) -> np.ndarray:
    """The region under which targets are most likely, to one who knows its summaries and the error."""
    if model.startswith("normals"):
        sides = [pred.mean(), np.sqrt(pred.variance())]
        gains = SHIFT * (y - sides[0]) / sides[1] - 0.5 * SHIFT**2
    else:
        probs = pred.class_probs()
        first = probs[:, 0]
        gains = ODDS * (y == 0) - np.log1p(first * np.expm1(ODDS))
        sides = [first, probs.max(axis=1)]
    ranks = [np.argsort(np.argsort(side)) for side in sides]
    if not model.endswith("box"):
        return _best_side(gains, ranks[model == MODELS[1]])
    inside = _best_strip(gains, *ranks)
    for _ in range(4):
        for one, other in (ranks, ranks[::-1]):
            inside = _best_side(gains * _span(other, inside), one) & _span(other, inside)
    return inside


def _span(ranks: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Cases from the lowest to the highest rank of some."""
    some = ranks[inside]
    return (ranks >= some.min()) & (ranks <= some.max())


def _best_side(gains: np.ndarray, ranks: np.ndarray) -> np.ndarray:
    """The interval with the largest sum of all."""
    upto = np.concatenate([[0.0], np.cumsum(gains[np.argsort(ranks)])])
    last = int(np.argmax(upto - np.minimum.accumulate(upto)))
    first = int(np.argmin(upto[: last + 1]))
    return (ranks >= first) & (ranks < last)


def _best_strip(gains: np.ndarray, across: np.ndarray, along: np.ndarray) -> np.ndarray:
    """The box with the largest sum, one side of which is between hundredths of the cases."""
    table = np.zeros((_STRIPS + 1, CASES + 1))
    table[across * _STRIPS // CASES + 1, along + 1] = gains
    upto = np.cumsum(np.cumsum(table, axis=0), axis=1)
    best, ends = -np.inf, (0, 0)
    for low in range(_STRIPS):
        strips = upto[low + 1 :] - upto[low]
        sums = np.max(strips - np.minimum.accumulate(strips, axis=1), axis=1)
        if sums.max() > best:
            best, ends = float(sums.max()), (low, low + 1 + int(np.argmax(sums)))
    strip = (across * _STRIPS // CASES >= ends[0]) & (across * _STRIPS // CASES < ends[1])
    return _best_side(gains * strip, along) & strip


def _overlap(one: np.ndarray, other: np.ndarray) -> float:
    return np.count_nonzero(one & other) / np.count_nonzero(one | other)


def _found(
    for_data: Any, for_tests: Any, *, model: str, position: float
) -> tuple[float, float, float, bool, bool]:
    """Overlaps of the first group and of the likeliest with the planted one; its share; kind; claim."""
    y, pred, within = planted(model, position, for_data)
    options: Any = {"rng": for_tests, "n_resamples": RESAMPLES, "engine": Tiled(threads=1)}
    first = witness(y, pred, LOCATIONS, **options).groups[0]
    mask = np.zeros(CASES, dtype=bool)
    mask[first.cases] = True
    kind = "box" if model.endswith("box") else "interval"
    overlaps = _overlap(mask, within), _overlap(likeliest(model, y, pred), within)
    return *overlaps, float(within.mean()), first.kind == kind, first.pvalue <= ALPHA


def planted_groups(settings: Settings) -> Section:
    """Overlap of the group that `witness` tells first with the one that was planted."""
    load = environment.load_average()
    sets = settings.planted_repeats
    rows: list[tuple[str, ...]] = []
    failures: list[str] = []
    for model in MODELS:
        for position in POSITIONS:
            one = partial(_found, model=model, position=position)
            found = simulate(("planted", model, position), one, sets)
            overlap, known, share, kind, claimed = (np.array(column) for column in zip(*found, strict=True))
            median = float(np.median(overlap))
            rows.append(
                (
                    model,
                    f"{position:g}",
                    f"{share.mean():.2f}",
                    f"{median:.2f}",
                    f"{np.quantile(overlap, 0.1):.2f}",
                    f"{np.median(known):.2f}",
                    str(Rate(int(kind.sum()), sets)),
                    str(Rate(int(claimed.sum()), sets)),
                )
            )
            if median < WANTED:
                failures.append(f"{model} from {position:g}: median overlap {median:.2f}")
    header = (
        *("planted", "from", "share of cases", "median overlap", "lowest tenth", "oracle", "of its kind"),
        "claimed",
    )
    verdict = (
        f"All medians are at least {WANTED}." if not failures else "Too low: " + "; ".join(failures) + "."
    )
    body = (
        f"Overlap (cases in both over cases in either) of the first group that the witness tells with a "
        f"planted one,\n{sets:,} data sets a row of {CASES:,} cases, {RESAMPLES} resamples: normal targets "
        f"shifted by {SHIFT:g} predicted standard\ndeviation, or the logit of one of {CLASSES} classes "
        f"raised by {ODDS:g}, in a quarter of the cases by one summary, or where\nboth of two summaries "
        "(mean and standard deviation; probability of the class and largest probability) are\nwithin 40% "
        "of the cases. *Oracle* is the median overlap of the interval, or box, of these summaries under "
        "which targets are\nmost likely, to one who knows the kind and the size of the error. *Of its kind* "
        "is how often an interval is called\nan interval and a box a box: below the probabilities from 0.07 "
        "there are 70 cases with less than one event\nexpected; that they do not err makes targets hardly "
        "likelier, less than the price of a number in a description,\nso that their end is often left open "
        "(the oracle pays no price).\n\n"
        f"{table(header, rows)}\n\n{verdict}\n\n{environment.describe(load)}"
    )
    return Section("planted-groups", "Planted groups that the witness finds", body, tuple(failures))
