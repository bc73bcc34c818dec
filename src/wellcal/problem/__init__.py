"""One calibration problem, prepared: rows of arrays, and what engines ask of them."""
