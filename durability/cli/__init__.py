"""The program `kafka-durability`. Starting it imports neither Airflow nor Spark nor Great Expectations."""

from __future__ import annotations


def main() -> None:
    """The console script's entry point."""
    from durability.cli.app import app

    app()
