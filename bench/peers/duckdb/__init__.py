"""Topics' verdicts, posture, partition health and counters in DuckDB."""
