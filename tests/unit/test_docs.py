"""What the documentation shows works as it stands there."""

from __future__ import annotations

import json
import re

import yaml

from durability.catalogue import CONTROLS
from durability.topology import kinds, validate
from tests import ROOT
from tests.support.policy import policy

DOCS = ROOT / "docs"


def test_the_topology_example_is_a_topology_document():
    text = (DOCS / "topology.md").read_text()
    document = json.loads(re.search(r"```json\n(.*?)```", text, re.DOTALL)[1])
    assert validate(document, "docs/topology.md").cluster == "eu-payments"
    example = json.loads((DOCS / "examples" / "eu-payments.json").read_text())
    (group,) = validate(example, "eu-payments.json").document["streams"]
    assert (group["group"], group["stateful_tasks"]) == ("payments-ledger", ["0_0", "0_1"])
    assert {name: value for name, value in example.items() if name != "streams"} == document


def test_the_topology_table_has_every_member_that_must_be_there():
    told = set(re.findall(r"\w+", (DOCS / "topology.md").read_text()))
    objects = (kinds.ROOT, kinds.CLUSTER, kinds.QUORUM, kinds.VOTER, kinds.BROKER, kinds.TOPIC, kinds.PARTITION)
    required = {name for described in objects for name in described.required}
    assert required <= told


def test_the_row_on_ids_names_each_control_whose_categories_have_ids_of_their_own():
    (row,) = re.findall(r"^\| `id` \| (.*) \|$", (DOCS / "findings.md").read_text(), re.MULTILINE)
    named = {name for name in CONTROLS if re.search(rf"(?<![\w-]){name}(?![\w-])", row)}
    assert named == {control.id for control in CONTROLS.values() if control.per_category}


def test_the_policies_that_the_page_on_policies_shows_can_be_loaded():
    blocks = re.findall(r"```yaml\n(.*?)```", (DOCS / "policy.md").read_text(), re.DOTALL)
    shown = [yaml.safe_load(block) for block in blocks if "waivers" not in block]
    assert len(shown) == 8
    for part in shown:
        tiers = part.get("tiers") or {line["tier"]: {} for line in part.get("topics", [{"tier": "any"}])}
        whole = {"topics": [{"tier": next(iter(tiers))}]} | part | {"tiers": tiers}
        assert policy(**{key: value for key, value in whole.items() if key != "format"}).tiers.keys() == tiers.keys()


def test_the_readme_counts_no_controls_because_a_new_control_would_change_the_number():
    text = (ROOT / "README.md").read_text()
    assert not re.search(
        r"\b(\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty)\s+controls\b", text
    )
