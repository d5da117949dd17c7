"""The shapes of evidence: period.json, a sample, and the predicate of a run's manifest. Members may be added to all of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from durability.evidence import drills, period, sample, statement, waived
from durability.evidence.verify import PROOF as PROOF_FORMAT
from durability.schemas.results import COUNT, MOMENT, OPTIONAL_TEXT, TEXT
from durability.shapes import (
    INT64,
    Anything,
    Choice,
    Constant,
    Flag,
    ListOf,
    MapOf,
    Member,
    Number,
    Object,
    Text,
    Whole,
)

DAY = Member(Text(format="date"))
NUMBER, UNKNOWN_NUMBER = Member(COUNT), Member(COUNT, nullable=True, about="null: not known")
SHA256 = Text(pattern="[0-9a-f]{64}")
SIGNED = Whole(low=-INT64, high=INT64)
REASONS = Member(MapOf(Text()), about="by member that is null, why")


def _all(names: Iterable[str], member: Member) -> dict[str, Member]:
    return dict.fromkeys(names, member)


def _rows(name: str, about: str = "", /, **members: Member) -> Member:
    return Member(ListOf(Object(name, members)), about=about)


BY_WHY = Member(MapOf(COUNT), nullable=True, about="by reason; null: not known")
OPENED = {"opened": UNKNOWN_NUMBER, "closed": BY_WHY, "open_at_end": UNKNOWN_NUMBER}
OLDEST = {"oldest_days": UNKNOWN_NUMBER}
APART = _all(("cluster", "control"), TEXT) | _all(("open_at_start", "opened", "open_at_end"), UNKNOWN_NUMBER)
EXCEPTIONS = Object(
    "exceptions",
    {
        "open_at_start": UNKNOWN_NUMBER,
        **OPENED,
        "other": Member(
            SIGNED, nullable=True, about="changes of what is open that no run of the period opened or closed"
        ),
        **OLDEST,
        "by_severity": _rows("of-severity", severity=TEXT, **OPENED, **OLDEST),
        "by_cluster": _rows("of-cluster", cluster=TEXT, as_of=Member(MOMENT), **OPENED, **OLDEST),
        "rows": _rows(
            "exception",
            "by cluster, control and severity",
            **_all(("cluster", "control"), TEXT),
            severity=OPTIONAL_TEXT,
            open_at_start=UNKNOWN_NUMBER,
            **OPENED,
            oldest_since=Member(MOMENT, nullable=True),
            **OLDEST,
        ),
        "unknown": _rows("unknown-verdicts", "UNKNOWN, which is not compliant", **APART),
        "exempt": _rows("exempt-failures", "failures that a waiver accepts", **APART),
    },
)
GAP = {"first": DAY, "last": DAY, "nights": NUMBER, "reason": TEXT}
GAPS = _rows("gap", "nights in a row for the same reason", **GAP)
NOT_EXPECTED = _rows("not-expected", "nights in a row that inventories don't expect, with the reason", **GAP)
CLUSTERS = _rows(
    "cluster-nights",
    "by cluster, in nights",
    cluster=TEXT,
    expected_from=Member(Text(format="date"), nullable=True, about="null: no night of the period is expected"),
    last_accepted=Member(Text(format="date"), nullable=True),
    **_all(("expected", "done", "evaluated"), NUMBER),
    done_from_documents=Member(COUNT, about="done nights of clusters that no run has read itself by then"),
    gaps=GAPS,
    not_expected=NOT_EXPECTED,
    evaluated_unexpected=Member(COUNT, about="nights that no inventory expects"),
)
ACLS = Object(
    "acls-of-principal",
    {
        "count": NUMBER,
        "listed": _rows(
            "acl",
            "the first ones, by name",
            **_all(("principal", "permission", "operation", "resource_type", "resource", "pattern", "host"), TEXT),
        ),
    },
)
PRINCIPALS = _rows(
    "cluster-principal",
    "as whom each cluster was read; another row for each change of principal or ACLs",
    cluster=TEXT,
    **_all(("principal", "principal_reason", "acls_reason"), OPTIONAL_TEXT),
    acls=Member(ACLS, nullable=True, about="null: not known, and `acls_reason` says why"),
    **_all(("first_night", "last_night"), DAY),
    snapshots=NUMBER,
)
INVENTORIES = _rows(
    "period-inventory",
    "inventories of clusters that runs of the period compared",
    **_all(("name", "kind"), TEXT),
    **_all(("read", "unread"), Member(COUNT, about="runs")),
    clusters=Member(COUNT, nullable=True, about="in the last run that read it; null: no run did"),
    last_problem=OPTIONAL_TEXT,
)
RUNS = _rows(
    "period-run",
    "nightly runs that count",
    night=DAY,
    **_all(("run_id", "result_id", "status"), TEXT),
    verified=Member(Flag(), nullable=True),
    policy_sha256=OPTIONAL_TEXT,
    **_all(("captured_at", "started_at", "finished_at"), Member(MOMENT)),
)
IN_FORCE = _rows(
    "policy-in-force",
    **_all(("name", "sha256"), OPTIONAL_TEXT),
    **_all(("first_night", "last_night"), DAY),
    runs=NUMBER,
)
WAIVERS = _rows(
    "period-waiver",
    **_all(waived.STATED, OPTIONAL_TEXT) | {"approved_count": UNKNOWN_NUMBER},
    state=Member(Choice(waived.STATES)),
    **_all(("first_night", "last_night"), DAY),
    **_all(("nights_used", "findings_at_most", "covers_at_last"), NUMBER),
    limits=_rows(
        "tier-limit",
        "by tier that limits how long waivers last, in the last run that has the waiver",
        tier=TEXT,
        days=Member(COUNT, about="the longest term, from the approval"),
        since=Member(
            Text(format="date"), nullable=True, about="null: it counts on no day, or an earlier version wrote it"
        ),
        until=Member(Text(format="date"), nullable=True, about="the last day on which it counts; null: on no day"),
        state=Member(Text(), about="at the end of the period"),
    ),
)
DRILL = Object(
    "period-drill",
    {
        **_all(drills.STATED, TEXT),
        "kind": Member(Text(), about="drill: on the cluster itself; rehearsal: on an embedded cluster in its place"),
        "asked": Member(ListOf(Text()), about="what was to fail"),
        **_all(("brokers", "controllers"), Member(ListOf(COUNT))),
        "compared": Member(COUNT, about="partitions"),
        "agreed": Member(COUNT, about="partitions that are as predicted"),
        "started_by": OPTIONAL_TEXT,
        **_all(("seen_at", "predicted_at"), Member(MOMENT)),
        "seen_in": Member(
            Text(), nullable=True, about="the snapshot after the loss; null: of a rehearsal, which keeps none"
        ),
        "run_id": TEXT,
    },
)
DRILLS = Object(
    "period-drills",
    {"found": Member(ListOf(DRILL), nullable=True, about="null: `reason` says why"), "reason": OPTIONAL_TEXT},
)
REQUIREMENT = _rows(
    "period-requirement",
    **_all(("id", "title", "strength", "shows", "not_shown"), TEXT),
    controls=Member(ListOf(Text())),
)
OBJECTIVE = Object(
    "period-objective",
    {
        **_all(("tier", "harm", "loss"), TEXT),
        "objective": Member(Number(), nullable=True, about="percent of partition-minutes"),
        "state": OPTIONAL_TEXT,
        "partition_minutes": Member(
            Object("period-partition-minutes", _all(("one_failure_away", "unknown", "all"), Member(Number())))
        ),
        "budget_used": Member(Number(), nullable=True, about="1: all of it. Unknown time may have used more"),
        "worst_cluster": OPTIONAL_TEXT,
    },
)
OBJECTIVES = Object(
    "period-objectives",
    {
        "found": Member(ListOf(OBJECTIVE), nullable=True, about="null: `reason` says why"),
        "reason": OPTIONAL_TEXT,
        "uncounted": Member(ListOf(Text()), about="clusters that are in no number"),
        "other_tiers": Member(
            ListOf(Text()), about="tiers that no run of the period has a record of; they are in no number"
        ),
    },
)
PERIOD = Object(
    period.FORMAT,
    {
        "format": Member(Constant(period.FORMAT)),
        "from": DAY,
        "to": Member(Text(format="date"), about="the first day after the period"),
        "made_at": Member(MOMENT),
        "lake": TEXT,
        "framework": Member(
            Object("period-framework", {"id": TEXT, "title": TEXT, "requirements": REQUIREMENT}), nullable=True
        ),
        "unknown": Member(ListOf(Text()), about="what this evidence doesn't show"),
        "nights": Member(Object("cluster-night-counts", _all(("expected", "done", "evaluated"), NUMBER))),
        "inventories": INVENTORIES,
        "clusters": CLUSTERS,
        "principals": PRINCIPALS,
        "runs": RUNS,
        "policies": Member(Object("policies", {"in_force": IN_FORCE, "changes": NUMBER})),
        "exceptions": Member(EXCEPTIONS),
        "waivers": WAIVERS,
        "drills": Member(DRILLS),
        "objectives": Member(OBJECTIVES),
        "pulses": _rows("cluster-pulses", cluster=TEXT, **_all(("pulses", "longest_gap_seconds"), NUMBER)),
    },
    about="The evidence of a period of the Kafka durability audit (docs/evidence.md).",
)

PROOF = Object(
    PROOF_FORMAT,
    {
        "format": Member(Constant(PROOF_FORMAT)),
        "files": Member(
            MapOf(Text()), about="the run's manifest, its signature and its public key, by the names of their files"
        ),
        "finding": Member(Text(), about="its line of findings.json, without the comma at its end"),
        "index": Member(COUNT, about="its place in findings.json, from 0"),
        "path": Member(ListOf(SHA256), about="the siblings on the way to the root, the lowest first"),
    },
    about="Proves that a finding is one of a run, without the others (docs/evidence.md).",
)

COMMANDS = _rows("command", "commands that show the same again", shows=TEXT, command=TEXT)
SAMPLED = {
    **_all(("cluster", "id", "control", "resource_type", "resource"), TEXT),
    **_all(("category", "severity", "observed"), OPTIONAL_TEXT),
    "outcome": Member(Choice(sample.OUTCOMES)),
    "snapshot": Member(Object("sampled-snapshot", {"captured_at": Member(MOMENT), "attempt_id": TEXT}), nullable=True),
    "facts": Member(MapOf(Anything()), nullable=True, about="as collected; null: `reason` says why"),
    "reason": OPTIONAL_TEXT,
    "commands": COMMANDS,
}
SAMPLE = Object(
    sample.FORMAT,
    {
        "format": Member(Constant(sample.FORMAT)),
        "run": Member(
            Object(
                "sampled-run",
                {**_all(("run_id", "result_id"), TEXT), "policy_sha256": OPTIONAL_TEXT, "captured_at": Member(MOMENT)},
            )
        ),
        "seed": Member(SIGNED),
        "cluster": OPTIONAL_TEXT,
        "method": TEXT,
        "population": Member(Object("population", _all(("verdicts", *sample.OUTCOMES), NUMBER))),
        "sample": _rows("sampled-verdict", **SAMPLED),
    },
    about="Verdicts that were picked reproducibly, with facts and commands (docs/evidence.md).",
)

FILE_HASH = Member(Object("file-hash", {"sha256": Member(SHA256)}), nullable=True)
ACLS_SHA256 = Member(SHA256, about="of the canonical JSON of the cluster's entry in inputs/acls.json")
PRINCIPAL = Object(
    "attested-principal",
    {
        "security_protocol": TEXT,
        **_all(("sasl_mechanism", "name"), OPTIONAL_TEXT),
        "reason": Member(Text(), nullable=True, about="why its name is unknown"),
    },
)
APIS = _rows("called-api", "requests that were answered", api=TEXT, **_all(("key", "version"), NUMBER), count=NUMBER)
SIZES = Object("sizes", _all(("brokers", "topics", "partitions"), UNKNOWN_NUMBER))
COUNTS = Object(
    "independent-counts",
    {
        "declared": Member(SIZES, nullable=True, about="what the cluster says it has"),
        "kept": Member(SIZES, nullable=True, about="rows in the lake"),
        "log_dirs": Member(SIZES, nullable=True, about="what the brokers' log dirs have"),
        "hidden_partitions": UNKNOWN_NUMBER,
        "inventory": UNKNOWN_NUMBER,
    },
)
SNAPSHOT = {
    **_all(("cluster", "status"), TEXT),
    **_all(("reason", "snapshot_id", "source", "document", "kafka_cluster_id", "kafka_version"), OPTIONAL_TEXT),
    "captured_at": Member(MOMENT, nullable=True),
    "sha256": Member(SHA256, nullable=True, about="of the canonical JSON of its document"),
    "acls": Member(
        Object("attested-acls", {"count": NUMBER, "sha256": ACLS_SHA256}),
        nullable=True,
        about="of the principal and of User:*; null: not known, and `unknown` says why",
    ),
    "principal": Member(PRINCIPAL, nullable=True, about="as whom the cluster was read"),
    "apis": replace(APIS, nullable=True),
    "clock_offset_ms": Member(SIGNED, nullable=True, about="how far the clock of the quorum's leader is ahead"),
    "counts": Member(COUNTS, about="independent counts, by where they are from"),
    "unreadable": UNKNOWN_NUMBER,
    "reperform": COMMANDS,
    "unknown": REASONS,
}
INVENTORY = Object(
    "compared-inventory",
    {
        "sources": _rows(
            "inventory-source",
            **_all(("name", "kind"), TEXT),
            reason=OPTIONAL_TEXT,
            clusters=Member(COUNT, nullable=True, about="null: not read, and `reason` says why"),
            sha256=Member(SHA256, nullable=True),
        ),
        "not_audited": Member(
            ListOf(Text()), about="clusters of an inventory that no entry of clusters.yaml represents"
        ),
        "not_listed": Member(ListOf(Text()), about="clusters of clusters.yaml that no inventory lists"),
    },
)
SIGNING = Object(
    "signing",
    {
        "signed": Member(Flag()),
        "key": Member(Text(), nullable=True, about="the id of the key"),
        "reason": Member(Text(), nullable=True, about="why it isn't signed"),
    },
)
EVIDENCE = Object(
    statement.FORMAT,
    {
        "format": Member(Constant(statement.FORMAT)),
        "folder": TEXT,
        "number": NUMBER,
        "previous": Member(
            Object("previous-manifest", {"folder": TEXT, "manifest_sha256": Member(SHA256, nullable=True)}),
            nullable=True,
            about="the manifest before this one; null: none",
        ),
        "signing": Member(SIGNING),
        "inputs": Member(
            Object(
                "inputs",
                {
                    **_all(("policy", "waivers", "clusters", "inventory"), FILE_HASH),
                    "as_evaluated": Member(Flag(), nullable=True),
                    "unknown": REASONS,
                },
            )
        ),
        "run": Member(
            Object(
                "attested-run",
                {
                    **_all(("id", "result_id", "kind", "status"), TEXT),
                    **_all(("started_at", "attested_at"), Member(MOMENT)),
                    "verified": Member(Flag()),
                },
            )
        ),
        "policy": Member(Object("attested-policy", {"name": TEXT, "sha256": Member(SHA256)})),
        "code": Member(Object("code", {**_all(("name", "version", "reperform"), TEXT), "sha256": Member(SHA256)})),
        "lake": OPTIONAL_TEXT,
        "snapshots": _rows("attested-snapshot", **SNAPSHOT),
        "findings": Member(
            Object(
                "attested-findings", {"count": NUMBER, "root": Member(SHA256, about="of their Merkle tree (RFC 6962)")}
            ),
            nullable=True,
            about="null: the report has no findings.json",
        ),
        "inventory": Member(INVENTORY, nullable=True, about="null: clusters.yaml has no inventory"),
    },
    about="The predicate of a run's manifest, an in-toto Statement v1 (docs/evidence.md).",
)
