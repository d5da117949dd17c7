"""How a cluster was read: the requests that were answered, and the principal."""

from __future__ import annotations

import asyncio
import json

import pytest
from kafka.protocol.admin import DescribeAclsResponse

from durability.collect import Limits, acls, collect, provenance
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


def answer(*granted: tuple[str, str, int, int], error: int = 0) -> DescribeAclsResponse:
    """An answer with ACLs. granted: principal, topic, operation and permission of each."""
    resource = DescribeAclsResponse.DescribeAclsResource
    return DescribeAclsResponse(
        version=0,
        throttle_time_ms=0,
        error_code=error,
        error_message=None,
        resources=[
            resource(
                resource_type=2,
                resource_name=topic,
                acls=[
                    resource.AclDescription(
                        principal=principal, host="*", operation=operation, permission_type=permission
                    )
                ],
            )
            for principal, topic, operation, permission in granted
        ],
    )


def acls_of(broker, **more) -> tuple[dict, str | None]:
    """The ACLs that a collection records from a broker, and the reason; the facts are whole in any case."""
    with fake_broker("abc", {"orders": [[0, 1, 2]]}, {}, brokers=1, **broker) as address:
        topology = collect("eu", {"bootstrap.servers": address}, limits=Limits(attempts=1), **more)
    assert [topic["name"] for topic in topology.document["topics"]] == ["orders"]
    assert not any(
        "ACL" in entry["reason"] or "SECURITY" in entry["reason"] for entry in topology.document["unreadable"]
    )
    return topology.collection["acls"], topology.collection["acls_reason"]


def test_acls_of_the_principal_and_of_everyone_are_recorded():
    answers = iter(
        [answer(("User:ANONYMOUS", "*", 8, 3), ("User:ANONYMOUS", "a", 15, 2)), answer(("User:*", "b", 2, 3))]
    )
    found, reason = acls_of({"on": {29: lambda: next(answers)}})
    told = [
        (a["principal"], a["permission"], a["operation"], a["resource_type"], a["resource"]) for a in found["listed"]
    ]
    assert (found["count"], reason) == (3, None)
    assert told == [
        ("User:*", "ALLOW", "ALL", "TOPIC", "b"),
        ("User:ANONYMOUS", "ALLOW", "DESCRIBE", "TOPIC", "*"),
        ("User:ANONYMOUS", "DENY", "code 15", "TOPIC", "a"),
    ]
    assert acls_of({"on": {29: answer}}) == ({"count": 0, "listed": []}, None), "none is not unknown"


def test_acls_that_cannot_be_read_are_unknown_and_cost_nothing_else():
    def closes():
        raise OSError

    for broker, expected in (
        ({"on": {29: lambda: answer(error=54)}}, "SECURITY_DISABLED"),
        ({"on": {29: lambda: answer(error=31)}}, "CLUSTER_AUTHORIZATION_FAILED"),
        ({}, "UNSUPPORTED_VERSION"),
        ({"on": {29: closes}}, "NETWORK_EXCEPTION: the connection was closed by the other side"),
    ):
        found, reason = acls_of(broker)
        assert found is None and reason == expected
    assert asyncio.run(acls.of_principal(None, None)) == (None, acls.NO_NAME)
