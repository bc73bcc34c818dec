"""Files of predictions, and the command in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from wellcal.cli import app

N = 60


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files with the names of the examples, written once."""
    where = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(0)
    mu = rng.normal(size=N)
    y = rng.normal(mu, 1.0)
    p = rng.dirichlet(np.ones(3), size=N)
    label = np.array(["cat", "dog", "eel"])[(p.cumsum(axis=1) < rng.random((N, 1))).sum(axis=1)]
    table = pa.table(
        {
            "y": y,
            "mu": mu,
            "sigma": np.full(N, 0.4),
            "mu_a": mu,
            "sigma_a": np.ones(N),
            "mu_b": mu + 1.5,
            "sigma_b": np.ones(N),
            "label": label,
            "p_cat": p[:, 0],
            "p_dog": p[:, 1],
            "p_eel": p[:, 2],
            "region": np.where(mu > 0, "north", "south"),
            "patient": np.arange(N) // 2,
            "weight": rng.random(N),
        }
    )
    pq.write_table(table, where / "preds.parquet")
    csv.write_csv(table, where / "preds.csv")
    csv.write_csv(table.select(["y", "mu", "sigma"]), where / "stream.csv")
    csv.write_csv(
        table.select(["y", "mu_a", "sigma_a"]).rename_columns(["y", "mu", "sd"]), where / "good.csv"
    )
    return where


@pytest.fixture
def run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run the command in the folder of the files; `expect` is its status."""
    monkeypatch.chdir(folder)

    def called(*arguments: str, expect: int = 0, text: str | bytes | None = None) -> Any:
        done = CliRunner().invoke(app, arguments, input=text, prog_name="wellcal", catch_exceptions=False)
        assert done.exit_code == expect, done.output
        return done

    return called
