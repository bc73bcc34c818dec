"""Small batches of every family with targets, and the array libraries they are tried in."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import array_api_compat as compat
import array_api_strict
import jax
import jax.numpy as jnp
import numpy as np

import wellcal as wc
from wellcal._arrays.namespaces import to_numpy
from wellcal.problem.problem import prepare

N, D, C = 11, 2, 4
_rng = np.random.default_rng(20)

# -- domains of parameters ----------------------------------------------------------------------------
# A step away from a parameter must stay a parameter: it is taken in free coordinates.


def _softmax(x: Any) -> Any:
    xp = compat.array_namespace(x)
    e = xp.exp(x - xp.max(x, axis=-1, keepdims=True))
    return e / xp.sum(e, axis=-1, keepdims=True)


def _expit(x: Any) -> Any:
    return 1.0 / (1.0 + compat.array_namespace(x).exp(-x))


def _gram(x: Any) -> Any:
    return compat.array_namespace(x).matmul(x, compat.array_namespace(x).matrix_transpose(x))


def _same(x: Any) -> Any:
    return x


DOMAINS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "real": (_same, _same),
    "simplex": (np.log, _softmax),
    "unit": (lambda p: np.log(p) - np.log1p(-p), _expit),
    "covariance": (np.linalg.cholesky, _gram),
}
"""From a parameter to free coordinates (in NumPy), and back (in any library)."""


@dataclass(frozen=True)
class Example:
    """A family, its parameters with their domains, and targets."""

    family: Callable[..., Any]
    parameters: tuple[np.ndarray, ...]
    targets: np.ndarray
    domains: tuple[str, ...]
    lowered: bool = False
    """Whether the default kernel has no closed form for the family."""

    @property
    def expectations(self) -> Any:
        """How expectations are had: by a rule of fixed size where they are not closed, which is quicker."""
        return wc.Lowering(nodes=24, points=32) if self.lowered else "auto"

    def build(self, convert: Callable[[np.ndarray], Any] = np.asarray, rows: Any = slice(None)) -> Any:
        return self.family(*(convert(parameter[rows]) for parameter in self.parameters))

    def free(self, rows: Any = slice(None)) -> list[np.ndarray]:
        """Free coordinates of the parameters."""
        pairs = zip(self.domains, self.parameters, strict=True)
        return [np.asarray(DOMAINS[domain][0](parameter[rows])) for domain, parameter in pairs]

    def from_free(self, *free: Any) -> Any:
        """Predictions from free coordinates, in their library."""
        return self.family(*(DOMAINS[domain][1](x) for domain, x in zip(self.domains, free, strict=True)))


def _positive(*shape: int, spread: float = 0.4) -> np.ndarray:
    return np.exp(_rng.normal(0.0, spread, shape))


def _mixed_counts(w: Any, rate: Any, mean: Any, dispersion: Any) -> Any:
    return wc.Mixture([wc.Poisson(rate), wc.NegativeBinomial(mean, dispersion)], w)


def _ensemble(w: Any, m: Any, s: Any, m2: Any, s2: Any) -> Any:
    return wc.Mixture([wc.Normal(m, s), wc.Normal(m2, s2)], w)


def _two_families(w: Any, m: Any, s: Any, m2: Any, s2: Any) -> Any:
    return wc.Mixture([wc.Normal(m, s), wc.Laplace(m2, s2)], w)


def _with_draws(w: Any, m: Any, s: Any, x: Any) -> Any:
    return wc.Mixture([wc.Normal(m, s), wc.Samples(x, axis=1)], w)


def _vector_mixture(w: Any, m: Any, s: Any, m2: Any, c: Any) -> Any:
    return wc.Mixture([wc.DiagonalNormal(m, s), wc.MultivariateNormal(m2, c)], w)


LOC, SCALE = _rng.normal(size=N), _positive(N)
LOC_2, SCALE_2 = _rng.normal(size=N), _positive(N)
LOCS, SCALES = _rng.normal(size=(N, D)), _positive(N, D)
LOCS_2 = _rng.normal(size=(N, D))
_factor = _rng.normal(size=(N, D, D))
COV = _factor @ _factor.transpose(0, 2, 1) + 0.3 * np.eye(D)
PROBS, PROBS_2 = _rng.dirichlet(2.0 * np.ones(C), N), _rng.dirichlet(2.0 * np.ones(C), N)
WEIGHTS = _rng.dirichlet(3.0 * np.ones(2), N)
SHAPE, SHAPE_2 = 1.0 + _positive(N), 1.5 + _positive(N)
LABELS = _rng.integers(0, C, N)
SUPPORT, PLANE = np.array([-1.0, 0.5, 2.0, 4.0]), _rng.normal(size=(C, D))
WORDS = np.array(["north", "east", "south", "west"])
DRAWS, MANY_DRAWS, VECTOR_DRAWS = (
    _rng.normal(size=(N, 5)),
    _rng.normal(size=(N, 24)),
    _rng.normal(size=(N, 4, D)),
)
ATOM_WEIGHTS = _rng.dirichlet(2.0 * np.ones(5), N)
Y, Y_VECTORS = LOC + 0.7 * _rng.normal(size=N), LOCS + 0.7 * _rng.normal(size=(N, D))
COUNTS, POSITIVE, UNIT = _rng.poisson(2.0, N), _positive(N), _rng.uniform(0.1, 0.9, N)
QUANTILES = np.cumsum(_positive(N, 4), axis=1)

EXAMPLES: dict[str, Example] = {
    "Bernoulli": Example(wc.Bernoulli, (UNIT,), LABELS % 2, ("unit",)),
    "Categorical": Example(wc.Categorical, (PROBS,), LABELS, ("simplex",)),
    "Categorical with classes": Example(
        lambda p: wc.Categorical(p, classes=WORDS), (PROBS,), WORDS[LABELS], ("simplex",)
    ),
    "Categorical with support": Example(
        lambda p: wc.Categorical(p, support=SUPPORT), (PROBS,), SUPPORT[LABELS], ("simplex",)
    ),
    "Categorical in the plane": Example(
        lambda p: wc.Categorical(p, support=PLANE), (PROBS,), PLANE[LABELS], ("simplex",)
    ),
    "Normal": Example(wc.Normal, (LOC, SCALE), Y, ("real", "real")),
    "DiagonalNormal": Example(wc.DiagonalNormal, (LOCS, SCALES), Y_VECTORS, ("real", "real")),
    "MultivariateNormal": Example(wc.MultivariateNormal, (LOCS, COV), Y_VECTORS, ("real", "covariance")),
    "Laplace": Example(wc.Laplace, (LOC, SCALE), Y, ("real", "real")),
    "Poisson": Example(wc.Poisson, (2.0 * SCALE,), COUNTS, ("real",)),
    "NegativeBinomial": Example(wc.NegativeBinomial, (2.0 * SCALE, 0.5 * SCALE_2), COUNTS, ("real", "real")),
    "StudentT": Example(wc.StudentT, (2.0 + SHAPE, LOC, SCALE), Y, ("real",) * 3, lowered=True),
    "Gamma": Example(wc.Gamma, (SHAPE_2, SCALE), POSITIVE, ("real",) * 2, lowered=True),
    "LogNormal": Example(wc.LogNormal, (LOC, 0.5 * SCALE), POSITIVE, ("real",) * 2, lowered=True),
    "Beta": Example(wc.Beta, (SHAPE, SHAPE_2), UNIT, ("real",) * 2, lowered=True),
    "Dirichlet": Example(
        wc.Dirichlet, (1.0 + _positive(N, 3),), _rng.dirichlet(np.ones(3), N), ("real",), lowered=True
    ),
    "PowerExponential": Example(
        wc.PowerExponential, (LOC, SCALE, SHAPE), Y, ("real", "real", "real"), lowered=True
    ),
    "PowerExponential of vectors": Example(
        lambda loc, cov, shape: wc.PowerExponential(loc, shape=shape, cov=cov),
        (LOCS, COV, SHAPE),
        Y_VECTORS,
        ("real", "covariance", "real"),
        lowered=True,
    ),
    "Mixture": Example(_ensemble, (WEIGHTS, LOC, SCALE, LOC_2, SCALE_2), Y, ("simplex", *["real"] * 4)),
    "Mixture of two families": Example(
        _two_families, (WEIGHTS, LOC, SCALE, LOC_2, SCALE_2), Y, ("simplex", *["real"] * 4)
    ),
    "Mixture with draws": Example(_with_draws, (WEIGHTS, LOC, SCALE, DRAWS), Y, ("simplex", *["real"] * 3)),
    "Mixture of vectors": Example(
        _vector_mixture,
        (WEIGHTS, LOCS, SCALES, LOCS_2, COV),
        Y_VECTORS,
        ("simplex", "real", "real", "real", "covariance"),
    ),
    "Mixture of classes": Example(
        lambda w, p, q: wc.Mixture([wc.Categorical(p), wc.Categorical(q)], w),
        (WEIGHTS, PROBS, PROBS_2),
        LABELS,
        ("simplex",) * 3,
    ),
    "Mixture of counts": Example(
        _mixed_counts,
        (WEIGHTS, 2.0 * SCALE, 3.0 * SCALE_2, 0.5 * SCALE),
        COUNTS,
        ("simplex", *["real"] * 3),
    ),
    "Samples": Example(partial(wc.Samples, axis=1), (DRAWS,), Y, ("real",)),
    "Samples of many draws": Example(partial(wc.Samples, axis=1), (MANY_DRAWS,), Y, ("real",)),
    "Samples as atoms": Example(lambda x: wc.Samples(x, kind="atoms"), (DRAWS,), Y, ("real",)),
    "Samples with weights": Example(
        lambda x, w: wc.Samples(x, w, kind="atoms"), (DRAWS, ATOM_WEIGHTS), Y, ("real", "simplex")
    ),
    "Samples of vectors": Example(partial(wc.Samples, axis=1), (VECTOR_DRAWS,), Y_VECTORS, ("real",)),
    "Quantiles": Example(
        lambda v: wc.Quantiles([0.1, 0.3, 0.5, 0.8], v), (QUANTILES,), 2.0 * POSITIVE, ("real",)
    ),
}

# -- array libraries ----------------------------------------------------------------------------------


def read_only(x: Any) -> np.ndarray:
    copy = np.array(x)
    copy.flags.writeable = False
    return copy


def _convert_numbers(convert: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Words stay with NumPy, which alone holds them."""

    def converted(x: Any) -> Any:
        return x if np.asarray(x).dtype.kind in "UO" else convert(np.asarray(x))

    return converted


def _tensor(x: Any) -> Any:
    import torch  # here: processes that try JAX alone read these examples too

    return torch.as_tensor(x)


@dataclass(frozen=True)
class Library:
    """An array library: how arrays get there, and the setting under which it computes in float64."""

    convert: Callable[[Any], Any]
    setting: Callable[[], AbstractContextManager[Any]] = nullcontext


@contextmanager
def jax_x64() -> Generator[None]:
    """JAX in float64, for the duration of a block.

    For all threads: ``jax.enable_x64`` is for one only, and compiled functions may call back from another.
    """
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", before)


def optimised(function: Callable[..., Any], *given: Any) -> Any:
    """What a function of JAX returns where it is compiled as for users, not as conftest.py has it."""
    options: dict[str, Any] = {"xla_backend_optimization_level": 3}
    if "xla_cpu_use_fusion_emitters" in os.environ.get("XLA_FLAGS", ""):
        options["xla_cpu_use_fusion_emitters"] = True
    return jax.jit(function).lower(*given).compile(compiler_options=options)(*given)


def mean_size(y: Any, pred: Any, **options: Any) -> float:
    """Mean of |h| over pairs: the size that differences between libraries are compared with."""
    problem = prepare(y, pred, **options)
    h = to_numpy(problem.h(problem.rows, problem.rows))
    return float(np.abs(h).mean())


LIBRARIES: dict[str, Library] = {
    "read-only": Library(read_only),
    "torch": Library(_convert_numbers(_tensor)),
    "jax": Library(_convert_numbers(jnp.asarray), jax_x64),
    "strict": Library(_convert_numbers(array_api_strict.asarray)),
}
