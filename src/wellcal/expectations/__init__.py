"""E k(Z, Z') of predictions and targets, and distances between predictions."""
