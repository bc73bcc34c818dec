"""What families, kernels, metrics, tests, engines and adapters of your own are made with.

A class of your own derives from a public base class and is accepted wherever one of the package is. What else
is known about it is registered with a decorator, once, in the file in which the class is defined: the package
registers its own rules in the same way, and yours are treated like them.

======================  ==================================================================================
you bring               you write
======================  ==================================================================================
a family                a class that derives from :class:`wellcal.Predictions`, with :func:`family` and
                        :func:`parameter`
a kernel on targets     a class that derives from :class:`~wellcal.kernels.Radial`,
                        :class:`~wellcal.kernels.TargetKernel` or :class:`~wellcal.kernels.Kernel`
a metric                a class that derives from :class:`~wellcal.kernels.Metric`, and its :func:`distance`
                        for each family
a proof of either       a :class:`~wellcal.kernels.Proof` with a citation, as `proof` in the body of the class
a closed form           :func:`closed_form` for a kernel, :func:`elementary` for a family
a test                  a class that derives from :class:`~wellcal.hypotests.Method`, with a `name`
an engine               a class that derives from :class:`~wellcal.engines.Engine`, and :func:`engine`
a model's output        an :func:`adapter`, so that every function takes it as predictions
======================  ==================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wellcal._arrays.namespaces import is_array, to_numpy
from wellcal._arrays.special import elementwise, quiet
from wellcal.engines import Engine, Support
from wellcal.engines import register_engine as engine
from wellcal.engines.reductions import Sums
from wellcal.expectations.atoms import LOWERINGS, Atoms
from wellcal.expectations.distances import Context, PreparedDistance, embedded
from wellcal.expectations.rules.elements import FullNormals, Laplaces, Normals, Points, Poissons
from wellcal.expectations.rules.elements import rule as closed_form
from wellcal.expectations.signed_measures import Components, elementary
from wellcal.hypotests import Method, Outcome, Setup, monte_carlo_pvalue, target_sets
from wellcal.kernels.base import Kernel
from wellcal.kernels.metrics import DISTANCES, Metric
from wellcal.kernels.proofs import Proof
from wellcal.measures.scores.row_functions import by_rows
from wellcal.measures.scores.rules import CRPS_RULES, ENERGY_RULES, MIXTURE_CRPS_RULES
from wellcal.predictions import (
    Domain,
    Predictions,
    derived,
    family,
    nonnegative,
    parameter,
    positive,
    real,
    simplex,
    unit_interval,
    whole_numbers,
)
from wellcal.predictions.adapters import ADAPTERS
from wellcal.predictions.temperatures import TEMPERATURES
from wellcal.problem.defaults import METRICS, TARGET_KERNELS
from wellcal.problem.problem import Problem

__all__ = [
    "Atoms",
    "Components",
    "Domain",
    "Engine",
    "FullNormals",
    "Laplaces",
    "Method",
    "Normals",
    "Outcome",
    "Points",
    "Poissons",
    "Problem",
    "Proof",
    "Setup",
    "Sums",
    "Support",
    "adapter",
    "by_rows",
    "closed_form",
    "crps",
    "default_metric",
    "default_target_kernel",
    "derived",
    "distance",
    "elementary",
    "elementwise",
    "energy_score",
    "engine",
    "family",
    "lowering",
    "monte_carlo_pvalue",
    "nonnegative",
    "parameter",
    "positive",
    "quiet",
    "real",
    "simplex",
    "target_sets",
    "temperature",
    "to_numpy",
    "unit_interval",
    "whole_numbers",
]

Family = type[Predictions]


def distance(
    metric: type[Metric], family: Family, *, replace: bool = False
) -> Callable[[Callable[[Any, Any], Any]], Callable[[Any, Any], Any]]:
    """Register how a metric is evaluated for a family.

    The function takes the metric and a batch of n predictions, and returns columns ``(n,)`` or ``(n, D)``:
    points between which the metric is the Euclidean distance. A tuple ``(columns, 1.0)`` says that it is the
    sum of absolute differences instead. ``replace=True`` takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import ExpDistance, Gaussian, Metric
    >>> class OfShapes(Metric):
    ...     "Distance of the two shapes."
    >>> @distance(OfShapes, wc.Beta)
    ... def shapes(metric, predictions):
    ...     return np.stack([predictions.a, predictions.b], axis=1)
    >>> pred = wc.Beta(np.array([1.0, 2.0, 3.0]), 2.0)
    >>> float(wc.skce([0.1, 0.2, 0.9], pred, kernel=ExpDistance(OfShapes()) @ Gaussian())) < 1.0
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

    The function takes a batch, the number of atoms for a prediction of a number, and that for one of a
    vector. It returns :class:`Atoms`: values ``(n, S)`` or ``(n, S, d)``, weights ``(n, S)`` that sum to one,
    and a few words that say how. ``nested=True`` says that every second atom makes a coarser rule, from which
    the error is estimated. Register it where the atoms that a family gets otherwise will not do: quantiles at
    normal scores, or draws. ``replace=True`` takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Triangle(wc.Predictions):
    ...     scale: np.ndarray = parameter(positive)
    ...
    ...     def quantile(self, u):
    ...         return self.scale * self.ops.sqrt(self.argument(u, "u"))
    >>> @lowering(Triangle)
    ... def triangle_atoms(pred, nodes, points):
    ...     weights, levels = np.full((len(pred), nodes), 1.0 / nodes), (np.arange(nodes) + 0.5) / nodes
    ...     return Atoms(pred.scale[:, None] * np.sqrt(levels), weights, f"{nodes} quantiles")
    >>> found = wc.skce([0.1, 0.2, 0.9], Triangle(np.ones(3)))
    >>> "quantiles" in found.provenance["lowered"][0]
    True
    """
    return LOWERINGS.register(family, replace=replace)


def default_metric(family: Family, *, replace: bool = False) -> Callable[[Any], Any]:
    """Register the metric of a family's default kernel.

    The function takes the default kernel on targets, and returns a metric and a power: the default kernel on
    predictions is ``ExpDistance(metric, lengthscale, power)``. Take one that is proven to be a kernel.
    ``replace=True`` takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Uniform(wc.Predictions):
    ...     scale: np.ndarray = parameter(positive)
    ...
    ...     def quantile(self, u):
    ...         return self.scale * self.argument(u, "u")
    >>> from wellcal.kernels import Wasserstein
    >>> @default_metric(Uniform)
    ... def uniform_metric(on_targets):
    ...     return Wasserstein(), 1.0
    >>> wc.default_kernel(Uniform([1.0, 2.0])).predictions.metric
    Wasserstein(order=2)
    """
    return METRICS.register(family, replace=replace)


def default_target_kernel(
    family: Family, *, replace: bool = False
) -> Callable[[Callable[[Any], Kernel]], Callable[[Any], Kernel]]:
    """Register the kernel on targets of a family's default kernel: a function of its length scale.

    ``replace=True`` takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Ramp(wc.Predictions):
    ...     scale: np.ndarray = parameter(positive)
    ...
    ...     def quantile(self, u):
    ...         return self.scale * self.ops.sqrt(self.argument(u, "u"))
    >>> from wellcal.kernels import Laplacian
    >>> default_target_kernel(Ramp)(Laplacian)
    <class 'wellcal.kernels.targets.Laplacian'>
    >>> type(wc.default_kernel(Ramp([1.0, 2.0])).targets).__name__
    'Laplacian'
    """
    return TARGET_KERNELS.register(family, replace=replace)


def crps(family: Family, *, mixtures: bool = False, replace: bool = False) -> Callable[[Any], Any]:
    """Register the continuous ranked probability score of a family.

    The function takes a batch and its targets ``(n,)`` and returns scores ``(n,)``; :func:`by_rows` makes one
    that only NumPy can evaluate work in all libraries, with derivatives. With ``mixtures=True`` it takes
    mixtures of the family instead. ``replace=True`` takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Box(wc.Predictions):
    ...     scale: np.ndarray = parameter(positive)
    ...
    ...     def quantile(self, u):
    ...         return self.scale * self.argument(u, "u")
    >>> @crps(Box)
    ... def box_crps(pred, y):
    ...     z = y / pred.scale
    ...     return pred.scale * (z**2 - z + 1.0 / 3.0)
    >>> found = wc.crps([0.5], Box([1.0]))
    >>> round(float(found), 6)
    0.083333
    """
    return (MIXTURE_CRPS_RULES if mixtures else CRPS_RULES).register(family, replace=replace)


def energy_score(family: Family, *, replace: bool = False) -> Callable[[Any], Any]:
    """Register the energy score of a family, and of mixtures of it.

    The function takes a batch, or a mixture of families that have this one function, targets ``(n, d)`` and
    the power, and returns scores ``(n,)``. ``replace=True`` takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Certain(wc.Predictions):
    ...     point: np.ndarray = parameter(ndim=2)
    ...
    ...     @property
    ...     def event_shape(self):
    ...         return (self.point.shape[1],)
    ...
    ...     def draw(self, rng, size):
    ...         return np.broadcast_to(self.point, (size, *self.point.shape))
    >>> @energy_score(Certain)
    ... def certain_score(pred, y, power):
    ...     return np.sqrt(((y - pred.point) ** 2).sum(axis=1)) ** power
    >>> float(wc.energy_score([[3.0, 4.0]], Certain(np.zeros((1, 2)))))
    5.0
    """
    return ENERGY_RULES.register(family, replace=replace)


def temperature(family: Family, *, replace: bool = False) -> Callable[[Any], Any]:
    """Register what becomes of a family at another temperature.

    The function takes a batch and the temperature T, and returns a batch of the same family, whose densities
    are those of the first to the power 1 / T with respect to some measure, and normalised. ``replace=True``
    takes the place of a rule that is there already.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> @family
    ... class Half(wc.Predictions):
    ...     scale: np.ndarray = parameter(positive)
    ...
    ...     def quantile(self, u):
    ...         return self.scale * self.ops.sqrt(self.argument(u, "u"))
    >>> @temperature(Half)
    ... def half_temperature(pred, T):
    ...     return Half(pred.scale * T)
    >>> wc.recalibration.apply_temperature(Half([1.0, 3.0]), 2.0).scale
    array([2., 6.])
    """
    return TEMPERATURES.register(family, replace=replace)


def adapter(
    recognises: type | Callable[[Any], bool], *, kind: str, in_lists: bool = True
) -> Callable[[Callable[[Any], object]], Callable[[Any], object]]:
    """Register what a foreign object becomes in :func:`wellcal.as_predictions`, and so in every function.

    Parameters
    ----------
    recognises
        The class of such objects, or a function that says whether an object is one. What was registered
        last is asked first.
    kind
        How errors name such objects.
    in_lists
        Whether a list of them, one for each prediction, is understood too.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> class Forecast:
    ...     low, high = np.array([0.0, 1.0]), np.array([2.0, 5.0])
    >>> @adapter(Forecast, kind="a forecast with two limits")
    ... def of_limits(forecast):
    ...     return wc.Normal((forecast.low + forecast.high) / 2, (forecast.high - forecast.low) / 4)
    >>> wc.as_predictions(Forecast()).loc
    array([1., 3.])
    """
    return ADAPTERS.register(recognises, kind=kind, in_lists=in_lists)
