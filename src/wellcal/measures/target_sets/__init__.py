"""The same predictions with many sets of targets: tests compare with them, and intervals are made of them."""
