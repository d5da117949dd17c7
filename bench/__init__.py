"""Measurements: `make bench`, see `floor` and `scale`."""
