"""KIP-1290's procedure through an outage: lower, hold, restore; and where nothing may be offered.

Every night of a history is a cluster of its own, so two jobs evaluate all nights. In `folder` the nights before it are
documents that no run has evaluated. In `nights` the night before it was evaluated: its results are those of `folder`. Both agree
on every night, so by induction runs that follow each other come to the same results.
"""

from dataclasses import replace

import pyarrow as pa
import pytest

from durability.findings.clusters import facts_of_clusters
from durability.findings.reassignments import Plans
from durability.lake.tables import TOPIC_POSTURE
from durability.remedies.cluster import Restored
from tests.support.judge import Judge
from tests.support.policy import policy
from tests.support.topology import document

pytestmark = pytest.mark.slow

POLICY = policy("""
tiers: {racks: {min_insync_racks: 2}, free: {}}
topics: [{match: {topic: "free.*"}, tier: free}, {tier: racks}]
""")
REPLICAS, RACKS = "min.insync.replicas", "min.insync.racks"
UP, DOWN = "1:A 2:A 3:B 4:B 5:C", "1:A 2:A 3:B! 4:B! 5:C"
ELR = {"eligible.leader.replicas.version": 1}


def fleet(brokers, table, **more):
    """One cluster; its topics' `own` min.insync.racks as configs."""
    own = more.pop("own", {})
    return document(table, brokers=brokers, configs={t: {RACKS: str(v)} for t, v in own.items()}, **more)


HEADER = "topic leader replicas isr elr min\n"


def at(brokers, lines, own=None, **more):
    """A cluster at one night; own: min.insync.racks of the topic `free`."""
    configs = {"free": {RACKS: str(own)}} if own else None
    return {"table": HEADER + lines, "brokers": brokers, "configs": configs, **more}


def outage(brokers, isr, two, inherits, racks):
    """free-two states min.insync.replicas itself, free-inherits doesn't, racks has the tier's wish; free-fine is elsewhere."""
    lines = (
        f"free-two 1 1,3,4 {isr} - {two}",
        f"free-inherits 1 1,3,4 {'1' if '!' in brokers else '1,3,4'} - {inherits}",
        f"racks 1 1,2,3 {racks} - 1",
        "free-fine 1 1,2,5 1,2,5 - 2",
    )
    return at(brokers, "\n".join(lines), broker_configs={REPLICAS: "2"})


ALL, SHORT = "1,3,4", "1"
WHOLE = outage(UP, ALL, 2, "-", "1,2,3")
# What each cluster is like, night after night; what stays away is as it was the night before.
HISTORIES = {
    "outage": [
        WHOLE,
        outage(DOWN, SHORT, 2, "-", "1,2"),
        outage(DOWN, SHORT, 1, 1, "1,2"),
        outage(UP, SHORT, 1, 1, "1,2,3"),
        outage(UP, ALL, 1, 1, "1,2,3"),
        outage(UP, ALL, 1, 1, "1,2,3"),
        outage(UP, ALL, 2, 1, "1,2,3"),
        WHOLE,
    ],
    "unseen": [at(UP, "free 1 1,3,4 1,3,4 - 2"), at(DOWN, "free 1 1,3,4 1 - 1"), at(UP, "free 1 1,3,4 1,3,4 - 1")],
    "decided": [at(UP, "free 1 1,3,4 1,3,4 - 2"), at(UP, "free 1 1,3,4 1,3,4 - 1")],
    "of-racks": [
        at(DOWN, "free 1 1,2,3,5 1,2,5 - 1", 3),
        at(DOWN, "free 1 1,2,3,5 1,2,5 - 1", 2),
        at(DOWN, "free 1 1,2,3,5 1,2 - 1", 2),
        at(UP, "free 1 1,2,3,5 1,2,3,5 - 1", 1),
    ],
    "half-read": [
        at(UP, "free 1 1,3,4 1,3,4 - 2\nfree 1 1,3,4 1,3,4 - 2"),
        at(DOWN, "free 1 1,3,4 1 - 2\nfree 1 1,3,4 1 - 2"),
        at(UP, "free 1 1,3,4 1,3,4 - 1\nfree 1 1,3,4 1 - 1", unreadable={"/topics/0/partitions/1/isr": "TIMEOUT"}),
        at(UP, "free 1 1,3,4 1,3,4 - 1\nfree 1 1,3,4 1,3 - 1"),
    ],
    "lost-broker": [at("1:A 3:B! 4:B 5:C", "free 1 1,3 1 - 2")],
    "lost-alone": [at("1:A 3:B 4:B 5:C!", "free 1 1,5 1 - 2")],
    "empty-elr": [at(DOWN, "free 1 1,3,4 1 - 2", features=ELR)],
}
GUARDED = {
    "an-elr": "free 1 1,3,4 1 3,4 2",
    "an-offline-partition": "free 1 1,3,4 1 - 2\nfree - 3,4 - - 2",
    "an-elr-elsewhere": "free 1 1,3,4 1 - 2\nfree 1 1,3 1 3 2",
}
for name, lines in GUARDED.items():
    HISTORIES[f"{name}-on"] = [at(DOWN, lines, features=ELR)]
    HISTORIES[f"{name}-off"] = [at(DOWN, lines)]


EVERY = [(name, hour) for name, days in HISTORIES.items() for hour in range(len(days))]


def shown(name, hour, cluster):
    """The history's document of one night."""
    return document(cluster=cluster, captured_at=f"2026-11-21T{hour:02d}:00:00Z", **HISTORIES[name][hour])


@pytest.fixture(scope="module")
def folder(spark):
    """The judge of each history cut at every night: the cluster `NAME HOUR` has the nights before it as earlier documents."""
    judge = Judge(spark)
    judge.run(
        [shown(name, hour, f"{name} {hour}") for name, hour in EVERY],
        POLICY,
        findings=False,
        earlier=[shown(name, hour, f"{name} {last}") for name, last in EVERY for hour in range(last)],
    )
    return judge


@pytest.fixture(scope="module")
def nights(spark, folder):
    """Per night: cluster -> (topic, setting) -> what `topic_posture` says of the outage; and the counters of that night."""
    judge = Judge(spark)
    # The results of the night before, as those of the cluster's last run.
    next_night = {f"{name} {hour - 1}": f"{name} {hour}" for name, hour in EVERY if hour}
    before = [row for row in folder.posture() if row["cluster"] in next_night]
    before = [row | {"cluster": next_night[row["cluster"]]} for row in before]
    posture = folder.latest[TOPIC_POSTURE.name]
    judge.results[TOPIC_POSTURE.name] = pa.Table.from_pylist(before, posture.schema)
    later = [part for part in folder.plan.snapshots if part.cluster in next_night.values()]
    documents = [shown(name, hour, f"{name} {hour}") for name, hour in EVERY]
    judge.run(documents, POLICY, findings=False, result="r2", previous=replace(folder.plan, snapshots=later))
    entries, out = entries_of(judge), []
    for hour in range(max(map(len, HISTORIES.values()))):
        counters = [c for c in judge.latest["health_counters"].to_pylist() if c["captured_at"].hour == hour]
        out.append({name: entries[f"{name} {hour}"] for name, at in EVERY if at == hour} | {"counters": counters})
    return out


def entries_of(judge):
    entries = {part.cluster: {} for part in judge.plan.judged}
    for row in judge.posture():
        for entry in row["rack_outage"] or ():
            entries[row["cluster"]][row["topic"], entry["setting"]] = entry
        assert (row["rack_outage_step"] is None) == (row["rack_outage"] is None)
    return entries


def said(entry):
    return tuple(entry[n] for n in ("step", "value", "source", "now", "lower_to", "partitions"))


def test_a_lost_rack_asks_to_lower_what_refuses_writes(nights):
    assert nights[0]["outage"] == {}
    lost = nights[1]["outage"]
    assert {k: said(e) for k, e in lost.items()} == {
        ("free-two", REPLICAS): ("lower", 2, "topic", 2, 1, 1),
        ("free-inherits", REPLICAS): ("lower", 2, "broker", 2, 1, 1),
        ("racks", RACKS): ("lower", 2, "policy", None, 1, 1),
    }
    assert {(*e["racks"], e["since"].hour) for e in lost.values()} == {("B", 1)}
    of_cluster = [c for c in nights[1]["counters"] if c["cluster"] == "outage 1" and c["topic"] is None]
    assert [c["lost_racks"] for c in of_cluster] == [[{"rack": "B", "brokers": [3, 4]}]]


def test_what_was_lowered_is_remembered_while_the_rack_is_away(nights):
    lowered = nights[2]["outage"]
    assert said(lowered["free-two", REPLICAS]) == ("hold", 2, "topic", 1, None, 0)
    assert said(lowered["free-inherits", REPLICAS]) == ("hold", 2, "broker", 1, None, 0)
    assert lowered["free-inherits", REPLICAS]["now_source"] == "topic"
    assert {e["since"].hour for e in lowered.values()} == {1}


def test_restoring_waits_for_the_isr_and_is_told_until_it_is_done(nights):
    assert {k[0]: e["step"] for k, e in nights[3]["outage"].items()} == {"free-two": "hold", "free-inherits": "restore"}
    for night in (4, 5):
        back = {k: (e["step"], e["value"], e["since"].hour) for k, e in nights[night]["outage"].items()}
        assert back == dict.fromkeys([("free-two", REPLICAS), ("free-inherits", REPLICAS)], ("restore", 2, 1))
    assert set(nights[6]["outage"]) == {("free-inherits", REPLICAS)}
    assert nights[7]["outage"] == {}


def test_a_value_lowered_before_any_run_saw_the_outage_is_remembered_from_the_night_before(nights):
    assert said(nights[1]["unseen"]["free", REPLICAS]) == ("hold", 2, "topic", 1, None, 0)
    assert said(nights[2]["unseen"]["free", REPLICAS]) == ("restore", 2, "topic", 1, None, 0)


def test_a_value_lowered_without_an_outage_is_nobodys_business(nights):
    assert nights[1]["decided"] == {}


def test_the_remedies_of_findings_restore_the_same(folder):
    facts = facts_of_clusters(folder, folder.plan, Plans())
    inherited, stated = {"free-inherits": Restored(2, own=False)}, {"free-two": Restored(2, own=True)}
    restores = [facts[f"outage {hour}"].restores for hour in (1, 2, 3, 4)]
    assert restores == [{}, {}, inherited, inherited | stated]


def test_nothing_is_restored_while_an_isr_is_unread(nights):
    assert [nights[n]["half-read"]["free", REPLICAS]["step"] for n in (1, 2, 3)] == ["lower", "hold", "restore"]


def test_min_insync_racks_is_lowered_and_restored_where_it_is_set(nights):
    assert [said(night["of-racks"]["free", RACKS]) for night in nights[:4]] == [
        ("lower", 3, "topic", 3, 2, 1),
        ("hold", 3, "topic", 2, None, 0),
        ("lower", 3, "topic", 2, 1, 1),
        ("restore", 3, "topic", 1, None, 0),
    ]


@pytest.mark.parametrize("what", GUARDED)
def test_nothing_is_offered_where_it_would_cost_the_elr(nights, what):
    on, off = (nights[0][f"{what}-{elr}"]["free", REPLICAS] for elr in ("on", "off"))
    assert (on["step"], on["lower_to"]) == ("guarded", None)
    assert (off["step"], off["lower_to"]) == ("lower", 1)


def test_with_elr_on_an_empty_one_is_no_danger(nights):
    assert said(nights[0]["empty-elr"]["free", REPLICAS]) == ("lower", 2, "topic", 2, 1, 1)


def test_a_lost_broker_is_no_lost_rack_unless_it_was_alone_there(nights):
    assert nights[0]["lost-broker"] == {}
    assert nights[0]["lost-alone"]["free", REPLICAS]["racks"] == ["C"]


def test_a_folder_of_every_night_says_what_the_nights_said(folder, nights):
    found = entries_of(folder)
    assert {(name, hour): found[f"{name} {hour}"] for name, hour in EVERY} == {
        (name, hour): nights[hour][name] for name, hour in EVERY
    }
