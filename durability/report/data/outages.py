"""KIP-1290's procedure in a rack outage, for reading: what is lost, since when, which step applies, and its commands.

`spark_jobs.history.rack_outage` decided the steps; here topics with the same step are one command.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import pyarrow as pa

from durability.report.data.lost_racks import Lost
from durability.report.files import safe
from durability.report.words import stamp

FILE = "rack_outages.csv"
COLUMNS = ("cluster", "topic", "step", "setting", "value", "source", "now", "lower_to", "partitions", "racks", "since")
NAMED = 20  # topics in one command; FILE has a command for each
GROUPS, CLUSTERS = 12, 20  # shown of a cluster, and clusters
ORDER = ("guarded", "lower", "restore", "hold")
ALTER = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter --entity-type topics --entity-name'
EACH = '"$topic"'
RACKS = "min.insync.racks"
PROPOSED = "# with KIP-1290; brokers of today refuse it\n"
STRICT = ("acked_racks", "min_insync_racks", "acked_copies", "min_insync_replicas", "replication_factor")
"""Requirements by which a tier is stricter than another, after what it must survive."""

ASSESS = (
    "Step 2 of KIP-1290's procedure: assess how long the rack will be away. Nothing is under a threshold for it, so "
    "nothing has to be changed."
)
STEPS = {
    "lower": "Step 3: for an extended outage, lower the threshold of these topics. It trades durability for writes; the "
    "second command restores the value once the rack is back.",
    "guarded": "Nothing is offered: partitions of these topics are offline, have an empty ISR or a non-empty ELR. With "
    "eligible leader replicas on, a change of min.insync.replicas would wipe the ELR and could leave partitions without "
    "a leader for good. Bring the rack back.",
    "restore": "Step 4: the rack is back and the replicas are in sync. Restore the value that was lowered.",
    "hold": "Lowered. Restore the value once the rack is back and the replicas are in sync, not before: writes would be "
    "refused again. The next audit says when.",
}
NOT_ENFORCED = (
    "Brokers don't enforce min.insync.racks yet, and refuse it as a topic's setting: nothing stops writes for it today. "
    "The commands are those of KIP-1290's procedure; the threshold that stops writes is min.insync.replicas."
)


def command(topic: str, change: str) -> str:
    """The command that changes one topic, or each topic of a loop. Topic names hold nothing that a shell reads."""
    return f"{ALTER} {topic} {change}"


def script(change: str, text: str) -> str:
    """A command as it can be pasted: one that no broker takes yet says so."""
    return f"{PROPOSED}{text}" if RACKS in change else text


def strictness(tier: Mapping) -> tuple[int, ...]:
    """Ascending is strictest first."""
    return (-len(tier.get("survive") or ()), *(-(tier.get(key) or 0) for key in STRICT))


def changes(entry: Mapping) -> tuple[str | None, str | None]:
    """What lowers the threshold and what restores it, as options of kafka-configs; None where none is offered.

    A value that the topic had of its own is set again; an inherited one comes back when the topic's is deleted.

    >>> changes({"step": "lower", "setting": "min.insync.replicas", "value": 2, "source": "topic", "lower_to": 1})
    ('--add-config min.insync.replicas=1', '--add-config min.insync.replicas=2')
    >>> changes({"step": "restore", "setting": "min.insync.replicas", "value": 2, "source": "broker", "now_source": "topic"})
    (None, '--delete-config min.insync.replicas')
    >>> changes({"step": "guarded", "setting": "min.insync.replicas", "value": 2, "source": "topic"})
    (None, None)
    """
    if entry["step"] == "guarded":
        return None, None
    setting, lowering = entry["setting"], entry["step"] == "lower"
    lower = f"--add-config {setting}={entry['lower_to']}" if lowering else None
    if not lowering and entry["now_source"] != "topic":
        return None, None  # lowered where topics inherit it: `words_for` says so
    own = entry["source"] == "topic"
    return lower, f"--add-config {setting}={entry['value']}" if own else f"--delete-config {setting}"


@dataclass(frozen=True)
class Outages:
    """entries: rows of (cluster, topic, tier, rack_outage); lost: by cluster its lost racks, each with rack and brokers;
    since: (cluster, rack) -> since when it is lost, see `lost_racks`; tiers: their requirements by name."""

    entries: pa.Table
    lost: Mapping[str, list[dict]]
    since: Mapping[tuple[str, str], Lost]
    tiers: Mapping[str, Mapping]

    def rows(self) -> Iterable[dict]:
        """A topic and setting each: the entry's fields, cluster, topic and tier; in the order of the table."""
        for batch in self.entries.to_batches(max_chunksize=5_000):
            for row in batch.to_pylist():
                for entry in row["rack_outage"] or ():
                    yield {**{name: row[name] for name in ("cluster", "topic", "tier")}, **entry}

    def clusters(self) -> list[dict]:
        """Clusters with a lost rack or a lowered threshold: racks with their brokers and since, and the steps."""
        groups: dict[str, dict[tuple, Group]] = {name: {} for name in self.lost}
        for row in self.rows():
            key = (row["step"], row["setting"], row["value"], row["source"], row["lower_to"], row["now_source"])
            groups.setdefault(row["cluster"], {}).setdefault(key, Group(row)).add(row)
        return [self._cluster(name, list(found.values())) for name, found in sorted(groups.items())]

    def _cluster(self, name: str, groups: list[Group]) -> dict:
        ordered = sorted(groups, key=self._urgency)
        racks = [
            {"rack": r["rack"], "brokers": r["brokers"], **self._since(name, r["rack"], groups)}
            for r in self.lost.get(name, ())
        ]
        steps = [g.words() for g in ordered]
        return {"cluster": name, "lost_racks": racks, "assess": None if steps else ASSESS, "steps": steps}

    def _urgency(self, group: Group) -> tuple:
        """Ascending is first: the step, what stops writes today before what would, the strictest tier, the most topics."""
        strictest = min(strictness(self.tiers.get(tier, {})) for tier in group.tiers)
        first = group.first
        return (ORDER.index(first["step"]), first["setting"] == RACKS, strictest, -len(group.topics), group.topics[0])

    def _since(self, cluster: str, rack: str, groups: list[Group]) -> dict[str, str | None]:
        """`since`: without a gap; `perhaps_since`: where it was seen lost before one, by the counters or by what is
        remembered of its topics, which goes back further."""
        lost = self.since.get((cluster, rack))
        seen = [g.since for g in groups if g.since and rack in (g.first["racks"] or ())]
        earliest = min([*seen, lost.perhaps] if lost else seen, default=None)
        since = lost.since if lost else earliest
        return {"since": stamp(since), "perhaps_since": stamp(earliest) if earliest != since else None}


def of(
    steps: pa.Table,
    lost: Mapping[str, list[dict]],
    since: Mapping[tuple[str, str], Lost],
    tiers: Mapping[str, Mapping],
) -> Outages:
    """From rows of (cluster, topic, tier, rack_outage), lost racks by cluster, since when they are, and the tiers."""
    return Outages(steps.sort_by([("cluster", "ascending"), ("topic", "ascending")]), lost, since, tiers)


class Group:
    """Topics of one cluster to which one step applies with the same values."""

    def __init__(self, first: Mapping):
        self.first, self.topics, self.partitions, self.since = first, [], 0, None
        self.tiers: set[str | None] = set()

    def add(self, row: Mapping) -> None:
        self.topics.append(row["topic"])
        self.tiers.add(row["tier"])
        self.partitions += row["partitions"] or 0
        if row["since"] and (self.since is None or row["since"] < self.since):
            self.since = row["since"]

    def words(self) -> dict:
        """The step with its commands, for at most NAMED topics; `more`: how many are left to FILE."""
        entry, topics = self.first, sorted(self.topics)
        lower, restore = changes(entry)
        return {
            **{name: entry[name] for name in ("step", "setting", "value", "source", "now", "lower_to")},
            "since": stamp(self.since),
            "topics": topics[:NAMED],
            "more": max(0, len(topics) - NAMED),
            "partitions": self.partitions,
            "lower": lower and script(lower, for_each(topics[:NAMED], lower)),
            "restore": restore and script(restore, for_each(topics[:NAMED], restore)),
            "words": words_for(entry, restore),
        }


def for_each(topics: list[str], change: str) -> str:
    """One command for a topic, a loop for several.

    >>> for_each(["a", "b"], "--delete-config min.insync.replicas")[:46]
    'for topic in a b; do kafka-configs --bootstrap'
    """
    if len(topics) == 1:
        return command(topics[0], change)
    return f"for topic in {' '.join(topics)}; do {command(EACH, change)}; done"


def words_for(entry: Mapping, restore: str | None) -> str:
    """What the step means, for the values of this group."""
    said = [STEPS[entry["step"]]]
    if entry["setting"] == RACKS:
        said.append(NOT_ENFORCED)
    if restore is None and entry["step"] != "guarded":
        said.append(
            f"It was lowered where topics inherit it ({entry['now_source']}): put {entry['value']} back there, and with "
            "eligible leader replicas on only while every partition of the cluster is in sync."
        )
    return " ".join(said)


def write(file: TextIO, rows: Iterable[Mapping]) -> None:
    """Every topic with the commands that lower and restore it."""
    out = csv.writer(file)
    out.writerow((*COLUMNS, "lower", "restore"))
    for row in rows:
        cells = [row[name] for name in COLUMNS[:-2]] + [";".join(row["racks"] or ()), stamp(row["since"])]
        lower, restore = (change and script(change, command(row["topic"], change)) for change in changes(row))
        out.writerow([safe(cell) for cell in (*cells, lower, restore)])


def forget(out: Path) -> None:
    """Removes an earlier report's FILE: this one has nothing to put there."""
    (out / FILE).unlink(missing_ok=True)
