"""Numbers that all rooms share, without NumPy: the help of the command line needs them, and is quick."""

DEFAULT_SEED = 0
"""What `rng=None` stands for, in Python, in figures and on the command line."""
