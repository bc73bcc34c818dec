"""Compile scalar_loop.c into a temporary directory, and call it."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import subprocess
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SOURCE = Path(__file__).with_name("scalar_loop.c")
# Current compilers vectorise at -O2 too; the stand-in for scalar code must not be.
FLAGS = ("-O2", "-fno-tree-vectorize", "-std=c99", "-shared", "-fPIC")


class CompilationError(Exception):
    """There is no compiler, or it failed."""


class ScalarLoop:
    """The two functions of the compiled library, on NumPy arrays."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        doubles = np.ctypeslib.ndpointer(np.float64, flags="C_CONTIGUOUS")
        integers = np.ctypeslib.ndpointer(np.int64, flags="C_CONTIGUOUS")
        self._normals = library.normal_skce
        self._normals.argtypes = [ctypes.c_int64, doubles, doubles, doubles]
        self._classes = library.class_skce
        self._classes.argtypes = [ctypes.c_int64, ctypes.c_int64, doubles, integers, ctypes.c_double]
        self._normals.restype = self._classes.restype = ctypes.c_double

    def normal_skce(self, mu: Any, sigma: Any, y: Any) -> float:
        return self._normals(len(mu), mu, sigma, y)

    def class_skce(self, probabilities: Any, labels: Any, scale: float) -> float:
        return self._classes(*probabilities.shape, probabilities, labels, scale)


@lru_cache(maxsize=1)
def load() -> ScalarLoop:
    """The compiled loop; its directory goes away with the process."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise CompilationError("no C compiler: neither $CC nor cc is on the path")
    directory = Path(tempfile.mkdtemp(prefix="wellcal-benchmark-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    library = directory / "scalar_loop.so"
    command = [compiler, *FLAGS, str(SOURCE), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise CompilationError(f"{' '.join(command)} failed: {done.stderr.strip()}")
    return ScalarLoop(library)


def compiler_version() -> str | None:
    """First line of what the compiler says about itself."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        return None
    done = subprocess.run([compiler, "--version"], capture_output=True, text=True)
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else None
