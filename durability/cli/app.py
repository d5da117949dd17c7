"""The commands of `kafka-durability` with their options and help. Each imports its implementation when it runs."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from durability.cli.exit_status import DONE, INCOMPLETE, REACHED
from durability.errors import AuditError
from durability.plain import plain_lines

PROGRAM = "kafka-durability"
EXIT = "Exit status: 0 done, 1 --fail-on reached, 2 incomplete or refused."
INPUT, JUDGED, OUTPUT, EXITS = "What is read (one of)", "By what", "Where to", "Exit status and engine"


class Commands(TyperGroup):
    """Ends the program with a command's status.

    Any exception gives 2, because 1 means that --fail-on is reached. An AuditError is printed without a traceback.
    """

    def invoke(self, ctx: Any) -> NoReturn:
        """Run a command. Ctrl-C and SIGTERM exit at once, without waiting for threads that read from a broker."""
        from durability.cli.console import Console
        from durability.runtime import processes

        processes.exit_on_sigterm()
        status: int | None = INCOMPLETE
        try:
            status = super().invoke(ctx)
        except AuditError as error:
            Console().error(str(error))
        except KeyboardInterrupt:
            print("stopped", file=sys.stderr)
            _leave(128 + signal.SIGINT)
        except SystemExit as stopped:
            _leave(stopped.code if isinstance(stopped.code, int) and stopped.code != REACHED else INCOMPLETE)
        except BrokenPipeError:  # the reader of standard output has ended
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            _leave(INCOMPLETE)
        except Exception as error:
            # typer prints its own message for a wrong option or --help.
            if hasattr(error, "exit_code"):
                raise
            print(plain_lines(traceback.format_exc()), file=sys.stderr)
        raise typer.Exit(status or DONE)


def _leave(status: int) -> NoReturn:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


app = typer.Typer(
    name=PROGRAM,
    cls=Commands,
    help="Audits the durability of Apache Kafka clusters: which topics may lose acknowledged writes or stop accepting them when "
    "brokers or racks fail, and what fixes it.",
    epilog=f"Start with `{PROGRAM} audit`: without options it starts a small cluster with deliberate mistakes and audits it.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables could show a password.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _option(name: str, panel: str, help: str, metavar: str = "FILE") -> Any:
    """An option with its environment variable."""
    variable = name.removeprefix("--").upper().replace("-", "_")
    return typer.Option(name, envvar=variable, help=help, metavar=metavar, rich_help_panel=panel)


_BOOTSTRAP = _option(
    "--bootstrap", INPUT, "A cluster, by addresses of its brokers; commas between several.", "HOST:PORT"
)
_TOPOLOGY = _option(
    "--topology", INPUT, "A kafka-topology/1 document, or a folder of them: a fleet with its history.", "PATH"
)
_CLUSTERS = _option(
    "--clusters",
    INPUT,
    "A fleet: a clusters file. Without Airflow, the Connection NAME of a cluster is the JSON in AIRFLOW_CONN_NAME.",
)
_CLUSTER = _option(
    "--cluster",
    INPUT,
    "The cluster's name. It names that of --bootstrap (default: its address), or chooses one.",
    "NAME",
)
_COMMAND_CONFIG = _option(
    "--command-config",
    INPUT,
    "TLS and SASL settings of --bootstrap: a client.properties file, as Kafka's own tools take it.",
)
_POLICY = _option("--policy", JUDGED, "What is required of which topics (default: the shipped policy).")
_WAIVERS = _option("--waivers", JUDGED, "Accepted risks (default: the shipped file, which lists none).")
_FRAMEWORK = _option(
    "--framework",
    JUDGED,
    "Report only the controls that support a framework: soc2, iso27001, nist800-53 or dora (default: all controls).",
    "NAME",
)
_OUT = _option("--out", OUTPUT, "The folder for reports (default: out).", "FOLDER")
_LAKE = _option(
    "--lake",
    OUTPUT,
    "Where facts, results and history are kept: a folder or s3://bucket/prefix (default: OUT/lake for documents, "
    "else the state folder: .state/lake of a checkout, ~/.local/state/kafka-durability-audit/lake).",
    "PLACE",
)
_FAIL_ON = _option(
    "--fail-on",
    EXITS,
    "Exit with 1 when a finding is at least this severe: critical, warning or unknown; or new-critical, new-warning, "
    "new-unknown: only if the last run, or --baseline, didn't have it (default: never).",
    "LEVEL",
)
_BASELINE = _option(
    "--baseline",
    EXITS,
    "An earlier findings.json: its open findings don't count for --fail-on. Alone it means --fail-on new-critical.",
)
_SIGNING_KEY = _option(
    "--signing-key",
    OUTPUT,
    "The key that signs the evidence: an Ed25519 private key (PEM) in a file of mode 0600. Without it, the key of the "
    "Connection kafka_durability_signing; without that, the evidence is unsigned.",
)
_AIRFLOW = typer.Option(
    "--airflow",
    help="Run the steps as Airflow tasks, as the DAGs do, instead of in this process.",
    rich_help_panel=EXITS,
)


@app.command(epilog=EXIT)
def audit(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, _BOOTSTRAP] = None,
    topology: Annotated[str | None, _TOPOLOGY] = None,
    clusters: Annotated[str | None, _CLUSTERS] = None,
    cluster: Annotated[str | None, _CLUSTER] = None,
    command_config: Annotated[str | None, _COMMAND_CONFIG] = None,
    policy: Annotated[str | None, _POLICY] = None,
    waivers: Annotated[str | None, _WAIVERS] = None,
    framework: Annotated[str | None, _FRAMEWORK] = None,
    out: Annotated[str | None, _OUT] = None,
    lake: Annotated[str | None, _LAKE] = None,
    fail_on: Annotated[str | None, _FAIL_ON] = None,
    baseline: Annotated[str | None, _BASELINE] = None,
    signing_key: Annotated[str | None, _SIGNING_KEY] = None,
    airflow: Annotated[bool, _AIRFLOW] = False,
) -> int:
    """Audit a cluster, a fleet, or topology documents once, and write the reports.

    Without an input it starts an embedded cluster with deliberate mistakes, audits it and stops it. The audit only reads.
    """
    from durability.cli.audit import run
    from durability.cli.options import Given, checked

    return run(checked(Given.of(ctx)), airflow=airflow)


_LOSE = typer.Option(
    "--lose",
    envvar="LOSE",
    help="What fails at once, separated by commas: broker:3, rack:az2, controller:101. A comma in a rack's name is %2C.",
    metavar="ITEMS",
)


@app.command(epilog="Exit status: 0 done, 2 refused or failed.")
def whatif(
    ctx: typer.Context,
    lose: Annotated[str, _LOSE] = "",
    bootstrap: Annotated[str | None, _BOOTSTRAP] = None,
    topology: Annotated[str | None, _TOPOLOGY] = None,
    cluster: Annotated[str | None, _CLUSTER] = None,
    command_config: Annotated[str | None, _COMMAND_CONFIG] = None,
    policy: Annotated[str | None, _POLICY] = None,
    out: Annotated[str | None, _OUT] = None,
    lake: Annotated[str | None, _LAKE] = None,
    airflow: Annotated[bool, _AIRFLOW] = False,
) -> int:
    """Predict what a loss of brokers, racks or controllers does to each partition.

    Without an input it uses the newest accepted snapshot in the lake. It only reads: nothing is stopped.
    """
    from durability.cli.options import Given, checked
    from durability.cli.whatif import run
    from durability.plan.lose import parse

    given = Given.of(ctx)
    items = parse(lose, given.label("lose"))
    return run(checked(given), items, given.label("lose"), airflow=airflow)


_VERSION = typer.Option(
    "--version",
    envvar="VERSION",
    help="Kafka's release: 4.3.1 or 3.6.2 (default: as the document's).",
    metavar="RELEASE",
)
_ELR = typer.Option(
    "--elr", envvar="ELR", help="Eligible leader replicas, on or off (default: as the document's).", metavar="on|off"
)


_KEPT = typer.Option(
    "--lake",
    envvar="LAKE",
    help="A lake that keeps a row of the rehearsal, for the evidence of a period (default: none).",
    metavar="PLACE",
)


@app.command(epilog="Exit status: 0 all as predicted and no record is missing, 1 a difference, 2 refused or failed.")
def drill(
    ctx: typer.Context,
    lose: Annotated[str, _LOSE] = "",
    topology: Annotated[str | None, _TOPOLOGY] = None,
    cluster: Annotated[str | None, _CLUSTER] = None,
    version: Annotated[str | None, _VERSION] = None,
    elr: Annotated[str | None, _ELR] = None,
    out: Annotated[str | None, _OUT] = None,
    lake: Annotated[str | None, _KEPT] = None,
) -> int:
    """Rehearse a loss: rebuild a document in miniature on an embedded cluster, kill, and compare with the prediction.

    Only processes on this machine are started and killed. Without a document it takes the shipped example.
    """
    from durability.cli import drill as rehearsal
    from durability.cli.options import Given

    return rehearsal.run(rehearsal.request(Given.of(ctx)))


def _limit(name: str, help: str) -> Any:
    return typer.Option(name, envvar=name.removeprefix("--").upper(), help=help, metavar="N")


@app.command(name="restart-plan", epilog="Exit status: 0 done, 2 refused or failed.")
def restart_plan(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, _BOOTSTRAP] = None,
    topology: Annotated[str | None, _TOPOLOGY] = None,
    cluster: Annotated[str | None, _CLUSTER] = None,
    command_config: Annotated[str | None, _COMMAND_CONFIG] = None,
    policy: Annotated[str | None, _POLICY] = None,
    out: Annotated[str | None, _OUT] = None,
    lake: Annotated[str | None, _LAKE] = None,
    margin: Annotated[str | None, _limit("--margin", "Replicas in sync above the minimum (default: 0).")] = None,
    max: Annotated[str | None, _limit("--max", "Nodes per wave at most (default: any number).")] = None,
    voters: Annotated[str | None, _limit("--voters", "Quorum voters per wave at most (default: 1).")] = None,
) -> int:
    """Plan in which waves brokers may restart together while acks=all writes stay accepted.

    Without an input it uses the newest accepted snapshot in the lake. It only reads: nothing is stopped.
    """
    from durability.cli import restart
    from durability.cli.options import Given, checked

    given = Given.of(ctx)
    return restart.run(checked(given), restart.limits(given))


_WAVE = typer.Option("--wave", envvar="WAVE", help="A wave of the plan in OUT, from 1.", metavar="N")
_BROKERS = typer.Option("--brokers", envvar="BROKERS", help="Nodes instead of a wave: 7,8.", metavar="IDS")


@app.command(name="restart-check", epilog="Exit status: 0 go, 1 wait, 2 refused or failed.")
def restart_check(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, _BOOTSTRAP] = None,
    wave: Annotated[str | None, _WAVE] = None,
    brokers: Annotated[str | None, _BROKERS] = None,
    command_config: Annotated[str | None, _COMMAND_CONFIG] = None,
    out: Annotated[str | None, _OUT] = None,
    margin: Annotated[
        str | None, _limit("--margin", "Replicas in sync above the minimum (default: the plan's).")
    ] = None,
) -> int:
    """Say whether a wave of brokers may restart now, in seconds and without Spark: the gate of a rolling restart.

    It waits while an ISR isn't whole, a broker or controller is down, replicas move, or a fact could not be read.
    """
    from durability.cli import restart
    from durability.cli.options import Given, checked

    given = Given.of(ctx)
    return restart.check(checked(given), given)


def _choice(name: str, help: str, metavar: str) -> Any:
    return typer.Option(name, envvar=name.removeprefix("--").upper().replace("-", "_"), help=help, metavar=metavar)


@app.command(epilog="Exit status: 0 done, 1 there are findings to fix and no plan is offered, 2 refused or failed.")
def plan(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, _BOOTSTRAP] = None,
    topology: Annotated[str | None, _TOPOLOGY] = None,
    cluster: Annotated[str | None, _CLUSTER] = None,
    command_config: Annotated[str | None, _COMMAND_CONFIG] = None,
    policy: Annotated[str | None, _POLICY] = None,
    waivers: Annotated[str | None, _WAIVERS] = None,
    out: Annotated[str | None, _OUT] = None,
    lake: Annotated[str | None, _LAKE] = None,
    findings: Annotated[str | None, _choice("--findings", "Ids of findings to fix (default: all).", "IDS")] = None,
    control: Annotated[str | None, _choice("--control", "Only findings of these controls.", "NAMES")] = None,
    topic: Annotated[str | None, _choice("--topic", "Only findings of topics with such names.", "EXPRESSION")] = None,
    avoid: Annotated[str | None, _choice("--avoid", "Gets no new replica: broker:3,rack:az2.", "ITEMS")] = None,
    batch: Annotated[str | None, _choice("--batch", "Partitions per batch at most (default: 200).", "N")] = None,
    batch_bytes: Annotated[
        str | None, _choice("--batch-bytes", "Bytes per batch that arrive at a broker (default: 500GB).", "SIZE")
    ] = None,
    margin_disk: Annotated[
        str | None, _choice("--margin-disk", "Percent of each disk that stays free (default: 20).", "N")
    ] = None,
    undo: Annotated[
        str | None, _choice("--undo", "Plan the way back from a plan, by its id or folder.", "PLAN")
    ] = None,
) -> int:
    """Plan the changes that fix findings, prove the plan, and write its steps into OUT/plan, for each cluster.

    Without an input it uses the newest accepted snapshots in the lake. It only reads: nothing is changed.
    """
    from durability.cli import change
    from durability.cli.options import Given, checked

    given = Given.of(ctx)
    options = checked(given)
    return change.run(options, change.request(given, options))


@app.command()
def demo() -> None:
    """Run the embedded cluster with its deliberate mistakes until Ctrl-C, and print the command that audits it."""
    from durability.embedded_kafka.demo import run_until_stopped

    run_until_stopped()


@app.command()
def up() -> int:
    """Start Airflow with its pages and the scheduled DAGs on this machine. Needs the extra 'airflow'."""
    from durability.cli.up import run

    return run()


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


@app.command(epilog="Exit status: 0 as attested, 1 something differs, 2 nothing could be checked.")
def verify(
    folder: Annotated[str, typer.Argument(help="The folder evidence in OUT, or that of one run.", metavar="FOLDER")],
    public_key: Annotated[
        str | None,
        typer.Option("--public-key", help="The signer's public key (PEM), or several in one file.", metavar="FILE"),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", help="The manifest that the first run must name as the one before.", metavar="SHA256"),
    ] = None,
    head: Annotated[
        str | None, typer.Option("--head", help="The manifest that the last run must have.", metavar="SHA256")
    ] = None,
) -> int:
    """Verify evidence: that files are as attested, who signed them, and that no run is missing.

    It does what the verify.py of each run does. Without --public-key, the key in the folder is used, which proves no signer.
    A proof of a finding needs --public-key or --head.
    """
    from pathlib import Path

    from durability.errors import Refused
    from durability.evidence.verify import UNCHECKED
    from durability.evidence.verify import verify as check

    lines, status = check(Path(folder), Path(public_key) if public_key else None, after, head)
    if status == UNCHECKED:
        raise Refused("\n".join(lines))
    print("\n".join(lines))
    return status


@app.command(epilog="Exit status: 0 done, 2 refused or failed.")
def prove(
    finding: Annotated[str, typer.Argument(help="The finding's id, as findings.json has it.", metavar="FINDING_ID")],
    folder: Annotated[
        str,
        typer.Option("--evidence", help="A run's evidence, or the folder of all runs: the newest.", metavar="FOLDER"),
    ] = "out/evidence",
    file: Annotated[
        str | None, typer.Option("--file", help="The file to write (default: proof-FINDING_ID.json).", metavar="FILE")
    ] = None,
) -> None:
    """Prove one finding to someone who may not see the others: write a small file that `verify` and verify.py check."""
    from pathlib import Path

    from durability.evidence.prove import write

    target = Path(file or f"proof-{Path(finding).name}.json").absolute()
    print(f"{write(Path(folder), finding, target)}\n{target}")


_LAKE_ALONE = _option(
    "--lake", INPUT, "The lake: a folder or s3://bucket/prefix (default: that of cluster audits).", "PLACE"
)


@app.command(epilog="Exit status: 0 done, 2 refused or failed.")
def evidence(
    ctx: typer.Context,
    start: Annotated[str, typer.Option("--from", help="The period's first day (UTC).", metavar="YYYY-MM-DD")],
    end: Annotated[str, typer.Option("--to", help="The first day after the period.", metavar="YYYY-MM-DD")],
    lake: Annotated[str | None, _LAKE_ALONE] = None,
    out: Annotated[str | None, _OUT] = None,
    framework: Annotated[str | None, _FRAMEWORK] = None,
) -> int:
    """Write what the lake has about a period, for an auditor who signs it: nights done, exceptions, policies, waivers.

    It reads the lake only, and writes OUT/period/FROM_TO/period.json and period.html, or into FROM_TO_FRAMEWORK.
    """
    from durability.cli.evidence import period
    from durability.cli.options import Given

    return period(Given.of(ctx), start, end)


@app.command(epilog="Exit status: 0 done, 2 refused or failed.")
def sample(
    ctx: typer.Context,
    n: Annotated[str, typer.Option("--n", help="How many verdicts.", metavar="N")] = "25",
    seed: Annotated[str, typer.Option("--seed", help="The same seed picks the same verdicts.", metavar="N")] = "1",
    lake: Annotated[str | None, _LAKE_ALONE] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Only verdicts on this cluster.", metavar="NAME")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Pick verdicts of the newest complete nightly run, with the facts and Kafka's command that shows them again."""
    from durability.cli import evidence
    from durability.cli.options import Given

    return evidence.sample(Given.of(ctx), as_json)


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
    """Options of the program itself. The text above the commands is in `app`."""
