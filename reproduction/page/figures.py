"""The paper's figures, from our numbers; published numbers are open markers."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from reproduction import published
from reproduction.experiments import decisions, estimators, friedman, ols
from reproduction.page.displays import Curve, CurvesDisplay, DensityDisplay, ProportionsDisplay
from reproduction.store import write_through
from wellcal.displays import COLOURS, CYCLE, MARKERS, QuantileCalibrationDisplay, style

_PUBLISHED = {"published": "o"}
_PUBLISHED_BOTH = {"published mean": "o", "published ensemble": "s"}


def save(figure: Any, folder: Path, name: str) -> None:
    """Write a figure as SVG and PNG, the same bytes for the same figure, and close it."""
    with style() as pyplot:
        for kind, options in (("svg", {"metadata": {"Date": None}}), ("png", {})):
            drawn = io.BytesIO()
            figure.savefig(drawn, format=kind, **options)
            write_through(folder / f"{name}.{kind}", drawn.getvalue())
            figure.set_layout_engine("none")  # all stays where it was put
        pyplot.close(figure)


def _subplots(rows: int, columns: int, size: tuple[float, float], **options: Any) -> tuple[Any, Any]:
    with style() as pyplot:
        return pyplot.subplots(rows, columns, figsize=size, layout="constrained", squeeze=False, **options)


def _legend(
    figure: Any, ax: Any, *, columns: int = 1, open_markers: dict[str, str] = _PUBLISHED, where: str
) -> None:
    """One legend for the whole figure, from the curves of `ax`, and open markers by name."""
    with style():
        handles, labels = ax.get_legend_handles_labels()
        handles += [_open_marker(marker) for marker in open_markers.values()]
        figure.legend(handles, [*labels, *open_markers], loc=where, ncols=columns)


def _open_marker(marker: str) -> Any:
    from matplotlib.lines import Line2D

    grey = COLOURS["grey"]
    return Line2D([], [], linestyle="", marker=marker, color=grey, markersize=9, markerfacecolor="none")


def _cases_axis(ax: Any, sizes: list[int]) -> None:
    ax.set_xlabel("number of cases")
    ax.set_xticks(sizes, [str(n) for n in sizes])
    ax.minorticks_off()


def _log_axis(axis: Any, unit: str | None = None) -> None:
    """Ticks of a logarithmic axis: powers of ten, and 2 and 5 times these where that leaves too few."""
    from matplotlib.ticker import EngFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    decades = np.log10(high / low)
    axis.set_major_locator(LogLocator(10.0, (1.0, 2.0, 5.0) if decades < 2.0 else (1.0,), numticks=12))
    axis.set_minor_formatter(NullFormatter())
    if unit is not None:
        axis.set_major_formatter(EngFormatter(unit))
    elif decades < 2.0:
        axis.set_major_formatter("{x:g}")


# -- ordinary least squares ------------------------------------------------------------------


def draw_ols(summary: ols.Summary, folder: Path) -> list[str]:
    """Density heat maps, quantile calibration curve, and rejections over repetitions."""
    fit = summary.fit
    x, y = np.linspace(-1.0, 1.0, 401)[1:], np.linspace(-2.0, 2.0, 401)
    points = fit.train_x, fit.train_y
    figure, axes = _subplots(1, 2, (8.0, 3.4), sharey=True)
    displays = [
        DensityDisplay.from_model(ols.true_distribution, x, y, points=points, title="data: P(Y | X)"),
        DensityDisplay.from_model(fit.predict, x, y, points=points, title="model: N(a + b X, s²)"),
    ]
    for display, ax in zip(displays, axes[0], strict=True):
        display.plot(ax, largest=1.0)
    axes[0, 1].set_ylabel("")
    with style():
        figure.colorbar(displays[0].image_, ax=axes[0].tolist(), label="density", extend="max")
    save(figure, folder, "ols-density")

    display = QuantileCalibrationDisplay.from_predictions(
        fit.y, fit.predict(fit.x), name="straight line, 50 cases"
    )
    save(display.figure_, folder, "ols-quantiles")

    names = {
        "bootstrap": "bootstrap, authors",
        "bootstrap, n SKCE_u": "bootstrap, n SKCE_u",
        "exact": "exact test",
        "quantiles": "quantile check",
    }
    display = ProportionsDisplay(
        list(names.values()),
        {model: [summary.rejections[model, check] for check in names] for model in ols.MODELS},
        summary.repetitions,
        xlabel=f"rejections at level 0.05, of {summary.repetitions} repetitions",
        reference=ols.ALPHA,
    ).plot()
    with style():
        display.ax_.legend(loc="upper center", bbox_to_anchor=(0.5, 1.22), ncols=2)
    save(display.figure_, folder, "ols-rejections")
    return ["ols-density", "ols-quantiles", "ols-rejections"]


# -- estimators ------------------------------------------------------------------------------


def draw_estimators(summary: estimators.Summary, folder: Path) -> list[str]:
    """Mean absolute error and variance against number of cases and time; a figure by model and dimension."""
    names: list[str] = []
    for model in published.MODELS:
        for d in published.DIMENSIONS:
            name = f"estimators-{model}-d{d}"
            save(_estimators_figure(summary, model, d), folder, name)
            names.append(name)
    return names


def _estimators_figure(summary: estimators.Summary, model: str, d: int) -> Any:
    sizes = list(summary.sizes.cases)
    figure, axes = _subplots(2, 2, (8.0, 5.6), sharex="col", sharey="row")
    labels = ("mean absolute error", "variance")
    for row, (what, label) in enumerate(zip(estimators.NUMBERS, labels, strict=True)):
        by_cases: list[Curve] = []
        by_time: list[Curve] = []
        for name in estimators.ESTIMATORS:
            found = [summary.numbers[model, d, n, name, what] for n in sizes]
            values, theirs = [float(np.mean(c.repeats)) for c in found], [c.published for c in found]
            by_cases.append(Curve(sizes, values, _estimator_label(name), published=theirs))
            by_time.append(Curve([summary.seconds[model, d, n, name] for n in sizes], values))
        CurvesDisplay(by_cases, ylabel=label, xscale="log", yscale="log").plot(axes[row, 0])
        CurvesDisplay(by_time, xscale="log", yscale="log").plot(axes[row, 1])
        _log_axis(axes[row, 0].yaxis)
    _cases_axis(axes[1, 0], sizes)
    axes[1, 1].set_xlabel("time")
    _log_axis(axes[1, 1].xaxis, "s")
    with style():
        figure.suptitle(f"{model} model, d = {d}", fontsize=11)
    _legend(figure, axes[0, 0], columns=5, where="outside lower center")
    return figure


def _estimator_label(name: str) -> str:
    return {"SKCE": "biased", "SKCE (B = n)": "unbiased (B = n)"}.get(name, name.removeprefix("SKCE (")[:-1])


# -- tests -----------------------------------------------------------------------------------

_TEST_LABELS = {
    "SKCE (B = 2)": "block, B = 2",
    "SKCE (B = √n)": "block, B = √n",
    "SKCE (B = n)": "bootstrap, authors",
    "CME": "CME, chi-square",
    "bootstrap, n SKCE_u": "bootstrap, n SKCE_u",
    "pearson": "pearson",
    "exact": "exact",
    "auto": "auto",
}


_ERROR_NAMES = {"calibrated": "type I error", "uncalibrated": "type II error"}


def draw_tests(summary: decisions.Summary, folder: Path) -> list[str]:
    """Test errors against number of cases and time; a figure by dimension."""
    names: list[str] = []
    for d in published.DIMENSIONS:
        save(_tests_figure(summary, d), folder, f"tests-d{d}")
        names.append(f"tests-d{d}")
    return names


def _tests_figure(summary: decisions.Summary, d: int) -> Any:
    figure, axes = _subplots(2, 2, (8.6, 5.6), sharex="col", sharey="row")
    for row, (model, label) in enumerate(_ERROR_NAMES.items()):
        by_cases: list[Curve] = []
        by_time: list[Curve] = []
        for index, (name, text) in enumerate(_TEST_LABELS.items()):
            cells = {
                n: summary.cells[model, d, n, name]
                for n in summary.sizes.cases
                if (model, d, n, name) in summary.cells
            }
            look: Any = {
                "colour": (*CYCLE, COLOURS["grey"])[index],
                "marker": (*MARKERS, "*")[index],
                "line": "-" if index < len(published.TESTS) else ":",
            }
            by_cases.append(_test_curve(summary, model, d, name, text, look))
            seconds, rates = [c.seconds for c in cells.values()], [c.rate for c in cells.values()]
            by_time.append(Curve(seconds, rates, **look))
        reference = decisions.ALPHA if model == "calibrated" else None
        options: Any = {"xscale": "log", "reference": reference, "ranges": "bars"}
        CurvesDisplay(by_cases, ylabel=label, title=f"{model} model", **options).plot(axes[row, 0])
        _mark_refused(summary, model, d, axes[row, 0])
        CurvesDisplay(by_time, title=f"{model} model", **options).plot(axes[row, 1])
    _cases_axis(axes[1, 0], list(summary.sizes.cases))
    axes[1, 1].set_xlabel("time")
    _log_axis(axes[1, 1].xaxis, "s")
    with style():
        figure.suptitle(f"d = {d}", fontsize=11)
    _legend(figure, axes[0, 0], where="outside right center")
    return figure


def _mark_refused(summary: decisions.Summary, model: str, d: int, ax: Any) -> None:
    """Published errors of tests that wellcal refuses to do."""
    index = list(_TEST_LABELS).index("CME")
    for refused_model, dimension, n, name in summary.refused:
        if (refused_model, dimension) != (model, d):
            continue
        rate = published.decision_errors()[model, d, n, name].rate
        look: Any = {"marker": MARKERS[index], "color": CYCLE[index], "markersize": 9}
        ax.plot([n], [rate], linestyle="", markerfacecolor="none", **look)
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1}
        ax.annotate("CME: refused", (n, rate), (9, -3), textcoords="offset points", fontsize=8, bbox=box)


def _test_curve(summary: decisions.Summary, model: str, d: int, name: str, label: str, look: Any) -> Curve:
    """Error rates beside the published ones; for CME with the range of repeats."""
    sizes = [n for n in summary.sizes.cases if (model, d, n, name) in summary.cells]
    rates = [summary.cells[model, d, n, name].rate for n in sizes]
    known = [summary.numbers.get((model, d, n, name)) for n in sizes]
    theirs = [np.nan if found is None else found.published for found in known]
    drawn: Any = {}
    if name == decisions.CME:
        ranges = [(found.repeats.min(), found.repeats.max()) for found in known if found is not None]
        drawn = {"low": [low for low, _ in ranges], "high": [high for _, high in ranges]}
    return Curve(sizes, rates, label, published=theirs, **drawn, **look)


# -- Friedman --------------------------------------------------------------------------------

_MODEL_COLOURS = {"train": COLOURS["green"], "test": COLOURS["blue"]}
_ENSEMBLE_COLOURS = {"train": COLOURS["orange"], "test": COLOURS["purple"]}
_DATA_NAMES = {"train": "training", "test": "test"}
_ENSEMBLE_LINES = {"ensemble": "-", "published formula": ":", "proven kernel": "--"}


def draw_friedman(summary: friedman.Summary, folder: Path) -> list[str]:
    """All statistics along training, the same enlarged, and the formulas and kernels for the ensemble."""
    last = summary.sizes.iterations
    if summary.sizes.scores:
        save(_friedman_figure(summary, friedman.SCORES[:2], (0, last), (8.6, 3.2)), folder, "friedman")
        return ["friedman"]
    full = ("MSE", "SKCE (unbiased)", "NLL", "SKCE (biased)", "pinball", "p-value")
    save(_friedman_figure(summary, full, (0, last), (8.6, 7.2)), folder, "friedman")
    zoomed = ("MSE", "NLL", "SKCE (biased)", "p-value")
    save(_friedman_figure(summary, zoomed, (10, min(1500, last)), (8.6, 5.0)), folder, "friedman-zoom")
    save(_ensembles_figure(summary), folder, "friedman-ensembles")
    return ["friedman", "friedman-zoom", "friedman-ensembles"]


def _friedman_figure(
    summary: friedman.Summary, statistics: tuple[str, ...], span: tuple[int, int], size: tuple[float, float]
) -> Any:
    rows = len(statistics) // 2
    figure, axes = _subplots(rows, 2, size, sharex=True)
    for statistic, ax in zip(statistics, axes.flat, strict=True):
        curves: list[Curve] = []
        for data in friedman.CASES:
            found = summary.trajectories[data, statistic]
            kept = (found.iterations >= span[0]) & (found.iterations <= span[1])
            x, values = found.iterations[kept], found.models[kept]
            means, ensembles = _published(data, statistic, x)
            name = _DATA_NAMES[data]
            band = values.min(axis=1), values.max(axis=1)
            # By the published formula, where there are two: markers belong to it.
            ensemble = found.ensembles.get("published formula", found.ensembles["ensemble"])[kept]
            look: Any = {"colour": _ENSEMBLE_COLOURS[data], "marker": "", "published": ensembles}
            look["open_marker"] = _PUBLISHED_BOTH["published ensemble"]
            curves += [
                Curve(x, values.mean(axis=1), f"models, {name}", *band, means, _MODEL_COLOURS[data], ""),
                Curve(x, ensemble, f"ensemble, {name}", **look),
            ]
        CurvesDisplay(curves, title=statistic).plot(ax)
        _rescale(ax, statistic)
        ax.set_xlim(*span)
    for ax in axes[-1]:
        ax.set_xlabel("iteration")
    _legend(figure, axes[0, 0], columns=3, open_markers=_PUBLISHED_BOTH, where="outside lower center")
    return figure


def _published(data: str, statistic: str, iterations: Any) -> tuple[list[float], list[float]]:
    """Published means over the models, and published ensembles; not-a-number where there are none."""
    known = {i: cell for (d, i, s), cell in published.friedman().items() if (d, s) == (data, statistic)}
    cells = [known.get(i) for i in iterations.tolist()]
    return (
        [np.nan if cell is None else cell.mean for cell in cells],
        [np.nan if cell is None else cell.ensemble for cell in cells],
    )


def _rescale(ax: Any, statistic: str) -> None:
    if statistic in ("MSE", "pinball", "SKCE (biased)"):
        ax.set_yscale("log")
        _log_axis(ax.yaxis)
    elif statistic == "NLL":
        large = ax.get_ylim()[1] > 1e4
        _asinh_axis(
            ax, 1.0, [0, 10, *(10.0 ** np.arange(3, 20, 2))] if large else [0, 1, 2, 3, 5, 10, 30, 100]
        )
    elif statistic == "SKCE (unbiased)":
        _asinh_axis(ax, 1e-3, [0, 1e-3, 1e-2, 1e-1, 1])


def _asinh_axis(ax: Any, width: float, ticks: list[float]) -> None:
    """A scale that is linear around zero and logarithmic beyond `width`."""
    ax.set_yscale("asinh", linear_width=width)
    ax.autoscale(axis="y")
    low, high = ax.get_ylim()
    kept = [sign * tick for tick in ticks for sign in (-1, 1) if low <= sign * tick <= high]
    ax.set_yticks(sorted(set(kept)), [f"{tick:g}" for tick in sorted(set(kept))])
    ax.minorticks_off()


def _ensembles_figure(summary: friedman.Summary) -> Any:
    figure, axes = _subplots(1, 2, (8.6, 3.6))
    statistic = "SKCE (biased)"
    texts = {
        "ensemble": "ensemble, all pairs",
        "published formula": "ensemble, pairs left out",
        "proven kernel": "ensemble, proven kernel",
    }
    for data, ax in zip(friedman.CASES, axes[0], strict=True):
        found = summary.trajectories[data, statistic]
        kept = found.iterations > 0
        x, grey = found.iterations[kept], COLOURS["grey"]
        means, known = _published(data, statistic, x)
        mean = found.models[kept].mean(axis=1)
        curves = [Curve(x, mean, "mean of models", published=means, colour=grey, marker="")]
        for index, (name, text) in enumerate(texts.items()):
            look: Any = {"colour": CYCLE[index], "marker": "", "line": _ENSEMBLE_LINES[name]}
            compared = known if name == "published formula" else None
            look["open_marker"] = _PUBLISHED_BOTH["published ensemble"]
            curves.append(Curve(x, found.ensembles[name][kept], text, published=compared, **look))
        title = f"{statistic}, {_DATA_NAMES[data]} data"
        CurvesDisplay(curves, xlabel="iteration", title=title, xscale="log", yscale="log").plot(ax)
        _log_axis(ax.yaxis)
    _legend(figure, axes[0, 0], columns=3, open_markers=_PUBLISHED_BOTH, where="outside lower center")
    return figure
