"""E k(Z, Z') of predictions and targets, and distances between predictions.

Importing the room registers its rules.
"""

from wellcal.expectations import density_distances, distances
from wellcal.expectations.rules import discrete, gaussian, laplacian

RULES = (density_distances, distances, discrete, gaussian, laplacian)
"""Modules that register closed forms and distances when they are imported."""
