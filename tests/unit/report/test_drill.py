"""Predicted rows of `loss_outcomes` against what was seen, and drill.json."""

import json

import pytest

from durability import schemas
from durability.report import drill as report
from durability.report.data import drill
from tests.support.schemas import problems

ROW = {"topic": "orders", "partitions": [0, 1], "before": "NONE", "now": "NONE", "leader_before": 1, "leader_after": 2}
SEEN = {("orders", n): {"leader": 2, "serves": "accepts", "error": None, "isr": [3, 2]} for n in (0, 1)}
PREDICTED = {
    **{"cluster": "eu", "snapshot_id": "s", "captured_at": "2026-11-21T02:00:00Z"},
    "lose": {"asked": ["broker:1"], "brokers": [1], "controllers": [], "down_already": []},
    "quorum": {"voters": 3, "left": 2, "needed": 2, "kept": True},
}
MINIATURE = {
    **{
        "kafka_version": "4.3.1",
        "elr": True,
        "placements": 2,
        "partitions": 70,
        "controllers": [{"id": 9, "rack": None}],
    },
    "brokers": [{"id": 1, "rack": "az1"}, {"id": 2, "rack": "az2"}],
    "left_out": [{"why": "replicas are unknown", "partitions": 4}],
    "not_rebuilt": ["one partition has live replicas out of sync"],
}
LEDGER = {
    **{"acknowledged": 6, "found": 4, "missing_as_predicted": 2, "unread": 0, "why_unread": None, "whole": True},
    "missing": [],
}


def row(**changed):
    return ROW | changed


def compared(rows, seen=SEEN, fields=drill.FIELDS, **options):
    return drill.compare(rows, seen, fields, **options)


def test_a_prediction_that_came_true_agrees():
    found = compared([row(isr_after=[2, 3])])
    assert (found.compared, found.agreed, found.agreement, found.full) == (2, 2, 1.0, True)
    assert found.fields == {name: {"compared": 2, "agreed": 2} for name in drill.FIELDS}
    assert found.differs == [] and not found.not_compared


@pytest.mark.parametrize(
    "changed, name, predicted, seen",
    [
        ({"leader_after": 3}, "leader", 3, 2),
        ({"now": "NOT_ENOUGH_REPLICAS"}, "serves", "rejects", "accepts"),
        ({"isr_after": [2]}, "isr", [2], [3, 2]),
        ({"now": "LEADER_NOT_AVAILABLE", "leader_after": None}, "leader", None, 2),
    ],
)
def test_a_wrong_prediction_is_a_difference(changed, name, predicted, seen):
    found = compared([row(**{"isr_after": [2, 3]} | changed)], fields=[name])
    assert (found.compared, found.agreed, found.agreement, found.full) == (2, 0, 0.0, False)
    assert found.differs[0] == {"topic": "orders", "partition": 0, "field": name, "predicted": predicted, "seen": seen}


def test_an_error_of_the_same_class_is_still_another_error():
    timed_out = {place: facts | {"serves": "rejects", "error": "REQUEST_TIMED_OUT"} for place, facts in SEEN.items()}
    found = compared([row(now="NOT_ENOUGH_REPLICAS")], timed_out, ["serves", "error"])
    assert {entry["field"] for entry in found.differs} == {"error"} and found.agreed == 0


def test_what_is_unknown_neither_agrees_nor_differs():
    found = compared([row(now=None, leader_after=None)])
    assert (found.compared, found.agreement, found.full) == (0, None, False)
    assert found.not_compared[("leader", drill.UNPREDICTED)] == 2 and found.differs == []


def test_what_was_not_seen_is_counted_with_its_reason():
    rows = [row(partitions=[0, 7])]
    seen = {("orders", 0): {"serves": "accepts"}, ("fresh", 0): {"leader": 1}}
    found = compared(rows, seen, ["leader", "serves"], unseen={"leader": "no quorum"})
    assert (found.compared, found.agreed) == (1, 1)
    assert found.not_compared == {("leader", "no quorum"): 1, (None, drill.NOT_READ_AGAIN): 1, (None, drill.NEW): 1}


def test_one_difference_among_many_is_not_rounded_away():
    rows = [row(partitions=list(range(100_000)))]
    seen = {("orders", n): {"leader": 2 if n else 1} for n in range(100_000)}
    assert compared(rows, seen, ["leader"]).agreement == 0.9999


def test_differences_are_all_counted_and_not_all_listed():
    many = range(drill.LISTED + 5)
    found = compared([row(partitions=list(many))], {("orders", n): {"leader": 1} for n in many}, ["leader"])
    assert len(found.differs) == drill.LISTED and found.compared - found.agreed == drill.LISTED + 5


def test_a_snapshot_shows_what_holds_before_a_loss():
    rows = [row(partitions=[3]), row(topic="down", partitions=[0], before="LEADER_NOT_AVAILABLE", leader_before=None)]
    rows.append(row(topic="unread", partitions=[0], before=None, leader_before=None))
    assert dict(drill.as_they_are(rows)) == {
        ("orders", 3): {"leader": 1, "serves": "accepts"},
        ("down", 0): {"leader": None, "serves": "offline"},
        ("unread", 0): {},
    }


def of(rows, **options):
    return report.document(PREDICTED, "2026-11-21T02:09:00Z", compared(rows), **options)


@pytest.mark.parametrize("options", [{}, {"miniature": MINIATURE, "ledger": LEDGER}])
def test_the_document_is_as_its_schema_says(tmp_path, options):
    made = of([row(leader_after=3), row(topic="unsure", now=None)], **options)
    written = json.loads(report.write(made, tmp_path).read_text())
    assert problems("drill", written) == [] and written == made
    schema = schemas.schema("drill")
    assert schema["properties"].keys() == written.keys()
    if options:
        shapes = {name: shape["properties"].keys() for name, shape in schema["$defs"].items()}
        assert shapes["miniature"] == MINIATURE.keys() and shapes["ledger"] == LEDGER.keys()


def test_the_summary_names_the_differences_and_the_gaps(tmp_path):
    made = of([row(leader_after=3), row(topic="unsure", now=None)], miniature=MINIATURE, ledger=LEDGER)
    said = "\n".join(report.summary(made, tmp_path / "drill.json"))
    assert "Without broker:1, in eu: 0 of 2 partitions agree with the prediction (0 %)." in said
    assert "orders-0: leader predicted 3, seen 2" in said
    assert "Ledger: 4 of 6 acknowledged records are there afterwards; 2 were deleted as predicted." in said
    assert "Left out: 4 partitions: replicas are unknown." in said
    assert "Not rebuilt: one partition has live replicas out of sync." in said


def test_only_full_agreement_with_a_whole_ledger_holds():
    assert report.holds(of([row()])) and report.holds(of([row()], ledger=LEDGER))
    assert not report.holds(of([row(leader_after=3)]))
    assert not report.holds(of([row()], ledger=LEDGER | {"whole": False}))
    assert not report.holds(of([]))
