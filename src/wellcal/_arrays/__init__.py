"""What works on any array library and knows nothing of calibration."""
