"""Which picture shows an error best: one rule, for reports, pages and single results.

What a test found says which pictures to look at: a trend is seen in residuals, a wrong spread in coverage,
one class in its own reliability diagram. Of these the one is taken in which the model leaves the band of
calibrated ones, or leaves it much farther: nobody would believe a verdict beside a curve that stays in its
band. Where no picture shows it, the statistic of the test among those of calibrated models does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.impossible import IMPOSSIBLE
from wellcal.hypotests.findings.reasons import reasons_in
from wellcal.hypotests.findings.splits import OUTER, SPREAD
from wellcal.hypotests.result import TestResult

BY_MEAN = "residuals by mean"
"""Residuals against the predicted mean, where they are shown against the predicted spread, too."""

ONE_CLASS, ONE_GRADE = "class", "grade"
"""The reliability diagram of a class that was told, or is farthest off, or of a grade and those above it."""

_TREND = ("residuals", BY_MEAN)
_SHAPE = ("pit", "histogram", "quantiles")
_WIDTH = ("pit", "coverage", "histogram")
_CLASS = (ONE_GRADE, ONE_CLASS, "classes")
_ALL_CLASSES = (ONE_GRADE, "reliability", ONE_CLASS, "classes")
_VECTOR = ("coordinates", "together")
_PAIRS = ("correlations", "together", "coordinates")

SHOWS: Mapping[str, tuple[str, ...]] = {
    "trend of the centre": _TREND,
    "trend of the spread": _TREND,
    "shift": (*_SHAPE, *_VECTOR),
    "spread": (*_WIDTH, *_VECTOR),
    "dispersion": _WIDTH,
    "coverage": ("coverage", "pit", "histogram"),
    "range": ("histogram", "coverage", "pit"),
    "above": _SHAPE,
    "quantile": ("quantiles", *_WIDTH),
    "skew": (*_SHAPE, *_VECTOR),
    "tails": (*_WIDTH, "quantiles", *_VECTOR),
    "two peaks": (*_SHAPE, *_VECTOR),
    "levels": _SHAPE,
    "surprise": (*_SHAPE, *_ALL_CLASSES, *_VECTOR),
    "zeros": ("histogram", "pit"),
    "correlation": _PAIRS,
    "trend of the correlation": _PAIRS,
    "frequency": ("reliability",),
    "slope": ("reliability",),
    "group": ("reliability",),
    "temperature": _ALL_CLASSES,
    IMPOSSIBLE: (),  # single cases, which are listed: curves over many of them do not show these
    "confidence": ("reliability", ONE_GRADE),
    "class": _CLASS,
    "class slope": _CLASS,
    "swapped": _CLASS,
    "confused": _CLASS,
}
"""Pictures that show a kind of finding, the usual one first."""

OF_PARTS: Mapping[str, tuple[str, ...]] = {
    "distribution": _SHAPE,
    "levels": _SHAPE,
    "shape": (*_SHAPE, *_VECTOR),
    "spread": (*_WIDTH, *_VECTOR),
    "tails": (*_WIDTH, *_VECTOR),
    "trend of the centre": _TREND,
    "trend of the spread": _TREND,
    "curve of the centre": _TREND,
    "SKCE": _TREND,
    "locations": _TREND,
    "correlation": _PAIRS,
    "trend of the correlation": _PAIRS,
    "one class": _CLASS,
    "classes": _CLASS,
    "slopes": _CLASS,
    "surprise": _ALL_CLASSES,
}
"""The same for parts of a test, where no finding has a name."""

BETTER, CLEAR = 2.0, 3.0
"""How many times farther a later picture must show an error to be taken before an earlier one, and from where
on farther is not clearer."""

_LEAVES = 1.0 + 1e-9


def class_pictures(findings: Iterable[Finding]) -> dict[int, str]:
    """Names of the pictures of single classes that findings are about, by the places of these classes.

    Examples
    --------
    >>> about = [Finding("", "class", "", 0.5, None, 0.95, 0.01, classes=(k,)) for k in (3, 0, 3)]
    >>> class_pictures(about)
    {3: 'class', 0: 'class 2'}
    """
    told = dict.fromkeys(
        finding.classes[0] for finding in findings if finding.classes and ONE_CLASS in _shows(finding)
    )
    return {k: ONE_CLASS if place == 1 else f"{ONE_CLASS} {place}" for place, k in enumerate(told, 1)}


def _shows(finding: Finding) -> tuple[str, ...]:
    return SHOWS.get(finding.kind, ())


def shown_in(finding: Finding, there: Collection[str], findings: Iterable[Finding] = ()) -> tuple[str, ...]:
    """Names of pictures that show a finding, given those that there are, and all that was found.

    Residuals are shown against what the finding tells cases by, where there are both pictures of them; a
    class is shown by its own picture, and not by that of some grade and those above it.
    """
    names = _shows(finding)
    if finding.classes:
        own = class_pictures([*findings, finding])
        names = tuple(own[finding.classes[0]] if name == ONE_CLASS else name for name in names)
        return tuple(name for name in names if name != ONE_GRADE or own[finding.classes[0]] not in there)
    if names is not _TREND or finding.by is None or BY_MEAN not in there:
        return names
    return ("residuals",) if finding.by in (SPREAD, OUTER) else (BY_MEAN,)


def wanted(test: TestResult, findings: Sequence[Finding], there: Collection[str]) -> list[str]:
    """Names of pictures that show what was found, those of the leading finding first.

    Without a finding that has a name they are those of the part of the test that decided. `there` are the
    names of those that there are.
    """
    found = [names for finding in findings if (names := shown_in(finding, there, findings))]
    if findings and ONE_GRADE in there and _shows(findings[0])[:1] == (ONE_GRADE,):
        found.insert(0, (ONE_GRADE,))  # of ordered grades, the usual one
    leading = reasons_in(test.provenance).leading
    if leading is not None and not found:
        found = [OF_PARTS.get(leading, ())]
    return list(dict.fromkeys(name for names in found for name in names))


def clearness(reach: float) -> float:
    """How clearly a picture shows an error, from how far it leaves its band; zero where that is not known."""
    return 0.0 if math.isnan(reach) else min(reach, CLEAR)


def leaves(reach: float) -> bool:
    """Whether a model is seen to leave the band in a picture.

    Examples
    --------
    >>> leaves(1.2), leaves(1.0), leaves(math.nan)
    (True, False, False)
    """
    return reach > _LEAVES


def most_telling(names: Iterable[str], reach: Callable[[str], float]) -> str | None:
    """Of some pictures the one that shows an error best; None where all stay within their bands.

    Parameters
    ----------
    names
        Of pictures, in the order in which they are preferred.
    reach
        How far a picture leaves its band: `wellcal.displays.Display.reach`.

    Examples
    --------
    >>> most_telling(["pit", "coverage"], {"pit": 1.2, "coverage": 1.3}.get)
    'pit'
    >>> most_telling(["pit", "coverage"], {"pit": 1.2, "coverage": 2.5}.get)
    'coverage'
    >>> most_telling(["pit", "coverage"], {"pit": 0.9, "coverage": 1.0}.get) is None
    True
    """
    best, far = None, 0.0
    for name in names:
        found = clearness(reach(name))
        if leaves(found) and (best is None or found > BETTER * far):
            best, far = name, found
    return best
