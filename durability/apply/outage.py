"""What a rack outage changes for a topic, and when that is put back: KIP-1290's "Rack Outage Handling". Pure decisions.

`spark_jobs.history.rack_outage` evaluates which topics reject writes because of a lost rack. Its entries in `topic_posture` are
the input here. A fresh reading of the cluster decides whether the change is still needed, and whether it is safe.

- hold: acks=all is accepted, or nothing helps but the rack's return.
- add-replicas: live brokers take the place of those that are down. No setting changes.
- lower: the topic gets a lower threshold, what is in sync, at least 1.

With eligible leader replicas on, a change of min.insync.replicas wipes the topic's ELR (KIP-966). A partition under its minimum
has an ELR then. So its topic gets replicas, unless the approver gives the ELR up and each partition has a live leader.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from durability.apply.cluster import Replicas
from durability.apply.partitions import Place, place
from durability.apply.record import REASSIGN, SET_CONFIG, Row
from durability.catalogue.listing import with_noun
from durability.lake.change_table import DONE, INTENDED
from durability.remedies.plans import Placement
from durability.topology import observers

HOLD, ADD_REPLICAS, LOWER = "hold", "add-replicas", "lower"
MIN_ISR, MIN_RACKS = "min.insync.replicas", "min.insync.racks"
STEP_LOWER, STEP_GUARDED = "lower", "guarded"
"""Steps of an entry that ask for a change: `spark_jobs.history.rack_outage`."""
OFFLINE = "a partition has no leader: only the rack's return helps it"
OBSERVERS = "its placement constraints ask for observers"
CHANGED = "its min.insync.replicas was changed since the audit"
FEW = "the live brokers don't suffice"
RETURNED = "its replicas out of sync are in racks that are back: they catch up"
MOVING = "its partitions are being reassigned"
BY_HAND = "This doesn't end by itself:"
"""In each reason to wait that needs a hand."""

Partitions = Mapping[int, Replicas]
"""A topic's partitions by number."""


@dataclass(frozen=True)
class Facts:
    """What a decision depends on besides the topic.

    racks: by broker; None: without a rack, or unknown. live: the brokers that are up now.
    elr: are eligible leader replicas on? None if unknown. knows_racks: do brokers know min.insync.racks?
    """

    racks: Mapping[int, str | None]
    live: frozenset[int]
    elr: bool | None
    knows_racks: bool = False

    def lost(self, broker: int) -> bool:
        """Is the broker down, and each broker of its rack? A broker whose rack is unknown may be in such a rack."""
        if broker in self.live:
            return False
        rack = self.racks.get(broker)
        return rack is None or not any(self.racks.get(other) == rack for other in self.live)


@dataclass(frozen=True)
class Decision:
    """What is done for a topic. settings: the new values. moves: the new replicas by partition. why: what isn't done, and why.

    in_force: the min.insync.replicas that the cluster applies before the change; None if unknown. bytes: that moves copy.
    """

    topic: str
    act: str
    settings: Mapping[str, str] = field(default_factory=dict)
    moves: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    why: str | None = None
    in_force: int | None = None
    bytes: int = 0


def decide(
    topic: str,
    entries: Iterable[Mapping[str, Any]],
    partitions: Partitions,
    own: Mapping[str, str],
    facts: Facts,
    placement: Placement,
    give_up_elr: bool = False,
    before: Mapping[Key, Value] = MappingProxyType({}),
) -> Decision:
    """The decision for a topic.

    entries: its `rack_outage` in `topic_posture`. partitions, own: its partitions and its own settings, read just now.
    placement: chooses brokers for new replicas. before: what an outage changed and isn't put back: its own moves may run.
    """
    asked = {e["setting"]: e for e in entries if e["step"] in (STEP_LOWER, STEP_GUARDED) and partitions}
    settings: dict[str, str] = {}
    in_force = None
    if (entry := asked.get(MIN_ISR)) is not None:
        in_force = _in_force(entry, own.get(MIN_ISR))
        if in_force is None:
            return Decision(topic, HOLD, why=CHANGED)
        rejecting = under(partitions, in_force)
        short = {number: p for number, p in rejecting.items() if _misses_rack(p, facts)}
        if rejecting and not short:
            return Decision(topic, HOLD, why=RETURNED, in_force=in_force)
        if short:
            safe = entry["step"] == STEP_LOWER and not wipes(partitions, facts.elr)
            if not safe and not (give_up_elr and all(p.leader in facts.live for p in partitions.values())):
                return _more_replicas(topic, short, own, in_force, facts, placement, before)
            settings[MIN_ISR] = str(max(1, min(len(p.isr) for p in short.values())))
    entry = asked.get(MIN_RACKS)
    if entry is not None and entry["step"] == STEP_LOWER and facts.knows_racks:
        led = [p for p in partitions.values() if p.leader is not None and _misses_rack(p, facts)]
        spans = [len({facts.racks.get(b) or "" for b in p.isr}) for p in led]
        now = _in_force(entry, own.get(MIN_RACKS))
        if spans and now is not None and min(spans) < now:
            settings[MIN_RACKS] = str(max(1, min(spans)))
    offline = any(p.leader is None for p in partitions.values())
    return Decision(topic, LOWER if settings else HOLD, settings, why=OFFLINE if offline else None, in_force=in_force)


def under(partitions: Partitions, minimum: int) -> dict[int, Replicas]:
    """The partitions with a leader that reject acks=all. Brokers enforce no more than the number of replicas (KAFKA-15583).

    >>> whole, short = Replicas((1, 2), (1, 2), 1), Replicas((1, 2, 3), (1,), 1)
    >>> list(under({0: whole, 1: short}, 2)), list(under({0: whole}, 3))
    ([1], [])
    """
    return {
        number: p
        for number, p in partitions.items()
        if p.leader is not None and len(p.isr) < min(minimum, len(p.replicas))
    }


def _misses_rack(partition: Replicas, facts: Facts) -> bool:
    """Is a replica out of sync because its rack is lost? If the rack is back, the replica catches up by itself."""
    return any(facts.lost(broker) for broker in partition.replicas if broker not in partition.isr)


def wipes(partitions: Partitions, elr: bool | None) -> bool:
    """Can a change of min.insync.replicas leave a partition of this topic without a leader? Unknown counts as yes.

    elr: as of the snapshot. An ELR that the cluster states now counts, whatever the snapshot says.

    >>> wipes({0: Replicas((1, 2), (1,), 1, elr=(2,))}, False), wipes({0: Replicas((1, 2), (), None, elr=())}, False)
    (True, False)
    """
    if any(p.elr for p in partitions.values()):
        return True
    return elr is not False and any(p.leader is None or not p.isr or p.elr is None for p in partitions.values())


def target(partition: Replicas) -> tuple[int, ...]:
    """The replicas that the partition has, or will have after its running reassignment."""
    return tuple(b for b in partition.replicas if b not in partition.removing)


def _in_force(entry: Mapping[str, Any], own: str | None) -> int | None:
    """The threshold that applies now; None if the topic's own value isn't what the audit read."""
    if own is not None:
        return int(own) if own.isdecimal() else None
    inherited = entry["now"] if entry["now_source"] != "topic" else None
    return None if inherited is None else int(inherited)


def _more_replicas(
    topic: str,
    short: Partitions,
    own: Mapping[str, str],
    minimum: int,
    facts: Facts,
    placement: Placement,
    before: Mapping[Key, Value],
) -> Decision:
    """Live brokers take the place of those that are down, as many as there are, but enough for the minimum.

    A partition that moves is left alone, unless it is a move of the outage that can't end, since a target broker is down, too.
    """
    if observers.constrained(own.get(observers.SETTING)):
        return Decision(topic, HOLD, why=OBSERVERS, in_force=minimum)
    moves: dict[int, tuple[int, ...]] = {}
    why = None
    for number, partition in short.items():
        meant = target(partition)
        earlier = before.get((topic, number))
        ours = earlier is not None and earlier.is_own(meant, partition)
        if partition.moving and not (ours and set(meant) - facts.live):
            why = why or MOVING
            continue
        kept = [b for b in meant if b in facts.live]
        counts = range(len(meant), min(minimum, len(meant)) - 1, -1)
        chosen = next((found for n in counts if (found := placement.choose(kept, n, 1))), None)
        if chosen is None or partition.leader not in kept or set(chosen) == set(kept):
            why = FEW
            continue
        moves[number] = tuple(chosen)
    return Decision(topic, ADD_REPLICAS if moves else HOLD, moves=moves, why=why, in_force=minimum)


Key = tuple[str, str | int]
"""A topic, and the name of its setting or the number of its partition."""


@dataclass(frozen=True)
class Value:
    """What an outage changed: a setting of a topic, or the replicas of a partition. A setting's value is text, replicas a tuple.

    was: the value before; None: the topic had none of its own. becomes: each value that was set; the last one is in force.
    in_force: the min.insync.replicas that applied before; None if unknown. topic_id: Kafka's, before the change; None if unknown.
    """

    key: Key
    was: Any
    becomes: tuple[Any, ...]
    in_force: int | None = None
    topic_id: str | None = None

    @property
    def topic(self) -> str:
        return self.key[0]

    def is_replicas(self) -> bool:
        return isinstance(self.key[1], int)

    def is_of_another(self, topic_ids: Mapping[str, str]) -> bool:
        """Was the topic deleted and created again since? topic_ids: Kafka's ids now, as far as they are known."""
        return self.topic_id is not None and topic_ids.get(self.topic, self.topic_id) != self.topic_id

    def is_own(self, now: Any, partition: Replicas | None = None) -> bool:
        """Is this a value that the outage set, or a state of its moves? partition: whose replicas these are, for replicas.

        A broker shows the end of a move late, or an old state: the replicas are on the way then.

        >>> value = Value(("t", 0), (1, 4, 2), ((2, 3, 5),))
        >>> value.is_own((2, 3, 5, 1, 4), Replicas((2, 3, 5, 1, 4), (2,), 2)), value.is_own((6,), Replicas((6,), (6,), 6))
        (True, False)
        """
        if now is None:
            return False
        places = () if partition is None else [place(partition, self.was, replicas) for replicas in self.becomes]
        return now in self.becomes or any(each in (Place.RUNNING, Place.REVERTED) for each in places)

    def returns(self, now: Any, partition: Replicas | None = None) -> bool:
        """Is this the former value, or are the replicas on the way to it?"""
        if now == self.was:
            return True
        back = () if partition is None else [place(partition, replicas, self.was) for replicas in self.becomes]
        return Place.RUNNING in back


def changed(
    decision: Decision, partitions: Partitions, own: Mapping[str, str], before: Mapping[Key, Value]
) -> list[Value]:
    """What a decision changes. before: open changes. A value that they set isn't remembered as the one to restore.

    A value that differs from theirs was set by others meanwhile, so that one is remembered.
    """
    wanted: dict[str | int, tuple[Any, Any]] = {n: (own.get(n), value) for n, value in decision.settings.items()}
    wanted |= {n: (target(partitions[n]), replicas) for n, replicas in decision.moves.items()}
    found = []
    for name, (now, value) in wanted.items():
        key = (decision.topic, name)
        earlier = before.get(key)
        # A change that was not answered may be made later, so its value is kept, too.
        partition = partitions[name] if isinstance(name, int) else None
        if earlier is not None and (earlier.returns(now, partition) or earlier.is_own(now, partition)):
            values = tuple(v for v in earlier.becomes if v != value)
            found.append(Value(key, earlier.was, (*values, value), earlier.in_force))
        else:
            found.append(Value(key, now, (value,), decision.in_force))
    return found


def waits_for(value: Value, partitions: Partitions, own: Mapping[str, str], facts: Facts) -> str | None:
    """Why a value can't be put back yet; None if it can. A deleted topic has no partitions and waits for nothing.

    own: the topic's own settings now. A threshold is restored when the rack is back, enough replicas are in sync for it, and no
    ELR is left to wipe. Replicas are moved back when their brokers are up, unless the move makes brokers reject acks=all.
    """
    if value.is_replicas():
        number = int(value.key[1])
        return _not_movable(value, partitions[number], own) or _down(value, facts) if number in partitions else None
    for number, partition in sorted(partitions.items()):
        missing = sorted(set(partition.replicas) - set(partition.isr))
        if partition.leader is None or not partition.isr:
            return f"partition {number} has no leader"
        if partition.elr or (missing and partition.elr is None and facts.elr is not False):
            return f"partition {number} has eligible leader replicas outside its ISR, or that is unknown"
        few = value.in_force is None or len(partition.isr) < min(value.in_force, len(partition.replicas))
        if missing and (few or any(facts.lost(b) for b in missing)):
            return f"partition {number}: {with_noun(missing, 'broker')} out of sync"
    return None


def _down(value: Value, facts: Facts) -> str | None:
    down = sorted(set(value.was) - facts.live)
    return f"{with_noun(down, 'broker')} down" if down else None


def _not_movable(value: Value, partition: Replicas, own: Mapping[str, str]) -> str | None:
    """Why the replicas can't be moved back. Kafka counts those that it adds, so the effective minimum may rise (KAFKA-15583).

    If it doesn't rise, a partition that rejects acks=all is moved back, too: a broker that it has since the outage may be gone.
    While the partition is still moved away, this cancels the move, and may leave only former replicas at once.
    """
    minimum = int(own[MIN_ISR]) if own.get(MIN_ISR, "").isdecimal() else value.in_force
    if minimum is None:
        return f"partition {value.key[1]}: its {MIN_ISR} is unknown. {BY_HAND} set it for the topic"
    needed = min(minimum, len({*value.was, *partition.replicas}))
    former = len({*value.was} & {*partition.isr})
    if partition.moving and former < min(minimum, len(value.was)):
        return f"partition {value.key[1]}: it is being moved, and too few of its former replicas are in sync to cancel that"
    most = len(partition.replicas)
    if len(partition.isr) >= needed or needed <= most:
        return None
    why = f"partition {value.key[1]}: acks=all would need {needed} replicas in sync while it is moved back"
    return f"{why}. {BY_HAND} set {MIN_ISR} of the topic to at most {most}"


def needs_help(why: str) -> bool:
    """Does a wait never end by itself? why: as of `waits_for`."""
    return BY_HAND in why


# As rows of `changes`, in the form of `durability.apply.record`. `becomes` has an entry for each value that was set.


def as_json(values: Sequence[Value]) -> tuple[Any, Any]:
    """`was` and `becomes` of one row. values: settings or replicas, not both."""
    if values[0].is_replicas():
        was = [_placement(v, v.was) | {"topic_id": v.topic_id} for v in values]
        minimums = {v.topic: v.in_force for v in values}
        return {"placements": was, "min_isr": minimums}, {
            "placements": [_placement(v, one) for v in values for one in v.becomes]
        }
    was = [
        {"topic": v.topic, "name": v.key[1], "value": v.was, "in_force": v.in_force, "topic_id": v.topic_id}
        for v in values
    ]
    return was, [{"topic": v.topic, "name": v.key[1], "value": one} for v in values for one in v.becomes]


def _placement(value: Value, replicas: Sequence[int]) -> dict[str, Any]:
    return {"topic": value.topic, "partition": value.key[1], "replicas": list(replicas)}


def of_row(row: Row) -> list[Value]:
    """The values of one row. One of an earlier release has no ids of topics."""
    if row.kind == REASSIGN:
        listed_was = [
            ((p["topic"], p["partition"]), tuple(p["replicas"]), row.was["min_isr"][p["topic"]], p.get("topic_id"))
            for p in row.was["placements"]
        ]
        became = [((p["topic"], p["partition"]), tuple(p["replicas"])) for p in row.becomes["placements"]]
    else:
        listed_was = [((s["topic"], s["name"]), s["value"], s["in_force"], s.get("topic_id")) for s in row.was]
        became = [((s["topic"], s["name"]), s["value"]) for s in row.becomes]
    becomes: dict[Key, tuple[Any, ...]] = {}
    for key, value in became:
        becomes[key] = (*becomes.get(key, ()), value)
    return [Value(key, was, becomes[key], in_force, topic_id) for key, was, in_force, topic_id in listed_was]


def open_rows(rows: Mapping[str, Row]) -> dict[str, Row]:
    """The changes that are in force, or may be, in the order in which they were intended."""
    wanted = (REASSIGN, SET_CONFIG)
    return {n: rows[n] for n in sorted(rows) if rows[n].kind in wanted and rows[n].state in (INTENDED, DONE)}


def open_values(rows: Mapping[str, Row]) -> dict[Key, Value]:
    """What is to be put back. Of several rows with a value, the last one has all that was set."""
    return {value.key: value for row in open_rows(rows).values() for value in of_row(row)}


def kind_of(values: Sequence[Value]) -> str:
    """The kind of their row."""
    return REASSIGN if values[0].is_replicas() else SET_CONFIG
