"""The program `kafka-durability`. Starting it imports neither Airflow nor Spark nor Great Expectations."""

from __future__ import annotations


def main() -> None:
    """The console script's entry point. Ends with status 2 if the program can't even be loaded."""
    try:
        from durability.cli.app import app
    except Exception:
        import sys
        import traceback

        traceback.print_exc()
        sys.exit(2)
    app()
