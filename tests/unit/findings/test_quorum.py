"""The quorum that remedies read, and what they don't do without one."""

from __future__ import annotations

import pytest

from durability.findings import quorum
from durability.findings.quorum import Quorum
from tests.support import cases
from tests.support.facts import Facts
from tests.support.topology import document

CASES = [case for case in cases.cases(["controller-quorum"]) if case.said.get("quorum") != "none"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_controller_leads_where_the_control_finds_the_majority_lost(case):
    (expected,) = case.said["expect"]
    problems = expected.get("observed", {}).get("problems", [])
    lost = "majority-lost" in (expected.get("category"), *problems)
    found = quorum.led(Facts(case.document), ["attempt"])
    assert (found.get(case.cluster) is False) is lost


VOTERS = [{"id": n, "rack": f"az{n}", "lag_ms": 0} for n in (1, 2, 3)]
GONE = {"lag_ms": None, "live": False}


@pytest.mark.parametrize(
    ("leader", "changed", "brokers", "expected"),
    [
        (1, {}, "1:a 2:b 3:c", Quorum(led=True, spare=True)),
        (1, {3: {"lag_ms": None}}, "1:a 2:b 3:c", Quorum(led=True, spare=False, missing=(3,))),
        (1, {}, "1:a 2:b 3:c!", Quorum(led=True, spare=False, missing=(3,))),
        (
            1,
            {2: GONE, 3: GONE},
            "1:a 2:b 3:c",
            Quorum(led=False, spare=False, missing=(2, 3)),
        ),  # what is said of a leader is old
        (None, {2: GONE, 3: GONE}, "1:a 2:b 3:c", Quorum(led=False, spare=False, missing=(2, 3))),
        (None, {}, "1:a 2:b 3:c", Quorum(led=False, spare=True)),
        (9, {}, "1:a 2:b 3:c", Quorum(led=None, spare=True)),  # it leaves the quorum, or answers contradict each other
    ],
)
def test_the_quorum_of_a_cluster(leader, changed, brokers, expected):
    voters = [voter | changed.get(voter["id"], {}) for voter in VOTERS]
    stated = {"leader": leader, "voters": voters, "observers": []}
    drawn = document("topic replicas\na 1,2", brokers=brokers, cluster="eu", quorum=stated)
    assert quorum.read(Facts(drawn), ["attempt"]) == {"eu": expected}


def test_without_a_snapshot_nothing_is_read():
    assert quorum.read(None, ()) == {}
