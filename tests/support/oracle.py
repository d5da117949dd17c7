"""The verdicts of each control on a small topology document by brute force: an oracle independent of the Spark rules.

It is written only from the design, the notes on Kafka and the proposals, as set logic over one partition at a time. Facts that a
document doesn't have (racks, releases, configurations, ...) are completed in every relevant way. A verdict is certain if all
completions agree. `Expected.outcomes` has several outcomes only if the texts allow several, for example if a missing fact turns
out not to matter. Then the rules "needs a NULL fact" and "completions agree" differ.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product

from tests.support.oracle_facts import (
    MIN_RACKS,
    UNCLEAN,
    UNKNOWN,
    Cluster,
    Partition,
    choices,
    kip_1290,
    merged,
    named,
    needs_null,
    version_set,
)

PASS, FAIL, UNSURE = "PASS", "FAIL", "UNKNOWN"


@dataclass
class Expected:
    """An expectation.

    outcomes: the allowed ones.
    observed: keys with the sets of values allowed in PASS and FAIL.
    partitions, category: of a FAIL; None if the texts don't determine them.
    """

    outcomes: set[str]
    observed: dict[str, set] = field(default_factory=dict)
    partitions: set[int] | None = None
    category: set[str] | None = None


def verdict(bad_in_worlds: set[bool]) -> str:
    return UNSURE if len(bad_in_worlds) == 2 else FAIL if True in bad_in_worlds else PASS


def combined(per_partition: list[set[str]]) -> set[str]:
    """The topic's outcomes: one certain failure fails it, else one doubt makes it unknown."""
    out = set()
    for chosen in product(*per_partition):
        out.add(FAIL if FAIL in chosen else UNSURE if UNSURE in chosen else PASS)
    return out


def at_most(possible: set[int], required: int) -> str:
    return verdict({v < required for v in possible})


class Oracle:
    """Expected verdicts of one document. tiers: requirements by tier; tier_of: topic name -> tier."""

    def __init__(self, document: dict, tiers: dict[str, dict], tier_of: Callable[[str], str]):
        self.c, self.tiers, self.tier_of = Cluster(document), tiers, tier_of
        self.out: dict[tuple[str, str, str], Expected] = {}
        self.states: dict[tuple[str, int], dict[str, set]] = {}
        for t, topic in enumerate(document["topics"]):
            self.topic(t, topic["name"], tiers[tier_of(topic["name"])])
        for broker in self.c.brokers:
            self.broker(broker)
        for name in dict.fromkeys(tier_of(t["name"]) for t in document["topics"]):
            self.feasible(name, tiers[name])

    def put(self, control: str, kind: str, resource: str, expected: Expected) -> None:
        self.out[control, kind, resource] = expected

    # Topics

    def topic(self, t: int, name: str, tier: dict) -> None:
        parts = [Partition(self.c, t, n) for n in range(len(self.c.doc["topics"][t]["partitions"]))]
        for control, key, judge in (
            ("replication-factor", "replication_factor", self.replication_factor),
            ("min-insync-replicas", "min_insync_replicas", self.min_isr),
            ("write-headroom", "write_headroom", self.headroom),
            ("replica-rack-spread", "replica_racks", self.rack_spread),
        ):
            if key in tier:
                self.put(control, "topic", name, judge(parts, tier[key]))
        if "min_insync_racks" in tier:
            self.put("isr-rack-spread", "topic", name, self.isr_racks(t, parts, tier["min_insync_racks"]))
        if tier.get("unclean_leader_election") is False:
            self.put("unclean-leader-election", "topic", name, self.unclean(t))
        self.put("min-isr-within-replication-factor", "topic", name, self.within(parts))
        self.put("min-insync-racks-valid", "topic", name, self.racks_valid(t, parts, tier.get("min_insync_racks")))
        self.health(name, parts)
        for p in parts:
            self.states[name, p.id]["rack"] = self.rack_states(t, p, tier.get("min_insync_racks"))

    def rack_states(self, t: int, p: Partition, wanted: int | None) -> set:
        """KIP-1290's category in every world. It is a metric of the leader, so there is none without a live leader."""
        own = self.own_racks(t)
        if own is UNKNOWN or p.isr is UNKNOWN:
            return {"under-min-rack-isr", "at-min-rack-isr", "none"}
        seen = {"none"} if True in self.states_of(p, "offline") else set()
        if False in self.states_of(p, "offline"):
            least = max(own or 0, wanted or 0)
            for racks in self.c.rack_choices(p.isr):
                spans = kip_1290(racks.values())
                asked = least > 1  # 1, the default, disables the check
                under, at = asked and spans < least, asked and spans == least
                seen.add("under-min-rack-isr" if under else "at-min-rack-isr" if at else "none")
        return seen

    def states_of(self, p: Partition, category: str) -> set[bool]:
        return self.states[self.c.doc["topics"][p.t]["name"], p.id][category]

    @staticmethod
    def graded(parts, values: list[list[set]], required: int, key: str, needs: list[bool]) -> Expected:
        """values: by partition and reading, the possible values. needs: whether a missing fact is needed."""
        allowed, failing = [], set()
        for p, readings, null in zip(parts, values, needs, strict=True):
            outcomes = {at_most(v, required) for v in readings}
            allowed.append(outcomes | ({UNSURE} if null else set()))
            if outcomes == {FAIL} and not null:
                failing.add(p.id)
        outcomes = combined(allowed)
        observed, partitions = {}, None
        if all(len(r) == 1 for v in values for r in v) and not any(needs) and all(len(v) == 1 for v in values):
            observed = {key: {min(next(iter(v[0])) for v in values)}}
            partitions = failing if outcomes == {FAIL} else None
        return Expected(outcomes, observed, partitions)

    def rf_values(self, p: Partition) -> set:
        return {p.rf} if p.rf_known else set(range(1, len(p.replicas) + 1))

    def replication_factor(self, parts, required) -> Expected:
        values = [[self.rf_values(p)] for p in parts]
        return self.graded(parts, values, required, "replication_factor", [not p.rf_known for p in parts])

    def min_isr(self, parts, required) -> Expected:
        values = [merged(p.effective()) for p in parts]
        return self.graded(parts, values, required, "effective_min_insync_replicas", needs_null(parts, False))

    def headroom(self, parts, required) -> Expected:
        values = [merged([{r - e for r in self.rf_values(p) for e in eff} for eff in p.effective()]) for p in parts]
        return self.graded(parts, values, required, "write_headroom", needs_null(parts, True))

    def rack_spread(self, parts, required) -> Expected:
        values = [[{p.span(racks, named) for racks in self.c.rack_choices(p.replicas)}] for p in parts]
        return self.graded(parts, values, required, "replica_racks", [not p.rf_known for p in parts])

    def isr_racks(self, t: int, parts, required) -> Expected:
        """As if an operator wanted the stricter of the tier's racks and the topic's own min.insync.racks."""
        own = self.own_racks(t)
        if own is UNKNOWN:
            return Expected({PASS, FAIL, UNSURE})
        required = max(required, own or 0)
        allowed, under, at, spans = [], set(), set(), []
        category_known = True
        for p in parts:
            if p.isr is UNKNOWN:
                allowed.append({UNSURE})
                continue
            worlds = list(self.c.rack_choices(sorted({*p.replicas, *p.isr})))
            grades, readings = set(), [named, kip_1290]
            for racks in worlds:
                got = kip_1290(racks[i] for i in p.isr)
                spans.append(got)
                # The texts don't say how to count the replicas' racks here, or which of the two assignments to use.
                more = {count(racks[i] for i in p.replicas) > got for count in readings}
                more |= {p.span(racks, count) > got for count in readings}
                grade = "under" if got < required else "at" if got == required else "fine"
                if grade == "at":
                    category_known &= len(more) == 1 and p.rf_known
                    grades |= {"at" if m else "fine" for m in more}
                else:
                    grades.add(grade)
            under |= {p.id} if grades == {"under"} else set()
            at |= {p.id} if grades == {"at"} else set()
            outcomes = {PASS} if grades == {"fine"} else {FAIL} if len(grades) == 1 else {UNSURE}
            if grades == {"at", "fine"} and len(worlds) == 1:
                outcomes = {PASS, FAIL, UNSURE}
            elif grades == {"under", "at"}:
                outcomes = {UNSURE, FAIL}  # fails either way, but not how badly
            if not p.rf_known and grades != {"under"}:
                outcomes |= {UNSURE}
            allowed.append(outcomes)
        outcomes = combined(allowed)
        if not category_known or outcomes != {FAIL}:
            return Expected(outcomes)
        category, which = ("under-min-rack-isr", under) if under else ("at-min-rack-isr", at)
        return Expected(outcomes, {"category": {category}}, which, {category})

    def unclean(self, t: int) -> Expected:
        value = self.c.topic_config(t, UNCLEAN)
        if value is UNKNOWN:
            return Expected({UNSURE})
        if value is not None:
            return Expected({FAIL if value == "true" else PASS})
        controllers = self.c.doc["cluster"].get("controllers")
        if self.c.unread("cluster", "controllers"):
            return Expected({UNSURE, "absent"})  # "one UNKNOWN for the cluster, not one per topic"
        if not controllers:
            return Expected({PASS, UNSURE, "absent"})  # the texts are silent on documents that name no controllers
        values = {c["configs"].get(UNCLEAN, "false") for c in controllers}
        return Expected({FAIL if "true" in values else PASS})

    def within(self, parts) -> Expected:
        allowed, failing, effects, fixed = [], set(), set(), True
        for p in parts:
            minima, rfs = merged(p.minimum()), self.rf_values(p)
            outcomes = {verdict({m > r for m in values for r in rfs}) for values in minima}
            null = not p.rf_known or any(len(v) > 1 for v in minima)
            fixed &= len(minima) == 1 and not null
            releases = version_set(p)
            if outcomes == {FAIL}:
                failing.add(p.id)
                effects |= {"silent-downgrade" if new else "outage" for new in releases}
            # "unknown: UNKNOWN with both readings", though both are failures
            null |= FAIL in outcomes and len(releases) > 1
            fixed &= len(releases) == 1 or FAIL not in outcomes
            allowed.append(outcomes | ({UNSURE} if null else set()))
        outcomes = combined(allowed)
        if outcomes != {FAIL} or not fixed:
            return Expected(outcomes)
        effect = "outage" if "outage" in effects else "silent-downgrade"  # the worse reading
        observed = {
            "effect": {effect},
            "error": {"NOT_ENOUGH_REPLICAS" if effect == "outage" else None},
            "proposed_error": {"INCONSISTENT_REPLICATION_FACTOR"},
            "retriable": {False},
        }
        return Expected(outcomes, observed, failing)

    def own_racks(self, t: int):
        """min.insync.racks of a topic: its own, else the brokers'; None: nobody states any; UNKNOWN: can't be told."""
        stated = self.c.topic_config(t, MIN_RACKS)
        if stated is None:
            values = {self.c.broker_config(i, MIN_RACKS, None) for i in self.c.brokers}
            stated = values.pop() if len(values) == 1 else UNKNOWN
        return stated if stated in (None, UNKNOWN) else int(stated)

    def problem(self, own: int | None, value: int, racks: dict, parts, count: Callable) -> str | None:
        """min-insync-racks-valid in one world, `racks` of every broker; count: with or without the unnamed rack."""
        if own is not None and own < 1:
            return "below-one"
        if value <= 1:
            return None  # the default, which asks for nothing
        if value > count(racks.values()):
            return "above-known-racks"
        if any(value > p.rf for p in parts):
            return "above-replication-factor"
        if any(value > p.span(racks, count) for p in parts):
            return "above-replica-racks"
        return "broker-without-rack" if None in racks.values() else None

    def racks_valid(self, t: int, parts, wanted: int | None) -> Expected:
        own = self.own_racks(t)
        if own is UNKNOWN:
            unread = self.c.topic_config(t, MIN_RACKS) is UNKNOWN
            # Which broker's value a topic inherits where they differ isn't said; unread ones never pass.
            return Expected({UNSURE, FAIL} if unread else {PASS, FAIL, UNSURE, "NOT_APPLICABLE"})
        if own is None and wanted is None:
            return Expected({PASS, "NOT_APPLICABLE", "absent"})
        value = max(own or 1, wanted or 1)
        null = value > 1 and not all(p.rf_known for p in parts)
        outcomes, problems = {UNSURE} if null else set(), set()
        for count in (named, kip_1290):  # the texts don't say whether the unnamed rack is a known one
            worlds = self.c.rack_choices(list(self.c.brokers))
            seen = {self.problem(own, value, racks, parts, count) for racks in worlds}
            outcomes.add(verdict({p is not None for p in seen}))
            # While some rack is unknown the first certain problem may be named instead of the first possible.
            problems |= seen if len(seen) == 1 else {"broker-without-rack", *seen}
        return Expected(outcomes, {"problem": problems} if outcomes == {FAIL} else {})

    def health(self, name: str, parts) -> None:
        """One expectation a category, under the resource type `health:<category>`."""
        grades = {c: [] for c in ("offline", "under-min-isr", "at-min-isr", "under-replicated")}
        shrunk, configured, larger = set(), set(), False
        for p in parts:
            offline = {True} if p.leader is None else {True, False}
            if p.leader not in (None, UNKNOWN) and self.c.live[p.leader] is not UNKNOWN:
                offline = {not self.c.live[p.leader]}
            grades["offline"].append((p.id, offline, len(offline) == 2))
            effective = p.effective()[0]
            unread = len(p.minimum()[0]) > 1
            rf = len(p.before)
            rfs = {rf} if p.rf_known else set(range(1, len(p.replicas) + 1))
            sizes = {len(p.isr)} if p.isr is not UNKNOWN else set(range(1, len(p.replicas) + 1))
            for category, test in (
                ("under-min-isr", lambda s, e, _: s < e),
                ("at-min-isr", lambda s, e, _: s == e),
                ("under-replicated", lambda s, _, r, p=p: s < r or bool(p.down)),
            ):
                seen = {not off and test(s, e, r) for off in offline for s in sizes for e in effective for r in rfs}
                null = offline != {True} and (
                    p.isr is UNKNOWN
                    or len(offline) == 2
                    or (not p.rf_known if category == "under-replicated" else unread or len(effective) > 1)
                )
                grades[category].append((p.id, seen, null))
                if category == "at-min-isr" and seen == {True}:
                    whole = {s == r for s in sizes for r in rfs} == {True} and not p.down
                    (configured if whole else shrunk).add(p.id)
                    larger |= any(s > r for s in sizes for r in rfs)
        for p in parts:
            self.states.setdefault((name, p.id), {})["waits-for-dead"] = {len(p.down) > 0}
        for category, rows in grades.items():
            for i, seen, _ in rows:
                self.states.setdefault((name, i), {})[category] = seen
        for category, rows in grades.items():
            outcomes = combined([{verdict(seen)} | ({UNSURE} if null else set()) for _, seen, null in rows])
            certain = {i for i, seen, _ in rows if seen == {True}}
            doubtful = any(null for _, _, null in rows)
            expected = Expected(outcomes, {}, certain if outcomes == {FAIL} and not doubtful else None)
            # Above RF, as while replicas are being added, neither word is defined for an ISR.
            worded = not larger and not (configured and shrunk) and all(p.moves_known for p in parts)
            if category == "at-min-isr" and outcomes == {FAIL} and not doubtful and worded:
                expected.observed = {"cause": {"configuration" if configured else "shrunk"}}
            self.put("partition-health", f"health:{category}", name, expected)

    # Brokers, quorum, tiers

    def broker(self, broker: int) -> None:
        rack, name = self.c.racks[broker], str(broker)
        speaks = any(key.endswith("racks") for tier in self.tiers.values() for key in tier)
        others = {r is not None for r in self.c.racks.values()} if UNKNOWN not in self.c.racks.values() else {UNKNOWN}
        known = any(isinstance(r, str) for r in self.c.racks.values())
        if rack is UNKNOWN:
            outcomes = {UNSURE}
        elif rack is not None:
            outcomes = {PASS}
        elif speaks or known:
            outcomes = {FAIL}
        else:
            outcomes = {UNSURE} if UNKNOWN in others else {PASS}
        self.put("broker-rack", "broker", name, Expected(outcomes))
        dirs = self.c.of_broker(broker, "offline_log_dirs", lambda b: b["offline_log_dirs"])
        if self.c.unread("brokers", self.c.index[broker], "log_dirs"):
            dirs = UNKNOWN
        outcome = UNSURE if dirs is UNKNOWN else FAIL if dirs > 0 else PASS
        stated = any(not self.c.unread("brokers", n, "offline_log_dirs") for n in self.c.index.values())
        # Where nothing is known of any broker's, the cluster may say so once.
        self.put("log-dirs", "broker", name, Expected({outcome} if stated else {outcome, "absent"}))
        self.put("min-insync-racks-valid", "broker", name, self.broker_racks_valid(broker))

    def broker_racks_valid(self, broker: int) -> Expected:
        """An invalid own value (below 1) fails. An unread value can't pass.

        The texts don't say what values of other brokers and topics mean for a broker. They also don't say whether a value above
        the known racks is a finding on brokers or on topics.
        """
        own = self.c.broker_config(broker, MIN_RACKS, "1")
        if own is UNKNOWN:
            return Expected({UNSURE, FAIL})
        if int(own) < 1:
            return Expected({FAIL}, {"problem": {"below-one"}})
        if int(own) > 1 and self.c.racks[broker] is None:
            return Expected({FAIL}, {"problem": {"broker-without-rack", "above-known-racks"}})
        if int(own) > 1 and self.c.racks[broker] is UNKNOWN:
            return Expected({UNSURE, FAIL})
        return Expected({PASS, FAIL, UNSURE})

    def quorum(self) -> dict[str, str] | None:
        """Outcomes by category; None in ZooKeeper mode. A rack with half of the voters counts where there are two racks."""
        quorum = self.c.doc["cluster"]["quorum"]
        # Kafka 4.0 has no ZooKeeper (KIP-833). An unread release rules nothing out.
        release = "0" if self.c.unread("cluster", "kafka_version") else self.c.doc["cluster"]["kafka_version"]
        without_zookeeper = int(release.split(".")[0]) >= 4
        if self.c.unread("cluster", "quorum") or (quorum is None and without_zookeeper):
            return dict.fromkeys(("too-few-voters", "rack-majority", "lagging-voter", "even-number"), UNSURE)
        if quorum is None:
            return None
        voters = quorum["voters"]
        count = len(voters)
        needed = count // 2 + 1
        racks = {v["id"]: v.get("rack") or self.c.racks.get(v["id"]) or UNKNOWN for v in voters}
        names = sorted({*self.c.known_names, *(r for r in racks.values() if isinstance(r, str))})
        options = [*names, *(f"new-{n}" for n in range(count))]
        blocking = set()
        # A broker that isn't a voter, of unknown rack, may be in one more rack of its own.
        others = sum(rack is UNKNOWN for broker, rack in self.c.racks.items() if broker not in racks)
        has_racks = bool(names) or UNKNOWN in self.c.racks.values()
        for world in choices(racks, options) if count <= 5 else []:
            most = max((list(world.values()).count(r) for r in world.values()), default=0)
            known = {*self.c.known_names, *world.values()}
            for more in range(others + 1):
                blocking.add(has_racks and count >= 3 and len(known) + more >= 2 and count - most < needed)
        down = {b["id"] for b in self.c.doc["brokers"] if self.c.live[b["id"]] is False}
        missing = {v["id"] for v in voters if v["id"] != quorum["leader"] and (v["lag_ms"] is None or v["id"] in down)}
        slow = {v["id"] for v in voters if v["id"] not in missing and (v["lag_ms"] or 0) > 10_000}
        present = {v: rack for v, rack in racks.items() if v not in missing}
        worst = max((sum(r == name for r in present.values()) for name in names), default=0) if len(names) > 1 else 0
        short = len(present) - max(1, worst) < needed
        return {
            "majority-lost": FAIL if count - len(missing) < needed else PASS,
            "majority-behind": FAIL if slow and len(present) >= needed > len(present) - len(slow) else PASS,
            "too-few-voters": FAIL if count < 3 else PASS,
            "rack-majority": verdict(blocking),
            "no-spare-voter": FAIL if missing and short else PASS,
            "missing-voter": FAIL if missing and not short else PASS,
            "lagging-voter": FAIL if slow else PASS,
            "one-rack": FAIL if len(names) == 1 and count > 2 and UNKNOWN not in racks.values() else PASS,
            "even-number": FAIL if count > 2 and count % 2 == 0 else PASS,
        }

    def feasible(self, name: str, tier: dict) -> None:
        isr, headroom = tier.get("min_insync_replicas", 1), tier.get("write_headroom", 0)
        brokers = max(tier.get("replication_factor", 1), isr + headroom)
        few = len(self.c.brokers) < brokers
        seen = set()
        for racks in self.c.rack_choices(list(self.c.brokers)):
            values = racks.values()
            spread, isr_racks = tier.get("replica_racks", 0), tier.get("min_insync_racks", 0)
            # Whether brokers without a rack make up the last rack of an ISR is KIP-1290's count, not said for tiers.
            seen |= {few or named(values) < spread or count(values) < isr_racks for count in (named, kip_1290)}
        ambiguous = None in self.c.racks.values() or UNKNOWN in self.c.racks.values()
        outcomes = {verdict(seen)}
        if ambiguous and len(seen) == 2:
            outcomes = {UNSURE, FAIL, PASS} if None in self.c.racks.values() else {UNSURE}
        self.put("policy-feasible", "tier", name, Expected(outcomes))
