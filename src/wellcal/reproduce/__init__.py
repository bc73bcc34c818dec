"""The paper's experiments, run again, beside its published numbers (``wellcal reproduce``)."""
