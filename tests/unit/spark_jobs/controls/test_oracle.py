"""The rules against an independent brute-force oracle (tests/support/oracle.py), over random small clusters.

The seed is fixed and printed on failure; ORACLE_SEED=number tries another, ORACLE_CLUSTERS=number more or fewer.
"""

import os
import random

import pytest

from tests.support.joined import Part
from tests.support.oracle import FAIL, UNSURE, Oracle
from tests.support.oracle_facts import MIN_ISR, MIN_RACKS, UNCLEAN
from tests.support.policy import policy

SEED = int(os.environ.get("ORACLE_SEED", "20261121"))
CLUSTERS = int(os.environ.get("ORACLE_CLUSTERS", "150"))
TIERS = {
    "strict": {
        "replication_factor": 3,
        "min_insync_replicas": 2,
        "write_headroom": 1,
        "replica_racks": 2,
        "min_insync_racks": 2,
        "unclean_leader_election": False,
    },
    "racks3": {"replica_racks": 3, "min_insync_racks": 3, "min_insync_replicas": 3},
    "wide": {"replication_factor": 5, "min_insync_replicas": 3, "write_headroom": 2},
    "loose": {"replication_factor": 1, "write_headroom": 0},
    "nothing": {},
}
POLICY = policy(
    tiers=TIERS, topics=[*({"match": {"topic": f"{name}-.*"}, "tier": name} for name in TIERS), {"tier": "nothing"}]
)
CHECKED = {
    "replication-factor",
    "min-insync-replicas",
    "min-isr-within-replication-factor",
    "write-headroom",
    "unclean-leader-election",
    "replica-rack-spread",
    "isr-rack-spread",
    "min-insync-racks-valid",
    "broker-rack",
    "log-dirs",
    "policy-feasible",
}


class Drawing:
    """Draws random documents that a cluster could be in: the leader is in the ISR, the ISR among the replicas. Brokers that
    are down may still be in the ISR."""

    def __init__(self, seed: int):
        self.random, self.dead = random.Random(seed), random.Random(seed)

    def chance(self, percent: int) -> bool:
        return self.random.random() * 100 < percent

    def document(self, number: int) -> dict:
        pick = self.random.choice
        self.count = self.random.randint(1, 7)
        racks = pick((["az1", "az2", "az3"], ["az1", "az2"], ["az1", "az2", "az3", None], [None], ["az1", None]))
        versions = pick((["4.3"], ["3.6"], ["4.3.1", "3.6.2"], ["3.7", "4.10", None], ["3.6-IV2", None]))
        static = pick(([None], [None], ["2"], ["1", "2", "3", None], ["3"]))
        racks_wanted = pick(([None], [None], ["2"], ["1"], ["3"]))
        elr = self.chance(40) and static == [None]  # with ELR on brokers' static values don't count
        brokers = [self.broker(10 + n, racks, versions, static, racks_wanted) for n in range(self.count)]
        cluster = {
            "id": f"c{number:03d}",
            "kafka_version": pick(("4.3", "3.6")),
            "captured_at": "2026-11-21T12:00:00Z",
            "features": {"eligible.leader.replicas.version": 1} if elr else {},
            "quorum": self.quorum(),
        }
        if self.chance(60):
            configs = pick(({}, {UNCLEAN: "true"}, {UNCLEAN: "false"}))
            cluster["controllers"] = [{"id": 100, "configs": configs}]
        topics = [self.topic(f"{pick(list(TIERS))}-{n}", brokers) for n in range(self.random.randint(1, 4))]
        document = {"format": "kafka-topology/1", "cluster": cluster, "brokers": brokers, "topics": topics}
        if self.chance(45):
            places = dict.fromkeys(self.place(document) for _ in range(self.random.randint(1, 2)))
            document["unreadable"] = [{"path": path, "reason": "TOPIC_AUTHORIZATION_FAILED"} for path in places]
        return document

    def broker(self, number: int, racks, versions, static, racks_wanted) -> dict:
        pick = self.random.choice
        configs = {MIN_ISR: pick(static), MIN_RACKS: pick(racks_wanted)}
        broker = {
            "id": number,
            "rack": pick(racks),
            "live": not self.chance(15),
            "offline_log_dirs": pick((0, 0, 0, 1)),
            "configs": {k: v for k, v in configs.items() if v is not None},
        }
        if (version := pick(versions)) is not None:
            broker["kafka_version"] = version
        return broker

    def quorum(self) -> dict | None:
        if self.chance(10):
            return None
        lags = (0, 0, 0, 0, 10_000, 10_001, None)
        racks = self.random.choice((("az1", "az2", "az3"), ("az1", "az2"), ("az1", "az2", None)))
        voters = [
            {"id": 100 + n, "rack": self.random.choice(racks), "lag_ms": self.random.choice(lags) if n else 0}
            for n in range(self.random.randint(1, 5))
        ]
        return {"leader": 100, "voters": voters, "observers": []}

    def topic(self, name: str, brokers: list[dict]) -> dict:
        configs = {}
        for key, percent, values in (
            (MIN_ISR, 60, ("1", "2", "2", "3", "4")),
            (UNCLEAN, 40, ("true", "false")),
            (MIN_RACKS, 30, ("0", "1", "2", "2", "3", "4")),
        ):
            if self.chance(percent):
                configs[key] = self.random.choice(values)
        factor = min(self.count, self.random.choice((1, 2, 3, 3, 3, 4, 5)))
        partitions = [self.partition(n, factor, brokers) for n in range(self.random.randint(1, 3))]
        sources = {k: self.random.choice(("topic", "topic", "cluster-default")) for k in configs}
        return {
            "name": name,
            "internal": False,
            "configs": configs,
            "config_sources": sources,
            "partitions": partitions,
        }

    def partition(self, number: int, factor: int, brokers: list[dict]) -> dict:
        ids, live = [b["id"] for b in brokers], {b["id"] for b in brokers if b["live"]}
        replicas = self.random.sample(ids, factor)
        adding, removing = [], []
        if self.chance(15):
            spare = [i for i in ids if i not in replicas]
            adding = spare[: self.random.randint(0, 2)]
            removing = replicas[: self.random.randint(0, min(2, factor - 1))] if adding or factor > 1 else []
            replicas = replicas + adding
        isr = [r for r in replicas if r in live and not self.chance(20)]
        leader = self.random.choice(isr) if isr else None
        if self.dead.random() < 0.3:
            isr += [r for r in replicas if r not in live]
        return {
            "partition": number,
            "leader": leader,
            "replicas": replicas,
            "isr": isr,
            "elr": [],
            "last_known_elr": [],
            "adding": adding,
            "removing": removing,
        }

    def place(self, document: dict) -> str:
        broker = self.random.randrange(len(document["brokers"]))
        t = self.random.randrange(len(document["topics"]))
        p = self.random.randrange(len(document["topics"][t]["partitions"]))
        members = ("rack", "rack", "rack", "live", "kafka_version", "configs", "offline_log_dirs", "log_dirs")
        return self.random.choice(
            (
                *(f"/brokers/{broker}/{member}" for member in members),
                f"/topics/{t}/configs",
                f"/topics/{t}/configs/{MIN_ISR}",
                f"/topics/{t}/partitions/{p}/isr",
                f"/topics/{t}/partitions/{p}/leader",
                "/cluster/reassignments",
                "/cluster/controllers",
                "/cluster/kafka_version",
                "/cluster/quorum",
            )
        )


def tier_of(topic: str) -> str:
    return topic.rpartition("-")[0]


PARTS = [Part("nothing", POLICY, [*map(Drawing(SEED).document, range(CLUSTERS))])]


@pytest.fixture(scope="module")
def judged(judged_once):
    """The documents by cluster, the findings by cluster, control, resource type and resource, and the judge."""
    judge, findings = judged_once(*PARTS)
    documents = {d["cluster"]["id"]: d for d in PARTS[0].documents}
    found: dict[tuple, list[dict]] = {}
    for f in findings:
        found.setdefault((f["cluster"], f["control"], f["resource_type"], f["resource"]), []).append(f)
    return documents, found, judge


@pytest.fixture(scope="module")
def fleet(judged):
    """The documents by cluster, and the findings."""
    return judged[:2]


def compare(expected, rows: list[dict]) -> str | None:
    """What differs between an expectation and the findings of one control on one resource; None: nothing."""
    outcomes = {f["outcome"] for f in rows} or {"absent"}
    if len(outcomes) > 1 or not outcomes <= expected.outcomes:
        return f"outcome {sorted(outcomes)}, the oracle allows {sorted(expected.outcomes)}"
    (outcome,) = outcomes
    row = rows[0] if rows else {}
    if outcome == "FAIL" and expected.category and row["category"] not in expected.category:
        return f"category {row['category']}, the oracle says {expected.category}"
    if outcome == "FAIL" and expected.partitions is not None and set(row["partitions"] or ()) != expected.partitions:
        return f"partitions {row['partitions']}, the oracle says {sorted(expected.partitions)}"
    for key, values in expected.observed.items() if outcome in ("PASS", "FAIL") else ():
        if (outcome == "FAIL" or key in row["observed"]) and row["observed"].get(key, "absent") not in values:
            return f"{key} {row['observed'].get(key, 'absent')!r}, the oracle says {values}"
    return None


def differences(documents: dict, found: dict, controls) -> list[str]:
    out = []
    for name, document in documents.items():
        for (control, kind, resource), expected in Oracle(document, TIERS, tier_of).out.items():
            if control in controls and (problem := compare(expected, found.get((name, control, kind, resource), []))):
                out.append(f"{name} {kind} {resource}: {problem}")
    return out


def told(problems: list[str]) -> str:
    return f"\nORACLE_SEED={SEED}: {len(problems)} differences\n" + "\n".join(problems[:40])


@pytest.mark.parametrize("control", sorted(CHECKED))
def test_a_control_agrees_with_the_oracle(fleet, control):
    problems = differences(*fleet, {control})
    assert not problems, told(problems)


def test_partition_health_agrees_with_the_oracle(fleet):
    documents, found = fleet
    problems = []
    for name, document in documents.items():
        for (control, kind, resource), expected in Oracle(document, TIERS, tier_of).out.items():
            if control != "partition-health":
                continue
            category = kind.partition(":")[2]
            rows = found.get((name, control, "topic", resource), [])
            mine = [f for f in rows if f["category"] == category and f["outcome"] == FAIL]
            unsure = [f for f in rows if f["outcome"] == UNSURE and f["category"] in (category, None)]
            # A category without a row of its own passes, and what isn't known may be said once for all categories.
            if not mine and not (unsure and UNSURE in expected.outcomes):
                mine = [{"outcome": "PASS", "observed": {}}] if not unsure or "PASS" in expected.outcomes else unsure
            elif not mine:
                mine = unsure
            if problem := compare(expected, mine):
                problems.append(f"{name} {category} {resource}: {problem}")
    assert not problems, told(problems)


def test_the_quorum_agrees_with_the_oracle(fleet):
    documents, found = fleet
    problems = []
    for name, document in documents.items():
        rows = found.get((name, "controller-quorum", "cluster", name), [])
        wanted = Oracle(document, TIERS, tier_of).quorum()
        if wanted is None:
            if {f["outcome"] for f in rows} != {"NOT_APPLICABLE"}:
                problems.append(f"{name}: ZooKeeper mode, found {[(f['outcome'], f['category']) for f in rows]}")
            continue
        real = {c for c, outcome in wanted.items() if outcome == FAIL}
        (row,) = rows
        if real - {"even-number"}:
            fine = row["outcome"] == FAIL and set(row["observed"]["problems"]) == real
        elif UNSURE in wanted.values():
            fine = row["outcome"] == UNSURE
        else:
            fine = row["outcome"] == (FAIL if real else "PASS")
        if not fine:
            problems.append(f"{name}: {row['outcome']} {row['observed']['problems']}, the oracle says {wanted}")
    assert not problems, told(problems)


def test_the_racks_of_each_partition_agree_with_the_oracle(judged):
    documents, _, judge = judged
    listed = {(r["cluster"], r["topic"], r["partition"]): r for r in judge.partition_health()}
    problems, seen = [], set()
    for name, document in documents.items():
        for (topic, partition), states in Oracle(document, TIERS, tier_of).states.items():
            row = listed.get((name, topic, partition), {"rack_category": "none", "acks_all_kip_1290_error": "NONE"})
            category, error = row["rack_category"], row["acks_all_kip_1290_error"]
            seen.add((category, error))
            # A fact may be missing that happens not to matter; without any the answer is one.
            allowed = states["rack"] if len(states["rack"]) == 1 else {None}
            allowed = allowed | ({None} if document.get("unreadable") else set())
            if states["rack"] == {"under-min-rack-isr", "at-min-rack-isr", "none"}:
                allowed = {*allowed, *states["rack"]}  # brokers' own values differ: which one counts isn't said
            if category not in allowed:
                problems.append(f"{name} {topic}-{partition}: {category}, the oracle says {states['rack']}")
            if error is not None and error not in answers(states, category):
                problems.append(f"{name} {topic}-{partition}: {error}, the oracle says {answers(states, category)}")
    assert not problems, told(problems)
    assert {e for _, e in seen} >= {"NONE", "NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_RACKS", "LEADER_NOT_AVAILABLE"}
    assert ("under-min-rack-isr", "NOT_ENOUGH_REPLICAS") in seen  # replicas are counted first


def answers(states: dict[str, set], category: str | None) -> set[str]:
    """KIP-1290's produce check, in the order of its listing, in every world of a partition."""
    out = set()
    for offline in states["offline"]:
        for few in states["under-min-isr"]:
            racks = "NOT_ENOUGH_RACKS" if category == "under-min-rack-isr" else "NONE"
            waits = True in states["waits-for-dead"]
            led = {"NOT_ENOUGH_REPLICAS"} if few else {racks}
            # Too few in the ISR as it is listed: refused before the leader waits for who is down.
            led = led & {"NOT_ENOUGH_REPLICAS"} | {"REQUEST_TIMED_OUT"} if waits else led
            out |= {"LEADER_NOT_AVAILABLE"} if offline else led
    return out


COUNTS = {
    "under_min_isr": ("under-min-isr", True),
    "at_min_isr": ("at-min-isr", True),
    "under_replicated": ("under-replicated", True),
    "under_min_rack_isr": ("rack", "under-min-rack-isr"),
    "at_min_rack_isr": ("rack", "at-min-rack-isr"),
}


def test_the_counts_of_each_broker_agree_with_the_oracle(judged):
    """Over the partitions it leads: at least those that are certain, but for what is unknown, at most the possible."""
    documents, _, judge = judged
    counters = judge.latest["health_counters"].to_pylist()
    of = {(r["cluster"], b["broker"]): b for r in counters if r["topic"] is None for b in r["brokers"] or ()}
    problems, exact = [], 0
    for name, document in documents.items():
        states = Oracle(document, TIERS, tier_of).states
        led = {b["id"]: [] for b in document["brokers"]}
        for topic in document["topics"]:
            for p in topic["partitions"]:
                if p["leader"] is not None:
                    led[p["leader"]].append(states[topic["name"], p["partition"]])
        for broker, mine in led.items():
            counted = of.get((name, broker), dict.fromkeys((*COUNTS, "unknown"), 0))
            for count, (kind, value) in COUNTS.items():
                least = sum(s[kind] == {value} for s in mine)
                most = sum(value in s[kind] for s in mine)
                exact += counted[count] > 0 and least == most
                if not least - counted["unknown"] <= counted[count] <= most:
                    problems.append(f"{name} broker {broker} {count}: {counted}, the oracle: {least} to {most}")
    assert not problems, told(problems)
    assert exact > 100
