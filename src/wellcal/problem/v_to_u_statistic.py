"""h of a case with itself, for predictions that are draws: pairs of a draw with itself are left out.

For S draws the mean V over all pairs becomes the mean over distinct ones, (S^2 V - D) / (S (S - 1)) with D
the sum of k(x_s, x_s).
"""

from __future__ import annotations

from wellcal._arrays.chunks import in_chunks
from wellcal._arrays.namespaces import Array, NDArray, concat_rows, is_numpy, namespace
from wellcal._arrays.ops import ops_for
from wellcal._arrays.rows import Rows
from wellcal.expectations.bilinear import ElementForm, Form, matching
from wellcal.expectations.expansion import FeaturePlan, plan
from wellcal.expectations.signed_measures import components_of, dimension_of, elementary_components, reshaped
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel, Scale
from wellcal.predictions import Predictions, Samples

MANY_DRAWS = 64
"""Draws from which features of each of them cost less than all pairs of them."""


def correction_of_draws(
    factor: Scale, kernel: Tensor, predictions: Predictions, k_P: Form, rows: Rows
) -> Array:
    """What leaving out pairs of a draw with itself adds to one term of h_ii, ``(n,)``."""
    total: Array = 0.0
    for component, weight in components_of(predictions):
        if isinstance(component, Samples) and component.kind == "draws":
            part = _of_component(kernel.targets, component)
            total = total + (part if weight is None else part * weight**2)
    return factor * total * matching(k_P, predictions.ops, rows, rows)


def _of_component(kernel: Kernel, samples: Samples) -> Array:
    n, count = len(samples), samples.values.shape[1]
    if count < 2:
        return namespace(samples.values).full((n,), float("nan"))  # one draw says nothing about <P, P>
    means = _by_features(kernel, samples) if count >= MANY_DRAWS else None
    parts: list[Array] = []
    for some in in_chunks(n, count**2 if means is None else count):
        draws = samples[some]
        mean = _over_pairs(kernel, draws) if means is None else means[some]
        parts.append((count**2 * mean - _with_themselves(kernel, draws)) / (count * (count - 1.0)) - mean)
    return concat_rows(parts)


def _by_features(kernel: Kernel, samples: Samples) -> NDArray | None:
    """V of each case by features of its draws; None where the kernel has none, or too many."""
    if samples.holds_objects or not is_numpy(namespace(samples.values)):
        return None
    scheme = plan(kernel, [samples], many=True)
    if not isinstance(scheme, FeaturePlan):
        return None
    rows = scheme.rows([(1.0, samples)])
    return matching(scheme.form(rows, rows), samples.ops, rows, rows)


def _over_pairs(kernel: Kernel, samples: Samples) -> Array:
    """V of each case, from all pairs of its draws."""
    atoms = elementary_components(samples)
    form = ElementForm.between(kernel, dimension_of(samples), (atoms,), (atoms,))
    return matching(form, ops_for(namespace(samples.values)), (atoms,), (atoms,))


def _with_themselves(kernel: Kernel, samples: Samples) -> Array:
    """D of each case."""
    n, count = len(samples), samples.values.shape[1]
    library = namespace(samples.values)
    atoms = elementary_components(samples)
    alone = atoms._replace(element=reshaped(atoms.element, (n * count, 1)), weights=1.0)
    form = ElementForm.between(kernel, dimension_of(samples), (alone,), (alone,))
    own = matching(form, ops_for(library), (alone,), (alone,))
    return library.sum(library.reshape(own, (n, count)), axis=1)
