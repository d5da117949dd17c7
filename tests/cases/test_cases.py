"""Every control does what its cases say (tests/cases): all of them are one fleet, judged in one job.

They are judged twice: as small clusters, and as large ones, whose equal partitions and topics are evaluated once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from durability.catalogue import CONTROLS
from durability.findings import words
from durability.lake import partition_groups
from durability.plan import Plan
from tests.support import cases
from tests.support.judge import Judge

CASES = cases.cases()
FILES = cases.files()
WORDS = [(control, said) for control, content in FILES.items() for said in content.get("words", ())]


@pytest.fixture(scope="module", params=["small", "large"])
def found(spark, request) -> Iterator[list[dict]]:
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "large":
            patch.setattr(partition_groups, "FROM", 0)
            patch.setattr(Plan, "small", property(lambda plan: False))
        earlier = [document for case in CASES for document in case.earlier()]
        yield Judge(spark).run(
            [case.document for case in CASES],
            cases.policy(CASES),
            cases.waivers(CASES),
            earlier=earlier,
            inventory=cases.inventory(CASES),
        )


@pytest.mark.parametrize("case", CASES, ids=str)
def test_case(found, case):
    assert not cases.mismatches(case, found)


@pytest.mark.parametrize("control", [c.id for c in CONTROLS.values() if not c.planned])
def test_a_control_has_a_case_that_fails_and_one_that_does_not(control):
    assert control in FILES, f"tests/cases/{control}.yaml is missing"
    outcomes = {expected["outcome"] for case in FILES[control]["cases"] for expected in case["expect"]}
    assert "FAIL" in outcomes and outcomes - {"FAIL"}


def test_every_file_is_of_a_control():
    assert set(FILES) <= set(CONTROLS)


@pytest.mark.parametrize("control, said", WORDS, ids=[f"{c}: {said['message'][:40]}" for c, said in WORDS])
def test_words(control, said):
    finding = cases.by_hand(control, {k: v for k, v in said.items() if k not in ("message", "remediation")})
    assert words.message(finding) == said["message"]
    if "remediation" in said:
        assert words.remediation(finding) == said["remediation"]
