"""The shapes of a plan of change: plan.json and before.json. Members may be added to both."""

from __future__ import annotations

from durability.remedies.change.model import KINDS
from durability.report import applied
from durability.report.change import BEFORE, FORMAT
from durability.report.words import SEVERITIES
from durability.schemas.results import COUNT, MOMENT, OPTIONAL_TEXT, TEXT
from durability.shapes import Anything, Choice, Constant, Flag, ListOf, MapOf, Member, Number, Object, Text

IDS = Member(ListOf(COUNT))
HASH = Text(pattern="[0-9a-f]{64}")
CLUSTER = {
    "cluster": TEXT,
    "kafka_cluster_id": OPTIONAL_TEXT,
    "snapshot_id": TEXT,
    "captured_at": Member(MOMENT),
}
TOPIC = Member(Text(), nullable=True, about="null: a default of the whole cluster")
VALUE = Member(Text(), nullable=True, about="null: none of its own, which differs from an override with the same value")
STEP = Object(
    "step",
    {
        "id": Member(Text(), about="its number and kind, and the name of its files"),
        "kind": Member(Choice(KINDS)),
        "topics": Member(ListOf(Text())),
        "partitions": Member(COUNT, about="how many it moves, or elects a leader of"),
        "bytes": Member(COUNT, about="that it copies, as far as sizes are known"),
        "unknown_bytes": Member(
            COUNT,
            optional=True,
            about="new replicas of partitions of unknown size: they count 0 bytes; left out: as many as 0",
        ),
        "why": TEXT,
        "undo": Member(Text(), nullable=True, about="the script that takes it back; null if the plan isn't offered"),
        "after": Member(ListOf(Text()), about="steps that must be complete before it"),
        "brokers": Member(ListOf(COUNT), about="brokers that must come back"),
        "settings": Member(ListOf(Object("setting", {"topic": TOPIC, "name": TEXT, "was": VALUE, "value": VALUE}))),
    },
)
MOVED = Object(
    "moved",
    {
        "replicas": Member(COUNT, about="new replicas"),
        "bytes": Member(COUNT),
        "bound_replicas": Member(COUNT, about="no plan that meets the targets adds fewer"),
        "bound_bytes": Member(COUNT),
        "unknown_bytes": Member(COUNT, about="new replicas of partitions of unknown size: they count 0 bytes"),
        "why_not_bound": Member(ListOf(Text())),
    },
)
LOAD = Object(
    "load",
    {
        "before": Member(MapOf(COUNT), about="by broker id"),
        "after": Member(MapOf(COUNT)),
        "bound": Member(Number(), about="no plan that moves as little has less on its most loaded broker"),
    },
)
LOAD_OF_REPLICAS = Object(
    "load-of-replicas",
    {
        **LOAD.members,
        "above_limit": Member(
            ListOf(COUNT),
            about="brokers that get more than 1.1 times the fair share, because racks leave no other choice without more copies",
        ),
    },
)
NOTE = Object("note", {"topic": TEXT, "why": TEXT})
REMAINS = Object("remains", {"id": TEXT, "why": TEXT})
NEW = Object(
    "new",
    {
        **dict.fromkeys(("id", "control", "resource", "outcome"), TEXT),
        "severity": Member(Choice(SEVERITIES), nullable=True),
    },
)
PROOF = Object(
    "proof",
    {
        "offered": Member(Flag(), about="a plan that isn't offered has no scripts"),
        "cross_checked": Member(
            Flag(),
            about="did the cross-check confirm the findings before the plan? It never checks the planned topology",
        ),
        "mends": Member(ListOf(Text()), about="targeted findings that the planned topology is shown not to have"),
        "improves": Member(
            ListOf(Text()),
            about="findings that are gone or less bad there, targeted or not: they may come back by the undo",
        ),
        "remains": Member(ListOf(REMAINS), about="targeted findings that it has, and why"),
        "new": Member(ListOf(NEW), about="findings that are new or worse there: they refute the plan"),
        "harms": Member(ListOf(Text()), about="what a step would do on the way: it refutes the plan"),
    },
)
PLAN_OF_CHANGE = Object(
    FORMAT,
    {
        "format": Member(Constant(FORMAT)),
        "id": TEXT,
        "made_at": Member(MOMENT),
        **CLUSTER,
        "policy": Member(Object("policy", {"name": TEXT, "sha256": TEXT})),
        "undoes": Member(Text(), nullable=True, about="the plan that this one takes back"),
        "targets": Member(ListOf(Text()), about="ids of the findings that it is for, worst first"),
        "moved": Member(MOVED),
        "load": Member(LOAD_OF_REPLICAS, nullable=True, about="replicas by broker; null if nothing was planned"),
        "load_bytes": Member(LOAD, nullable=True, about="bytes by broker; null if no size is known"),
        "leaders": Member(LOAD, nullable=True, about="partitions by preferred leader"),
        "copysets": Member(
            MapOf(Anything()),
            nullable=True,
            about="distinct replica sets, and the share of pairs and triples that break",
        ),
        "waves": Member(
            Object("waves", {"before": Member(COUNT), "after": Member(COUNT)}), about="restart waves, by a quick search"
        ),
        "steps": Member(ListOf(STEP), about="in the order in which they run"),
        "proof": Member(PROOF),
        "left_out": Member(
            ListOf(Object("left-out", {"topic": Member(Text(), nullable=True, about="null: the cluster"), "why": TEXT}))
        ),
        "notes": Member(ListOf(NOTE), about="topics that move, and which part of their target they don't reach"),
        "files": Member(MapOf(HASH), about="SHA-256 of the other files"),
        "sha256": Member(HASH, about="of this file's canonical JSON without this member"),
    },
    about="A plan of change for one cluster (docs/plan.md).",
)
PLACEMENT = Object("placement", {"topic": TEXT, "partition": Member(COUNT), "replicas": IDS})
PLAN_BEFORE = Object(
    BEFORE,
    {
        "format": Member(Constant(BEFORE)),
        **CLUSTER,
        "topic_ids": Member(
            MapOf(Text()),
            optional=True,
            about="Kafka's ids of the topics that it changes, as far as they are known: with another id it is another topic",
        ),
        "placements": Member(ListOf(PLACEMENT)),
        "settings": Member(ListOf(Object("earlier", {"topic": TOPIC, "name": TEXT, "value": VALUE}))),
    },
    about="The placements and settings that a plan of change rests on (docs/plan.md).",
)
TARGET = Object(
    "target",
    {
        "id": Member(Text(), about="of the finding"),
        "control": OPTIONAL_TEXT,
        "resource_type": OPTIONAL_TEXT,
        "resource": OPTIONAL_TEXT,
        "promised": Member(Flag(), about="did the plan's proof promise to fix it?"),
        "state": Member(Choice((applied.GONE, applied.REMAINS, applied.UNKNOWN))),
        "why": Member(Text(), nullable=True, about="what the finding says now; null if it is gone"),
    },
)
PLAN_APPLIED = Object(
    applied.FORMAT,
    {
        "format": Member(Constant(applied.FORMAT)),
        **CLUSTER,
        "plan": Member(Text(), about="its id"),
        "run_id": Member(Text(), about="of the results after it, in the lake"),
        "approved_by": OPTIONAL_TEXT,
        "approved_at": Member(MOMENT, nullable=True),
        "comment": Member(Text(), nullable=True, about="the approver's"),
        "done": Member(ListOf(Text()), about="ids of the steps that are complete"),
        "left": Member(ListOf(Text()), about="what was left as it is, because others changed it"),
        "targets": Member(ListOf(TARGET), about="the findings that the plan was for, worst first"),
    },
    about="What became of the findings of a plan that was applied (docs/remediate.md).",
)
