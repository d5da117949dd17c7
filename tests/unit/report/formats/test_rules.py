"""The shipped alerting rules ask for metrics, labels and values that an audit exports."""

from __future__ import annotations

import re

import promql_parser as promql
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from durability.report.data.objectives import PERIODS, Minutes, Objective, Objectives
from durability.report.formats.metrics import PREFIX
from tests import ROOT
from tests.support.report_cases import report
from tests.unit.report.formats.test_junit import ROWS

GROUPS = yaml.safe_load((ROOT / "deploy" / "prometheus-rules.yaml").read_text())["groups"]
RULES = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
# A metric, and the labels that it is selected by.
SELECTOR = re.compile(rf"({PREFIX}_\w+)(?:{{([^}}]*)}})?")
MATCHER = re.compile(r'(\w+)\s*(?:=~|!~|!=|=)\s*"([^"]*)"')


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> dict[str, dict[str, set[str]]]:
    """By metric, the values of each label."""
    folder = tmp_path_factory.mktemp("report")
    minutes = dict.fromkeys(PERIODS, Minutes(2.0, 0.0, 100.0))
    objectives = Objectives([Objective("gold", "writes", "broker", 99.0, minutes)])
    report(ROWS, folder, counters=[{"partitions": 12, "offline": 1}], objectives=objectives)
    found: dict[str, dict[str, set[str]]] = {}
    for family in text_string_to_metric_families((folder / "metrics.prom").read_text()):
        for sample in family.samples:
            labels = found.setdefault(sample.name, {})
            for name, value in sample.labels.items():
                labels.setdefault(name, set()).add(value)
    return found


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_selects_what_is_exported(rule, exported):
    selectors = SELECTOR.findall(rule["expr"])
    assert selectors
    labels = set()
    for metric, matchers in selectors:
        assert metric in exported
        labels |= set(exported[metric])
        for label, values in MATCHER.findall(matchers):
            assert set(values.split("|")) <= exported[metric][label], "a value that is never exported never fires"
    used = {name.strip() for by in re.findall(r"(?:by|on) \(([^)]*)\)", rule["expr"]) for name in by.split(",")}
    used |= set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
    assert used <= labels
    assert rule["labels"]["severity"] in ("warning", "info"), "what a night finds never pages"


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_is_promql(rule):
    assert promql.parse(rule["expr"])
    assert "for" not in rule or promql.parse_duration(rule["for"])
