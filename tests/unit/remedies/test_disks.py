"""A failed disk is replaced only if another broker has what it has."""

from __future__ import annotations

from durability.remedies import replicas, settings
from durability.remedies.cluster import KEY, ClusterFacts, Fragile
from durability.remedies.replicas import bring_back
from durability.remedies.steps import render

ONLY = ClusterFacts((4, 3), led=True, fragile=Fragile(by_broker={3: Fragile(offline=1, first_offline="orders-0")}))
ELSEWHERE = ClusterFacts((4, 3), led=True, fragile=Fragile(by_broker={}))
KEPT = (
    "Don't replace the disk of broker 3 with an empty one: nothing else that is up has the copies in sync of partition"
    " orders-0."
)


def of_cause(cause: str, facts: ClusterFacts) -> str:
    return render(bring_back(cause, facts), facts)


def test_the_only_copies_are_saved_first():
    said = of_cause("broker:3 log dir offline", ONLY)
    assert said.startswith(KEPT) and "copy what it has to a new one" in said
    assert "Replace" not in said.replace("Don't replace", "")
    assert of_cause("broker:3 log dir offline", ELSEWHERE).startswith(
        "Replace the disk (broker:3 log dir offline), and restart"
    )


def test_several_disks_are_repaired():
    one = Fragile(offline=1, first_offline="orders-0")
    facts = ClusterFacts(fragile=Fragile(by_broker={3: one, 4: one}))
    said = of_cause("broker:3 log dir offline, broker:4 log dir offline", facts)
    assert "the disks of brokers 3, 4 with empty ones" in said and "Repair the disks, or copy what they have" in said


def test_the_other_brokers_start_anyway():
    cause = "broker:2 down, broker:3 log dir offline"
    said = of_cause(cause, ONLY).splitlines()
    assert said[0] == f"# Start broker 2. {replicas.RUNS} {replicas.THEN_NONE}"
    assert any(line.startswith(f"# {KEPT}") for line in said)
    assert of_cause(cause, ELSEWHERE).startswith("# Start broker 2, and replace the failed disks of broker 3:")


def test_the_broker_itself_says_so():
    finding = {"resource": "3", "observed": {"offline_log_dirs": 1}}
    assert KEPT in render(settings.log_dirs(finding | {KEY: ONLY}), ONLY)
    assert KEPT not in render(settings.log_dirs(finding | {KEY: ELSEWHERE}), ELSEWHERE)
