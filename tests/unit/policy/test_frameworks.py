"""frameworks.yaml: what is refused, and what the shipped file states."""

from __future__ import annotations

import re

import pytest
import yaml

from durability import resources
from durability.errors import BadInput, Refused
from durability.policy import load_frameworks
from durability.policy.frameworks import named
from tests import ROOT
from tests.support.schemas import agreeing

SHIPPED = resources.shipped("policies", "frameworks.yaml")
TEXT = """\
format: durability-frameworks/1
frameworks:
  - id: soc2
    title: SOC 2
    requirements:
      - id: A1.2
        title: Availability
        controls: [broker-loss, rack-loss]
        strength: direct
        shows: Losses that break nothing.
        not_shown: Backups.
"""


def load(tmp_path, text: str):
    file = tmp_path / "frameworks.yaml"
    file.write_text(text, encoding="utf-8")
    return agreeing(load_frameworks, file)


@pytest.mark.parametrize(
    ("change", "where", "said"),
    [
        (("rack-loss", "rack-los"), "line 8", r"controls\[1\]: .rack-los. is not one of .* did you mean rack-loss\?"),
        (("rack-loss", "broker-loss"), "line 8", "broker-loss. is there twice, first in line 8"),
        (("direct", "strong"), "line 9", "strength: .strong. is not one of direct, supporting"),
        (("id: soc2", "id: SOC 2"), "line 3", r"frameworks\[0\].id: expected a short name such as soc2"),
        (("        not_shown: Backups.\n", ""), "line 6", "`not_shown` is missing"),
        (("    title: SOC 2\n", "    title: SOC 2\n    complies: true\n"), "line 5", 'unknown key "complies"'),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path, change, where, said):
    with pytest.raises(BadInput, match=said) as refused:
        load(tmp_path, TEXT.replace(*change))
    assert str(refused.value).startswith(f"{tmp_path / 'frameworks.yaml'}, {where}: ")


def test_an_identity_twice_is_refused(tmp_path):
    framework, requirement = TEXT.split("frameworks:\n")[1], TEXT.split("requirements:\n")[1]
    with pytest.raises(BadInput, match=r'frameworks\[1\]\.id: framework "soc2" is there twice, first in line 3'):
        load(tmp_path, TEXT + framework)
    with pytest.raises(BadInput, match=r'requirements\[1\]\.id: requirement "A1.2" is there twice, first in line 6'):
        load(tmp_path, TEXT + requirement)


def test_a_framework_knows_its_controls(tmp_path):
    (framework,) = load(tmp_path, TEXT)
    assert framework.controls == {"broker-loss", "rack-loss"}
    assert [requirement.id for requirement in framework.supported_by("rack-loss")] == ["A1.2"]
    assert framework.supported_by("log-dirs") == []
    assert named([framework], "soc2") is framework
    with pytest.raises(Refused, match=r'there is no framework "soc1"; did you mean soc2\? \(known: soc2\)'):
        named([framework], "soc1")


def test_the_shipped_file_leaves_out_what_replicas_cant_show():
    found = {framework.id: {r.id for r in framework.requirements} for framework in load_frameworks(SHIPPED)}
    assert found.keys() == {"soc2", "iso27001", "nist800-53", "dora"}
    # Incidents, backups, and the time to failure of components.
    assert not found["soc2"] & {"CC7.3", "CC7.4", "CC7.5"}
    assert "A.8.13" not in found["iso27001"]
    assert not found["nist800-53"] & {"CP-9", "SI-13"}
    assert not {r for r in found["dora"] if re.match(r"12\([1-3]\)", r)}


def test_the_shipped_file_claims_no_compliance_and_is_plain():
    for framework in yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))["frameworks"]:
        for requirement in framework["requirements"]:
            for text in (requirement["shows"], requirement["not_shown"]):
                assert not re.search(r"\bcompl(y|ies|iant|iance)\b", text, re.IGNORECASE)
                assert all(len(sentence.split()) <= 25 for sentence in re.split(r"(?<=\.) ", text)), text


def test_the_file_that_its_page_shows_can_be_loaded(tmp_path):
    (shown,) = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8"), re.DOTALL
    )
    (framework,) = load(tmp_path, shown)
    assert framework.id == "iso27001"
