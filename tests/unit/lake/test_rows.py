"""A topology document's rows: what is stated, what its absence means, and what couldn't be read."""

import base64

import pytest

from durability.lake import partition_groups, rows, tables
from durability.topology import validate
from tests.support.topology import document

DRAWN = """
    topic   partition leader replicas isr  elr  adding bytes
    orders  1         -      2,3      -    3    -      -
    orders  0         1      1,2,3    1,2  -    3      77
    audit   0         2      2        2    -    -      -
"""


def build(doc, source="test.json", **options):
    return rows.build(validate(doc, source), "snapshot", "attempt", **options)


def rows_of(doc, table, source="test.json", **options):
    return build(doc, source, **options)[table.name].to_pylist()


def only(doc, table, **options):
    [row] = rows_of(doc, table, **options)
    return row


@pytest.mark.parametrize("table", tables.FACTS, ids=lambda table: table.name)
def test_every_table_has_its_columns_and_keys(table, monkeypatch):
    monkeypatch.setattr(partition_groups, "FROM", 1)
    built = build(document(DRAWN, streams=[STREAM]))[table.name]
    assert built.schema.equals(table.arrow) and built.num_rows
    assert set(built["snapshot_id"].to_pylist()) == {"snapshot"} and set(built["attempt_id"].to_pylist()) == {"attempt"}


def test_partitions_are_sorted_and_none_is_not_unreadable():
    names = ("topic", "partition", "leader", "replicas", "isr", "elr", "adding", "bytes", "unreadable")
    assert [tuple(row[name] for name in names) for row in rows_of(document(DRAWN), tables.PARTITIONS)] == [
        ("audit", 0, 2, [2], [2], [], [], None, None),
        ("orders", 0, 1, [1, 2, 3], [1, 2], [], [3], 77, None),
        ("orders", 1, None, [2, 3], [], [3], [], None, None),
    ]


def test_absence_means_what_the_format_says():
    doc = document(DRAWN, version="4.2", brokers="1:az1 2 3:!")
    doc["brokers"][0]["kafka_version"] = "4.3"
    brokers = rows_of(doc, tables.BROKERS)
    assert [(b["rack"], b["rack_state"], b["live"], b["kafka_version"]) for b in brokers] == [
        ("az1", "named", True, "4.3"),
        (None, "none", True, "4.2"),
        (None, "none", False, "4.2"),
    ]
    cluster = only(doc, tables.CLUSTERS)
    known = ("consistent", "controllers_known", "brokers_known", "topics_known", "streams_known", "reassignments_known")
    assert all(cluster[name] is True for name in known) and cluster["controllers_stated"] is False
    assert [cluster[f"declared_{part}"] for part in ("brokers", "topics", "partitions")] == [3, 2, 3]
    assert (cluster["quorum_mode"], cluster["hidden_partitions"], cluster["provider"]) == ("kraft", 0, "self")


def test_what_the_cluster_declared_is_kept_beside_the_rows():
    doc = document(DRAWN, cluster_declared={"brokers": 3, "topics": 5, "partitions": None}, cluster_provider="msk")
    cluster = only(doc, tables.CLUSTERS)
    assert (cluster["declared_topics"], cluster["declared_partitions"], cluster["provider"]) == (5, None, "msk")


@pytest.mark.parametrize(
    ("stated", "recognized", "declared", "provider"),
    [
        ("self", "redpanda", "self", "redpanda"),
        (None, "redpanda", "self", "redpanda"),
        ("redpanda", "redpanda", "self", "redpanda"),
        ("msk", "redpanda", "self", "contradicted"),
        ("msk", "redpanda", "msk", "contradicted"),
        ("self", "redpanda", "msk", "contradicted"),
        ("msk-express", "msk", "self", "msk-express"),
        ("self", "a fork", "self", "self"),
        ("msk", None, "self", "msk"),
    ],
)
def test_the_platform_that_was_recognized_counts_more_than_who_is_said_to_run_it(
    stated, recognized, declared, provider
):
    parts = {"cluster_implementation": {"name": recognized, "evidence": "x"}} if recognized else {}
    doc = document(DRAWN, quorum=None, cluster_provider=stated, **parts)
    assert only(doc, tables.CLUSTERS, provider=declared)["provider"] == provider


@pytest.mark.parametrize(
    ("parts", "declared", "provider"),
    [
        ({"cluster_kafka_cluster_id": "redpanda.1f5d"}, "self", "redpanda"),
        ({"cluster_kafka_cluster_id": "redpanda.1f5d"}, "msk", "contradicted"),
        ({"cluster_kafka_cluster_id": "lkc-1f5d", "cluster_provider": "confluent"}, "self", "confluent"),
        ({"configs": {"orders": {"automq.table.topic.enable": "false"}}}, "self", "object-storage"),
        ({"cluster_kafka_cluster_id": "MkU3OEVBNTcwNTJENDM2Qg"}, "self", "self"),
    ],
)
def test_a_document_that_states_no_platform_is_recognized_by_what_it_has(parts, declared, provider):
    doc = document(DRAWN, quorum=None, **parts)
    assert only(doc, tables.CLUSTERS, provider=declared)["provider"] == provider


def test_zookeeper_has_no_quorum():
    doc = document(DRAWN, quorum=None, version="3.9")
    assert only(doc, tables.CLUSTERS)["quorum_mode"] == "zookeeper" and not rows_of(doc, tables.CONTROLLERS)


UNREADABLE_FIELDS = [
    # path, table, column, what other columns of that row still say
    ("/cluster", "clusters", "kafka_version"),
    ("/cluster/features", "clusters", "features"),
    ("/cluster/features/eligible.leader.replicas.version", "clusters", "features"),
    ("/cluster/consistent", "clusters", "consistent"),
    ("/cluster/quorum", "clusters", "quorum_mode"),
    ("/cluster/quorum/voters", "clusters", "quorum_mode"),
    ("/cluster/quorum/leader", "clusters", "quorum_leader"),
    ("/brokers/0/kafka_version", "brokers", "kafka_version"),
    ("/brokers/0/live", "brokers", "live"),
    ("/brokers/0/rack", "brokers", "rack"),
    ("/brokers/0/configs", "brokers", "configs"),
    ("/brokers/0/log_dirs", "brokers", "offline_log_dirs"),
    ("/brokers/0", "brokers", "live"),
    ("/brokers", "brokers", "configs"),
    ("/topics/0/internal", "topics", "internal"),
    ("/topics/0/configs", "topics", "configs"),
    ("/topics/orders", "topics", "configs"),
    ("/topics/orders/partitions/0/isr/1", "partitions", "isr"),
    ("/topics/orders/partitions/0/leader", "partitions", "leader"),
    ("/topics/orders/partitions/0", "partitions", "replicas"),
    ("/topics/orders/partitions", "partitions", "elr"),
    ("/topics", "partitions", "adding"),
    ("", "partitions", "removing"),
    ("/cluster/quorum/voters/101/lag_ms", "controllers", "lag_ms"),
]


@pytest.mark.parametrize(("path", "table", "column"), UNREADABLE_FIELDS)
def test_what_lies_under_an_unreadable_path_is_null_though_stated(path, table, column):
    doc = document(
        "topic replicas isr\norders 1,2 1",
        unreadable={path: "CLUSTER_AUTHORIZATION_FAILED"},
        broker_configs={"min.insync.replicas": "2"},
        features={"eligible.leader.replicas.version": 1},
    )
    first = rows_of(doc, tables.TABLES[table])[0]
    assert first[column] is None
    assert only(doc, tables.CLUSTERS)["unreadable"] == [{"path": path, "reason": "CLUSTER_AUTHORIZATION_FAILED"}]
    if table == "partitions":
        assert column in first["unreadable"]


@pytest.mark.parametrize(
    ("path", "column"),
    [
        ("/brokers", "brokers_known"),
        ("/topics", "topics_known"),
        ("/streams", "streams_known"),
        ("/groups", "streams_known"),
        ("/cluster/reassignments", "reassignments_known"),
        ("/cluster/controllers", "controllers_known"),
    ],
)
def test_a_part_that_could_not_be_read_is_not_known(path, column):
    cluster = only(document(DRAWN, unreadable={path: "timeout"}), tables.CLUSTERS)
    assert cluster[column] is False
    assert cluster["controllers_stated"] is (column == "controllers_known")


def test_a_rack_that_could_not_be_read_is_neither_named_nor_none():
    brokers = rows_of(document(DRAWN, brokers="1:az1 2:az2 3", unreadable={"/brokers/3/rack": "?"}), tables.BROKERS)
    assert [b["rack_state"] for b in brokers] == ["named", "named", "unknown"]


def test_one_config_that_could_not_be_read_leaves_the_others():
    doc = document(DRAWN, configs={"orders": {"a.b": "1", "c.d": "2"}}, unreadable={"/topics/orders/configs/a.b": "?"})
    orders = rows_of(doc, tables.TOPICS)[1]
    assert orders["configs"] == [("c.d", "2")] and orders["unreadable_configs"] == ["a.b"]


def test_partitions_that_could_not_be_listed_are_not_none():
    doc = document(DRAWN)
    doc["topics"][0]["partitions"] = None
    doc["unreadable"] = [{"path": "/topics/orders/partitions", "reason": "timeout"}]
    audit, orders = rows_of(doc, tables.TOPICS)
    assert (orders["partitions_known"], orders["declared_partitions"]) == (False, None)
    assert (audit["partitions_known"], audit["declared_partitions"]) == (True, 1)
    assert only(doc, tables.CLUSTERS)["declared_partitions"] is None


def test_a_partition_that_is_not_listed_leaves_its_topic_incomplete():
    doc = document(DRAWN, unreadable={"/topics/audit/partitions/7": "timeout"})
    assert [(t["topic"], t["partitions_known"]) for t in rows_of(doc, tables.TOPICS)] == [
        ("audit", False),
        ("orders", True),
    ]
    assert rows_of(doc, tables.PARTITIONS)[0]["isr"] == [2]


def test_a_path_that_points_at_nothing_is_kept():
    doc = document(DRAWN, unreadable={"/topics/hidden": "7 partitions on log dirs only"})
    [kept] = only(doc, tables.CLUSTERS)["unreadable"]
    assert kept["path"] == "/topics/hidden"


def test_controllers_are_merged_by_id_and_take_a_combined_brokers_rack():
    quorum = {
        "leader": 1,
        "voters": [{"id": 1, "lag_ms": 0}, {"id": 9, "lag_ms": 12}],
        "observers": [{"id": 2, "lag_ms": 1}],
    }
    doc = document(
        DRAWN, quorum=quorum, cluster_controllers=[{"id": 9, "configs": {"a": "b"}}, {"id": 8, "configs": {}}]
    )
    names = ("controller", "role", "leader", "rack", "rack_state", "lag_ms", "configs")
    assert [tuple(row[name] for name in names) for row in rows_of(doc, tables.CONTROLLERS)] == [
        (1, "voter", True, "az1", "named", 0, None),
        (2, "observer", False, "az2", "named", 1, None),
        (8, "controller", False, None, "unknown", None, []),
        (9, "voter", False, None, "unknown", 12, [("a", "b")]),
    ]


STREAM = {
    "group": "enrich",
    "type": "classic",
    "state": "Stable",
    "in_transition": False,
    "stateful_tasks": ["0_0"],
    "clients": [{"process": "p1", "tags": {"zone": "az1", "host": "a"}, "active": ["0_0"], "standby": []}],
}


def test_groups_come_from_streams_and_from_raw_bytes():
    raw = {
        "group": "wordcount",
        "type": "classic",
        "state": "Stable",
        "protocol_type": "consumer",
        "protocol": "stream",
        "members": [
            {
                "member_id": "m",
                "client_id": "c",
                "client_host": "/h",
                "metadata": base64.b64encode(b"\x00\xff").decode(),
                "assignment": None,
            }
        ],
    }
    enrich, wordcount = rows_of(document(DRAWN, streams=[STREAM], groups=[raw]), tables.GROUPS)
    assert dict(enrich["clients"][0]["tags"]) == {"host": "a", "zone": "az1"} and enrich["members"] is None
    assert wordcount["members"][0]["metadata"] == b"\x00\xff" and wordcount["members"][0]["assignment"] is None
    assert wordcount["clients"] is None and wordcount["in_transition"] is None


def test_a_live_reading_has_no_defaults_for_what_it_does_not_say():
    doc = document(DRAWN)
    doc["brokers"][2] |= {"described": False, "live": False, "rack": None, "configs": {}}
    live = rows.build(validate(doc, "live"), "s", "a")
    assert live["brokers"]["offline_log_dirs"].to_pylist() == [None, None, None]
    assert live["clusters"]["hidden_partitions"].to_pylist() == [None]
    assert live["brokers"]["rack_state"].to_pylist() == ["named", "named", "unknown"]


MANY = 20_000
"""A walk over all for each of so many would take minutes."""


def test_groups_that_only_unreadable_paths_name_are_found_in_linear_time():
    doc = document(DRAWN, unreadable={f"/groups/g{number}": f"R{number}" for number in range(MANY)})
    doc["groups"] = [{"group": f"h{number}", "members": []} for number in range(MANY)]
    doc["streams"] = []
    found = {row["group"]: row["unread"] for row in rows_of(doc, tables.GROUPS)}
    assert len(found) == 2 * MANY
    assert (found["h0"], found["g0"], found[f"g{MANY - 1}"]) == (None, "R0", f"R{MANY - 1}")


def test_settings_of_which_many_are_unread_are_read_in_linear_time():
    doc = document(DRAWN, unreadable={f"/topics/0/configs/k{number}": "?" for number in range(MANY)})
    doc["topics"][0]["configs"] = {f"k{number}": "1" for number in range(2 * MANY)}
    row = next(r for r in rows_of(doc, tables.TOPICS) if len(r["configs"]) > 2)
    assert len(row["configs"]) == MANY and row["unreadable_configs"] == sorted(f"k{n}" for n in range(MANY))


def test_a_topics_replication_factor_is_that_of_its_partition_with_the_fewest_replicas():
    """In a reassignment the smaller number of before and after counts. One replica is the fewest, whatever else is unknown."""
    table = """
        topic    replicas  isr  adding  removing
        orders   1,2,3     1    -       -
        orders   1,2       1    -       -
        moves    1,2,3     1    3       1
        moves    1,2,3     1    3       -
        unread   1,2,3     1    -       -
        gap      1,2,3     1    -       -
        single   1         1    -       -
        single   1,2       1    -       -
        odd      1,2,3     1,4  -       -
        observed 1,2,3     1    -       -
        none     1,2,3     1    -       -
    """
    unreadable = {f"/topics/{name}/partitions/0/replicas": "x" for name in ("unread",)}
    unreadable |= {"/topics/gap/partitions/7": "x", "/topics/single/partitions/1/replicas": "x"}
    configs = {
        "observed": {"confluent.placement.constraints": '{"observers": [{"count": 1}]}'},
        "none": {"confluent.placement.constraints": '{"observers": []}'},
    }
    found = {
        row["topic"]: row["replication_factor"]
        for row in rows_of(document(table, brokers="1 2 3 4", unreadable=unreadable, configs=configs), tables.TOPICS)
    }
    known = {"orders": 2, "moves": 2, "single": 1, "none": 3}
    assert found == {**dict.fromkeys(("unread", "gap", "odd", "observed")), **known}


def test_observers_by_the_brokers_default_are_not_counted_as_replicas():
    default = {"confluent.log.placement.constraints": '{"observers": [{"count": 1}]}'}
    doc = document("topic replicas\n silent 1,2,3\n own 1,2,3", broker_configs=default)
    doc["topics"][1]["configs"]["confluent.placement.constraints"] = '{"observers": [{"count": 0}]}'
    found = {row["topic"]: row["replication_factor"] for row in rows_of(doc, tables.TOPICS)}
    assert found == {"silent": None, "own": 3}


def test_without_the_reassignments_only_replicas_that_are_all_in_sync_are_sure_to_stay():
    table = "topic replicas isr\n short 1,2,3 1,2\n whole 1,2,3 1,2,3"
    doc = document(table, unreadable={"/cluster/reassignments": "x"})
    found = {row["topic"]: row["replication_factor"] for row in rows_of(doc, tables.TOPICS)}
    assert found == {"short": None, "whole": 3}


def test_members_of_an_elr_that_have_no_replica_do_not_count():
    """Kafka 4.3.1 leaves removed replicas there, if fewer remain than min.insync.replicas."""
    drawn = document("topic replicas\nt 1,2", brokers="1 2 3")
    partition = drawn["topics"][0]["partitions"][0]
    partition |= {"isr": [1], "elr": [3, 2]}
    row = only(drawn, tables.PARTITIONS)
    assert row["elr"] == [2] and row["contradiction"] is None
