"""Ten networks and their ensemble on the regression problem "Friedman 1", along their training."""

from __future__ import annotations

import io
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from reproduction import published
from reproduction.compare import Agreement, compare_with_repeats
from reproduction.experiments.mixture_pairs import ENSEMBLE_KERNEL, skce_of_ensemble
from reproduction.experiments.networks import Networks, glorot_networks
from reproduction.store import write_through
from reproduction.tasks import FloatArray, Record, Task, generator
from wellcal import Mixture, Normal, Predictions, calibration_test, mse, nll, pinball_loss, skce
from wellcal.engines import Tiled
from wellcal.kernels import Kernel, paper_kernel

Statistics = dict[str, float]

NETWORKS = 10
LAYERS = (10, 200, 50, 1)
CASES = {"train": 100, "test": 50}
RESAMPLES = 1000
COMPARED = (100, 500, 1000, 5000)
"""Iterations at which means over the ten models are compared with the published ones."""

ENSEMBLES = ("ensemble", "published formula", "proven kernel")
"""The paper's kernel with all pairs of members, without some of them, and the default kernel."""

SCALES: dict[str, str | float] = {
    "MSE": "log",
    "pinball": "log",
    "SKCE (biased)": "log",
    "NLL": 1.0,
    "SKCE (unbiased)": 1e-3,
    "p-value": "linear",
}
"""Scales of the paper's figure; a number is where a scale turns from linear to logarithmic."""

_STREAM, _TEST_STREAM = 4, 40
_SECONDS_PER_STEP = 6e-3
_SECONDS_PER_EVALUATION = 0.9


@dataclass(frozen=True)
class Sizes:
    """Sizes of the experiment.

    Attributes
    ----------
    repeats, iterations
        Repeats of the whole experiment, and iterations of training in each.
    leg
        Iterations after which networks are saved.
    shared
        Iterations at which all repeats are evaluated.
    first
        Further iterations at which the first repeat is evaluated, for the figures.
    """

    repeats: int
    iterations: int
    leg: int
    shared: tuple[int, ...]
    first: tuple[int, ...]

    def evaluated(self, repeat: int) -> list[int]:
        """Iterations at which a repeat is evaluated."""
        return sorted({*self.shared, *(self.first if repeat == 0 else ())})


def _published_and(*grids: range) -> tuple[int, ...]:
    """Iterations with published numbers, and those of grids."""
    known = {iteration for _, iteration, _ in published.friedman()}
    return tuple(sorted(known.union(*grids)))


FULL = Sizes(
    repeats=20,
    iterations=5000,
    leg=500,
    shared=(1, 10, 50, 100, 200, 500, 1000, 2000, 3000, 5000),
    first=_published_and(range(10, 101, 10), range(25, 501, 25), range(50, 1501, 50), range(100, 5001, 100)),
)
QUICK = Sizes(
    repeats=3,
    iterations=100,
    leg=50,
    shared=(1, 10, 50, 100),
    first=(0, 2, 5, 20),
)


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


def stages(sizes: Sizes, seed: int, folder: Path) -> list[list[Task]]:
    """Legs of training: each starts from the networks that the leg before it left in `folder`."""
    out: list[list[Task]] = []
    for start in range(0, sizes.iterations, sizes.leg):
        stop = min(start + sizes.leg, sizes.iterations)
        stage: list[Task] = []
        for repeat in range(sizes.repeats):
            wanted = tuple(i for i in sizes.evaluated(repeat) if start < i <= stop or (i == 0 and start == 0))
            cost = _SECONDS_PER_STEP * (stop - start) + _SECONDS_PER_EVALUATION * len(wanted)
            arguments = (seed, repeat, start, stop, wanted, str(folder))
            stage.append(Task(f"repeat {repeat} iterations {start}-{stop}", train, arguments, cost))
        out.append(stage)
    return out


def _checkpoint(folder: str, repeat: int, iteration: int) -> Path:
    return Path(folder) / f"networks-{repeat}-{iteration}.npz"


def train(seed: int, repeat: int, start: int, stop: int, evaluated: tuple[int, ...], folder: str) -> Record:
    """Train from iteration `start` to `stop`, evaluating on the way, and leave the networks in `folder`."""
    data = {
        name: draw_data(generator(seed, _STREAM, repeat, index), count)
        for index, (name, count) in enumerate(CASES.items())
    }
    rng = generator(seed, _STREAM, repeat, len(CASES))
    networks = glorot_networks(rng, NETWORKS, LAYERS)
    # The paper does not say what the spread is before the first step; its code draws it like this.
    spread = rng.exponential(size=NETWORKS)
    if start > 0:
        with np.load(_checkpoint(folder, repeat, start)) as state:
            networks = Networks.from_state(dict(state))
    found: dict[str, Any] = {}
    x, y = data["train"]
    for iteration in range(start, stop + 1):
        if iteration > start:
            networks.step(x, y)
        if iteration in evaluated:
            if iteration > 0:
                spread = np.sqrt(np.mean((networks.predict(x) - y) ** 2, axis=1))
            found[str(iteration)] = {
                name: evaluate(seed, (repeat, iteration, index), networks, spread, *data[name])
                for index, name in enumerate(CASES)
            }
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, **cast("Any", networks.state()))
    write_through(_checkpoint(folder, repeat, stop), buffer.getvalue())
    # The leg from `start` may have to be run again; those before it are stored.
    for path in Path(folder).glob(f"networks-{repeat}-*.npz"):
        if path not in (_checkpoint(folder, repeat, start), _checkpoint(folder, repeat, stop)):
            path.unlink(missing_ok=True)
    return {"repeat": repeat, "evaluations": found}


def evaluate(
    seed: int, place: tuple[int, ...], networks: Networks, spread: FloatArray, x: FloatArray, y: FloatArray
) -> dict[str, Any]:
    """All statistics of the ten models and of their ensemble on one data set."""
    members = [Normal(mean, np.full(len(y), s)) for mean, s in zip(networks.predict(x), spread, strict=True)]
    models = [_statistics(y, m, paper_kernel, seed, (*place, i)) for i, m in enumerate(members)]
    mixture = Mixture(members)
    ensemble = _statistics(y, mixture, ENSEMBLE_KERNEL, seed, (*place, NETWORKS))
    without = skce_of_ensemble(y, members, leave_out=True)
    return {
        "models": {name: [model[name] for model in models] for name in published.STATISTICS},
        "ensemble": ensemble,
        "published formula": {"SKCE (biased)": without.biased, "SKCE (unbiased)": without.unbiased},
        "proven kernel": _calibration(y, mixture, None, seed, (*place, NETWORKS + 1)),
    }


def _statistics(
    y: FloatArray, pred: Predictions, kernel: Kernel, seed: int, place: tuple[int, ...]
) -> Statistics:
    return {
        "MSE": float(mse(y, pred)),
        "NLL": float(nll(y, pred)),
        "pinball": float(pinball_loss(y, pred)),
        **_calibration(y, pred, kernel, seed, place),
    }


def _calibration(
    y: FloatArray, pred: Predictions, kernel: Kernel | None, seed: int, place: tuple[int, ...]
) -> Statistics:
    engine = Tiled(threads=1)
    result = calibration_test(
        y,
        pred,
        kernel=kernel,
        method="bootstrap",
        n_resamples=RESAMPLES,
        rng=generator(seed, _TEST_STREAM, *place),
        engine=engine,
        progress=False,
    )
    biased = skce(y, pred, kernel=result.kernel, estimator="biased", engine=engine)
    return {
        "SKCE (biased)": float(biased),
        "SKCE (unbiased)": float(result.estimate),
        "p-value": result.pvalue,
    }


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
    trajectories
        Of the first repeat, by data set and statistic.
    models
        Means over ten models beside the published ones, by data set, iteration and statistic; p-values as
        counts by resamples, like the published ones.
    repeats
        The same means for each repeat, ``(R,)``.
    ensembles
        The ensemble beside the published one, likewise, by the formula of the published values.
    ratios
        SKCE (biased) of ensembles with all pairs of members, divided by that of the published formula, by
        data set: over repeats, and the iterations at which all of them were evaluated.
    better
        Share of these in which SKCE (biased) of the ensemble, by either formula, is below its members' mean.
    sizes
        Of the experiment.
    """

    trajectories: dict[tuple[str, str], Trajectory]
    models: dict[tuple[str, int, str], Agreement]
    repeats: dict[tuple[str, int, str], FloatArray]
    ensembles: dict[tuple[str, int, str], Agreement]
    ratios: dict[str, FloatArray]
    better: dict[tuple[str, str], float]
    sizes: Sizes


def summarise(records: dict[str, Record], sizes: Sizes, seed: int) -> Summary:
    """Tables from the records of all tasks."""
    found: dict[int, dict[int, Any]] = defaultdict(dict)
    for record in records.values():
        for iteration, evaluation in record["evaluations"].items():
            found[record["repeat"]][int(iteration)] = evaluation
    at = [iteration for iteration in COMPARED if iteration <= sizes.iterations]
    places = [(data, i, s) for data in CASES for i in at for s in published.STATISTICS]
    shared = [(data, i, s) for data, i, s in places if s != "p-value"]
    each = [found[repeat] for repeat in sorted(found)]
    means = {place: np.array([_models(e, place) for e in each]) for place in places}
    ours = {place: np.array([_published_ensemble(e, place) for e in each]) for place in shared}
    count = len(places) + len(shared)
    known = published.friedman()
    shared_by_all = [evaluations[i] for evaluations in each for i in sizes.shared]
    return Summary(
        {(data, s): _trajectory(found[0], data, s) for data in CASES for s in published.STATISTICS},
        {p: _beside(means[p], known[p].mean, p, count) for p in places},
        means,
        {p: _beside(ours[p], known[p].ensemble, p, count) for p in shared},
        {data: _ratios(shared_by_all, data) for data in CASES},
        {(data, name): _better(shared_by_all, data, name) for data in CASES for name in ENSEMBLES[:2]},
        sizes,
    )


def _beside(repeats: FloatArray, known: float, place: tuple[str, int, str], count: int) -> Agreement:
    """Bounds on the scale of the paper's figure, on which repeats spread about evenly."""
    return compare_with_repeats(repeats, known, scale=SCALES[place[2]], comparisons=count)


def _models(evaluations: dict[int, Any], place: tuple[str, int, str]) -> float:
    data, iteration, statistic = place
    values = np.asarray(evaluations[iteration][data]["models"][statistic])
    if statistic == "p-value":
        values = (np.rint(values * (RESAMPLES + 1)) - 1.0) / RESAMPLES
    return float(np.mean(values))


def _published_ensemble(evaluations: dict[int, Any], place: tuple[str, int, str]) -> float:
    data, iteration, statistic = place
    evaluation = evaluations[iteration][data]
    return float(evaluation["published formula"].get(statistic, evaluation["ensemble"][statistic]))


def _trajectory(evaluations: dict[int, Any], data: str, statistic: str) -> Trajectory:
    iterations = sorted(evaluations)
    ensembles = {
        name: np.array([evaluations[i][data][name][statistic] for i in iterations])
        for name in ENSEMBLES
        if statistic in evaluations[iterations[0]][data][name]
    }
    models = np.array([evaluations[i][data]["models"][statistic] for i in iterations])
    return Trajectory(np.array(iterations), models, ensembles)


def _ratios(evaluations: list[Any], data: str) -> FloatArray:
    name = "SKCE (biased)"
    return np.array([e[data]["ensemble"][name] / e[data]["published formula"][name] for e in evaluations])


def _better(evaluations: list[Any], data: str, ensemble: str) -> float:
    """Share of evaluations in which the ensemble's SKCE (biased) is below its members' mean."""
    name = "SKCE (biased)"

    def is_better(of: dict[str, Any]) -> bool:
        members: FloatArray = np.asarray(of["models"][name])
        return bool(of[ensemble][name] < members.mean())

    return float(np.mean([is_better(e[data]) for e in evaluations]))
