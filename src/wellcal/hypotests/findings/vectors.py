"""Findings about vectors: those of numbers for each coordinate, and how coordinates go together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import LEVEL, Finding
from wellcal.hypotests.findings.scalars import SPREAD, ScalarClaims, spread_finding
from wellcal.hypotests.findings.splits import Summary
from wellcal.hypotests.findings.wording import plain_number, span
from wellcal.hypotests.parts.contrasts import contrasts_of
from wellcal.hypotests.parts.vectors import MOST_COORDINATES

_ALL = "all coordinates"
_INDEPENDENT = 0.05  # correlations up to which predictions are called independent
_SINGULAR = 1.0 - 1e-9


class VectorClaims(Claims):
    """Standardised residuals of each coordinate, their spread together, and correlations."""

    def __init__(self, centre: NDArray, spread: NDArray) -> None:
        """`centre` and `spread` of predictions, ``(n, d)``."""
        self.centre, self.unit = centre, spread
        dimension = centre.shape[1]
        places = np.linspace(0, dimension - 1, min(dimension, MOST_COORDINATES))
        self.chosen = [int(place) for place in np.unique(places.round())]
        self.alone = [
            ScalarClaims(
                lambda targets: targets,
                contrasts_of(centre[:, j], spread[:, j]),
                [
                    Summary("predicted mean", centre[:, j]),
                    Summary("predicted spread", spread[:, j]),
                ],
            )
            for j in self.chosen
        ]
        self.pairs = list(combinations(range(len(self.chosen)), 2))
        self.names = [
            *(self._name(i, name) for i, claims in enumerate(self.alone) for name in claims.names),
            *(self._pair(pair) for pair in self.pairs),
            _ALL,
        ]

    def _name(self, place: int, name: str) -> str:
        return f"{'_' * name.startswith('_')}{self.chosen[place] + 1}: {name}"

    def _pair(self, pair: tuple[int, int]) -> str:
        first, second = (self.chosen[place] + 1 for place in pair)
        return f"coordinates {first} and {second}"

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return self._quantities(self._residuals(targets), slice(None))

    def estimator(self, targets: NDArray) -> Estimator:
        """From residuals of all cases."""
        z = self._residuals(targets[None])
        return lambda cases: self._quantities(z[:, cases], cases)[0]

    def _residuals(self, targets: NDArray) -> NDArray:
        return ((targets - self.centre) / self.unit)[..., self.chosen]

    def _quantities(self, z: NDArray, cases: NDArray | slice) -> NDArray:
        parts: list[NDArray] = []
        rest: list[NDArray] = []
        for place, claims in enumerate(self.alone):
            parts.append(claims.quantities(z[..., place], cases))
            rest.append(claims.residuals(z[..., place], cases)[1])
        left = np.stack(rest, axis=-1)
        squares = np.einsum("rna,rna->ra", left, left) / left.shape[1]
        products = np.einsum("rna,rnb->rab", left, left, optimize=True) / left.shape[1]
        scale = np.sqrt(np.maximum(squares, 1e-300))
        correlations = products / (scale[:, :, None] * scale[:, None, :])
        first, second = (np.array([pair[end] for pair in self.pairs], dtype=int) for end in (0, 1))
        parts.append(np.arctanh(np.clip(correlations[:, first, second], -_SINGULAR, _SINGULAR)))
        parts.append(0.5 * np.log(np.maximum(squares.mean(axis=1), 1e-300))[:, None])
        return np.concatenate(parts, axis=1)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Findings of each coordinate, and of pairs."""
        z = self._residuals(targets[None])[0]
        out: list[Finding] = []
        for place, claims in enumerate(self.alone):
            names = {name: self._name(place, name) for name in claims.names}
            its = {name: told[full] for name, full in names.items() if full in told}
            known = {name: every[full] for name, full in names.items()}
            found = claims.tell_of(its, known, z[:, place])
            out += [_in_coordinate(finding, self.chosen[place] + 1) for finding in found]
        out += [_correlated(name, told[name]) for name in map(self._pair, self.pairs) if name in told]
        if _ALL in told:
            together = spread_finding(told[_ALL])
            said = [finding for finding in out if finding.kind == SPREAD]
            # One sentence for all of them, where it is clearer than any one and none contradicts it.
            if all(_agree(finding, together) for finding in said):
                out = [finding for finding in out if finding.kind != SPREAD]
                out.append(together)
        return out


def _agree(one: Finding, other: Finding) -> bool:
    if one.size is None or other.interval is None or one.interval is None:
        return False
    apart = one.interval[0] > other.interval[1] or other.interval[0] > one.interval[1]
    return not apart


def _in_coordinate(finding: Finding, coordinate: int) -> Finding:
    """The same sentence about one coordinate."""
    of = f"coordinate {coordinate}: "
    return replace(finding, sentence=of + finding.sentence, short=of + finding.short)


def _correlated(pair: str, found: Found) -> Finding:
    size, low, high = (float(np.tanh(value)) for value in (found.estimate, found.low, found.high))
    right = float(np.tanh(found.expected))
    ends = f"{plain_number(size)}, {span(low, high)}"
    if abs(right) < _INDEPENDENT:
        short = f"{pair} are correlated ({plain_number(size)}), predicted independent"
        sentence = f"{pair} are correlated ({ends}), predicted independent"
    elif size * right < 0.0:
        short = f"{pair} have a correlation of {plain_number(size)}, predicted {plain_number(right)}"
        sentence = short.replace(",", f" ({span(low, high)}),")
    else:
        stronger = "more" if abs(size) > abs(right) else "less"
        short = f"{pair} are {stronger} strongly correlated than predicted"
        sentence = f"{short} ({ends}; predicted {plain_number(right)})"
    return Finding(sentence, "correlation", short, size, (low, high), LEVEL, found.pvalue)
