"""Several models in one table, best first."""

from __future__ import annotations

from wellcal.comparison import Comparisons
from wellcal.comparison.several import Pair
from wellcal.measures.estimate import Estimate
from wellcal.measures.presentation import at_floor, pvalue_text
from wellcal.reporting.first_screen import rejected, sentence
from wellcal.reporting.result import ModelReport, Report
from wellcal.reporting.view import NOTHING, Cell, Table, number_cell


def models_table(report: Report) -> Table:
    """Verdict, size, score and difference from the best model, a row for each; ties are called ties."""
    score = next(iter(report.best.scores), None)
    header = [Cell("Model"), Cell("Verdict"), Cell("p-value", number=True), Cell("How large")]
    if score is not None:
        header.append(Cell(f"{score} (lower is better)", number=True))
    if report.comparison is not None:
        header.append(Cell("Difference from the best", number=True))
    rows = [_row(report, rank, model, score) for rank, model in enumerate(report.models)]
    return Table(header, rows)


def _row(report: Report, rank: int, model: ModelReport, score: str | None) -> list[Cell]:
    test, size = model.test, model.yardstick
    found = "Miscalibrated" if rejected(model) else "No miscalibration found"
    told = "; ".join(finding.short for finding in test.findings[:2])
    sign = "≤ " if at_floor(test.pvalue, test.pvalue_floor) else ""
    cells = [
        Cell(model.name, value=rank),
        Cell(found, under=sentence(told)),
        number_cell(f"{sign}{pvalue_text(test.pvalue)}", test.pvalue),
    ]
    if size is None or not rejected(model):
        cells.append(Cell("not shown" if not rejected(model) else "not known", value=0.0))
    else:
        cells.append(Cell(size.size, value=size.share, under=size.sentence))
    if score is not None:
        cells.append(estimate_cell(model.scores.get(score)))
    if report.comparison is not None:
        cells.append(_difference(report.comparison, report.best.name, model.name))
    return cells


def estimate_cell(estimate: Estimate | None) -> Cell:
    """A number with its interval below it, where there is one."""
    if estimate is None:
        return NOTHING
    under = ""
    if estimate.standard_error is not None or estimate.cases is not None:
        interval = estimate.confidence_interval()
        under = f"{interval.low:.4g} to {interval.high:.4g}"
    return number_cell(f"{float(estimate):.4g}", float(estimate), under)


def _difference(comparison: Comparisons, best: str, name: str) -> Cell:
    if name == best:
        return Cell("best", value=0.0, number=True)
    pair = _pair(comparison, best, name)
    found = pair.differences[0]
    sign = 1.0 if pair.second == best else -1.0  # the other model less the best one
    interval = found.confidence_interval()
    low, high = sorted((sign * interval.low, sign * interval.high))
    tie = "" if pair in comparison.shown else "; a tie"
    under = f"{low:.2g} to {high:.2g}{tie}"
    return number_cell(f"{found.measure} {sign * found.value:+.2g}", sign * found.value, under)


def _pair(comparison: Comparisons, first: str, second: str) -> Pair:
    return next(pair for pair in comparison.pairs if {pair.first, pair.second} == {first, second})
