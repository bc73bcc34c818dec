"""`compare`: which of two or more models is better calibrated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast, overload

import numpy as np

from wellcal._arrays.checks import probability
from wellcal._arrays.progress import Listener, reported
from wellcal.comparison.models import SKCE, Models, gate, prepare_models
from wellcal.comparison.pooling import TWO
from wellcal.comparison.result import NAMES, Comparison
from wellcal.comparison.several import Comparisons, compare_several
from wellcal.comparison.shares import compared_pvalue, differences_of
from wellcal.engines import Engine
from wellcal.expectations.lowering import Lowering
from wellcal.kernels.base import Kernel

_ONE = "compare needs two models: give pred_a and pred_b, or a dictionary of models in the place of pred_a"


@overload
def compare(
    y: object,
    pred_a: object,
    pred_b: object,
    *,
    kernel: Kernel | None = ...,
    level: float = ...,
    weights: object = ...,
    names: Sequence[str] | None = ...,
    rng: int | np.random.Generator | None = ...,
    n_resamples: int | None = ...,
    expectations: str | Lowering = ...,
    engine: str | Engine = ...,
    progress: bool | Listener | None = ...,
) -> Comparison: ...


@overload
def compare(
    y: object,
    pred_a: Mapping[str, object],
    pred_b: None = None,
    *,
    kernel: Kernel | None = ...,
    level: float = ...,
    weights: object = ...,
    rng: int | np.random.Generator | None = ...,
    n_resamples: int | None = ...,
    expectations: str | Lowering = ...,
    engine: str | Engine = ...,
    progress: bool | Listener | None = ...,
) -> Comparisons: ...


@reported
def compare(
    y: object,
    pred_a: object,
    pred_b: object = None,
    *,
    kernel: Kernel | None = None,
    level: float = 0.95,
    weights: object = None,
    names: Sequence[str] | None = None,
    rng: int | np.random.Generator | None = None,
    n_resamples: int | None = None,
    expectations: str | Lowering = "auto",
    engine: str | Engine = "auto",
    progress: bool | Listener | None = None,
) -> Comparison | Comparisons:
    r"""Compare the calibration of two or more models on the same cases.

    The estimate is the U-statistic of the difference :math:`q_{ij} = h^A_{ij} - h^B_{ij}`,

    .. math:: \mathrm{SKCE}_A - \mathrm{SKCE}_B \approx \frac{1}{n (n - 1)} \sum_{i \ne j} q_{ij},
              \qquad \text{standard error } \sqrt{4 \zeta_1 / n},

    with :math:`\zeta_1` the variance of the row means of q. Errors that both models share, because they
    see the same targets, cancel in q. The difference in units of its standard error is compared with a t
    distribution of n - 1 degrees of freedom. Beside it stand paired differences of the error in centre and
    spread, as a length in standard deviations (for classes: of what another temperature would mend), and of
    proper scores.

    Parameters
    ----------
    y
        Observed targets, one for each case.
    pred_a, pred_b
        Predictions of the two models for these cases: batches such as ``wc.Normal(mu, sigma)``, or anything
        that :func:`wellcal.as_predictions` understands. For more than two models give a dictionary,
        ``compare(y, {"a": pred_a, "b": pred_b, "c": pred_c})``.
    kernel
        One kernel on pairs of prediction and target for both models. None chooses one for the family, with
        scales from the predictions of both; models of different families are compared by the maximum mean
        discrepancy between predictions, which all of them have.
    level
        Nominal coverage of the interval. Whether a model differs from a calibrated one is decided at an
        error rate of ``1 - level``.
    weights
        How much each case counts, as in :func:`wellcal.skce`. The calibration tests do not use them: a
        calibrated model has no error under any weights.
    names
        What two models are called in the result, ``("forest", "boosting")``; None calls them A and B. Models
        of a dictionary have their names.
    rng, n_resamples
        For the calibration tests, as in :func:`wellcal.calibration_test`.
    expectations, engine
        As in :func:`wellcal.skce`.
    progress
        As in :func:`wellcal.calibration_test`: whether to show how far it is, or a function to be told.

    Returns
    -------
    Comparison
        Differences with standard errors and intervals, a two-sided p-value, the tests of both models, and a
        verdict. For a dictionary of models :class:`Comparisons`, a table of all pairs with intervals that
        hold together.

    Notes
    -----
    Where both models are calibrated the U-statistic is degenerate: it is of order 1/n and not normal.
    Equal calibration errors can mean that, or two equal errors other than zero. The null hypothesis is the
    union of the two, and its p-value the larger of theirs (an intersection-union test): that of the
    differences, and ``2 min(p_A, p_B)`` of calibration tests of both models.

    Two differences count: in SKCE, with a fifth of the error rate, and in the length of the error in centre
    and spread, ``(mean z, sqrt(2) log sd z)`` of normal scores z of the targets, with the rest. The SKCE is a
    square, and a large error is known by its square less well than by its length: that spreads are too
    small by the factor 0.6 is seen in 0.9 of all sets of 100 cases, by the SKCE alone in 0.5. For classes the
    square of the length is twice the log-likelihood that the best temperature would gain, or for two classes
    the best line of log odds, which mends how often each occurs, too. Where one of the two is shown and the
    other, alone and at the whole error rate, says the opposite, the verdict tells both. A proper score
    does not count: a model that is sharper may have a better one and be worse calibrated.

    These are the tests that ``calibration_test(y, pred)`` makes of each model, with the same `kernel`,
    `n_resamples` and seed: both agree about whether a model is miscalibrated. Without `kernel` each has
    the default of its own predictions, while both estimates have the common one. All arithmetic is
    NumPy's. Cost: two calibration tests, and O(n^2) pairs for the difference.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> rng = np.random.default_rng(0)
    >>> mu = rng.normal(size=200)
    >>> y = rng.normal(mu, 1.0)
    >>> honest, shifted = wc.Normal(mu, np.ones(200)), wc.Normal(mu + 0.5, np.ones(200))
    >>> found = compare(y, honest, shifted, rng=1)
    >>> found.verdict
    'A is better calibrated than B'
    >>> bool(found.pvalue < 0.01 and found.confidence_interval().high < 0.0)
    True
    """
    level = probability(level, "level")
    options: dict[str, Any] = {"expectations": expectations, "engine": engine, "n_resamples": n_resamples}
    if pred_b is not None:
        given: dict[str, object] = {TWO[0]: pred_a, TWO[1]: pred_b}
        called = NAMES if names is None else _two_names(names)
        return _compare_two(prepare_models(y, given, kernel, level, weights, rng, options), called)
    named = _named(pred_a)
    if names is not None:
        raise ValueError("names are for two models, pred_a and pred_b: those of a dictionary have theirs")
    return compare_several(prepare_models(y, named, kernel, level, weights, rng, options))


def _named(given: object) -> dict[str, object]:
    """Models by their names."""
    if not isinstance(given, Mapping):
        raise TypeError(f"{_ONE}, found {type(given).__name__} alone")
    models = {str(name): pred for name, pred in cast("Mapping[object, object]", given).items()}
    if len(models) < 2 or len(models) != len(cast("Mapping[object, object]", given)):
        raise ValueError(f"{_ONE}, found a dictionary with {len(models)} of them")
    return models


def _two_names(names: Any) -> tuple[str, str]:
    found = () if isinstance(names, str) else tuple(map(str, names))
    if len(found) != 2 or found[0] == found[1]:
        raise ValueError(f"names must be two different names, for pred_a and pred_b, found {names!r}")
    return found[0], found[1]


def _compare_two(models: Models, names: tuple[str, str]) -> Comparison:
    a, b = models.models
    provenance = _together(names, a.parts.estimate.provenance, b.parts.estimate.provenance)
    provenance |= models.left_out(names)
    tests = a.test, b.test
    differences = differences_of(models, 0, 1)
    skce = differences[0]
    return Comparison(
        estimate=a.parts.minus(b.parts, f"{SKCE}_{names[0]} - {SKCE}_{names[1]}", provenance),
        a=a.parts.estimate,
        b=b.parts.estimate,
        statistic=skce.statistic,
        pvalue=max(compared_pvalue(differences), gate(tests)),
        difference_pvalue=skce.pvalue,
        degrees_of_freedom=models.degrees,
        tests=tests,
        degenerate=min(test.pvalue for test in tests) > 1.0 - models.level,
        level=models.level,
        n_samples=models.n_samples,
        kernel=models.kernel,
        provenance=provenance,
        differences=differences,
        names=names,
    )


def _together(names: tuple[str, str], a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What was noted of both models together; where they differ, of each."""
    same = {name: item for name, item in a.items() if name in b and b[name] == item}
    for model, notes in zip(names, (a, b), strict=True):
        same.update({f"{name} of {model}": item for name, item in notes.items() if name not in same})
    return same
