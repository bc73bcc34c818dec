"""Errors that are planted on purpose, to see whether the comparison with published numbers catches them."""

from __future__ import annotations

from dataclasses import dataclass

from wellcal.kernels import ExpDistance, Gaussian, Kernel, Wasserstein


@dataclass(frozen=True)
class Plant:
    """What is changed; as it stands, nothing is.

    Attributes
    ----------
    learning_rate
        Factor of Adam's learning rate.
    lengthscale
        Of the kernel on predictions, which the paper has at 1.
    spread
        Factor of the predicted standard deviations of the synthetic models; targets keep theirs.
    statistic
        What the bootstrap test compares resamples with; the authors' code has "authors".
    """

    learning_rate: float = 1.0
    lengthscale: float = 1.0
    spread: float = 1.0
    statistic: str = "authors"

    @property
    def kernel(self) -> Kernel:
        """The paper's kernel, with the length scale of this."""
        return ExpDistance(Wasserstein(), lengthscale=self.lengthscale) @ Gaussian()


NOTHING = Plant()
"""The paper's experiments as they are."""
