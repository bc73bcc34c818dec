"""Which parts of a test are the reason for its rejection, and words for those that no quantity tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.measures.presentation import at_floor

ALPHA = 0.05
"""Error rate: of the test as a whole, and of its findings together."""

OMNIVOROUS = ("SKCE", "locations")
"""Parts that see all kinds of error."""

WITNESS = "wc.witness(y, pred) says for which cases"

POINTER = f": {WITNESS}"
"""How a sentence ends that sends its reader there."""

UNNAMED = f"no single kind of error stands out{POINTER}"
"""What is told where a test rejects and no quantity by itself is off."""

WORDS = {
    "SKCE": "errors of cases with similar predictions go together",
    "locations": "errors are large about a few single predictions",
    "distribution": "targets are not where their predictions have them",
    "levels": "targets are not where their predictions have them",
    "shape": "targets have another shape than their predictions",
    "spread": "targets are spread differently than predicted",
    "tails": "the tails are not those of the predictions",
    "surprise": "targets are not as likely as predicted",
    "centre": "targets are not about the middle of their predictions",
    "common shift": "targets are not about the middle of their predictions",
    "slope": "predicted probabilities are too extreme, or not extreme enough",
    "curve": "frequencies follow the predicted probabilities along a curve",
    "groups": "frequencies are off for some predicted probabilities",
    "one class": "a class occurs more or less often than predicted",
    "classes": "classes occur more or less often than predicted",
    "slopes": "probabilities of some classes are too extreme, or not extreme enough",
    "correlation": "coordinates are correlated differently than predicted",
    "trend of the centre": "how far off targets are depends on the prediction",
    "curve of the centre": "how far off targets are depends on the prediction",
    "trend of the spread": "how far targets spread depends on the prediction in another way than predicted",
    "trend of the correlation": "correlations of coordinates depend on the prediction",
}
"""What each part of a test looks for."""


class Reasons(NamedTuple):
    """Parts of a test that are a reason to reject.

    Attributes
    ----------
    clear
        Those that reject by themselves, all parts considered; the clearest first.
    leading
        The one that decided: its p-value divided by its weight is the smallest. None where nothing is known.
    small
        Those with a p-value of 0.05 at most, but for the two that see all kinds of error: findings about
        anything else would have nothing to do with the rejection.
    """

    clear: tuple[str, ...] = ()
    leading: str | None = None
    small: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[str, ...]:
        """Both."""
        return tuple(dict.fromkeys([*self.clear, *([] if self.leading is None else [self.leading])]))


NO_REASONS = Reasons()
"""Nothing is known of parts."""


def reasons_in(provenance: Mapping[str, Any]) -> Reasons:
    """Reasons from the p-values, their floors and the weights that a test reports of its parts.

    Examples
    --------
    >>> reasons_in({"pvalues": {"spread": 0.001, "tails": 0.4}, "weights": {"spread": 0.5, "tails": 1.0}})
    Reasons(clear=('spread',), leading='spread', small=('spread',))
    """
    pvalues: Mapping[str, float] = provenance.get("pvalues", {})
    weights: Mapping[str, float] = provenance.get("weights", {})
    floors: Mapping[str, float] = provenance.get("pvalue_floors", {})
    if not pvalues:
        return NO_REASONS
    first = sorted(pvalues, key=lambda name: pvalues[name] / weights.get(name, 1.0))
    clear = [
        name
        for name in first
        if pvalues[name] <= ALPHA / len(pvalues) or at_floor(pvalues[name], floors.get(name))
    ]
    small = [name for name in first if pvalues[name] <= ALPHA and name not in OMNIVOROUS]
    return Reasons(tuple(clear), first[0], tuple(small))


def unnamed(reasons: Reasons, pvalue: float) -> Finding:
    """What is told where no quantity is."""
    sentence = UNNAMED
    if reasons.leading in WORDS:
        sentence = f"{WORDS[reasons.leading]}, but {UNNAMED}"
    return Finding(sentence, "unnamed", sentence, None, None, LEVEL, pvalue)


def without_pointer(finding: Finding) -> Finding:
    """A finding that does not send its reader somewhere else.

    Within a report groups are found already, and a witness of all cases does not look at a part of them.

    Examples
    --------
    >>> without_pointer(unnamed(NO_REASONS, 0.01)).sentence
    'no single kind of error stands out'
    """
    if POINTER not in finding.sentence:
        return finding
    return replace(
        finding, sentence=finding.sentence.replace(POINTER, ""), short=finding.short.replace(POINTER, "")
    )


class Seen(NamedTuple):
    """Targets and predictions in NumPy; whether draws include the target; clusters, or None."""

    targets: NDArray
    predictions: Any
    pooled: bool
    groups: NDArray | None = None
