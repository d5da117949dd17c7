"""The demo: an embedded cluster with deliberate mistakes, a Streams application, and one broker down."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from durability import resources
from durability.embedded_kafka import seed
from durability.embedded_kafka.cluster import LocalCluster
from durability.embedded_kafka.spec import ClusterSpec
from durability.embedded_kafka.streams import INPUT, StreamsApplication
from durability.runtime import jars

CLUSTER_ID = "durability-audit-demoA"
"""Each start of the demo is the same cluster again: an audit under a known name refuses another cluster."""
_LINES = ("all streams lead to kafka", "hello kafka streams", "join kafka summit", "replicas in three racks")


def spec() -> ClusterSpec:
    """Three racks, six brokers, three controllers, with the mistakes that have to be made before the start."""
    racks = {1: "az1", 2: "az2", 3: "az3", 4: "az1", 5: "az2", 6: None}
    return ClusterSpec(
        brokers=racks,
        controllers={n: racks[n] for n in (1, 2, 4)},
        # One rebalance for all Streams instances takes less time than one for each.
        configs={"default.replication.factor": "1", "group.initial.rebalance.delay.ms": "2000"},
        features={"eligible.leader.replicas.version": 0},
        log_dirs={seed.BAD_DISK: 2},
        offline_log_dirs={seed.BAD_DISK: 1},
        cluster_id=CLUSTER_ID,
    )


@contextmanager
def running() -> Iterator[LocalCluster]:
    """The demo cluster with its topics, its Streams application Stable and one broker dead; stopped at the end."""
    with LocalCluster(spec()) as cluster:
        seed.plant(cluster)
        streams = StreamsApplication(cluster, tags=seed.STREAMS_TAGS).start()
        seed.produce(cluster, INPUT, _LINES)
        cluster.kill_broker(seed.DEAD)
        streams.wait()
        yield cluster


def instructions(bootstrap: str, pids: Mapping[int, int], *, make: bool) -> list[str]:
    """How to audit the cluster, and which processes to kill to lose a broker or a rack.

    pids: process ids by node id. make: this is a checkout, with its Makefile.
    """
    brokers = spec().brokers
    policy, waivers = (_relative(resources.shipped("policies", "demo", f"{n}.yaml")) for n in ("policy", "waivers"))
    given = f"--bootstrap {bootstrap} --cluster my-demo --policy {policy} --waivers {waivers}"
    lines = ["To audit it, in another terminal:", f"  kafka-durability audit {given}"]
    if make:
        lines.append(f"  make audit BOOTSTRAP={bootstrap} CLUSTER=my-demo POLICY={policy} WAIVERS={waivers}")
    lines.append("Its brokers, each a process; to lose a rack, `kill -9` all of its processes:")
    for rack in dict.fromkeys(brokers.values()):
        running = [(n, pids[n]) for n, at in brokers.items() if at == rack and n in pids]
        lines.append(f"  {rack or 'no rack'}: " + ", ".join(f"broker {n} is process {pid}" for n, pid in running))
    return [*lines, "Ctrl-C stops it."]


def _relative(path: Path) -> Path:
    """The path relative to the current folder if it is in it."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def run_until_stopped() -> None:
    """Runs the demo until Ctrl-C or SIGTERM."""
    if not jars.is_fetched(f"kafka-{spec().version}"):
        print(f"Fetching Kafka's jars into {resources.cache_folder()}, once", flush=True)
    print("Starting the embedded cluster: 3 racks, 6 brokers, deliberate mistakes", flush=True)
    with running() as cluster:
        said = instructions(cluster.bootstrap, cluster.pids(), make=resources.checkout() is not None)
        print("\n".join(said), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopping")
