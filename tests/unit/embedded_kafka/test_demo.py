"""The list of the demo's mistakes is sound, and the demo says how to audit it."""

from __future__ import annotations

import json

import yaml

from durability.catalogue import CONTROLS
from durability.embedded_kafka import demo, seed
from tests import ROOT
from tests.support.planted import PLANTED

POLICIES = ROOT / "policies"


def test_mistakes_are_planted_for_controls_that_are_judged() -> None:
    planted = {p.control for p in PLANTED if p.companion is None}
    assert planted <= {name for name, control in CONTROLS.items() if not control.planned}
    assert len(planted) >= 20  # all but the one that is judged over time; later controls need no mistake here


def test_the_demo_says_how_to_audit_it_and_what_a_rack_is() -> None:
    said = demo.instructions("127.0.0.1:1", {1: 11, 2: 12, 3: 13, 4: 14, 6: 16, 101: 17}, make=True)
    assert "  az1: broker 1 is process 11, broker 4 is process 14" in said and "  az2: broker 2 is process 12" in said
    (command,) = [line.split() for line in said if "make audit" in line]
    given = dict(word.split("=") for word in command[2:])
    (program,) = [line.split() for line in said if "kafka-durability audit" in line]
    assert dict(zip(program[2::2], program[3::2], strict=True)) == {f"--{k.lower()}": v for k, v in given.items()}
    assert given["BOOTSTRAP"] == "127.0.0.1:1"
    assert all((POLICIES.parent / given[name]).is_file() for name in ("POLICY", "WAIVERS"))
    assert not any("make" in line for line in demo.instructions("127.0.0.1:1", {}, make=False))


def test_the_list_speaks_the_catalogues_language() -> None:
    topics = {topic.name for topic in seed.TOPICS}
    for planted in PLANTED:
        control = CONTROLS[planted.control]
        assert planted.resource_type in control.on, planted
        assert planted.category is None or planted.category in control.severities, planted
        if planted.resource_type == "topic":
            assert planted.resource in topics, planted
        if planted.outcome == "FAIL":
            by_configuration = planted.category == "at-min-isr" and planted.severity == "info"
            category = "at-min-isr/configuration" if by_configuration else planted.category
            # The worst problem weighs: no replicas span more racks than there are.
            category = "above-replica-racks" if category == "above-known-racks" else category
            assert planted.severity == CONTROLS[planted.control].severity_of(category), planted
        if planted.companion:
            assert planted.companion in {p.control for p in PLANTED if p.companion is None}, planted


def test_good_topics_are_no_part_of_any_mistake() -> None:
    mistaken = {p.resource for p in PLANTED if p.resource_type == "topic" and p.companion != "broker-rack"}
    assert mistaken.isdisjoint(topic.name for topic in seed.GOOD)


def test_the_demo_policy_is_the_default_plus_a_tier_a_selector_and_an_application() -> None:
    default = yaml.safe_load((POLICIES / "policy.yaml").read_text())
    demo_policy = yaml.safe_load((POLICIES / "demo" / "policy.yaml").read_text())
    assert demo_policy.pop("name") == "demo" and default.pop("name")
    assert demo_policy["tiers"].pop("regulated")["min_insync_racks"] == 5
    assert demo_policy["topics"].pop(0)["tier"] == "regulated"
    assert [line["match"] for line in demo_policy.pop("applications")] == [{"group": seed.STREAMS_GROUP}]
    assert demo_policy == default


def test_planted_can_be_written_down() -> None:
    assert json.loads(json.dumps([planted.__dict__ for planted in PLANTED]))
