"""Engines evaluate a prepared problem over pairs of cases."""

from __future__ import annotations

from wellcal.engines.base import Engine, Support
from wellcal.engines.choose import choose_engine, register_engine
from wellcal.engines.tiled import Tiled

register_engine(Tiled())

__all__ = ["Engine", "Support", "Tiled", "choose_engine", "register_engine"]
