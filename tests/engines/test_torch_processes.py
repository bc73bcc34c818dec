"""CalibrationMetric in two processes, with torchmetrics and without: each returns the value of all cases.

A process of its own sees, too, what importing the loss imports.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import wellcal as wc

from ..processes import run_python

# Forked after the imports, which take longer than all the rest, and before any thread.
SCRIPT = """
import os, sys
import wellcal.torch
print("torchmetrics" in sys.modules, "torch" in sys.modules, flush=True)
import torch, torch.distributed as dist

import wellcal as wc
from wellcal.torch.metric import CalibrationMetric
with_torchmetrics = CalibrationMetric
sys.modules["torchmetrics"] = None
del sys.modules["wellcal.torch.metric"]
from wellcal.torch.metric import CalibrationMetric as alone
assert with_torchmetrics.__mro__[1].__module__ == "torchmetrics.metric"
assert alone.__mro__[1].__module__ == "wellcal.torch.streaming"

child = os.fork()
rank = int(child == 0)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[1]}/meeting", rank=rank, world_size=2)
mu = torch.linspace(-1.0, 1.0, 10, dtype=torch.float64)
y = mu.sin() + 0.3
own = slice(0, 3) if rank == 0 else slice(3, 10)
with open(f"{sys.argv[1]}/{rank}", "w") as file:
    for kind in (with_torchmetrics, alone):
        metric = kind()
        metric.update(wc.Normal(mu, torch.ones(10).double())[own], y[own])
        print(float(metric.compute()), file=file)
dist.destroy_process_group()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_two_processes(tmp_path: Path) -> None:
    mu = np.linspace(-1.0, 1.0, 10)
    expected = float(wc.skce(np.sin(mu) + 0.3, wc.Normal(mu, 1.0)))
    done = run_python("-c", SCRIPT, str(tmp_path), GLOO_SOCKET_IFNAME="lo")
    assert done.stdout.split() == ["False", "True"], "the loss needs PyTorch, and not torchmetrics"
    for rank in range(2):
        values = [float(line) for line in (tmp_path / str(rank)).read_text().split()]
        assert values == pytest.approx([expected, expected], rel=1e-12)
