"""Python processes of their own, for what a test process has behind it: imports, settings, memory."""

from __future__ import annotations

import os
import subprocess
import sys


def run_python(*arguments: str, expect: int = 0, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the interpreter with `arguments` on one thread, and check its exit status."""
    done = subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        check=False,
    )
    assert done.returncode == expect, done.stderr
    return done
