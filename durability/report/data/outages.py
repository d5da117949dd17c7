"""Rack outages (KIP-1290's procedure): the lost racks, since when, the step for each topic, and its commands.

`spark_jobs.history.rack_outage` decides the steps. Topics with the same step and values share one command.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TextIO

import pyarrow as pa

from durability.lake.tables import TOPIC_POSTURE
from durability.plan.plan import to_text
from durability.report.cells import safe
from durability.report.data.lost_racks import Lost

FILE = "rack_outages.csv"
TOPIC = ("cluster", "topic", "tier", "rack_outage")
"""The columns of `topic_posture` that are read."""
COLUMNS = ("cluster", "topic", "step", "setting", "value", "source", "now", "lower_to", "partitions", "racks", "since")
NAMED = 20
"""The most topics in one command. FILE has a command for each topic."""
ORDER = ("guarded", "lower", "restore", "hold")
RACKS = "min.insync.racks"
PROPOSED = "# with KIP-1290; brokers of today reject it\n"
STRICT = ("acked_racks", "min_insync_racks", "acked_copies", "min_insync_replicas", "replication_factor")
"""Requirements that sort tiers by strictness, after what the tiers must survive."""

ASSESS = (
    "Step 2 of KIP-1290's procedure: assess how long the rack will be away. No threshold rejects writes because of it, so no "
    "setting has to be changed. Partitions that are offline without the rack need it back."
)
STEPS = {
    "lower": "Step 3: for an extended outage, lower the threshold of these topics. Writes work again, with less durability. "
    "The second command restores the value once the rack is back.",
    "guarded": "No command is offered: partitions of these topics are offline, have an empty ISR or a non-empty ELR. With "
    "eligible leader replicas on, a change of min.insync.replicas would clear the ELR. Partitions could lose their leader "
    "for good. Bring the rack back.",
    "restore": "Step 4: the rack is back and the replicas are in sync. Restore the value that was lowered.",
    "hold": "The value is lowered. Restore it only once the rack is back and the replicas are in sync: before that, writes "
    "would be rejected again. The next audit reports when.",
}
HALTED = (
    "No command is offered: no controller leads, so no setting can be changed. First restore the controller quorum,"
    " then audit again."
)
NOT_ENFORCED = (
    "Brokers don't enforce min.insync.racks yet and reject it as a topic's setting: it stops no writes today. "
    "The commands are those of KIP-1290's procedure; the threshold that stops writes is min.insync.replicas."
)


def changes(entry: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Options of kafka-configs that lower a threshold and that restore it; None for an option that isn't offered.

    A topic's own value is set again. To restore an inherited value, the topic's own is deleted. `halted`: no controller leads
    the cluster, so nothing can be changed.

    >>> changes({"step": "lower", "setting": "min.insync.replicas", "value": 2, "source": "topic", "lower_to": 1})
    ('--add-config min.insync.replicas=1', '--add-config min.insync.replicas=2')
    >>> changes({"step": "restore", "setting": "min.insync.replicas", "value": 2, "source": "broker", "now_source": "topic"})
    (None, '--delete-config min.insync.replicas')
    >>> changes({"step": "guarded", "setting": "min.insync.replicas", "value": 2, "source": "topic"})
    (None, None)
    """
    if entry.get("halted"):
        return None, None
    step, setting = entry["step"], entry["setting"]
    lower = f"--add-config {setting}={entry['lower_to']}" if step == "lower" else None
    if step == "guarded" or (step != "lower" and entry["now_source"] != "topic"):
        return None, None  # lowered on the level that topics inherit from: `_explanation` says so
    restore = f"--add-config {setting}={entry['value']}" if entry["source"] == "topic" else f"--delete-config {setting}"
    return lower, restore


def script(topics: Sequence[str], change: str | None) -> str | None:
    """A command for one topic, or a loop for several. Topic names contain no character that a shell interprets.

    >>> script(["a", "b"], "--delete-config min.insync.replicas")[:46]
    'for topic in a b; do kafka-configs --bootstrap'
    """
    if change is None:
        return None
    name = topics[0] if len(topics) == 1 else '"$topic"'
    text = f'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter --entity-type topics --entity-name {name} {change}'
    if len(topics) > 1:
        text = f"for topic in {' '.join(topics)}; do {text}; done"
    return PROPOSED + text if RACKS in change else text


@dataclass
class Group:
    """Topics of one cluster with the same step and values. entry: that of the first topic."""

    entry: Mapping[str, Any]
    topics: list[str] = field(default_factory=list)
    tiers: set[str | None] = field(default_factory=set)
    partitions: int = 0
    since: Any = None

    def add(self, row: Mapping[str, Any]) -> None:
        self.topics.append(row["topic"])
        self.tiers.add(row["tier"])
        self.partitions += row["partitions"] or 0
        self.since = min(filter(None, (self.since, row["since"])), default=None)

    def step(self) -> dict[str, Any]:
        """The step with its commands, for at most NAMED topics. `more`: the number of other topics."""
        entry, topics = self.entry, sorted(self.topics)
        lower, restore = changes(entry)
        return {
            **{name: entry[name] for name in ("step", "setting", "value", "source", "now", "lower_to")},
            "since": to_text(self.since),
            "topics": topics[:NAMED],
            "more": max(0, len(topics) - NAMED),
            "partitions": self.partitions,
            "lower": script(topics[:NAMED], lower),
            "restore": script(topics[:NAMED], restore),
            "words": _explanation(entry, restore),
        }


def _explanation(entry: Mapping[str, Any], restore: str | None) -> str:
    if entry.get("halted"):
        return HALTED
    sentences = [STEPS[entry["step"]]]
    if entry["setting"] == RACKS:
        sentences.append(NOT_ENFORCED)
    if restore is None and entry["step"] != "guarded":
        sentences.append(
            f"It was lowered where topics inherit it ({entry['now_source']}). Set {entry['value']} there again. With "
            "eligible leader replicas on, do so only while every partition of the cluster is in sync."
        )
    return " ".join(sentences)


@dataclass(frozen=True)
class Outages:
    """The rack outages of a run.

    posture: rows of TOPIC, by cluster and topic.
    lost: by cluster, its lost racks, each with rack and brokers.
    since: by cluster and rack.
    tiers: requirements by tier.
    leaderless: clusters that no controller leads.
    """

    posture: pa.Table = field(
        default_factory=pa.schema([TOPIC_POSTURE.arrow.field(name) for name in TOPIC]).empty_table
    )
    lost: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    since: Mapping[tuple[str, str], Lost] = field(default_factory=dict)
    tiers: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    leaderless: Collection[str] = ()

    def rows(self) -> Iterable[dict[str, Any]]:
        """A row per topic and setting: cluster, topic, tier, the fields of the entry, and `halted` (see `changes`)."""
        for batch in self.posture.to_batches(max_chunksize=5_000):
            for row in batch.to_pylist():
                for entry in row.pop("rack_outage") or ():
                    yield row | entry | {"halted": row["cluster"] in self.leaderless}

    def clusters(self) -> list[dict[str, Any]]:
        """The member `rack_outages` of findings.json: clusters with a lost rack or a lowered threshold, with their steps."""
        groups: dict[str, dict[tuple, Group]] = {name: {} for name in self.lost}
        for row in self.rows():
            key = tuple(row[name] for name in ("step", "setting", "value", "source", "lower_to", "now_source"))
            groups.setdefault(row["cluster"], {}).setdefault(key, Group(row)).add(row)
        return [self._cluster(name, sorted(groups[name].values(), key=self._urgency)) for name in sorted(groups)]

    def write(self, file: TextIO) -> None:
        """FILE: every topic with the commands that lower and restore its threshold."""
        out = csv.writer(file)
        out.writerow((*COLUMNS, "lower", "restore"))
        for row in self.rows():
            row |= {"racks": ";".join(row["racks"] or ()), "since": to_text(row["since"])}
            cells = [row[name] for name in COLUMNS]
            cells += [script([row["topic"]], change) for change in changes(row)]
            out.writerow([safe(cell) for cell in cells])

    def _cluster(self, name: str, groups: list[Group]) -> dict[str, Any]:
        racks = [
            {"rack": r["rack"], "brokers": r["brokers"], **self._since(name, r["rack"], groups)}
            for r in self.lost.get(name, ())
        ]
        steps = [group.step() for group in groups]
        return {"cluster": name, "lost_racks": racks, "assess": None if steps else ASSESS, "steps": steps}

    def _urgency(self, group: Group) -> tuple:
        """A sort key: the step, enforced thresholds before proposed ones, the strictest tier, the most topics."""
        strictest = min(_strictness(self.tiers.get(tier or "", {})) for tier in group.tiers)
        step, proposed = ORDER.index(group.entry["step"]), group.entry["setting"] == RACKS
        return (step, proposed, strictest, -len(group.topics), group.topics[0])

    def _since(self, cluster: str, rack: str, groups: list[Group]) -> dict[str, str | None]:
        """`since`: lost without a gap in the counts. `perhaps_since`: possibly lost since before a gap.

        The latter uses the counts and the topics' entries, which are older.
        """
        lost = self.since.get((cluster, rack))
        known = [g.since for g in groups if g.since and rack in (g.entry["racks"] or ())]
        earliest = min([*known, lost.perhaps] if lost else known, default=None)
        since = lost.since if lost else earliest
        return {"since": to_text(since), "perhaps_since": to_text(earliest) if earliest != since else None}


def _strictness(tier: Mapping[str, Any]) -> tuple[int, ...]:
    """A sort key. Ascending is strictest first."""
    return (-len(tier.get("survive") or ()), *(-(tier.get(key) or 0) for key in STRICT))
