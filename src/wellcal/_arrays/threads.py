"""How many threads of our own there are, and those of libraries that we call from them."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any


def usual_threads() -> int:
    """Cores that this process may use, or what OMP_NUM_THREADS says where that is less.

    Who sets it has processes that fill the cores already: of a cluster, or of tests.

    Examples
    --------
    >>> 1 <= usual_threads() <= (os.cpu_count() or 1)
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    said = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(cores, int(said)) if said.isdecimal() and int(said) > 0 else cores


MANY_CASES = 160
"""Cases from which products over all pairs are large enough for threads of BLAS: of fewer nothing is said."""


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS from starting threads inside ours, where threadpoolctl is installed to say so."""
    controller = _blas_controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _blas_controller() -> Any:
    try:
        # It ships no types.
        from threadpoolctl import ThreadpoolController  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return None
    return ThreadpoolController()  # it looks through all loaded libraries: once is enough
