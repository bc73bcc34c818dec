"""Several models on the same cases: which is better calibrated."""

from wellcal.comparison._compare import compare
from wellcal.comparison.differences import Difference
from wellcal.comparison.pooling import pooled_kernel
from wellcal.comparison.result import Comparison
from wellcal.comparison.several import Comparisons, Pair

__all__ = ["Comparison", "Comparisons", "Difference", "Pair", "compare", "pooled_kernel"]
