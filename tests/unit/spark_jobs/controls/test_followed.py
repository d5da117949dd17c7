"""Followed step by step, no remedy takes a partition offline or below its minimum ISR that wasn't before. At its end no
requirement fails that didn't, and a remedy that leaves nothing to do has fixed its finding.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest

from durability.findings import words
from durability.findings.build import of_verdict
from durability.findings.clusters import facts_of_clusters
from durability.findings.reassignments import make
from durability.policy import load_policy
from durability.remedies.commands import Show, cluster_setting, topic_setting
from durability.remedies.effects import apply
from durability.remedies.steps import Step, offered
from durability.topology import versions
from tests.support import public_cases
from tests.support.joined import Part, evaluated
from tests.support.judge import Judge, one, pick
from tests.support.policy import policy
from tests.support.topology import document
from tests.unit.spark_jobs.controls import test_oracle

MIN_ISR = "min.insync.replicas"
THREE = "0:az1 1:az2 2:az3"
POLICY = policy("""
tiers:
  whole: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 2, acked_copies: 2}
  spare: {write_headroom: 1}
  nothing: {}
  two-sites: {acked_racks: 2}
topics:
  - {match: {topic: "sites"}, tier: two-sites}
  - {match: {topic: "spare.*"}, tier: spare}
  - {match: {topic: "nothing.*"}, tier: nothing}
  - {tier: whole}
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
    document("topic replicas isr min\nt 0,1,2 0,1 1\nu 0,1 0,1 1", brokers=THREE, cluster="one-lags"),
    document("topic replicas isr adding\nbulk 1,2,3,4 1,2,3 4", brokers="1:a 2:b 3:c 4:a!", cluster="stalled",
             each_broker={2: {"configs": {"leader.replication.throttled.rate": "1000"}}}),
    document("topic replicas isr min\nspare.pair 0,1 0,1 2", brokers="0:a 1:b", cluster="pair"),
    document("topic replicas isr min\nsites 0,2,1,3 0,1,2,3 2", brokers="0:a 1:a 2:b 3:b", cluster="sites"),
]  # fmt: skip


def troubles(doc: dict) -> set[tuple[str, int, str]]:
    """The partitions that are offline, or that reject acks=all writes. One that is offline does both."""
    brokers = {b["id"]: b for b in doc["brokers"]}
    found = set()
    for topic in doc["topics"]:
        for partition in topic["partitions"]:
            leader = brokers.get(partition["leader"])
            if leader is None or leader.get("live") is False:
                found |= {(topic["name"], partition["partition"], trouble) for trouble in ("offline", "rejects writes")}
                continue
            inherited = (leader.get("configs") or {}).get(MIN_ISR, "1")
            least = int(topic["configs"].get(MIN_ISR, inherited))
            if versions.at_least(leader.get("kafka_version") or doc["cluster"]["kafka_version"], "3.7"):
                least = min(least, len(partition["replicas"]))
            if len(partition["isr"]) < least:
                found.add((topic["name"], partition["partition"], "rejects writes"))
    return found


@dataclass
class Followed:
    """A remedy that was followed. after: the document at its end. harms: partitions that it took offline or stopped writes of.
    complete: is nothing left to do? findings: the keys of the findings that have it."""

    cluster: str
    text: str
    after: dict
    harms: set
    complete: bool
    findings: list[tuple] = field(default_factory=list)


def follow(judge: Judge, documents: list[dict]) -> list[Followed]:
    """Follows every remedy of the judge's latest run that changes a cluster, each once."""
    plans = make(judge, judge.plan)
    facts = facts_of_clusters(judge, judge.plan, plans)
    moves: dict[str, dict[str, list]] = {}
    for made in plans.made:
        moves.setdefault(made.cluster, {})[made.topic] = made.moves
    of_cluster = {d["cluster"]["id"]: d for d in documents}
    followed: dict[tuple[str, str], Followed] = {}
    for row in judge.latest["verdicts"].to_pylist():
        if row["outcome"] != "FAIL" or row["cluster"] not in of_cluster:
            continue
        finding = of_verdict(row, facts[row["cluster"]])
        remedy, text = words.remedy(finding), words.remediation(finding)
        steps = [step for step in offered(remedy or ()) if not isinstance(step.command, Show)]
        if not steps:
            continue
        key = (row["cluster"], text)
        if key not in followed:
            doc, harms = of_cluster[row["cluster"]], set()
            before = troubles(doc)
            for step in steps:
                stages = apply(doc, step, moves.get(row["cluster"]))
                harms = harms.union(*(troubles(stage) - before for stage in stages))
                doc = stages[-1]
            followed[key] = Followed(*key, doc, harms, is_complete(remedy))
        followed[key].findings.append(key_of(row))
    return list(followed.values())


def is_complete(remedy) -> bool:
    """Is every step of the remedy a command that is offered?"""
    return all(step.command is not None for step in remedy) and len(offered(remedy)) == len(remedy)


def key_of(row: dict) -> tuple:
    """What a finding is about, whatever its cluster is called."""
    resource = None if row["resource_type"] == "cluster" else row["resource"]
    return row["control"], row["resource_type"], resource, row["category"]


def failures(judge: Judge) -> dict[str, set[tuple]]:
    """By cluster what fails: (key, partition), or (key, None) where no partitions are named."""
    found: dict[str, set[tuple]] = {}
    for row in judge.latest["verdicts"].to_pylist():
        # At min ISR by configuration is no failure of a requirement.
        if row["outcome"] == "FAIL" and (row["category"], row["severity"]) != ("at-min-isr", "info"):
            found.setdefault(row["cluster"], set()).update((key_of(row), p) for p in row["partitions"] or [None])
    return found


def after(part: Part, followed: list[Followed], number: int) -> Part:
    """The clusters at the end of each remedy. number: of the part, for their names."""
    ends = [(f"after-{number}-{n}", one_.after) for n, one_ in enumerate(followed)]
    return replace(part, documents=[end | {"cluster": end["cluster"] | {"id": name}} for name, end in ends], failed=())


LOSSES = ("writes", "availability", "data")
WORSENING = {
    "partition-health": ("under-replicated", "at-min-isr", "under-min-isr", "offline"),
    "broker-loss": LOSSES,
    "rack-loss": LOSSES,
}
"""Categories by control; each one is worse than those before it."""


def above_replicas(document_: dict) -> set[tuple[str, int]]:
    """Partitions with fewer replicas than their topic's min.insync.replicas, its own or the brokers'."""
    inherited = max((int((b.get("configs") or {}).get(MIN_ISR, 1)) for b in document_["brokers"]), default=1)
    least = {t["name"]: int((t.get("configs") or {}).get(MIN_ISR, inherited)) for t in document_["topics"]}
    placed = ((t["name"], p) for t in document_["topics"] for p in t.get("partitions") or ())
    return {(name, p["partition"]) for name, p in placed if len(p.get("replicas") or ()) < least[name]}


def worse(before: set, after: set, above: set[tuple[str, int]]) -> set:
    """What fails after a remedy, and didn't before.

    A partition may get into a less bad category. One that rejects every acks=all write guarantees nothing. above: partitions
    whose minimum no release enforces, because they have fewer replicas.
    """

    def excused(failure: tuple) -> bool:
        (control, kind, resource, category), partition = failure
        if (("min-isr-within-replication-factor", kind, resource, "outage"), partition) in before:
            return True
        if control == "min-insync-replicas" and (resource, partition) in above:
            return True
        # What is broken already is charged to no loss.
        broken = (("partition-health", kind, resource, state) for state in ("offline", "under-min-isr"))
        if control in ("broker-loss", "rack-loss") and any((state, partition) in before for state in broken):
            return True
        order = WORSENING.get(control, ())
        graver = order[order.index(category) + 1 :] if category in order else ()
        return any(((control, kind, resource, other), partition) in before for other in graver)

    return {failure for failure in after - before if not excused(failure)}


def followed_to_the_end(spark, judged_once, parts: list[Part]) -> dict[Part, list[Followed]]:
    """Follows all remedies of the parts, and compares what fails at their ends, evaluated in one job, with what failed before."""
    followed = {part: follow(judged_once(part)[0], known(part)) for part in parts}
    assert [(f.cluster, f.findings, f.harms, f.text) for of in followed.values() for f in of if f.harms] == []
    ends = {part: after(part, of, number) for number, (part, of) in enumerate(followed.items())}
    judges = evaluated(spark, list(ends.values()))
    for part, of in followed.items():
        before, found = failures(judged_once(part)[0]), failures(judges[ends[part]][0])
        above = {d["cluster"]["id"]: above_replicas(d) for d in part.documents}
        for one_, name in zip(of, ends[part].clusters, strict=True):
            compare(one_, before[one_.cluster], found.get(name, set()), above[one_.cluster])
    return followed


def compare(one_: Followed, before: set, after: set, above: set[tuple[str, int]]) -> None:
    """Checks that a remedy leaves nothing worse, and nothing of its findings if it is complete."""
    new = worse(before, after, above)
    assert not new, (one_.cluster, one_.findings, new, one_.text)
    left = {failure for failure in before & after if failure[0] in one_.findings}
    assert not (one_.complete and left), (one_.cluster, left, one_.text)


def known(part: Part) -> list[dict]:
    """The part's clusters of which everything could be read; of those drawn by hand, all."""
    return [d for d in part.documents if part not in test_oracle.PARTS or not d.get("unreadable")]


def public_part() -> Part:
    """The public cases, the newest document of each cluster."""
    documents = {}
    for case in public_cases.CASES:
        for file in sorted(case.glob("topology*.json")):
            document_ = json.loads(file.read_text(encoding="utf-8"))
            documents[document_["cluster"]["id"]] = document_
    policy_ = load_policy(public_cases.FOLDER / "policy.yaml")
    tiers = {f"public-{name}": replace(tier, name=f"public-{name}") for name, tier in policy_.tiers.items()}
    topics = tuple(replace(line, tier=f"public-{line.tier}") for line in policy_.topics)
    applications = tuple(replace(line, tier=line.tier and f"public-{line.tier}") for line in policy_.applications)
    return Part(
        "critical", replace(policy_, tiers=tiers, topics=topics, applications=applications), [*documents.values()]
    )


PARTS = [Part("critical", POLICY, DOCUMENTS), public_part()]


@pytest.fixture(scope="module")
def judged(judged_once):
    return judged_once(PARTS[0])


@pytest.fixture(scope="module")
def followed(spark, judged_once):
    return followed_to_the_end(spark, judged_once, PARTS)


def test_no_remedy_harms(followed):
    mine = followed[PARTS[0]]
    assert len(mine) > 10 and sum(f.complete for f in mine) > 5


def test_no_remedy_harms_a_public_case(followed):
    assert len(followed[PARTS[1]]) > 20


def test_no_remedy_harms_a_random_cluster(spark, judged_once):
    [followed] = followed_to_the_end(spark, judged_once, test_oracle.PARTS).values()
    assert len({f.cluster for f in followed}) > 20


def test_cancelling_is_offered_only_where_enough_replicas_stay_in_sync(judged):
    of = {f["cluster"]: f["remediation"] for f in pick(judged[1], control="reassignment-leftovers", outcome="FAIL")}
    assert "Don't cancel the reassignment of stock-0" in of["cancelled"] and "--cancel" not in of["cancelled"]
    assert "run the tool with --cancel" in of["stalled"] and '"topic": "bulk", "partition": 0' in of["stalled"]
    # A throttle may be why it makes no progress.
    assert "Throttles are set on broker 2." in of["stalled"] and "Throttles" not in of["cancelled"]


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
    assert "to live brokers" in zookeeper and "unregister" not in zookeeper


def test_an_outage_by_configuration_can_end_before_brokers_are_added(judged):
    text = one(judged[1], cluster="laptop", control="min-isr-within-replication-factor")["remediation"]
    first, _, command, undo = text.splitlines()
    assert first.startswith("# Add brokers (3 required, the cluster has 1)")
    assert command.endswith("--entity-name log --add-config min.insync.replicas=1")
    assert undo.startswith("# To undo it, which rejects every acks=all write until there are more replicas: ")
    assert undo.endswith("--add-config min.insync.replicas=2")


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
