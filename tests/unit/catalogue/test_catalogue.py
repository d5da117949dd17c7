"""The control catalogue, the page made of it, and the default policy."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.catalogue import SCALAR_CONTROLS, SEVERITIES
from durability.catalogue import settings as asked
from durability.catalogue.model import DISKLESS, read
from durability.catalogue.page import page, with_table, write
from durability.catalogue.settings import declared
from durability.collect import configs
from durability.errors import BadInput
from durability.findings import words
from durability.policy import CONTROLS, PROVIDERS, load_clusters, load_waivers, match_column, matches
from durability.policy.formats import required
from durability.policy.resolve import resolve
from durability.policy.yamlfile import read as read_yaml
from durability.remedies import PLANNERS
from durability.shapes import Constant, Member, Object
from spark_jobs.frames import facts
from tests import ROOT
from tests.support.policy import policy, shipped
from tests.support.tiers import candidates, tier_of

RESOURCE_TYPES = {"topic", "broker", "cluster", "tier", "application", "waiver", "inventory"}
KNOWN = {
    facts.MIN_ISR,
    facts.MIN_RACKS,
    facts.UNCLEAN,
    facts.DEFAULT_RF,
    facts.AUTO_CREATE,
    "broker.rack",
    *facts.INTERNAL,
}
"""Settings that facts have columns for."""
HELPERS = {"__init__", "base", "elr_guard"}


def test_a_control_that_is_judged_is_a_rule_of_its_name():
    rules = {path.stem for path in (ROOT / "spark_jobs" / "controls").glob("*.py")} - HELPERS
    assert rules == {name.replace("-", "_") for name, control in CONTROLS.items() if not control.planned}
    assert len(rules) >= 21


@pytest.mark.parametrize("control", CONTROLS.values(), ids=list(CONTROLS))
def test_a_control_is_complete(control):
    assert control.severity in SEVERITIES
    assert set(control.severities.values()) <= set(SEVERITIES)
    assert set(control.on) <= RESOURCE_TYPES
    assert all([control.title, control.means, control.why, control.fails_when, control.source, control.remediation])
    assert control.carried or set(control.reads) <= KNOWN, (
        "name Kafka's default, as in `reads: {retention.ms: 604800000}`"
    )
    assert set(control.provider_duty) <= {*PROVIDERS, DISKLESS} - {"self", "other"}
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


def test_a_control_without_one_of_its_files_is_named(tmp_path):
    needed = r"controls need these files: .*spark_jobs/controls/log_dirs.py, .*tests/cases/log-dirs.yaml"
    with pytest.raises(ValueError, match=needed):
        write(tmp_path)


def test_on_without_quotes_is_named(tmp_path):
    (tmp_path / "odd.yaml").write_text("on: [topic]\ntitle: x\n")
    with pytest.raises(ValueError, match=r'odd\.yaml: write "on" in quotes'):
        read(tmp_path)


def test_the_pages_are_current():
    assert (ROOT / "docs" / "controls.md").read_text(encoding="utf-8") == page(), "make catalogue"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme == with_table(readme), "make catalogue"


def made_up(tmp_path, stated: str):
    """A control whose file states this instead of what log-dirs reads."""
    text = (ROOT / "durability/catalogue/log-dirs.yaml").read_text()
    (tmp_path / "made-up.yaml").write_text(text.replace("reads: []", stated))
    return read(tmp_path)["made-up"]


def test_a_setting_is_declared_with_kafkas_default(tmp_path):
    stated = "reads: {log.flush.interval.messages: 9223372036854775807, auto.leader.rebalance.enable: true, x: null}"
    control = made_up(tmp_path, stated)
    assert control.reads == ("log.flush.interval.messages", "auto.leader.rebalance.enable", "x")
    assert list(control.carried.values()) == ["9223372036854775807", "true", None]
    assert declared([control, control]) == control.carried
    with pytest.raises(ValueError, match=r"made-up: the default of x is None in another control, 1 here"):
        declared([control, replace(control, carried={"x": "1"})])


def test_the_collector_asks_for_what_is_declared(monkeypatch):
    reads = replace(CONTROLS["log-dirs"], id="x", on=("topic",), reads=("retention.ms",), carried={"retention.ms": "1"})
    monkeypatch.setitem(CONTROLS, "x", reads)
    monkeypatch.setattr(asked, "of_topics", lambda: {"retention.ms": "1"})
    monkeypatch.setattr(asked, "of_brokers", dict)
    assert "retention.ms" in asked.read_of_topics() and "retention.ms" not in asked.read_of_brokers()
    assert {"log.retention.ms", "log.retention.minutes", "log.retention.hours"} <= set(asked.read_of_brokers())
    assert "log.retention.hours" in asked.that_count_for_partitions()
    monkeypatch.undo()
    assert set(asked.read_of_topics()) <= set(configs.TOPIC_KEYS)
    assert set(asked.read_of_brokers()) <= set(configs.BROKER_KEYS)


@pytest.mark.parametrize(
    "stated, value, refused",
    [
        ("{type: number, min: 0, max: 1}", "0.5", None),
        ("{type: number, min: 0, max: 1}", "1", None),
        ("{type: number, min: 0, max: 1}", "1.5", "expected a number from 0 to 1"),
        ("{type: number}", "many", "expected a number"),
        ("{type: number}", ".nan", "expected a number"),
        ("{type: integer, min: 1}", "604800000000", None),
        ("{type: integer, min: 1}", "0", "from 1 to 9223372036854775807"),
        ("{type: integer, min: 1, max: 32767}", "32768", "from 1 to 32767"),
        ("{type: integer, min: 1, relative: rf-N}", "1", None),
        (
            "{type: integer, min: 1, relative: rf-N}",
            "rf",
            "or rf-N \\(the replication factor minus N, such as rf-1\\), found",
        ),
        ("{type: integer, min: 1, relative: rf-N}", "0", "from 1 to"),
        ("{type: integer, min: 1, range: true}", "{min: 0}", "made_up.min: expected a whole number from 1"),
        ("{type: integer, min: 1, range: true}", "{}", "at least one of min, max is needed"),
    ],
)
def test_what_a_tier_can_require_of_a_setting(tmp_path, stated, value, refused):
    shape = required(made_up(tmp_path, f"requires: {{made_up: {stated[:-1]}, about: x}}}}").requires[0]).shape
    (tmp_path / "policy.yaml").write_text(f"format: made-up\nmade_up: {value}\n")
    root = Object("made-up", {"format": Member(Constant("made-up")), "made_up": Member(shape)}, closed=True)
    if refused:
        with pytest.raises(BadInput, match=refused):
            read_yaml(tmp_path / "policy.yaml", "policy", root)
    else:
        found = read_yaml(tmp_path / "policy.yaml", "policy", root).content["made_up"]
        assert found == float(value) and shape.fits(found)


DEFAULT = shipped()


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
        ("dc1_checkpoints_internal", "critical"),
        ("dc1-checkpoints-internal", "critical"),
        ("mm2-offset-syncs_dc1_internal", "critical"),
        ("my-checkpoints", "standard"),
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
def test_the_default_policy_knows_the_families_of_internal_topics(topic, tier):
    assert tier_of(DEFAULT, "any", topic, topic == "__consumer_offsets") == tier


def test_the_default_files_load():
    assert DEFAULT.last_tier == "standard"
    assert load_waivers(ROOT / "policies" / "waivers.yaml") == []
    assert load_clusters(ROOT / "policies" / "clusters.yaml") == []


def test_the_examples_in_the_default_files_load(tmp_path):
    for name, load, key in (("waivers.yaml", load_waivers, "waivers"), ("clusters.yaml", load_clusters, "clusters")):
        lines = (ROOT / "policies" / name).read_text().splitlines()
        example = lines[lines.index(f"# {key}:") :]
        text = next(line for line in lines if line.startswith("format:")) + "\n"
        (tmp_path / name).write_text(text + "\n".join(line.removeprefix("# ").removeprefix("#") for line in example))
        assert load(tmp_path / name)


MATCHED = policy("""
tiers: {a: {replication_factor: 1}, b: {replication_factor: 2}, c: {}}
topics:
  - {match: {internal: true, cluster: 'a.*'}, tier: a}
  - {match: {internal: false, topic: '[ab].*'}, tier: b}
  - {match: {team: 'x.*'}, tier: c}
""")
NAMES = st.text(st.sampled_from("ab-._\nä"), max_size=6)
EXPRESSIONS = st.sampled_from(["a.*", ".*", "(a|b)+", "[^a]*", "a|ab", "", "^a$", "(?i)A.*", "ä?.", r"a\.b", "a{2,3}"])


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS, st.lists(NAMES, max_size=5))
def test_a_column_is_matched_like_its_values(expression, names):
    assert match_column(expression, pa.array(names, pa.string())).to_pylist() == [matches(expression, n) for n in names]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(NAMES, NAMES, st.sampled_from([True, False, None])), max_size=8))
def test_topics_are_resolved_like_one_topic(rows):
    teams = {"a": "xy", "b": "z"}
    columns = list(zip(*rows, strict=True)) or [[], [], []]
    kinds = (pa.string(), pa.string(), pa.bool_())
    table = pa.table(
        {n: pa.array(c, k) for n, c, k in zip(("cluster", "topic", "internal"), columns, kinds, strict=True)}
    )
    assert resolve(MATCHED, table, teams).tier.to_pylist() == [
        tier_of(MATCHED, c, t, i, teams.get(c)) for c, t, i in rows
    ]


BY_FACTOR = policy("""
tiers: {a: {}, b: {}, c: {}, d: {}}
topics:
  - {match: {topic: 'x', replication_factor: 1}, tier: a}
  - {match: {replication_factor: {min: 3}}, tier: b}
  - {match: {topic: '[xy]', replication_factor: {min: 2, max: 2}}, tier: a}
  - {match: {topic: '[xyz]'}, tier: c}
  - {match: {replication_factor: {max: 1}}, tier: d}
""")


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("xyzu"), st.sampled_from([None, 1, 2, 3, 4])), max_size=8))
def test_topics_are_resolved_by_their_replication_factor(rows):
    """Of an unknown one every tier that is possible is named, unless there is only one."""
    columns = {"cluster": ["eu"] * len(rows), "topic": [t for t, _ in rows], "internal": [False] * len(rows)}
    kinds = {"cluster": pa.string(), "topic": pa.string(), "internal": pa.bool_()}
    table = pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})
    table = table.append_column("replication_factor", pa.array([n for _, n in rows], pa.int32()))
    found = [candidates(BY_FACTOR, "eu", topic, False, None, factor) for topic, factor in rows]
    resolved = resolve(BY_FACTOR, table)
    assert resolved.tier.to_pylist() == [tiers[0] if len(tiers) == 1 else None for tiers in found]
    assert resolved.undecided.to_pylist() == [tiers if len(tiers) > 1 else None for tiers in found]
    without = resolve(BY_FACTOR, table.drop_columns("replication_factor"))
    unknown = [candidates(BY_FACTOR, "eu", topic, False) for topic, _ in rows]
    assert without.undecided.to_pylist() == [tiers if len(tiers) > 1 else None for tiers in unknown]


def test_a_hundred_thousand_topics_are_resolved():
    count = 100_000
    table = pa.table(
        {
            "cluster": pa.array([f"c{i % 100}" for i in range(count)]),
            "topic": pa.array([f"team-{i % 7}.topic-{i}" for i in range(count)]),
            "internal": pa.array([False] * count),
        }
    )
    assert set(resolve(DEFAULT, table).tier.to_pylist()) == {"standard"}
