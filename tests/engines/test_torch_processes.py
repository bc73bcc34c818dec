"""CalibrationMetric in two processes, with torchmetrics and without: each returns the value of all cases."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wellcal as wc

SCRIPT = """
import os, sys
import numpy as np, torch, torch.distributed as dist

rank, place = int(sys.argv[1]), sys.argv[2]
import wellcal as wc
from wellcal.torch.metric import CalibrationMetric
with_torchmetrics = CalibrationMetric
sys.modules["torchmetrics"] = None
del sys.modules["wellcal.torch.metric"]
from wellcal.torch.metric import CalibrationMetric as alone
assert with_torchmetrics.__mro__[1].__module__ == "torchmetrics.metric"
assert alone.__mro__[1].__module__ == "wellcal.torch.streaming"

dist.init_process_group("gloo", init_method=f"file://{place}", rank=rank, world_size=2)
mu = torch.linspace(-1.0, 1.0, 10, dtype=torch.float64)
y = mu.sin() + 0.3
own = slice(0, 3) if rank == 0 else slice(3, 10)
for kind in (with_torchmetrics, alone):
    metric = kind()
    metric.update(wc.Normal(mu, torch.ones(10).double())[own], y[own])
    print(float(metric.compute()))
dist.destroy_process_group()
"""


def test_two_processes(tmp_path: Path) -> None:
    import torch

    mu = torch.linspace(-1.0, 1.0, 10, dtype=torch.float64).numpy()
    expected = float(wc.skce(torch.as_tensor(mu).sin().numpy() + 0.3, wc.Normal(mu, 1.0)))
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    running = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, str(rank), str(tmp_path / "meeting")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=120) for process in running]
    finally:
        for process in running:
            process.kill()
    for process, (out, err) in zip(running, outputs, strict=True):
        assert process.returncode == 0, err
        values = [float(line) for line in out.split()]
        assert values == pytest.approx([expected, expected], rel=1e-12)
