"""What was chosen, and with what: enough to do a report again."""

from __future__ import annotations

import datetime
import platform

import numpy as np
import scipy

from wellcal.hypotests.findings.finding import LEVEL
from wellcal.hypotests.findings.reasons import ALPHA
from wellcal.hypotests.result import TestResult
from wellcal.reporting.data import Data
from wellcal.reporting.pieces import Choices

CITATION = (
    "D. Widmann, F. Lindsten, D. Zachariah (2021). Calibration tests beyond classification. International "
    "Conference on Learning Representations (ICLR)."
)

HYPOTHESIS = "targets follow their predictions, given the prediction; cases are independent"
CLUSTERED = (
    "targets follow their predictions, given the prediction; cases of different clusters, of which there are "
    "{:,}, are independent"
)


def choices_of(data: Data, tests: dict[str, TestResult], seed: int) -> Choices:
    """Choices of all models."""
    return Choices(
        HYPOTHESIS if data.n_clusters is None else CLUSTERED.format(data.n_clusters),
        ALPHA,
        LEVEL,
        seed,
        {name: _of_test(test) for name, test in tests.items()},
        {
            "wellcal": _version(),
            "Python": platform.python_version(),
            "NumPy": np.__version__,
            "SciPy": scipy.__version__,
        },
        data.fingerprint,
    )


def _of_test(test: TestResult) -> dict[str, str]:
    rows = dict(test.in_words().rows)
    wanted = ("kernel", "proven", "method", "statistic", "parts", "chosen", "resamples", "cases", "lowered")
    return {name: rows[name] for name in wanted if name in rows}


def _version() -> str:
    from wellcal import __version__

    return __version__


def today() -> str:
    """The date, as in "2026-11-15"."""
    return datetime.datetime.now(tz=datetime.UTC).date().isoformat()
