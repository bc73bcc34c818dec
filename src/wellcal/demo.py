"""A first look: ``wellcal demo`` trains small models and says whether, and where, they err.

The data are bundled with scikit-learn and all seeds are fixed, so the numbers are the same on every run.
"""

from __future__ import annotations

if __name__ == "__main__":
    from wellcal._arrays.commands import run_module

    run_module("wellcal.demo")

import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np

import wellcal as wc
from wellcal._arrays.namespaces import Array
from wellcal.kernels.algebra import Tensor
from wellcal.kernels.base import Kernel
from wellcal.predictions.base import Predictions

_SEED = 0
_LEVEL = 0.9  # of intervals
_ALPHA = 0.05
_WIDTH = 55  # of a reading
_LINE = 100
_TOLD = 2  # findings of a model


@dataclass(frozen=True)
class Task:
    """Targets that were held out, and what each model predicted for them."""

    title: str
    note: str
    y: Array
    models: dict[str, Predictions]
    plain: Callable[[Array, Any], str]


def _sklearn(room: str) -> Any:
    """A module of scikit-learn, which ships no types."""
    return import_module(f"sklearn.{room}")


def diabetes() -> Task:
    """Regression: one model with a posterior predictive, one that trusts its training errors."""
    x, y = _sklearn("datasets").load_diabetes(return_X_y=True)
    split = _sklearn("model_selection").train_test_split(x, y, test_size=0.5, random_state=_SEED)
    x_train, x_test, y_train, y_test = split
    ridge = _sklearn("linear_model").BayesianRidge().fit(x_train, y_train)
    mean, deviation = ridge.predict(x_test, return_std=True)
    forest = _sklearn("ensemble").RandomForestRegressor(random_state=_SEED).fit(x_train, y_train)
    residual = float((y_train - forest.predict(x_train)).std())  # too small: the forest has seen these cases
    forest_mean = forest.predict(x_test)
    return Task(
        title=f"Regression: diabetes progression, {len(y_train)} patients to train and {len(y_test)} to test",
        note="Each predicts a normal distribution; the forest's spread is that of its errors in training.",
        y=y_test,
        models={
            "Bayesian ridge": wc.Normal(mean, deviation),
            "random forest": wc.Normal(forest_mean, np.full(len(y_test), residual)),
        },
        plain=_interval_coverage,
    )


def digits() -> Task:
    """Classification: logistic regression, and naive Bayes, which counts the same evidence many times."""
    x, y = _sklearn("datasets").load_digits(return_X_y=True)
    split = _sklearn("model_selection").train_test_split(
        x / 16.0, y, test_size=0.5, random_state=_SEED, stratify=y
    )
    x_train, x_test, y_train, y_test = split
    logistic = _sklearn("linear_model").LogisticRegression(C=10.0, max_iter=1000).fit(x_train, y_train)
    bayes = _sklearn("naive_bayes").GaussianNB().fit(x_train, y_train)
    return Task(
        title=f"Classification: handwritten digits, {len(y_train)} images to train and {len(y_test)} to test",
        note="Each predicts the probabilities of ten classes.",
        y=y_test,
        models={
            "logistic regression": wc.Categorical(logistic.predict_proba(x_test)),
            "naive Bayes": wc.Categorical(bayes.predict_proba(x_test)),
        },
        plain=_confidence_and_accuracy,
    )


def _interval_coverage(y: Array, pred: wc.Normal) -> str:
    lower, upper = pred.quantile(0.5 - _LEVEL / 2), pred.quantile(0.5 + _LEVEL / 2)
    inside = float(((lower <= y) & (y <= upper)).mean())
    return f"its {_LEVEL:.0%} intervals hold {inside:.0%} of the targets"


def _confidence_and_accuracy(y: Array, pred: wc.Categorical) -> str:
    correct, confidence = wc.confidence(y, pred)
    said, was = float(confidence.mean().mean()), float(correct.mean())
    return f"it is {said:.1%} sure on average, and right in {was:.1%}"


def _verdict(pvalue: float) -> str:
    return "miscalibrated" if pvalue <= _ALPHA else "no miscalibration found"


def table(task: Task) -> list[str]:
    """Lines that show the calibration error of each model, all with the kernel chosen for the first."""
    kernel: Kernel | None = None
    lines = [task.title, task.note, "", f"  {'model':<20}  {'SKCE':>9}  {'p-value':>8}  reading"]
    for name, pred in task.models.items():
        estimate = wc.skce(task.y, pred, kernel=kernel)
        kernel = estimate.kernel
        tested = wc.calibration_test(task.y, pred, rng=_SEED)
        pvalue = tested.pvalue
        shown = f"{'<=' * tested.at_floor}{pvalue:.1g}"
        lines.append(f"  {name:<20}  {estimate.value:>9.5f}  {shown:>8}  {_verdict(pvalue)}:")
        said = [task.plain(task.y, pred)]
        if pvalue <= _ALPHA:
            told = map(str, tested.findings[:_TOLD])
            said += [line for sentence in told for line in textwrap.wrap(sentence, _WIDTH)]
        lines += [f"  {'':<20}  {'':>9}  {'':>8}  {line}" for line in said]
    if isinstance(kernel, Tensor):
        shown = textwrap.wrap(f"kernel  {kernel!r}", _LINE - 2, subsequent_indent=" " * 8)
        lines += ["", *(f"  {line}" for line in shown), ""]
    return lines


def main() -> int:
    """Print both tables; 1 where scikit-learn is missing."""
    try:
        import_module("sklearn")
    except ImportError:
        print(
            "The demonstration trains models with scikit-learn, which is not installed.\n"
            "Install it with: pip install 'wellcal[demo]'",
            file=sys.stderr,
        )
        return 1
    print(f"wellcal {wc.__version__}: do these models' predictions mean what they say?\n")
    for task in (diabetes(), digits()):
        print("\n".join(table(task)))
    print(
        "SKCE, the squared kernel calibration error, is 0 for a calibrated model. Its estimate is unbiased:\n"
        "it scatters around 0 then and may be negative. Compare models within a table: they share a kernel.\n"
        "The p-value is that of an exact test of the hypothesis that the model is calibrated."
    )
    return 0
