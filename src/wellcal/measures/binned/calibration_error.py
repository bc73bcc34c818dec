"""Expected and maximum calibration error (paper, appendix "Expected and maximum calibration error")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wellcal._arrays.checks import as_library, one_of
from wellcal._arrays.namespaces import (
    Array,
    NDArray,
    handed_over,
    is_numpy,
    is_traced,
    namespace,
    to_numpy,
    widen,
)
from wellcal.measures._confidence import NO_REDUCTION, check_reduction, reduced_to_confidence
from wellcal.measures.binned.binning import (
    Binning,
    EqualMassBins,
    MedianVarianceBins,
    UniformBins,
    as_binning,
    numbered_bins,
)
from wellcal.measures.binned.discrepancies import Discrepancy, DistanceOption, as_discrepancy
from wellcal.measures.binned.tables import BinTable, class_table, count_tables
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.predictions import Bernoulli, Poisson, Quantiles
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs

ESTIMATORS = ("plug-in", "debiased")


@handed_over
@about_cases
def ece(
    y: object,
    pred: object,
    *,
    distance: DistanceOption = "total_variation",
    binning: str | Binning | Array | None = None,
    n_bins: int | None = None,
    reduce: str | None = None,
    estimator: str = "plug-in",
) -> Estimate:
    r"""Expected calibration error: mean distance between what happened and what was predicted, in bins.

    .. math:: \mathrm{ECE}_d = \mathrm{E}\, d\big(\mathrm{P}(Y | P_X), P_X\big) \approx
              \sum_b \frac{n_b}{n}\, d\big(\bar{y}_b, \bar{p}_b\big)

    with the frequencies :math:`\bar{y}_b` of targets and the mean probabilities :math:`\bar{p}_b` of the
    :math:`n_b` cases of bin b. Empty bins do not count.

    Parameters
    ----------
    y
        Observed targets, one for each prediction.
    pred
        Predictions of classes (`Bernoulli`, `Categorical`, mixtures of these, arrays of probabilities), of
        counts (`Poisson`, `NegativeBinomial`, mixtures of these) or `Quantiles`, whose targets are the bins
        between quantiles.
    distance
        "total_variation", "euclidean", "squared_euclidean"; a number q >= 1 for the q-th power
        :math:`\sum_c |.|^q` of the l_q norm, ``math.inf`` for the largest difference; or a function of
        frequencies and probabilities ``(m, C)`` that returns ``(m,)``. With counts, C are the counts that
        hold all but 1e-13 of a bin's mass.
    binning
        "uniform", "equal_mass", "median_variance", a rule such as ``wellcal.UniformBins(15)``, or
        integers ``(n,)`` that name the bins. Bins must not be chosen by looking at `y`. None is "uniform" for
        two classes and for reductions, "median_variance" for all of more classes and "equal_mass" for the
        rest.
    n_bins
        Number of bins ("uniform": of each probability; "median_variance": at most) of a binning that is
        given by name.
    reduce
        What is compared of more than two classes. "confidence": only the most probable class, the top
        label, by :func:`wellcal.confidence`. "classwise": each class against all others, the errors averaged.
        "none": all probabilities at once, which needs many cases for each class. None takes "confidence"
        for more than two classes, and everything for two classes, counts and quantiles; the result says
        which.
    estimator
        "plug-in", which is biased upwards, much so for small bins; or "debiased", which can be negative.

    Returns
    -------
    Estimate
        The error; bins and distance in its provenance. Gradients see the bins as constants.

    Notes
    -----
    For two classes, total variation is the usual :math:`|\bar{y}_b - \bar{p}_b|`.

    "debiased" is known for sums of squares and of absolute values. For "squared_euclidean" it is the
    unbiased estimate of the squared norm of the mean difference in each bin (for constant predictions that
    of Kumar, Liang and Ma, 2019); for "total_variation" the expectation of the absolute value of a
    normal variable with the mean and variance found is used to correct it. Bins with a single case say
    nothing about their bias and are left out.

    What is estimated is the error of predictions averaged over bins, which is at most that of the
    predictions themselves where the distance is convex. For counts and q > 1 the value estimates
    :math:`\mathrm{CE}^q` of the paper's theorem, for q = 1 :math:`\mathrm{CE}` itself; its third
    form is ``mce(..., distance=math.inf)``.

    There are no weights: bins and their bias are those of cases that count alike. :func:`wellcal.skce` and
    :func:`wellcal.mmce` take weights.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendices "Expected and maximum calibration error" and "Expected
    calibration error for countably infinite discrete target spaces". Naeini, Cooper, Hauskrecht (2015).
    Guo, Pleiss, Sun, Weinberger (2017). Kull et al. (2019), for class-wise errors. Kumar, Liang, Ma (2019).

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.15, 0.92, 1.0]), np.array([0, 1, 1, 1])
    >>> round(float(ece(y, p)), 4)
    0.2075
    >>> ece([0, 2], np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]))
    ECE = 0.45  (plug-in, 2 cases)
      compared  the top label of 3 classes, with its probability
    """
    one_of(estimator, "estimator", ESTIMATORS)
    measure = as_discrepancy(distance)
    debiased = estimator == "debiased"
    if debiased and not measure.can_be_debiased:
        raise ValueError(
            f'no debiased estimate is known for the distance {measure.name}; take "squared_euclidean", '
            '"total_variation", or estimator="plug-in"'
        )
    parts = _binned(y, pred, measure, binning, n_bins, reduce, debiased)
    return estimate_from_bins(
        [mean_over_bins(part, debiased) for part in parts], parts, "ECE", estimator, measure
    )


@about_cases
def mce(
    y: object,
    pred: object,
    *,
    distance: DistanceOption = "total_variation",
    binning: str | Binning | Array | None = None,
    n_bins: int | None = None,
    reduce: str | None = None,
) -> Estimate:
    r"""Maximum calibration error: largest distance between what happened and what was predicted, over bins.

    .. math:: \mathrm{MCE}_d = \operatorname{ess\,sup}\, d\big(\mathrm{P}(Y | P_X), P_X\big) \approx
              \max_b d\big(\bar{y}_b, \bar{p}_b\big)

    Parameters
    ----------
    y, pred, distance, binning, n_bins
        As for :func:`ece`.
    reduce
        As for :func:`ece`, but "classwise" takes the largest error of any class.

    Returns
    -------
    Estimate
        The error; bins and distance in its provenance.

    Notes
    -----
    Small bins have large distances by chance, and a maximum finds them: prefer bins of equal mass.

    References
    ----------
    Widmann, Lindsten, Zachariah (2021), appendix "Expected and maximum calibration error".

    Examples
    --------
    >>> import numpy as np
    >>> p, y = np.array([0.1, 0.15, 0.92, 1.0]), np.array([0, 1, 1, 1])
    >>> round(float(mce(y, p)), 4)
    0.375
    """
    measure = as_discrepancy(distance)
    parts = _binned(y, pred, measure, binning, n_bins, reduce, False)
    return estimate_from_bins([_largest_of_bins(part) for part in parts], parts, "MCE", "plug-in", measure)


# -- bins ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Binned:
    """Bins of one part of the question: of all classes at once, or of one of them against the others."""

    sizes: Array
    distances: Array
    binning: Binning | NDArray
    reduce: str | None
    n: int
    compared: str | None = None


def _binned(
    y: object,
    pred: object,
    measure: Discrepancy,
    binning: object,
    n_bins: int | None,
    reduce: str | None,
    debiased: bool,
) -> list[Binned]:
    predictions, questions, reduce, compared = discrete_targets(y, pred, reduce)
    if not (binning is None or isinstance(binning, (str, Binning))):
        binning = per_case(binning, "binning", y, pred)
    cells: list[Binned] = []
    for part in questions:
        rule = as_binning(binning, n_bins, part.default, len(predictions))
        tables = part.tables(rule, debiased)
        values = [measure.debiased(t) if debiased else measure.plug_in(t) for t in tables]
        xp = namespace(values[0])
        sizes = [t.sizes for t in tables]
        cells.append(
            Binned(
                sizes[0] if len(sizes) == 1 else xp.concat(sizes),
                values[0] if len(values) == 1 else xp.concat(values),
                rule,
                reduce,
                len(predictions),
                compared,
            )
        )
    return cells


def discrete_targets(
    y: object, pred: object, reduce: str | None
) -> tuple[Any, list[DiscreteTarget], str | None, str | None]:
    """What is compared with frequencies: predictions after a reduction, its parts, and which it was."""
    check_reduction(reduce, NO_REDUCTION)
    targets, predictions = check_inputs(y, pred)
    predictions.check_judged(targets)
    reduce, compared = _reduction(predictions, reduce)
    if reduce == "confidence":
        targets, predictions = reduced_to_confidence(targets, predictions)
    return predictions, _parts(targets, predictions, reduce), reduce, compared


_COMPARED = {
    "confidence": "the top label of {} classes, with its probability",
    "classwise": "each of {} classes with its probability",
    None: "all probabilities of {} classes at once",
}


def _reduction(predictions: Any, reduce: str | None) -> tuple[str | None, str | None]:
    """The reduction that is taken, None for all probabilities at once, and in words what it compares."""
    classes = _class_count(predictions) if predictions.kind == "classes" else 0
    if reduce is None and classes > 2:
        reduce = "confidence"
    taken = None if reduce == NO_REDUCTION else reduce
    said = classes > 2 or (classes == 2 and taken is not None)
    return taken, _COMPARED[taken].format(classes) if said else None


def _class_count(predictions: Any) -> int:
    """Number of classes, without a table of probabilities where there is none."""
    return 2 if isinstance(predictions, Bernoulli) else int(predictions.class_probs().shape[1])


@dataclass(frozen=True)
class DiscreteTarget:
    """Predictions of one discrete target, with the features that bins are made of."""

    features: Array
    default: Binning
    predictions: Any
    targets: Array
    probs: Array | None = None
    """Class probabilities ``(n, C)``; None for counts."""
    on_simplex: bool = True

    def tables(self, rule: Binning | NDArray, debiased: bool) -> list[BinTable]:
        """What was promised and what happened in each bin."""
        if isinstance(rule, Binning) and rule.of_probabilities and not self.on_simplex:
            raise ValueError(
                f"uniform bins are cells of a finite simplex, which {type(self.predictions).__name__} "
                'predictions do not live on; take binning="equal_mass" or "median_variance"'
            )
        if isinstance(rule, Binning) and is_traced(self.features):
            bins, count = rule.traced_cells(self.features)
        else:
            bins = numbered_bins(rule, self.features)
            count = int(bins.max()) + 1
        if self.probs is None:
            return count_tables(self.predictions, self.targets, bins, count, squares=debiased)
        return [class_table(self.probs, self.targets, bins, count, squares=debiased)]


def _parts(targets: Array, predictions: Any, reduce: str | None) -> list[DiscreteTarget]:
    if predictions.kind == "classes":
        index, probs = targets, predictions.class_probs()
        if reduce == "classwise":
            return [_one_class(index, probs, c, predictions) for c in range(int(probs.shape[1]))]
        features = probs[:, 1:] if probs.shape[1] == 2 else probs
        default: Binning = UniformBins() if features.shape[1] == 1 else MedianVarianceBins()
        return [DiscreteTarget(features, default, predictions, index, probs)]
    if reduce is not None:
        raise TypeError(
            f"reduce={reduce!r} is for predictions of classes, found {type(predictions).__name__}"
        )
    if isinstance(predictions, Quantiles):
        bins = predictions.bins(targets)
        like = widen(predictions.values)
        masses = as_library(predictions.bin_probs(), like, like.dtype)
        probs = namespace(like).broadcast_to(masses, (len(predictions), int(masses.shape[0])))
        return [
            DiscreteTarget(predictions.values, EqualMassBins(), predictions, bins, probs, on_simplex=False)
        ]
    if all(part.target_kind == "counts" for part in predictions.parts):
        return [
            DiscreteTarget(_moments(predictions), EqualMassBins(), predictions, targets, on_simplex=False)
        ]
    raise TypeError(
        f"ECE and MCE compare frequencies with probabilities, which {type(predictions).__name__} predictions "
        "of these targets do not have: no value of a continuous target is seen twice; take wc.skce or wc.kce"
    )


def _one_class(index: Array, probs: Array, c: int, predictions: Any) -> DiscreteTarget:
    """Class c against all others."""
    xp = namespace(probs)
    column = probs[:, c]
    hit = xp.astype(index == c, index.dtype)
    return DiscreteTarget(
        column[:, None], UniformBins(), predictions, hit, xp.stack([1.0 - column, column], axis=1)
    )


def _moments(predictions: Any) -> Array:
    """Means, and for families with a spread of their own standard deviations, ``(n, 1)`` or ``(n, 2)``."""
    mean = predictions.mean()
    if isinstance(predictions, Poisson):
        return mean[:, None]
    xp = namespace(mean)
    return xp.stack([mean, predictions.variance() ** 0.5], axis=1)


# -- results ---------------------------------------------------------------------------------


def mean_over_bins(part: Binned, debiased: bool) -> Array:
    """Mean distance over the cases of all bins."""
    xp = namespace(part.distances)
    used = part.sizes > (1 if debiased else 0)
    weights = xp.where(used, part.sizes, xp.zeros_like(part.sizes))
    if debiased and not is_traced(weights) and not bool(xp.any(used)):
        raise ValueError(
            "the debiased estimate needs bins with two cases or more, found single cases only; take fewer "
            'bins, or binning="median_variance"'
        )
    distances = xp.where(used, part.distances, xp.zeros_like(part.distances))
    return xp.sum(weights * distances) / xp.sum(weights)


def _largest_of_bins(part: Binned) -> Array:
    xp = namespace(part.distances)
    return xp.max(xp.where(part.sizes > 0, part.distances, -xp.inf * xp.ones_like(part.distances)))


def estimate_from_bins(
    values: list[Array], parts: list[Binned], name: str, estimator: str, measure: Discrepancy
) -> Estimate:
    """The error from those of its parts."""
    xp = namespace(values[0])
    stacked = xp.stack(values)
    value = xp.mean(stacked) if name == "ECE" else xp.max(stacked)
    rule = parts[0].binning
    provenance: dict[str, Any] = {
        "distance": measure.name,
        "binning": repr(rule) if isinstance(rule, Binning) else "given",
        "reduce": parts[0].reduce,
    }
    if parts[0].compared is not None:
        provenance["compared"] = parts[0].compared
    sizes = parts[0].sizes
    if not is_traced(sizes):
        counts = [to_numpy(part.sizes) for part in parts]
        together = np.concatenate(counts)
        provenance["bins"] = int(sum((c > 0).sum() for c in counts))
        provenance["smallest_bin"], provenance["largest_bin"] = int(together.min()), int(together.max())
        if estimator == "debiased":
            provenance["left_out"] = int((together == 1).sum())
    return Estimate(
        float(value) if is_numpy(xp) else value, None, name, estimator, parts[0].n, provenance=provenance
    )
