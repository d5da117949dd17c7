"""Ranges, numbers relative to the replication factor, even spread, and selectors by replication factor: one fleet, one job.

Random clusters are compared with a brute force over every rack that an unknown one may be.
"""

from __future__ import annotations

import random
from itertools import product

import pytest

from durability.findings import reassignments
from durability.lake import tables
from durability.remedies.plans import Broker, Placement
from tests.support.judge import Judge, one, pick
from tests.support.oracle import FAIL, PASS, UNSURE, combined, verdict
from tests.support.oracle_facts import Cluster, Partition
from tests.support.policy import policy
from tests.support.topology import document
from tests.unit.spark_jobs.controls.test_followed import follow

CLUSTERS, SEED = 120, 20261126
STRONG = {"min.insync.replicas": "2", "auto.create.topics.enable": "false"}
POLICY = policy("""
tiers:
  all: {replica_racks: all}
  even: {replica_rack_balance: true}
  both: {replica_racks: all, replica_rack_balance: true}
  single: {}
  pair: {replication_factor: 2}
  capped: {replication_factor: {max: 3}, min_insync_replicas: 2, write_headroom: 1}
  tight: {replication_factor: {max: 2}, min_insync_replicas: 2, write_headroom: 1}
  relative: {replication_factor: 3, min_insync_replicas: rf-1, write_headroom: 1, replica_racks: all}
  last: {replication_factor: {min: 3, max: 4}, min_insync_replicas: rf-1}
topics:
  - {match: {topic: "all-.*"}, tier: all}
  - {match: {topic: "even-.*"}, tier: even}
  - {match: {topic: "both-.*"}, tier: both}
  - {match: {topic: "capped"}, tier: capped}
  - {match: {topic: "tight"}, tier: tight}
  - {match: {topic: "relative.*"}, tier: relative}
  - {match: {topic: "by-rf-.*", replication_factor: 1}, tier: single}
  - {match: {topic: "by-rf-.*", replication_factor: {min: 2, max: 2}}, tier: pair}
  - {tier: last}
""")


def drawn(number: int, draw: random.Random) -> dict:
    """A random small cluster with some topics of the tiers all, even and both."""
    racks = draw.choice((["a", "b", "c"], ["a", "b"], ["a"], ["a", "b", None], [None], ["a", "b", "c", "d"]))
    ids = list(range(1, draw.randint(1, 7) + 1))
    lines, unread = ["topic replicas adding removing"], {}
    for n in range(draw.randint(1, 4)):
        name = f"{draw.choice(('all', 'even', 'both'))}-{n}"
        for _ in range(draw.randint(1, 2)):
            replicas = draw.sample(ids, draw.randint(1, min(5, len(ids))))
            adding, removing = [], []
            if draw.random() < 0.25:
                adding = [i for i in ids if i not in replicas][: draw.randint(0, 2)]
                removing = replicas[: draw.randint(0, len(replicas) - 1)]
            cells = (",".join(map(str, found)) or "-" for found in (replicas + adding, adding, removing))
            lines.append(" ".join((name, *cells)))
    for n in draw.sample(range(len(ids)), draw.choice((0, 0, 0, 1, 1, 2)) % (len(ids) + 1)):
        unread[f"/brokers/{n}/rack"] = "BROKER_NOT_AVAILABLE"
    brokers = " ".join(f"{i}:{rack}" if (rack := draw.choice(racks)) else str(i) for i in ids)
    return document("\n".join(lines), brokers=brokers, cluster=f"c{number:03d}", unreadable=unread)


def expected(found: dict, t: int, tier: str) -> set[str]:
    """The outcomes of replica-rack-spread that a topic may have, by brute force."""
    c = Cluster(found)
    outcomes = []
    for n in range(len(found["topics"][t]["partitions"])):
        p, bad = Partition(c, t, n), set()
        for racks in c.rack_choices(list(c.brokers)):
            names = {rack for rack in racks.values() if rack is not None}
            wrong = False
            for end in (p.before, p.after):
                of = [racks[i] for i in end]
                counts = [of.count(name) for name in names]
                own = None not in of and len(set(of)) == len(of)
                even = None not in of and max(counts) - min(counts) < 2
                wrong |= (not own and tier != "even") or (not even and tier != "all")
            bad.add(wrong)
        outcomes.append({verdict(bad)})
    return combined(outcomes)


DRAW = random.Random(SEED)
RANDOM = [drawn(n, DRAW) for n in range(CLUSTERS)]
BY_RF = "topic replicas min\nby-rf-single 1 1\nby-rf-pair 1,2 1\nby-rf-three 1,2,3 2\nby-rf-mixed 1,2,3 2\nby-rf-mixed 1,2 2"
DEFAULTS = {
    "weak": ("3", "1"),
    "strong": ("3", "2"),
    "higher": ("4", "2"),
    "above": ("5", "3"),
    "low": ("1", "1"),
}
FLEET = [
    document(BY_RF, cluster="rf"),
    document(
        BY_RF, cluster="rf-unread", unreadable={f"/topics/by-rf-{n}/partitions": "DENIED" for n in ("three", "mixed")}
    ),
    document(
        "topic replicas isr\nby-rf-short 1,2,3 1,2\nby-rf-whole 1,2,3 1,2,3",
        cluster="moves-unread",
        unreadable={"/cluster/reassignments": "DENIED"},
    ),
    *(
        document(
            "topic replicas min\norders 1,2,3 2",
            cluster=f"defaults-{name}",
            broker_configs={**STRONG, "default.replication.factor": factor, "min.insync.replicas": least},
            cluster_controllers=[{"id": 101, "configs": {"default.replication.factor": factor}}],
        )
        for name, (factor, least) in DEFAULTS.items()
    ),
    document("topic replicas min\norders 1,2 1\nfive 1,2,3,4,5 3", cluster="last"),
    document(
        "topic replicas min\ncapped 1,2,3 3\ntight 1,2 1\nrelative 1,4 1\nrelative-two 1,4,2 3\nfive 1,2,3,4,5 3",
        cluster="targets",
    ),
]


@pytest.fixture(scope="module")
def fleet(spark):
    judge = Judge(spark)
    return judge, judge.run(RANDOM + FLEET, POLICY)


def test_racks_of_ones_own_and_an_even_spread_are_what_brute_force_finds(fleet):
    _, found = fleet
    by_topic = {(f["cluster"], f["resource"]): f for f in pick(found, control="replica-rack-spread")}
    seen, wrong = {}, []
    for drawn_ in RANDOM:
        for t, topic in enumerate(drawn_["topics"]):
            tier = topic["name"].partition("-")[0]
            finding = by_topic[drawn_["cluster"]["id"], topic["name"]]
            allowed = expected(drawn_, t, tier)
            if tier == "both" and drawn_.get("unreadable"):
                allowed |= {UNSURE} if FAIL in allowed else set()  # worlds may differ in which of the two fails
            seen.setdefault(tier, set()).add(finding["outcome"])
            if finding["outcome"] not in allowed:
                wrong.append((finding["cluster"], topic["name"], finding["outcome"], allowed, finding["observed"]))
    assert not wrong
    assert all(outcomes == {PASS, FAIL, UNSURE} for outcomes in seen.values()), "the fleet shows every outcome"


def test_great_expectations_gets_the_numbers_that_decide(fleet):
    judge, found = fleet
    spread = {(f["cluster"], f["resource"]): f for f in pick(found, control="replica-rack-spread")}
    known = 0
    for row in judge.posture():
        check = next(c for c in row["checks"] if c["control"] == "replica-rack-spread")
        finding = spread[row["cluster"], row["topic"]]
        if check["known"]:
            known += 1
            fails = finding["outcome"] == FAIL and finding["category"] is None
            assert (check["observed"] < check["required"]) == fails, finding
    assert known > 50


def test_a_plan_spreads_replicas_as_their_tier_requires(fleet):
    judge, _ = fleet
    racks = {d["cluster"]["id"]: {b["id"]: b["rack"] for b in d["brokers"]} for d in RANDOM if not d.get("unreadable")}
    moved = 0
    for plan in reassignments.make(judge, judge.plan).made:
        if plan.cluster not in racks:
            continue
        of, tier = racks[plan.cluster], plan.topic.partition("-")[0]
        names = {rack for rack in of.values() if rack is not None}
        for _, replicas in plan.moves:
            counts = [[of[i] for i in replicas].count(name) for name in names]
            moved += 1
            assert sum(counts) == len(replicas) == len(set(replicas))
            # Where there are more replicas than racks, the plan still adds copies. The missing racks stay a finding.
            assert tier == "even" or max(counts) <= 1 or (min(counts) >= 1 and len(replicas) > len(names))
            assert tier == "all" or max(counts) - min(counts) <= 1
    assert moved > 10


def test_no_remedy_harms_a_partition(fleet):
    judge, _ = fleet
    documents = [d for d in RANDOM + FLEET if not d.get("unreadable")]
    known = {d["cluster"]["id"] for d in documents}
    assert [f for f in follow(judge, RANDOM + FLEET) if f.cluster in known and f.harms] == []


@pytest.mark.parametrize("seed", range(60))
def test_a_placement_is_even_if_live_brokers_allow_it(seed):
    draw = random.Random(seed)
    brokers = [Broker(i, draw.choice("abc"), draw.random() > 0.2) for i in range(1, draw.randint(3, 8))]
    of = {b.id: b.rack for b in brokers}
    replicas = draw.sample(sorted(of), draw.randint(1, len(of)))
    chosen = Placement(brokers, {}).choose(replicas, len(replicas), 1, balanced=True)

    def even(ids) -> bool:
        counts = [[of[i] for i in ids].count(name) for name in set(of.values())]
        return max(counts) - min(counts) <= 1

    usable = [b.id for b in brokers if b.live or b.id in replicas]
    possible = any(even(ids) for ids in product(usable, repeat=len(replicas)) if len(set(ids)) == len(ids))
    assert (chosen is not None) == possible if len(replicas) < 6 else chosen is None or even(chosen)
    assert chosen is None or (even(chosen) and len(set(chosen)) == len(replicas))


def test_a_selector_asks_for_the_replication_factor(fleet):
    judge, _ = fleet
    tiers = {(r["cluster"], r["topic"]): r["tier"] for r in judge.posture()}
    of_cluster = {topic.removeprefix("by-rf-"): tier for (cluster, topic), tier in tiers.items() if cluster == "rf"}
    assert of_cluster == {"single": "single", "pair": "pair", "three": "last", "mixed": "pair"}
    factors = {
        r["topic"]: r["replication_factor"]
        for r in judge.facts[tables.TOPICS.name].to_pylist()
        if r["cluster"] == "rf" and r["topic"].startswith("by-rf-")
    }
    assert factors == {"by-rf-single": 1, "by-rf-pair": 2, "by-rf-three": 3, "by-rf-mixed": 2}


def test_a_tier_that_hangs_on_an_unknown_replication_factor_is_never_passed(fleet):
    judge, found = fleet
    tiers = {(r["cluster"], r["topic"]): r["tier"] for r in judge.posture()}
    assert tiers["rf-unread", "by-rf-three"] is None and tiers["rf-unread", "by-rf-pair"] == "pair"
    finding = one(found, cluster="rf-unread", resource="by-rf-three", control="write-headroom")
    assert (finding["outcome"], finding["cause"]) == (UNSURE, "unreadable")
    assert finding["message"] == (
        "write-headroom can't be evaluated: the topic's replication factor is unknown, so its tier can be single or pair or last"
    )
    outcomes = {
        f["control"]: f["outcome"]
        for f in pick(found, cluster="rf-unread", resource="by-rf-three", resource_type="topic")
    }
    of_tier = (
        "replication-factor",
        "min-insync-replicas",
        "acked-durability",
        "unclean-leader-election",
        "isr-rack-spread",
    )
    assert {outcomes[control] for control in of_tier} == {UNSURE}
    assert {outcomes[control] for control in ("min-insync-racks-valid", "replica-rack-spread")} == {UNSURE}


def test_replicas_that_are_all_in_sync_are_counted_without_the_reassignments(fleet):
    judge, _ = fleet
    tiers = {r["topic"]: r["tier"] for r in judge.posture() if r["cluster"] == "moves-unread"}
    assert tiers == {"by-rf-short": None, "by-rf-whole": "last"}


@pytest.mark.parametrize(
    ("name", "outcome", "problems", "message"),
    [
        ("strong", PASS, [], None),
        ("weak", FAIL, ["min.insync.replicas"], "min.insync.replicas 1, 2 required"),
        ("higher", FAIL, ["min.insync.replicas"], "min.insync.replicas 2, 3 required"),
        ("above", FAIL, ["default.replication.factor"], "default.replication.factor 5, at most 4 allowed"),
        (
            "low",
            FAIL,
            ["default.replication.factor", "min.insync.replicas"],
            "default.replication.factor 1, 3 required; min.insync.replicas 1, 2 required",
        ),
    ],
)
def test_defaults_are_compared_with_a_range_and_a_relation(fleet, name, outcome, problems, message):
    _, found = fleet
    finding = one(found, cluster=f"defaults-{name}", control="broker-defaults")
    assert (finding["outcome"], finding["observed"]["problems"], finding["message"]) == (outcome, problems, message)
    if name == "above":
        assert "default.replication.factor=4" in finding["remediation"]


def test_a_target_keeps_within_the_maximum(fleet):
    judge, found = fleet
    posture = {r["topic"]: r for r in judge.posture() if r["cluster"] == "targets"}
    capped = posture["capped"]
    assert (capped["target_replication_factor"], capped["target_min_insync_replicas"], capped["reassign"]) == (
        3,
        2,
        False,
    )
    assert posture["tight"]["reassign"] is False
    finding = one(found, cluster="targets", resource="tight", control="min-insync-replicas")
    assert finding["remediation"] == "Change the tier: it needs 3 replicas and allows at most 2"
    assert finding["cause"] == "policy:tight can't be met here"


def test_a_target_is_relative_to_the_replicas_that_there_will_be(fleet):
    """Brokers 1 and 4 share a rack."""
    judge, found = fleet
    posture = {r["topic"]: r for r in judge.posture() if r["cluster"] == "targets"}
    for topic in ("relative", "relative-two"):
        target = [posture[topic][f"target_{name}"] for name in ("replication_factor", "min_insync_replicas", "racks")]
        assert (target, posture[topic]["reassign"]) == ([3, 2, 3], True)
    plans = {plan.topic: plan.moves for plan in reassignments.make(judge, judge.plan).made if plan.cluster == "targets"}
    for topic in ("relative", "relative-two"):
        ((_, replicas),) = plans[topic]
        assert len({(n - 1) % 3 for n in replicas}) == len(replicas) == 3
    raised = one(found, cluster="targets", resource="relative", control="replication-factor")
    assert raised["remediation"].count("min.insync.replicas=") == 1, "one value, once there are three replicas"
    assert "then set min.insync.replicas=2" in raised["remediation"]


def test_one_target_meets_a_range_and_a_relation(fleet):
    judge, found = fleet
    posture = {r["topic"]: r for r in judge.posture() if r["cluster"] == "last"}
    targets = {n: (r["target_replication_factor"], r["target_min_insync_replicas"]) for n, r in posture.items()}
    assert targets == {"orders": (3, 2), "five": (5, 3)}, "the fifth replica has to go: the tier allows four"
    above = one(found, cluster="last", resource="five", control="replication-factor")
    assert above["category"] == "above-maximum"
    assert "kafka-reassign-partitions --bootstrap" not in above["remediation"], "no replica is removed blindly"
    raised = one(found, cluster="last", resource="orders", control="replication-factor")
    assert "min.insync.replicas=2" in raised["remediation"]
