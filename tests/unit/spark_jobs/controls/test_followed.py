"""Followed step by step, no remedy takes a partition offline or below its minimum ISR that wasn't before."""

from __future__ import annotations

import pytest

from durability.findings import words
from durability.findings.build import of_verdict
from durability.findings.clusters import facts_of_clusters
from durability.findings.reassignments import make
from durability.remedies.commands import cluster_setting, topic_setting
from durability.remedies.effects import apply
from durability.remedies.steps import Step, offered
from durability.topology import versions
from tests.support.judge import Judge, one, pick
from tests.support.policy import policy
from tests.support.topology import document
from tests.unit.spark_jobs.controls import test_oracle

MIN_ISR = "min.insync.replicas"
THREE = "0:az1 1:az2 2:az3"
POLICY = policy("""
tiers:
  standard: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 2, acked_copies: 2}
  spare: {write_headroom: 1}
  nothing: {}
  sites: {acked_racks: 2}
topics:
  - {match: {topic: "sites"}, tier: sites}
  - {match: {topic: "spare.*"}, tier: spare}
  - {match: {topic: "nothing.*"}, tier: nothing}
  - {tier: standard}
""")
OFF = {"eligible.leader.replicas.version": 0}
DOCUMENTS = [
    document("topic replicas\nevents 0,1,2\noffsets 0", brokers=THREE, cluster="grown", version="1.0.2", quorum=None),
    document("topic replicas\nevents 0,1,2\noffsets 0", brokers=THREE, cluster="grown-new", features=OFF),
    document("topic replicas isr min\nown 1,2,0 1 1\nplain 0,1,2 1 -", brokers="0:a! 1:b 2:c!", cluster="two-down"),
    document("topic leader replicas isr\na 1 1,3 1\na 2 3,2 2\nb - 3 3\nb 1 1 1", brokers="1:a 2:b 3:c!", cluster="lost",
             version="1.1", quorum=None),
    document("topic replicas isr min\nspare.t 1,2 1,2 2\nspare.t 0,2,1 0,2,1 2", brokers=THREE, cluster="spare",
             version="2.8"),
    document("topic replicas isr min\nspare.t 0,1,2 0,1,2 3", brokers=THREE, cluster="tight"),
    document("topic replicas isr min\nlog 1 1 2", brokers="1:a", cluster="laptop", version="2.5", quorum=None),
    document("topic replicas isr min\nabove 1 1 2\ntwo 0,1 0,1 3", brokers=THREE, cluster="capped", features=OFF),
    document("topic replicas isr min\nabove 1 1 2\ntwo 0,1 0,1 3", brokers=THREE, cluster="uncapped", version="3.6"),
    document("topic replicas isr adding removing min\nstock 3,4,1,2 3 3,4 1,2 1",
             brokers="1:a! 2:b! 3:a 4:b! 5:c", cluster="cancelled", version="2.8", quorum=None),
    document("topic replicas isr min\nt 0,1,2 0,1 1\nu 0,1 0,1 1", brokers=THREE, cluster="lagging"),
    document("topic replicas isr adding\nbulk 1,2,3,4 1,2,3 4", brokers="1:a 2:b 3:c 4:a!", cluster="stuck",
             each_broker={2: {"configs": {"leader.replication.throttled.rate": "1000"}}}),
    document("topic replicas isr min\nspare.pair 0,1 0,1 2", brokers="0:a 1:b", cluster="pair"),
    document("topic replicas isr min\nsites 0,2,1,3 0,1,2,3 2", brokers="0:a 1:a 2:b 3:b", cluster="sites"),
]  # fmt: skip


def troubles(doc: dict) -> set[tuple[str, int, str]]:
    """The partitions that are offline, or whose leader rejects acks=all writes."""
    brokers = {b["id"]: b for b in doc["brokers"]}
    found = set()
    for topic in doc["topics"]:
        for partition in topic["partitions"]:
            leader = brokers.get(partition["leader"])
            if leader is None or leader.get("live") is False:
                found.add((topic["name"], partition["partition"], "offline"))
                continue
            inherited = (leader.get("configs") or {}).get(MIN_ISR, "1")
            least = int(topic["configs"].get(MIN_ISR, inherited))
            if versions.at_least(leader.get("kafka_version") or doc["cluster"]["kafka_version"], "3.7"):
                least = min(least, len(partition["replicas"]))
            if len(partition["isr"]) < least:
                found.add((topic["name"], partition["partition"], "rejects writes"))
    return found


def follow(judge: Judge, documents: list[dict]) -> list[tuple[str, str, set, str]]:
    """Follows every remedy of the judge's latest run. Gives what each remedy harms, with the text, and the text's cluster."""
    plans = make(judge, judge.plan)
    facts = facts_of_clusters(judge, judge.plan, plans)
    moves: dict[str, dict[str, list]] = {}
    for made in plans.made:
        moves.setdefault(made.cluster, {})[made.topic] = made.moves
    of_cluster = {d["cluster"]["id"]: d for d in documents}
    harms = []
    for row in judge.latest["verdicts"].to_pylist():
        if row["outcome"] != "FAIL" or row["cluster"] not in facts:
            continue
        finding = of_verdict(row, facts[row["cluster"]])
        remedy = words.remedy(finding)
        doc = of_cluster[row["cluster"]]
        before = troubles(doc)
        for step in offered(remedy) if isinstance(remedy, list) else ():
            for after in apply(doc, step, moves.get(row["cluster"])):
                if new := troubles(after) - before:
                    harms.append((row["cluster"], row["control"], new, words.remediation(finding)))
                doc = after
    return harms


@pytest.fixture(scope="module")
def judged(spark):
    judge = Judge(spark)
    return judge, judge.run(DOCUMENTS, POLICY)


def test_no_remedy_harms_a_partition(judged):
    assert follow(judged[0], DOCUMENTS) == []


def test_no_remedy_harms_a_partition_of_random_clusters(judged_once):
    documents, judge, _ = test_oracle.judge_fleet(judged_once)
    known = [d for d in documents.values() if not d.get("unreadable")]
    assert len(known) > 20
    harms = [h for h in follow(judge, list(documents.values())) if h[0] in {d["cluster"]["id"] for d in known}]
    assert harms == []


def test_cancelling_is_offered_only_where_enough_replicas_stay_in_sync(judged):
    of = {f["cluster"]: f["remediation"] for f in pick(judged[1], control="reassignment-leftovers", outcome="FAIL")}
    assert "Don't cancel the reassignment of stock-0" in of["cancelled"] and "--cancel" not in of["cancelled"]
    assert "run the tool with --cancel" in of["stuck"] and '"topic": "bulk", "partition": 0' in of["stuck"]
    # A throttle may be why it makes no progress.
    assert "Throttles are set on broker 2." in of["stuck"] and "Throttles" not in of["cancelled"]


def test_a_single_copy_is_never_a_commands_price_for_headroom(judged):
    text = one(judged[1], cluster="pair", control="write-headroom", outcome="FAIL")["remediation"]
    assert "acks=all then guarantees a single copy" in text and "kafka-configs" not in text


def test_a_higher_minimum_says_what_it_costs_when_a_rack_is_lost(judged):
    text = one(judged[1], cluster="sites", control="acked-durability", outcome="FAIL")["remediation"]
    assert "If a rack is lost, 2 of 4 replicas can be left: acks=all writes are then rejected" in text
    assert "that needs a third rack" in text


def test_brokers_may_be_gone_for_good(judged):
    text = pick(judged[1], cluster="two-down", control="partition-health", outcome="FAIL")[0]["remediation"]
    assert "move its replicas to live brokers" in text and "kafka-cluster unregister" in text
    zookeeper = pick(judged[1], cluster="lost", control="partition-health", outcome="FAIL")[0]["remediation"]
    assert "move its replicas to live brokers" in zookeeper and "unregister" not in zookeeper


def test_an_outage_by_configuration_can_end_before_brokers_are_added(judged):
    text = one(judged[1], cluster="laptop", control="min-isr-within-replication-factor")["remediation"]
    first, _, command, undo = text.splitlines()
    assert first.startswith("# Add brokers (3 required, the cluster has 1)")
    assert command.endswith("--entity-name log --add-config min.insync.replicas=1")
    assert undo.startswith("# To undo it: ") and undo.endswith("--add-config min.insync.replicas=2")


def test_following_would_find_a_harm():
    """The steps that an audit must not offer."""
    grown, down = DOCUMENTS[0], DOCUMENTS[2]
    (after,) = apply(grown, Step(cluster_setting(MIN_ISR, 2)))
    assert troubles(after) - troubles(grown) == {("offsets", 0, "rejects writes")}
    (after,) = apply(down, Step(topic_setting("own", MIN_ISR, 2)))
    assert troubles(after) - troubles(down) == {("own", 0, "rejects writes")}


def test_something_is_offered(judged):
    """A remedy that offers nothing harms nothing, so what can be offered must be."""
    scripts = {f["cluster"] for f in judged[1] if "--add-config" in (f["remediation"] or "")}
    assert {"grown", "grown-new", "tight", "laptop", "capped", "uncapped"} <= scripts
    plans = {f["cluster"] for f in judged[1] if "--execute" in (f["remediation"] or "")}
    assert {"grown", "spare", "capped"} <= plans and not plans & {"lost", "two-down"}
