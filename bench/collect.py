"""Compares the cost of collecting a live cluster with `kafka-topics --describe` of the same cluster.

`make bench PARTITIONS=10000` gives an embedded cluster of six brokers that many partitions (three replicas, ten partitions per
topic, settings on every fifth topic) and a Kafka Streams application. Then it runs both, in turn, ROUNDS times: Kafka's own
`kafka-topics --describe` of all topics, and a full collection. Each is a new process, so its seconds include its start. It
reports medians. Both must report the same leader, replicas and ISR of every partition.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.clock import machine, run
from durability.embedded_kafka import tools
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import default_spec
from durability.embedded_kafka.streams import INPUT, OUTPUT, StreamsApplication
from durability.errors import AuditError

ROUNDS = 5
OF_A_TOPIC = 10
AT_ONCE = 200  # partitions created per request
HEAP_MB = 384  # per broker; the heap of a small cluster is too small for five thousand replicas
LOGS_WITHIN = 180  # seconds until every log must exist
CLI_HEAP_MB = 256  # kafka-topics.sh's own
# Kafka's defaults. An embedded cluster has shorter ones, but creating so many partitions keeps a small machine busy.
PATIENT = {
    "broker.session.timeout.ms": "18000",
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "10000",
    "replica.lag.time.max.ms": "30000",
}
OWN_SETTINGS = {"min.insync.replicas": "2", "retention.ms": "86400000"}
COLLECTION = """
import json, sys
from durability.collect import collect
document = collect("bench", {"bootstrap.servers": sys.argv[1]}).document
with open(sys.argv[2], "w") as out:
    out.write(json.dumps(document))
"""


def main(environ: Mapping[str, str] = os.environ) -> int:
    """Print medians and their ratio; write RESULTS, if given. Returns 1 if collecting isn't faster."""
    try:
        partitions, rounds = int(environ["PARTITIONS"]), int(environ.get("ROUNDS") or ROUNDS)
    except ValueError:
        raise SystemExit("PARTITIONS and ROUNDS are numbers: make bench PARTITIONS=10000") from None
    if partitions < 1 or rounds < 1:
        raise SystemExit("PARTITIONS and ROUNDS are at least 1")
    with LocalCluster(default_spec(heap_mb=HEAP_MB, configs=PATIENT)) as cluster:
        print(f"making {partitions:,} partitions", flush=True)
        application = start_application(cluster)
        fill(cluster, partitions)
        cluster.wait_for_full_isr(300)
        results = measured(cluster, rounds, [application.group])
    for name, seconds in results["seconds"].items():
        print(f"{name:<16}{results['medians'][name]:7.2f} s   ({'  '.join(f'{s:.2f}' for s in seconds)})")
    print(f"ratio           {results['ratio']:7.2f}     ({results['partitions']:,} partitions, equal in both)")
    if environ.get("RESULTS"):
        Path(environ["RESULTS"]).write_text(json.dumps(results, indent=1) + "\n")
    return int(results["ratio"] >= 1)


def fill(cluster: LocalCluster, partitions: int, prefix: str = "bench") -> None:
    """Create topics with that many partitions in all."""
    from kafka.admin import NewTopic

    wanted = []
    for number, first in enumerate(range(0, partitions, OF_A_TOPIC)):
        own = OWN_SETTINGS if number % 5 == 0 else {}
        name, count = f"{prefix}-{number:05}", min(OF_A_TOPIC, partitions - first)
        wanted.append(NewTopic(name, count, 3, topic_configs=own))
    step = AT_ONCE // OF_A_TOPIC
    with cluster.admin(120) as admin:
        for start in range(0, len(wanted), step):
            admin.create_topics(wanted[start : start + step], timeout_ms=60_000)


def start_application(cluster: LocalCluster) -> StreamsApplication:
    """Start a Kafka Streams application and wait until its group is Stable."""
    from kafka.admin import NewTopic

    with cluster.admin(120) as admin:
        admin.create_topics([NewTopic(INPUT, 3, 3), NewTopic(OUTPUT, 3, 3)], timeout_ms=60_000)
    application = StreamsApplication(cluster).start()
    application.wait(300)
    return application


def measured(cluster: LocalCluster, rounds: int, groups: Sequence[str] = ()) -> dict:
    """Run both in turn once everything exists. Returns RESULTS' document. groups: Streams groups that must be collected."""
    folder = cluster.program_home("bench")
    described, document = folder / "described.txt", folder / "collected.json"
    describe = tools.java(
        cluster.spec.version,
        tools.main_class(cluster.spec.version, "TopicCommand"),
        *("--bootstrap-server", cluster.bootstrap, "--describe"),
        heap_mb=CLI_HEAP_MB,
        home=folder,
    )
    collect = [sys.executable, "-c", COLLECTION, cluster.bootstrap, str(document)]
    seconds: dict[str, list[float]] = {"kafka-topics": [], "collection": []}

    def one_round() -> tuple[int, dict]:
        seconds["kafka-topics"].append(run(describe, output=described))
        seconds["collection"].append(run(collect, output=folder / "collection.txt"))
        found = json.loads(document.read_text())
        return compared(tools.described(described.read_text()), found, groups), found

    _wait_for_all(one_round)
    for each in seconds.values():
        each.clear()
    for _ in range(rounds):
        partitions, found = one_round()
    medians = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "partitions": partitions,
        "topics": len(found["topics"]),
        "brokers": len(found["brokers"]),
        "groups": len(found["groups"]),
        "seconds": seconds,
        "medians": medians,
        "ratio": round(medians["collection"] / medians["kafka-topics"], 3),
        "machine": machine(),
    }


def _wait_for_all(one_round: Callable[[], object]) -> None:
    """Wait until a round has everything. A new partition's ISR is complete before its brokers have its log."""
    deadline = time.monotonic() + LOGS_WITHIN
    while True:
        try:
            one_round()
            return
        except AuditError:
            if time.monotonic() > deadline:
                raise
            time.sleep(2)


def compared(described: Mapping[tuple[str, int], tools.Described], document: Mapping, groups: Sequence[str]) -> int:
    """The number of partitions that both report. Raises AuditError for one that differs, or for a part that is missing."""
    collected = {
        (t["name"], p["partition"]): tools.Described(p["leader"], p["replicas"], p["isr"], p["adding"])
        for t in document["topics"]
        for p in t["partitions"]
    }
    for key in sorted(described.keys() | collected.keys()):
        if described.get(key) != collected.get(key):
            raise AuditError(
                f"{key[0]}-{key[1]}: kafka-topics reports {described.get(key)}, the collection {collected.get(key)}"
            )
    missing = [u["path"] for u in document["unreadable"]]
    missing += [t["name"] for t in document["topics"] if not t.get("configs")]
    missing += [f"{t['name']} bytes" for t in document["topics"] if any("bytes" not in p for p in t["partitions"])]
    missing += [f"broker {b['id']}" for b in document["brokers"] if not (b["configs"] and b["log_dirs"])]
    streams = {entry["group"] for entry in document["streams"]}
    missing += [f"group {name}" for name in groups if name not in streams]
    if missing or not document["cluster"]["quorum"]["voters"]:
        raise AuditError(f"the collection is incomplete: {missing[:5]}")
    return len(collected)


if __name__ == "__main__":
    sys.exit(main())
