"""Ten networks and their ensemble on the regression problem "Friedman 1", along their training."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

from reproduction import published
from reproduction.experiments.decisions import both_bootstrap_pvalues
from reproduction.experiments.mixture_pairs import (
    ENSEMBLE_KERNEL,
    authors_pvalue,
    biased_skce,
    ensemble_forms,
    unbiased_skce,
)
from reproduction.experiments.networks import LEARNING_RATE, Networks, glorot_networks
from reproduction.experiments.plant import NOTHING, Plant
from reproduction.ranks import LOGARITHM, Repeated, Scale, asinh_scale, proportion_scale
from reproduction.tasks import FloatArray, Record, Task, generator
from wellcal import Mixture, Normal, Predictions, calibration_test, mse, nll, pinball_loss, skce
from wellcal.engines import Tiled
from wellcal.hypotests import Bootstrap
from wellcal.kernels import Kernel

Place = tuple[str, str, int, str]
"""Whose number ("models" or "ensemble"), data set, iteration, statistic."""

NETWORKS = 10
LAYERS = (10, 200, 50, 1)
CASES = {"train": 100, "test": 50}
RESAMPLES = 1000
SCORES = ("MSE", "NLL", "pinball")
OUR_PVALUE = "p-value, n SKCE_u"
"""The p-value by our statistic, from the same resamples."""

ENSEMBLES = ("ensemble", "published formula", "proven kernel")
"""The paper's kernel with all pairs of members, without some of them, and the default kernel."""

SCALES: dict[str, Scale] = {
    "MSE": LOGARITHM,
    "pinball": LOGARITHM,
    "SKCE (biased)": LOGARITHM,
    "NLL": asinh_scale(1.0),
    "SKCE (unbiased)": asinh_scale(1e-3),
    "p-value": proportion_scale(RESAMPLES),
}
"""Scales of the paper's figure, where a number is the value at which one turns from linear to logarithmic;
p-values
are proportions of resamples."""

_STREAM, _TEST_STREAM = 4, 40
_SECONDS_PER_STEP = 3e-3
_SECONDS_PER_EVALUATION = 0.3
_HELD = 1e-10


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    repeats
        Repeats of the whole experiment, data included.
    compared
        Iterations at which all repeats are evaluated; training ends with the last of them.
    first
        Further iterations at which the first repeat is evaluated, for the figures; training goes on to the
        last.
    scores
        Whether MSE, NLL and pinball loss are all that is evaluated.
    """

    repeats: int
    compared: tuple[int, ...]
    first: tuple[int, ...] = ()
    scores: bool = False

    def evaluated(self, repeat: int) -> list[int]:
        """Iterations at which a repeat is evaluated."""
        return sorted({*self.compared, *(self.first if repeat == 0 else ())})

    @property
    def iterations(self) -> int:
        """Iterations of training."""
        return max((*self.compared, *self.first))

    @property
    def statistics(self) -> tuple[str, ...]:
        """Statistics that are evaluated."""
        return SCORES if self.scores else published.STATISTICS


PUBLISHED = tuple(sorted({iteration for _, iteration, _ in published.friedman()}))
"""Iterations with published numbers."""

FULL = Sizes(
    repeats=199,
    compared=PUBLISHED,
    first=tuple(
        sorted({*range(10, 101, 10), *range(25, 501, 25), *range(50, 1501, 50), *range(100, 5001, 100)})
    ),
)
QUICK = Sizes(repeats=99, compared=(1, 10, 20), first=(0, 2, 5, 50), scores=True)


def draw_data(rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
    """Inputs ``(n, 10)`` and targets ``(n,)``.

    Examples
    --------
    >>> x, y = draw_data(np.random.default_rng(0), 5)
    >>> x.shape, y.shape
    ((5, 10), (5,))
    """
    x = rng.uniform(size=(n, 10))
    mean = (
        10.0 * np.sin(np.pi * x[:, 0] * x[:, 1])
        + 20.0 * (x[:, 2] - 0.5) ** 2
        + 10.0 * x[:, 3]
        + 5.0 * x[:, 4]
    )
    return x, mean + rng.normal(size=n)


def tasks(sizes: Sizes, seed: int, plant: Plant = NOTHING) -> list[Task]:
    """A task for each repeat."""
    out: list[Task] = []
    for repeat in range(sizes.repeats):
        at = tuple(sizes.evaluated(repeat))
        evaluation = 0.01 if sizes.scores else _SECONDS_PER_EVALUATION * (3.0 if repeat == 0 else 1.0)
        cost = _SECONDS_PER_STEP * at[-1] + evaluation * len(at)
        out.append(Task(f"repeat {repeat}", train, (seed, repeat, at, sizes.scores, plant), cost))
    return out


def train(seed: int, repeat: int, evaluated: tuple[int, ...], scores: bool, plant: Plant) -> Record:
    """Train to the last of the iterations at which networks are evaluated.

    The first repeat is evaluated in full, by the library alone, and holds the other way of doing it to that.
    """
    data = {
        name: draw_data(generator(seed, _STREAM, repeat, index), count)
        for index, (name, count) in enumerate(CASES.items())
    }
    rng = generator(seed, _STREAM, repeat, len(CASES))
    networks = glorot_networks(rng, NETWORKS, LAYERS, LEARNING_RATE * plant.learning_rate)
    # The paper does not say what the spread is before the first step; its code draws it like this.
    spread = rng.exponential(size=NETWORKS)
    found: dict[str, Any] = {}
    x, y = data["train"]
    for iteration in range(evaluated[-1] + 1):
        if iteration > 0:
            networks.step(x, y)
        if iteration in evaluated:
            if iteration > 0:
                spread = np.sqrt(np.mean((networks.predict(x) - y) ** 2, axis=1))
            found[str(iteration)] = {
                name: Evaluation(seed, (repeat, iteration, index), networks, spread, *data[name], plant).run(
                    scores=scores, whole=repeat == 0
                )
                for index, name in enumerate(CASES)
            }
    return {"repeat": repeat, "evaluations": found}


@dataclass(frozen=True)
class Evaluation:
    """Ten models and their ensemble on one data set.

    Attributes
    ----------
    seed, place
        Of the random numbers of bootstrap tests.
    networks, spread
        The models: networks for means, ``(10,)`` for standard deviations.
    x, y
        The data.
    plant
        An error, or none.
    """

    seed: int
    place: tuple[int, ...]
    networks: Networks
    spread: FloatArray
    x: FloatArray
    y: FloatArray
    plant: Plant = NOTHING

    def run(self, *, scores: bool = False, whole: bool = False) -> dict[str, Any]:
        """Statistics of models and ensemble; with `scores` no SKCE, with `whole` more ensembles."""
        means = self.networks.predict(self.x)
        members = [Normal(mean, np.full(len(self.y), s)) for mean, s in zip(means, self.spread, strict=True)]
        mixture = Mixture(members)
        models = [self._scores(member) for member in members]
        ensemble = self._scores(mixture)
        out: dict[str, Any] = {"ensemble": ensemble}
        if not scores:
            for index, (model, member) in enumerate(zip(models, members, strict=True)):
                model |= self._calibration(member, self.plant.kernel, index)
            forms = ensemble_forms(self.y, members, self.plant.lengthscale)
            rng = generator(self.seed, _TEST_STREAM, *self.place, NETWORKS)
            ensemble |= {
                "SKCE (biased)": biased_skce(forms.full),
                "SKCE (unbiased)": unbiased_skce(forms.full),
            }
            out["published formula"] = {
                "SKCE (biased)": biased_skce(forms.left_out),
                "SKCE (unbiased)": unbiased_skce(forms.left_out),
                "p-value": authors_pvalue(forms.left_out, RESAMPLES, rng),
            }
            if whole:
                out |= self._whole(mixture, ensemble)
        out["models"] = {name: [model[name] for model in models] for name in models[0]}
        return out

    def _scores(self, pred: Predictions) -> dict[str, float]:
        return {
            "MSE": float(mse(self.y, pred)),
            "NLL": float(nll(self.y, pred)),
            "pinball": float(pinball_loss(self.y, pred)),
        }

    def _calibration(self, pred: Predictions, kernel: Kernel | None, index: int) -> dict[str, float]:
        engine = Tiled(threads=1)
        result = calibration_test(
            self.y,
            pred,
            kernel=kernel,
            method=Bootstrap(statistic="authors"),
            n_resamples=RESAMPLES,
            rng=generator(self.seed, _TEST_STREAM, *self.place, index),
            engine=engine,
            progress=False,
            keep_null=True,
        )
        biased = skce(self.y, pred, kernel=result.kernel, estimator="biased", engine=engine)
        pvalues = both_bootstrap_pvalues(result)
        return {
            "SKCE (biased)": float(biased),
            "SKCE (unbiased)": float(result.estimate),
            # The published ones are counts by resamples; the library's are (1 + count) / (1 + resamples).
            "p-value": _as_published(pvalues[self.plant.statistic]),
            OUR_PVALUE: _as_published(pvalues["skce"]),
        }

    def _whole(self, mixture: Mixture, ensemble: dict[str, float]) -> dict[str, Any]:
        """The ensemble by the library, under both kernels; it holds our matrices to it."""
        if self.plant == NOTHING:
            found = self._calibration(mixture, ENSEMBLE_KERNEL, NETWORKS + 1)
            for name in ("SKCE (biased)", "SKCE (unbiased)"):
                if not abs(found[name] - ensemble[name]) <= _HELD:
                    raise RuntimeError(f"{name} of the ensemble: {found[name]:.17g}, {ensemble[name]:.17g}")
            ensemble = {**ensemble, **found}
        proven = self._calibration(mixture, None, NETWORKS + 2)
        return {"ensemble": ensemble, "proven kernel": proven}


def _as_published(pvalue: float) -> float:
    return (round(pvalue * (RESAMPLES + 1)) - 1) / RESAMPLES


# -- summary ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Trajectory:
    """A statistic along the training of one repeat.

    Attributes
    ----------
    iterations
        Where it was evaluated, ``(T,)``.
    models
        Values of the ten models, ``(T, 10)``.
    ensembles
        Values of the ensemble by name, ``(T,)`` each.
    """

    iterations: FloatArray
    models: FloatArray
    ensembles: dict[str, FloatArray]


@dataclass(frozen=True)
class Summary:
    """What the experiment found.

    Attributes
    ----------
    numbers
        Published numbers and ours in each repeat: means over the ten models, and their ensemble by the
        formula of the published values.
    ours
        Means of the p-value over the ten models by our statistic, in each repeat, by data set and iteration.
    trajectories
        Of the first repeat, by data set and statistic.
    ratios
        SKCE (biased) of ensembles with all pairs of members, divided by that of the published formula, by
        data set: over repeats, and the iterations at which all of them were evaluated.
    better
        Share of these in which SKCE (biased) of the ensemble, by either formula, is below its members' mean.
    sizes
        Of the experiment.
    """

    numbers: dict[Place, Repeated]
    ours: dict[tuple[str, int], FloatArray]
    trajectories: dict[tuple[str, str], Trajectory]
    ratios: dict[str, FloatArray]
    better: dict[tuple[str, str], float]
    sizes: Sizes


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks."""
    found: dict[int, dict[int, Any]] = defaultdict(dict)
    for record in records.values():
        for iteration, evaluation in record["evaluations"].items():
            found[record["repeat"]][int(iteration)] = evaluation
    each = [found[repeat] for repeat in sorted(found)]
    known = published.friedman()
    numbers: dict[Place, Repeated] = {}
    for statistic in sizes.statistics:
        for data in CASES:
            for at in sizes.compared:
                here, scale = known[data, at, statistic], SCALES[statistic]
                means = np.array([_mean(e[at][data]["models"][statistic]) for e in each])
                numbers["models", data, at, statistic] = Repeated(here.mean, means, scale)
                values = np.array([_published_ensemble(e[at][data], statistic) for e in each])
                numbers["ensemble", data, at, statistic] = Repeated(here.ensemble, values, scale)
    both = [] if sizes.scores else [e[at] for e in each for at in sizes.compared]
    places = [(data, at) for data in CASES for at in sizes.compared] if both else []
    return Summary(
        numbers,
        {(d, at): np.array([_mean(e[at][d]["models"][OUR_PVALUE]) for e in each]) for d, at in places},
        {(data, s): _trajectory(found[0], data, s) for data in CASES for s in sizes.statistics},
        {data: _ratios(both, data) for data in CASES} if both else {},
        {(data, name): _better(both, data, name) for data in CASES for name in ENSEMBLES[:2]} if both else {},
        sizes,
    )


def _mean(values: list[float]) -> float:
    return float(np.mean(np.asarray(values)))


def _published_ensemble(evaluation: Any, statistic: str) -> float:
    return float(
        evaluation.get("published formula", {}).get(statistic, evaluation["ensemble"].get(statistic))
    )


def _trajectory(evaluations: dict[int, Any], data: str, statistic: str) -> Trajectory:
    iterations = sorted(evaluations)
    ensembles = {
        name: np.array([evaluations[i][data][name][statistic] for i in iterations])
        for name in ENSEMBLES
        if statistic in evaluations[iterations[0]][data].get(name, {})
    }
    models = np.array([evaluations[i][data]["models"][statistic] for i in iterations])
    return Trajectory(np.array(iterations), models, ensembles)


def _ratios(evaluations: list[Any], data: str) -> FloatArray:
    name = "SKCE (biased)"
    return np.array([e[data]["ensemble"][name] / e[data]["published formula"][name] for e in evaluations])


def _better(evaluations: list[Any], data: str, ensemble: str) -> float:
    """Share of evaluations in which the ensemble's SKCE (biased) is below its members' mean."""
    name = "SKCE (biased)"
    better = [e[data][ensemble][name] < _mean(e[data]["models"][name]) for e in evaluations]
    return float(np.mean(better))


def method_of(place: Place) -> str:
    """The statistic."""
    return place[3]
