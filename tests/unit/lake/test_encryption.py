"""A lake on S3 with a key of AWS KMS, and what is said where there is no TLS."""

from __future__ import annotations

import boto3
import pytest

from durability.lake import Lake, catalog, encryption
from durability.steps.task_artifacts import TaskArtifacts
from tests.support.lake import counts, publish
from tests.support.topology import healthy

KEY = "arn:aws:kms:eu-north-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"


def test_every_file_of_a_lake_is_encrypted_with_the_key(away, monkeypatch):
    monkeypatch.setenv(encryption.KEY, KEY)
    lake = Lake.open(away)
    lake.ensure()
    publish(lake, healthy())
    assert counts(Lake.open(away))["partitions"] == 6
    artifacts = TaskArtifacts(away, "d", "r")
    assert artifacts.get(artifacts.put("gate", {"a": 1})) == {"a": 1}
    bucket, client = away.split("/")[2], boto3.client("s3", region_name="eu-north-1")
    names = [entry["Key"] for entry in client.list_objects_v2(Bucket=bucket)["Contents"]]
    heads = {name: client.head_object(Bucket=bucket, Key=name) for name in names}
    assert {(head.get("ServerSideEncryption"), head.get("SSEKMSKeyId")) for head in heads.values()} == {
        ("aws:kms", KEY)
    }
    assert {name.rpartition(".")[2] for name in names} >= {"parquet", "json", "avro"}


def test_spark_encrypts_with_the_same_key(monkeypatch):
    place = catalog.place("s3://audit/lake", {"DURABILITY_CATALOG": "postgresql://u@db/lake"})
    name = "spark.sql.catalog.durability"
    assert f"{name}.s3.sse.type" not in catalog.spark_conf(place)
    monkeypatch.setenv(encryption.KEY, KEY)
    conf = catalog.spark_conf(place)
    assert (conf[f"{name}.s3.sse.type"], conf[f"{name}.s3.sse.key"]) == ("kms", KEY)


@pytest.mark.parametrize(
    ("name", "address", "warned"),
    [
        ("AWS_ENDPOINT_URL", "http://s3.internal:9000", True),
        ("AWS_ENDPOINT_URL_S3", "http://10.1.2.3", True),
        ("AWS_ENDPOINT_URL", "https://s3.internal:9000", False),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000", False),
        ("AWS_ENDPOINT_URL", "http://localhost:9000", False),
        ("AWS_ENDPOINT_URL", "", False),
    ],
)
def test_a_store_without_tls_is_warned_of_unless_it_is_this_hosts(monkeypatch, name, address, warned):
    for each in encryption.ENDPOINTS:
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, address)
    said = encryption.without_tls()
    assert (said is not None) is warned
    assert said is None or said.startswith(f"{name} is http: ")
