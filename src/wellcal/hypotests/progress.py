"""The progress line of tests, by the name that it has had here."""

from wellcal._arrays.progress import Progress

__all__ = ["Progress"]
