"""Since when are predictions off? Anytime-valid monitoring, one case or batch at a time."""
