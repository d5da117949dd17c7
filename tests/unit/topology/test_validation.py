"""What a `kafka-topology/1` document may say; each wrong one names the file and the JSON path."""

import copy
import json

import pytest

from durability.errors import BadInput
from durability.topology import FORMAT, canonical, read, reading
from durability.topology import validate as validate_alone
from durability.topology.document import instant
from tests.support.schemas import agreeing
from tests.support.topology import EXAMPLE, document, healthy, write


def validate(doc, source):
    """The reader's verdict; the JSON Schema has to agree."""
    return agreeing(validate_alone, doc, source)


def at(doc, path):
    """The parent of a JSON path's last segment, and that segment."""
    *parents, last = [int(part) if part.isdigit() else part for part in path.split("/")[1:]]
    for part in parents:
        doc = doc[part]
    return doc, last


def without(path):
    doc = copy.deepcopy(EXAMPLE)
    parent, last = at(doc, path)
    del parent[last]
    return doc


def having(path, value):
    doc = copy.deepcopy(EXAMPLE)
    parent, last = at(doc, path)
    parent[last] = value
    return doc


def test_the_example_is_read_as_it_is():
    topology = validate(copy.deepcopy(EXAMPLE), "example.json")
    assert (topology.cluster, topology.captured_at.isoformat()) == ("eu-payments", "2026-11-21T02:00:00+00:00")
    assert topology.document == EXAMPLE and topology.source == "example.json"


OPTIONAL = [
    "/cluster/consistent",
    "/cluster/controllers",
    "/brokers/1/rack",
    "/brokers/1/kafka_version",
    "/brokers/1/offline_log_dirs",
    "/topics/0/config_sources",
    "/topics/0/partitions/0/bytes",
    "/streams",
    "/unreadable",
    "/brokers/0/configs",  # it is listed as unreadable
]
NEEDED = [
    "/cluster",
    "/cluster/id",
    "/cluster/kafka_version",
    "/cluster/captured_at",
    "/cluster/features",
    "/cluster/quorum",
    "/cluster/quorum/voters",
    "/cluster/quorum/voters/0/id",
    "/cluster/controllers/0/configs",
    "/brokers",
    "/brokers/1/id",
    "/brokers/1/live",
    "/brokers/1/configs",
    "/topics",
    "/topics/0/name",
    "/topics/0/internal",
    "/topics/0/configs",
    "/topics/0/partitions",
    *(
        f"/topics/0/partitions/0/{name}"
        for name in ("partition", "leader", "replicas", "isr", "elr", "last_known_elr", "adding", "removing")
    ),
    "/streams/0/stateful_tasks",
    "/streams/0/clients/0/tags",
    "/unreadable/0/reason",
]


@pytest.mark.parametrize("path", OPTIONAL)
def test_an_optional_member_may_be_missing(path):
    validate(without(path), "f.json")


@pytest.mark.parametrize("path", NEEDED)
def test_a_missing_member_is_named(path):
    with pytest.raises(BadInput) as caught:
        validate(without(path), "f.json")
    assert caught.value.where == path and "no such member" in str(caught.value)
    assert str(caught.value).startswith(f"f.json, {path}: expected ")


WRONG = [
    ("/format", "kafka-topology/2", '"kafka-topology/1"'),
    ("/cluster/captured_at", "2026-11-21T02:00:00", "RFC 3339"),
    ("/cluster/captured_at", "2026-02-30T02:00:00Z", "RFC 3339"),
    ("/cluster/captured_at", "0001-01-01T00:00:00Z", "of the years 2000 to 2199"),
    ("/cluster/captured_at", "1999-12-31T23:59:59Z", "of the years 2000 to 2199"),
    ("/cluster/captured_at", "9999-12-31T23:59:59Z", "of the years 2000 to 2199"),
    ("/cluster/consistent", 1, "true or false"),
    ("/cluster/features/eligible.leader.replicas.version", True, "integer"),
    ("/cluster/quorum/voters/0/lag_ms", 1.5, "integer"),
    ("/brokers/1/id", "1", "integer"),
    ("/brokers/1/id", True, "integer"),
    ("/brokers/1/id", 2**31, "integer"),
    ("/brokers/1/rack", 3, "text"),
    ("/brokers/1/live", "yes", "true or false"),
    ("/brokers/1/offline_log_dirs", -1, "integer"),
    ("/topics/0/name", "or/ders", "topic name"),
    ("/topics/0/name", "..", "topic name"),
    ("/topics/0/name", "o" * 250, "topic name"),
    ("/topics/0/name", "orders\n", "topic name"),
    ("/topics/0/configs/min.insync.replicas", 2, "text"),
    ("/topics/0/partitions/0/partition", -1, "integer"),
    ("/topics/0/partitions/0/leader", -1, "integer"),
    ("/topics/0/partitions/0/leader", 9, "broker 9 is not described"),
    ("/topics/0/partitions/0/replicas/2", 9, "broker 9 is not described"),
    ("/topics/0/partitions/0/isr/1", True, "broker id"),
    ("/topics/0/partitions/0/isr/1", 2.0, "broker id"),
    ("/topics/0/partitions/0/isr/1", None, "broker id"),
    ("/topics/0/partitions/0/isr", "12", "list"),
    ("/topics/0/partitions/0/elr", None, "list"),
    ("/topics/0/partitions/0/elr", 0, "list"),
    ("/topics/0/partitions/0/elr/0", 7, "broker 7 is not described"),
    ("/topics/0/partitions/0/adding", [5], "broker 5 is not described"),
    ("/topics/0/partitions/0/removing", [5], "broker 5 is not described"),
    ("/topics/0/partitions/0/bytes", "1", "integer"),
    ("/topics/0/partitions/0", [], "object"),
    ("/topics/0/partitions", [], "at least one"),
    ("/streams/0/clients/0/tags/zone", None, "text"),
    ("/streams/0/stateful_tasks/1", 1, "text"),
    ("/unreadable/0/path", "brokers", "JSON Pointer"),
]


@pytest.mark.parametrize(("path", "value", "says"), WRONG, ids=[f"{path}={value!r:.12}" for path, value, _ in WRONG])
def test_a_wrong_value_is_named_with_what_was_expected(path, value, says):
    with pytest.raises(BadInput) as caught:
        validate(having(path, value), "f.json")
    where = caught.value.where
    assert where == path or where.startswith(path + "/")
    assert says in str(caught.value)


@pytest.mark.parametrize("doc", [None, [], "kafka-topology/1", 3, {}])
def test_something_else_is_no_topology_document(doc):
    with pytest.raises(BadInput, match=FORMAT):
        validate(doc, "f.json")


@pytest.mark.parametrize("listed", ["/brokers", "/topics", "/topics/0/partitions", "/cluster/quorum/voters"])
def test_what_is_described_twice_is_refused(listed):
    doc = copy.deepcopy(EXAMPLE)
    parent, last = at(doc, listed)
    parent[last].append(copy.deepcopy(parent[last][0]))
    with pytest.raises(BadInput, match="described twice") as caught:
        validate(doc, "f.json")
    assert caught.value.where.startswith(f"{listed}/{len(parent[last]) - 1}/")


def test_five_problems_are_listed_at_most():
    doc = healthy(topics=4, partitions=3)
    for topic in doc["topics"]:
        for partition in topic["partitions"]:
            del partition["isr"]
    with pytest.raises(BadInput) as caught:
        validate(doc, "f.json")
    assert str(caught.value).count("no such member") == 5
    assert "further problems aren't listed" in str(caught.value)


@pytest.mark.parametrize("name", ["orders", "0"])
@pytest.mark.parametrize("member", ["isr", "leader", "elr", "partition"])
def test_a_member_under_an_unreadable_path_may_be_missing_or_null(name, member):
    missing = without(f"/topics/0/partitions/0/{member}")
    missing["unreadable"] = [{"path": f"/topics/{name}/partitions/0", "reason": "TOPIC_AUTHORIZATION_FAILED"}]
    validate(missing, "f.json")
    missing["topics"][0]["partitions"][0][member] = None
    validate(missing, "f.json")


def test_replicas_cannot_be_held_against_brokers_that_could_not_be_read():
    doc = having("/brokers", [])
    doc["unreadable"] = [{"path": "/brokers", "reason": "CLUSTER_AUTHORIZATION_FAILED"}]
    validate(doc, "f.json")


def test_a_snapshot_needs_its_cluster_and_moment_readable_or_not():
    doc = without("/cluster/id")
    doc["unreadable"] = [{"path": "/cluster", "reason": "timeout"}]
    with pytest.raises(BadInput) as caught:
        validate(doc, "f.json")
    assert caught.value.where == "/cluster/id"
    del doc["cluster"]
    with pytest.raises(BadInput) as caught:
        validate(doc, "f.json")
    assert caught.value.where == "/cluster"


def test_zookeeper_mode_and_members_that_are_unknown_are_left_alone():
    doc = having("/cluster/quorum", None) | {"x-comment": [1.5, {"deep": None}]}
    assert validate(doc, "f.json").document["x-comment"] == [1.5, {"deep": None}]


@pytest.mark.parametrize(
    ("text", "utc"),
    [  # the examples of RFC 3339, section 5.8
        ("1985-04-12T23:20:50.52Z", "1985-04-12T23:20:50.520000+00:00"),
        ("1996-12-19T16:39:57-08:00", "1996-12-20T00:39:57+00:00"),
        ("1990-12-31T23:59:60Z", "1991-01-01T00:00:00+00:00"),
        ("1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00+00:00"),
        ("1937-01-01T12:00:27.87+00:20", "1937-01-01T11:40:27.870000+00:00"),
    ],
)
def test_moments_are_read_as_rfc_3339_says(text, utc):
    assert instant(text).isoformat() == utc


def test_the_canonical_form_does_not_depend_on_order_or_spacing(tmp_path):
    shuffled = dict(reversed(EXAMPLE.items()))
    (tmp_path / "a.json").write_text(json.dumps(shuffled, indent=3))
    [topology] = read(tmp_path / "a.json")
    assert topology.sha256 == validate(EXAMPLE, "other").sha256
    assert canonical(shuffled) == canonical(EXAMPLE)


# Files


def refusal(path):
    with pytest.raises(BadInput) as caught:
        read(path)
    return str(caught.value)


def test_a_folder_is_a_fleet_and_its_history(tmp_path):
    write(tmp_path, healthy(cluster="b", captured_at="2026-11-21T02:00:00+01:00"), healthy(cluster="a"))
    write(tmp_path / "older", healthy(cluster="b", captured_at="2026-11-21T00:30:00Z"))
    (tmp_path / "notes.txt").write_text("no document")
    (tmp_path / ".hidden.json").write_text("no document")
    found = [(t.cluster, t.captured_at.strftime("%H:%M"), t.source) for t in read(tmp_path)]
    assert found == [("a", "12:00", "a-001.json"), ("b", "00:30", "older/b-000.json"), ("b", "01:00", "b-000.json")]


def test_the_same_moment_twice_names_both_files(tmp_path):
    first, second = healthy(captured_at="2026-11-21T02:00:00Z"), healthy(captured_at="2026-11-21T03:00:00+01:00")
    write(tmp_path, first, second)
    assert "test-001.json" in refusal(tmp_path) and "test-000.json" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b'{"format": "kafka-topology/1",\n "cluster" 3}', "line 2, column 12: not JSON"),
        (b"", "line 1, column 1: not JSON"),
        (b'{"format":\n "\xff"}', "line 2: not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not a topology document"),
        (b'{"format": "kafka-topology/1", "cluster": {"id": "a", "id": "b"}}', "/cluster/id: this key occurs twice"),
        (b'{"format": "kafka-topology/1", "x": [1, NaN]}', "/x/1: NaN is no JSON number"),
        (b'{"format": "kafka-topology/1", "x": -Infinity}', "/x: -Infinity is no JSON number"),
    ],
)
def test_a_file_that_is_no_json_says_where(tmp_path, text, says):
    (tmp_path / "bad.json").write_bytes(text)
    assert "bad.json, " in refusal(tmp_path / "bad.json") or "bad.json: " in refusal(tmp_path / "bad.json")
    assert says in refusal(tmp_path / "bad.json")


@pytest.mark.parametrize("unknown", ['"\\ud800"', "1e999"])
def test_what_has_no_canonical_form_is_refused(tmp_path, unknown):
    text = json.dumps(EXAMPLE)[:-1] + f', "x": {unknown}}}'
    (tmp_path / "bad.json").write_text(text)
    assert "no JSON in UTF-8" in refusal(tmp_path)


def test_one_of_many_keys_that_stands_twice_is_found_in_linear_time(tmp_path):
    """Counting each key again would take minutes."""
    keys = [f"k{number}" for number in range(200_000)]
    members = ", ".join(f'"{key}": 1' for key in [*keys, keys[-1]])
    (tmp_path / "bad.json").write_text(f'{{"x": {{{members}}}}}')
    assert "/x/k199999: this key occurs twice" in refusal(tmp_path)


def test_only_a_partition_of_a_diskless_topic_may_lack_replicas():
    drawn = document("topic leader replicas isr\norders - - -", brokers="1:a")
    for configs in ({}, {"diskless.enable": "false"}, {"diskless.enable": 1}):
        drawn["topics"][0]["configs"] = configs
        with pytest.raises(BadInput, match="expected at least one broker, found an empty list"):
            validate(drawn, "x.json")
    drawn["topics"][0]["configs"] = {"diskless.enable": "true"}
    validate(drawn, "x.json")


def test_a_partition_with_more_replicas_than_any_cluster_has_is_refused():
    """All partitions are compared in rows as long as the longest list: this one would need all memory."""
    ids = list(range(100_000))
    doc = having("/topics/0/partitions/0/replicas", ids)
    doc["brokers"] = [{"id": number, "live": True, "configs": {}} for number in ids]
    with pytest.raises(BadInput, match="expected at most 1,000 elements, found 100,000"):
        validate_alone(doc, "f.json")


def test_a_document_beyond_the_largest_size_is_refused(tmp_path, monkeypatch):
    (tmp_path / "good.json").write_text(json.dumps(EXAMPLE))
    size = (tmp_path / "good.json").stat().st_size
    monkeypatch.setattr(reading, "MAX_BYTES", size)
    assert len(read(tmp_path)) == 1
    monkeypatch.setattr(reading, "MAX_BYTES", size - 1)
    assert "good.json: larger than 0 MiB, the largest document that is read" in refusal(tmp_path)


def test_no_file_and_an_empty_folder_say_so(tmp_path):
    assert "no such file or folder" in refusal(tmp_path / "none.json")
    assert "no *.json file" in refusal(tmp_path)


def test_a_wrong_file_among_many_is_the_one_named(tmp_path):
    bad = document("topic replicas isr\norders 1,2 1,2", cluster="bad")
    bad["topics"][0]["partitions"][0]["isr"] = [1, 8]
    write(tmp_path, healthy(cluster="good"), bad)
    assert f"{tmp_path}/bad-001.json, /topics/0/partitions/0/isr/1: broker 8 is not described" in refusal(tmp_path)
