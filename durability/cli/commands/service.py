"""Commands that start something or maintain it: the demo cluster, Airflow, the lake, formats."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from durability.cli.commands import options
from durability.cli.program import app


@app.command()
def demo() -> None:
    """Run the embedded cluster with its deliberate mistakes until Ctrl-C, and print the command that audits it."""
    from durability.embedded_kafka.demo import run_until_stopped

    run_until_stopped()


def _scheduled(name: str, help: str, otherwise: str, metavar: str = "FILE") -> Any:
    """An option of `up`. Its variable in a deployment of Airflow is the default."""
    variable = f"DURABILITY_{name.removeprefix('--').upper()}"
    about = f"{help} (default: {variable}, else {otherwise})."
    return options.option(name, "What the scheduled runs use", about, metavar)


@app.command()
def up(
    ctx: typer.Context,
    clusters: Annotated[str | None, _scheduled("--clusters", "The clusters file", "the shipped one")] = None,
    policy: Annotated[str | None, _scheduled("--policy", "What is required of which topics", "the shipped one")] = None,
    waivers: Annotated[str | None, _scheduled("--waivers", "Accepted risks", "the shipped one")] = None,
    out: Annotated[str | None, _scheduled("--out", "The folder for reports", "out", "FOLDER")] = None,
    lake: Annotated[
        str | None,
        _scheduled("--lake", "The lake: a folder or s3://bucket/prefix", "that of cluster audits", "PLACE"),
    ] = None,
    port: Annotated[
        str | None,
        typer.Option("--port", help="The pages' port (default: AIRFLOW__API__PORT, else 8080).", metavar="PORT"),
    ] = None,
) -> int:
    """Start Airflow with its pages and the scheduled DAGs on this machine. Needs the extra 'airflow'."""
    from durability.cli.options import Given
    from durability.cli.up import deployment, run

    return run(deployment(Given.of(ctx)))


@app.command()
def restore(
    ctx: typer.Context,
    lake: Annotated[
        str | None,
        options.option(
            "--lake",
            options.OUTPUT,
            "The lake: a folder or s3://bucket/prefix (default: that of cluster audits).",
            "PLACE",
        ),
    ] = None,
) -> None:
    """Restore the lost catalog of a lake, from the tables' own files.

    If the catalog exists, files that are missing are removed from its tables: their rows are lost.
    """
    from durability.cli.options import Given
    from durability.errors import Refused
    from durability.lake.restore import restore
    from durability.plain import plain
    from durability.resources import state_folder
    from durability.runtime import run_lock

    location = lake or str(state_folder() / "lake")
    if "://" not in location and not os.path.isdir(location):
        raise Refused(f"{Given.of(ctx).label('lake')}{location}: no such folder")
    with run_lock.held(location):  # a commit during the restore would be lost
        print("\n".join(map(plain, restore(location))))


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(help="The format; without it, the names are listed.", metavar="NAME")
    ] = None,
) -> None:
    """Print the JSON Schema of a public format: for instance topology, policy or findings."""
    import json

    from durability import schemas
    from durability.errors import Refused

    if name is None:
        print("\n".join(sorted(schemas.NAMES)))
    elif name in schemas.NAMES:
        print(json.dumps(schemas.schema(name), indent=2, ensure_ascii=False))
    else:
        raise Refused(f"there is no format {name}; there are {', '.join(sorted(schemas.NAMES))}")


@app.command(hidden=True)
def migrate() -> None:
    """Create or migrate the Airflow database that runs copy (make setup)."""
    from durability.cli import airflow_home

    airflow_home.prepare(airflow_home.template())


@app.command(hidden=True)
def classes() -> None:
    """Create the archives of Spark's and Kafka's classes for this Java (make setup)."""
    from durability.cli import classes
    from durability.embedded_kafka import classes as classes_of_kafka
    from durability.embedded_kafka.spec import default_spec

    classes.ensure()
    classes_of_kafka.ensure(default_spec().version)
