"""The command ``wellcal``: one file for each command, options in one place."""

from __future__ import annotations

import sys

try:
    import typer as _typer
except ImportError:
    sys.exit("the command line needs typer: pip install 'wellcal[cli]'")

from wellcal.cli.group import app, main

__all__ = ["app", "main"]

del _typer
