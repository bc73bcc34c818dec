"""Engines evaluate a prepared problem over pairs of cases."""

from __future__ import annotations

from wellcal.engines.base import Engine
from wellcal.engines.tiled import Tiled

ENGINES: dict[str, Engine] = {"auto": Tiled(), "tiled": Tiled()}
"""Engines by name; "auto" is the best one available for everything."""


def get_engine(engine: str | Engine) -> Engine:
    """An engine by name, or as given."""
    if not isinstance(engine, str):
        return engine
    if engine not in ENGINES:
        raise ValueError(f"unknown engine {engine!r}; known are {', '.join(sorted(ENGINES))}")
    return ENGINES[engine]


__all__ = ["Engine", "Tiled", "get_engine"]
