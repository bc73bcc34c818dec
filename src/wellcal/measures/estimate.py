"""Estimates: frozen, printable, and pytrees where JAX is in use."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, Self, TypeVar, cast

from scipy import special

from wellcal._arrays.checks import probability
from wellcal._arrays.copies import own_copy
from wellcal._arrays.namespaces import Array, is_array, is_traced, on_first_jax_array, shown, to_numpy
from wellcal._arrays.progress import following
from wellcal._arrays.round_numbers import how_many
from wellcal._arrays.schema import Check, described, listed, number, optional, text, whole
from wellcal._arrays.special import student_t_lower_quantile
from wellcal.kernels.base import Kernel
from wellcal.measures.intervals import EMBEDDING, NORMAL, STUDENT, Interval, read_interval
from wellcal.measures.presentation import KERNEL, Presentable, Row
from wellcal.problem.weights import FEWEST_CASES, worth_in_words

if TYPE_CHECKING:
    from wellcal.measures.deviations import Cases, Deviations
    from wellcal.measures.yardstick import Yardstick

T = TypeVar("T")


class WhenAsked(Generic[T]):
    """A field that holds a value, or a function that makes it when it is first asked for.

    Words take longer than the numbers that they describe, and most of them are never read. What the function
    holds on to is kept until then.
    """

    def __init__(self, default: T | Callable[[], T]) -> None:
        self.default = default

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, owner: Any, kind: type | None = None) -> T:
        if owner is None:
            return cast("T", self.default)  # which a dataclass takes for that of its field
        if callable(owner.__dict__[self.name]):
            with following(None):  # all of it is one run
                owner.__dict__[self.name] = owner.__dict__[self.name]()
        return owner.__dict__[self.name]

    def __set__(self, owner: Any, value: T | Callable[[], T]) -> None:
        owner.__dict__[self.name] = value


@dataclass(frozen=True, eq=False, repr=False)
class Estimate(Presentable):
    """An estimate of a calibration error.

    Attributes
    ----------
    value
        The estimate: a float for NumPy input, a scalar tensor with gradient for PyTorch, a scalar
        array for JAX.
    standard_error
        Standard error where theory gives one, else None; without gradient.
    name
        What was estimated, such as "SKCE".
    estimator
        How, such as "unbiased".
    n_samples
        Number of cases.
    kernel
        The kernel used.
    provenance
        What was chosen and how it was computed: rules or numerical schemes for expectations with an
        error estimate, engine, cases left out, precision.
    intervals
        Confidence intervals that were asked for. They are stored with the estimate, the cases are not.
    known_yardstick
        The yardstick, once it was asked for.

    Notes
    -----
    For its pictures an estimate holds on to a copy of the targets and predictions that it is about, up to
    100,000 cases; whoever keeps many estimates and draws none keeps ``float(estimate)`` instead. Neither what
    is stored nor what travels to other processes has that copy.

    Examples
    --------
    >>> estimate = Estimate(0.25, 0.05, "SKCE", "unbiased", 100)
    >>> float(estimate)
    0.25
    >>> round(estimate.confidence_interval().low, 6)
    0.152002
    >>> Estimate.from_json(estimate.to_json()) == estimate
    True
    """

    value: Array
    standard_error: Array = None
    name: str = "SKCE"
    estimator: str = ""
    n_samples: int = 0
    kernel: Kernel | None = None
    provenance: WhenAsked[dict[str, Any]] = WhenAsked(lambda: {})
    intervals: tuple[Interval, ...] = field(default=(), compare=False)
    known_yardstick: Yardstick | None = field(default=None, compare=False)

    added: ClassVar[Mapping[str, Any]] = {"intervals": (), "known_yardstick": None}

    def __getstate__(self) -> dict[str, Any]:
        """What travels to other processes: numbers, and the cases that intervals need, but no pictures."""
        state = {**super().__getstate__(), "provenance": self.provenance}
        state.pop("_given", None)
        return state

    def __float__(self) -> float:
        return _float(self.value)

    # -- how sure is it? ---------------------------------------------------------------------

    def with_cases(self, cases: Cases) -> Self:
        """The same estimate, which remembers the cases that it was made from."""
        self.__dict__["_cases"] = cases
        return self

    @property
    def cases(self) -> Cases | None:
        """The cases that it was made from, where it remembers them: not after it was stored."""
        return self.__dict__.get("_cases")

    def with_given(self, y: object, pred: object) -> Self:
        """The same estimate, which remembers the targets and predictions that it is about, for pictures."""
        self.__dict__["_given"] = (y, pred)
        return self

    @property
    def given(self) -> tuple[Any, Any] | None:
        """Targets and predictions as they were given; None where they are not known, or not any more."""
        return self.__dict__.get("_given")

    @property
    def blocks(self) -> int | None:
        """Blocks whose mean it is; None of other estimates, and where their number is not known."""
        found = self.provenance.get("blocks") if self.estimator == "block" else None
        return found if isinstance(found, int) and found > 1 else None

    @property
    def _degrees(self) -> float | None:
        """Degrees of freedom of its standard error: of a mean of clusters, cases or blocks; None of others.

        Those of cases with weights are in the provenance.
        """
        if self.estimator not in ("mean", "weighted mean"):
            return None if self.blocks is None else self.blocks - 1.0
        known = self.provenance
        found = known.get("clusters", known.get("effective_cases", self.n_samples)) - 1.0
        found = found if "clusters" in known else known.get("degrees_of_freedom", found)
        return found if found > 0.0 else None

    def deviations(self) -> Deviations | None:
        """The estimate of KCE and draws of its distance from the truth; None where cases are not known."""
        cases = self.cases
        if cases is None or self.estimator == "block":
            return None
        if "_deviations" not in self.__dict__:
            from wellcal.measures.deviations import deviations_of

            square = float(self) ** 2 if self.name == "KCE" else float(self)
            self.__dict__["_deviations"] = deviations_of(cases, square, biased=self.estimator == "biased")
        return self.__dict__["_deviations"]

    def with_deviations_of(self, other: Estimate) -> Self:
        """The same estimate, with the draws of `other` for its intervals where both are of the same cases."""
        mine, others = self.cases, other.cases
        if mine is not None and others is not None and mine.same_as(others) and other.estimator != "block":
            self.__dict__["_deviations"] = other.deviations()
        return self

    def confidence_interval(self, level: float = 0.95) -> Interval:
        """Confidence interval.

        That of KCE, and of the unbiased and biased estimates of SKCE, holds for calibrated models as well as
        for others: ``KCE_hat -+ q`` cut at zero, for SKCE both ends squared, with KCE_hat the root of the
        biased estimate. q is a quantile of the distance between the estimated mean embedding and the true
        one: from normal multipliers of the centred h, and at least that of targets drawn from the
        predictions. It covers more often than `level` away from zero. The law of the distance is estimated
        from 1,000 cases at most, drawn targets are those of some hundred cases, and both are scaled to the
        number of cases; random numbers have a fixed seed.

        All other estimates have the normal interval ``value -+ z * standard_error``. Means of scores, and of
        SKCE over blocks, have Student's quantile in the place of z, by the number of cases, clusters or
        blocks; those of blocks need many, a hundred or more, since their values are skewed. Weights have the
        degrees of freedom that make their standard error what it is for scores of one variance, and none
        where they are worth fewer than two cases of equal weight. Where scores grow with very unequal weights
        any interval of few cases is too narrow: the heaviest cases are not among them. Scores that cannot be
        negative have no interval below zero.

        Where the cases are not known any more, as in an estimate that was stored, it is the one that was
        asked for before, or else the normal one: `method` of the interval says which.
        """
        level = probability(level, "level")
        for known in self.intervals:
            if known.level == level:
                return known
        deviations = self.deviations()
        if deviations is not None:
            low, high = deviations.ends(level)
            squared = self.name != "KCE"
            found = Interval(low**2 if squared else low, high**2 if squared else high, level, EMBEDDING)
        else:
            found = self._normal_interval(level)
        self.__dict__["intervals"] = (*self.intervals, found)
        return found

    @property
    def yardstick(self) -> Yardstick | None:
        """How far off the model is, in units that people know: "as if spreads were 21% too small".

        The size of an error in spreads (for classes, in temperature; for counts and positive numbers, in
        means) at which a model that is otherwise perfect would have this KCE, at the estimate and at the ends
        of its 95% interval; for both sides, too small and too large, since a calibration error has no
        direction. It is computed when it is asked for, from 250 of the predictions at most, and stored with
        the estimate from then on. None for other measures, for targets or kernels that have
        no such error, and where the cases are not known any more.
        """
        if self.known_yardstick is None and self.cases is not None:
            self.__dict__["known_yardstick"] = self._find_yardstick(self.cases)
        return self.known_yardstick

    def yardstick_of(self, kind: str) -> Yardstick | None:
        """The same by another kind of error, which is the yardstick from then on; None where it has none."""
        known = self.known_yardstick
        if (known is None or known.kind != kind) and self.cases is not None:
            found = self._find_yardstick(self.cases, kind)
            if found is not None:
                self.__dict__["known_yardstick"] = found
            return found
        return known if known is not None and known.kind == kind else None

    def yardstick_at(self, level: float, kind: str | None = None) -> Yardstick | None:
        """The same with an interval of another level, which is not kept."""
        return None if self.cases is None else self._find_yardstick(self.cases, kind, level)

    def _find_yardstick(self, cases: Cases, kind: str | None = None, level: float = 0.95) -> Yardstick | None:
        from wellcal.measures.yardstick import yardstick_from

        interval = self.confidence_interval(level)
        if self.name == "KCE":
            root = float(self)
            ends = (interval.low, interval.high)
        else:
            root = math.sqrt(max(float(self), 0.0))
            ends = (math.sqrt(max(interval.low, 0.0)), math.sqrt(max(interval.high, 0.0)))
        return yardstick_from(cases, root, ends, interval.level, kind)

    def _normal_interval(self, level: float) -> Interval:
        if self.standard_error is None:
            raise ValueError(
                f"no standard error is known for the {self.estimator} estimator of {self.name}"
                f"{_why_no_error(self, ': ')}"
            )
        upper, degrees = 0.5 + 0.5 * level, self._degrees
        quantile = special.ndtri(upper) if degrees is None else student_t_lower_quantile(degrees, upper)
        half = float(quantile) * _float(self.standard_error)
        low = float(self) - half
        if self.name in _NOT_NEGATIVE:
            low = min(max(low, 0.0), float(self))
        return Interval(low, float(self) + half, level, NORMAL if degrees is None else STUDENT)

    @classmethod
    def checks(cls, kernel: Kernel | None) -> Mapping[str, Check]:
        """What is stored of an estimate."""
        any_number = number(infinite=True, nan=True)
        shown = {
            "lowered": listed(text),
            "expectation_error": any_number,
            "dropped": whole(least=0),
            NOT_FINITE: whole(least=0),
            "clusters": whole(least=1),
            "effective_cases": number(least=1.0),
            "degrees_of_freedom": number(least=1.0),
            "compared": text,
        }
        return {
            "value": any_number,
            "standard_error": optional(number(least=0.0, infinite=True, nan=True)),
            "name": text,
            "estimator": text,
            "n_samples": whole(least=0),
            **KERNEL,
            "provenance": described(shown),
            "intervals": _intervals,
            "known_yardstick": optional(_yardstick),
        }

    # -- for people --------------------------------------------------------------------------

    def _headline(self) -> str:
        error = self.standard_error
        spread = "" if not _has_error(error) else f" +- {shown(error)}"
        cases = how_many(self.n_samples) if self.n_samples else ""
        how = ", ".join(part for part in (self.estimator, cases) if part)
        number = "traced" if is_traced(self.value) else f"{float(self):.6g}"
        return f"{self.name} = {number}{spread}" + (f"  ({how})" if how else "")

    def _rows(self) -> list[Row]:
        rows: list[Row] = []
        if self.kernel is not None:
            rows.append(("kernel", repr(self.kernel)))
        if "lowered" in self.provenance:
            error = self.provenance.get("expectation_error", math.nan)
            known = "no error estimate" if math.isnan(error) else f"estimated error {error:.1e}"
            rows.append(("expectations", f"numerical, {known}; {'; '.join(self.provenance['lowered'])}"))
        if "compared" in self.provenance:
            rows.append(("compared", self.provenance["compared"]))
        if NOT_FINITE in self.provenance:
            rows.append(("not finite", _why_not_finite(self)))
        if why := _why_no_error(self):
            rows.append(("no error", why))
        return [*rows, *left_out_rows(self.provenance)]


_NOT_NEGATIVE = frozenset({"Brier score", "CRPS", "MSE", "energy score", "pinball loss"})

NOT_FINITE = "not_finite"
"""In provenances: how many cases have a score that is no finite number, where their mean is none."""


def _why_not_finite(score: Estimate) -> str:
    """How many cases that are, and what they have in common, where it is known.

    Examples
    --------
    >>> _why_not_finite(Estimate(math.inf, name="NLL", provenance={"not_finite": 1}))
    '1 case: probability or density 0 for what happened'
    """
    common = {
        "NLL": ": probability or density 0 for what happened",
        "MSE": ": predictions without a finite mean",
    }
    return f"{how_many(score.provenance[NOT_FINITE])}{common.get(score.name, '')}"


def _why_no_error(score: Estimate, before: str = "") -> str:
    """Why an estimate with weights has no standard error, after some text; nothing where it has one.

    Examples
    --------
    >>> _why_no_error(Estimate(1.2, None, "NLL", "weighted mean", 50, provenance={"effective_cases": 1.0001}))
    'weights are worth 1 case of equal weight, fewer than two'
    """
    cases = score.provenance.get("effective_cases")
    if cases is None or cases >= FEWEST_CASES or score.standard_error is not None:
        return ""
    return f"{before}weights are {worth_in_words(cases)}, fewer than two"


def _has_error(error: Any) -> bool:
    """Whether there is a standard error to show: that of an infinite score is no number."""
    return not (error is None or is_traced(error) or math.isnan(_float(error)))


P = ParamSpec("P")


def about_cases(measure: Callable[P, Estimate]) -> Callable[P, Estimate]:
    """A measure ``f(y, pred, ...)`` whose estimates remember copies of both, so that they have pictures.

    Not those of more than 100,000 cases, of cases with weights, which pictures would not show, nor under
    tracing.

    Examples
    --------
    >>> @about_cases
    ... def largest(y, pred, *, weights=None):
    ...     return Estimate(max(y), name="largest", n_samples=len(y))
    >>> largest([1.0, 3.0], "a prediction").given
    ([1.0, 3.0], 'a prediction')
    """
    run = following(None)(measure)

    @wraps(measure)
    def measured(*args: P.args, **options: P.kwargs) -> Estimate:
        found = run(*args, **options)
        if found.n_samples <= _KEPT and options.get("weights") is None and not is_traced(found.value):
            y, pred = (*args, *(options[name] for name in ("y", "pred") if name in options))[:2]
            found.with_given(_kept(y), _kept(pred))
        return found

    return measured


_KEPT = 100_000  # cases of which a picture is drawn at most


def _kept(given: Any) -> Any:
    """What was given, as it was: arrays, columns and lists, also in tuples, may be changed later."""
    if isinstance(given, tuple):
        return tuple(map(_kept, cast("tuple[Any, ...]", given)))
    if isinstance(given, list) or hasattr(given, "iloc"):
        return cast("Any", given).copy()
    return own_copy(given) if is_array(given) else given


def _yardstick(plain: Any, name: str) -> Yardstick:
    from wellcal.measures.yardstick import Yardstick

    return Yardstick.read(plain, name)


def _intervals(plain: Any, name: str) -> tuple[Interval, ...]:
    return tuple(listed(read_interval)(plain, name))


def estimate_text(estimate: Estimate) -> str:
    """The value with its standard error, or why it has none, as it is shown within other results.

    Examples
    --------
    >>> estimate_text(Estimate(0.0123456, 0.0012345))
    '0.01235 +- 0.0012'
    """
    error = estimate.standard_error
    why = f" ({_why_not_finite(estimate)})" if NOT_FINITE in estimate.provenance else ""
    told = f" +- {_float(error):.2g}" if _has_error(error) else _why_no_error(estimate, "; no error known: ")
    return f"{float(estimate):.4g}{why}{told}"


def _float(value: Array) -> float:
    return float(to_numpy(value)) if is_array(value) else float(value)


def _register_with_jax() -> None:
    """Let estimates pass through ``jax.jit`` and ``grad``."""
    import jax

    static = [f.name for f in fields(Estimate) if f.name not in ("value", "standard_error")]

    def flatten(estimate: Estimate) -> tuple[tuple[Any, Any], _Aside]:
        return (estimate.value, estimate.standard_error), _Aside(
            {name: getattr(estimate, name) for name in static}
        )

    def unflatten(aside: _Aside, children: tuple[Any, Any]) -> Estimate:
        return Estimate(*children, **aside.values)

    trees: Any = jax.tree_util  # its own annotations leave parameters open
    trees.register_pytree_node(Estimate, flatten, unflatten)


class _Aside:
    """What JAX need not look at. All are equal to it: descriptions do not force a new compilation."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Aside)

    def __hash__(self) -> int:
        return 0


on_first_jax_array(_register_with_jax)


def left_out_rows(provenance: Mapping[str, Any]) -> list[Row]:
    """Cases that fill no block, as a row of a table; none where all cases count.

    Examples
    --------
    >>> left_out_rows({"dropped": 3}), left_out_rows({})
    ([('left out', 'the last 3 cases (incomplete block)')], [])
    """
    count = provenance.get("dropped")
    return [("left out", f"the last {how_many(count)} (incomplete block)")] if count else []
