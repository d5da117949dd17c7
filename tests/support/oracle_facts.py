"""For the oracle: the facts of a small topology document, and every completion of those that could not be read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product

UNKNOWN = object()
NEW = (3, 7)
MIN_ISR, MIN_RACKS, UNCLEAN = "min.insync.replicas", "min.insync.racks", "unclean.leader.election.enable"


class Cluster:
    """A document's facts. A fact is UNKNOWN if an unreadable path covers it."""

    def __init__(self, document: dict):
        self.doc = document
        self.paths = [u["path"].strip("/").split("/") for u in document.get("unreadable", [])]
        self.brokers = {b["id"]: b for b in document["brokers"]}
        self.index = {b["id"]: n for n, b in enumerate(document["brokers"])}
        self.racks = {i: self.of_broker(i, "rack", lambda b: b.get("rack")) for i in self.brokers}
        self.live = {i: self.of_broker(i, "live", lambda b: b["live"]) for i in self.brokers}
        self.new = {i: self._new(i) for i in self.brokers}
        self.known_names = sorted({r for r in self.racks.values() if isinstance(r, str)})
        self.elr = document["cluster"].get("features", {}).get("eligible.leader.replicas.version", 0) > 0

    def unread(self, *place) -> bool:
        return any(len(p) <= len(place) and p == [str(s) for s in place[: len(p)]] for p in self.paths)

    def of_broker(self, broker: int, member: str, get: Callable):
        return UNKNOWN if self.unread("brokers", self.index[broker], *member.split("|")) else get(self.brokers[broker])

    def _new(self, broker: int):
        stated = self.of_broker(broker, "kafka_version", lambda b: b.get("kafka_version"))
        if stated is None:
            unread = self.unread("cluster", "kafka_version")
            stated = UNKNOWN if unread else self.doc["cluster"]["kafka_version"]
        if stated is UNKNOWN:
            return UNKNOWN
        return tuple(int(n) for n in stated.partition("-")[0].split(".")[:2]) >= NEW

    def broker_config(self, broker: int, name: str, default):
        return self.of_broker(broker, f"configs|{name}", lambda b: (b.get("configs") or {}).get(name, default))

    def broker_min_isr(self, broker: int):
        """The value of a dead broker that states none is unknown if a live broker states one, because it can't be asked."""
        own = self.broker_config(broker, MIN_ISR, None)
        others = {i: self.broker_config(i, MIN_ISR, None) for i, live in self.live.items() if live is True}
        stated = {i: value for i, value in others.items() if value not in (None, UNKNOWN)}
        if own is not None or self.live[broker] is not False or not stated:
            return "1" if own is None else own
        of_all = [
            value
            for i, value in stated.items()
            if (self.brokers[i].get("config_sources") or {}).get(MIN_ISR) == "cluster-default"
        ]
        return of_all[0] if of_all else UNKNOWN

    def topic_config(self, t: int, name: str):
        if self.unread("topics", t, "configs", name):
            return UNKNOWN
        return self.doc["topics"][t]["configs"].get(name)

    def rack_choices(self, ids) -> Iterator[dict]:
        """Every completion of the racks of `ids`: a known name, a new one (maybe shared), or none."""
        unknown = [i for i in ids if self.racks[i] is UNKNOWN]
        names = [*self.known_names, None, *(f"new-{n}" for n in range(len(unknown)))]
        for chosen in product(names, repeat=len(unknown)):
            yield {i: self.racks[i] for i in ids} | dict(zip(unknown, chosen, strict=True))


def choices(values: dict, options: list) -> Iterator[dict]:
    unknown = [k for k, v in values.items() if v is UNKNOWN]
    for chosen in product(options, repeat=len(unknown)):
        yield values | dict(zip(unknown, chosen, strict=True))


def named(racks) -> int:
    """The number of racks, if a broker without a rack adds none."""
    return len({r for r in racks if r is not None})


def kip_1290(racks) -> int:
    """KIP-1290's countDistinctRacks: brokers without broker.rack are in one unnamed rack."""
    return len({r or "" for r in racks})


class Partition:
    """A partition of topic number `t`, its facts and their completions."""

    def __init__(self, cluster: Cluster, t: int, n: int):
        self.c, self.t = cluster, t
        p = cluster.doc["topics"][t]["partitions"][n]
        place = ("topics", t, "partitions", n)
        self.id, self.replicas = p["partition"], tuple(p["replicas"])
        self.leader = UNKNOWN if cluster.unread(*place, "leader") else p["leader"]
        # A dead broker isn't in sync, but the last members of a leaderless partition's ISR stay in it.
        down = [i for i in p["isr"] if cluster.live.get(i) is False]
        led = self.leader is UNKNOWN or cluster.live.get(self.leader, False) is not False
        self.down = down if led and not cluster.unread(*place, "isr") else []
        self.isr = UNKNOWN if cluster.unread(*place, "isr") else tuple(i for i in p["isr"] if i not in self.down)
        self.moves_known = not cluster.unread("cluster", "reassignments")
        self.adding = tuple(p.get("adding", ())) if self.moves_known else ()
        self.removing = tuple(p.get("removing", ())) if self.moves_known else ()
        self.before = [r for r in self.replicas if r not in self.adding]
        self.after = [r for r in self.replicas if r not in self.removing]
        self.rf = min(len(self.before), len(self.after))
        # If reassignments could not be read, a complete ISR still shows that none of them matters.
        self.rf_known = self.moves_known or (self.isr is not UNKNOWN and set(self.isr) >= set(self.replicas))

    def span(self, racks: dict, count) -> int:
        return min(count(racks[r] for r in self.before), count(racks[r] for r in self.after))

    def release(self) -> dict:
        """Whether the leader's release is 3.7 or newer; if leaderless, for each replica that may lead next."""
        ids = self.replicas if self.leader in (None, UNKNOWN) else (self.leader,)
        return {i: self.c.new[i] for i in ids}

    def minimum(self) -> list[set]:
        """Possible min.insync.replicas as sets, one per reading of the texts. A set of several values means unknown.

        If brokers differ, the design uses the leader's broker setting (if leaderless: the weakest), the notes on Kafka use the
        worst of the brokers that have replicas.
        """
        override = self.c.topic_config(self.t, MIN_ISR)
        anything = set(range(1, len(self.replicas) + 3))
        if override is UNKNOWN:
            return [anything]
        if override is not None:
            return [{int(override)}]
        values = {i: self.c.broker_min_isr(i) for i in self.replicas}
        values = {i: v if v is UNKNOWN else int(v) for i, v in values.items()}
        weakest = {min(w.values()) for w in choices(values, sorted(anything))}
        if self.leader is None:
            return [weakest]
        leaders = [values[self.leader]] if self.leader is not UNKNOWN else list(values.values())
        by_leader = set().union(*(anything if v is UNKNOWN else {v} for v in leaders))
        return [by_leader, weakest]

    def effective(self) -> list[set]:
        """Possible effective minima by reading: since 3.7 capped at the replicas, including those being moved."""
        release = {n for w in choices(self.release(), [True, False]) for n in w.values()}
        return [
            {min(m, len(self.replicas)) if new else m for m in values for new in release} for values in self.minimum()
        ]


def version_set(p: Partition) -> set[bool]:
    return {n for w in choices(p.release(), [True, False]) for n in w.values()}


def merged(readings: list[set]) -> list[set]:
    """The readings that differ."""
    out = []
    for reading in readings:
        if reading not in out:
            out.append(reading)
    return out


def needs_null(parts, rf_matters: bool) -> list[bool]:
    """Whether a NULL fact is needed: an unknown setting, a release that decides a cap, or a possible reassignment."""
    out = []
    for p in parts:
        capped = any(m > len(p.replicas) for values in p.minimum() for m in values)
        unknown = any(len(v) > 1 for v in p.minimum()) or (capped and len(version_set(p)) > 1)
        out.append(unknown or (rf_matters and not p.rf_known))
    return out
