"""A broker that never comes back: the script moves its replicas with the real tools of two releases, and unregisters it."""

from __future__ import annotations

import subprocess

import pytest

from durability.embedded_kafka import seed, tools
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.remedies import gone
from durability.remedies.cluster import ClusterFacts, Gone
from durability.remedies.plans import Broker, Placement
from durability.topology import versions
from tests.support import kafka_tools
from tests.support.pasting import with_short_pauses

RACKS = {1: "a", 2: "b", 3: "b"}


@pytest.mark.parametrize("version", ["3.6.2", "4.3.1"])
def test_replicas_leave_a_broker_that_is_down(version, tmp_path):
    with_short_pauses(tmp_path)
    with LocalCluster(ClusterSpec(RACKS, {1: "a"}, version=version)) as kafka:
        seed.create_topics(kafka, [seed.Topic("g", [[1, 3], [3, 1]], {"min.insync.replicas": "1"})])
        environment = kafka_tools.install(kafka, tmp_path)
        kafka.kill_broker(3)

        def described():
            return tools.described(kafka.cli("TopicCommand", "--describe", "--topic", "g"))

        now = kafka.wait_until(lambda: (d := described()) and all(p.isr == [1] for p in d.values()) and d, "3 left")
        placement = Placement([Broker(b, rack, b != 3) for b, rack in RACKS.items()], {})
        moves = [(t, n, gone.replaced(placement, p.replicas, p.isr, p.leader)) for (t, n), p in now.items()]
        assert [sorted(replicas) for _, _, replicas in moves] == [[1, 2], [1, 2]]
        plan = Gone("", (3,), tuple(moves), 0)
        (tmp_path / gone.PLAN).write_text(gone.written(plan))
        (tmp_path / gone.SCRIPT).write_text(gone.script(plan, ClusterFacts(versions.parse(version), kraft=True)))
        environment["BOOTSTRAP"] = kafka.bootstrap  # of the brokers that are left
        ran = subprocess.run(
            ["bash", str(tmp_path / gone.SCRIPT)], capture_output=True, text=True, env=environment, timeout=240
        )
        assert ran.returncode == 0, (ran.stdout, ran.stderr)
        assert "is completed" in ran.stdout and "Broker 3 is no longer registered" in ran.stdout
        assert {tuple(sorted(p.isr)) for p in described().values()} == {(1, 2)}
        left = kafka.cli("ConfigCommand", "--describe", "--entity-type", "brokers", "--entity-name", "2")
        left += kafka.cli("ConfigCommand", "--describe", "--entity-type", "topics", "--entity-name", "g")
        assert "throttled" not in left
