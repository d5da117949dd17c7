"""The program `kafka-durability`. Starting it imports neither Airflow nor Spark nor Great Expectations."""

from __future__ import annotations


def main() -> None:
    """The console script's entry point. Exits with status 2 if the program can't be loaded."""
    import io
    import sys

    try:
        from durability.cli.app import app
    except Exception:
        import traceback

        traceback.print_exc()
        sys.exit(2)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal can't show must not stop a report
    app()
