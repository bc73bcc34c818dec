"""Targets drawn from the predictions, and statistics of many sets of them at once."""
