"""The commands of `kafka-durability`, their flags and their help. What they do is imported when they run."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer

from durability.cli.exit_status import INCOMPLETE
from durability.errors import AuditError

PROGRAM = "kafka-durability"
EXIT = "Exit status: 0 done, 1 --fail-on reached, 2 incomplete or refused."

app = typer.Typer(
    name=PROGRAM,
    help="Audits the durability of Apache Kafka clusters: which topics may lose acknowledged writes or stop accepting them when "
    "brokers or racks fail, and what fixes it.",
    epilog=f"Start with `{PROGRAM} audit`: without options it starts a small cluster with deliberate mistakes and audits it.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables could show a password.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

INPUT, JUDGED, OUTPUT, EXITS = "What is audited (one of)", "By what", "Where to", "Exit status and engine"


def _option(name: str, panel: str, help: str, metavar: str = "FILE", envvar: str | None = None) -> Any:
    variable = envvar or name.removeprefix("--").upper().replace("-", "_")
    return typer.Option(name, envvar=variable, help=help, metavar=metavar, rich_help_panel=panel)


@app.command(epilog=EXIT)
def audit(
    ctx: typer.Context,
    bootstrap: Annotated[
        str | None,
        _option("--bootstrap", INPUT, "A cluster, by addresses of its brokers; commas between several.", "HOST:PORT"),
    ] = None,
    topology: Annotated[
        str | None,
        _option(
            "--topology", INPUT, "A kafka-topology/1 document, or a folder of them: a fleet with its history.", "PATH"
        ),
    ] = None,
    clusters: Annotated[
        str | None,
        _option(
            "--clusters",
            INPUT,
            "A fleet: a clusters file. Without Airflow, the Connection NAME of a cluster is the JSON in AIRFLOW_CONN_NAME.",
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        _option(
            "--cluster",
            INPUT,
            "What --bootstrap's cluster is called in findings and history (default: its address).",
            "NAME",
        ),
    ] = None,
    command_config: Annotated[
        str | None,
        _option(
            "--command-config",
            INPUT,
            "TLS and SASL settings of --bootstrap: a client.properties file, as Kafka's own tools take it.",
        ),
    ] = None,
    policy: Annotated[
        str | None, _option("--policy", JUDGED, "What is required of which topics (default: the shipped policy).")
    ] = None,
    waivers: Annotated[
        str | None, _option("--waivers", JUDGED, "Accepted risks (default: the shipped file, which lists none).")
    ] = None,
    out: Annotated[str | None, _option("--out", OUTPUT, "The folder for reports (default: out).", "FOLDER")] = None,
    lake: Annotated[
        str | None,
        _option(
            "--lake",
            OUTPUT,
            "Where facts, results and history are kept: a folder or s3://bucket/prefix (default: OUT/lake for documents, "
            "else the state folder: .state/lake of a checkout, ~/.local/state/kafka-durability-audit/lake).",
            "PLACE",
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        _option(
            "--fail-on",
            EXITS,
            "Exit with 1 when a finding is at least this severe: critical, warning or unknown; or new-critical, new-warning, "
            "new-unknown: only if the last run, or --baseline, didn't have it (default: never).",
            "LEVEL",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        _option(
            "--baseline",
            EXITS,
            "An earlier findings.json: its open findings don't count for --fail-on. Alone it means --fail-on new-critical.",
        ),
    ] = None,
    airflow: Annotated[
        bool,
        typer.Option(
            "--airflow",
            help="Run the steps as Airflow tasks, as the nightly DAG does, instead of in this process.",
            rich_help_panel=EXITS,
        ),
    ] = False,
) -> None:
    """Audit a cluster, a fleet, or topology documents once, and write the reports.

    Without an input it starts an embedded cluster with deliberate mistakes, audits it and stops it. The audit only reads.
    """
    from durability.cli.options import Given, checked

    given = Given(
        bootstrap=bootstrap,
        command_config=command_config,
        cluster=cluster,
        clusters=clusters,
        topology=topology,
        policy=policy,
        waivers=waivers,
        out=out,
        lake=lake,
        fail_on=fail_on,
        baseline=baseline,
        labels=_labels(ctx),
    )

    def run() -> int:
        from durability.cli.audit import run

        return run(checked(given), airflow=airflow)

    _exit(run)


@app.command()
def demo() -> None:
    """Run the embedded cluster with its deliberate mistakes until Ctrl-C, and print the command that audits it."""

    def run() -> int:
        from durability.embedded_kafka.demo import run_until_stopped

        run_until_stopped()
        return 0

    _exit(run)


@app.command()
def up() -> None:
    """Start Airflow with its pages and the scheduled DAGs on this machine. Needs the extra 'airflow'."""

    def run() -> int:
        from durability.cli.up import run

        return run()

    _exit(run)


@app.command()
def restore(
    ctx: typer.Context,
    lake: Annotated[
        str | None,
        _option(
            "--lake", OUTPUT, "The lake: a folder or s3://bucket/prefix (default: that of cluster audits).", "PLACE"
        ),
    ] = None,
) -> None:
    """Make the catalog of a lake that has lost it again, from the tables' own files."""

    def run() -> int:
        from durability.cli.restore import run

        return run(lake, _labels(ctx)["lake"])

    _exit(run)


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(help="The format; without it, the names are listed.", metavar="NAME")
    ] = None,
) -> None:
    """Print the JSON Schema of a public format: topology, policy, waivers, clusters or findings."""

    def run() -> int:
        from durability.cli.schema import run

        return run(name)

    _exit(run)


@app.command(hidden=True)
def migrate() -> None:
    """Create or migrate the Airflow database that runs copy (make setup)."""

    def run() -> int:
        from durability.cli import airflow_home

        airflow_home.migrate()
        return 0

    _exit(run)


@app.command(hidden=True)
def classes() -> None:
    """Make the archive of Spark's classes for this Java (make setup)."""

    def run() -> int:
        from durability.cli import classes

        classes.ensure()
        return 0

    _exit(run)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        from durability.resources import NAME

        typer.echo(f"{PROGRAM} {version(NAME)}")
        raise typer.Exit


@app.callback()
def program(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Options of the program itself; the text above the commands is `app`'s."""


def _labels(ctx: typer.Context) -> dict[str, str]:
    """By parameter how a message names it: as the variable where its value came from there."""
    labels = {}
    for parameter in ctx.command.params:
        name = parameter.name or ""
        source = ctx.get_parameter_source(name)
        from_environment = source is not None and source.name == "ENVIRONMENT"
        labels[name] = f"{parameter.envvar}=" if from_environment else f"{parameter.opts[0]} "
    return labels


def _exit(run: Callable[[], int]) -> NoReturn:
    """Run a command and end with its status; errors that a user can fix are printed, everything else keeps its traceback.

    Ctrl-C and SIGTERM leave at once: a thread that still reads from a broker would hold the program for its timeout.
    """
    from durability.cli.console import Console
    from durability.runtime import processes

    processes.exit_on_sigterm()
    status = INCOMPLETE
    try:
        status = run()
    except AuditError as error:
        Console().error(str(error))
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        _leave(128 + signal.SIGINT)
    except SystemExit as stopped:
        _leave(stopped.code if isinstance(stopped.code, int) else INCOMPLETE)
    raise typer.Exit(status)


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
