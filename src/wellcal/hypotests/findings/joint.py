"""A closer look at vectors: what goes with the prediction of another coordinate, and how correlations do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from wellcal._arrays.namespaces import NDArray
from wellcal.hypotests.findings.carried import Ratio
from wellcal.hypotests.findings.claims import Claims, Estimator, Found
from wellcal.hypotests.findings.finding import Finding
from wellcal.hypotests.findings.scalars import shift_finding
from wellcal.hypotests.findings.splits import (
    Summary,
    correlation_of,
    fitted,
    log_spread_of,
    mean_of,
    name_of_means,
)
from wellcal.hypotests.findings.trends import (
    best_contrast,
    carried_trend,
    correlation_finding,
    shifts,
    spreads,
    trend_finding,
)
from wellcal.hypotests.findings.vectors import VectorClaims, in_coordinate
from wellcal.hypotests.parts.contrasts import contrasts_of

MOST_CENTRES = 5
"""Coordinates whose predicted centre errors may go with, as in the parts of the test."""

MOST_PAIRS = 2
"""Pairs of coordinates that are told."""

SPREAD_OF_ALL = "predicted spread of all coordinates"

_DRAWN = 49  # sets of targets from which predicted correlations are computed


class JointClaims(Claims):
    """What goes with predicted centres of several coordinates, or with the spread of all of them."""

    def __init__(self, vectors: VectorClaims) -> None:
        self.vectors = vectors
        centre, spread = vectors.mean[:, :MOST_CENTRES], np.sqrt(np.mean(vectors.width**2, axis=1))
        self.columns = contrasts_of(centre, spread)
        means = [Summary(name_of_means(j), column) for j, column in enumerate(centre.T)]
        wide = [Summary(SPREAD_OF_ALL, spread)] if np.ptp(spread) > 0.0 else []
        self.summaries = [*means, *wide]
        self.chosen = vectors.chosen
        self.trend = self.columns.columns[:, self.columns.trend]

    def scores(self, targets: NDArray) -> NDArray:
        """The same as the estimates."""
        return np.stack([self.quantities(self._rest(sets), slice(None)) for sets in targets])

    def estimator(self, targets: NDArray) -> Estimator:
        """From residuals of all cases."""
        rest = self._rest(targets)
        return lambda cases: self.quantities(rest[cases], cases)

    def quantities(self, rest: NDArray, cases: NDArray | slice) -> NDArray:
        """Of residuals ``(n, c)``."""
        raise NotImplementedError

    def _residuals(self, targets: NDArray) -> NDArray:
        return self.vectors.residuals(targets[None])[0][:, self.chosen]

    def _rest(self, targets: NDArray) -> NDArray:
        """Residuals less what goes with the prediction of any coordinate."""
        z, columns = self._residuals(targets), self.columns.columns
        return z - columns @ (columns.T @ z) / len(z)


class CentreTrends(JointClaims):
    """Centres of coordinates that go with the prediction of another."""

    def __init__(self, vectors: VectorClaims) -> None:
        super().__init__(vectors)
        self.names = [f"{j} {k}" for j in self.chosen for k in range(self.trend.shape[1])]

    def _rest(self, targets: NDArray) -> NDArray:
        return self._residuals(targets)

    def quantities(self, rest: NDArray, cases: NDArray | slice) -> NDArray:
        """Mean products of residuals and columns."""
        return (rest.T @ self.trend[cases]).ravel() / len(rest)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The group that shows it best, for each coordinate."""
        z = self._residuals(targets)
        return list(self._told(told, lambda j, found: self._trend(z[:, j], found)))

    def _trend(self, z: NDArray, found: Found) -> Finding | None:
        return trend_finding(
            shifts(mean_of, self.vectors.units), z, self.summaries, found.reach, found.pvalue, self.groups
        )

    def _told(
        self, told: Mapping[str, Found], trend: Callable[[int, Found], Finding | None]
    ) -> Iterator[Finding]:
        for place, j in enumerate(self.chosen):
            its = [told[name] for name in told if name.split()[0] == str(j)]
            finding = trend(place, its[0]) if its else None
            if finding is not None:
                yield in_coordinate(finding, j + 1)


class SpreadTrends(CentreTrends):
    """Spreads of coordinates that go with the prediction of another."""

    def _rest(self, targets: NDArray) -> NDArray:
        return JointClaims._rest(self, targets)

    def quantities(self, rest: NDArray, cases: NDArray | slice) -> NDArray:
        """Mean products of squares and columns."""
        squares = rest**2 / np.maximum(np.mean(rest**2, axis=0), 1e-300)
        return (squares.T @ self.trend[cases]).ravel() / len(rest)

    def ratios(self, targets: NDArray) -> Mapping[str, Ratio]:
        """All of them."""
        squares = np.stack([self._rest(sets) for sets in targets]) ** 2
        return {
            f"{j} {k}": Ratio(squares[..., place] * line, squares[..., place], False)
            for place, j in enumerate(self.chosen)
            for k, line in enumerate(self.trend.T)
        }

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The group that shows it best, for each coordinate."""
        z = self._residuals(targets)

        def trend(place: int, found: Found) -> Finding | None:
            about, values = fitted(log_spread_of, self.columns.columns, z[:, place])
            manner, reach = spreads(about, self.vectors.units), found.reach
            told = trend_finding(manner, values, self.summaries, reach, found.pvalue, self.groups)
            return carried_trend(told, found.carried, found.cases)

        return list(self._told(told, trend))


class CorrelationTrends(JointClaims):
    """Correlations of pairs of coordinates that go with a prediction."""

    def __init__(self, vectors: VectorClaims, draw: Callable[[int], NDArray]) -> None:
        """`draw` gives so many sets of targets of the predictions."""
        super().__init__(vectors)
        self.draw = draw
        self.pairs = list(combinations(range(len(self.chosen)), 2))
        self.names = [f"{a} {b} {k}" for a, b in self.pairs for k in range(self.trend.shape[1])]

    def quantities(self, rest: NDArray, cases: NDArray | slice) -> NDArray:
        """Mean products of two residuals and a column."""
        u = rest / np.sqrt(np.maximum(np.mean(rest**2, axis=0), 1e-300))
        by_column = np.stack([u.T @ (u * column[:, None]) for column in self.trend[cases].T], axis=-1)
        first, second = (np.array([pair[end] for pair in self.pairs], dtype=int) for end in (0, 1))
        return by_column[first, second].ravel() / len(u)

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """The group that shows it best, for the clearest pairs."""
        z = self._residuals(targets)
        return clearest_pairs(told, lambda a, b, found: self._pair(a, b, z, found))

    def _pair(self, a: int, b: int, z: NDArray, found: Found) -> Finding | None:
        about, values = fitted(correlation_of, self.columns.columns, z[:, [a, b]])
        best = best_contrast(about, values, self.summaries, self.groups)
        if best is None:
            return None
        drawn = self.vectors.residuals(self.draw(_DRAWN))[..., self.chosen][..., [a, b]]

        def predicted(where: NDArray) -> float:
            return float(np.tanh(correlation_of(drawn[:, where].reshape(-1, 2))[0]))

        names = " and ".join(str(self.chosen[place] + 1) for place in (a, b))
        return correlation_finding(f"coordinates {names}", best, predicted, found.reach, found.pvalue)


def clearest_pairs(
    told: Mapping[str, Found], tell: Callable[[int, int, Found], Finding | None]
) -> list[Finding]:
    """Findings about the pairs of coordinates that are clearest."""
    out: dict[tuple[int, int], Finding] = {}
    for name, found in told.items():
        a, b, _ = map(int, name.split())
        if (a, b) in out or len(out) == MOST_PAIRS:
            continue
        finding = tell(a, b, found)
        if finding is not None:
            out[a, b] = finding
    return list(out.values())


class OtherCentres(Claims):
    """Centres of the coordinates that are not looked at one by one."""

    def __init__(self, vectors: VectorClaims) -> None:
        self.vectors = vectors
        dimension = vectors.unit.shape[1]
        self.others: Sequence[int] = [j for j in range(dimension) if j not in set(vectors.chosen)]
        self.names = [f"{j}" for j in self.others]

    def scores(self, targets: NDArray) -> NDArray:
        """Mean residuals."""
        return self.vectors.residuals(targets)[..., list(self.others)].mean(axis=1)

    def estimator(self, targets: NDArray) -> Estimator:
        """From residuals of all cases."""
        z = self.vectors.residuals(targets[None])[0][:, list(self.others)]
        return lambda cases: z[cases].mean(axis=0)

    def expected(self, scores: NDArray) -> NDArray:
        """No shift."""
        return np.zeros(len(self.names))

    def tell(self, told: Mapping[str, Found], every: Mapping[str, Found], targets: NDArray) -> list[Finding]:
        """Coordinates that are too high or too low."""
        return [
            replace(in_coordinate(shift_finding(told[name], self.vectors.units), int(name) + 1))
            for name in told
        ]
