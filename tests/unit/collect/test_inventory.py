"""Inventories: CSV files, Strimzi's resources and MSK. A wrong file names its place, and MSK out of reach is only unknown."""

from __future__ import annotations

import csv
import json
import subprocess
from dataclasses import replace

import boto3
import pytest
import yaml
from moto import mock_aws

from durability.collect import inventory
from durability.errors import BadInput
from durability.policy import load_inventory
from durability.policy.inventory import InventorySource

SECRET = "hunter2-very-secret"
KAFKA = {"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "Kafka"}


def resource(name: str, namespace: str = "kafka", **status) -> dict:
    return {**KAFKA, "metadata": {"name": name, "namespace": namespace}, "spec": {"kafka": {}}, "status": status}


def one(source: InventorySource):
    (listing,) = inventory.read([source])
    return listing


def csv_source(tmp_path, text: str | bytes, **columns: str) -> InventorySource:
    path = tmp_path / "cmdb.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return InventorySource("cmdb", "csv", path, {"id": "id"} | columns)


def test_a_csv_file_as_other_programs_write_it(tmp_path):
    path = tmp_path / "cmdb.csv"
    with path.open(
        "w", newline="", encoding="utf-8-sig"
    ) as file:  # as spreadsheets do, with CRLF and a byte order mark
        rows = csv.writer(file)
        rows.writerows([["Name", "Owner", "note"], [" eu ", "pay, ments", "a\nb"], ["us", "", "=1+1"], ["", "", ""]])
    listing = one(InventorySource("cmdb", "csv", path, {"id": "Name", "owner": "Owner"}))
    assert [(e.names, e.owner, e.environment) for e in listing.entries] == [
        (("eu",), "pay, ments", None),
        (("us",), None, None),
    ]
    told = subprocess.run(["sha256sum", path], capture_output=True, text=True, check=True).stdout
    assert told.split()[0] == listing.sha256


@pytest.mark.parametrize(
    "text, problem",
    [
        (b"name\neu\n", r'cmdb.csv, line 1: no column "id" \(columns: "name"\). State the column in `inventory`'),
        (b"idd,x\neu,1\n", r"did you mean idd\?"),
        (b"id;owner\neu;x\n", r"separate columns by commas"),
        (b"id,id\neu,us\n", r'line 1: column "id" is there 2 times'),
        (b"id,x\neu,1\nus,2\neu,3\n", r'line 4: cluster "eu" is there twice, first in line 2'),
        (b"id,x\neu,1,2\n", r"line 2: expected 2 columns as in the first line, found 3; put quotes"),
        (b"id,x\n,1\n", r'line 2: column "id" is empty'),
        (b"id,x\neu\x1b[31m,1\n", r'line 2: column "id" "eu\\u001b\[31m": expected at most 500 printable'),
        (b'id,x\n"eu,1\n', r"line 2: isn't CSV: unexpected end of data"),
        (b"id\n\xff\n", r"line 2: isn't UTF-8; export it as UTF-8"),
        (b"id\n\n", r"lists no cluster"),
        (b"", r"no column .id. \(columns: none\)"),
    ],
)
def test_a_wrong_csv_file_is_refused_with_its_place(tmp_path, text, problem):
    source = csv_source(tmp_path, text)
    with pytest.raises(BadInput, match=problem):
        inventory.check([source])
    listing = one(source)  # it broke after the check: unknown, and no list
    assert listing.problem and not listing.entries


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"gone.csv: the inventory can't be read: No such file .*; correct its name in"):
        inventory.check([InventorySource("cmdb", "csv", tmp_path / "gone.csv", {"id": "id"})])


@pytest.mark.parametrize("text", ["list", "documents", "json", "KafkaList"])
def test_strimzis_resources_in_each_form_of_kubectl(tmp_path, text):
    resources = [resource("orders", clusterId="MkU3OEVBNTcwNTJENDM2Qk"), resource("no", "1e3")]
    others = [{"apiVersion": "kafka.strimzi.io/v1beta2", "kind": "KafkaTopic", "metadata": {"name": "t"}}]
    whole = {"apiVersion": "v1", "kind": "List", "items": resources + others}
    bare = [{k: v for k, v in r.items() if k not in KAFKA} for r in resources]
    made = {
        "list": yaml.safe_dump(whole),
        "documents": yaml.safe_dump_all(resources),
        "json": json.dumps(whole),
        "KafkaList": json.dumps({"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaList", "items": bare}),
    }
    path = tmp_path / "kafka.yaml"
    path.write_text(made[text])
    listing = one(InventorySource("k8s", "strimzi", path))
    assert [(e.names, e.kafka_cluster_id) for e in listing.entries] == [
        (("orders", "kafka/orders", "k8s:kafka/orders"), "MkU3OEVBNTcwNTJENDM2Qk"),
        (("no", "1e3/no", "k8s:1e3/no"), None),
    ]


def test_folders_below_a_folder_are_read_once(tmp_path):
    for place in ("a.yaml", "prod/b.yaml", "prod/eu/c.json", ".git/hidden.yaml", "prod/.old.yaml"):
        path = tmp_path / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(resource(path.stem)))
    (tmp_path / "prod" / "loop").symlink_to(tmp_path)
    listing = one(InventorySource("k8s", "strimzi", tmp_path))
    assert [e.names[0] for e in listing.entries] == ["a", "b", "c"]
    sums = "sha256sum a.yaml prod/b.yaml prod/eu/c.json | sha256sum"
    told = subprocess.run(sums, shell=True, cwd=tmp_path, capture_output=True, text=True).stdout
    assert told.split()[0] == listing.sha256


@pytest.mark.parametrize("metadata", [{"continue": "eyJ2IjoibWV0YSJ9"}, {"remainingItemCount": 7}])
@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump])
def test_a_page_of_a_list_is_no_list(tmp_path, metadata, write):
    path = tmp_path / "kafka.yaml"
    whole = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": [resource("a")]}
    path.write_text(write({**whole, "metadata": {"continue": "", "remainingItemCount": None, "resourceVersion": ""}}))
    assert len(one(InventorySource("k8s", "strimzi", path)).entries) == 1
    path.write_text(write({**whole, "metadata": metadata}))
    with pytest.raises(BadInput, match=r"kafka.yaml, document 1: is a part of a list, and more of it follows"):
        inventory.check([InventorySource("k8s", "strimzi", path)])


def test_a_list_in_a_list_hides_no_cluster(tmp_path):
    path = tmp_path / "kafka.json"
    of_kind = {"apiVersion": "kafka.strimzi.io/v1", "kind": "KafkaList", "items": [{"metadata": {"name": "a"}}]}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [of_kind, resource("b")]}))
    assert [e.names[0] for e in one(InventorySource("k8s", "strimzi", path)).entries] == ["a", "b"]


def test_an_empty_inventory_needs_to_be_meant(aws, tmp_path):
    path = tmp_path / "kafka.yaml"
    path.write_text("apiVersion: v1\nkind: List\nitems: []\n")
    sources = [
        csv_source(tmp_path, "id\n"),
        InventorySource("k8s", "strimzi", path),
        InventorySource("MSK", "msk", aws={"aws.region": "eu-west-1"}),
    ]
    with mock_aws():
        refused = inventory.read(sources)
        meant = inventory.read([replace(source, allow_empty=True) for source in sources])
    for listing in refused:
        assert "no cluster" in listing.problem and "`allow_empty: true`" in listing.problem
    assert [(listing.problem, listing.entries) for listing in meant] == [(None, [])] * 3


def test_a_folder_of_exports(tmp_path):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(resource("a")))
    (tmp_path / "b.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": []}))
    (tmp_path / "pool.yml").write_text(yaml.safe_dump({**resource("pool"), "kind": "KafkaNodePool"}))
    (tmp_path / "README.md").write_text("not one of them")
    listing = one(InventorySource("k8s", "strimzi", tmp_path))
    assert [e.names[0] for e in listing.entries] == ["a"]
    sums = subprocess.run(
        "sha256sum a.yaml b.json pool.yml | sha256sum", shell=True, cwd=tmp_path, capture_output=True, text=True
    ).stdout
    assert sums.split()[0] == listing.sha256
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(resource("a")))
    with pytest.raises(BadInput, match=r'c.yaml: "kafka/a" is there in a.yaml, too; list each Kubernetes cluster'):
        inventory.check([InventorySource("k8s", "strimzi", tmp_path)])


@pytest.mark.parametrize(
    "text, problem",
    [
        (
            "a: [1\nb: 2\n",
            r"kafka.yaml, line 2, column 2: isn't YAML: .*; export it with `kubectl get kafka -A -o yaml`",
        ),
        ('{"a": 1,}', r"line 1, column 9: isn't JSON"),
        ("a: \x07\n", r"isn't YAML"),
        ("- 1\n", r"document 1: isn't a Kubernetes resource, which has a `kind`"),
        ("kind: Pod\napiVersion: v1\n", r'has no Kafka resource of Strimzi \(found: "v1 Pod"\)'),
        ("kind: Kafka\napiVersion: other/v1\nmetadata: {name: x}\n", r"has no Kafka resource of Strimzi"),
        ("", r"has no Kafka resource of Strimzi"),
        ("kind: List\nitems: [1]\n", r"document 1, /items/0: isn't a Kubernetes resource"),
        ("kind: List\napiVersion: v1\n", r'document 1: is a "List" without `items`'),
        ("kind: List\nitems: []\n", r"lists no cluster; export it .*, or state `allow_empty: true`"),
        ("kind: List\nitems: {a: 1}\n", r"document 1, /items: isn't a list"),
        ("kind: Kafka\napiVersion: kafka.strimzi.io/v1\n", r"a Kafka resource has no metadata.name"),
        ("[" * 3000, r"isn't YAML|nested too deeply"),
    ],
)
def test_a_wrong_export_is_refused_with_its_place(tmp_path, text, problem):
    path = tmp_path / "kafka.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=problem):
        inventory.check([InventorySource("k8s", "strimzi", path)])


@pytest.fixture
def aws(monkeypatch):
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("AWS_ACCESS_KEY_ID", "AKIAHOST"), ("AWS_SECRET_ACCESS_KEY", SECRET)):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def made_in(region: str, *names: str) -> list[str]:
    client = boto3.client("kafka", region_name=region)
    nodes = {"InstanceType": "kafka.m5.large", "ClientSubnets": ["subnet-1"]}
    stated = {"BrokerNodeGroupInfo": nodes, "KafkaVersion": "3.8.x", "NumberOfBrokerNodes": 3}
    return [client.create_cluster_v2(ClusterName=name, Provisioned=stated)["ClusterArn"] for name in names]


def test_the_clusters_of_msk_in_the_stated_region(aws):
    with mock_aws():
        names = ["orders", "payments", "to-be-deleted"]
        arns = made_in("eu-west-1", *names)
        made_in("us-east-1", "elsewhere")
        boto3.client("kafka", region_name="eu-west-1").delete_cluster(ClusterArn=arns.pop())
        listing = one(InventorySource("MSK", "msk", aws={"aws.region": "eu-west-1"}))
    assert listing.problem is None
    assert sorted(e.names for e in listing.entries) == sorted(zip(names, arns, strict=False))


def test_all_pages_of_msk_are_read(aws, monkeypatch):
    def answered(self, operation, parameters):
        page = int(parameters.get("NextToken", 0))
        clusters = [{"ClusterName": f"c{page}", "ClusterArn": f"arn:{page}", "State": "ACTIVE"}]
        return {"ClusterInfoList": clusters} | ({"NextToken": str(page + 1)} if page < 2 else {})

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", answered)
    listing = one(InventorySource("MSK", "msk", aws={"aws.region": "eu-west-1"}))
    assert [e.names for e in listing.entries] == [("c0", "arn:0"), ("c1", "arn:1"), ("c2", "arn:2")]


def test_msk_out_of_reach_is_a_problem_without_secrets(aws, monkeypatch, free_tcp_port):
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_tcp_port}")
    listing = one(InventorySource("MSK", "msk", aws={"aws.region": "eu-west-1"}))
    assert listing.problem == (
        "MSK could not be asked: EndpointConnectionError; check the region, and the way from this host to AWS"
    )
    no_region = one(InventorySource("MSK", "msk"))
    assert no_region.problem == "MSK could not be asked: aws.region is missing, and the profile states none"
    no_profile = one(InventorySource("MSK", "msk", aws={"aws.profile": SECRET}))
    assert no_profile.problem and SECRET not in no_profile.problem


def test_msk_that_refuses_is_a_problem_with_what_to_allow(aws, monkeypatch):
    from botocore.exceptions import ClientError

    def refused(self, operation, parameters):
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": SECRET}}, operation)

    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", refused)
    listing = one(InventorySource("MSK", "msk", aws={"aws.region": "eu-west-1"}))
    assert listing.problem == (
        "AWS refused kafka:ListClustersV2: AccessDeniedException; allow the audit's role kafka:ListClustersV2"
    )


FILE = "format: durability-clusters/1\nclusters: [{{id: eu}}]\ninventory:\n{}\n"


def test_the_inventories_of_a_clusters_file(tmp_path):
    path = tmp_path / "clusters.yaml"
    lines = [
        "  - {csv: lists/cmdb.csv, id: name, owner: team}",
        "  - {msk: {aws.region: eu-west-1, aws.role.arn: 'arn:aws:iam::123456789012:role/audit'}}",
        "  - {name: k8s, strimzi: exports, allow_empty: true}",
    ]
    path.write_text(FILE.format("\n".join(lines)))
    cmdb, msk, k8s = load_inventory(path)
    assert (cmdb.name, cmdb.path, cmdb.columns) == (
        "lists/cmdb.csv",
        tmp_path / "lists" / "cmdb.csv",
        {"id": "name", "owner": "team"},
    )
    assert (msk.name, msk.aws["aws.role.arn"]) == ("MSK eu-west-1", "arn:aws:iam::123456789012:role/audit")
    assert (k8s.name, k8s.path, k8s.columns) == ("k8s", tmp_path / "exports", {})
    assert [source.allow_empty for source in (cmdb, msk, k8s)] == [False, False, True]


@pytest.mark.parametrize(
    "lines, problem",
    [
        ("  - {name: x}", r"line 4: inventory\[0\]: expected exactly one of csv, msk, strimzi, found none"),
        ("  - {csv: a, strimzi: b}", r"found csv and strimzi"),
        ("  - {strimzi: b, owner: x}", r"line 4: inventory\[0\].owner: names a column of a CSV file"),
        ("  - {csv: a}\n  - {csv: a}", r'line 5: inventory\[1\]: inventory "a" is there twice; give one'),
        ("  - {msk: {aws.region: Frankfurt}}", r"aws.region: expected a region such as eu-west-1"),
        ("  - {msk: {region: eu-west-1}}", r"unknown key .*did you mean aws.region"),
    ],
)
def test_a_wrong_inventory_in_a_clusters_file_is_refused(tmp_path, lines, problem):
    path = tmp_path / "clusters.yaml"
    path.write_text(FILE.format(lines))
    with pytest.raises(BadInput, match=problem):
        load_inventory(path)
