"""The engine for tensors on graphics cards: features first, and tiles that are never written to memory.

Of a problem in products (`feature_form.py`) nothing but sums leaves the processor, in kernels of Triton where
it is installed, and in tiles of PyTorch, as large as memory allows, where it is not. Other problems take the
tiles of `Tiled`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, ClassVar, NamedTuple

from wellcal._arrays.checks import described, flag
from wellcal._arrays.namespaces import Array, is_on_accelerator, is_tensor, is_torch, stop_gradient, to_numpy
from wellcal._arrays.rows import first_array, map_rows
from wellcal.engines.base import Support
from wellcal.engines.mixed import AUTO_ERROR, AUTO_FROM, LARGEST_ERROR
from wellcal.engines.pair_gradients import Differentiated, sum_with_derivatives
from wellcal.engines.pair_terms import PairTerm, as_pair_terms
from wellcal.engines.reductions import Sums
from wellcal.engines.rounded_pairs import Correction, correction_of, products_of, shortened, sums_of
from wellcal.engines.tiled import Tiled
from wellcal.engines.triton_pairs import has_triton
from wellcal.problem.feature_form import FEWEST, in_products, known_features
from wellcal.problem.problem import Problem


class _Run(NamedTuple):
    """A problem as it is summed."""

    terms: list[PairTerm]
    correction: Correction | None
    """None in float64."""


@dataclass(frozen=True)
class Fused(Tiled):
    """Engine for PyTorch that keeps tiles of pairs in registers, chosen for tensors on a graphics card.

    It takes problems whose kernel on targets has finitely many features, and whose kernel on predictions is
    an :class:`~wellcal.kernels.ExpDistance` of points: normals, classes, mixtures, ensembles and others.
    What else there is, it does as `Tiled` does.

    Parameters
    ----------
    tile, threads
        As those of `Tiled`, for what it does likewise.
    precision
        "float64"; "mixed": products of features in two halves of 16 bits, or in float32 without Triton, after
        the four terms of h have cancelled, with the bias measured and removed; or "auto", as in `Tiled`.
    devices
        Devices that share the pairs, such as ``("cuda:0", "cuda:1")``; None for the one of the tensors. What
        is done as `Tiled` does it, and sums with gradients, are not shared: `devices_note` in the provenance.
    triton
        Whether kernels of Triton are used; None uses them on graphics cards where Triton is installed.

    Examples
    --------
    >>> import torch, wellcal as wc
    >>> rng = torch.Generator().manual_seed(0)
    >>> p = torch.rand(300, generator=rng, dtype=torch.float64)
    >>> y = (torch.rand(300, generator=rng) < p).long()
    >>> found = wc.skce(y, wc.Bernoulli(p), engine=Fused())
    >>> found.provenance["engine"], found.provenance["kernels"]
    ('fused', 'PyTorch')
    >>> bool(abs(found.value - wc.skce(y, wc.Bernoulli(p), engine="tiled").value) < 1e-15)
    True
    """

    devices: Sequence[Any] | None = None
    triton: bool | None = None
    name: ClassVar[str] = "fused"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.devices is not None:
            several = isinstance(self.devices, (tuple, list))  # pyright: ignore[reportUnnecessaryIsInstance]
            if not several or not all(_names_a_device(device) for device in self.devices):
                raise TypeError(
                    f'devices must be a list such as ["cuda:0", "cuda:1"], found {described(self.devices)}'
                )
            if not self.devices:
                raise ValueError('devices must be a list such as ["cuda:0", "cuda:1"], found an empty one')
            object.__setattr__(self, "devices", tuple(self.devices))
        if flag(self.triton, "triton", or_none=True) and not has_triton():
            raise ValueError("triton=True needs Triton, which is not installed; take triton=None")

    def supports(self, problem: Problem) -> Support:
        """Tensors of PyTorch."""
        if is_torch(problem.xp):
            self._places()
            return Support(True)
        return Support(False, "it needs tensors of PyTorch")

    def pays(self, problem: Problem) -> bool:
        """It does on graphics cards."""
        return is_torch(problem.xp) and is_on_accelerator(first_array(problem.rows))

    def triangle(self, problem: Problem) -> Sums:
        """Sums of h over all pairs i < j."""
        found = self._with_derivatives(problem)
        if found is not None:
            return Sums(found.total, to_numpy(found.rows))
        run = self._run_of(problem)
        if run is None:
            return super().triangle(problem)
        total, rows = self._sums(run, rows=True)
        assert rows is not None
        return Sums(total, to_numpy(rows))

    def total(self, problem: Problem) -> Array:
        """The sum over all pairs i < j alone, in half the time of sums of cases."""
        found = self._with_derivatives(problem)
        if found is not None:
            return found.total
        run = self._run_of(problem)
        return super().total(problem) if run is None else self._sums(run, rows=False)[0]

    def products(self, problem: Problem, vectors: Array) -> Array | None:
        """``sum_{j != i} h_ij v_j`` of vectors ``(n, R)`` in float64; None where targets have no features."""
        run = self._run_of(problem)
        if run is None:
            return None
        double = run.correction is None
        out = products_of(run.terms, vectors, double=double, triton=self._by_triton(run.terms[0].features))
        if run.correction is not None:  # the same bias in all pairs of different cases
            out += run.correction.bias * (vectors.sum(dim=0) - vectors)
        return out

    def describe(self, problem: Problem) -> dict[str, Any]:
        """Name, kernels and precision."""
        found: Any = problem.kept.get("fused")
        note = {} if self.devices is None else {"devices_note": _NOT_SHARED}
        if found is None:
            return super().describe(problem) | note
        out: dict[str, Any] = {"engine": self.name}
        if isinstance(found, str):
            return out | {"kernels": found} | note
        run: _Run = found
        out["kernels"] = _kernels(self._by_triton(run.terms[0].features))
        if self.devices is not None:
            out["devices"] = [str(device) for device in self.devices]
        known = known_features(problem)
        if known is not None:
            out |= known.describe()
        if run.correction is not None:
            out |= {
                "precision": "mixed: products after the cancellation in "
                + ("halves of 16 bits" if self._by_triton(run.terms[0].features) else "float32"),
                "precision_bias": run.correction.bias,
                "precision_error": run.correction.error,
                "error_unit": "observed h",
            }
        elif self.precision == "mixed":
            out["precision_note"] = "float64: rounded sums are not known to be exact enough, or cases too few"
        return out

    def _with_derivatives(self, problem: Problem) -> Differentiated | None:
        found = sum_with_derivatives(problem, triton=self._by_triton(first_array(problem.rows)))
        if found is not None:
            by_triton = f", {found.by_triton} by {_kernels(True)}" if found.by_triton else ""
            problem.kept["fused"] = f"PyTorch{by_triton}"
        return found

    def _places(self) -> list[Any]:
        """The devices that share the pairs, which must be there."""
        return [_device(sys.modules["torch"], device) for device in self.devices or ()]

    def _by_triton(self, like: Array) -> bool:
        if self.triton is not None:
            return self.triton
        return is_tensor(like) and like.device.type == "cuda" and has_triton()

    def _sums(self, run: _Run, *, rows: bool) -> tuple[Array, Array | None]:
        n = run.terms[0].n
        total, sums = sums_of(
            run.terms,
            rows=rows,
            double=run.correction is None,
            triton=self._by_triton(run.terms[0].features),
            devices=self._places(),
        )
        if run.correction is not None:
            bias = run.correction.bias
            total = total + bias * (0.5 * n * (n - 1))
            sums = None if sums is None else sums + bias * (n - 1)
        return total, sums

    def _run_of(self, problem: Problem) -> _Run | None:
        """The problem as it is summed; None where it has no terms for that."""
        torch = sys.modules["torch"]
        if any(array.requires_grad for array in problem.arrays):
            if torch.is_grad_enabled():
                return None
            problem.kept.setdefault("constant", replace(problem, rows=map_rows(stop_gradient, problem.rows)))
            constant: Problem = problem.kept["constant"]
            run = self._run_of(constant)
            problem.kept.update(constant.kept)
            return run
        with torch.no_grad():
            exact = in_products(problem, tensors=True)
            terms = None if exact is None else as_pair_terms(exact)
            if terms is None:
                return None
            run = self._rounded(problem, terms) or _Run(terms, None)
        problem.kept["fused"] = run
        return run

    def _rounded(self, problem: Problem, terms: list[PairTerm]) -> _Run | None:
        """The same after rounding, where that is wanted and its error is known to be small."""
        fewest = {"float64": None, "mixed": FEWEST, "auto": AUTO_FROM}[self.precision]
        if fewest is None or problem.n < fewest:
            return None
        triton = self._by_triton(terms[0].features)
        key = f"rounded by {_kernels(triton)}"
        if key not in problem.kept:
            short = shortened(terms)
            problem.kept[key] = _Run(short, correction_of(terms, short, triton=triton))
        found: _Run = problem.kept[key]
        most = LARGEST_ERROR if self.precision == "mixed" else AUTO_ERROR
        return found if found.correction is not None and found.correction.error <= most else None


_NOT_SHARED = "pairs were not shared: those of products of features, without gradients, are"


def _names_a_device(given: object) -> bool:
    """A name, or one of PyTorch's devices."""
    return isinstance(given, str) or (
        "torch" in sys.modules and isinstance(given, sys.modules["torch"].device)
    )


def _device(torch: Any, given: object) -> Any:
    try:
        device = torch.device(given)
    except RuntimeError as error:
        raise ValueError(f'devices must be names such as "cuda:0", found {given!r}') from error
    try:
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError) as error:  # PyTorch asserts that it was built for a device
        why = str(error).splitlines()[0]
        raise ValueError(
            f"devices must be there, found {str(device)!r}, which PyTorch cannot use ({why})"
        ) from error
    return device


@cache  # to look up a version takes as long as a small step of training
def _kernels(triton: bool) -> str:
    return f"Triton {version('triton')}" if triton else "PyTorch"
