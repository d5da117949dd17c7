"""The control catalogue, the page made of it, and the default policy."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.catalogue import SCALAR_CONTROLS, SEVERITIES
from durability.catalogue.page import page
from durability.findings import words
from durability.policy import CONTROLS, PROVIDERS, load_clusters, load_policy, load_waivers, match_column, matches
from durability.policy.resolve import resolve
from durability.remedies import PLANNERS

ROOT = Path(__file__).parents[1]
RESOURCE_TYPES = {"topic", "broker", "cluster", "tier", "application", "waiver"}
# The table "Controls" of the design.
IDS = (
    "replication-factor min-insync-replicas min-isr-within-replication-factor write-headroom "
    "unclean-leader-election replica-rack-spread isr-rack-spread min-insync-racks-valid "
    "acked-durability partition-health at-min-isr-over-time broker-rack broker-defaults "
    "controller-quorum eligible-leader-replicas log-dirs policy-feasible broker-loss rack-loss "
    "reassignment-leftovers standby-replicas standby-spread waiver-expired"
)


def test_the_catalogue_has_every_control():
    assert sorted(CONTROLS) == sorted(IDS.split())


@pytest.mark.parametrize("control", CONTROLS.values(), ids=list(CONTROLS))
def test_a_control_is_complete(control):
    assert control.severity in SEVERITIES
    assert set(control.severities.values()) <= set(SEVERITIES)
    assert set(control.on) <= RESOURCE_TYPES
    assert all([control.title, control.means, control.why, control.source, control.remediation])
    assert set(control.provider_duty) <= set(PROVIDERS) - {"self", "other"}
    assert (control.scalar is None) != (control.not_cross_checked is None)


def test_the_scalar_controls_have_an_order():
    assert set(SCALAR_CONTROLS.values()) == {"<=", ">="}


@pytest.mark.parametrize("control", [c for c in CONTROLS.values() if not c.planned], ids=str)
def test_a_control_has_words_for_a_failure(control):
    assert any(key.partition("/")[0] == "FAIL" for key in control.messages)
    assert {k for k in control.messages if k.startswith("FAIL")} >= {
        k for k in control.remedies if k.startswith("FAIL/")
    }
    for text in (*control.messages.values(), *control.remedies.values()):
        assert text["planner"] in PLANNERS if isinstance(text, dict) else words.ENVIRONMENT.parse(text)


def test_the_page_is_current():
    assert (ROOT / "docs" / "controls.md").read_text(encoding="utf-8") == page()


@pytest.fixture(scope="module")
def policy():
    return load_policy(ROOT / "policies" / "policy.yaml")


@pytest.mark.parametrize(
    ("topic", "tier"),
    [
        ("__consumer_offsets", "critical"),
        ("__remote_log_metadata", "critical"),
        ("_schemas", "critical"),
        ("_schemas-eu", "critical"),
        ("_confluent-command", "critical"),
        ("connect-configs", "critical"),
        ("prod-connect-offsets", "critical"),
        ("wordcount-KSTREAM-AGGREGATE-STATE-STORE-0000000003-changelog", "critical"),
        ("wordcount-counts-repartition", "critical"),
        ("mm2-offset-syncs.backup.internal", "critical"),
        ("primary.checkpoints.internal", "critical"),
        ("heartbeats", "critical"),
        ("primary.heartbeats", "critical"),
        ("scratch-1", "scratch"),
        ("tmp.load", "scratch"),
        ("testing", "standard"),
        ("orders", "standard"),
        ("connected-cars", "standard"),
        ("customer-heartbeats", "standard"),
        ("-changelog", "standard"),
    ],
)
def test_the_default_policy_knows_the_families_of_internal_topics(policy, topic, tier):
    assert policy.tier_of("any", topic, topic == "__consumer_offsets") == tier


def test_the_default_files_load(policy):
    assert policy.last_tier == "standard"
    assert load_waivers(ROOT / "policies" / "waivers.yaml") == []
    assert load_clusters(ROOT / "policies" / "clusters.yaml") == []


def test_the_examples_in_the_default_files_load(tmp_path):
    for name, load, key in (("waivers.yaml", load_waivers, "waivers"), ("clusters.yaml", load_clusters, "clusters")):
        lines = (ROOT / "policies" / name).read_text().splitlines()
        example = lines[lines.index(f"# {key}:") :]
        text = next(line for line in lines if line.startswith("format:")) + "\n"
        (tmp_path / name).write_text(text + "\n".join(line.removeprefix("# ").removeprefix("#") for line in example))
        assert load(tmp_path / name)


NAMES = st.text(st.sampled_from("ab-._\nä"), max_size=6)
EXPRESSIONS = st.sampled_from(["a.*", ".*", "(a|b)+", "[^a]*", "a|ab", "", "^a$", "(?i)A.*", "ä?.", r"a\.b", "a{2,3}"])


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, st.lists(NAMES, max_size=5))
def test_a_column_is_matched_like_its_values(expression, names):
    assert match_column(expression, pa.array(names, pa.string())).to_pylist() == [matches(expression, n) for n in names]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, st.sampled_from([True, False, None])), max_size=8))
def test_topics_are_resolved_like_one_topic(tmp_path_factory, rows):
    text = """\
format: durability-policy/1
tiers: {a: {replication_factor: 1}, b: {replication_factor: 2}, c: {}}
topics:
  - {match: {internal: true, cluster: 'a.*'}, tier: a}
  - {match: {internal: false, topic: '[ab].*'}, tier: b}
  - {match: {team: 'x.*'}, tier: c}
"""
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(text)
    policy = load_policy(path)
    teams = {"a": "xy", "b": "z"}
    columns = list(zip(*rows, strict=True)) or [[], [], []]
    kinds = (pa.string(), pa.string(), pa.bool_())
    table = pa.table(
        {n: pa.array(c, k) for n, c, k in zip(("cluster", "topic", "internal"), columns, kinds, strict=True)}
    )
    assert resolve(policy, table, teams).to_pylist() == [policy.tier_of(c, t, i, teams.get(c)) for c, t, i in rows]


def test_a_hundred_thousand_topics_are_resolved(policy):
    count = 100_000
    table = pa.table(
        {
            "cluster": pa.array([f"c{i % 100}" for i in range(count)]),
            "topic": pa.array([f"team-{i % 7}.topic-{i}" for i in range(count)]),
            "internal": pa.array([False] * count),
        }
    )
    assert set(resolve(policy, table).to_pylist()) == {"standard"}
