"""The JSON Schemas say what the readers do, and the shipped files are sound by both."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import pyarrow as pa
import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from durability import schemas
from durability.catalogue import PROVIDERS
from durability.catalogue.causes import DISAGREE
from durability.errors import BadInput
from durability.policy import load_clusters, load_frameworks, load_policy, load_waivers
from durability.report.data.health import Health
from durability.report.data.objectives import PERIODS, Minutes, Objective
from durability.schemas.generate import text
from durability.topology import read, validate
from tests import ROOT
from tests.support import report_cases
from tests.support.report_cases import finding, snapshot
from tests.support.schemas import (
    BEYOND_PARTLY_READ,
    BEYOND_POLICY,
    BEYOND_TOPOLOGY,
    agreeing,
    beyond_schema,
    problems,
    write_as_yaml,
    yaml_document,
)
from tests.support.topology import EXAMPLE, document, healthy

SHIPPED = [
    path
    for folder in ("policies", "policies/demo", "deploy")
    for path in sorted((ROOT / folder).glob("*.yaml"))
    if path.read_text().count("\nformat: durability-")
]
LOADERS = {
    "durability-policy/1": load_policy,
    "durability-waivers/1": load_waivers,
    "durability-clusters/1": load_clusters,
    "durability-frameworks/1": load_frameworks,
}

# Every key there is, so that each is dropped and mistyped below.
POLICY = {
    "format": "durability-policy/1",
    "$schema": "../policy.json",
    "name": "house",
    "tiers": {
        "critical": {
            "replication_factor": 3,
            "min_insync_replicas": 2,
            "write_headroom": 0,
            "replica_racks": 2,
            "min_insync_racks": 2,
            "acked_copies": 2,
            "acked_racks": 2,
            "unclean_leader_election": False,
            "survive": ["broker", "rack"],
            "objective": {"writes": 99.9, "data": 99},
            "page_after": {"offline": "1m", "under-min-isr": "5m"},
            "waiver_longest": "90d",
        },
        "scratch": {},
    },
    "topics": [
        {"match": {"cluster": "eu", "topic": "a.*", "internal": True, "team": "pay"}, "tier": "critical"},
        {"tier": "scratch"},
    ],
    "applications": [
        {
            "match": {"group": "pay-.*", "cluster": "eu"},
            "tier": "critical",
            "rack_aware_tags": ["zone"],
            "standby_replicas": 1,
        }
    ],
    "readings": {
        "prolonged_after": {
            "default": "30m",
            "offline": "5m",
            "tiers": {"critical": {"at-min-isr": "1h"}, "scratch": "1d"},
        },
        "bouncing": {"changes": 3, "within": "6h"},
    },
    "maintenance": [
        {"cluster": "eu", "from": "2026-11-21T01:00:00Z", "to": "2026-11-21 04:00+01:00", "reason": "upgrade"}
    ],
    "retention": {
        "snapshots": "90d",
        "findings": "400d",
        "pulses": "14d",
        "counters": "400d",
        "evidence": {"each": "month", "for": "2555d"},
    },
}
WAIVERS = {
    "format": "durability-waivers/1",
    "waivers": [
        {
            "control": "replica-rack-.*",
            "cluster": "eu",
            "resource": "billing",
            "owner": "team-billing",
            "approved_by": "head of platform",
            "reason": "no third rack yet",
            "ticket": "OPS-1",
            "expires": "2027-01-31",
        }
    ],
}
CLUSTERS = {
    "format": "durability-clusters/1",
    "clusters": [
        {
            "id": "eu",
            "connection": "kafka_eu",
            "provider": "msk",
            "team": "events",
            "controllers": {"100": "az1"},
            "read_within": "30m",
        },
        {"id": "us"},
    ],
}
FRAMEWORKS = {
    "format": "durability-frameworks/1",
    "frameworks": [
        {
            "id": "soc2",
            "title": "SOC 2",
            "requirements": [
                {
                    "id": "A1.2",
                    "title": "Availability",
                    "controls": ["broker-loss", "rack-loss"],
                    "strength": "direct",
                    "shows": "Losses that break nothing.",
                    "not_shown": "Backups.",
                },
            ],
        },
        {
            "id": "dora",
            "title": "DORA",
            "requirements": [
                {
                    "id": "10(1)",
                    "title": "Records",
                    "controls": [],
                    "strength": "supporting",
                    "shows": "x",
                    "not_shown": "y",
                },
            ],
        },
    ],
}
READ = {
    "policy": (POLICY, load_policy),
    "waivers": (WAIVERS, load_waivers),
    "clusters": (CLUSTERS, load_clusters),
    "frameworks": (FRAMEWORKS, load_frameworks),
}
WHOLE = {name: value for name, value in EXAMPLE.items() if name != "unreadable"} | {
    "groups": [{"group": "g", "type": "consumer", "state": None, "members": [{"member_id": "m", "metadata": "AAE="}]}]
}


# Files


@pytest.mark.parametrize("name", schemas.NAMES)
def test_the_files_are_what_the_code_says(name):
    assert schemas.file(name).read_text(encoding="utf-8") == text(schemas.schema(name)), (
        "run python -m durability.schemas"
    )
    assert sorted(path.stem for path in Path(schemas.__file__).parent.glob("*.json")) == sorted(schemas.NAMES)


def test_an_unknown_name_is_a_key_error():
    with pytest.raises(KeyError):
        schemas.schema("plan")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_shipped_file_names_its_schema_and_is_sound_by_it(path):
    first = path.read_text(encoding="utf-8").splitlines()[0]
    named = (path.parent / first.removeprefix("# yaml-language-server: $schema=")).resolve()
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert json.loads(named.read_text(encoding="utf-8"))["title"] == content["format"]
    agreeing(LOADERS[content["format"]], path)


def test_every_kind_of_shipped_file_was_among_them():
    assert {yaml.safe_load(path.read_text())["format"] for path in SHIPPED} == set(LOADERS)


@pytest.mark.parametrize("path", sorted((ROOT / "docs" / "examples").glob("*.json")), ids=lambda path: path.name)
def test_the_documented_topologies_are_sound(path):
    read(path)
    assert problems("topology", json.loads(path.read_text())) == []


# Agreement with the readers. The tests of the readers compare with the schemas too, see `tests.support.schemas`.


def places(value: object, here: tuple = ()) -> list[tuple]:
    """Where something is in a document, but for the document itself."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, element in inner for place in ((*here, key), *places(element, (*here, key)))]


JUNK = [None, "", " ", "x", "0m", "9999999d", "2026-11-21T02:00:00Z", "2027-01-31", 0, -1, 1.5, 40_000, 2**31, 2**63]
JUNK += [True, [], {}, [None], [1, 1], ["x"], {"a": 1}, {"100": "az"}, "a\n", "1\n"]


@st.composite
def mutated(draw, original: dict) -> dict:
    """The document with a member dropped, replaced, or added that no format knows."""
    changed = copy.deepcopy(original)
    *parents, last = draw(st.sampled_from(places(original)))
    inside = changed
    for key in parents:
        inside = inside[key]
    kind = draw(st.sampled_from(["drop", "replace", "replace", "add"]))
    if kind == "drop":
        del inside[last]
    elif kind == "replace":
        inside[last] = draw(st.sampled_from(JUNK))
    elif isinstance(inside, dict):
        inside["x-unknown"] = draw(st.sampled_from(JUNK))
    else:
        inside.append(draw(st.sampled_from([*JUNK, inside[last]])))
    return changed


def verdict(reader, *args) -> BadInput | None:
    try:
        agreeing(reader, *args)
    except BadInput as refusal:
        return refusal
    return None


@pytest.mark.parametrize("name", READ)
def test_a_file_with_every_key_is_read(name, tmp_path):
    original, reader = READ[name]
    agreeing(reader, write_as_yaml(tmp_path / "file.yaml", original))
    assert yaml_document(tmp_path / "file.yaml") == original


@pytest.mark.parametrize("name", READ)
def test_a_changed_file_is_refused_by_both_or_neither(name, tmp_path_factory):
    original, reader = READ[name]
    path = tmp_path_factory.mktemp(name) / "file.yaml"
    seen = set()

    @settings(max_examples=300, deadline=None)
    @given(mutated(original))
    def agree(changed):
        seen.add(verdict(reader, write_as_yaml(path, changed)) is None)

    agree()
    assert seen == {True, False}


@settings(max_examples=400, deadline=None)
@given(st.one_of(mutated(WHOLE), mutated(healthy()), mutated(EXAMPLE)))
@example({**WHOLE, "unreadable": []})
@example({**WHOLE, "unreadable": None})
@example({**WHOLE, "$schema": "https://example.org/topology.json"})
@example({"format": "kafka-topology/1", "unreadable": [{"path": "", "reason": "timeout"}]})
def test_a_changed_topology_is_refused_by_both_or_neither(changed):
    verdict(validate, changed, "f.json")


def test_a_topology_may_name_its_schema():
    assert verdict(validate, {**WHOLE, "$schema": "topology.json"}, "f.json") is None


UNREAD = {"path": "/brokers/0/configs", "reason": "timeout"}
EXCEPTIONS = {
    "a replica on a broker that isn't described": document("topic replicas\na 1,2", brokers="1:a"),
    "an identity twice": {**WHOLE, "topics": WHOLE["topics"] * 2},
    "an integer written as 2.0": document("topic replicas\na 1", cluster_features={"x": 1}) | {"streams": []},
    "a moment that isn't in the calendar": healthy(captured_at="2026-02-30T00:00:00Z"),
    "what has no canonical JSON": {**WHOLE, "x": float("inf")},
    "no replicas, in a topic that isn't diskless": document("topic replicas\na -", brokers="1:a"),
    "missing, and not what is unreadable": {n: v for n, v in WHOLE.items() if n != "topics"} | {"unreadable": [UNREAD]},
    "empty, and not what is unreadable": document("topic replicas\na -", brokers="1:a", unreadable={"/streams": "x"}),
}
EXCEPTIONS["an integer written as 2.0"]["brokers"][0]["id"] = 1.0


@pytest.mark.parametrize("name", BEYOND_TOPOLOGY | BEYOND_PARTLY_READ)
def test_what_only_the_reader_of_topologies_refuses(name):
    changed = EXCEPTIONS[name]
    assert problems("topology", changed) == []
    with pytest.raises(BadInput) as refused:
        validate(changed, "f.json")
    assert beyond_schema(refused.value, [(BEYOND_TOPOLOGY | BEYOND_PARTLY_READ)[name]])


def changed(original: dict, place: str, value: object) -> str:
    copied = copy.deepcopy(original)
    *parents, last = [int(key) if key.isdigit() else key for key in place.split("/")]
    inside = copied
    for key in parents:
        inside = inside[key]
    inside[last] = value
    return json.dumps(copied)


POLICY_EXCEPTIONS = {
    "a tier that isn't defined": (load_policy, changed(POLICY, "topics/1/tier", "crit")),
    "a tier that no topic can meet": (load_policy, changed(POLICY, "tiers/critical/min_insync_replicas", 4)),
    "a line that is never reached": (load_policy, changed(POLICY, "topics/0/match", {})),
    "a range that is empty": (load_policy, changed(POLICY, "tiers/critical/replication_factor", {"min": 3, "max": 2})),
    "an expression that RE2 doesn't know": (load_policy, changed(POLICY, "topics/0/match/topic", "(?=a)")),
    "a control that there isn't": (load_waivers, changed(WAIVERS, "waivers/0/control", "replicas")),
    "a window that ends before it begins": (load_policy, changed(POLICY, "maintenance/0/to", "2026-11-20T01:00Z")),
    "a waiver that its owner approved": (
        load_waivers,
        changed(WAIVERS, "waivers/0/approved_by", WAIVERS["waivers"][0]["owner"]),
    ),
    "an approval after the last day": (load_waivers, changed(WAIVERS, "waivers/0/approved_at", "2099-01-01")),
    "a day that isn't in the calendar": (load_waivers, changed(WAIVERS, "waivers/0/expires", "2027-02-31")),
    "a number written another way": (load_policy, changed(POLICY, "tiers/critical/acked_racks", 2.0)),
    "a key or an identity twice": (load_clusters, changed(CLUSTERS, "clusters/1/id", "eu")),
    "a cluster's id that findings on an inventory have": (
        load_clusters,
        changed({**CLUSTERS, "inventory": [{"name": "cmdb", "csv": "all.csv"}]}, "clusters/1/id", "inventory"),
    ),
}


@pytest.mark.parametrize("name", BEYOND_POLICY)
def test_what_only_the_readers_of_policy_files_refuse(name, tmp_path):
    reader, content = POLICY_EXCEPTIONS[name]
    path = tmp_path / "file.yaml"
    path.write_text(content)
    with pytest.raises(BadInput) as refused:
        agreeing(reader, path)
    assert beyond_schema(refused.value, [BEYOND_POLICY[name]])
    kind = next(kind for kind, (_, loader) in READ.items() if loader is reader)
    assert problems(kind, yaml_document(path)) == []


def test_editors_are_told_the_words_and_limits():
    tier = schemas.schema("policy")["$defs"]["tier"]["properties"]
    assert (tier["write_headroom"]["minimum"], tier["acked_copies"]["maximum"]) == (0, 32767)
    number, bounds = tier["replication_factor"]["anyOf"]
    assert (number["minimum"], number["maximum"]) == (1, 32767)
    assert bounds == {"$ref": "#/$defs/replication-factor-range"}
    assert [form.get("pattern") for form in tier["min_insync_replicas"]["anyOf"]] == [None, "^(?:rf-[1-9][0-9]{0,3})$"]
    assert tier["survive"]["items"]["enum"] == ["broker", "rack"]
    assert schemas.schema("clusters")["$defs"]["cluster"]["properties"]["provider"]["enum"] == list(PROVIDERS)
    assert all(key["description"] for key in tier.values())


# What the audit writes


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> dict:
    """A findings.json with one finding of each kind."""
    rows = [
        finding("orders", "replication-factor", observed={"replication_factor": 2}, partitions=[0, 7], tier="critical"),
        finding("cache-1", "replication-factor", "EXEMPT", waiver=0, cause="configuration:topic"),
        finding("7", "log-dirs", "UNKNOWN", resource_type="broker", message="not read", since=None),
        finding("gone", "log-dirs", "PASS", change="resolved", why="fixed", previous_severity="warning"),
        finding(None, "controller-quorum", "FAIL", "info", resource_type="cluster"),
        finding("fine", "replication-factor", "PASS"),
        finding("lost", "write-headroom", "UNKNOWN", cause=DISAGREE),
    ]
    snapshots = [snapshot(), snapshot("us", "failed", captured_at=None, snapshot_id=None, reason="no answer")]
    out = tmp_path_factory.mktemp("out")
    return report_cases.written(rows, out, counters=[{"partitions": 12}], snapshots=snapshots)


def test_findings_are_as_their_schema_says(written):
    assert {f["outcome"] for f in written["findings"]} == {"FAIL", "EXEMPT", "UNKNOWN", "PASS"}
    assert problems("findings", written) == []


def test_the_schema_of_findings_knows_every_key_that_is_written(written):
    schema = schemas.schema("findings")
    shapes = {name: shape["properties"].keys() for name, shape in schema["$defs"].items()}
    assert schema["properties"].keys() == written.keys()
    assert shapes["run"] == written["run"].keys() and shapes["policy"] == written["run"]["policy"].keys()
    assert all(shapes["snapshot"] == s.keys() for s in written["run"]["snapshots"])
    assert shapes["summary"] == written["summary"].keys()
    assert all(shapes["finding"] == f.keys() for f in written["findings"])
    assert [f["waiver"].keys() for f in written["findings"] if f["waiver"]] == [shapes["waiver"]]


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("format", "durability-findings/2"),
        ("run/verified", None),
        ("run/snapshots/0/status", None),
        ("summary/outcomes/FAIL", -1),
        ("summary/clusters/eu-payments/PASS", "1"),
        ("findings/0/outcome", "MAYBE"),
        ("findings/0/severity", "grave"),
        ("findings/0/partitions", None),
        ("findings/0/observed", []),
        ("findings/0/waiver", {"index": 0}),
    ],
)
def test_findings_that_readers_could_not_use_are_refused(written, place, value):
    assert problems("findings", json.loads(changed(written, place, value)))


SITUATION = {
    "applications": [
        {
            **{"cluster": "eu-payments", "group": "totals", "type": "streams", "tier": "critical", "unknown": None},
            **{"clients": 3, "stateful_tasks": 6, "standby_replicas": 1, "rack_aware_tags": ["zone"]},
            "losses": [{"tag": "zone", "value": "az1", "count": 1, "tasks": ["1_2"], "active": 4, "standby": 2}],
        },
        {
            **{"cluster": "eu-payments", "group": "moves", "type": None, "tier": None, "unknown": "it moves"},
            **{"clients": None, "stateful_tasks": None, "standby_replicas": None, "rack_aware_tags": []},
            "losses": [],
        },
    ],
    "rack_outages": [
        {
            "cluster": "eu-payments",
            "lost_racks": [{"rack": "az1", "brokers": [1, 4], "since": "2026-11-20T02:00:00Z", "perhaps_since": None}],
            "assess": None,
            "steps": [
                {
                    **{"step": "lower", "setting": "min.insync.replicas", "value": 2, "source": "topic", "now": 2},
                    **{
                        "lower_to": 1,
                        "since": "2026-11-20T02:00:00Z",
                        "topics": ["orders"],
                        "more": 0,
                        "partitions": 3,
                    },
                    **{"lower": "kafka-configs", "restore": None, "words": "Step 3"},
                }
            ],
        }
    ],
}
"""Members of findings.json that `written` has no entries of."""


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("applications/0/clients", "3"),
        ("applications/0/losses/0/tasks", None),
        ("brokers/0/UnderMinIsrPartitionCount", None),
        ("brokers/0/live", "yes"),
        ("rack_outages/0/lost_racks/0/brokers", ["1"]),
        ("rack_outages/0/lost_racks/0/since", 5),
        ("rack_outages/0/steps/0/step", "wait"),
        ("objectives/0/state", "nearly met"),
        ("objectives/0/partition_minutes/30d/all", -1),
        ("objectives/0/budget_used", 0.5),
    ],
)
def test_so_are_lists_about_the_whole_cluster_that_readers_could_not_use(written, place, value):
    counts = {"under_min_isr": 1, "under_min_rack_isr": 0, "at_min_isr": 0, "at_min_rack_isr": 0, "under_replicated": 1}
    leads = {"broker": 4, "rack": None, "live": True, "unknown": 0, **counts}
    health = Health(pa.table({}), pa.Table.from_pylist([{"cluster": "eu-payments", "topic": None, "brokers": [leads]}]))
    minutes = {period: Minutes(3.0, 0.0, 40_000.0) for period in PERIODS}
    tier = Objective("critical", "writes", "rack", 99.9, minutes, "eu-payments").to_dict()
    document = {**written, **SITUATION, "brokers": health.brokers(), "objectives": [tier]}
    assert problems("findings", document) == []
    assert problems("findings", json.loads(changed(document, place, value)))


def test_a_key_of_a_finding_that_is_missing_is_named(written):
    for key in ("id", "message", "since", "waiver"):
        short = copy.deepcopy(written)
        del short["findings"][0][key]
        assert problems("findings", short) == [f"$.findings[0]: '{key}' is a required property"]
