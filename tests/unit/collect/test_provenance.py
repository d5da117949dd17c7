"""How a cluster was read: the requests that were answered, and the principal."""

from __future__ import annotations

import json

import pytest

from durability.collect import collect, provenance
from durability.lake import rows, tables
from tests.support.fake_broker import NEWEST, fake_broker

SASL = {"security_protocol": "SASL_SSL", "sasl_plain_password": "hunter2"}


def test_requests_are_counted_with_the_version_that_the_broker_answered():
    with fake_broker("abc", {"orders": [[1, 2, 3], [2, 3, 1]]}, {"min.insync.replicas": "2"}) as address:
        topology = collect("eu", {"bootstrap.servers": address})
    record = topology.collection
    asked = {entry["api"]: entry for entry in record["apis"]}
    assert asked["Metadata"] | {"count": None} == {"api": "Metadata", "key": 3, "version": NEWEST[3], "count": None}
    assert asked["DescribeLogDirs"]["count"] == 3 and asked["DescribeConfigs"]["key"] == 32
    assert "DescribeQuorum" not in asked, "this broker doesn't know it, so it has no answer"
    assert record["principal"]["name"] == "User:ANONYMOUS" and record["clock_offset_ms"] is None
    assert record["log_dirs"]["brokers"] == 3
    assert "collection" not in json.dumps(topology.document)
    (row,) = rows.build(topology, "snapshot", "attempt")[tables.CLUSTERS.name].to_pylist()
    assert json.loads(row["collection"]) == record


@pytest.mark.parametrize(
    ("config", "name", "reason"),
    [
        ({"security_protocol": "PLAINTEXT"}, "User:ANONYMOUS", None),
        ({**SASL, "sasl_mechanism": "PLAIN", "sasl_plain_username": "auditor"}, "User:auditor", None),
        ({**SASL, "sasl_mechanism": "OAUTHBEARER"}, None, provenance.TOKEN),
        ({**SASL, "sasl_mechanism": "GSSAPI"}, None, provenance.TOKEN),
        ({"security_protocol": "SSL"}, None, provenance.CERTIFICATE),
    ],
)
def test_the_principal_is_stated_only_if_the_settings_show_it(config, name, reason):
    stated = provenance.principal(config)
    assert (stated["name"], stated["reason"]) == (name, reason)
    assert stated["security_protocol"] == config["security_protocol"] and "hunter2" not in json.dumps(stated)
