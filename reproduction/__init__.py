"""The paper's experiments, run again, with its published numbers beside ours: ``make reproduce``.

This package is part of the source tree and not of what is installed: it uses wellcal as anybody would.
"""
