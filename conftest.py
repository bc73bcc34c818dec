"""Settings of all tests, and of the examples in docstrings."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The first call of a JAX or PyTorch function compiles for seconds: time limits per example would lie.
settings.register_profile("default", settings.get_profile("default"), deadline=None)
if not os.environ.get("CI"):
    settings.load_profile("default")


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
