"""Settings of all tests, and of the examples in docstrings."""

from __future__ import annotations

import atexit
import gc
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Nothing of what is imported and collected is garbage: looking for some takes a tenth of the time until
# `pytest_collection_finish`.
gc.disable()

# One thread for each test process: the processes already fill the cores. Set before NumPy, PyTorch and JAX
# are imported; what the Makefile or a user says goes first.
for library in ("OMP", "OPENBLAS", "MKL", "NUMEXPR"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# A test runs a compiled function once or twice, which does not pay for optimising it: compilation takes a
# quarter of the time that way. XLA ends the process at an option that it does not know, so that the others,
# which save most, go to versions that have them: programs in one piece, and not in 32 of which each is
# translated by itself. Where optimisation could change a result, tests ask for it (`optimised` in
# tests/engines/examples.py).
if "XLA_FLAGS" not in os.environ and importlib.util.find_spec("jaxlib"):
    quick = ["--xla_backend_optimization_level=0"]
    if importlib.metadata.version("jaxlib").startswith("0.10."):
        quick += ["--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1"]
    os.environ["XLA_FLAGS"] = " ".join(quick)

# The same examples in each run, so that a failure comes from a change; and no time limit for an example,
# since the first call of a JAX or PyTorch function compiles for seconds.
settings.load_profile("ci")


LONGEST = {"test_blocks.py", "test_memory.py", "test_run.py", "test_torch_processes.py"}
"""Files with tests of several seconds each, most of them processes of their own."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long tests first, so that at the end no worker waits for one of them."""
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    """What a test or an example has drawn is closed after it."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


def pytest_collection_finish() -> None:
    """Libraries and tests stay: looking through them for garbage took a twentieth of the time."""
    gc.freeze()
    gc.set_threshold(10_000)
    gc.enable()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Under CI a skipped test is a failure: a missing backend must not look like a pass."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or not os.environ.get("CI") or hasattr(session.config, "workerinput"):
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped:
        reporter.write_line("")
        reporter.write_line(f"FAILED: {len(skipped)} tests were skipped, and CI allows none", red=True)
        if session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    """After this pytest looks for garbage five times: not among libraries and tests, which Python ends."""
    gc.freeze()
    atexit.register(gc.unfreeze)
