"""The shape of losses.json. Members may be added."""

from __future__ import annotations

from durability.lake.tables import VIEWS
from durability.report.data.failure_costs import ERRORS
from durability.report.data.loss_sets import CLASSES, COUNTED
from durability.report.losses import FORMAT
from durability.schemas.results import COUNT, MOMENT, TEXT
from durability.shapes import INT64, Choice, Constant, Flag, ListOf, Member, Number, Object, Shape, Text, Whole

BROKEN = Object("broken", {"partitions": Member(COUNT), "topics": Member(COUNT)})
BY_VIEW = Object(
    "views",
    {
        view: Member(Object(view, {name: Member(BROKEN, nullable=True) for name in names}))
        for view, names in VIEWS.items()
    },
    about="what the loss newly breaks; null: unknown",
)
COSTS = {
    "held": Member(COUNT, nullable=True, about="partitions with a replica there"),
    "led": Member(COUNT, nullable=True, about="partitions that are led from there"),
    "quorum": Member(
        Choice(("kept", "lost", "unknown")), nullable=True, about="the controllers' majority after the loss"
    ),
    "unknown": Member(COUNT, nullable=True, about="partitions of which some class is unknown"),
    "writes_error": Member(
        Choice(tuple(ERRORS.values())),
        nullable=True,
        about="what leaders answer acks=all writes that the loss breaks; null: unknown",
    ),
    "views": Member(BY_VIEW),
}
BROKER = Object(
    "lost-broker",
    {"lost": Member(COUNT), **COSTS, "live": Member(Flag(), nullable=True, about="false: it is down already")},
)
RACK = Object("lost-rack", {"lost": TEXT, **COSTS})
SHARE = Object(
    "share",
    {
        "sets": Member(COUNT, nullable=True, about="sets of k nodes that break something; null in an estimate"),
        "probability": Member(Number(low=0, high=1), about="that k random nodes, failing at once, are such a set"),
    },
)
SHARES = Member(Object("shares", {name: Member(SHARE) for name in CLASSES}))
K = Object(
    "k",
    {
        "k": Member(Whole(low=1, high=INT64)),
        "estimate": Member(Flag(), about="false: counted exactly"),
        "sets": Member(COUNT, nullable=True, about="all sets of k nodes that aren't down; null in an estimate"),
        **dict.fromkeys(COUNTED, SHARES),
    },
)
COUNTS = Object(
    "counts",
    {view: Member(Object(f"counts-{view}", {name: Member(COUNT) for name in CLASSES})) for view in COUNTED},
)


def _minimal(label: str, name: Shape) -> Object:
    of = Object(f"minimal-set-of-{label}", {label: Member(ListOf(name)), "partitions": Member(COUNT)})
    classes = Object(f"minimal-{label}-of-view", {name: Member(ListOf(of)) for name in CLASSES})
    count = Member(COUNTS, about="of all, listed or not")
    return Object(f"minimal-{label}", {**dict.fromkeys(COUNTED, Member(classes)), "count": count})


RESTART = Object(
    "restart",
    {
        "waves": Member(COUNT, about="of a valid plan"),
        "bound": Member(COUNT, about="no valid plan has fewer; `kafka-durability restart-plan` searches longer"),
    },
)
CLUSTER = Object(
    "cluster",
    {
        "cluster": TEXT,
        "snapshot_id": TEXT,
        "captured_at": Member(MOMENT),
        "already": Member(BY_VIEW, nullable=True, about="what is broken without a loss; no loss can newly break it"),
        "unknown": Member(
            COUNT, nullable=True, about="partitions of which some class is unknown for a loss, at least; null: unknown"
        ),
        "brokers": Member(ListOf(BROKER), about="all brokers, those that cost most first"),
        "racks": Member(ListOf(RACK), about="all racks, those that cost most first"),
        "k": Member(ListOf(K), about="k brokers that fail at once"),
        "minimal": Member(_minimal("brokers", COUNT), about="sets that break something and contain no other such set"),
        "k_racks": Member(ListOf(K), about="k racks that fail at once"),
        "minimal_racks": Member(_minimal("racks", Text())),
        "restart": Member(
            RESTART, nullable=True, about="in how few waves all brokers and voters may restart; null: unknown"
        ),
    },
)
LOSSES = Object(
    FORMAT,
    {
        "format": Member(Constant(FORMAT)),
        "run": Member(Object("run", {"id": TEXT, "started_at": Member(MOMENT)})),
        "clusters": Member(ListOf(CLUSTER)),
        "missing": Member(
            ListOf(Object("missing", {"cluster": TEXT, "reason": TEXT})), about="clusters whose losses are unknown"
        ),
    },
    about="What the loss of each broker and rack would cost (docs/losses.md).",
)
