"""A plan's folder as steps to apply."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from durability.apply.plan_files import load
from durability.errors import Refused
from durability.remedies.change.model import MIN_ISR
from durability.remedies.change.proof import Proof
from durability.report import change as report
from tests.unit.remedies.test_change import FACTS
from tests.unit.report.test_change import made


def written(tmp_path, of=None, cluster_id="kafka"):
    of = of or made()
    place = report.write(replace(of, head={**of.head, "kafka_cluster_id": cluster_id}), FACTS, tmp_path)
    return place, report.read(place)


def test_a_folder_gives_the_steps_that_it_was_written_from(tmp_path):
    of = made()
    plan = load(*written(tmp_path, of))
    assert (plan.id, plan.cluster, plan.cluster_id, plan.inherited) == ("p1", "eu payments", "kafka", 1)
    moves = [move for step in of.change.steps for move in step.moves]
    assert moves and plan.steps == tuple(
        replace(step, moves=tuple(replace(move, bytes=None) for move in step.moves)) for step in of.change.steps
    )
    assert {step.kind for step in plan.steps} >= {"lower-min-isr", "reassign", "raise-min-isr"}
    assert plan.before == {("t", MIN_ISR): "2"} and plan.topics == ["t", "u"]


@pytest.mark.parametrize(
    "brokers, expected",
    [
        ([{"configs": {MIN_ISR: "2"}}, {"configs": {}}], 2),
        ([{"configs": None}, {"configs": {MIN_ISR: "2"}}], None),
        ([{"configs": None, "live": False}, {"configs": {MIN_ISR: "2"}}], 2),
        ([{"configs": {"x": "1"}, "config_sources": {"x": "default"}}], None),
    ],
)
def test_the_inherited_minimum_is_the_highest_of_the_brokers_or_unknown(tmp_path, brokers, expected):
    place, content = written(tmp_path)
    planned = json.loads((place / "planned.json").read_text())
    planned["brokers"] = [{"id": n, **broker} for n, broker in enumerate(brokers)]
    (place / "planned.json").write_text(json.dumps(planned))
    assert load(place, content).inherited == expected


def test_a_plan_that_may_not_be_applied_is_refused(tmp_path):
    with pytest.raises(Refused, match="it isn't offered"):
        load(*written(tmp_path, made(proven=Proof(offered=False))))
    with pytest.raises(Refused, match="it has no Kafka cluster id"):
        load(*written(tmp_path, cluster_id=None))
    place, content = written(tmp_path)
    wide = [{"topic": None, "name": MIN_ISR, "was": "2", "value": "1"}]
    with pytest.raises(Refused, match="wipes every ELR"):
        load(place, content | {"steps": [content["steps"][0] | {"settings": wide}]})
    with pytest.raises(Refused, match="can't be read"):
        load(place, content | {"steps": [content["steps"][0] | {"settings": [wide[0] | {"name": "x"}]}]})
