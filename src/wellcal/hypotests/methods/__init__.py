"""One class for each method of testing calibration."""
