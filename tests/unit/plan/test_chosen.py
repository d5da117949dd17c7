"""What a plan of change is asked for: names that fit nothing are refused, with the nearest one."""

from __future__ import annotations

import pytest

from durability.cli.change import request
from durability.cli.options import Given
from durability.errors import Refused
from durability.plan.chosen import Chosen, check_topic, targeted


def finding(id, control="replication-factor", resource="orders", kind="topic"):
    return {"id": id, "control": control, "resource": resource, "resource_type": kind}


FOUND = [
    finding("aaaa1"),
    finding("bbbb2", "rack-loss"),
    finding("cccc3", resource="pay-in"),
    finding("dddd4", "broker-rack", "3", "broker"),
]


@pytest.mark.parametrize(
    ("chosen", "ids"),
    [
        (Chosen(), "aaaa1 bbbb2 cccc3 dddd4"),
        (Chosen(findings=("cccc3", "aaaa1")), "aaaa1 cccc3"),
        (Chosen(controls=("rack-loss", "broker-rack")), "bbbb2 dddd4"),
        (Chosen(topic="pay-.*"), "cccc3"),
        (Chosen(topic=".*"), "aaaa1 bbbb2 cccc3"),
        (Chosen(topic="orders", controls=("rack-loss",)), "bbbb2"),
    ],
)
def test_findings_are_chosen_by_id_control_and_topic(chosen, ids):
    assert [found["id"] for found in targeted(chosen, FOUND)] == ids.split()


def asked(**values):
    return request(Given(values), None)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"control": "replication-facto"}, "did you mean replication-factor"),
        ({"topic": "pay-("}, "missing )"),
        ({"avoid": "brokr:3"}, "did you mean broker"),
        ({"avoid": "broker:x"}, "expected a broker's id"),
        ({"batch": "0"}, "--batch 0: expected a number from 1"),
        ({"batch": "many"}, "expected a number"),
        ({"batch_bytes": "5XB"}, "for instance 500GB"),
        ({"batch_bytes": "0"}, "for instance 500GB"),
        ({"margin_disk": "101"}, "from 0 to 100"),
    ],
)
def test_an_option_that_means_nothing_is_refused(values, says):
    with pytest.raises(Refused) as refused:
        asked(**values)
    assert says in str(refused.value)


def test_options_have_units_and_lists():
    made = asked(
        batch="10", batch_bytes="2 gb", margin_disk="5", findings="a, b", avoid="broker:3,rack:az1", topic="x.*"
    )
    assert (made.limits.partitions, made.limits.bytes, made.margin_disk) == (10, 2 * 10**9, 0.05)
    assert made.chosen.findings == ("a", "b") and [str(item) for item in made.chosen.avoid] == ["broker:3", "rack:az1"]
    standard = asked()
    assert (standard.limits.partitions, standard.limits.bytes, standard.margin_disk) == (200, 500 * 10**9, 0.2)


def test_names_that_the_cluster_lacks_are_refused_with_the_nearest():
    with pytest.raises(Refused, match="aaaa2: the cluster has no such finding; did you mean aaaa1"):
        targeted(Chosen(findings=("aaaa2",)), FOUND)
    with pytest.raises(Refused, match="isn't open"):
        targeted(Chosen(findings=("eeee5",)), FOUND, ["eeee5"])
    with pytest.raises(Refused, match="order: matches no topic of the cluster; did you mean orders"):
        check_topic(Chosen(topic="order"), ["orders", "pay-in"])
