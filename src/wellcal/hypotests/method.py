"""What a method of testing is: options as fields, facts as class variables, and a way to a p-value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar

from wellcal._arrays.equality import ByValue
from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.setup import Setup
from wellcal.measures.estimate import Estimate

AUTO = "auto"
"""The name that leaves the choice of a method to `calibration_test`."""

_methods: dict[str, type[Method]] = {}


@dataclass(frozen=True)
class Outcome(ByValue):
    """What a method found.

    Attributes
    ----------
    statistic, pvalue
        Value of the statistic, and its p-value.
    label
        What the statistic is, such as "n SKCE_u".
    estimate
        The calibration error to report with it; None takes that of the setup.
    null
        Values of the statistic under calibration, where they were drawn; or a function that returns them.
    provenance
        Choices that were made.
    floor
        The smallest p-value that so many resamples could have given; None takes ``1 / (n_resamples + 1)``
        for a method that resamples; 0 where resampling did not decide.
    findings
        What kind of error it is, the clearest first; nothing where the method does not say. A function that
        takes nothing and returns them is called when a result is asked for its findings.

    Examples
    --------
    >>> Outcome(2.5, 0.01, "z").provenance
    {}
    """

    statistic: float
    pvalue: float
    label: str
    estimate: Estimate | None = None
    null: NDArray | Callable[[], NDArray] | None = None
    provenance: dict[str, Any] = field(default_factory=lambda: {})
    floor: float | None = None
    findings: tuple[Finding, ...] | Callable[[], tuple[Finding, ...]] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Method(ByValue, ABC):
    """A way to a p-value. Derive from it, as a frozen dataclass, to add a test of your own.

    Options of a method are its fields: ``calibration_test(..., locations=5)`` sets the field `locations` of
    a method that has one; where it does not, an error names the methods that do. Facts about a method are
    class variables, each with a default that suits most.

    A class that declares a `name` can be asked for by it, ``calibration_test(..., method="name")``; an
    instance can be given as `method` in any case.

    Attributes
    ----------
    name
        What `calibration_test` and its results call it; the name of the class where none is declared.
    exchanges_draws
        Whether predictions that are draws are pooled with their target before the method sees them, so that
        the target is exchangeable with each of them under calibration.
    resamples
        Whether `n_resamples` matters.
    clusters
        Whether `groups` of dependent cases are honoured.
    linear
        Whether the cost is linear in the number of cases. The estimate of the calibration error that is
        reported with the p-value is then linear, too: over blocks of cases instead of all pairs.
    few_pairs
        Whether a case meets few of the others, so that it does not pay to look for what all of them share.
    fewest
        The smallest number of cases that will do: two or more, since an estimate of the calibration error
        is reported with every p-value.

    Examples
    --------
    The share of targets above the median of their prediction, with a normal approximation:

    >>> from dataclasses import dataclass
    >>> import numpy as np, wellcal as wc
    >>> from scipy import special
    >>> @dataclass(frozen=True)
    ... class Sign(wc.hypotests.Method):
    ...     resamples = False
    ...
    ...     def run(self, setup):
    ...         above = np.mean(setup.targets > setup.predictions.quantile(0.5))
    ...         z = 2.0 * np.sqrt(setup.n_samples) * abs(above - 0.5)
    ...         return wc.hypotests.Outcome(z, 2.0 * special.ndtr(-z), "z")
    >>> mu = np.linspace(-1.0, 1.0, 100)
    >>> result = wc.calibration_test(mu + 0.1, wc.Normal(mu, np.ones(100)), method=Sign())
    >>> result.method, bool(result.pvalue < 1e-20)
    ('Sign', True)

    ``examples/your_own_test.py`` has a test that draws targets, with a name and an option.
    """

    name: ClassVar[str] = ""
    exchanges_draws: ClassVar[bool] = True
    resamples: ClassVar[bool] = True
    clusters: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    few_pairs: ClassVar[bool] = False
    fewest: ClassVar[int] = 2

    def most_drawn(self, setup: Setup) -> int:
        """Resamples that a p-value may rest on at most: those asked for, unless a method draws on."""
        return setup.n_resamples

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            _register(cls)
        else:
            cls.name = cls.__name__

    @abstractmethod
    def run(self, setup: Setup) -> Outcome:
        """Statistic and p-value of a prepared case."""


def _register(method: type[Method]) -> None:
    """Let a class be found by its name; a class that is defined anew, as in a notebook, takes its place."""
    name, known = method.name, _methods.get(method.name)
    if name == AUTO or (known is not None and _address(known) != _address(method)):
        taken = f"the choice among all of them is {AUTO!r}" if known is None else f"it is {_address(known)}"
        raise ValueError(f"a method {name!r} exists already: {taken}; give {_address(method)} another name")
    _methods[name] = method


def _address(method: type[Method]) -> str:
    return f"{method.__module__}.{method.__qualname__}"


METHODS: Mapping[str, type[Method]] = MappingProxyType(_methods)
"""Methods by name: those of this package, and those of your own once their class is defined."""
