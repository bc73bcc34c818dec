"""Bring your own: families, kernels with closed forms, metrics, engines, tests, adapters.

Everything that wellcal knows about a family, a kernel or a metric is registered by class, and what a user
registers is treated like what comes with the package. Registration is a decorator, made once, where the class
is defined. `examples/your_own_family.py`, `your_own_kernel.py`, `your_own_engine.py` and `your_own_test.py`
show all of it.

=======================  ================================================================================
to teach                 register
=======================  ================================================================================
a family                 derive from :class:`wellcal.Predictions`; nothing needs to be registered
its distance             :func:`distance` for a metric and the family
its default kernel       :func:`default_metric`, :func:`default_target_kernel`
its atoms                :func:`lowering`, where the usual rules for numbers and vectors do not serve
a closed form            :func:`elementary` for the family, :func:`closed_form` for each kernel
a kernel on targets      derive from :class:`wellcal.kernels.TargetKernel` or :class:`~wellcal.kernels.Radial`
a metric                 derive from :class:`wellcal.kernels.Metric`, and register its distances
an engine                derive from :class:`Engine`; :func:`engine` makes it known by name
=======================  ================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wellcal._arrays.namespaces import is_array
from wellcal.engines import Engine, Support
from wellcal.engines import register_engine as engine
from wellcal.engines.reductions import Sums
from wellcal.expectations.decompose import Components, elementary
from wellcal.expectations.distances import Context, PreparedDistance, embedded
from wellcal.expectations.lowering import LOWERINGS, Atoms
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, Poissons
from wellcal.expectations.rules.elements import rule as closed_form
from wellcal.kernels.base import Kernel
from wellcal.kernels.metrics import DISTANCES, Metric
from wellcal.predictions import Predictions
from wellcal.problem.defaults import METRICS, TARGET_KERNELS
from wellcal.problem.problem import Problem

__all__ = [
    "Atoms",
    "Components",
    "Engine",
    "FullNormals",
    "Laplaces",
    "Normals",
    "Points",
    "Poissons",
    "Problem",
    "Sums",
    "Support",
    "closed_form",
    "default_metric",
    "default_target_kernel",
    "distance",
    "elementary",
    "engine",
    "lowering",
]

Family = type[Predictions]


def distance(
    metric: type[Metric], family: Family, *, replace: bool = False
) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """Register how a metric is evaluated for a family.

    The function takes the metric and a batch of n predictions, and returns columns ``(n,)`` or ``(n, D)``:
    points between which the metric is the Euclidean distance. A tuple ``(columns, 1.0)`` says that it is the
    sum of absolute differences instead.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Euclidean, ExpDistance, Gaussian
    >>> @distance(Euclidean, wc.Beta, replace=True)
    ... def of_shapes(metric, predictions):
    ...     return np.stack([predictions.a, predictions.b], axis=1)
    >>> pred = wc.Beta(np.array([1.0, 2.0, 3.0]), 2.0)
    >>> float(wc.skce([0.1, 0.2, 0.9], pred, kernel=ExpDistance(Euclidean()) @ Gaussian())) < 1.0
    True
    """

    def register(function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        @DISTANCES.register(metric, family, replace=replace)
        def prepared(given: Any, predictions: Any, context: Context) -> PreparedDistance:
            found = function(given, predictions)
            if isinstance(found, PreparedDistance):
                return found
            columns, degree = (found, 2.0) if is_array(found) else found
            return embedded(columns, degree=float(degree))

        return function

    return register


def lowering(family: Family, *, replace: bool = False) -> Callable[[Any], Any]:
    """Register how predictions of a family become weighted atoms.

    The function takes a batch and two numbers, of atoms wanted for each scalar and for each vector, and
    returns :class:`Atoms`: values ``(n, S)`` or ``(n, S, d)``, weights ``(n, S)`` that sum to one, and a few
    words that say how. ``nested=True`` says that every second atom makes a coarser rule, from which the error
    is estimated.
    """
    return LOWERINGS.register(family, replace=replace)


def default_metric(family: Family, *, replace: bool = False) -> Callable[[Any], Any]:
    """Register the metric of a family's default kernel.

    The function takes the default kernel on targets and returns the metric and the power of its kernel; both
    should be proven to go together.
    """
    return METRICS.register(family, replace=replace)


def default_target_kernel(
    family: Family, *, replace: bool = False
) -> Callable[[Callable[[Any], Kernel]], Callable[[Any], Kernel]]:
    """Register the kernel on targets of a family's default kernel: a function of its length scale."""
    return TARGET_KERNELS.register(family, replace=replace)
