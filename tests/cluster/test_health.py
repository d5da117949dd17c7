"""Partition health of running clusters: the rules against Kafka's own kafka-topics, and against what producers are answered.

All states are judged as one fleet, a cluster each. How a state is looked at: `tests/support/kafka_states.py`.
"""

from __future__ import annotations

import pytest

from tests.support.judge import one, pick
from tests.support.kafka_states import FILTERS, Described, Partition, State
from tests.support.kafka_walk import OLD_TOPICS, RACKS, TOPICS

STATES = ("whole", "moving", "broker-down", "rack-down", "restored", "old-whole", "old-broker-down", "old-rack-down")


def minimum(state: str, topic: str) -> int:
    """min.insync.replicas as configured: what kafka-topics compares with."""
    least = (OLD_TOPICS if state.startswith("old") else TOPICS)[topic][0]
    return 2 if least is None else least


def health(found: list[dict], category: str) -> list[dict]:
    return pick(found, control="partition-health", outcome="FAIL", category=category)


def partitions(findings: list[dict]) -> set[Partition]:
    return {(f["resource"], p) for f in findings for p in f["partitions"]}


def shown_by_kafka_topics_alone(name: str, state: State) -> dict[str, set[Partition]]:
    """By category: leaderless partitions, which KIP-427 counts as offline only, and partitions that kafka-topics measures
    by min.insync.replicas as configured while brokers since 3.7 enforce no more than there are replicas.

    The filters' rules are kafka-topics' own: isr < replicas meant; isr < min, or no leader; isr == min.
    """
    capped = not name.startswith("old")
    extra: dict[str, set[Partition]] = {category: set() for category in FILTERS}
    for key, p in state.described.items():
        least, size = minimum(name, key[0]), len(p.isr)
        if p.leader is None:
            extra["under-min-isr"].add(key)
            extra["under-replicated"] |= {key} if size < p.meant else set()
            extra["at-min-isr"] |= {key} if size == least else set()
        elif capped and least > size == len(p.replicas):
            extra["under-min-isr"].add(key)
    return extra


def left_out_by_kafka_topics(name: str, state: State) -> set[Partition]:
    """At the min ISR that brokers since 3.7 enforce, yet not at the configured one."""
    if name.startswith("old"):
        return set()
    led = {key: p for key, p in state.described.items() if p.leader is not None}
    return {key for key, p in led.items() if minimum(name, key[0]) > len(p.isr) == len(p.replicas)}


@pytest.mark.parametrize("name", STATES)
@pytest.mark.parametrize("category", FILTERS)
def test_categories_are_kafka_topics_filters_but_for_what_is_known(judged, name, category):
    state = judged.states[name]
    ours, theirs = partitions(health(judged.found[name], category)), state.listed[category]
    assert theirs - ours == shown_by_kafka_topics_alone(name, state)[category]
    assert ours - theirs == (left_out_by_kafka_topics(name, state) if category == "at-min-isr" else set())


@pytest.mark.parametrize("name", STATES)
def test_every_difference_is_explained_where_the_partition_is_listed(judged, name):
    found = pick(judged.found[name], control="partition-health", outcome="FAIL")
    for category, option in FILTERS.items():
        ours, theirs = partitions(health(found, category)), judged.states[name].listed[category]
        explained = partitions([f for f in found if "kafka-topics" in f["message"] and option in f["message"]])
        assert ours ^ theirs <= explained


def test_states_show_every_difference_and_every_category(judged):
    """What the comparison rests on: nothing above was compared empty with empty throughout."""
    for category in FILTERS:
        assert health(judged.found["rack-down"], category)
        assert judged.states["rack-down"].listed[category]
    for name in ("whole", "rack-down"):
        assert left_out_by_kafka_topics(name, judged.states[name])
    assert shown_by_kafka_topics_alone("old-broker-down", judged.states["old-broker-down"])["at-min-isr"]
    assert shown_by_kafka_topics_alone("rack-down", judged.states["rack-down"])["under-replicated"]
    for name in ("moving", "broker-down", "rack-down"):
        assert judged.states[name].described["h-crawling", 0].adding == [3, 4]


def test_a_running_reassignment_is_no_under_replication(judged):
    moving = judged.states["moving"].described["h-crawling", 0]
    assert len(moving.isr) < len(moving.replicas)
    assert not health(judged.found["moving"], "under-replicated")


@pytest.mark.parametrize("name", STATES)
def test_producers_are_answered_as_judged(judged, name):
    state, found = judged.states[name], judged.found[name]
    refused = {key for key, said in state.answered.items() if said == "NotEnoughReplicasError"}
    assert set(state.answered.values()) <= {"accepted", "NotEnoughReplicasError"}
    assert partitions(health(found, "under-min-isr")) == refused
    assert partitions(health(found, "offline")) == state.described.keys() - state.answered.keys()


@pytest.mark.parametrize(
    "name, partition, isr, effective, answer",
    [
        ("whole", ("h-rf2-min3", 0), 2, 2, "accepted"),
        ("broker-down", ("h-rf2-min3", 0), 1, 2, "NotEnoughReplicasError"),
        ("whole", ("h-growing", 0), 1, 1, "accepted"),  # RF 1, min 2: with one copy
        ("broker-down", ("h-growing", 0), 1, 2, "NotEnoughReplicasError"),  # growing to RF 2, the new replica dead
        ("restored", ("h-growing", 0), 1, 1, "accepted"),  # the reassignment taken back
        ("whole", ("h-rf3-min3", 1), 3, 3, "accepted"),
        ("broker-down", ("h-rf3-min3", 1), 2, 3, "NotEnoughReplicasError"),
        ("rack-down", ("h-rf3-min1", 1), 1, 1, "accepted"),
        ("old-whole", ("h-rf2-min3", 0), 2, 3, "NotEnoughReplicasError"),
        ("old-whole", ("h-rf2-min2", 0), 2, 2, "accepted"),
    ],
)
def test_leaders_enforce_the_effective_min_isr(judged, name, partition, isr, effective, answer):
    state, (topic, number) = judged.states[name], partition
    category = "at-min-isr" if answer == "accepted" else "under-min-isr"
    finding = one(judged.found[name], control="partition-health", resource=topic, category=category)
    assert (len(state.described[partition].isr), state.answered[partition]) == (isr, answer)
    assert number in finding["partitions"]
    assert finding["observed"]["min_insync_replicas"] == minimum(name, topic)
    assert finding["observed"]["effective_min_insync_replicas"] == effective


def test_before_37_a_min_isr_above_the_replicas_is_an_outage(judged):
    old = judged.found["old-whole"]
    finding = one(old, control="min-isr-within-replication-factor", resource="h-rf2-min3")
    assert (finding["outcome"], finding["observed"]["effect"]) == ("FAIL", "outage")
    assert finding["observed"]["error"] == "NOT_ENOUGH_REPLICAS"
    assert judged.states["old-whole"].answered["h-rf2-min3", 0] == "NotEnoughReplicasError"
    assert ("h-rf2-min3", 0) in judged.states["old-whole"].listed["under-min-isr"]
    new = one(judged.found["whole"], control="min-isr-within-replication-factor", resource="h-rf2-min3")
    assert new["observed"]["effect"] == "silent-downgrade"


LOSSES = {"broker-down": ("broker:5 down", {5}), "rack-down": ("rack:az2 down", {2, 5})}


def lacks(p: Described, dead: set[int]) -> bool:
    """Is one of `dead` missing from the ISR that was there to stay?"""
    return bool((set(p.replicas) - set(p.adding) - set(p.isr)) & dead)


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_is_one_cause_of_whatever_misses_replicas_by_it(judged, name):
    cause, dead = LOSSES[name]
    described_ = judged.states[name].described
    findings = pick(judged.found[name], control="partition-health", outcome="FAIL")
    hit = [f for f in findings if any(lacks(described_[f["resource"], p], dead) for p in f["partitions"])]
    assert len(hit) > 8
    assert {f["cause"] for f in hit} == {cause}
    # Besides, what waits for a replica being added on the broker that is lost.
    others = [f for f in findings if f not in hit and f["cause"] == cause]
    assert {(f["resource"], f["category"]) for f in others} == {("h-growing", "under-min-isr")}


def isr_racks(p: Described) -> int:
    return len({RACKS[b] for b in p.isr})


@pytest.mark.parametrize("name", ["whole", "broker-down", "rack-down"])
def test_racks_in_sync_are_counted_by_kip_1290(judged, name):
    """Two wanted: fewer is UnderMinRackIsr; two where the replicas span three is AtMinRackIsr."""
    for topic in TOPICS.keys() - {"h-crawling"}:
        here = {key[1]: p for key, p in judged.states[name].described.items() if key[0] == topic}
        under = [n for n, p in here.items() if isr_racks(p) < 2]
        at = [n for n, p in here.items() if isr_racks(p) == 2 and len({RACKS[b] for b in p.replicas}) > 2]
        finding = one(judged.found[name], control="isr-rack-spread", resource=topic)
        expected = ("under-min-rack-isr", under) if under else ("at-min-rack-isr", at) if at else (None, None)
        assert (topic, finding["category"], finding["partitions"]) == (topic, *expected)


def test_a_lost_rack_is_the_cause_of_too_few_racks_in_sync(judged):
    found = pick(judged.found["rack-down"], control="isr-rack-spread", outcome="FAIL")
    by_topic = {f["resource"]: f["cause"] for f in found}
    expected = ("h-rf2-min3", "h-rf3-default", "h-rf3-min1", "h-rf3-min3", "h-crawling")
    assert {t: by_topic[t] for t in expected} == dict.fromkeys(expected, "rack:az2 down")
    # Replicas in one rack are too few wherever they are in sync.
    assert not {by_topic[t] for t in ("h-rf1", "h-rf1-min2")} & {"rack:az2 down"}


def test_what_the_rack_caused_is_resolved_when_it_is_back(judged):
    before = pick(judged.found["rack-down"], control="partition-health", cause="rack:az2 down")
    now = {f["id"]: (f["change"], f["why"]) for f in judged.after}
    stays = {(f["resource"], f["category"]) for f in judged.found["restored"] if f["outcome"] == "FAIL"}
    # A topic that the configuration keeps at its min ISR stays listed under the same id, for that reason.
    gone = [f for f in before if (f["resource"], f["category"]) not in stays]
    assert len(gone) > 8
    assert {now[f["id"]] for f in gone} == {("resolved", "cause-cleared")}
    assert {f["category"] for f in before if f not in gone} <= {"at-min-isr"}
    assert not pick(judged.found["restored"], cause="rack:az2 down")
