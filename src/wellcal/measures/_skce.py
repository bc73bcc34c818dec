"""Estimators of the squared kernel calibration error (paper, section "Estimation")."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, cast

import numpy as np

from wellcal._arrays.checks import call_given, one_of, whole_number
from wellcal._arrays.namespaces import (
    Array,
    float64,
    handed_over,
    host_copy,
    is_array,
    is_jax,
    is_numpy,
    is_on_processor,
    is_tensor,
    is_traced,
    namespace,
    stop_gradient,
    to_numpy,
)
from wellcal._arrays.progress import Listener, as_progress, following
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.rows import first_array
from wellcal._arrays.seeds import as_generator
from wellcal.engines import Engine, choose_engine
from wellcal.engines.reductions import Sums
from wellcal.engines.single_precision import PRECISIONS
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel, calls_user_function, is_constant
from wellcal.measures.deviations import Cases
from wellcal.measures.estimate import Estimate
from wellcal.predictions import Predictions, Samples
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import host_copies
from wellcal.problem.defaults import default_kernel
from wellcal.problem.feature_form import FEWEST
from wellcal.problem.problem import Problem, check_pair_kernel, prepare_checked, some_cases
from wellcal.problem.weights import (
    MeanOfWeighted,
    WeightSums,
    check_weights,
    weighted_problem,
)

ESTIMATORS = ("unbiased", "biased", "block")

BlockSize = int | str | Callable[[int], int] | None

_NOT_TOLD = 1000  # cases whose run is over before anybody could be told, unless somebody asks


@handed_over
def skce(
    y: object,
    pred: object,
    *,
    kernel: Kernel | None = None,
    estimator: str = "unbiased",
    block_size: BlockSize = None,
    rng: int | np.random.Generator | None = None,
    weights: object = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    precision: str = "auto",
    progress: bool | Listener | None = None,
) -> Estimate:
    """Squared kernel calibration error of predictions.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions: a batch such as ``wc.Normal(mu, sigma)``, or anything that
        :func:`wellcal.as_predictions` understands.
    kernel
        Kernel on pairs of prediction and target, such as ``ExpDistance(Wasserstein()) @ Gaussian()``.
        None chooses one for the family, with scales from the predictions, and reports it.
    estimator
        "unbiased": the minimum variance unbiased estimator, which can be negative; "biased": the
        plug-in estimator, never negative; "block": the unbiased mean over blocks, O(block_size n).
    block_size
        Only for "block": an integer, "sqrt", a function of n, or None for floor(sqrt(n)). An
        incomplete last block is left out and reported.
    rng
        Only for "block": shuffle the cases before they are cut into blocks.
    weights
        How much each case counts, ``(n,)``: importance weights or exposures, not negative, which must not
        depend on the target. Only their ratios matter. Not for "block".
    expectations
        "auto": numerical expectations, with a reported error estimate, where no closed form is
        known; "closed": an error instead; or a :class:`wellcal.Lowering` that says how.
    engine
        "tiled": all pairs, by tiles; "linear": without all pairs, where that can be done; "auto": the
        quickest of them that can; or an engine such as ``wellcal.engines.Tiled(threads=1)``.
    precision
        "float64"; "mixed": products in float32 after the four terms of h have cancelled, twice as fast, with
        an error that is reported (`control_error` in the provenance) and never above 0.01;
        "auto": "mixed" for 20,000 cases or more. The unit of the error is the standard
        deviation that the estimate would have if the predictions were calibrated, from targets that are drawn
        from them; where they cannot be drawn, `error_unit` says what stands in for it. For all pairs of
        cases in NumPy, and in PyTorch, where "auto" rounds on graphics cards only: blocks are in float64.
    progress
        Whether to show how far a run of more than two seconds is; None does where standard error is a
        terminal. A function is called as ``progress(what, done, total)``, and ends the run by raising an
        error. Not within ``jax.jit`` and ``jax.grad``.

    Returns
    -------
    Estimate
        Value, standard error where theory gives one, the kernel and the provenance.

    Notes
    -----
    The standard error is that of the U-statistic under a fixed alternative,
    ``sqrt(4 zeta_1 / n)`` with zeta_1 the variance of the row means of h, or the standard error of
    the mean of blocks. Near calibration the estimator is degenerate and the first does not hold; confidence
    intervals do not rest on it (:meth:`Estimate.confidence_interval`).

    The biased estimator of predictions that are draws (``wc.Samples``) leaves pairs of a draw with
    itself out of h_ii and can then be negative.

    With weights the unbiased estimator is ``sum_{i != j} w_i w_j h_ij / sum_{i != j} w_i w_j``, and the
    biased one the same with all pairs. The first is a ratio of U-statistics: consistent, and without bias
    given the weights. Its standard error is that of the ratio, with cases and their weights as the sample,
    ``4 sum_i w_i^2 (g_i - SKCE)^2 / sum_{i != j} w_i w_j`` squared, g_i the weighted mean of row i. A weight
    of 2 is not a case that was seen twice: pairs of a case with itself have no place in it.

    Cost in O(n) memory: all pairs for "unbiased" and "biased", n^2 / 2 of them; or, for many cases, a time
    that grows with n, where predictions are points on a line or in a plane (events, counts, location and
    scale) or ensembles under a smooth kernel, and targets have features (:class:`wellcal.engines.Linear`).

    Arrays of PyTorch and JAX on the processor, of 1,000 cases or more and without derivatives, are read by
    NumPy under ``engine="auto"``, where sums are quicker; the value is an array of theirs nevertheless.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), Lemmas 2 and 3.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=200)
    >>> y = rng.normal(mu, 1.0)
    >>> honest = wc.skce(y, wc.Normal(mu, np.ones(200)))
    >>> overconfident = wc.skce(y, wc.Normal(mu, 0.3 * np.ones(200)), kernel=honest.kernel)
    >>> bool(honest.value < overconfident.value)
    True
    """
    check_options(estimator, block_size, rng, weights)
    told = None if progress is None else as_progress(progress)
    targets, predictions = check_inputs(y, pred)
    predictions.check_judged(targets)
    given = predictions
    if len(predictions) >= FEWEST and isinstance(engine, str) and engine == "auto":
        targets, predictions, weights = _nearer(targets, predictions, weights, kernel)
    with nullcontext() if told is None and _is_short(len(predictions), block_size) else following(told):
        if kernel is None:
            kernel = default_kernel(predictions, expectations=expectations)
        problem = prepare_checked(
            targets, predictions, kernel, expectations=expectations, few_pairs=estimator == "block"
        )
        runner = choose_engine(engine, problem)
        if precision != "auto":
            runner = runner.at_precision(one_of(precision, "precision", PRECISIONS))
        if estimator == "block":
            found = estimate_blocks(problem, runner, block_size, rng)
        elif weights is not None:
            weights = per_case(weights, "weights", y, pred)
            found = estimate_weighted(problem, runner, weights, estimator)
        else:
            check_enough(problem.n, 2 if estimator == "unbiased" else 1, estimator)
            found = _biased(problem, runner) if estimator == "biased" else estimate_unbiased(problem, runner)
    if is_traced(found.value):
        return found
    if predictions is not given:
        value = given.xp.asarray(found.value, dtype=float64(given.xp))
        found = replace(found, value=value, provenance={**found.provenance, "arrays": "read by NumPy"})
    # The caller may change an array of NumPy before an interval is asked for.
    kept: Any = cast("Any", targets).copy() if isinstance(targets, np.ndarray) else targets
    shares = None if weights is None else check_weights(weights, problem.n, None)
    if isinstance(predictions, Samples) and shares is None:  # of which a picture tells draws from a pool
        found.with_given(kept, predictions)
    return found.with_cases(Cases(kept, predictions, kernel, expectations, shares))


def _is_short(n: int, block_size: BlockSize) -> bool:
    """Whether so few pairs are visited that nobody waits for them."""
    return n < _NOT_TOLD or (isinstance(block_size, int) and n * block_size < 4 * _NOT_TOLD)


def _nearer(
    targets: Array, predictions: Predictions, weights: object, kernel: Kernel | None
) -> tuple[Array, Predictions, object]:
    """Many cases of other libraries in NumPy, which knows ways without all pairs; not for derivatives."""
    if is_numpy(predictions.xp) or not _knows_all_libraries(predictions):
        return targets, predictions, weights
    if is_jax(predictions.xp) and (predictions.event_shape or not is_on_processor(targets)):
        return targets, predictions, weights  # programs of JAX are quicker: vectors have no features
    if kernel is not None and (not is_constant(check_pair_kernel(kernel)) or calls_user_function(kernel)):
        return targets, predictions, weights
    foreign = is_array(weights) and not is_numpy(namespace(weights))
    if foreign and not isinstance(host_copy(weights), np.ndarray):
        return targets, predictions, weights
    read, values = host_copies(predictions, targets)
    return values, read, to_numpy(weights) if read is not predictions and foreign else weights


def _knows_all_libraries(predictions: Predictions) -> bool:
    """Whether families are those of this package: a user's may have been written for tensors alone."""
    children = (child for name in predictions.batch_fields for child in getattr(predictions, name))
    return type(predictions).__module__.startswith("wellcal.") and all(map(_knows_all_libraries, children))


def check_options(estimator: str, block_size: BlockSize, rng: object, weights: object) -> None:
    """Options that belong together."""
    one_of(estimator, "estimator", ESTIMATORS)
    check_block_options(estimator, block_size, rng)
    if estimator == "block" and weights is not None:
        raise ValueError(
            'weights have no meaning for estimator="block": it takes all blocks as alike, and blocks of '
            'different weight are not; take estimator="unbiased"'
        )


def check_block_options(estimator: str, block_size: BlockSize, rng: object) -> None:
    if estimator != "block" and block_size is not None:
        raise ValueError(f'block_size is for estimator="block" only, found estimator={estimator!r}')
    if estimator != "block" and rng is not None:
        raise ValueError(f'rng shuffles cases for estimator="block" only, found estimator={estimator!r}')


def check_enough(n: int, needed: int, what: str) -> None:
    if n < needed:
        raise ValueError(f"the {what} estimator needs at least {how_many(needed)}, found {n}")


def resolve_block_size(block_size: BlockSize, n: int) -> int:
    """Block size for n cases, between 2 and n."""
    if block_size is None:
        return max(2, math.isqrt(n))
    if isinstance(block_size, str):
        one_of(block_size, "block_size", ("sqrt",), or_else="or a whole number, or a function of n")
        return max(2, math.isqrt(n))
    size: Any = block_size
    if callable(block_size):
        size = call_given(block_size, "block_size", n)
    return whole_number(size, f"block_size of {n} cases", least=2, most=n)


def estimate_unbiased(problem: Problem, engine: Engine) -> Estimate:
    """Minimum variance unbiased estimate of a prepared problem."""
    return estimate_from_sums(problem, engine, engine.triangle(problem))


def estimate_from_sums(problem: Problem, engine: Engine, sums: Sums) -> Estimate:
    """The same from sums over all pairs i < j that are known already; the engine only describes itself.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.problem.problem import prepare
    >>> problem = prepare(np.array([0.5, 1.0, 3.0]), wc.Normal(np.zeros(3), np.ones(3)))
    >>> engine = choose_engine("auto", problem)
    >>> found = estimate_from_sums(problem, engine, engine.triangle(problem))
    >>> found.value == estimate_unbiased(problem, engine).value
    True
    """
    n = problem.n
    value = sums.total / (0.5 * n * (n - 1))
    error = _jackknife_error(sums.rows / (n - 1), n)
    return _estimate(problem, engine, value, error, "unbiased")


def _jackknife_error(row_means: Array, n: int) -> Any:
    """``sqrt(4 zeta_1 / n)`` with zeta_1 the variance of row means; needs more than two cases."""
    if n < 3:
        return None
    if isinstance(row_means, np.ndarray):
        centred = row_means - row_means.sum() / n
        return 2.0 * math.sqrt(float(centred @ centred) / ((n - 1.0) * n))
    xp = namespace(row_means)
    return 2.0 * xp.std(row_means, correction=1) / math.sqrt(n)


def _biased(problem: Problem, engine: Engine) -> Estimate:
    return _estimate(problem, engine, _biased_sum(problem, engine) / problem.n**2, None, "biased")


def _biased_sum(problem: Problem, engine: Engine) -> Array:
    """Sum of h over all pairs, those of a case with itself included."""
    diagonal = problem.diagonal()
    xp = namespace(diagonal)
    if not is_traced(diagonal) and bool(xp.any(xp.isnan(diagonal))):
        raise ValueError(
            "the biased estimator needs at least two draws for each prediction; "
            'take estimator="unbiased", or kind="atoms" if the one value is the prediction'
        )
    trace = xp.sum(diagonal)
    return 2.0 * engine.total(problem) + trace if problem.n > 1 else trace


def estimate_weighted(problem: Problem, engine: Engine, weights: object, estimator: str) -> Estimate:
    """Weighted estimate of a prepared problem, unbiased or biased."""
    fewest = 2 if estimator == "unbiased" else 1
    check_enough(problem.n, fewest, estimator)
    # Rows of JAX may wait in NumPy, which cannot take what is traced.
    like = weights if is_traced(weights) and is_jax(problem.xp) else first_array(problem.rows)
    w = check_weights(weights, problem.n, like, at_least=fewest)
    weighted = weighted_problem(problem, w)
    if estimator == "unbiased":
        return estimate_from_weighted_sums(weighted, engine, engine.triangle(weighted), w)
    value = _biased_sum(weighted, engine) / WeightSums.of(w).total ** 2
    return _estimate(weighted, engine, value, None, estimator, _worth(w))


def estimate_from_weighted_sums(problem: Problem, engine: Engine, sums: Sums, weights: Array) -> Estimate:
    """The weighted unbiased estimate from sums of ``w_i w_j h_ij`` over all pairs that are known already.

    The problem is the weighted one, whose pairs were visited.
    """
    value = sums.total / WeightSums.of(weights).pairs
    error = weighted_error(sums.rows, weights, value)
    if not is_traced(weights) and not MeanOfWeighted.of(weights).has_error:
        error = None
    return _estimate(problem, engine, value, error, "unbiased", _worth(weights))


def _worth(weights: Array) -> dict[str, Any]:
    return {} if is_traced(weights) else MeanOfWeighted.of(weights).worth


def weighted_error(rows: Array, weights: Array, value: Array) -> Any:
    """Standard error of ``sum_{i != j} w_i w_j h_ij / sum_{i != j} w_i w_j`` from its sums ``(n,)`` over j.

    Row sums of NumPy's take weights and value into NumPy; both are constants here.
    """
    xp = namespace(rows)
    if is_numpy(xp):
        weights, value = to_numpy(weights), float(to_numpy(value))
    if not is_traced(weights) and int(xp.count_nonzero(weights)) < 3:
        return None
    by_weight = WeightSums.of(weights)
    # Rows are w_i sum_j w_j h_ij: divided by the weights of the others they are w_i g_i.
    influence = rows / by_weight.others - weights * value
    factor = MeanOfWeighted.of(weights).factor
    error = 2.0 * xp.sqrt(xp.sum(influence**2) * factor) / by_weight.total
    return float(error) if is_numpy(xp) else error


def estimate_blocks(problem: Problem, engine: Engine, block_size: BlockSize, rng: Any) -> Estimate:
    """Mean over blocks of a prepared problem, its cases shuffled where `rng` is given."""
    check_enough(problem.n, 2, "block")
    size = resolve_block_size(block_size, problem.n)
    if rng is not None:
        problem = some_cases(problem, as_generator(rng).permutation(problem.n))
    return estimate_from_block_sums(
        problem, engine, engine.blocks(problem, size), size, shuffled=rng is not None
    )


def estimate_from_block_sums(
    problem: Problem, engine: Engine, sums: Sums, size: int, *, shuffled: bool = False
) -> Estimate:
    """The same from sums over pairs within blocks of `size` cases that are known already.

    Parameters
    ----------
    problem
        The problem that was visited; cases beyond its last whole block were left out.
    engine
        Only describes itself.
    sums
        What ``engine.blocks(problem, size)`` returned.
    size
        Cases in a block.
    shuffled
        Whether the cases were put into a random order before; only reported.
    """
    count = problem.n // size
    value = sums.total / (count * 0.5 * size * (size - 1))
    error = _block_error(sums.rows, size, count)
    extra = {
        "block_size": size,
        "blocks": count,
        "dropped": problem.n - count * size,
        "shuffled": shuffled,
    }
    return _estimate(problem, engine, value, error, "block", extra)


def block_values(rows: Array, size: int, count: int) -> Array:
    """Unbiased estimate within each block; each pair of a block is in two row sums."""
    xp = namespace(rows)
    each = xp.reshape(rows[: count * size], (count, size))
    # Of many short rows a product is the quickest sum.
    sums = each @ np.ones(size) if is_numpy(xp) else xp.sum(each, axis=1)
    return sums / (size * (size - 1.0))


def _block_error(rows: Array, size: int, count: int) -> Any:
    """Standard error of the mean of block values."""
    if count < 2:
        return None
    xp = namespace(rows)
    blocks = block_values(rows, size, count)
    spread = xp.std(blocks, correction=1) if not is_numpy(xp) else float(np.std(blocks, ddof=1))
    return spread / math.sqrt(count)


def _estimate(
    problem: Problem,
    engine: Engine,
    value: Array,
    error: Any,
    estimator: str,
    extra: dict[str, Any] | None = None,
) -> Estimate:
    xp, notes, run = problem.xp, problem.notes, engine.describe(problem)
    precision = "float64" if float64(xp) == xp.float64 else "float32, compensated sums"

    def provenance() -> dict[str, Any]:
        return {"precision": precision, **notes.as_dict(), **run, **(extra or {})}

    if is_numpy(xp):
        value = float(value)
    else:
        error = None if error is None else (error if isinstance(error, float) else stop_gradient(error))
        error = float(error) if is_tensor(error) else error
    return Estimate(value, error, "SKCE", estimator, problem.n, problem.kernel, provenance)
