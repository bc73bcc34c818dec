"""What works on any array library and knows nothing of calibration."""

DEFAULT_SEED = 0
"""Seed that `rng=None` stands for; here, since the help of the command line does not wait for NumPy."""
