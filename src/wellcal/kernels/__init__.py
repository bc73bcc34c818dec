"""Kernels on targets, on predictions and on pairs of both, with their algebra."""

from wellcal.kernels.algebra import Product, Scaled, Sum, Tensor
from wellcal.kernels.base import Kernel, Radial, TargetKernel
from wellcal.kernels.metrics import (
    Euclidean,
    ExpDistance,
    Hellinger,
    MaximumMeanDiscrepancy,
    Metric,
    MixtureWasserstein,
    RootCovariance,
    TotalVariation,
    Wasserstein,
)
from wellcal.kernels.proofs import Guarantees, Proof
from wellcal.kernels.targets import (
    Callable,
    Delta,
    Gaussian,
    Joint,
    Laplacian,
    Matern,
    RationalQuadratic,
)

paper_kernel = ExpDistance(Wasserstein()) @ Gaussian()
"""The kernel of the paper's experiments: unit length scales throughout."""

__all__ = [
    "Callable",
    "Delta",
    "Euclidean",
    "ExpDistance",
    "Gaussian",
    "Guarantees",
    "Hellinger",
    "Joint",
    "Kernel",
    "Laplacian",
    "Matern",
    "MaximumMeanDiscrepancy",
    "Metric",
    "MixtureWasserstein",
    "Product",
    "Proof",
    "Radial",
    "RationalQuadratic",
    "RootCovariance",
    "Scaled",
    "Sum",
    "TargetKernel",
    "Tensor",
    "TotalVariation",
    "Wasserstein",
    "paper_kernel",
]
