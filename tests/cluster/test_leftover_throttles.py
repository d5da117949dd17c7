"""The commands for leftover throttles, pasted while a reassignment runs that began after the audit."""

from __future__ import annotations

from durability.apply.cluster import Resource, ResourceType
from durability.apply.kafka import connected
from durability.embedded_kafka import seed
from durability.remedies import settings
from durability.remedies.cluster import UNKNOWN
from durability.remedies.steps import render
from tests.support.kafka_states import THROTTLE, reassign, throttle
from tests.support.pasting import Shell


def test_no_throttle_is_deleted_while_a_reassignment_runs(kafka, tmp_path):
    shell = Shell(kafka, tmp_path, tmp_path)
    seed.create_topics(kafka, [seed.Topic("moved", [[1]], {f"{THROTTLE}.replicas": "*"})])
    seed.produce(kafka, "moved", ["x" * 100_000] * 120)
    throttle(kafka, (3,), "1")
    reassign(kafka, "moved", [3, 1])
    evidence = {
        "default_throttles": [],
        "topics": [{"topic": "moved", "throttles": [f"{THROTTLE}.replicas"]}],
        "brokers": [{"broker": 3, "throttles": [f"{THROTTLE}.rate"]}],
    }
    script = render(settings.leftovers({"observed": {"stuck": []}, "evidence": evidence}), UNKNOWN)
    done = shell.paste(script)
    assert done.returncode != 0 and done.stdout.count("moved-0") == 2, done
    owners = [Resource(ResourceType.TOPIC, "moved"), Resource(ResourceType.BROKER, "3")]
    with connected("c", {"bootstrap.servers": kafka.bootstrap}) as cluster:
        throttles = [{f"{THROTTLE}.replicas": "*"}, {f"{THROTTLE}.rate": "1"}]
        assert [cluster.overrides(owners)[owner] for owner in owners] == throttles
        reassign(kafka, "moved", None)
        done = shell.paste(script)
        assert done.returncode == 0 and done.stdout.count("Completed") == 2, done
        kafka.wait_until(lambda: not any(cluster.overrides(owners).values()), "both are deleted")
    with kafka.admin() as admin:
        admin.delete_topics(["moved"])
