"""``wellcal plot``: the figures."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Annotated, Any

import typer

from wellcal.cli.building import Command
from wellcal.cli.comparing import Names, names_of
from wellcal.cli.inputs import column_of, described, read, segment_columns
from wellcal.cli.options import ReadOptions, TestOptions
from wellcal.cli.screen import end, show

ENDINGS = (".svg", ".png", ".pdf")


class Picture:
    """What figures are drawn from: cases, and a test of the first model that is run once."""

    def __init__(self, given: ReadOptions, options: TestOptions, cases: Any) -> None:
        self.given, self.cases, self.seed = given, cases, options.seed
        self.resamples = options.resamples
        self.y, self.models = cases.y, cases.models
        self.pred = next(iter(cases.models.values()))
        self.verdict, self.rejected = "", False
        self.found: dict[str, Any] = {}

    @property
    def drawing(self) -> dict[str, Any]:
        """Seed and number of resamples."""
        return {"rng": self.seed, "n_resamples": self.resamples}

    def say(self, verdict: str, rejected: bool, found: Any) -> None:
        """What the figure shows, in a sentence, and all that it was drawn from, for JSON."""
        self.verdict, self.rejected, self.found = verdict, bool(rejected), found.to_dict()

    def tested(self, **options: Any) -> Any:
        """The test of the first model."""
        import wellcal as wc

        groups = column_of(self.cases, self.given.groups)
        result = wc.calibration_test(self.y, self.pred, groups=groups, **self.drawing, **options)
        self.say(result.verdict, result.rejected, result)
        return result

    def searched(self) -> Any:
        """Groups of cases that err, of the first model."""
        import wellcal as wc

        found = wc.witness(
            self.y,
            self.pred,
            segments=segment_columns(self.cases, self.given),
            weights=column_of(self.cases, self.given.weights),
            rng=self.seed,
            n_resamples=self.resamples or 999,
        )
        self.say(found.in_words().headline, found.pvalue <= found.alpha, found)
        return found

    def several(self, display: Any, **options: Any) -> Any:
        """All models on one axes; the title is the verdict of the first where it is alone."""
        alone = len(self.models) == 1
        result = self.tested() if alone else None
        if not alone:
            self.compared()
        drawn: Any = None
        for name, pred in self.models.items():
            drawn = display.from_predictions(
                self.y,
                pred,
                name=None if alone else name,
                ax=None if drawn is None else drawn.ax_,
                result=result,
                rng=self.seed,
                **options,
            )
        return drawn

    def compared(self) -> Any:
        """The comparison of all models."""
        import wellcal as wc

        if len(self.models) < 2:
            raise ValueError("a second model is needed: name its columns, e.g. --versus-normal mu_b,sigma_b")
        weights = column_of(self.cases, self.given.weights)
        compare: Any = wc.compare
        found = compare(self.y, self.models, weights=weights, **self.drawing)
        self.say(found.in_words().headline, bool(found.shown), found)
        return found


def _reliability(p: Picture) -> Any:
    from wellcal.displays import ReliabilityDisplay

    return p.several(ReliabilityDisplay)


def _pit(p: Picture) -> Any:
    from wellcal.displays import PITDisplay

    return p.several(PITDisplay)


def _ecdf(p: Picture) -> Any:
    from wellcal.displays import PITDisplay

    return p.several(PITDisplay, kind="ecdf")


def _quantiles(p: Picture) -> Any:
    from wellcal.displays import QuantileCalibrationDisplay

    return p.several(QuantileCalibrationDisplay)


def _coverage(p: Picture) -> Any:
    from wellcal.displays import CoverageDisplay

    return p.several(CoverageDisplay)


def _residuals(p: Picture) -> Any:
    from wellcal.displays import ResidualDisplay
    from wellcal.displays.against import differing

    against = next(iter(differing(*p.models.values())), "mean")
    return p.several(ResidualDisplay, against=against)


def _coordinates(p: Picture) -> Any:
    from wellcal.displays import CoordinatesDisplay

    return p.several(CoordinatesDisplay)


def _correlations(p: Picture) -> Any:
    from wellcal.displays import CorrelationsDisplay

    return p.several(CorrelationsDisplay)


def _witness(p: Picture) -> Any:
    from wellcal.displays import WitnessDisplay

    return WitnessDisplay.from_result(p.searched())


def _map(p: Picture) -> Any:
    from wellcal.displays import WitnessMapDisplay

    return WitnessMapDisplay.from_result(p.searched())


def _segments(p: Picture) -> Any:
    from wellcal.displays import SegmentsDisplay
    from wellcal.reporting.segmenting import segments_alone

    columns = segment_columns(p.cases, p.given)
    if columns is None:
        raise ValueError("--segments is needed for this figure: name the columns whose groups are tested")
    groups = column_of(p.cases, p.given.groups)
    found = segments_alone(p.y, p.pred, columns, groups=groups, seed=p.seed, n_resamples=p.resamples)
    p.say(found.verdict, bool(found.rejected), found)
    return SegmentsDisplay.from_result(found)


def _null(p: Picture) -> Any:
    from wellcal.displays import NullDisplay

    return NullDisplay.from_result(p.tested(keep_null=True))


def _comparison(p: Picture) -> Any:
    from wellcal.displays import ComparisonDisplay

    return ComparisonDisplay.from_result(p.compared())


def _monitor(p: Picture) -> Any:
    import wellcal as wc
    from wellcal.displays import MonitorDisplay

    monitor = wc.Monitor(rng=p.seed, history=max(len(p.y), 1))
    status = monitor.update(p.y, p.pred)
    p.say(status.verdict, status.alarm, status)
    return MonitorDisplay.from_result(monitor, change=monitor.change(rng=p.seed) if status.alarm else None)


def _recalibration(p: Picture) -> Any:
    from wellcal.displays import RecalibrationDisplay
    from wellcal.recalibration import cross_fit

    found = cross_fit(p.y, p.pred, **p.drawing)
    p.say(found.verdict, found.after.rejected, found)
    return RecalibrationDisplay.from_result(found, rng=p.seed)


KINDS: dict[str, Callable[[Picture], Any]] = {
    "reliability": _reliability,
    "pit": _pit,
    "ecdf": _ecdf,
    "quantiles": _quantiles,
    "coverage": _coverage,
    "residuals": _residuals,
    "coordinates": _coordinates,
    "correlations": _correlations,
    "segments": _segments,
    "witness": _witness,
    "map": _map,
    "null": _null,
    "comparison": _comparison,
    "monitor": _monitor,
    "recalibration": _recalibration,
}
SEGMENTED, WEIGHTED = ("segments", "witness"), ("witness", "map", "comparison")
CURVES = ("reliability", "pit", "ecdf", "quantiles", "coverage", "residuals", "coordinates", "correlations")
GROUPED, SEVERAL = (*CURVES, "segments"), (*CURVES, "comparison")
"""Figures that an option has a meaning for: segments, weights, groups of cases, further models."""

SEARCHING = ("witness", "map")
"""Figures of a search for groups of cases."""


def run(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help=f"One of {', '.join(KINDS)}.", show_default=False)
    ],
    given: ReadOptions,
    options: TestOptions,
    out: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the picture goes: .svg, .png or .pdf.")
    ] = None,
    names: Names = None,
) -> None:
    """Draw a figure."""
    from wellcal._arrays.checks import one_of
    from wellcal._arrays.files import check_suffix, write_whole

    one_of(kind, "kind of figure", KINDS)
    refuse_meaningless(kind, given)
    path = f"{kind}.svg" if out is None else out
    suffix = check_suffix(path, "a picture", *ENDINGS)
    cases = read(given, names_of(names), searched=kind in SEARCHING)
    picture = Picture(given, options, cases)
    figure = drawn(lambda: KINDS[kind](picture).figure_)
    write_whole(path, image(figure, suffix))
    show(
        "plot",
        picture.verdict,
        [
            f"  written  {path}",
            f"  cases    {len(cases.y):,}",
            f"  columns  {next(iter(cases.taken.values()))}",
        ],
        to=options.json,
        content=lambda: {
            **described(given, cases),
            "kind": kind,
            "written": path,
            "seed": options.seed,
            "rejected": picture.rejected,
            "result": picture.found,
        },
        bad=picture.rejected,
    )
    end(picture.rejected, options.fail_on_reject)


def refuse_meaningless(kind: str, given: ReadOptions) -> None:
    """Refuse options that a figure would not heed."""
    versus = f"versus-{given.versus[0][0].replace('_', '-')}" if given.versus else "versus"
    for name, value, able in (
        ("segments", given.segments, SEGMENTED),
        ("weights", given.weights, WEIGHTED),
        ("groups", given.groups, GROUPED),
        (versus, given.versus, SEVERAL),
    ):
        if value and kind not in able:
            raise ValueError(f"--{name} has no meaning for this figure; it is for {' and '.join(able)}")
    if given.groups and given.versus:
        raise ValueError(
            "--groups has no meaning for several models: the comparison takes cases as independent; draw "
            "each model by itself"
        )


def drawn(figure: Callable[[], Any]) -> Any:
    """A figure, drawn without a window."""
    try:
        import matplotlib
    except ImportError:
        raise ImportError("figures need matplotlib: pip install 'wellcal[plot]'") from None
    matplotlib.use("agg")
    return figure()


def image(figure: Any, ending: str) -> str | bytes:
    """What a file of a figure holds."""
    from wellcal.displays import style, to_svg

    if ending == ".svg":
        return '<?xml version="1.0" encoding="utf-8"?>\n' + to_svg(figure)
    found = io.BytesIO()
    with style("light"):
        figure.savefig(found, format=ending[1:], dpi=200)
    return found.getvalue()


COMMANDS = {
    "plot": Command(
        run,
        """Draw one figure into a file; its title is the verdict.""",
        (
            "wellcal plot reliability preds.csv --target label --probs 'p_*' --out r.svg",
            "wellcal plot pit preds.parquet --target y --normal mu,sigma --out pit.png",
            "wellcal plot coverage preds.csv --normal mu_a,sigma_a --versus-normal mu_b,sigma_b --names a,b",
            "wellcal plot segments preds.csv --target y --normal mu,sigma --segments region,channel",
        ),
        versus=True,
    )
}
