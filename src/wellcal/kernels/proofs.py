"""What is proven, and by whom: what a class declares, and what that means for predictions at hand."""

from __future__ import annotations

from dataclasses import dataclass

BERG = "Berg, Christensen, Ressel (1984), Corollary 3.3.3 and Proposition 3.2.7"
MICCHELLI = "Micchelli, Xu, Zhang (2006), Theorem 17"
ZIEGEL = "Ziegel, Ginsbourger, Dümbgen (2022), on radial kernels on Hilbert spaces"
SRIPERUMBUDUR = "Sriperumbudur, Fukumizu, Lanckriet (2011)"
SZABO = "Szabo, Sriperumbudur (2018), Theorem 5"
STEINWART = "Steinwart, Ziegel (2021), Corollary 3.15"


@dataclass(frozen=True)
class Guarantees:
    """What is proven about a kernel: True (proven), False (refuted) or None (not known).

    Attributes
    ----------
    positive_definite
        The kernel is a valid kernel, so that SKCE is a squared norm.
    characteristic
        The calibration error is zero only for a calibrated model.
    bounded
        Assumption (K2) of the paper holds by itself. Where this is not True, that the kernel is
        integrable under the model and the data is the user's to check.
    universal
        The stronger property that products need, that finite signed measures have different embeddings:
        characteristic times characteristic is not enough (Szabo and Sriperumbudur, 2018, Example 1).
    reasons
        What proves, or refutes, each statement.

    Examples
    --------
    >>> import numpy as np, wellcal as wc
    >>> pred = wc.Bernoulli(np.array([0.2, 0.7]))
    >>> found = wc.default_kernel(pred).guarantees(pred)
    >>> found.positive_definite, found.characteristic, found.bounded
    (True, True, True)
    """

    positive_definite: bool | None
    characteristic: bool | None
    bounded: bool | None
    universal: bool | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        def word(value: bool | None) -> str:
            return {True: "proven", False: "refuted", None: "not known"}[value]

        lines = [
            f"positive definite: {word(self.positive_definite)}",
            f"characteristic: {word(self.characteristic)}",
            f"bounded: {word(self.bounded)}",
        ]
        return "\n".join([*lines, *(f"  - {reason}" for reason in self.reasons)])


@dataclass(frozen=True)
class Proof:
    """What the class of a kernel, or of a metric, declares to be proven about it.

    It stands in the body of the class, as ``proof = Proof(...)``, and holds for that very class: a class
    derived from it is another function, and has no proof unless it declares one. `guarantees` repeats it with
    the words "as declared". Without it a kernel of your own is never called proven.

    Parameters
    ----------
    citation
        Where the proof is found.
    positive_definite
        Of a kernel. Of a metric d: ``exp(-d^power)`` is positive definite for every power up to the
        `max_power` of the metric.
    characteristic, universal
        See :class:`Guarantees`, on R^d for a kernel on numbers. What is universal is characteristic.
    bounded
        Of a kernel. Not needed where its class declares a `supremum`, nor for a metric.
    gaussian_mixture
        The kernel is radial and a mixture of Gaussian kernels, as are all that are positive definite in every
        dimension (Schoenberg, 1938). It is universal then, so are its products with others of the kind, and
        what holds on targets holds on parameters of predictions.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, wellcal as wc
    >>> from wellcal.kernels import Radial
    >>> @dataclass(frozen=True)
    ... class Cauchy(Radial):
    ...     proof = Proof("Schoenberg (1938), Theorem 2", gaussian_mixture=True)
    ...     supremum = 1.0
    ...
    ...     def radial(self, ops, squared):
    ...         return 1.0 / (1.0 + squared)
    >>> print(Cauchy().guarantees(wc.Normal(np.zeros(3), np.ones(3))))
    positive definite: proven
    characteristic: proven
    bounded: proven
      - as declared: Schoenberg (1938), Theorem 2
    """

    citation: str
    positive_definite: bool | None = True
    characteristic: bool | None = None
    universal: bool | None = None
    bounded: bool | None = None
    gaussian_mixture: bool = False

    def __post_init__(self) -> None:
        if not self.citation.strip():
            raise ValueError("a proof needs a citation: say who proved it, and where")
        if self.gaussian_mixture and self.universal is None:
            object.__setattr__(self, "universal", True)
        if self.universal and self.characteristic is None:
            object.__setattr__(self, "characteristic", True)

    def reasons(self, subject: object) -> tuple[str, ...]:
        """What proves the statements about `subject`, an instance of the class that declares this proof."""
        return (f"as declared: {self.citation}",)


class UniversalOnReals(Proof):
    """A radial kernel of this package: all are mixtures of Gaussian kernels."""

    def __init__(self) -> None:
        super().__init__(f"{MICCHELLI}; {SRIPERUMBUDUR}", gaussian_mixture=True)

    def reasons(self, subject: object) -> tuple[str, ...]:
        return (f"{type(subject).__name__} is universal on R^d ({self.citation})",)


class Hilbertian(Proof):
    """A metric that is a distance in a Hilbert space, of points that differ where predictions do."""

    def __init__(self, why: str) -> None:
        super().__init__(f"{why} ({BERG})", universal=True)

    def reasons(self, subject: object) -> tuple[str, ...]:
        return (
            f"{subject!r} is Hilbertian: {self.citation}",
            f"exp(-d^power) of a Hilbertian distance is integrally strictly positive definite ({ZIEGEL})",
        )


class NegativeType(Proof):
    """The same for a metric whose root is Hilbertian: for power <= 1."""

    def __init__(self, why: str) -> None:
        super().__init__(why, universal=True)

    def reasons(self, subject: object) -> tuple[str, ...]:
        return (
            f"{subject!r} is of negative type: {self.citation}, "
            f"so exp(-d^power) is valid for power <= 1 ({BERG})",
            f"and integrally strictly positive definite, for the root is Hilbertian ({ZIEGEL})",
        )
