"""A remedy's text: commands whose preconditions hold, in the dialect of the cluster's release, and advice for the rest."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest

from durability.remedies import racks, replicas, settings
from durability.remedies.cluster import KEY, ClusterFacts, Fragile
from durability.remedies.commands import (
    LOG_DIRS,
    RUNNING,
    UNDER_REPLICATED,
    Config,
    Reassign,
    Show,
    cluster_setting,
    lines,
    topic_setting,
)
from durability.remedies.replicas import bring_back
from durability.remedies.steps import NO_CONTROLLER, NO_RESTART, Step, advice, offered, render
from durability.report.words import is_command, is_script

RAISE = topic_setting("t", "min.insync.replicas", 2)
MOVE = Reassign("t", "plans/c/t.json", 1000)


def test_no_command_follows_a_step_whose_precondition_does_not_hold():
    remedy = [Step(about=("Aim.",)), Step(RAISE, ("Why.",)), Step(MOVE, unless="First start broker 1"), Step(RAISE)]
    assert offered(remedy) == [remedy[1]]
    assert render(remedy, ClusterFacts()).splitlines() == [
        "# Aim.",
        "# Why.",
        'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter --entity-type topics --entity-name t'
        " --add-config min.insync.replicas=2",
        "# First start broker 1",
        "# Then audit again",
    ]


def test_without_a_controller_no_change_is_printed():
    remedy = [Step(Show(LOG_DIRS, "3"), ("Look.",)), Step(RAISE, ("Why.",)), Step(MOVE)]
    assert [line for line in render(remedy, ClusterFacts(led=False)).splitlines() if not line.startswith("#")] == [
        'kafka-log-dirs --bootstrap-server "$BOOTSTRAP" --describe --broker-list 3'
    ]
    assert "kafka-topics" not in render([Step(UNDER_REPLICATED)], ClusterFacts(led=False))
    assert "No controller leads" in render(remedy, ClusterFacts(led=False))
    assert render(remedy, ClusterFacts(led=True)) == render(remedy, ClusterFacts())


def test_a_remedy_without_a_command_is_advice():
    remedy = [Step(about=("Aim.",)), Step(MOVE, unless="First start broker 1")]
    assert render(remedy, ClusterFacts()) == "Aim. First start broker 1. Then audit again"
    assert render(advice("Add racks."), ClusterFacts()) == "Add racks."


@pytest.mark.parametrize(
    ("release", "tool", "answer", "status", "deletes"),
    [
        ((2, 6), "kafka-reassign-partitions", "No partition reassignments found.", 0, True),
        ((2, 6), "kafka-reassign-partitions", "Current partition reassignments: t-0", 0, False),
        ((2, 6), "kafka-reassign-partitions", "No partition reassignments found.", 1, False),
        ((2, 5), "zookeeper-shell", "[delete_topics]", 0, True),
        ((2, 5), "zookeeper-shell", "[delete_topics, reassign_partitions]", 0, False),
        ((2, 5), "zookeeper-shell", "Node does not exist: /admin", 0, False),
    ],
)
def test_a_throttle_is_deleted_only_while_no_reassignment_runs(tmp_path, release, tool, answer, status, deletes):
    for name, text in ((tool, f'echo "{answer}"; exit {status}'), ("kafka-configs", 'echo "deleted $*"')):
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    text = render([Step(replace(RAISE, values=(("a.throttled", None),), idle=True))] * 2, ClusterFacts(release))
    assert all(map(is_command, text.splitlines())) and is_script(text)
    environment = {"PATH": f"{tmp_path}:/bin:/usr/bin", "BOOTSTRAP": "b", "ZOOKEEPER": "z"}
    done = subprocess.run(["bash"], input=text, text=True, capture_output=True, env=environment)
    assert (done.stdout.count("deleted") == 2, done.returncode == 0) == (deletes, deletes)
    assert deletes or status or answer in done.stdout  # what runs is printed


def test_the_undo_is_a_comment():
    text = render([Step(RAISE, undo=topic_setting("t", "min.insync.replicas", None))], ClusterFacts())
    assert [line[:1] for line in text.splitlines()] == ["k", "#"]
    assert text.endswith("--entity-name t --delete-config min.insync.replicas")


@pytest.mark.parametrize(
    ("release", "command", "start"),
    [
        (None, RAISE, 'kafka-configs --bootstrap-server "$BOOTSTRAP"'),
        ((2, 4, 1), RAISE, 'kafka-configs --zookeeper "$ZOOKEEPER"'),
        ((2, 5), RAISE, 'kafka-configs --bootstrap-server "$BOOTSTRAP"'),
        ((1, 1), cluster_setting("a", 1), 'kafka-configs --bootstrap-server "$BOOTSTRAP"'),
        ((2, 5, 1), MOVE, 'kafka-reassign-partitions --zookeeper "$ZOOKEEPER" --execute --throttle 1000'),
        ((0, 10, 1), MOVE, 'kafka-reassign-partitions --zookeeper "$ZOOKEEPER" --execute --throttle 1000'),
        ((0, 10, 0, 1), MOVE, 'kafka-reassign-partitions --zookeeper "$ZOOKEEPER" --execute --reassignment-json-file'),
        ((2, 6), MOVE, 'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP" --execute --throttle 1000'),
        ((2, 1), UNDER_REPLICATED, 'kafka-topics --zookeeper "$ZOOKEEPER"'),
        ((2, 2), UNDER_REPLICATED, 'kafka-topics --bootstrap-server "$BOOTSTRAP"'),
    ],
)
def test_a_command_is_in_the_dialect_of_the_release(release, command, start):
    assert lines(command, ClusterFacts(release))[0].startswith(start)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (ClusterFacts(), "and restart it"),
        (ClusterFacts(down=(5,)), "First start broker 5, or move its replicas: until then a restart can stop writes"),
        (ClusterFacts(down=(3, 5)), "First start brokers 3, 5, or move their replicas"),
        (ClusterFacts(down=(3, 5), led=False), NO_RESTART),
    ],
)
def test_no_broker_is_to_restart_while_others_are_down(facts, expected):
    missing = {"evidence": {"unracked_brokers": [6]}, KEY: facts}
    disk = {"resource": "6", KEY: facts}
    assert expected in render(racks.of_brokers(missing), facts)
    assert expected.removeprefix("and restart it") in render(settings.log_dirs(disk), facts)


@pytest.mark.parametrize(
    ("fragile", "harm"),
    [
        (Fragile(single=1, first_single="t-0"), "A restart can take partition t-0 offline"),
        (Fragile(single=1200, first_single="t-0"), "A restart can take 1,200 partitions (such as t-0) offline"),
        (Fragile(least=2, first_least="t-0"), "A restart can stop acks=all writes to 2 partitions (such as t-0)"),
        (Fragile(unknown=3, first_unknown="t-0"), "It is unknown what a restart does to 3 partitions (such as t-0)"),
    ],
)
@pytest.mark.parametrize(
    "advised",
    [
        lambda facts: render(racks.of_brokers({"evidence": {"unracked_brokers": [6]}, KEY: facts}), facts),
        lambda facts: render(settings.log_dirs({"resource": "3", KEY: facts}), facts),
        lambda facts: render(bring_back("broker:3 log dir offline", facts), facts),
        lambda facts: render([Step(cluster_setting("a", 1))], replace(facts, release=(1, 0))),
    ],
)
def test_no_broker_restarts_while_a_partition_needs_it(advised, fragile, harm):
    text = advised(ClusterFacts(fragile=fragile))
    assert "Don't restart yet" in text and harm in text and "First bring replicas back in sync there" in text
    assert text.index("Don't restart yet") < text.index("Then restart") < text.index("Before each restart, see that")
    safe = advised(ClusterFacts(fragile=Fragile()))
    assert (
        "Don't restart" not in safe and "Before each restart, see that the broker is in the ISR of no partition" in safe
    )


@pytest.mark.parametrize(("needed", "waits"), [(2, False), (3, True), (6, False)])
def test_a_broker_restarts_although_a_partition_needs_another(needed, waits):
    """A replica on a failed disk is out of sync: only a restart of its broker brings it back."""
    alone = Fragile(single=1, first_single="t-0")
    facts = ClusterFacts(fragile=replace(alone, by_broker={needed: alone}))
    assert ("Don't restart yet" in render(bring_back("broker:3 log dir offline", facts), facts)) is waits
    unread = ClusterFacts(fragile=replace(alone, unknown=1, first_unknown="u-0", by_broker={2: alone}))
    assert "Don't restart yet" in render(bring_back("broker:3 log dir offline", unread), unread)


def test_a_restart_waits_for_a_spare_voter():
    missing = {"evidence": {"unracked_brokers": [6]}}
    for spare, said in ((False, True), (True, False), (None, False)):
        facts = ClusterFacts(spare_voter=spare, fragile=Fragile())
        text = render(racks.of_brokers(missing | {KEY: facts}), facts)
        assert ("Restart no controller while the quorum can't do without one more voter" in text) is said


def test_what_a_release_has_no_command_for_is_said_in_words():
    old = ClusterFacts((1, 0, 2))
    assert lines(cluster_setting("a", 1), old) == lines(RUNNING, ClusterFacts((2, 5))) == []
    assert render([Step(cluster_setting("a", 1))], old) == (
        "Set a=1 in server.properties of every broker, and restart them one after the other. Before each restart, see that"
        " the broker is in the ISR of no partition that is at or under its min.insync.replicas"
    )
    assert render([Step(RAISE)], ClusterFacts((0, 8, 2, 2))) == "Set min.insync.replicas=2 on topic t"
    leftover = Config("brokers", "3", (("leader.replication.throttled.rate", None),))
    assert render([Step(leftover)], old).startswith(
        'kafka-configs --zookeeper "$ZOOKEEPER" --alter --entity-type brokers'
    )
    # The tool of 1.0.2 refuses --entity-default for brokers.
    assert lines(Config("brokers", None, leftover.values), old) == []


def test_a_sentence_that_announces_a_command_goes_with_it():
    said = render(settings.unclean_stated({}), ClusterFacts(led=False))
    assert said == f"{NO_CONTROLLER}. Then audit again"
    assert "where the auditor can read it:" in render(settings.unclean_stated({}), ClusterFacts(led=True))


def test_while_brokers_are_down_what_is_unread_of_reassignments_comes_back_with_them():
    (step,) = settings.reassignments_unread({KEY: ClusterFacts(led=True, down=(4, 5))})
    assert step.about[0] == "Start brokers 4, 5" and step.about[1].startswith("If it stays, grant the auditor")
    (step,) = settings.reassignments_unread({KEY: ClusterFacts(led=True, down=(4,), kraft=True)})
    assert step.about[1] == "Unregister a broker that was removed for good and has no replica"


@pytest.mark.parametrize(
    ("planner", "facts", "first"),
    [
        (settings.configs_unread, {"missing_voters": (103,)}, "Start controller 103"),
        (
            settings.configs_unread,
            {"missing_voters": (2, 101, 103), "down": (2,)},
            "Start broker 2, and start controllers 101, 103",
        ),
        (settings.configs_unread, {"failed_disks": (1,)}, "Grant the auditor DescribeConfigs on the cluster"),
        (settings.reassignments_unread, {"failed_disks": (1,)}, "Bring back the offline log dirs of broker 1"),
        (settings.reassignments_unread, {"missing_voters": (103,)}, "Grant the auditor Describe and DescribeConfigs"),
    ],
)
def test_nodes_and_disks_that_explain_what_is_unread_come_back_first(planner, facts, first):
    (step,) = planner({KEY: ClusterFacts(led=True, **facts)})
    assert step.about[0].startswith(first)
    assert (
        len(step.about) == 1
        if first.startswith("Grant")
        else step.about[1].startswith("If it stays, grant the auditor")
    )


UNREAD = [settings.reassignments_unread, settings.configs_unread, settings.features_unread]


@pytest.mark.parametrize("planner", UNREAD)
@pytest.mark.parametrize(
    ("led", "said"), [(False, "First restore the controller quorum"), (True, "Grant"), (None, "Grant")]
)
def test_without_a_controller_no_permission_is_asked_for(planner, led, said):
    (step,) = planner({KEY: ClusterFacts(led=led)})
    assert step.command is None and step.about[0].startswith(said)


def test_brokers_without_racks_are_not_restarted_without_a_controller():
    finding = {"evidence": {"target": {"unracked_brokers": [4, 6]}}}
    assert "restart them one after the other" in racks.of_topic(finding | {KEY: ClusterFacts(led=True)})[0].about[0]
    assert racks.of_topic(finding | {KEY: ClusterFacts(led=False)})[0].about[0] == NO_RESTART


def test_without_a_controller_no_reassignment_is_cancelled():
    halted, led = ClusterFacts(led=False), ClusterFacts(led=True)
    growing = {
        "growing": True,
        "cancel_harms": False,
        "shrunk": True,
        "target": {"elr_at_risk": False},
        "leaving": False,
    }
    stops = {"category": "under-min-isr", "cause": "broker:3 down", "resource": "t", "evidence": growing}
    assert "--cancel" not in render(replicas.health(stops | {KEY: halted}), halted)
    stuck = {"observed": {"stuck": ["t-0"], "reassigning": 1, "throttled_brokers": [], "throttled_topics": []}}
    finding = {**stuck, "evidence": {"cancel_harms": [], "cancellable": ["t-0"], "stuck_kept": [], "waits_for": [3]}}
    assert "--cancel" not in render(settings.leftovers(finding | {KEY: halted}), halted)
    assert "--cancel" in render(settings.leftovers(finding | {KEY: led}), led)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (None, "To undo it, when all replicas are in sync: kafka-configs"),
        ("which harms", "To undo it, which harms: kafka-configs"),
    ],
)
def test_undoing_says_when_it_can_be_done_or_what_it_harms(harm, said):
    step = Step(
        topic_setting("t", "min.insync.replicas", 2), undo=topic_setting("t", "min.insync.replicas", 4), harm=harm
    )
    assert f"# {said}" in render([step], ClusterFacts(led=True))


@pytest.mark.parametrize(
    ("answers", "looks", "last"),
    [
        (["is still in progress", "is completed"], 2, "is completed"),
        (["but replica set is 1,2,3 rather than 1,3", "is completed"], 2, "is completed"),
        (["is still in progress", *["but replica set is 1 rather than 1,3"] * 2], 3, "rather than 1,3"),
    ],
)
def test_a_broker_that_shows_old_replicas_is_asked_again(tmp_path, answers, looks, last):
    """3.6.2 answered so right after the end of a reassignment. The script ended with it, though nothing was wrong."""
    for number, answer in enumerate(answers, 1):
        (tmp_path / str(number)).write_text(answer)
    stubs = "BOOTSTRAP=b:9092; sleep() { :; }\nkafka-reassign-partitions() { echo >> looks; cat $(wc -l < looks); }\n"
    waiting = lines(MOVE)[-1]
    done = subprocess.run(["bash", "-euc", stubs + waiting], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout.strip().endswith(last)) == (0, True), done
    assert len((tmp_path / "looks").read_text().splitlines()) == looks and is_command(waiting)


@pytest.mark.parametrize(
    ("answers", "failing", "status", "last"),
    [
        (["Error: timed out", "is still in progress", "Error: timed out", "is completed"], "13", 0, "is completed"),
        (["Error: timed out"] * 4, "1234", 1, "Error: timed out"),
    ],
)
def test_a_verification_that_fails_is_repeated(tmp_path, answers, failing, status, last):
    """The tool prints its error to stdout. The script took this for the end, and the throttle stayed."""
    for number, answer in enumerate(answers, 1):
        (tmp_path / str(number)).write_text(answer + "\n")
    tool = f"kafka-reassign-partitions() {{ echo >> looks; n=$(wc -l < looks); cat $n; [[ $n != [{failing}] ]]; }}\n"
    stubs = "BOOTSTRAP=b:9092; sleep() { :; }\n" + tool
    waiting = lines(Reassign("t", "t.json", 5, checks=4))[-1]
    done = subprocess.run(["bash", "-euc", stubs + waiting], cwd=tmp_path, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last), done
    assert len((tmp_path / "looks").read_text().splitlines()) == 4 and "timed out" in done.stdout
    assert is_command(waiting)
