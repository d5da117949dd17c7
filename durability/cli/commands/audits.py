"""Commands that read clusters, documents or the lake: what fails, what a failure costs, and what fixes it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from durability.cli.commands import options
from durability.cli.program import app

EXIT = "Exit status: 0 done, 1 --fail-on reached, 2 incomplete or refused."


@app.command(epilog=EXIT)
def audit(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, options.BOOTSTRAP] = None,
    topology: Annotated[str | None, options.TOPOLOGY] = None,
    clusters: Annotated[str | None, options.CLUSTERS] = None,
    cluster: Annotated[str | None, options.CLUSTER] = None,
    command_config: Annotated[str | None, options.COMMAND_CONFIG] = None,
    policy: Annotated[str | None, options.POLICY] = None,
    waivers: Annotated[str | None, options.WAIVERS] = None,
    framework: Annotated[str | None, options.FRAMEWORK] = None,
    out: Annotated[str | None, options.OUT] = None,
    lake: Annotated[str | None, options.LAKE] = None,
    fail_on: Annotated[str | None, options.FAIL_ON] = None,
    baseline: Annotated[str | None, options.BASELINE] = None,
    signing_key: Annotated[str | None, options.SIGNING_KEY] = None,
    airflow: Annotated[bool, options.AIRFLOW] = False,
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
    bootstrap: Annotated[str | None, options.BOOTSTRAP] = None,
    topology: Annotated[str | None, options.TOPOLOGY] = None,
    cluster: Annotated[str | None, options.CLUSTER] = None,
    command_config: Annotated[str | None, options.COMMAND_CONFIG] = None,
    policy: Annotated[str | None, options.POLICY] = None,
    out: Annotated[str | None, options.OUT] = None,
    lake: Annotated[str | None, options.LAKE] = None,
    airflow: Annotated[bool, options.AIRFLOW] = False,
) -> int:
    """Predict what a loss of brokers, racks or controllers does to each partition.

    Without an input it uses the newest accepted snapshot in the lake. It only reads: nothing is stopped.
    """
    from durability.cli.options import Given, checked
    from durability.cli.whatif import run
    from durability.plan.lose import parse

    given = Given.of(ctx)
    items = parse(lose, given.label("lose"))
    return run(checked(given, "read"), items, given.label("lose"), airflow=airflow)


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
    topology: Annotated[str | None, options.TOPOLOGY] = None,
    cluster: Annotated[str | None, options.CLUSTER] = None,
    version: Annotated[str | None, _VERSION] = None,
    elr: Annotated[str | None, _ELR] = None,
    out: Annotated[str | None, options.OUT] = None,
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
    bootstrap: Annotated[str | None, options.BOOTSTRAP] = None,
    topology: Annotated[str | None, options.TOPOLOGY] = None,
    cluster: Annotated[str | None, options.CLUSTER] = None,
    command_config: Annotated[str | None, options.COMMAND_CONFIG] = None,
    policy: Annotated[str | None, options.POLICY] = None,
    out: Annotated[str | None, options.OUT] = None,
    lake: Annotated[str | None, options.LAKE] = None,
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
    return restart.run(checked(given, "read"), restart.limits(given))


_WAVE = typer.Option("--wave", envvar="WAVE", help="A wave of the plan in OUT, from 1.", metavar="N")
_BROKERS = typer.Option("--brokers", envvar="BROKERS", help="Nodes instead of a wave: 7,8.", metavar="IDS")


@app.command(name="restart-check", epilog="Exit status: 0 go, 1 wait, 2 refused or failed.")
def restart_check(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, options.BOOTSTRAP] = None,
    wave: Annotated[str | None, _WAVE] = None,
    brokers: Annotated[str | None, _BROKERS] = None,
    command_config: Annotated[str | None, options.COMMAND_CONFIG] = None,
    out: Annotated[str | None, options.OUT] = None,
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
    return restart.check(checked(given, "unused"), given)


def _choice(name: str, help: str, metavar: str) -> Any:
    return typer.Option(name, envvar=name.removeprefix("--").upper().replace("-", "_"), help=help, metavar=metavar)


@app.command(epilog="Exit status: 0 done, 1 there are findings to fix and no plan is offered, 2 refused or failed.")
def plan(
    ctx: typer.Context,
    bootstrap: Annotated[str | None, options.BOOTSTRAP] = None,
    topology: Annotated[str | None, options.TOPOLOGY] = None,
    cluster: Annotated[str | None, options.CLUSTER] = None,
    command_config: Annotated[str | None, options.COMMAND_CONFIG] = None,
    policy: Annotated[str | None, options.POLICY] = None,
    waivers: Annotated[str | None, options.WAIVERS] = None,
    out: Annotated[str | None, options.OUT] = None,
    lake: Annotated[str | None, options.LAKE] = None,
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
    checked_options = checked(given, "read")
    return change.run(checked_options, change.request(given, checked_options))
