"""Closed forms of E k(Z, Z'), one rule for each kernel and pair of elementary distributions."""
