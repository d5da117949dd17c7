"""whatif.json, whatif.csv and the summary, from rows of `loss_outcomes`."""

import csv
import json
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability import schemas
from durability.lake.tables import LOSS_OUTCOMES
from durability.plan import lose
from durability.report import whatif
from tests.support.schemas import problems

KEPT = {"voters": 3, "left": 2, "needed": 2, "kept": True}
ROW = dict.fromkeys(LOSS_OUTCOMES.arrow.names) | {
    **{"cluster": "c", "tier": "critical", "internal": False, "before": "NONE", "now": "NONE", "structural": "NONE"},
    **dict.fromkeys(("at_risk", "deleted", "at_risk_structural", "data_worst", "availability_worst"), False),
    **{"stalls": False, "leader_lost": False, "quorum": KEPT, "leader_before": 3, "leader_after": 3},
}


def row(topic, partitions, **changed):
    return ROW | {"topic": topic, "partitions": partitions} | changed


ROWS = [
    row("safe", [0, 1, 2]),
    row("moved", [0], leader_before=1, leader_after=2, stalls=True, leader_lost=True, data_worst=True),
    row("short", [4, 7], now="NOT_ENOUGH_REPLICAS", structural="NOT_ENOUGH_REPLICAS", stalls=True),
    row(
        "gone", [0], now="LEADER_NOT_AVAILABLE", leader_after=None, at_risk=True, back_with=[1, 2], back_with_any=False
    ),
    row("__consumer_offsets", [3], now="LEADER_NOT_AVAILABLE", leader_after=None, back_with=[1], back_with_any=True),
    row("wiped", [0], deleted=True, at_risk=True, leader_after=5),
    row("before", [0], before="LEADER_NOT_AVAILABLE", now="LEADER_NOT_AVAILABLE"),
    row("=unsure", [0], now=None),
]


def written(tmp_path, rows, asked="broker:1,broker:2"):
    loss = lose.resolve(lose.parse(asked), [{"broker": n, "rack": "", "live": n != 2} for n in (1, 2, 3)], [])
    snapshot = SimpleNamespace(cluster="c", snapshot_id="s", captured_at="2026-11-21T02:00:00Z")
    plan = SimpleNamespace(run_id="r", result_id="r:1", judged=[snapshot])
    lake = SimpleNamespace(parts=lambda table, where: [pa.Table.from_pylist(rows, table.arrow)])
    files = whatif.write(lake, plan, loss, {"topics": 2, "hidden_partitions": None}, tmp_path)
    document = json.loads(files["whatif.json"].read_text())
    with files["whatif.csv"].open() as file:
        return document, list(csv.DictReader(file)), "\n".join(whatif.summary(document, files))


def test_partitions_and_topics_are_counted_by_class(tmp_path):
    document, _, summary = written(tmp_path, ROWS)
    assert document["views"]["now"] == {
        **{"lost": 1, "at_risk": 2, "offline": 2, "rejects": 2, "accepts": 5, "unknown": 1},
    }
    assert document["topics"]["now"]["rejects"] == 1 and document["views"]["worst"]["at_risk"] == 1
    assert document["already"] == {"offline": 1}
    assert (document["stalls"], document["acks_1_may_lose"], document["unknown"]["partitions"]) == (3, 1, 1)
    assert document["clients"]["consumer groups"]["offline"] == 1
    assert document["lose"] == {
        **{"asked": ["broker:1", "broker:2"], "brokers": [1, 2], "controllers": [], "down_already": [2]},
    }
    assert [entry["topic"] for entry in document["worst_topics"]][:3] == ["wiped", "gone", "__consumer_offsets"]
    assert "2 partitions of 2 topics: offline" in summary
    assert "Before the loss already: 1 offline." in summary
    assert "Not predicted: 2 topics whose partitions could not be read." in summary
    assert "Topics that the auditor may not see may be missing from the prediction." in summary
    assert "keeps its majority: 2 of 3 voters left, 2 needed" in summary


@pytest.mark.parametrize(
    "kept, answer, said",
    [
        (True, "NOT_ENOUGH_REPLICAS", "2 partitions reject acks=all writes"),
        (False, "REQUEST_TIMED_OUT", "2 partitions let acks=all writes time out"),
        (None, "NOT_ENOUGH_REPLICAS", "2 partitions reject acks=all writes, or let them time out"),
    ],
)
def test_a_write_that_times_out_is_not_called_rejected(tmp_path, kept, answer, said):
    """Without the controllers' majority no ISR shrinks. While the majority is unknown, so is the answer."""
    quorum = {"voters": 3, "left": 1, "needed": 2, "kept": kept}
    document, lines, summary = written(tmp_path, [row("short", [4, 7], now=answer, structural=answer, quorum=quorum)])
    assert f"in c: {said}." in summary
    known = {} if kept is None else {answer: 2}
    assert document["errors"] == dict.fromkeys(
        ("now", "structural"), {"NOT_ENOUGH_REPLICAS": 0, "REQUEST_TIMED_OUT": 0} | known
    )
    assert {line["error"] for line in lines} == {"" if kept is None else answer}
    assert problems("whatif", document) == []


def test_the_document_is_as_its_schema_says(tmp_path):
    document, _, _ = written(tmp_path, ROWS)
    assert problems("whatif", document) == []
    assert schemas.schema("whatif")["properties"].keys() == document.keys()
    shapes = {name: shape["properties"].keys() for name, shape in schemas.schema("whatif")["$defs"].items()}
    assert shapes["lost"] == document["lose"].keys() and shapes["unknown"] == document["unknown"].keys()


def test_the_page_escapes_and_loads_nothing(tmp_path):
    written(tmp_path, [row("<script>alert(1)</script>", [0], now="NOT_ENOUGH_REPLICAS")])
    page = (tmp_path / "whatif.html").read_text()
    assert "&lt;script&gt;" in page and "<script" not in page and "http://" not in page and "https://" not in page


def test_the_csv_has_a_line_for_each_partition_that_changes(tmp_path):
    _, lines, _ = written(tmp_path, ROWS)
    found = {(line["topic"], line["partition"]): line for line in lines}
    assert found.keys() == {
        *(("short", "4"), ("short", "7"), ("gone", "0"), ("__consumer_offsets", "3"), ("wiped", "0")),
        ("'=unsure", "0"),
    }
    gone = found["gone", "0"]
    assert (gone["after"], gone["error"], gone["data"]) == ("offline", "LEADER_NOT_AVAILABLE", "at-risk")
    assert gone["back_with"] == "one of 1, 2: the last to fail"
    assert (found["wiped", "0"]["data"], found["wiped", "0"]["leader_after"]) == ("lost", "5")


def test_a_partition_that_is_offline_has_no_leader_whatever_the_metadata_names(tmp_path):
    lost = {"quorum": KEPT | {"left": 1, "kept": False}, "now": "LEADER_NOT_AVAILABLE", "leader_after": 3}
    rows = [row("led", [0], **lost), row("down", [0], **lost, before="LEADER_NOT_AVAILABLE", at_risk=True)]
    found = {line["topic"]: (line["leader_before"], line["leader_after"]) for line in written(tmp_path, rows)[1]}
    assert found == {"led": ("3", ""), "down": ("", "")}


@pytest.mark.parametrize(
    "kept, said", [(False, "The controller quorum is lost (1 of 3 voters left, 2 needed)"), (None, "")]
)
def test_a_lost_quorum_is_said(tmp_path, kept, said):
    quorum = {"voters": 3, "left": 1, "needed": 2, "kept": kept}
    document, _, summary = written(tmp_path, [row("safe", [0], quorum=quorum)])
    assert document["quorum"]["kept"] is kept and said in summary
    assert "keeps its majority" not in summary
    assert ("Unknown: whether the controllers keep a majority." in summary) is (kept is None)
    assert ("At most 1 of 3 voters left, 2 needed." in summary) is (kept is None)


def test_what_is_unknown_of_data_is_not_taken_for_safe(tmp_path):
    unsure = row("unsure", [0], at_risk=None, deleted=None, data_worst=None, availability_worst=None)
    document, [line], _ = written(tmp_path, [unsure, row("safe", [0])])
    assert (line["topic"], line["after"], line["data"]) == ("unsure", "accepts", "unknown")
    assert document["views"]["worst"]["unknown"] == 1


def test_while_no_controller_leads_no_broker_is_fenced(tmp_path):
    quorum = {"voters": 3, "left": 1, "needed": 2, "kept": False}
    _, _, summary = written(tmp_path, [row("held", [0], quorum=quorum, now="REQUEST_TIMED_OUT", stalls=True)])
    assert "acks=all writes of 1 partition wait until a controller leads again." in summary
    assert "fenced" not in summary


def test_without_voters_there_is_no_quorum(tmp_path):
    quorum = {"voters": None, "left": None, "needed": None, "kept": True}
    document, lines, summary = written(tmp_path, [row("safe", [0], quorum=quorum)])
    assert document["quorum"] is None and lines == [] and "quorum" not in summary
