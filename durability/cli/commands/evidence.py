"""Commands on evidence: verify it, prove a finding, report a period, pick a sample."""

from __future__ import annotations

from typing import Annotated

import typer

from durability.cli.commands import options
from durability.cli.program import app


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


@app.command(epilog="Exit status: 0 done, 2 refused or failed.")
def evidence(
    ctx: typer.Context,
    start: Annotated[str, typer.Option("--from", help="The period's first day (UTC).", metavar="YYYY-MM-DD")],
    end: Annotated[str, typer.Option("--to", help="The first day after the period.", metavar="YYYY-MM-DD")],
    lake: Annotated[str | None, options.LAKE_ALONE] = None,
    out: Annotated[str | None, options.OUT] = None,
    framework: Annotated[str | None, options.FRAMEWORK] = None,
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
    lake: Annotated[str | None, options.LAKE_ALONE] = None,
    cluster: Annotated[
        str | None, typer.Option("--cluster", help="Only verdicts on this cluster.", metavar="NAME")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Pick verdicts of the newest complete nightly run, with the facts and Kafka's command that shows them again."""
    from durability.cli import evidence
    from durability.cli.options import Given

    return evidence.sample(Given.of(ctx), as_json)
