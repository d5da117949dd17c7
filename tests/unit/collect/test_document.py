"""Facts -> document: order, brokers seen only as replicas, and what could not be read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from kafka.protocol.admin import DescribeTopicPartitionsResponse

from durability.collect.brokers import Registered, Version, release_of
from durability.collect.configs import Configs, parsed
from durability.collect.document import Facts, assemble
from durability.collect.log_dirs import LogDirs
from durability.collect.notes import HIDDEN, Notes
from durability.collect.quorum import Member, Quorum
from durability.collect.topics import Reading, Topic, _add_topic, same_state
from durability.topology import canonical, validate
from durability.topology.unreadable import resolve
from tests.support.topology import unread

NOON = "2026-11-21T12:00:00.000Z"


def row(number, leader, replicas, isr, **other):
    lists = {"elr": [], "last_known_elr": [], "adding": [], "removing": [], **other}
    return {"partition": number, "leader": leader, "replicas": replicas, "isr": isr, **lists}


def reading(topics: dict[str, list[dict]], with_elr: bool = True) -> Reading:
    found = {name: Topic(name.startswith("__"), {r["partition"]: r for r in rows}) for name, rows in topics.items()}
    return Reading(found, with_elr)


def facts(**changes) -> Facts:
    """Broker 1 on az1 answers, broker 2 on az2 is fenced; partition b-0 names broker 9, which nobody describes."""
    made = Facts(
        "eu",
        captured_at=NOON,
        brokers=[Registered(1, "az1", False), Registered(2, "az2", True)],
        versions={1: Version("4.3", 30, {"metadata.version": 30})},
        broker_configs={1: Configs({"min.insync.replicas": "2"}, {"min.insync.replicas": "broker"})},
        log_dirs={1: LogDirs([{"path": "/d", "error": None}], {("a", 0): 7, ("b", 0): 8}, {("b", 0): 3})},
        reading=reading({"b": [row(0, 1, [1, 9], [1])], "a": [row(1, None, [2], []), row(0, 1, [1, 2], [1])]}),
        topic_configs={"a": Configs({"retention.ms": "5"}, {"retention.ms": "topic"}), "b": Configs()},
        quorum=Quorum(1, [Member(1, 0), Member(100, None)], []),
        controllers={1: Configs({"min.insync.replicas": "2"})},
        declared={"brokers": 2, "topics": 2, "partitions": 3},
        hidden=0,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_the_document_is_valid_and_sorted():
    document = assemble(facts(), {100: "az3"})
    assert validate(document, "live").cluster == "eu"
    assert [b["id"] for b in document["brokers"]] == [1, 2, 9]
    assert [t["name"] for t in document["topics"]] == ["a", "b"]
    assert [p["partition"] for p in document["topics"][0]["partitions"]] == [0, 1]
    assert document["topics"][0]["partitions"][0]["bytes"] == 7  # of its leader, broker 1
    assert "bytes" not in document["topics"][0]["partitions"][1]  # leaderless: nobody's size is its size
    assert [b.get("future_replicas") for b in document["brokers"]] == [1, None, None]


def test_the_id_that_kafka_gave_the_cluster_is_recorded():
    assert assemble(facts(kafka_cluster_id="MkU3"), {})["cluster"]["kafka_cluster_id"] == "MkU3"
    assert validate(assemble(facts(), {}), "live").document["cluster"]["kafka_cluster_id"] is None


def test_the_same_facts_in_another_order_are_the_same_document():
    other = facts()
    other.brokers.reverse()
    other.reading.topics = dict(reversed(other.reading.topics.items()))
    assert canonical(assemble(other, {})) == canonical(assemble(facts(), {}))


def test_a_broker_seen_only_as_a_replica_is_dead_and_nothing_else_is_known_of_it():
    document = assemble(facts(), {})
    nine = document["brokers"][2]
    assert (nine["id"], nine["live"], nine["described"]) == (9, False, False)
    parts = ("rack", "configs", "log_dirs", "offline_log_dirs", "kafka_version", "max_metadata_version")
    assert {f"/brokers/2/{part}" for part in parts} <= unread(document).keys()


def test_a_fenced_broker_keeps_its_rack_and_has_no_configs():
    document = assemble(facts(), {})
    two = document["brokers"][1]
    assert (two["rack"], two["live"], two["fenced"]) == ("az2", False, True)
    assert unread(document)["/brokers/1/configs"] == "BROKER_NOT_AVAILABLE: it is fenced"
    assert "/brokers/1/rack" not in unread(document)


def test_a_controllers_rack_is_its_brokers_or_the_stated_one_or_unknown():
    stated = assemble(facts(), {100: "az3"})["cluster"]["quorum"]["voters"]
    assert [v["rack"] for v in stated] == ["az1", "az3"]
    assert "/cluster/quorum/voters/1/rack" in unread(assemble(facts(), {}))


def test_a_voter_that_never_caught_up_is_a_fact():
    document = assemble(facts(), {})
    assert document["cluster"]["quorum"]["voters"][1]["lag_ms"] is None
    assert "/cluster/quorum/voters/1/lag_ms" not in unread(document)


def test_a_controller_that_was_tried_is_live_or_down_and_others_are_unknown():
    voters = assemble(facts(reached={100: False}), {})["cluster"]["quorum"]["voters"]
    assert [voter.get("live") for voter in voters] == [None, False]


def test_a_leader_that_states_no_times_says_nothing_of_any_lag():
    members = [Member(1, 0), Member(100, None)]
    document = assemble(facts(quorum=Quorum(1, members, [], times_known=False)), {})
    assert unread(document)["/cluster/quorum/voters/1/lag_ms"].startswith("UNSUPPORTED_VERSION")


def test_every_unreadable_path_points_at_something():
    document = assemble(facts(), {})
    assert all(resolve(document, path) is not None for path in unread(document))


def test_a_cluster_that_changed_while_it_was_read_is_inconsistent():
    assert assemble(facts(), {})["cluster"]["consistent"] is True
    assert assemble(facts(consistent=False), {})["cluster"]["consistent"] is False


def test_whether_a_cluster_changed_is_unknown_where_it_could_not_be_read_again():
    notes = Notes()
    notes.add(("cluster", "consistent"), "REQUEST_TIMED_OUT")
    document = assemble(facts(consistent=None, notes=notes), {})
    assert "consistent" not in document["cluster"] and unread(document)["/cluster/consistent"] == "REQUEST_TIMED_OUT"
    validate(document, "live")


def test_topics_that_could_not_be_read_are_unreadable_not_absent():
    notes = Notes()
    notes.add(("topics",), "REQUEST_TIMED_OUT")
    document = assemble(facts(reading=None, hidden=None, notes=notes), {})
    assert document["topics"] == []
    assert unread(document)["/topics"] == "REQUEST_TIMED_OUT"


def test_an_elr_of_null_is_unknown_and_an_empty_one_is_a_fact():
    answered = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    of_partition = answered.DescribeTopicPartitionsResponsePartition
    partitions = [
        of_partition(
            error_code=0,
            partition_index=number,
            leader_id=1,
            replica_nodes=[1, 2],
            isr_nodes=[1],
            eligible_leader_replicas=elr,
            last_known_elr=elr,
        )
        for number, elr in enumerate(([], None, [2]))
    ]
    found = reading({})
    _add_topic(found, answered(error_code=0, name="a", is_internal=False, partitions=partitions))
    notes = unread(validate(assemble(facts(reading=found), {}), "live").document)
    assert {path: why for path, why in notes.items() if "elr" in path} == {
        f"/topics/0/partitions/1/{member}": "UNSUPPORTED_VERSION: the broker doesn't state eligible leader replicas"
        for member in ("elr", "last_known_elr")
    }
    assert found.topics["a"].unstated_elrs == {1}


def test_zookeeper_mode_has_no_quorum():
    document = assemble(facts(quorum=None), {})
    assert document["cluster"]["quorum"] is None
    assert "controllers" not in document["cluster"]
    validate(document, "live")


def test_notes_of_things_that_went_away_are_dropped_and_hidden_topics_are_no_topic():
    notes = Notes()
    notes.add(("topics", "gone", "configs"), "X")
    notes.add(HIDDEN, "Y")
    assert notes.listed({"topics": [{"name": "a"}]}) == [{"path": "/topics/hidden", "reason": "Y"}]
    of_the_count = [{"path": "/cluster/hidden_partitions", "reason": "Y"}]
    assert notes.listed({"topics": [{"name": "hidden"}]}) == of_the_count, "the place in topics would be that topic"


STATE = {"a": [row(0, 1, [1, 2], [1, 2], elr=[2])], "b": [row(0, 1, [1], [1])]}


def test_readings_of_the_same_state_agree():
    assert same_state(reading(STATE), reading(dict(reversed(STATE.items()))))
    by_metadata = reading({"a": [row(0, 1, [1, 2], [1, 2])], "b": [row(0, 1, [1], [1])]}, with_elr=False)
    assert same_state(reading(STATE), by_metadata) and same_state(by_metadata, reading(STATE))  # it has no ELRs


@pytest.mark.parametrize(
    "changed",
    [
        {"a": STATE["a"]},
        {**STATE, "c": STATE["b"]},
        {**STATE, "b": []},
        {**STATE, "b": [*STATE["b"], row(1, 1, [1], [1])]},
        {**STATE, "b": [row(1, 1, [1], [1])]},
        {**STATE, "b": [row(0, None, [1], [1])]},
        {**STATE, "b": [row(0, 1, [1], [])]},
        {**STATE, "b": [row(0, 1, [1], [1], adding=[2])]},
        {**STATE, "a": [row(0, 1, [1, 2], [1, 2], elr=[])]},
    ],
)
def test_readings_of_another_state_disagree(changed):
    assert not same_state(reading(STATE), reading(changed))
    assert not same_state(reading(changed), reading(STATE))


def test_config_sources_have_the_names_of_the_rooms_and_secrets_are_left_out():
    def entry(name, value, source, sensitive=False):
        return SimpleNamespace(name=name, value=value, config_source=source, is_sensitive=sensitive)

    entries = [
        entry("a", "2", 3),
        entry("b", None, 5),
        entry("c", "x", 4, sensitive=True),
        entry("d", "1", 1),
        entry("e", "", 5),
    ]
    found = parsed(SimpleNamespace(configs=entries))
    assert found.values == {"a": "2", "d": "1", "e": ""}
    assert found.sources == {"a": "cluster-default", "d": "topic", "e": "default"}


def test_releases_of_metadata_version_levels():
    # org.apache.kafka.server.common.MetadataVersion, as `kafka-storage version-mapping` prints the last of each.
    last = {7: "3.3", 8: "3.4", 11: "3.5", 14: "3.6", 19: "3.7", 20: "3.8", 21: "3.9", 25: "4.0", 27: "4.1", 29: "4.2"}
    assert {level: release_of(level) for level in last} == last
    assert release_of(31) == "4.3"  # newer than any known here: at least the newest known
