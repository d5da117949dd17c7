"""No command is printed whose precondition doesn't hold, whichever planner or template made it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from durability.findings import words
from durability.remedies import safety, target
from durability.remedies.cluster import KEY, ClusterFacts, Restored
from durability.remedies.commands import (
    RUNNING,
    Config,
    Elect,
    Feature,
    Reassign,
    broker_setting,
    cluster_setting,
    topic_setting,
)
from durability.remedies.plans import ROOM
from durability.remedies.steps import Step, render

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"
TARGET = {
    "replication_factor": 3,
    "min_insync_replicas": 2,
    "reassign": False,
    "replication_factor_now": 3,
    "its_replication_factor": None,
    "min_insync_replicas_now": 1,
    "min_insync_replicas_enforced": 1,
    "highest_min_insync_replicas": None,
    "smallest_led_isr": 3,
    "minimum_unknown": False,
    "most_replicas": 3,
    "offline": 0,
    "replicas_down": [],
    "inherited_least": 3,
    "elr_at_risk": False,
    "elr_at_risk_in_cluster": False,
    "reassigning_in_cluster": 0,
    "acked_racks": None,
    "leans": False,
}
FACTS = ClusterFacts(elr=True, highest_min_isr=1, lowest_min_isr=1, planned=frozenset({"t"}))
MOVE = Reassign("t", "plans/c/t.json", 1000)


def finding(facts=FACTS, observed=(), **target):
    evidence = {"target": TARGET | target, "left": target.pop("left", None)}
    return {"resource": "t", "cluster": "c", "observed": dict(observed), "evidence": evidence, KEY: facts}


def own(value):
    return topic_setting("t", MIN_ISR, value)


@pytest.mark.parametrize(
    ("command", "target"),
    [
        (own(2), {}),
        (own(2), {"min_insync_replicas_now": 3, "min_insync_replicas_enforced": 3}),
        (own(1), {"min_insync_replicas_now": 2, "min_insync_replicas": None, "most_replicas": 1}),
        (topic_setting("t", UNCLEAN, "false"), {}),
        (topic_setting("t", "retention.ms", 1), {}),
        (cluster_setting(MIN_ISR, 2), {}),
        (cluster_setting(MIN_ISR, 2), {"inherited_least": None}),
        (MOVE, {}),
        (MOVE, {"reassign": True, "its_replication_factor": 3, "highest_min_insync_replicas": 3}),
        (RUNNING, {"offline": 5, "elr_at_risk": True}),
    ],
)
def test_nothing_is_against_a_safe_command(command, target):
    assert safety.reason(command, finding(**target)) is None


@pytest.mark.parametrize(
    ("command", "target", "why"),
    [
        (MOVE, {"reassigning_in_cluster": 1}, "First let the running reassignments of this cluster complete"),
        (own(2), {"smallest_led_isr": 1}, "First bring back the out-of-sync replicas"),
        (own(2), {"smallest_led_isr": None}, "an unknown number in sync"),
        (own(2), {"offline": 1}, "First bring back a leader"),
        (own(2), {"offline": None}, "First bring back a leader"),
        (own(2), {"elr_at_risk": True}, "would wipe the ELR"),
        (own(2), {"min_insync_replicas_now": None}, "present value is unknown"),
        (own(3), {}, "less headroom"),
        (own(1), {"min_insync_replicas_now": 2}, "less than the tier requires"),
        (own(1), {"min_insync_replicas_now": 2, "most_replicas": None}, "less than the tier requires"),
        (own(2), {"min_insync_replicas_now": 3, "min_insync_replicas": 3}, "less than the tier requires"),
        (own(None), {}, "is unknown"),
        (topic_setting("t", UNCLEAN, None), {}, "lose acknowledged records"),
        (cluster_setting(UNCLEAN, "true"), {}, "lose acknowledged records"),
        (cluster_setting(MIN_ISR, 2), {"inherited_least": 2}, "has too few replicas in sync"),
        (cluster_setting(MIN_ISR, 2), {"elr_at_risk_in_cluster": True}, "would wipe the ELR"),
        (broker_setting(1, MIN_ISR, 2), {}, "is unknown"),
        (Config("topics", "t", (("leader.replication.throttled.replicas", None),)), {}, "may be running"),
        (MOVE, {"replicas_down": [3]}, "First start broker 3"),
        (MOVE, {"reassigning_in_cluster": 2}, "running reassignments of this cluster"),
        (MOVE, {"reassigning_in_cluster": None}, "let the auditor read the running reassignments"),
        (MOVE, {"offline": None}, "First bring back a leader"),
        (MOVE, {"minimum_unknown": True}, "First find out the topic's min.insync.replicas"),
        (Reassign("u", "plans/c/u.json", 1), {}, "There is no plan"),
        (MOVE, {"reassign": True, "replication_factor_now": 2, "its_replication_factor": 1,
                "min_insync_replicas_now": 2}, "to no more than 1"),
        (MOVE, {"reassign": True, "replication_factor_now": 2, "its_replication_factor": 2,
                "highest_min_insync_replicas": 3}, "First set the same min.insync.replicas on all brokers"),
        (Feature("eligible.leader.replicas.version", 1), {}, "isn't set cluster-wide"),
        (Feature("kraft.version", 1), {}, "unknown what feature"),
        (Elect("t", 0), {}, "No replica in sync"),
    ],
)  # fmt: skip
def test_an_unsafe_command_has_its_reason(command, target, why):
    assert why in safety.reason(command, finding(**target))


@pytest.mark.parametrize(("release", "in_sync", "waits"), [((4, 2), 2, True), ((4, 2), 3, False), ((4, 3), 2, False)])
def test_before_4_3_no_reassignment_waits_for_a_replica_on_a_failed_disk(release, in_sync, waits):
    facts = replace(FACTS, release=release, failed_disks=(5,))
    why = safety.reason(MOVE, finding(facts, smallest_led_isr=in_sync))
    assert (why is not None and "replace the failed disks of broker 5" in why) is waits


def test_a_cluster_wide_value_overrides_no_higher_one_of_a_broker():
    for highest in (3, None):
        facts = ClusterFacts(elr=False, highest_min_isr=highest)
        assert "overrides the brokers' own values" in safety.reason(cluster_setting(MIN_ISR, 2), finding(facts))


@pytest.mark.parametrize(
    ("shrinks", "said"),
    [
        (True, "First end the running reassignment of this topic. It leaves 2 replicas"),
        (False, "First let the running"),
    ],
)
def test_a_reassignment_that_removes_required_replicas_is_not_awaited(shrinks, said):
    target = {"replication_factor": 3, "replication_factor_now": 2, "shrinks": shrinks}
    assert safety.reason(MOVE, finding(reassign=True, reassigning_in_cluster=1, **target)).startswith(said)


def test_with_elr_on_no_single_broker_gets_a_minimum():
    """KAFKA-16540."""
    said = finding()
    said["evidence"] |= {"overriding_brokers": [1], "inherited_least": 3, "elr_at_risk_in_cluster": False}
    command = broker_setting(1, MIN_ISR, 2)
    assert safety.reason(command, said).startswith("With eligible leader replicas on, Kafka refuses")
    assert safety.reason(command, said | {KEY: replace(FACTS, elr=False)}) is None


def test_a_finding_without_the_state_of_partitions_changes_no_minimum():
    bare = {"evidence": {}, "observed": {}, KEY: FACTS}
    for command in (own(2), cluster_setting(MIN_ISR, 2), MOVE, Elect("t", 0)):
        assert safety.reason(command, bare)


def test_a_replica_is_added_after_the_minimum_is_low_enough():
    grows = finding(reassign=True, replication_factor_now=2, its_replication_factor=1, min_insync_replicas_now=2)
    assert safety.reason(MOVE, grows, [own(1)]) is None


def test_before_3_7_no_minimum_is_lowered_for_replicas_if_others_have_more():
    """There the number of replicas doesn't count: the partition with one rejects acks=all writes already."""
    uneven = {"reassign": True, "replication_factor_now": 1, "its_replication_factor": 1, "min_insync_replicas_now": 2}
    for newest, pinned in (((3, 6, 2), None), ((3, 7), 1), (None, 1)):
        assert safety.pinned(TARGET | uneven, ClusterFacts(newest=newest)) == pinned
    assert safety.pinned(TARGET | uneven | {"most_replicas": 1}, ClusterFacts(newest=(3, 6))) == 1


def test_nothing_runs_after_a_reassignment_that_may_last():
    first, then = safety.checked([Step(MOVE), Step(own(2))], finding())
    assert first.unless is None and then.unless == "First let the reassignment complete"


def test_a_template_that_forgets_a_precondition_prints_its_reason(monkeypatch):
    texts = {"FAIL": "More copies.\n{{ topic_config(resource, 'min.insync.replicas', 2) }}\nThen look."}
    monkeypatch.setattr(words, "_chosen", lambda finding, of: texts[finding["outcome"]])
    unsafe, safe = (finding(smallest_led_isr=n) | {"outcome": "FAIL"} for n in (1, 2))
    assert words.remediation(unsafe).startswith("More copies. First bring back the out-of-sync replicas")
    lines = words.remediation(safe).splitlines()
    assert [line.split()[0] for line in lines] == ["#", "kafka-configs", "#"]
    assert lines[0] == "# More copies." and lines[2] == "# Then look."
    texts["FAIL"] = "{{ topic_config(resource, 'retention.ms', 2) }}"
    assert words.remediation(unsafe).startswith('kafka-configs --bootstrap-server "$BOOTSTRAP" --alter')


def test_a_script_stops_at_a_command_that_fails():
    text = render([Step(own(1)), Step(MOVE), Step(own(2), alone=True)], ClusterFacts())
    first, second, loop, last = text.splitlines()
    assert first.endswith(" &&") and second.endswith(" &&")
    assert loop.startswith("for ") and not loop.endswith("&&") and not last.endswith("&&")


@pytest.mark.parametrize(
    ("provider", "command"),
    [
        ("confluent", MOVE),
        ("msk-serverless", MOVE),
        ("msk-serverless", Elect("t", 0)),
        ("confluent", cluster_setting(UNCLEAN, "false")),
    ],
)
def test_a_provider_that_does_it_itself_gets_no_command(provider, command):
    said = finding() | {"provider": provider}
    said["evidence"] |= {"electable": [0]}
    assert "Use the provider's own tools" in safety.reason(command, said)
    assert safety.reason(command, said | {"provider": "msk"}) is None
    assert "fixes this setting" in safety.reason(topic_setting("t", UNCLEAN, "false"), said)


def test_a_providers_customer_is_not_asked_to_start_a_broker():
    down = finding(replicas_down=[3])
    said = "First let the cluster's provider bring back broker 3: the tool rejects a plan with a broker that is down"
    assert safety.reason(MOVE, down | {"provider": "msk"}) == said
    assert safety.reason(MOVE, down | {"provider": "self"}).startswith("First start broker 3")


@pytest.mark.parametrize(
    ("release", "running", "said"),
    [
        (
            (2, 3),
            True,
            "before Kafka 2.4 no plan replaces a running reassignment. If it is gone for good, start a new broker",
        ),
        ((2, 3), False, "move these replicas to live brokers"),
        ((2, 4), True, "move these replicas to live brokers"),
    ],
)
def test_before_2_4_no_plan_replaces_a_running_one(release, running, said):
    down = finding(replicas_down=[3], reassigning_in_cluster=running)
    assert said in safety.reason(MOVE, down | {KEY: replace(FACTS, release=release)})


def test_brokers_that_are_down_can_get_replicas_where_no_other_has_room():
    facts = replace(FACTS, planned=frozenset(), without={"t": ROOM}, down=(4,))
    assert "First start broker 4, or add disks or brokers, replace" in safety.reason(MOVE, finding() | {KEY: facts})


@pytest.mark.parametrize(
    ("restored", "inherited", "option", "said"),
    [
        (Restored(2, own=True), 1, "--add-config min.insync.replicas=2", "the topic had 2"),
        (Restored(2, own=False), 2, "--delete-config min.insync.replicas", "the topic inherited 2"),
        (Restored(2, own=False), 3, "--add-config min.insync.replicas=2", ""),
        (Restored(2, own=False), None, "--add-config min.insync.replicas=2", ""),
        (Restored(3, own=True), 1, "--add-config min.insync.replicas=2", ""),
    ],
)
def test_a_value_lowered_in_a_rack_outage_becomes_what_it_was(restored, inherited, option, said):
    """As `rack_outages` of findings.json has it, if that is the target, and what the topic inherits is what it was."""
    facts = replace(FACTS, restores={"t": restored}, lowest_min_isr=inherited, highest_min_isr=inherited)
    of_topic = {"min_insync_replicas_source": "topic", "racks_there": 3, "too_few_brokers": False, "rejects": False}
    whole, short = finding(facts, **of_topic), finding(facts, **of_topic, smallest_led_isr=1)
    script, halted = (render(safety.checked(target.remedy(one), one), facts) for one in (whole, short))
    assert script.splitlines()[-1].endswith(f"--entity-name t {option}")
    assert said in script and ("rack outage" in script) is bool(said)
    assert "kafka-configs" not in halted
    assert safety.reason(own(None), finding(replace(facts, restores={}), **of_topic)) is not None


@pytest.mark.parametrize(
    ("release", "harms", "said"),
    [
        (
            (3, 5),
            False,
            "First cancel the running reassignment of this topic. It leaves 1 replica, and min.insync.replicas is 2",
        ),
        ((3, 5), True, "First start broker 4"),
        ((2, 3), True, "First set min.insync.replicas=1 on the topic: its running reassignment leaves 1 replica"),
    ],
)
def test_no_broker_is_started_to_complete_a_reassignment_below_the_minimum(release, harms, said):
    target = {"replication_factor_now": 1, "min_insync_replicas_now": 2, "shrinks": True, "cancel_harms": harms}
    shrinking = finding(reassign=True, reassigning_in_cluster=1, replicas_down=[4], **target)
    reason = safety.reason(MOVE, shrinking | {KEY: ClusterFacts(release, release)}, [])
    assert reason.startswith(said)


@pytest.mark.parametrize(
    ("changes", "second"),
    [
        ({}, True),
        ({"replication_factor_now": 2}, False),
        ({"min_insync_replicas_now": 2}, False),
        ({"replicas_down": None}, False),
        ({"reassigning_in_cluster": 1}, False),
    ],
)
def test_a_single_copy_gets_a_second_one_while_brokers_are_down(changes, second):
    values = {
        "brokers": 3,
        "replication_factor_now": 1,
        "min_insync_replicas_now": 1,
        "min_insync_replicas_enforced": 1,
    }
    values |= {"reassigning_in_cluster": 0, "replicas_down": []} | changes
    said = safety.grown(values, ClusterFacts(down=(2,)))
    assert (
        said is not None and said.startswith("Until then, a reassignment can give each partition 2 replicas")
    ) is second


@pytest.mark.parametrize(
    ("harms", "said"), [(False, "First cancel the running reassignment"), (True, "First start broker 4")]
)
def test_no_broker_is_started_to_complete_a_reassignment_below_the_tier(harms, said):
    target = {"replication_factor": 3, "replication_factor_now": 2, "min_insync_replicas_now": 2, "shrinks": True}
    target |= {"cancel_harms": harms, "replicas_down": [4]}
    shrinking = finding(reassign=True, reassigning_in_cluster=1, **target)
    reason = safety.reason(MOVE, shrinking | {KEY: ClusterFacts((3, 5), (3, 5))}, [])
    assert reason.startswith(said)
