"""Measures partitions in Polars."""
