"""The snapshot gate: readings that contradict themselves are rejected, each with the check and the count."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.errors import AuditError
from durability.lake.tables import TOPICS
from durability.topology import validate
from expectations import contradictions, gate, gx
from expectations.data_docs import SUITES, write_data_docs
from tests.support.topology import document, healthy

GOOD = """
    topic    replicas  isr    min
    orders   1,2,3     1,2,3  2
    orders   2,3,1     2,3    2
    invoices 3,1       3      1
"""


def staged(lake, *documents, source="test.json"):
    return [lake.stage(validate(doc, source)) for doc in documents]


def reason_of(lake, doc) -> str | None:
    (verdict,) = gate.check(lake, staged(lake, doc))
    assert verdict.accepted == (verdict.reason is None)
    return verdict.reason


def test_sound_snapshots_are_accepted(lake):
    verdicts = gate.check(lake, staged(lake, document(GOOD, cluster="eu"), healthy(cluster="us")))
    assert [(v.cluster, v.accepted, v.reason) for v in verdicts] == [("eu", True, None), ("us", True, None)]
    assert set(verdicts[0].counts) == {c.id for c in gate.CHECKS}


def test_a_broken_snapshot_doesnt_stop_the_others(lake):
    bad = document(GOOD, cluster_consistent=False, cluster="bad")
    verdicts = gate.check(lake, staged(lake, healthy(cluster="a"), bad, healthy(cluster="z")))
    assert [(v.cluster, v.accepted) for v in verdicts] == [("a", True), ("bad", False), ("z", True)]


@pytest.mark.parametrize(
    ("table", "parts", "reason"),
    [
        (GOOD, {"cluster_consistent": False}, "consistent: 1 (the cluster changed while it was read)"),
        (
            GOOD,
            {"unreadable": {"/cluster/consistent": "REQUEST_TIMED_OUT"}},
            "read-again: 1 (the cluster could not be read a second time, so it is unknown whether it changed); "
            "/cluster/consistent: REQUEST_TIMED_OUT",
        ),
        (
            GOOD,
            {"cluster_declared": {"brokers": 3, "topics": 4, "partitions": 5}},
            "declared-topics: 2 topic rows more or fewer than the cluster declared; "
            "declared-partitions: 2 partition rows",
        ),
        (GOOD, {"unreadable": {"/topics": "TIMEOUT"}}, "nothing to judge); /topics: TIMEOUT"),
    ],
)
def test_contradictions_are_named_and_counted(lake, table, parts, reason):
    assert reason in reason_of(lake, document(table, brokers="1:a 2:b 3:c", **parts))


@pytest.mark.parametrize(
    "path",
    [
        "/brokers/1/configs",
        "/brokers/1/rack",
        "/topics/orders/partitions/0/isr",
        "/topics/orders/partitions/0/replicas",
        "/topics/orders/partitions/0/leader",
        "/topics/orders/partitions",
        "/topics/orders/configs",
        "/cluster/quorum",
    ],
)
def test_what_could_not_be_read_is_no_contradiction(lake, path):
    assert reason_of(lake, document(GOOD, unreadable={path: "CLUSTER_AUTHORIZATION_FAILED"})) is None


def test_topics_that_the_auditor_may_not_see_reject_nothing(lake):
    for stated in (7, None):
        assert reason_of(lake, document(GOOD, brokers="1:a 2:b 3:c", cluster_hidden_partitions=stated)) is None


def test_offline_and_leaderless_partitions_are_no_contradiction(lake):
    assert reason_of(lake, document("topic leader replicas isr elr\n a - 1,2 - 1\n a - 1,2 1 -")) is None


@pytest.mark.parametrize(
    "partition",
    [
        "leader replicas isr elr adding\n a 3 1,2 1,2 - -",
        "leader replicas isr elr adding\n a 3 1,2,3 1,2 - -",
        "leader replicas isr elr adding\n a 1 1,2 1,3 - -",
        "leader replicas isr elr adding\n a 1 1,2 1 3 -",
        "leader replicas isr elr adding\n a 1 1,2 1,2 2 -",
        "leader replicas isr elr adding\n a 1 1,2 1,2 - 3",
        "leader replicas isr elr adding\n a 1 1,1 1 - -",
    ],
)
def test_a_partition_that_contradicts_itself_costs_no_snapshot(lake, partition):
    assert reason_of(lake, document(f"topic {partition}", brokers="1:a 2:b 3:c")) is None


def test_a_planned_cluster_without_topics_is_accepted(lake):
    assert reason_of(lake, document(brokers="1:a 2:b 3:c")) is None


def test_a_document_may_be_an_excerpt_but_of_a_live_topic_a_gap_is_unknown(lake):
    gap = document("topic partition replicas\n a 0 1,2\n a 7 1,2")
    assert reason_of(lake, gap) is None
    (attempt,) = staged(lake, gap, source="live")
    (verdict,) = gate.check(lake, [attempt])
    assert verdict.accepted
    assert lake.read_staged(attempt, TOPICS)["partitions_known"].to_pylist() == [False]


def test_a_truncated_file_is_named(lake):
    broken, whole = staged(lake, healthy(cluster="broken"), healthy(cluster="whole"))
    path = Path(broken.files["partitions"][0].removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:-40])
    first, second = gate.check(lake, [broken, whole])
    assert not first.accepted
    assert path.name in first.reason
    assert second.accepted


def test_no_snapshot_is_no_pass(lake):
    with pytest.raises(AuditError, match="no cluster could be read"):
        gate.check(lake, [])


def test_a_vanished_expectation_is_an_error():
    import great_expectations.expectations as gxe
    import pandas as pd

    def expectation(name, identity):
        return gxe.ExpectColumnValuesToBeBetween(column=name, min_value=0, max_value=0, meta={"id": identity})

    frame = pd.DataFrame({"a": [0, 1], "b": [0, 0]})
    result = gx.validate("t", frame, [expectation("a", "one"), expectation("b", "two")])
    assert (result.failed, result.checked) == ({"one": [1], "two": []}, {"one": 2, "two": 2})
    with pytest.raises(RuntimeError, match="ids that differ"):
        gx.validate("t", frame, [expectation("a", "one"), expectation("b", "one")])
    with pytest.raises(RuntimeError, match="no nulls"):
        gx.validate("t", frame.assign(a=[None, 1.0]), [expectation("a", "one")])
    with pytest.raises(RuntimeError, match="no_such_column"):
        gx.validate("t", frame, [expectation("no_such_column", "one")])


def test_no_expectation_is_an_error():
    import pandas as pd

    with pytest.raises(RuntimeError, match="need ids"):
        gx.validate("t", pd.DataFrame({"a": [1]}), [])


IDS = st.lists(st.integers(0, 4), max_size=4)
PARTITION = st.tuples(
    st.sampled_from("abc"),
    st.integers(0, 3),
    st.none() | st.integers(0, 4),
    st.none() | IDS,
    st.none() | IDS,
    st.none() | IDS,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PARTITION, max_size=12), st.integers(1, 5))
def test_columns_are_counted_like_rows(rows, batch_rows):
    """Oracle: the same questions asked of one partition at a time, in plain Python."""
    kinds = (pa.string(), pa.int32(), pa.int32(), *[pa.list_(pa.int32())] * 3)
    columns = list(zip(*rows, strict=True)) or [[]] * 6
    arrays = [pa.array(c, k) for c, k in zip(columns, kinds, strict=True)]
    table = pa.table(dict(zip(contradictions.COLUMNS, arrays, strict=True)))
    found = contradictions.scan(iter(table.to_batches(max_chunksize=batch_rows)))

    assert found.rows == len(rows)
    assert found.brokers == {b for r in rows for ids in ([r[2]] if r[2] is not None else [], *r[3:]) for b in ids or []}

    listed = pa.table(
        {
            "topic": pa.array(["a", "b"]),
            "declared_partitions": pa.array([2, None], pa.int32()),
            "partitions_known": pa.array([True, True]),
        }
    )
    ids = {p for t, p, *_ in rows if t == "a"}
    distinct = {(r[0], r[1]) for r in rows}
    assert contradictions.against_topics(found, listed, numbered=True) == {
        "duplicate_partitions": len(rows) - len(distinct),
        "unlisted_topics": int("c" in {t for t, _ in distinct}),
        "incomplete_topics": int(ids != {0, 1}),
    }


def test_negative_and_repeated_ids_are_values_like_others():
    lists = pa.array([[-1, 2], [2, 2]], pa.list_(pa.int32()))
    batch = pa.record_batch(
        [pa.array(["a", "a"]), pa.array([0, 1], pa.int32()), pa.array([-1, 3], pa.int32()), lists, lists, lists],
        names=contradictions.COLUMNS,
    )
    found = contradictions.scan(iter([batch]))
    assert found.brokers == {-1, 2, 3} and found.topics == {"a": (2, 2, 1)}


def test_the_gates_pages_stand_beside_those_of_the_cross_check(lake, tmp_path):
    hostile = "<script>alert(1)</script>"
    made = staged(lake, healthy(cluster="eu"), healthy(cluster=hostile, cluster_consistent=False))
    gate.check(lake, made)
    assert not (tmp_path / "data_docs").exists(), "pulses have no pages"
    run = ("audit-1", "2026-11-21T02:00:00Z")
    for _ in range(2):
        gate.check(lake, made, run, tmp_path)
        validation = gx.validate("topic_posture", *_one_topic(), run)
        write_data_docs(validation, [("eu", "orders")], run[1], tmp_path / "data_docs")
    site = tmp_path / "data_docs"
    index = (site / "index.html").read_text(encoding="utf-8")
    linked = re.findall(r'href="([^"]+)"', index)
    assert len(linked) == 4 and all((site / target).is_file() for target in linked)
    assert [index.index(title) for title in SUITES.values()] == sorted(index.index(title) for title in SUITES.values())
    pages = "".join((site / target).read_text(encoding="utf-8") for target in linked)
    assert hostile not in pages and "&lt;script&gt;alert" in pages
    assert all(f"{check.id}: {check.means}" in html.unescape(pages) for check in gate.CHECKS)


def _one_topic():
    import great_expectations.expectations as gxe
    import pandas as pd

    expectation = gxe.ExpectColumnValuesToBeBetween(column="a", min_value=0, max_value=0, meta={"id": "a"})
    return pd.DataFrame({"a": [1]}), [expectation]
