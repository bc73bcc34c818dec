"""The experiments: what is drawn, what is computed from it, and what is found."""
