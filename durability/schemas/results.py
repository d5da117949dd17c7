"""The shapes of what the audit writes: findings.json and plans/index.json.

That of findings.json is the shape of what its writers make of a full row and of an empty one. Members may be added to
both files, so their objects stay open.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, get_type_hints

import pyarrow as pa

from durability.lake.tables import FINDINGS
from durability.plan.plan import SnapshotPart, StaleSnapshot
from durability.remedies import plans as planned
from durability.report import build
from durability.report.data import results
from durability.report.files import FORMAT
from durability.report.words import CHANGES, OUTCOMES, SEVERITIES
from durability.shapes import INT64, Anything, Choice, Constant, Flag, ListOf, MapOf, Member, Object, Shape, Text, Whole

WORD = "x"
MOMENT = "2026-11-21T02:00:00Z"
ALWAYS = {"id", "cluster", "resource_type", "control", "outcome"}
"""Columns of `findings` that have a value in every row."""
COUNT = Whole(high=INT64)
STATED: dict[str, Shape] = {
    "outcome": Choice(OUTCOMES),
    "severity": Choice(SEVERITIES),
    "previous_severity": Choice(SEVERITIES),
    "change": Choice(CHANGES),
    "observed": MapOf(Anything()),
    "required": MapOf(Anything()),
}
"""Members of a finding of which more is known than their type."""
ABOUT = {
    "id": "the same in every run, for the same resource and control (and category)",
    "cause": "what findings have in common: one thing to fix",
    "partitions": "ids, where the control is about partitions",
    "remediation": "a sentence, or commands that can be pasted into bash",
    "why": "of a resolved one: fixed, waived, policy-changed, resource-deleted or cause-cleared",
    "since": "the snapshot in which a run found it first",
    "waiver": "who accepted it until when",
    "previous_severity": "of a resolved one",
}


def findings() -> Object:
    """The shape of `durability-findings/1`."""
    members = {
        "format": Member(Constant(FORMAT)),
        "run": Member(_object("run", _run(full=True), _run(full=False))),
        "summary": Member(_summary()),
        "findings": Member(ListOf(_finding()), about="every outcome but PASS and NOT_APPLICABLE, worst first"),
        **{
            name: Member(ListOf(MapOf(Anything())), optional=True, about=about)
            for name, about in (
                ("applications", "Kafka Streams applications that a line of the policy names"),
                ("brokers", "brokers that lead unhealthy partitions, worst first"),
                ("rack_outages", "clusters with a lost rack, and the steps to take"),
            )
        },
    }
    return Object(FORMAT, members, about="What one run of the Kafka durability audit found (docs/findings.md).")


def plans() -> Object:
    """The shape of `durability-plans/1`, the index of a run's reassignment plans."""
    named = {"cluster": Member(Text()), "topic": Member(Text())}
    file = Member(Text(), about="beside the index, as kafka-reassign-partitions reads it")
    later = Member(Text(), optional=True, about="what has to be so before it can be executed")
    made = Object("plan", {**named, "file": file, "not_before": later})
    without = Object("without", {**named, "why": Member(Text())})
    return Object(
        planned.FORMAT,
        {
            "format": Member(Constant(planned.FORMAT)),
            "plans": Member(ListOf(made)),
            "without": Member(ListOf(without), about="topics that need one and have none, and why"),
        },
        about="Reassignment plans of one run of the Kafka durability audit.",
    )


def _finding() -> Object:
    def row(full: bool) -> dict[str, Any]:
        cells = {field.name: _cell(field.type) for field in FINDINGS.arrow}
        return {name: value if full or name in ALWAYS else None for name, value in cells.items()}

    waivers = {0: dict.fromkeys(("owner", "approved_by", "reason", "ticket", "expires"), WORD)}
    full, empty = results.document({**row(True), "waiver": 0}, waivers), results.document(row(False), {})
    full["waiver"] = _object("waiver", results.accepted(0, waivers), results.accepted(0, {}))
    return _object("finding", full, empty, STATED, ABOUT)


def _cell(kind: pa.DataType) -> object:
    """A value of a column of this type, whichever."""
    if pa.types.is_list(kind):
        return [0]
    return 0 if pa.types.is_integer(kind) else "{}" if pa.types.is_string(kind) else MOMENT


def _run(full: bool) -> dict[str, Any]:
    """findings.json's `run`, of one snapshot, with everything that there may be or without."""
    hints = get_type_hints(SnapshotPart).items()
    optional: dict[str, Any] = {name: WORD for name, hint in hints if type(None) in getattr(hint, "__args__", ())}
    optional |= {"captured_at": MOMENT, "stale_snapshot": StaleSnapshot(WORD, MOMENT)}
    part = SnapshotPart(cluster=WORD, status=WORD, **(optional if full else {}))
    policy = SimpleNamespace(name=WORD, sha256=WORD)
    plan = SimpleNamespace(run_id=WORD, started_at=MOMENT, policy=policy, snapshots=[part])
    return build.run_of(plan, SimpleNamespace(verified=True))


def _summary() -> Object:
    """Counts by outcome, severity and change, and by names that each run has its own of."""
    outcomes = MapOf(MapOf(COUNT))
    by_name: dict[str, Shape] = {"clusters": outcomes, "controls": outcomes, "resources": MapOf(COUNT)}
    nothing = pa.schema([FINDINGS.arrow.field(name) for name in results.COUNTED]).empty_table()
    counts = results.summarise(nothing, [])
    return Object("summary", {name: Member(by_name.get(name) or _shape(name, n, n)) for name, n in counts.items()})


NOTHING: Mapping = {}


def _object(
    name: str, full: Mapping, empty: Mapping, stated: Mapping[str, Shape] = NOTHING, about: Mapping[str, str] = NOTHING
) -> Object:
    """An object as these two have it: what is null in the empty one may be null."""

    def member(key: str, value: object) -> Member:
        shape = stated.get(key) or _shape(key, value, empty[key])
        return Member(shape, nullable=empty[key] is None, about=about.get(key, ""))

    return Object(name, {key: member(key, value) for key, value in full.items()})


def _shape(name: str, full: object, empty: object) -> Shape:
    if isinstance(full, Shape):
        return full
    if isinstance(full, dict):
        return _object(name.replace("_", "-"), full, empty if isinstance(empty, dict) else full)
    if isinstance(full, list):
        inner = empty[0] if isinstance(empty, list) and empty else full[0]
        return ListOf(_shape(name.removesuffix("s"), full[0], inner))
    if isinstance(full, bool):
        return Flag()
    return COUNT if isinstance(full, int) else Text(format="date-time" if full == MOMENT else None)
