"""Wrong policy files are refused, with the line and what was expected."""

from __future__ import annotations

import os

import pytest
import yaml

from durability.errors import BadInput
from durability.policy import load_clusters, load_policy, load_waivers
from durability.policy import yamlfile as yaml_file
from tests.support.policy_files import POLICY, WAIVER, refused

# A line of the file, what stands there instead, the line of the error, and its words.
WRONG_POLICY = [
    ("    replication_factor: 1", "    objective: {writes: 100}", 6, "expected a percentage above 0 and below 100"),
    ("    replication_factor: 1", "    objective: {data: 0}", 6, "expected a percentage above 0 and below 100"),
    ("    replication_factor: 1", "    objective: {data: '99'}", 6, 'and below 100, found "99"'),
    ("    replication_factor: 1", "    objective: {}", 6, "at least one of writes, data is needed"),
    ("    replication_factor: 1", "    objective: 99.9", 6, "expected keys and values (writes, data)"),
    ("    replication_factor: 1", "    objective: {write: 99}", 6, "did you mean writes?"),
    ("    replication_factor: 1", "    objectives: {writes: 99}", 6, "did you mean objective?"),
    ("    replication_factor: 1", "    page_after: soon", 6, "expected a duration such as 10s"),
    ("    replication_factor: 1", "    page_after: {}", 6, "at least one of offline, under-min-isr is needed"),
    ("    replication_factor: 1", "    page_after: {at-min-isr: 5m}", 6, 'unknown key "at-min-isr"'),
    ("    replication_factor: 1", "    waiver_longest: 0d", 6, "expected whole days such as 90d"),
    (
        "    replication_factor: 1",
        "    waiver_longest: 36h",
        6,
        "expected whole days such as 90d",
    ),
    ("    replication_factor: 1", "    waiver_longest: 36501d", 6, "36500d at most"),
    ("    replication_factor: 1", "    waiver_longest: {offline: 1d}", 6, "expected whole days"),
    ("    replication_factor: 1", "    replication_facto: 1", 6, "did you mean replication_factor?"),
    ("    replication_factor: 1", "    replication_factor: 0", 6, "from 1 to 32767, found 0"),
    ("    replication_factor: 1", "    replication_factor: '3'", 6, 'expected a whole number, found "3"'),
    ("    replication_factor: 1", "    replication_factor: 1.5", 6, "expected a whole number"),
    ("    replication_factor: 1", "    replication_factor: 0x10", 6, "expected a whole number"),
    ("    replication_factor: 1", "    replication_factor:", 6, "expected a whole number, found nothing"),
    ("    replication_factor: 1", "    survive: [brokers]", 6, "did you mean broker?"),
    ("    replication_factor: 1", "    survive: rack", 6, "expected a list"),
    (
        "    replication_factor: 1",
        "    unclean_leader_election: never",
        6,
        'expected true or false, found "never"',
    ),
    ("    replication_factor: 1", "    replication_factor: 1\n    replication_factor: 2", 7, "there twice"),
    ("    replication_factor: 1", "    replication_factor: {min: 3, max: 2}", 6, "max 2 is below min 3"),
    (
        "    replication_factor: 1",
        "    replication_factor:\n      min: 3\n      max: 2",
        8,
        "tiers.scratch.replication_factor.max: max 2",
    ),
    ("    replication_factor: 1", "    replication_factor: {}", 6, "at least one of min, max is needed"),
    ("    replication_factor: 1", "    replication_factor: {least: 3}", 6, 'unknown key "least" (known: min, max)'),
    ("    replication_factor: 1", "    replication_factor: {min: 0}", 6, "from 1 to 32767, found 0"),
    ("    replication_factor: 1", "    replication_factor: {max: all}", 6, 'expected a whole number, found "all"'),
    ("    replication_factor: 1", "    replication_factor: rf-1", 6, 'expected a whole number, found "rf-1"'),
    ("    replication_factor: 1", "    replica_racks: rf-1", 6, 'or all (the replication factor), found "rf-1"'),
    ("    replication_factor: 1", "    replica_racks: All", 6, 'found "All"'),
    ("    replication_factor: 1", "    replica_racks: 0", 6, "from 1 to 32767, found 0"),
    (
        "    replication_factor: 1",
        "    replica_racks: {min: 1}",
        6,
        "or all (the replication factor), found keys and values",
    ),
    ("    replication_factor: 1", "    replica_rack_balance: even", 6, 'expected true or false, found "even"'),
    ("    replication_factor: 1", "    replica_rack_balanced: true", 6, "did you mean replica_rack_balance?"),
    ("    replication_factor: 1", "    min_insync_replicas: rf", 6, "such as rf-1"),
    ("    replication_factor: 1", "    min_insync_replicas: rf-0", 6, "such as rf-1"),
    ("    replication_factor: 1", "    min_insync_replicas: rf+1", 6, "such as rf-1"),
    ("    replication_factor: 1", "    min_insync_replicas: rf - 1", 6, "such as rf-1"),
    ("    replication_factor: 1", "    min_insync_replicas: all", 6, 'found "all"'),
    ("    replication_factor: 1", "    min_insync_replicas: true", 6, "found true or false"),
    (
        "    replication_factor: 1",
        "    replication_factor: {min: 2, max: 5}\n    min_insync_replicas: 3",
        7,
        "min_insync_replicas 3 is above replication_factor 2; a topic with 2 replicas can never have that many in sync",
    ),
    (
        "    replication_factor: 1",
        "    replication_factor: {max: 2}\n    min_insync_replicas: 3",
        7,
        "min_insync_replicas 3 is above replication_factor 2",
    ),
    ("  scratch:\n", "  critical:\n", 5, "there twice"),
    (
        "  - {tier: critical}\n",
        "  - {tier: critcal}\n",
        11,
        '"critcal" is not defined; did you mean critical? (defined: critical, scratch)',
    ),
    ("  - {tier: critical}\n", "  - {match: {topic: 'a('}, tier: critical}\n", 11, "not a valid RE2 expression"),
    ("  - {tier: critical}\n", "  - {match: {topic: '(?=a)'}, tier: critical}\n", 11, "no look-around"),
    ("  - {tier: critical}\n", "  - {match: {topic: 'a)(b'}, tier: critical}\n", 11, "not a valid RE2 expression"),
    ("  - {tier: critical}\n", "  - {match: {topics: a}, tier: critical}\n", 11, "did you mean topic?"),
    (
        "  - {tier: critical}\n",
        "  - {match: {replication_factor: 0}, tier: critical}\n",
        11,
        "from 1 to 32767, found 0",
    ),
    (
        "  - {tier: critical}\n",
        "  - {match: {replication_factor: '1'}, tier: critical}\n",
        11,
        'whole number, found "1"',
    ),
    (
        "  - {tier: critical}\n",
        "  - {match: {replication_factor: rf-1}, tier: critical}\n",
        11,
        'whole number, found "rf-1"',
    ),
    ("  - {tier: critical}\n", "  - {match: {replication_factor: [1]}, tier: critical}\n", 11, "found a list"),
    (
        "  - {tier: critical}\n",
        "  - {match: {replication_factor: {}}, tier: critical}\n",
        11,
        "at least one of min, max is needed",
    ),
    (
        "  - {tier: critical}\n",
        "  - {match: {replication_factor: {min: 2, max: 1}}, tier: critical}\n",
        11,
        "topics[3].match.replication_factor.max: max 1 is below min 2",
    ),
    (
        "  - {tier: critical}\n",
        "  - {match: {replication_facto: 1}, tier: critical}\n",
        11,
        "did you mean replication_factor?",
    ),
    ("  - {tier: critical}\n", "  - {match: {cluster: 12}, tier: critical}\n", 11, "put it in quotes"),
    ("  - {tier: critical}\n", "  - {tier: critical}\n  - {tier: scratch}\n", 12, "never reached: line 11"),
    ("  - {tier: critical}\n", "  - {match: {topic: a}}\n", 11, "`tier` is missing"),
    ("prolonged_after: 45m", "prolonged_after: 45", 14, "such as 10s, 30m, 6h or 1d"),
    ("prolonged_after: 45m", "prolonged_after: 0m", 14, "expected a duration"),
    ("prolonged_after: 45m", "prolonged_after: 740000d", 14, "36500d at most"),
    ("prolonged_after: 45m", "prolonged_after: 36501d", 14, "36500d at most"),
    ("from: 2026-11-21T01:00:00Z", "from: 0001-01-01T00:00:00Z", 15, "of the years 1970 to 9999"),
    ("to: 2026-11-21T04:00:00+01:00", "to: 9999-12-31T23:00:00-05:00", 15, "of the years 1970 to 9999"),
    ("to: 2026-11-21T04:00:00+01:00", "to: 2026-11-21T01:00:00+01:00", 15, "is not after `from`"),
    ("to: 2026-11-21T04:00:00+01:00", "to: 2026-11-21T04:00:00", 15, "time zone is missing"),
    ("to: 2026-11-21T04:00:00+01:00", "to: tomorrow", 15, "expected a moment such as 2026-11-21T01:00:00Z"),
    ("format: durability-policy/1", "format: durability-policy/2", 1, "expected durability-policy/1"),
    ("format: durability-policy/1\n", "", 1, "`format` is missing"),
    ("name: payments", "nmae: payments", 2, "did you mean name?"),
]
WRONG_WAIVER = [
    ("    expires: 2027-01-31\n", "", 3, "`expires` is missing"),
    ("2027-01-31", "2027-02-31", 10, "expected a day such as 2027-01-31"),
    ("2027-01-31", "31.1.2027", 10, "expected a day"),
    ("2027-01-31", "2027-01-31T00:00:00Z", 10, "expected a day"),
    ("replica-rack-.*", "replica-rack-sprad", 3, "matches no control; did you mean replica-rack-spread?"),
    ("replica-rack-.*", "'['", 3, "not a valid RE2 expression"),
    ("    owner: team-billing\n", "    ower: team-billing\n", 6, "did you mean owner?"),
    ("    owner: team-billing\n", "    owner: ''\n", 6, "found an empty string"),
    ("    owner: team-billing\n", "", 3, "`owner` is missing"),
    ("head of platform", "'Team-Billing '", 7, "is the owner: name who else approved it"),
    ("    ticket: OPS-1\n", "    approved_at: 2027-02-01\n", 9, "is after its last day 2027-01-31"),
    ("    ticket: OPS-1\n", "    approved_count: -1\n", 9, "expected a whole number"),
]


@pytest.mark.parametrize(
    ("loader", "text", "line", "instead", "where", "words"),
    [
        *((load_policy, POLICY, *wrong) for wrong in WRONG_POLICY),
        *((load_waivers, WAIVER, *wrong) for wrong in WRONG_WAIVER),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(load, loader, text, line, instead, where, words):
    assert line in text
    message = refused(load, loader, text.replace(line, instead, 1))
    assert message.startswith(f", line {where}: "), message
    assert words in message


def test_a_tier_that_no_topic_can_meet_is_refused_with_the_reason(load):
    text = POLICY.replace(
        "replication_factor: 3, min_insync_replicas: 2", "replication_factor: 2, min_insync_replicas: 3"
    )
    assert "can never have that many in sync" in refused(load, load_policy, text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("- a", "expected keys and values, found a list"),
        ("a: [", "not valid YAML"),
        ("a: b: c", "not valid YAML"),
        (b"format: \xff", "not UTF-8"),
        ("a: &x [1]\nb: [*x, *x]", "anchors"),
        ("a: !!python/object:os.system {}", "tags"),
        ("[" * 40 + "]" * 40, "levels deep"),
        ("[" * 100_000, "levels deep"),
        ("format: durability-policy/1\n---\na: 1", "second YAML document"),
        ("format: durability-policy/1\x07", "not valid YAML"),
    ],
)
def test_what_is_no_sound_yaml_is_refused(load, text, words):
    assert words in refused(load, load_policy, text)


@pytest.mark.parametrize("loader", [yaml.SafeLoader, yaml_file._LOADER])
def test_half_a_surrogate_pair_is_refused_by_either_loader(monkeypatch, tmp_path, loader):
    monkeypatch.setattr(yaml_file, "_LOADER", loader)
    path = tmp_path / "file.yaml"
    path.write_text('format: durability-clusters/1\nclusters: [{id: "\\ud800"}]\n')
    with pytest.raises(BadInput, match=r"line 2: not (Unicode|valid YAML)") as caught:
        load_clusters(path)
    str(caught.value).encode()


def test_a_file_whose_name_is_not_utf_8_is_named_in_text_that_is(tmp_path):
    with pytest.raises(BadInput, match=r"n\\udcffme\.yaml: no such file"):
        load_policy(tmp_path / os.fsdecode(b"n\xffme.yaml"))


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(BadInput, match=r"none\.yaml: no such file"):
        load_policy(tmp_path / "none.yaml")
    with pytest.raises(BadInput, match="can't be read"):
        load_policy(tmp_path)
