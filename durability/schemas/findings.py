"""The shape of findings.json. Members may be added."""

from __future__ import annotations

from dataclasses import replace

from durability.report.data import objectives, outages
from durability.report.data.health import METRICS
from durability.report.data.results import KEYS, WAIVER_KEYS
from durability.report.files import FORMAT
from durability.report.words import CHANGES, OUTCOMES, SEVERITIES
from durability.schemas.results import COUNT, MOMENT, OPTIONAL_TEXT, TEXT, choice, counts
from durability.shapes import Anything, Choice, Constant, Flag, ListOf, MapOf, Member, Number, Object, Text

OPTIONAL_COUNT, OPTIONAL_MOMENT = Member(COUNT, nullable=True), Member(MOMENT, nullable=True)


def _news(name: str, about: str) -> Member:
    return replace(counts(name, SEVERITIES), optional=True, about=f"failures by severity {about}")


def _optional(about: str) -> Member:
    return Member(Text(), nullable=True, about=about)


def _listed(shape: Object, about: str) -> Member:
    return Member(ListOf(shape), optional=True, about=about)


def _by_period(name: str, value: Member) -> Object:
    return Object(name, dict.fromkeys(objectives.PERIODS, value))


STALE_SNAPSHOT = Object("stale-snapshot", {"snapshot_id": TEXT, "captured_at": Member(MOMENT)})
SNAPSHOT = Object(
    "snapshot",
    {
        "cluster": TEXT,
        "snapshot_id": OPTIONAL_TEXT,
        "captured_at": Member(MOMENT, nullable=True),
        "status": TEXT,
        "reason": OPTIONAL_TEXT,
        "sha256": OPTIONAL_TEXT,
        "compared": Member(Flag()),
        "stale_snapshot": Member(STALE_SNAPSHOT, nullable=True),
    },
)
RUN = Object(
    "run",
    {
        "id": TEXT,
        "started_at": Member(MOMENT),
        "verified": Member(Flag()),
        "policy": Member(Object("policy", {"name": TEXT, "sha256": TEXT})),
        "framework": Member(
            Object("cut-to-framework", {"id": TEXT, "title": TEXT, "controls": Member(ListOf(Text()))}),
            optional=True,
            nullable=True,
            about="Only these controls are reported, those that support the framework; null: all",
        ),
        "snapshots": Member(ListOf(SNAPSHOT)),
    },
)
SUMMARY = Object(
    "summary",
    {
        "outcomes": counts("outcomes", OUTCOMES),
        "severities": counts("severities", SEVERITIES),
        "clusters": Member(MapOf(MapOf(COUNT))),
        "controls": Member(MapOf(MapOf(COUNT))),
        "changes": counts("changes", CHANGES),
        "new_failures": _news("new_failures", "that the previous run didn't have"),
        "worsened_failures": _news("worsened_failures", "that it had as UNKNOWN, less severe or EXEMPT"),
        "resources": Member(MapOf(COUNT)),
    },
)
WAIVER = Object(
    "waiver",
    {
        "index": Member(COUNT),
        **dict.fromkeys(WAIVER_KEYS, OPTIONAL_TEXT),
        "approved_count": Member(COUNT, nullable=True, about="how many resources it covered when it was approved"),
    },
)
STATED = {
    "id": Member(Text(), about="the same in every run, for the same resource and control (and category)"),
    **dict.fromkeys(("cluster", "resource_type", "resource", "control"), TEXT),
    "outcome": Member(Choice(OUTCOMES)),
    "severity": choice(SEVERITIES),
    "cause": _optional("what findings have in common: one thing to fix"),
    "observed": Member(MapOf(Anything())),
    "required": Member(MapOf(Anything())),
    "partitions": Member(ListOf(COUNT), about="ids, where the control is about partitions"),
    "remediation": _optional("a sentence, or commands that can be pasted into bash"),
    "change": choice(CHANGES),
    "why": _optional("of a resolved one: fixed, waived, policy-changed, resource-deleted or cause-cleared"),
    "since": Member(MOMENT, nullable=True, about="the snapshot in which a run found it first"),
    "waiver": Member(WAIVER, nullable=True, about="who accepted it until when"),
    "previous_severity": choice(SEVERITIES, "in the previous run, if it listed the finding as a failure"),
    "previous_outcome": Member(
        Choice(("FAIL", "UNKNOWN", "EXEMPT")),
        nullable=True,
        optional=True,
        about="in the previous run; null if that run didn't list the finding",
    ),
    "team": Member(Text(), nullable=True, optional=True, about="who owns the resource; null if no team is named"),
}
"""Members of a finding other than OPTIONAL_TEXT."""


VALUE_LOST = Object(
    "value-lost",
    {
        **dict.fromkeys(("tag", "value"), TEXT),
        "count": Member(COUNT, about="tasks whose active and standbys are all on clients with this value"),
        "tasks": Member(ListOf(Text()), about="some of these tasks"),
        **dict.fromkeys(("active", "standby"), Member(COUNT, about="tasks on clients with this value")),
    },
)
APPLICATION = Object(
    "application",
    {
        **dict.fromkeys(("cluster", "group"), TEXT),
        **dict.fromkeys(("type", "tier"), OPTIONAL_TEXT),
        "unknown": _optional("why its tasks can't be evaluated"),
        **dict.fromkeys(("clients", "stateful_tasks"), OPTIONAL_COUNT),
        "standby_replicas": Member(COUNT, nullable=True, about="of the task with the fewest"),
        "rack_aware_tags": Member(ListOf(Text())),
        "losses": Member(ListOf(VALUE_LOST), about="by value of a tag"),
    },
)
BROKER = Object(
    "broker-counts",
    {
        "cluster": TEXT,
        "broker": Member(COUNT),
        "rack": OPTIONAL_TEXT,
        "live": Member(Flag(), nullable=True),
        **{metric: Member(COUNT) for metric in METRICS.values()},
        "unknown": Member(COUNT, about="partitions that it leads whose category is unknown"),
    },
)
LOST_RACK = Object(
    "lost-rack",
    {
        "rack": TEXT,
        "brokers": Member(ListOf(COUNT)),
        "since": OPTIONAL_MOMENT,
        "perhaps_since": Member(
            MOMENT, nullable=True, about="if it may have been lost before, in time that was not read"
        ),
    },
)
OUTAGE_STEP = Object(
    "outage-step",
    {
        "step": Member(Choice(outages.ORDER)),
        "setting": TEXT,
        "value": Member(COUNT, nullable=True, about="before the outage"),
        "source": OPTIONAL_TEXT,
        **dict.fromkeys(("now", "lower_to"), OPTIONAL_COUNT),
        "since": OPTIONAL_MOMENT,
        "topics": Member(ListOf(Text()), about="those that the commands name"),
        "more": Member(COUNT, about="how many other topics have the same step"),
        "partitions": Member(COUNT),
        **dict.fromkeys(("lower", "restore"), _optional("a script")),
        "words": TEXT,
    },
)
RACK_OUTAGE = Object(
    "rack-outage",
    {
        "cluster": TEXT,
        "lost_racks": Member(ListOf(LOST_RACK)),
        "assess": _optional("what to do where no partition needs a step"),
        "steps": Member(ListOf(OUTAGE_STEP)),
    },
)
PARTITION_MINUTES = Object(
    "partition-minutes", dict.fromkeys(("one_failure_away", "unknown", "all"), Member(Number(low=0)))
)
OBJECTIVE = Object(
    "objective",
    {
        "tier": TEXT,
        "harm": Member(Choice(tuple(dict.fromkeys(harm for harm, _ in objectives.HARMS)))),
        "loss": Member(Choice(tuple(dict.fromkeys(loss for _, loss in objectives.HARMS)))),
        "objective": Member(Number(low=0, high=100), nullable=True, about="percent of partition-minutes"),
        "state": choice(objectives.STATES, "of the longest period"),
        "partition_minutes": Member(_by_period("partition-minutes-by-period", Member(PARTITION_MINUTES))),
        "budget_used": Member(
            _by_period("budget-by-period", Member(Number(low=0), nullable=True)), about="1: all of it"
        ),
        "worst_cluster": OPTIONAL_TEXT,
    },
)
FINDING = Object("finding", {key: STATED.get(key, OPTIONAL_TEXT) for key in KEYS})
FINDINGS = Object(
    FORMAT,
    {
        "format": Member(Constant(FORMAT)),
        "run": Member(RUN),
        "summary": Member(SUMMARY),
        "findings": Member(ListOf(FINDING), about="every outcome but PASS and NOT_APPLICABLE, worst first"),
        "applications": _listed(APPLICATION, "Kafka Streams applications that a line of the policy names"),
        "brokers": _listed(BROKER, "brokers that lead unhealthy partitions, worst first"),
        "rack_outages": _listed(RACK_OUTAGE, "clusters with a lost rack, and the steps to take"),
        "objectives": _listed(OBJECTIVE, "by tier, the partition-minutes one failure away from harm (docs/losses.md)"),
    },
    about="What one run of the Kafka durability audit found (docs/findings.md).",
)
