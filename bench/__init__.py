"""Measurements: `python -m bench.floor`."""
