"""What is proven about a kernel for a family of predictions, and by whom.

What is proven of a kernel class stands in its body as `proof`, or is registered in `STATEMENTS` where it
depends on the predictions. Both hold for the very class: a class derived from it is another function.
"""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from wellcal._arrays.registry import Rules
from wellcal.kernels.algebra import Combination, Scaled, Sum, Tensor, fold
from wellcal.kernels.base import Kernel, Radial, TargetKernel
from wellcal.kernels.metric_guarantees import guarantees_of_metric
from wellcal.kernels.metrics import Euclidean, ExpDistance
from wellcal.kernels.outcomes import are_countable, are_numbers, has_draws
from wellcal.kernels.proofs import SRIPERUMBUDUR, STEINWART, SZABO, Guarantees, Proof, UniversalOnReals
from wellcal.kernels.targets import Callable, Delta, Joint
from wellcal.predictions import Bernoulli, Categorical, Predictions

__all__ = ["STATEMENTS", "Guarantees", "guarantees_of"]

STATEMENTS: Rules[Function[[Any, Predictions], Guarantees]] = Rules("a statement", exact=True)
"""What is proven about kernels of a class, for predictions: rules by exact class."""

_THINNING = "draws must be independent of each other: thin those of a Markov chain first"
_UNBOUNDED = "boundedness is not known: that assumption (K2) holds is the user's to check"


def guarantees_of(kernel: Kernel, predictions: Predictions) -> Guarantees:
    """What is proven about `kernel`, be it on targets, on predictions or on pairs."""
    if isinstance(kernel, Combination):
        return fold(kernel, lambda leaf: leaf.guarantees(predictions), _combined)
    rule = STATEMENTS.find(type(kernel))
    if rule is not None:
        found = rule(kernel, predictions)
    elif isinstance(kernel, (Callable, Joint)):
        found = _declared_by_instance(kernel)
    else:
        found = _declared_by_class(kernel, predictions)
    if kernel.space == "pairs" and has_draws(predictions) and _THINNING not in found.reasons:
        return replace(found, reasons=(*found.reasons, _THINNING))
    return found


# -- what is declared ------------------------------------------------------------------------


def _declared_by_instance(kernel: Callable | Joint) -> Guarantees:
    reasons = [
        "as declared by the user" if kernel.positive_definite is not None else "a user's function: not known"
    ]
    if not kernel.bounded:
        reasons.append(_UNBOUNDED)
    return Guarantees(kernel.positive_definite, kernel.characteristic, kernel.bounded, None, tuple(reasons))


def _declared_by_class(kernel: Kernel, predictions: Predictions) -> Guarantees:
    proof = kernel.proof
    bounded = _is_bounded(kernel)
    if proof is None:
        return Guarantees(None, None, bounded, None, _nothing_known(kernel))
    if isinstance(kernel, TargetKernel) and kernel.needs_numbers and not are_numbers(predictions):
        return Guarantees(None, None, bounded, None, (f"{kernel!r} needs numeric targets",))
    return _as_proven(kernel, proof)


def _as_proven(kernel: Kernel, proof: Proof) -> Guarantees:
    bounded = _is_bounded(kernel)
    reasons = proof.reasons(kernel) if bounded else (*proof.reasons(kernel), _UNBOUNDED)
    return Guarantees(proof.positive_definite, proof.characteristic, bounded, proof.universal, reasons)


def _is_bounded(kernel: Kernel) -> bool | None:
    if kernel.supremum is not None:
        return True
    return None if kernel.proof is None else kernel.proof.bounded


def _nothing_known(kernel: Kernel) -> tuple[str, ...]:
    nothing = f"nothing is known about the user's kernel {kernel!r}: its class declares no proof"
    if kernel.supremum is None:
        return (nothing,)
    return (nothing, f"as declared: its largest value is {kernel.supremum:g}")


# -- on targets ------------------------------------------------------------------------------


@STATEMENTS.register(Delta)
def _delta(kernel: Delta, predictions: Predictions) -> Guarantees:
    countable = are_countable(predictions)
    if countable is None:
        reason = "Delta is characteristic on a countable set; whether sampled targets lie in one is not known"
        return Guarantees(True, None, True, None, (reason,))
    if countable:
        reason = (
            f"Delta is strictly positive definite on a countable set, so c0-universal ({SRIPERUMBUDUR}, 3.3)"
        )
        return Guarantees(True, True, True, True, (reason,))
    reason = "Delta cannot tell continuous distributions apart: every pairing is 0"
    return Guarantees(True, False, True, False, (reason,))


# -- sums, multiples and products ------------------------------------------------------------


def _combined(kernel: Combination, parts: list[Guarantees]) -> Guarantees:
    if isinstance(kernel, Scaled):
        return parts[0]
    # A part that is not a kernel does not refute the whole: only what is proven of all parts carries over.
    positive_definite = True if all(p.positive_definite for p in parts) else None
    bounded = _all(p.bounded for p in parts)
    reasons = tuple(dict.fromkeys(reason for p in parts for reason in p.reasons))
    if isinstance(kernel, Sum):
        # The sum distinguishes two measures where any part does: one part that distinguishes all is
        # enough, and parts that each miss some may miss none together.
        universal = True if positive_definite and any(p.universal for p in parts) else None
        characteristic = True if positive_definite and any(p.characteristic for p in parts) else None
        return Guarantees(positive_definite, characteristic, bounded, universal, reasons)
    if all(map(_mixes_gaussians, kernel.parts)) and all(p.universal for p in parts):
        reasons = (*reasons, "a product of radial kernels has a spectral measure of full support")
        return Guarantees(positive_definite, True, bounded, True, reasons)
    reasons = (*reasons, "a product of kernels need not be characteristic where its factors are")
    return Guarantees(positive_definite, None, bounded, None, reasons)


def _mixes_gaussians(kernel: Kernel) -> bool:
    return kernel.proof is not None and kernel.proof.gaussian_mixture


@STATEMENTS.register(Tensor)
def _tensor(kernel: Tensor, predictions: Predictions) -> Guarantees:
    on_predictions = fold(kernel.predictions, lambda leaf: _on_predictions(leaf, predictions), _combined)
    on_targets = kernel.targets.guarantees(predictions)
    reasons = [*on_predictions.reasons, *on_targets.reasons]
    characteristic: bool | None = None
    if False in (on_predictions.characteristic, on_targets.characteristic):
        characteristic = False
        reasons.append("a tensor product is not characteristic where a factor is not")
    elif on_predictions.universal and on_targets.universal:
        characteristic = True
        theorem = STEINWART if isinstance(predictions, (Bernoulli, Categorical)) else SZABO
        reasons.append(f"universal times universal is universal, so characteristic ({theorem})")
    else:
        reasons.append(
            "characteristic times characteristic is not enough (Szabo, Sriperumbudur, 2018, Example 1), "
            "and universality of both factors is not proven here"
        )
    if on_predictions.bounded is not True or on_targets.bounded is not True:
        reasons.append(
            "a factor is not known to be bounded: that assumption (K2) holds is the user's to check"
        )
    return Guarantees(
        positive_definite=_all((on_predictions.positive_definite, on_targets.positive_definite)),
        characteristic=characteristic,
        bounded=_all((on_predictions.bounded, on_targets.bounded)),
        universal=_all((on_predictions.universal, on_targets.universal)),
        reasons=tuple(dict.fromkeys(reasons)),
    )


def _all(values: Iterable[bool | None]) -> bool | None:
    known = list(values)
    return False if False in known else (None if None in known else True)


# -- on predictions --------------------------------------------------------------------------


@STATEMENTS.register(ExpDistance)
def _exp_distance(kernel: ExpDistance, predictions: Predictions) -> Guarantees:
    return guarantees_of_metric(kernel.metric, kernel.power, predictions)


def _on_predictions(kernel: Kernel, predictions: Predictions) -> Guarantees:
    """A radial kernel on the left of @ acts on the Euclidean distance of parameters."""
    if isinstance(kernel, Radial):
        return _on_parameters(kernel, predictions)
    if isinstance(kernel, Delta):
        return Guarantees(None, None, None, None, ("Delta() is not a kernel on predictions",))
    return kernel.guarantees(predictions)


def _on_parameters(kernel: Radial, predictions: Predictions) -> Guarantees:
    proof = kernel.proof
    if proof is None:
        return Guarantees(None, None, _is_bounded(kernel), None, _nothing_known(kernel))
    if not proof.gaussian_mixture:
        caveat = "whether that holds on parameters of predictions, in any dimension, is not known"
        return Guarantees(None, None, _is_bounded(kernel), None, (*proof.reasons(kernel), caveat))
    found = guarantees_of_metric(Euclidean(), 1.0, predictions)
    if isinstance(proof, UniversalOnReals):
        return found
    return replace(found, reasons=(*proof.reasons(kernel), *found.reasons))
