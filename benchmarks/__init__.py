"""Timings and peak memory of `wellcal` beside simple implementations: ``python -m benchmarks``.

A benchmark is a function from :class:`benchmarks.settings.Settings` to a section of RESULTS.md; they are
listed in :mod:`benchmarks.__main__`. All competitors start from the same arrays in one process, must agree on
the value, and take turns, so that drift of the machine hits all alike.
"""
