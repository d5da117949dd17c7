"""A cluster of a topology document in miniature: its distinct placements on an embedded cluster with few brokers.

A loss treats brokers equally that share a rack and a fate: lost or not, down or not. So a few brokers of each such kind represent
all of them, and one partition represents all partitions with the same kinds of replicas in the same order and the same settings.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from durability.embedded_kafka.seed import Topic
from durability.embedded_kafka.spec import ClusterSpec
from durability.errors import Refused
from durability.lake import rows
from durability.plain import plural
from durability.topology import Topology, versions
from durability.topology.diskless import is_diskless
from durability.topology.observers import by_default, has_observers

VERSIONS = ("4.3.1", "3.6.2")
"""The releases that can be started, the newest first."""
FIRST_CAPPING = "3.7"
"""Since then brokers cap min.insync.replicas at the number of replicas: a document of an earlier release needs 3.6.2."""
ELR = "eligible.leader.replicas.version"
MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
PLACEMENTS, BROKERS = 40, 9
"""The most distinct placements and brokers that are rebuilt. The placements of most partitions come first."""
NAME = "drill-{}"

Kind = tuple[str | None, bool, bool]
"""What a loss can tell apart of brokers: rack, lost, down already."""
Pattern = tuple[tuple[tuple[Kind, int], ...], str, str]
"""What it can tell apart of partitions: for each replica its kind and a number among those of this kind; the settings
min.insync.replicas and unclean.leader.election.enable."""


@dataclass(frozen=True)
class StandIn:
    """A topic with one partition that represents partitions of the document. topic, partition: the first of them."""

    name: str
    topic: str
    partition: int
    partitions: int
    replicas: tuple[int, ...]
    configs: Mapping[str, str]


@dataclass(frozen=True)
class Miniature:
    """The miniature of a document's cluster. Brokers and controllers keep their ids and racks.

    stand_ins: a topic for each placement. down: nodes that were down already. lost: nodes that the loss takes.
    left_out: by reason, how many partitions none represents. not_rebuilt: what differs, in words.
    """

    version: str
    elr: bool
    brokers: Mapping[int, str | None]
    controllers: Mapping[int, str | None]
    stand_ins: tuple[StandIn, ...]
    down: tuple[int, ...]
    lost: tuple[int, ...]
    left_out: Mapping[str, int]
    not_rebuilt: tuple[str, ...]

    @property
    def spec(self) -> ClusterSpec:
        features = {ELR: int(self.elr)} if versions.at_least(self.version, "4.1") is True else {}
        return ClusterSpec(self.brokers, self.controllers, version=self.version, features=features)

    @property
    def topics(self) -> list[Topic]:
        return [Topic(made.name, (made.replicas,), made.configs) for made in self.stand_ins]

    def to_dict(self) -> dict[str, Any]:
        """What drill.json says of the miniature."""
        return {
            "kafka_version": self.version,
            "elr": self.elr,
            "brokers": [{"id": id, "rack": rack} for id, rack in sorted(self.brokers.items())],
            "controllers": [{"id": id, "rack": rack} for id, rack in sorted(self.controllers.items())],
            "placements": len(self.stand_ins),
            "partitions": sum(made.partitions for made in self.stand_ins),
            "left_out": [{"why": why, "partitions": count} for why, count in self.left_out.items()],
            "not_rebuilt": list(self.not_rebuilt),
        }


class Original:
    """The facts of a document's cluster that its miniature needs, as the lake would have them."""

    def __init__(self, topology: Topology):
        tables = rows.build(topology, topology.sha256, topology.sha256)
        self.brokers, self.controllers, self.topics, self.partitions = (
            tables[name].to_pylist() for name in ("brokers", "controllers", "topics", "partitions")
        )
        for row in (*self.brokers, *self.controllers, *self.topics):
            for name in ("configs", "config_sources"):
                row[name] = None if row.get(name) is None else dict(row[name])
        [cluster] = tables["clusters"].to_pylist()
        self.version: str | None = cluster["kafka_version"]
        self.elr = dict(cluster["features"] or ()).get(ELR, 0) > 0

    @cached_property
    def voters(self) -> list[dict[str, Any]]:
        return [row for row in self.controllers if row["role"] == "voter"]


def version_of(original: Original, asked: str | None) -> str:
    """The release to start: `asked`, else the one that behaves as the document's release. Refused for another one."""
    if asked and asked not in VERSIONS:
        raise Refused(f"{asked}: the embedded cluster has the releases {' and '.join(VERSIONS)}")
    if asked:
        return asked
    return VERSIONS[1] if versions.at_least(original.version, FIRST_CAPPING) is False else VERSIONS[0]


def rebuild(
    original: Original,
    brokers: Collection[int],
    controllers: Collection[int],
    version: str | None = None,
    elr: bool | None = None,
) -> Miniature:
    """The miniature for a loss of these brokers and controllers.

    version, elr: None takes the document's. Refused if the document has nothing that can be rebuilt, or if its controllers have
    lost their majority before.
    """
    release = version_of(original, version)
    on = original.elr if elr is None else elr
    capable = versions.at_least(release, "4.1") is True
    if elr and not capable:
        raise Refused(f"Kafka {release} has no eligible leader replicas: they need 4.1 or later")
    builder = _Builder(original, frozenset(brokers), on and capable)
    stand_ins = builder.stand_ins()
    if not stand_ins:
        reasons = ", ".join(f"{plural(n, 'partition')}: {why}" for why, n in builder.left_out.items())
        raise Refused(f"the document has no partition that can be rebuilt{f' ({reasons})' if reasons else ''}")
    if on and not capable:
        builder.notes.append(f"eligible leader replicas, which Kafka {release} doesn't have")
    nodes = builder.controllers()
    down = [id for id, row in builder.of_broker.items() if row["live"] is False]
    down += [row["controller"] for row in original.voters if row["live"] is False]
    running = nodes.keys() - set(down)
    if len(running) <= len(nodes) // 2:
        raise Refused(
            "the document's controllers have no majority, so brokers can't be fenced; nothing can be rehearsed"
        )
    racks = {id: builder.of_broker[id]["rack"] for id in builder.ids()}
    present = racks.keys() | nodes.keys()
    return Miniature(
        version=release,
        elr=on and capable,
        brokers=racks,
        controllers=nodes,
        stand_ins=tuple(stand_ins),
        down=tuple(sorted(set(down) & present)),
        lost=tuple(sorted({*brokers, *controllers} & present)),
        left_out=dict(builder.left_out),
        not_rebuilt=tuple(builder.notes),
    )


@dataclass
class _Group:
    """Partitions of one pattern: the first of them, and how many they are."""

    topic: str
    partition: int
    count: int = 0


@dataclass
class _Builder:
    original: Original
    lost: frozenset[int]
    elr: bool
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    needed: Counter[Kind] = field(default_factory=Counter)

    @cached_property
    def of_broker(self) -> dict[int, dict[str, Any]]:
        return {row["broker"]: row for row in self.original.brokers}

    @cached_property
    def by_kind(self) -> dict[Kind, list[int]]:
        """Ids of brokers by kind. Those that are controllers too come first, because they run anyway."""
        voters = {row["controller"] for row in self.original.voters}
        found: dict[Kind, list[int]] = defaultdict(list)
        for id in sorted(self.of_broker, key=lambda id: (id not in voters, id)):
            found[self.kind(id)].append(id)
        return found

    def kind(self, id: int) -> Kind:
        row = self.of_broker[id]
        return row["rack"], id in self.lost, row["live"] is False

    def stand_ins(self) -> list[StandIn]:
        groups = self.groups()
        self.needed = self._least()
        made: list[StandIn] = []
        for pattern, group in sorted(groups.items(), key=lambda item: (-item[1].count, item[1].topic)):
            places, minimum, unclean = pattern
            wanted = self.needed | Counter(kind for kind, _ in places)
            if len(made) == PLACEMENTS or wanted.total() > BROKERS:
                self.left_out["more placements or brokers than are rebuilt"] += group.count
                continue
            self.needed = wanted
            replicas = tuple(self.by_kind[kind][number] for kind, number in places)
            configs = {MIN_ISR: minimum, UNCLEAN: unclean}
            name = NAME.format(len(made))
            made.append(StandIn(name, group.topic, group.partition, group.count, replicas, configs))
        return made

    def _least(self) -> Counter[Kind]:
        """A broker to lose if there is one, and one to ask afterwards."""
        kinds = sorted(self.by_kind, key=str)
        up = [kind for kind in kinds if not kind[2]]
        chosen = [next((kind for kind in up if kind[1] is lost), None) for lost in (True, False)]
        return Counter(kind for kind in chosen if kind is not None)

    def groups(self) -> dict[Pattern, _Group]:
        """The document's partitions by pattern."""
        settings = {row["topic"]: row for row in self.original.topics}
        observed = by_default(row["configs"] for row in self.original.brokers)
        found: dict[Pattern, _Group] = {}
        lagging, moving = 0, 0
        for row in self.original.partitions:
            topic = settings[row["topic"]]
            replicas = self._replicas(row, topic, observed)
            minimum = self._setting(topic, replicas, MIN_ISR, "1") if replicas else None
            unclean = self._setting(topic, replicas, UNCLEAN, "false") if replicas else None
            if not replicas:
                continue
            if minimum is None or unclean is None or not minimum.isdecimal() or int(minimum) < 1:
                self.left_out["a setting is unknown"] += 1
                continue
            pattern = (self._places(replicas), minimum, str(unclean.lower() == "true").lower())
            found.setdefault(pattern, _Group(row["topic"], row["partition"])).count += 1
            live = {id for id in replicas if self.of_broker[id]["live"] is not False}
            lagging += bool(live - set(row["isr"] or ()))
            moving += bool(row["adding"] or row["removing"])
        self._note(lagging, "live replicas out of sync: in the miniature they are in sync")
        self._note(moving, "a running reassignment: the miniature has the replicas before it")
        return found

    def _replicas(self, row: Mapping[str, Any], topic: Mapping[str, Any], observed: bool) -> list[int]:
        """A partition's replicas without those being added; empty, and counted, if it can't be rebuilt."""
        if is_diskless(topic["configs"]) or has_observers(topic["configs"], observed):
            why = "diskless topics, and replicas that are observers"
        elif not row["replicas"] or any(id not in self.of_broker for id in row["replicas"]):
            why = "replicas are unknown"
        else:
            return [id for id in row["replicas"] if id not in set(row["adding"] or ())]
        self.left_out[why] += 1
        return []

    def _setting(self, topic: Mapping[str, Any], replicas: Iterable[int], name: str, default: str) -> str | None:
        """The text of a setting that applies to a topic: its own, else its brokers'. None if unknown."""
        rows_of_brokers = [self.of_broker[id] for id in replicas]
        # With ELR on, the controllers' value is recorded for the cluster. Elections are the controllers', too.
        described = [row for row in self.original.controllers if row.get("configs") is not None]
        stating = described if described and (self.elr or name == UNCLEAN) else rows_of_brokers
        for row in (topic, *stating):
            if row["configs"] is None or name in (row.get("unreadable_configs") or ()):
                return None
            if row["configs"].get(name) is not None:
                return str(row["configs"][name])
        answered = "default" in (topic["config_sources"] or {}).values()
        return None if answered else default

    def _places(self, replicas: Iterable[int]) -> tuple[tuple[Kind, int], ...]:
        seen: Counter[Kind] = Counter()
        places = []
        for id in replicas:
            kind = self.kind(id)
            places.append((kind, seen[kind]))
            seen[kind] += 1
        return tuple(places)

    def _note(self, count: int, what: str) -> None:
        if count:
            self.notes.append(f"{plural(count, 'partition')} with {what}")

    def ids(self) -> list[int]:
        """The brokers that are needed, and those that are controllers too."""
        voters = {row["controller"] for row in self.original.voters}
        needed = {id for kind, count in self.needed.items() for id in self.by_kind[kind][:count]}
        return sorted(needed | (voters & self.of_broker.keys()))

    def controllers(self) -> dict[int, str | None]:
        """The quorum's voters with their racks; one controller of its own if the document names none."""
        if self.original.voters:
            return {row["controller"]: row["rack"] for row in self.original.voters}
        self.notes.append(
            "the quorum: the document names no voters, so one controller that is never lost replaces them"
        )
        return {max(self.of_broker, default=0) + 1: None}
