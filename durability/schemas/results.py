"""The shapes of what commands write: plans/index.json, whatif.json, restart.json and drill.json. Members may be added."""

from __future__ import annotations

from collections.abc import Iterable

from durability.remedies import plans as reassignment
from durability.report import drill, restart, whatif
from durability.report.data import clients, losses
from durability.report.data.drill import FIELDS
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

TEXT, OPTIONAL_TEXT, COUNT = Member(Text()), Member(Text(), nullable=True), Whole(high=INT64)
MOMENT = Text(format="date-time")


def counts(name: str, keys: Iterable[str]) -> Member:
    """An object with a count for each key."""
    return Member(Object(name, {key: Member(COUNT) for key in keys}))


def choice(values: tuple[str, ...], about: str = "") -> Member:
    """One of `values`, or null."""
    return Member(Choice(values), nullable=True, about=about)


PLAN = Object(
    "plan",
    {
        "cluster": TEXT,
        "topic": TEXT,
        "file": Member(Text(), about="beside the index, as kafka-reassign-partitions reads it"),
        "not_before": Member(Text(), optional=True, about="what has to be so before it can be executed"),
    },
)
GONE = Object(
    "gone",
    {
        "cluster": TEXT,
        "brokers": Member(ListOf(Whole(high=INT64))),
        "file": Member(Text(), about="beside the index, as kafka-reassign-partitions reads it"),
        "script": Member(Text(), about="runs it with a throttle, and unregisters the brokers"),
        "partitions": Member(COUNT),
        "left": Member(COUNT, about="partitions that stay"),
    },
)
WITHOUT = Object("without", {"cluster": TEXT, "topic": TEXT, "why": TEXT})
PLANS = Object(
    reassignment.FORMAT,
    {
        "format": Member(Constant(reassignment.FORMAT)),
        "plans": Member(ListOf(PLAN)),
        "without": Member(ListOf(WITHOUT), about="topics that need one and have none, and why"),
        "gone": Member(ListOf(GONE), optional=True, about="plans for brokers that are down, if these never come back"),
    },
    about="Reassignment plans of one run of the Kafka durability audit.",
)

CLASSES = counts("classes", losses.CLASSES)
LOST = Object(
    "lost",
    {
        "asked": Member(ListOf(Text())),
        **dict.fromkeys(("brokers", "controllers", "down_already"), Member(ListOf(COUNT))),
    },
)
QUORUM = Object(
    "quorum", {**dict.fromkeys(("voters", "left", "needed"), Member(COUNT)), "kept": Member(Flag(), nullable=True)}
)
VIEWS = Object("views", dict.fromkeys(losses.VIEWS, CLASSES))
ERRORS = Object("errors", dict.fromkeys(losses.VIEWS[:2], counts("answers", losses.ERRORS)))
UNPREDICTED = Object(
    "unknown",
    {
        "partitions": Member(COUNT),
        "quorum": Member(Flag(), about="whether it is unknown if the controllers keep a majority"),
        "topics": Member(COUNT, about="topics whose partitions could not be read"),
        "hidden_partitions": Member(
            COUNT, nullable=True, about="of topics that the auditor may not see; null: unknown"
        ),
        "unplaced_brokers": Member(ListOf(COUNT), about="brokers that may be in a lost rack"),
        "unplaced_controllers": Member(ListOf(COUNT)),
    },
)
STOPPED_GROUP = Object(
    "stopped-group",
    {
        "group": TEXT,
        "partition": Member(COUNT, about="of __consumer_offsets"),
        "now": Member(Choice(clients.STOPPED)),
        **dict.fromkeys(("type", "state"), OPTIONAL_TEXT),
    },
)
APPLICATION = Object(
    "application",
    {
        "application": TEXT,
        "tags": Member(ListOf(Text()), about="client tags that name racks"),
        "cold": Member(COUNT, about="tasks whose active and standbys all run in lost racks"),
        "tasks": Member(ListOf(Text()), about="some of them"),
        "unsure": Member(COUNT, about="tasks for which that is unknown"),
        "untold": Member(Text(), nullable=True, about="why nothing is known about the application's tasks"),
        "changelogs": Member(MapOf(COUNT), about="partitions of its changelogs that stop, by class"),
    },
)
CLIENT = Object(
    "client",
    {
        **dict.fromkeys(clients.STOPPED, Member(COUNT, optional=True)),
        "of": Member(COUNT, optional=True, about="all partitions of the topics"),
        "topics": Member(ListOf(Text()), optional=True, about="the first of those with partitions that stop"),
        "topics_count": Member(COUNT, optional=True),
        "groups": Member(ListOf(STOPPED_GROUP), optional=True, about="known groups whose partition stops, worst first"),
        "groups_count": Member(COUNT, optional=True, nullable=True, about="null: a partition could not be read"),
        "all_groups_known": Member(Flag(), optional=True),
        "applications": Member(ListOf(APPLICATION), optional=True, about="Kafka Streams, most cold tasks first"),
        "applications_count": Member(COUNT, optional=True),
    },
)
WHATIF = Object(
    whatif.FORMAT,
    {
        "format": Member(Constant(whatif.FORMAT)),
        **dict.fromkeys(("cluster", "snapshot_id"), TEXT),
        "captured_at": Member(MOMENT),
        "lose": Member(LOST),
        "quorum": Member(QUORUM, nullable=True, about="null without KRaft, or if no voter is known"),
        "views": Member(VIEWS, about="partitions after the loss"),
        "topics": Member(VIEWS),
        "errors": Member(ERRORS, about="the brokers' answers of partitions that reject writes, where they are known"),
        "worst_topics": Member(ListOf(MapOf(Anything())), about="worst first, with partitions by class"),
        "already": Member(MapOf(COUNT), about="partitions that the loss doesn't change and that don't accept writes"),
        "stalls": Member(COUNT, about="partitions whose writes wait until the lost brokers are fenced"),
        "acks_1_may_lose": Member(COUNT, about="partitions led by a lost broker"),
        "clients": Member(MapOf(CLIENT), about="what stops, by kind of client"),
        "unknown": Member(UNPREDICTED),
    },
    about="A prediction of what a loss does (docs/losses.md).",
)

NODES = Member(ListOf(COUNT))
SHARED = {"partitions": Member(COUNT), "topic": Member(Text(), about="of one of them"), "partition": Member(COUNT)}
UNPLANNED = Object(
    "unplanned",
    {
        "nodes": NODES,
        "partitions": Member(COUNT, about="whose replicas, ISR or minimum are unknown"),
        "topics": Member(COUNT, about="topics whose partitions could not be read"),
        "hidden_partitions": Member(
            COUNT, nullable=True, about="of topics that the auditor may not see; null: unknown"
        ),
        "quorum": Member(Flag(), about="whether it is unknown which nodes vote"),
    },
)
RESTART = Object(
    restart.FORMAT,
    {
        "format": Member(Constant(restart.FORMAT)),
        **dict.fromkeys(("cluster", "snapshot_id"), TEXT),
        "captured_at": Member(MOMENT),
        "limits": Member(
            Object(
                "limits",
                {"margin": Member(COUNT), "max": Member(COUNT, nullable=True), "voters": Member(COUNT)},
            )
        ),
        "waves": Member(
            ListOf(ListOf(COUNT)), about="nodes that stop together; the next wave starts when every ISR is whole"
        ),
        "bound": Member(COUNT, about="no plan has fewer waves"),
        "bound_why": Member(
            Object("bound-why", {"why": Member(Choice(tuple(restart.BOUNDS))), "brokers": NODES}),
        ),
        "proven": Member(Flag()),
        "whole": Member(Flag(), about="whether all brokers are up and all replicas in sync"),
        "valid": Member(
            Flag(),
            nullable=True,
            about="whether the waves keep acks=all writes accepted, but for `unavoidable`; null: a fact is unknown",
        ),
        "before": Member(
            Object("before", {"down": NODES, "unknown": NODES, "partitions_not_in_sync": Member(COUNT)}),
            about="what must come back first; unknown: nodes that may be down",
        ),
        "unknown": Member(UNPLANNED),
        "unavoidable": Member(
            ListOf(
                Object(
                    "unavoidable",
                    {"happens": Member(Choice(tuple(restart.WORDS))), "replicas": NODES, **SHARED},
                )
            ),
            about="partitions that no plan spares",
        ),
        "by_rack": Member(
            Object(
                "by-rack",
                {
                    "valid": Member(Flag(), nullable=True),
                    "partitions": Member(COUNT, about="those whose writes it would stop"),
                    "without_rack": NODES,
                    "too_many_voters": Member(ListOf(Text()), about="racks with more voters than a wave takes"),
                    "too_many_nodes": Member(ListOf(Text()), about="racks with more nodes than a wave takes"),
                },
            ),
            about="whether a wave per rack would do",
        ),
        "costly": Member(ListOf(Object("costly", {"brokers": NODES, **SHARED})), about="pairs that cost waves"),
    },
    about="In which waves brokers may restart (docs/losses.md).",
)

PLACE = {"topic": TEXT, "partition": Member(COUNT)}
RACKED = Member(ListOf(Object("racked-node", {"id": Member(COUNT), "rack": OPTIONAL_TEXT})))
MINIATURE = Object(
    "miniature",
    {
        "kafka_version": TEXT,
        "elr": Member(Flag(), about="whether eligible leader replicas (KIP-966) are on"),
        "brokers": RACKED,
        "controllers": RACKED,
        "placements": Member(COUNT, about="distinct placements that were rebuilt, a partition for each"),
        "partitions": Member(COUNT, about="partitions of the document that these represent"),
        "left_out": Member(
            ListOf(Object("left-out", {"why": TEXT, "partitions": Member(COUNT)})),
            about="partitions that none represents",
        ),
        "not_rebuilt": Member(ListOf(Text()), about="how the miniature differs from the document"),
    },
)
LEDGER = Object(
    "ledger",
    {
        "acknowledged": Member(
            COUNT, about="records that brokers acknowledged with acks=all, before and after the loss"
        ),
        "found": Member(COUNT, about="records that are there after everything is back"),
        "missing_as_predicted": Member(
            COUNT, about="missing, where the prediction is that an unclean leader deletes some"
        ),
        "missing": Member(
            ListOf(Object("missing", {**PLACE, "records": Member(COUNT)})), about="against the prediction"
        ),
        "unread": Member(COUNT, about="partitions that could not be read afterwards"),
        "why_unread": OPTIONAL_TEXT,
        "whole": Member(Flag()),
    },
)
DRILL = Object(
    drill.FORMAT,
    {
        "format": Member(Constant(drill.FORMAT)),
        **dict.fromkeys(("cluster", "snapshot_id"), TEXT),
        "captured_at": Member(MOMENT),
        "lose": Member(LOST),
        "quorum": Member(QUORUM, nullable=True, about="null without KRaft, or if no voter is known"),
        "seen_at": Member(MOMENT, about="when the cluster was read again"),
        "compared": Member(COUNT, about="partitions of which at least one field was compared"),
        "agreed": Member(COUNT, about="partitions whose compared fields all agree"),
        "agreement": Member(
            Number(low=0, high=1), nullable=True, about="agreed / compared; null: nothing was compared"
        ),
        "fields": Member(MapOf(Object("of-field", {"compared": Member(COUNT), "agreed": Member(COUNT)}))),
        "differs": Member(
            ListOf(
                Object(
                    "differs",
                    {
                        **PLACE,
                        "field": Member(Choice(FIELDS)),
                        "predicted": Member(Anything(), nullable=True),
                        "seen": Member(Anything(), nullable=True),
                    },
                )
            ),
            about="at most 1,000",
        ),
        "not_compared": Member(
            ListOf(
                Object(
                    "not-compared",
                    {"field": choice(FIELDS, "null: the whole partition"), "why": TEXT, "partitions": Member(COUNT)},
                )
            )
        ),
        "miniature": Member(MINIATURE, nullable=True, about="the embedded cluster that stood for the document's"),
        "ledger": Member(LEDGER, nullable=True),
    },
    about="A predicted loss against what happened (docs/losses.md).",
)
