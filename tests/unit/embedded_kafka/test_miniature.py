"""What of a document is rebuilt on an embedded cluster, and what is left out."""

import pytest

from durability.embedded_kafka import miniature
from durability.embedded_kafka.spec import as_properties
from durability.errors import Refused
from durability.topology import validate
from tests.support.topology import document

BROKERS = "1:az1 2:az2 3:az3 4:az1 5:az2 6:az3!"
TABLE = """
    topic   leader replicas isr   min
    orders  1      1,2,3    1,2,3 2
    orders  2      2,3,1    2,3,1 2
    orders  4      4,5,6    4,5   2
    orders  4      4,2,3    4,2,3 2
    cache   5      5        5     1
"""


def rebuilt(table=TABLE, brokers=BROKERS, lose=(1,), controllers=(), version=None, elr=None, change=None, **options):
    made = document(table, brokers=brokers, **options)
    if change is not None:
        change(made)
    original = miniature.Original(validate(made, "cluster.json"))
    return miniature.rebuild(original, lose, controllers, version, elr)


def placed(made):
    return {(s.topic, s.partition): (s.replicas, s.partitions) for s in made.stand_ins}


def test_brokers_that_a_loss_treats_alike_stand_for_each_other():
    made = rebuilt()
    # 4 and 1 share a rack, but only 1 is lost; 6 is down.
    assert placed(made) == {
        **{("orders", 0): ((1, 2, 3), 1), ("orders", 1): ((2, 3, 1), 1), ("orders", 2): ((4, 2, 6), 1)},
        **{("orders", 3): ((4, 2, 3), 1), ("cache", 0): ((2,), 1)},
    }
    assert made.brokers == {1: "az1", 2: "az2", 3: "az3", 4: "az1", 6: "az3"}
    assert (made.lost, made.down) == ((1,), (6,))


def test_equal_placements_are_rebuilt_once():
    lines = "\n".join(
        f"    t  {n}  {n},{n % 30 + 31},{n % 30 + 61}  {n},{n % 30 + 31},{n % 30 + 61}  2" for n in range(1, 31)
    )
    brokers = " ".join(f"{n}:az{(n - 1) // 30 + 1}" for n in range(1, 91))
    made = rebuilt(f"\n    topic leader replicas isr min\n{lines}\n", brokers, lose=(1, 2))
    assert sorted(count for _, count in placed(made).values()) == [2, 28]
    assert len(made.brokers) == 4 and made.lost == (1,)
    assert made.to_dict()["partitions"] == 30 and made.left_out == {}


def test_settings_are_the_topics_or_the_brokers():
    def change(made):
        made["topics"][0]["configs"] = {"unclean.leader.election.enable": "TRUE"}
        for broker in made["brokers"]:
            broker["configs"] = {"min.insync.replicas": "3"}

    made = rebuilt(change=change)
    by_topic = {s.topic: dict(s.configs) for s in made.stand_ins}
    assert by_topic["orders"] == {"min.insync.replicas": "3", "unclean.leader.election.enable": "true"}
    assert by_topic["cache"] == {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}


def test_what_cannot_be_rebuilt_is_counted_with_its_reason():
    def change(made):
        orders, cache = made["topics"]
        orders["partitions"][0]["leader"] = 6  # not among the replicas: a contradiction
        orders["partitions"][1]["isr"] = [2, 3]
        cache["configs"] = {"min.insync.replicas": "x"}

    made = rebuilt(change=change)
    assert made.left_out == {"replicas are unknown": 1, "a setting is unknown": 1}
    assert made.not_rebuilt[0] == "1 partition with live replicas out of sync: in the miniature they are in sync"


def test_the_placements_of_most_partitions_come_first():
    many = "\n".join(f"    t{n}  1  {','.join(str(i) for i in range(1, n % 3 + 2))}  1  {n + 1}" for n in range(60))
    made = rebuilt(f"\n    topic leader replicas isr min\n{many}\n")
    assert len(made.stand_ins) == miniature.PLACEMENTS
    assert made.left_out == {"more placements or brokers than are rebuilt": 60 - miniature.PLACEMENTS}


@pytest.mark.parametrize(
    "stated, asked, release",
    [("3.6.1", None, "3.6.2"), ("3.7.0", None, "4.3.1"), ("4.3", "3.6.2", "3.6.2"), ("trunk", None, "4.3.1")],
)
def test_the_release_behaves_as_the_documents(stated, asked, release):
    made = rebuilt(version=asked, change=lambda found: found["cluster"].update(kafka_version=stated))
    assert made.version == release


@pytest.mark.parametrize("stated, asked, on", [(1, None, True), (0, None, False), (0, True, True), (1, False, False)])
def test_eligible_leader_replicas_are_the_documents_unless_asked(stated, asked, on):
    made = rebuilt(features={miniature.ELR: stated}, elr=asked)
    assert made.elr is on and made.spec.features == {miniature.ELR: int(on)}


def test_an_old_release_has_no_eligible_leader_replicas():
    with pytest.raises(Refused, match="they need 4"):
        rebuilt(version="3.6.2", elr=True)
    made = rebuilt(version="3.6.2", features={miniature.ELR: 1})
    assert not made.elr and made.spec.features == {}
    assert "eligible leader replicas, which Kafka 3.6.2 doesn't have" in made.not_rebuilt


def test_combined_nodes_and_lost_controllers_are_rebuilt():
    made = rebuilt(quorum="4:az1 5:az2 103:az3", controllers=(103,))
    assert made.controllers == {4: "az1", 5: "az2", 103: "az3"} and made.lost == (1, 103)
    assert {4, 5} <= made.brokers.keys()
    assert placed(made)["cache", 0] == ((5,), 1)


def test_a_document_without_voters_gets_a_controller_that_is_never_lost():
    made = rebuilt(quorum=None)
    assert made.controllers == {7: None} and "names no voters" in made.not_rebuilt[0]


def test_if_all_brokers_are_lost_all_of_a_kind_are_rebuilt():
    made = rebuilt(lose=(1, 2, 3, 4, 5, 6))
    assert made.lost == tuple(sorted(made.brokers))


def test_what_has_no_partition_or_no_majority_is_refused():
    with pytest.raises(Refused, match="no partition that can be rebuilt"):
        rebuilt("topic replicas", "1:az1 2:az2")

    def two_down(made):
        for voter in made["cluster"]["quorum"]["voters"][:2]:
            voter["live"] = False

    with pytest.raises(Refused, match="controllers have no majority"):
        rebuilt(change=two_down)


def test_what_a_rack_is_called_sets_no_property():
    hostile = as_properties({"broker.rack": "az1\rlog.dirs=/"})
    assert hostile.splitlines() == ["broker.rack=az1\\u000dlog.dirs\\=/"]
