"""Attests a run's report, as a part of the step report: the evidence in OUT/evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.collect.connections import stated_connection
from durability.errors import AuditError
from durability.plain import plural
from durability.steps import crash
from durability.steps.conclude import status_of
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary

if TYPE_CHECKING:
    from durability.evidence.keys import SigningKey
    from durability.plan import Plan
    from expectations.posture import Flagged

NO_KEY = "no signing key is configured"


def attest(
    settings: Settings,
    plan: Plan,
    flagged: Flagged,
    files: Mapping[str, Path],
    signing_key: Callable[[], SigningKey | None],
    log: Any,
    summary: StepSummary,
) -> Path | None:
    """Write a run's evidence; see `durability.evidence.write`. Returns its folder.

    A problem is reported in `summary` and raises nothing, since verdicts don't depend on evidence: a key that can't be used
    leaves the manifest unsigned, and evidence that can't be written is missing (None).

    files: what `report` returned. signing_key: the key; None if none is configured. log: a logger of Python or Airflow.
    """
    from durability.evidence.write import Audited, write

    try:
        key, unsigned = _key(signing_key, log, summary)
        clusters = None if settings.topology else settings.clusters
        inputs = {"policy": settings.policy, "waivers": settings.waivers, "clusters": clusters}
        run = Audited(plan, status_of(plan, flagged), bool(flagged.verified), files, inputs)
        attested = write(settings.open_lake(), run, settings.out, key, unsigned)
    except Exception as error:
        log.error("the evidence could not be written", exc_info=not isinstance(error, AuditError))
        summary.problems.append(f"the report is written, but its evidence could not be: {_reason(error)}")
        return None
    summary.problems += attested.problems
    summary.text = f"{plural(attested.files, 'file')} attested, {'signed' if key else 'unsigned'}"
    log.info("evidence %s, SHA-256 of its manifest %s", attested.folder, attested.sha256)
    _copy(settings, attested.folder.parent, log, summary)
    return attested.folder


def _reason(error: Exception) -> str:
    """An error for the user. A full disk is named, with what to do."""
    if isinstance(error, AuditError):
        return str(error)
    return crash.full_disk(error) or f"{type(error).__name__}: {error}"


def _copy(settings: Settings, root: Path, log: Any, summary: StepSummary) -> None:
    """Copy the evidence of all runs that aren't complete at the policy's address, if it has one. A problem is reported."""
    from durability.policy import load_policy

    try:
        target = load_policy(settings.policy).evidence
        if target is None:
            return
        from durability.evidence.copy import copy

        copied = copy(root, target)
    except Exception as error:
        log.error("the evidence could not be copied", exc_info=not isinstance(error, AuditError))
        summary.problems.append(f"the evidence could not be copied: {_reason(error)}")
        return
    summary.problems += copied.problems
    if copied.runs:
        summary.text += f", {plural(len(copied.runs), 'run')} copied to {target.address}"
    log.info("%s of evidence put to %s", plural(copied.objects, "object"), target.address)


def _key(
    signing_key: Callable[[], SigningKey | None], log: Any, summary: StepSummary
) -> tuple[SigningKey | None, str | None]:
    """The key, or None and why the manifest is unsigned."""
    try:
        key = signing_key()
    except Exception as error:
        # An unknown error's text may have the Connection's secret.
        told = str(error) if isinstance(error, AuditError) else f"the key can't be used: {type(error).__name__}"
        log.error("the evidence is not signed: %s", told)
        summary.problems.append(f"the evidence is not signed: {told}")
        return None, told
    return key, None if key else NO_KEY


def key_from_environment(environ: Mapping[str, str]) -> SigningKey | None:
    """The key of the Connection in AIRFLOW_CONN_KAFKA_DURABILITY_SIGNING (JSON), without Airflow; None if it isn't set.

    Raises Refused if it can't be used.
    """
    from durability.evidence import keys

    stated = stated_connection(keys.CONNECTION, environ, keys.EXPECTED)
    return keys.from_connection(stated) if stated else None
