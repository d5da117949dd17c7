"""The ACLs that steps need, each denied in turn by a real cluster: it is named as missing, and what needs it fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from durability.apply.cluster import Resource, ResourceType, SettingChange, TopicPartition
from durability.apply.kafka import KafkaCluster, connected
from durability.apply.permissions import Acl, Missing, On, Operation, missing, needed
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.errors import Refused
from durability.remedies.change.model import KINDS
from tests.cluster.test_collect import acl

SPEC = ClusterSpec(
    brokers={1: "az1"},
    controllers={1: "az1"},
    configs={
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "default.replication.factor": "1",
    },
)
TOPICS = ("open", "sealed", "secret")
SEALED, BROKER = Resource(ResourceType.TOPIC, "sealed"), Resource(ResourceType.BROKER, "1")
PARTITION = TopicPartition("open", 0)
CLUSTER = "kafka-cluster"
NEEDED = needed(KINDS)
Call = Callable[[KafkaCluster], object]


def refused(*calls: Call) -> Call:
    """Checks that each of these calls is refused."""

    def check(cluster: KafkaCluster) -> None:
        for call in calls:
            with pytest.raises(Refused, match=r"^cluster c refuses a request: (TOPIC|CLUSTER)_AUTHORIZATION_FAILED"):
                call(cluster)

    return check


def not_set(resource: Resource) -> Call:
    def check(cluster: KafkaCluster) -> None:
        errors = cluster.change([SettingChange(resource, "compression.type", "zstd")])
        assert "AUTHORIZATION_FAILED" in errors[resource]

    return check


# What is denied, of which resource, and what fails then. Alter is the last one, because a principal without it
# can't delete the denial.
DENIED: list[tuple[Acl, str, Call]] = [
    (Acl(Operation.DESCRIBE, On.TOPICS), "secret", refused(lambda c: c.read(["secret"]))),
    (Acl(Operation.DESCRIBE_CONFIGS, On.TOPICS), "sealed", refused(lambda c: c.overrides([SEALED]))),
    (Acl(Operation.ALTER_CONFIGS, On.TOPICS), "sealed", not_set(SEALED)),
    (Acl(Operation.DESCRIBE, On.CLUSTER), CLUSTER, refused(lambda c: c.read([]), lambda c: c.sizes([1], ["open"]))),
    (Acl(Operation.DESCRIBE_CONFIGS, On.CLUSTER), CLUSTER, refused(lambda c: c.overrides([BROKER]))),
    (Acl(Operation.ALTER_CONFIGS, On.CLUSTER), CLUSTER, not_set(BROKER)),
    (
        Acl(Operation.ALTER, On.CLUSTER),
        CLUSTER,
        refused(lambda c: c.reassign({PARTITION: [1]}), lambda c: c.elect_preferred([PARTITION])),
    ),
]


def lacks(cluster: KafkaCluster, expected: dict[Acl, tuple[str, ...]]) -> bool:
    return missing(cluster, NEEDED, TOPICS).lacking == expected


def test_each_acl_is_needed_and_named_if_it_is_missing():
    with LocalCluster(SPEC) as kafka, connected("c", {"bootstrap.servers": kafka.bootstrap}) as cluster:
        seed.create_topics(kafka, [seed.Topic(name, [[1]]) for name in TOPICS])
        assert missing(cluster, NEEDED, [*TOPICS, "gone"]) == Missing({}, {})
        with kafka.admin() as admin:
            allowed = [("CLUSTER", CLUSTER), *(("TOPIC", name) for name in TOPICS)]
            admin.create_acls([acl("ALL", kind, name, "ALLOW") for kind, name in allowed])
        for denied, name, check in DENIED:
            rule, whom = acl(denied.operation.name, denied.on.upper(), name, "DENY"), (name,) * (name != CLUSTER)
            with kafka.admin() as admin:
                admin.create_acls([rule])
            kafka.wait_until(partial(lacks, cluster, {denied: whom}), f"{denied} is missing")
            check(cluster)
            others = {each: whom for each in NEEDED if each.on is denied.on and each != denied}
            hidden = others if denied.operation is Operation.DESCRIBE else {}
            assert missing(cluster, NEEDED, TOPICS).unknown == hidden
            if denied != DENIED[-1][0]:
                with kafka.admin() as admin:
                    admin.delete_acls([rule])
