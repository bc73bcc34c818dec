"""How thorough a run of the bank is; fixed before the first full run."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.studies import ALPHA


@dataclass(frozen=True)
class Settings:
    """Sizes, bounds and margins.

    Attributes
    ----------
    sets
        Data sets for each number of cases, for errors and for calibrated models.
    low_rank_sets
        Data sets at the smallest number of cases on which a kernel of low rank is compared with all pairs.
    resamples
        Resamples of `auto`.
    null_sets
        Calibrated data sets from which the null distributions of rivals are made.
    rival_sets
        Data sets for a look at rivals alone, by which sizes of errors are chosen; not those of the full run.
    alpha
        Level of all tests.
    least, most
        A rival is compared with `auto` where its power lies between these.
    margin, directed_margin
        How far `auto` may be behind rivals that know no direction, and those that do.
    confidence
        Of the lower bound of a paired loss.
    type_one_alpha
        Probability that any of the bounds on type I errors is left by chance.
    """

    sets: tuple[tuple[int, int], ...] = ((100, 1000), (1000, 300))
    low_rank_sets: int = 300
    resamples: int = 199
    null_sets: int = 9_999
    rival_sets: int = 400
    alpha: float = ALPHA
    least: float = 0.3
    most: float = 0.95
    margin: float = 0.15
    directed_margin: float = 0.20
    confidence: float = 0.99
    type_one_alpha: float = 0.01


FULL = Settings()
