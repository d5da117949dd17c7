"""Where Kafka itself puts standbys: WordCountDemo in three zones and two clusters, started and stopped in several orders."""

from __future__ import annotations

import pytest

from durability.embedded_kafka.streams import StreamsApplication
from durability.lake.facts import Facts
from durability.lake.rows import group_rows
from durability.policy.model import Application
from durability.streams.judgement import judge
from durability.topology import validate
from tests.support.kafka_streams import create_topics, read, stop

PLACES = {
    f"{zone}-{cluster}": {"zone": zone, "cluster": cluster} for cluster in ("k1", "k2") for zone in ("z1", "z2", "z3")
}
SETTINGS = {"rack.aware.assignment.tags": "zone,cluster", "session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
# Which instances are started (+) and stopped (-) after the first ones, one after another.
ORDERS = {
    1: (("z1-k1", "z2-k2", "z3-k1"), ("+z1-k2", "-z2-k2", "+z3-k2", "-z1-k1")),
    2: (("z3-k2", "z1-k1"), ("+z2-k1", "+z2-k2", "+z1-k2", "-z3-k2")),
}


def judged(kafka, application: StreamsApplication, line: Application) -> dict | None:
    """The judgement on the application, once it is settled with all its instances."""
    document = validate(read(kafka), "test.json")
    row = next((r for r in group_rows(Facts(document)) if r["group"] == application.group), None)
    found = row and judge(row, line)
    return found if found and not found.get("unknown") and found["clients"] == len(application.pids) else None


@pytest.mark.parametrize("standbys", ORDERS)
def test_kafkas_own_placements_are_never_below_achievable(kafka, standbys: int) -> None:
    create_topics(kafka)
    first, steps = ORDERS[standbys]
    line = Application(rack_aware_tags=("zone", "cluster"), standby_replicas=standbys)
    application = StreamsApplication(kafka, first, f"spread-{standbys}", standbys, SETTINGS, PLACES).start()
    seen = []
    try:
        for step in ("", *steps):
            if step.startswith("+"):
                application.start_instance(step[1:])
            elif step:
                application.stop_instance(step[1:])
            found = kafka.wait_until(lambda: judged(kafka, application, line), f"settled after {step}", 150)
            seen.append((step, found["clients"], found["standbys"], found["below_achievable"], found["undecided"]))
    finally:
        stop(application)
    assert len(seen) == len(steps) + 1
    for step, clients, fewest, below, undecided in seen:
        assert (below, undecided) == (0, None), (step, seen)
        assert fewest == min(standbys, clients - 1), (step, seen)
