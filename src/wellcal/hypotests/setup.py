"""A case that methods work on, and the way from a user's arguments to it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from wellcal._arrays.checks import whole_number
from wellcal._arrays.namespaces import Array, NDArray, is_on_accelerator, to_numpy
from wellcal._arrays.progress import reporter
from wellcal._arrays.seeds import as_generator, known_seed
from wellcal.engines import Engine, choose_engine
from wellcal.expectations.lowering import Lowering
from wellcal.hypotests.clusters import number_clusters
from wellcal.hypotests.progress import Progress
from wellcal.hypotests.shuffling import random_order
from wellcal.kernels.base import Kernel
from wellcal.measures._skce import estimate_from_block_sums, estimate_unbiased
from wellcal.measures.deviations import Cases
from wellcal.measures.estimate import Estimate
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import in_numpy
from wellcal.predictions.target_leakage import GROUPS, refuse_targets
from wellcal.problem.at_locations import LocationKernel, location_kernel
from wellcal.problem.defaults import default_kernel
from wellcal.problem.locations import Locations
from wellcal.problem.problem import Problem, check_pair_kernel, prepare_checked, some_cases
from wellcal.problem.target_resampling import can_be_placed, pool_draws, stretch

MOST_RESAMPLES = 10**8
"""Resamples that a test may draw: more would take days, and no p-value needs them."""

ESTIMATE_BUDGET = 4e9
"""Elementary evaluations up to which the estimate reported with a p-value is taken over all pairs."""

LINEAR_ESTIMATE_BUDGET = 1e8
"""The same for tests that are linear in the number of cases: some tenths of a second."""

ESTIMATE_ROOM = 4096
"""Elementary evaluations for each case, up to which blocks grow where that estimate must be linear in n."""

SMALLEST_BLOCK, LARGEST_BLOCK = 4, 256
FEWEST_BLOCKS = 8
"""Blocks from which a standard error is taken: fewer cases than that have all their pairs visited."""

ENOUGH_BLOCKS = 100
"""Blocks whose mean is nearly normal, for tests that read their p-value from it."""

FEWEST_ON_DEVICE = 10_000
"""Cases from which sets of targets are drawn on the device of the predictions: below, NumPy is as quick."""


@dataclass(frozen=True)
class Setup:
    """A case as methods get it: checked, prepared, and all of it in NumPy.

    Attributes
    ----------
    targets
        Observed targets as `check_targets` of the predictions returned them: classes are numbered.
    predictions
        The predictions. For methods that exchange a target with draws, the pooled draws as atoms.
    given
        The predictions as they were given.
    kernel
        The kernel on pairs of prediction and target.
    problem
        All of it prepared: rows and functions from which an engine computes h for any pair of cases.
    engine
        What visits the pairs of cases.
    rng
        The generator that all random numbers must come from.
    n_resamples
        How many resamples there are.
    insisted
        Whether somebody asked for this number: no fewer are drawn then, and no more.
    expectations
        How expectations without a closed form are computed.
    pooled
        Number of draws S where target and draws were pooled, else None.
    groups
        Number of the cluster of each case, or None.
    progress
        To be called as ``progress(what, done, total)`` now and then.
    linear
        Whether the test is linear in the number of cases, so that the estimate beside it must be, too.
    place
        A tensor on the device of the predictions, where sets of targets are drawn and summed; None in NumPy.
    seed
        Of `rng`; None where a generator was given.
    fewest_blocks
        Blocks that an estimate over blocks has at least; they are smaller for that.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.hypotests.setup import make_setup
    >>> setup = make_setup(["yes", "no"], wc.Categorical([[0.2, 0.8], [0.5, 0.5]], classes=["no", "yes"]))
    >>> setup.targets, setup.n_samples
    (array([1, 0]), 2)
    """

    targets: NDArray
    predictions: Predictions
    given: Predictions
    kernel: Kernel
    problem: Problem
    engine: Engine
    rng: np.random.Generator
    n_resamples: int
    expectations: str | Lowering = "auto"
    pooled: int | None = None
    groups: NDArray | None = None
    progress: Progress = field(default_factory=Progress)
    linear: bool = False
    insisted: bool = False
    place: Array = None
    seed: int | None = None
    fewest_blocks: int = 0

    @property
    def n_samples(self) -> int:
        """Number of cases."""
        return self.problem.n

    @cached_property
    def estimate(self) -> Estimate:
        """Unbiased SKCE over all pairs, or over blocks where these are too many.

        They are too many where they exceed a budget, which is smaller for tests that are linear in n, as
        long as there are blocks enough for a standard error. Blocks are of a fixed size, so that the cost is
        linear in n, and cut from the cases in an order that has nothing to do with the data: each pair is as
        likely as any other to be within a block, and the estimate is unbiased for sorted cases too. Of a
        calibrated model its standard deviation is ``sqrt((n - 1) / (B - 1))`` times that of the estimate over
        all pairs; of a model that is far off, both have nearly the same.
        """
        n, size = self.n_samples, self.block_size(self.n_samples)
        most = LINEAR_ESTIMATE_BUDGET if self.linear else ESTIMATE_BUDGET
        if (
            n >= max(FEWEST_BLOCKS, self.fewest_blocks) * size
            and 0.5 * n * (n - 1.0) * self.problem.cost.entries > most
        ):
            shuffled = some_cases(self.problem, random_order(n))  # neighbours in the data may be alike
            sums = self.engine.blocks(shuffled, size)
            return self.reported(estimate_from_block_sums(shuffled, self.engine, sums, size, shuffled=True))
        return self.reported(estimate_unbiased(self.problem, self.engine))

    def block_size(self, n: int) -> int:
        """Size of the blocks that an estimate of n cases is a mean over."""
        size = block_size_within(ESTIMATE_ROOM, self.problem.cost.entries)
        return size if not self.fewest_blocks else max(2, min(size, n // self.fewest_blocks))

    def reported(self, estimate: Estimate) -> Estimate:
        """An estimate from `problem`, with the kernel as it was given and a note where draws were pooled."""
        if self.pooled is not None:
            note = {"pooled": "kernel on predictions sees targets pooled with draws"}
            estimate = replace(estimate, kernel=self.kernel, provenance={**estimate.provenance, **note})
        return estimate.with_cases(self.cases)

    @property
    def cases(self) -> Cases:
        """What intervals and yardsticks are computed from when they are asked for."""
        kernel = self.problem.kernel
        return Cases(self.targets, self.predictions, kernel, self.expectations, groups=self.groups)

    def knowing(self, estimate: Estimate, mean_diagonal: float) -> Setup:
        """The same, of some of the cases, with what was found of all: the estimate, and mean h_ii."""
        found = replace(self)
        found.__dict__.update(estimate=found.reported(estimate), diagonal=np.array([mean_diagonal]))
        return found

    @cached_property
    def diagonal(self) -> NDArray:
        """h_ii, ``(n,)``, of the predictions as they were given."""
        problem = self.problem
        if self.pooled is not None:
            problem = prepare_checked(self.targets, self.given, self.kernel, expectations=self.expectations)
        return np.asarray(to_numpy(problem.diagonal()))

    def effect_size(self, estimate: Estimate) -> float | None:
        """SKCE / mean h_ii, or None where too few draws leave h_ii unknown, or even negative."""
        if estimate.name != "SKCE":
            estimate = self.estimate
        mean = float(np.mean(self.diagonal))
        if mean == 0.0:
            return 0.0
        return float(estimate) / mean if mean > 0.0 else None  # nan compares as false

    def problem_of(
        self, targets: NDArray, predictions: Predictions | None = None, *, few_pairs: bool = False
    ) -> Problem:
        """The same problem with other targets, and other predictions where they are given."""
        batch = self.predictions if predictions is None else predictions
        kernel, expectations = self.problem.kernel, self.expectations
        return prepare_checked(targets, batch, kernel, expectations=expectations, few_pairs=few_pairs)

    def at(self, locations: Locations) -> LocationKernel:
        """The kernel between the cases and locations, from which deviations there are found."""
        kernel = self.kernel if self.pooled is None else stretch(self.pooled) * self.kernel
        return location_kernel(
            kernel, self.predictions, locations, engine=self.engine, expectations=self.expectations
        )


DEFAULT_RESAMPLES = 999
"""Resamples of a test where nobody says how many."""


def check_resamples(n_resamples: object) -> int:
    """A number of resamples.

    Examples
    --------
    >>> check_resamples(0)
    Traceback (most recent call last):
    ValueError: n_resamples must be a whole number between 1 and 100000000, found 0
    """
    return whole_number(n_resamples, "n_resamples", least=1, most=MOST_RESAMPLES)


def make_setup(
    y: object,
    pred: object,
    kernel: Kernel | None = None,
    *,
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    groups: object = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    pool: bool = False,
    few_pairs: bool = False,
    progress: Progress | None = None,
) -> Setup:
    """Check input and prepare it, in NumPy.

    With `pool`, predictions that are draws are replaced by the draws pooled with their target, which
    are exchangeable under calibration. With `few_pairs` what all predictions share is not looked for.
    """
    checked, given = check_inputs(y, pred)
    given.check_judged(checked)
    targets = to_numpy(checked).copy()  # what is asked of a result later must not follow the array of a user
    batch = numpy_batch(given)
    predictions, draws = with_targets(targets, batch) if pool else (batch, None)
    chosen = default_kernel(predictions, expectations=expectations) if kernel is None else kernel
    # h has two deviations in it.
    scaled = chosen if draws is None else stretch(draws) ** 2 * check_pair_kernel(chosen)
    problem = prepare_checked(targets, predictions, scaled, expectations=expectations, few_pairs=few_pairs)
    clusters = number_clusters(per_case(groups, "groups", y, pred), len(predictions))
    if clusters is not None:
        refuse_targets(groups, "groups", y, GROUPS)
    return Setup(
        targets=targets,
        predictions=predictions,
        given=batch,
        kernel=chosen,
        problem=problem,
        engine=choose_engine(engine, problem),
        rng=as_generator(rng),
        n_resamples=check_resamples(DEFAULT_RESAMPLES if n_resamples is None else n_resamples),
        expectations=expectations,
        pooled=draws,
        groups=clusters,
        progress=reporter() if progress is None else progress,
        insisted=n_resamples is not None,
        place=_place(given, predictions, targets),
        seed=known_seed(rng),
    )


def with_targets(targets: NDArray, predictions: Predictions) -> tuple[Predictions, int | None]:
    """Pool draws with their target, and return how many draws there were; other predictions stay as they are.

    Examples
    --------
    >>> import wellcal as wc
    >>> pooled, draws = with_targets(np.zeros(2), wc.Samples(np.ones((2, 3))))
    >>> pooled.values.shape, draws
    ((2, 4), 3)
    """
    if not (isinstance(predictions, Samples) and predictions.kind == "draws"):
        return predictions, None
    return pool_draws(targets, predictions), int(predictions.values.shape[1])


def _place(given: Predictions, predictions: Predictions, targets: NDArray) -> Array:
    """Where sets of targets are drawn: on a device that predictions came from, where there are many."""
    like: Array = given.like
    if not is_on_accelerator(like) or len(predictions) < FEWEST_ON_DEVICE:
        return None
    return like.detach()[:0] if can_be_placed(predictions, targets) else None


def block_size_within(room: float, width: int) -> int:
    """Cases in a block, so that each case meets about `room` elementary evaluations, `width` for a pair.

    Examples
    --------
    >>> block_size_within(4096, 5), block_size_within(4096, 100), block_size_within(4096, 10**6)
    (256, 40, 4)
    """
    return int(min(max(room // max(width, 1), SMALLEST_BLOCK), LARGEST_BLOCK))


def numpy_batch(predictions: Predictions) -> Predictions:
    """The same batch in NumPy; objects stay as they are."""
    if predictions.target_kind == "objects":
        return predictions
    return in_numpy(predictions)
