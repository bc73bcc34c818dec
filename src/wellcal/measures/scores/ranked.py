"""The continuous ranked probability score (CRPS) of predictions of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from wellcal._arrays.checks import flag
from wellcal._arrays.namespaces import (
    Array,
    handed_over,
    is_traced,
    namespace,
    take_rows,
    to_numpy,
    widen,
)
from wellcal.measures.estimate import Estimate, about_cases
from wellcal.measures.numbers_of_classes import class_numbers
from wellcal.measures.scores import forms, numeric
from wellcal.measures.scores.casewise import mean_score
from wellcal.measures.scores.row_functions import by_rows
from wellcal.measures.scores.rules import CRPS_RULES, MIXTURE_CRPS_RULES, CrpsRule, shared_rule
from wellcal.predictions import Mixture, Predictions, Samples
from wellcal.predictions.alignment import per_case
from wellcal.predictions.base import check_inputs
from wellcal.predictions.batches import in_numpy


@handed_over
@about_cases
def crps(y: object, pred: object, *, fair: bool | None = None, weights: object = None) -> Estimate:
    r"""Mean continuous ranked probability score.

    .. math:: \mathrm{CRPS}(F, y) = \int \big(F(x) - 1\{x \ge y\}\big)^2\, dx
              = \mathrm{E}|Z - y| - \tfrac12 \mathrm{E}|Z - Z'|, \quad Z, Z' \sim F

    Parameters
    ----------
    y
        Observed targets ``(n,)``.
    pred
        Predictions of numbers. Closed forms: `Normal`, `Laplace`, `StudentT`, `Gamma`, `LogNormal`, `Beta`,
        `PowerExponential`, `Poisson`, `NegativeBinomial`, `Bernoulli`, `Categorical` with support,
        `Samples`, mixtures of normals, of samples, of counts and of the same classes, and families that
        registered one. All others with a distribution function and quantiles, by quadrature.
    fair
        Only for `Samples`: whether a draw is not compared with itself, which makes the score of S draws an
        unbiased estimate of the score of the distribution they come from. None is True for draws and False
        for atoms.
    weights
        How much each case counts, ``(n,)``: finite and not negative; None counts all alike.

    Returns
    -------
    Estimate
        The mean, with its standard error; in the unit of the targets. Differentiable by parameters.

    References
    ----------
    T. Gneiting, A. E. Raftery (2007). Strictly proper scoring rules, prediction, and estimation. A. Jordan,
    F. Krüger, S. Lerch (2019). Evaluating probabilistic forecasts with scoringRules. C. A. T. Ferro (2014).
    Fair scores for ensemble forecasts.

    Examples
    --------
    >>> import numpy as np
    >>> round(float(crps(np.array([0.0]), (np.zeros(1), np.ones(1)))), 6)
    0.233695
    """
    fair = flag(fair, "fair", or_none=True)
    targets, predictions = check_inputs(y, pred)
    if fair is not None and not isinstance(predictions, Samples):
        raise ValueError(f"fair is for Samples, found {type(predictions).__name__}")
    scores, provenance = crps_of_cases(targets, predictions, fair)
    return mean_score(scores, "CRPS", provenance, weights=per_case(weights, "weights", y, pred))


def crps_of_cases(
    targets: Array, predictions: Predictions, fair: bool | None = None
) -> tuple[Array, dict[str, Any]]:
    """Scores ``(n,)`` for checked targets, and how they were obtained."""
    _check_numbers(predictions)
    closed = {"expectations": "closed"}
    if predictions.kind == "classes":
        return _class_scores(predictions, targets), closed
    if isinstance(predictions, Samples):
        return _sample_scores(predictions, targets, fair), closed
    rule = _rule(predictions)
    if rule is not None:
        return rule(predictions, targets), closed
    if not (predictions.supports("cdf") and predictions.supports("quantile")):
        reason = predictions.missing("cdf") or predictions.missing("quantile")
        raise TypeError(f"crps needs predictions with cdf and quantile, or a rule of their own: {reason}")
    scores = by_rows(numeric.quadrature_crps)(predictions, targets)
    return scores, _quadrature_provenance(predictions, targets, scores)


def _rule(predictions: Predictions) -> CrpsRule | None:
    if not isinstance(predictions, Mixture):
        return CRPS_RULES.find(type(predictions))
    if predictions.kind == "counts":
        return numeric.mixture_of_counts_crps
    if any(part.target_kind == "counts" for part in predictions.components):
        raise TypeError("crps of a Mixture of counts with other families is not known")
    return shared_rule(MIXTURE_CRPS_RULES, predictions)


def _check_numbers(predictions: Predictions) -> None:
    name = type(predictions).__name__
    if predictions.event_shape != ():
        raise TypeError(f"crps needs predictions of numbers, found {name} of vectors; take wc.energy_score")
    if predictions.target_kind == "bins":
        raise TypeError(
            "crps needs whole distributions, and Quantiles are known at their levels only; take "
            "wc.pinball_loss(..., levels=...), whose mean over all levels is half of the CRPS"
        )
    if predictions.target_kind == "objects":
        raise TypeError("crps needs predictions of numbers, found Samples of objects")


def _class_scores(predictions: Any, index: Array) -> Array:
    probs = widen(predictions.class_probs())
    xp = namespace(probs)
    numbers = class_numbers(predictions, "crps needs predictions of numbers", ", or take the Brier score")
    values = xp.astype(numbers, probs.dtype)
    table = xp.broadcast_to(values, tuple(probs.shape))
    return forms.atoms_crps(table, probs, take_rows(values, index), fair=False)


def _sample_scores(predictions: Samples, targets: Array, fair: bool | None) -> Array:
    fair = predictions.kind == "draws" if fair is None else fair
    if fair and predictions.weights is not None:
        raise ValueError("fair is for equally weighted draws, found Samples with weights; take fair=False")
    if fair and predictions.values.shape[1] < 2:
        raise ValueError(
            'the fair score needs at least two draws for each prediction; take fair=False, or kind="atoms" '
            "if the one value is the prediction"
        )
    if predictions.weights is None:
        return forms.draws_crps(predictions.values, targets, fair=fair)
    return forms.atoms_crps(predictions.values, predictions.atom_weights(), targets, fair=fair)


def _quadrature_provenance(predictions: Any, targets: Array, scores: Array) -> dict[str, Any]:
    """The scheme, with the largest change of a score when the rule is made coarser."""
    error = float("nan")
    if not is_traced(predictions.like, targets):
        batch, y = in_numpy(predictions), to_numpy(targets).astype(np.float64)
        with np.errstate(all="ignore"):
            coarse = numeric.quadrature_crps(batch, y, 12)
        error = float(np.max(np.abs(to_numpy(scores) - coarse)))
    name = type(predictions).__name__
    scheme = f"CRPS of {name}: Gauss-Legendre rules of 16 points between quantiles"
    return {"expectations": "lowered", "rules": [], "lowered": [scheme], "expectation_error": error}
