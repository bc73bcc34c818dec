"""Threads of libraries that we call from threads of our own."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import lru_cache
from typing import Any


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
