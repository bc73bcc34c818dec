"""Engines evaluate a prepared problem over pairs of cases."""

from __future__ import annotations

from wellcal.engines.base import Engine, Support
from wellcal.engines.choose import choose_engine, register_engine
from wellcal.engines.linear import FEWEST_ON_A_LINE, Linear
from wellcal.engines.tiled import Tiled

register_engine(Tiled())
register_engine(Linear(), priority=1.0, fewest=FEWEST_ON_A_LINE)

__all__ = ["Engine", "Linear", "Support", "Tiled", "choose_engine", "register_engine"]
