"""One number for how far predictions are off, and how sure it is."""
