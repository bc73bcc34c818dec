"""A first look: ``wellcal demo`` trains models on real data and writes a report on each of them.

The data are bundled with scikit-learn and statsmodels and all seeds are fixed, so the numbers are the same on
every run.
"""

from __future__ import annotations

if __name__ == "__main__":
    from argparse import ArgumentParser

    from wellcal.__main__ import run_module

    ArgumentParser(
        "python -m wellcal.demo",
        description="Write reports on real data into build/demo; wellcal demo --out takes another folder.",
    ).parse_args()
    run_module("wellcal.demo")

import sys
import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import wellcal as wc
from wellcal._arrays.files import write_whole
from wellcal._arrays.namespaces import NDArray
from wellcal._arrays.threads import one_blas_thread
from wellcal.predictions.base import Predictions

FOLDER = "build/demo"
"""Where reports are written, unless somebody says where."""

NEEDED = ("sklearn", "statsmodels", "matplotlib", "jinja2")
_SEED = 0
_WIDTH = 96
_NETWORKS = 8
_TRAINED, _TESTED = 4000, 500  # persons


@dataclass(frozen=True)
class Task:
    """Targets that were held out, and what each model predicted for them.

    Attributes
    ----------
    name
        That of its report, as a file.
    title, note
        What was to be predicted, and by whom.
    y, models
        Targets and predictions.
    segments
        What the models' errors may depend on.
    """

    name: str
    title: str
    note: str
    y: NDArray
    models: Mapping[str, Predictions]
    segments: Mapping[str, NDArray] = field(default_factory=lambda: {})

    def report(self) -> wc.Report:
        """The report on all models."""
        return wc.report(
            self.y, dict(self.models), segments=dict(self.segments) or None, recalibrate=True, rng=_SEED
        )


def _untyped(module: str) -> Any:
    """A module of a library that ships no types."""
    return import_module(module)


def digits() -> Task:
    """Classification: a random forest, whose trees vote."""
    x, y = _untyped("sklearn.datasets").load_digits(return_X_y=True)
    split = _untyped("sklearn.model_selection").train_test_split
    x_train, x_test, y_train, y_test = split(x, y, test_size=0.5, random_state=_SEED, stratify=y)
    forest = _untyped("sklearn.ensemble").RandomForestClassifier(random_state=_SEED).fit(x_train, y_train)
    return Task(
        "digits",
        "Which digit is it?",
        f"A random forest looks at images of handwritten digits: {len(y_train)} to learn from, and "
        f"{len(y_test)} others.",
        y_test,
        {"random forest": wc.Categorical(forest.predict_proba(x_test))},
    )


def diabetes() -> Task:
    """Regression: a network that trusts its errors in training, and an ensemble of such networks."""
    x, y = _untyped("sklearn.datasets").load_diabetes(return_X_y=True)
    split = _untyped("sklearn.model_selection").train_test_split
    x_train, x_test, y_train, y_test = split(x, y, test_size=0.5, random_state=_SEED)
    scaling = _untyped("sklearn.preprocessing").StandardScaler().fit(x_train)
    centre, unit = float(y_train.mean()), float(y_train.std())
    regressor = _untyped("sklearn.neural_network").MLPRegressor
    members: list[wc.Normal] = []
    for member in range(_NETWORKS):
        rows = np.random.default_rng(member).integers(len(y_train), size=len(y_train))
        seen, wanted = scaling.transform(x_train[rows]), (y_train[rows] - centre) / unit
        network = regressor(
            hidden_layer_sizes=(20,), alpha=0.1, learning_rate_init=0.003, max_iter=300, random_state=member
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it stops early on purpose
            network.fit(seen, wanted)
        spread = unit * float((wanted - network.predict(seen)).std())
        means = centre + unit * network.predict(scaling.transform(x_test))
        members.append(wc.Normal(means, np.full(len(y_test), spread)))
    return Task(
        "diabetes",
        "How will the disease progress?",
        f"A small neural network and an ensemble of {_NETWORKS} predict normal distributions for "
        f"{len(y_test)} patients after seeing {len(y_train)}; spreads are those of errors in training.",
        y_test,
        {"network": members[0], "ensemble": wc.Mixture(members)},
    )


def one_year_each(data: Any, observed: str) -> Any:
    """The first year of each person, where a row is a year, below the years before it.

    These differ in what was observed alone. They are not independent, and nobody is to be both among those
    that a model has seen and among those that judge it.

    Parameters
    ----------
    data
        A data frame.
    observed
        Its column of targets.

    Examples
    --------
    >>> import pandas as pd
    >>> one_year_each(
    ...     pd.DataFrame({"age": [30, 30, 41, 30], "visits": [1, 0, 2, 5]}), "visits"
    ... ).visits.tolist()
    [1, 2, 5]
    """
    known = data.drop(columns=observed)
    return data[(known != known.shift()).any(axis=1)]


def visits() -> Task:
    """Counts: Poisson regression, and one that lets counts vary more."""
    data = _untyped("statsmodels.api").datasets.randhie.load_pandas().data
    data = one_year_each(data, "mdvis")
    rows = np.random.default_rng(_SEED).permutation(len(data))
    train, test = rows[:_TRAINED], rows[_TRAINED : _TRAINED + _TESTED]
    discrete = _untyped("statsmodels.discrete.discrete_model")
    x, y = data.drop(columns="mdvis").assign(constant=1.0), data["mdvis"].to_numpy()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # steps of the optimiser that overflow, and are taken back
        poisson = discrete.Poisson(y[train], x.iloc[train]).fit(disp=0)
        binomial = discrete.NegativeBinomial(y[train], x.iloc[train]).fit(disp=0, maxiter=200)
    means = binomial.predict(x.iloc[test]).to_numpy()
    spread = np.full(len(test), float(binomial.params["alpha"]))
    health = data[["hlthg", "hlthf", "hlthp"]].to_numpy()[test]
    worst = np.where(health.any(axis=1), 1 + health.argmax(axis=1), 0)
    return Task(
        "visits",
        "How often will they see a doctor?",
        f"Two regressions for counts, fitted to {len(train):,} persons of the RAND health insurance "
        f"experiment, predict the visits of {len(test):,} others in a year; one year of each person.",
        y[test],
        {
            "Poisson": wc.Poisson(poisson.predict(x.iloc[test]).to_numpy()),
            "negative binomial": wc.NegativeBinomial(means, spread),
        },
        {"self-rated health": np.array(["excellent", "good", "fair", "poor"])[worst]},
    )


def _indented(text: str) -> str:
    return textwrap.fill(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


TASKS = (digits, diabetes, visits)


def _missing() -> list[str]:
    """Packages that are needed and not there."""
    names = {"sklearn": "scikit-learn"}
    return [names.get(name, name) for name in NEEDED if find_spec(name) is None]


def main(folder: str | Path = FOLDER) -> int:
    """Write the reports and a page that leads to them, and print the verdicts; 1 where a package is missing.

    Parameters
    ----------
    folder
        Where to; it is made where it is not there.
    """
    missing = _missing()
    if missing:
        print(
            f"The demonstration needs {', '.join(missing)}, which this environment does not have.\n"
            "Install all of it with: pip install 'wellcal[demo]'",
            file=sys.stderr,
        )
        return 1
    from wellcal.reporting.page import Entry, index_page

    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    print(f"wellcal {wc.__version__}: do these models' predictions mean what they say?\n", flush=True)
    entries: list[Entry] = []
    for make in TASKS:
        with one_blas_thread():  # matrices are small: more threads would wait for each other
            task = make()
            report = task.report()
            report.to_html(where / f"{task.name}.html")
        entries.append(Entry(f"{task.name}.html", task.title, task.note, report))
        told = [report.line, report.verdict, f"{where / task.name}.html"]
        print(task.title, *map(_indented, told), "", sep="\n", flush=True)
    write_whole(where / "index.html", index_page("Do these models mean what they say?", entries))
    print(f"All reports: {where / 'index.html'}")
    return 0
