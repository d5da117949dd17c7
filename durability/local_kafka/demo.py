"""The demo: an embedded cluster with deliberate mistakes, a Streams application, and one broker down.

`make demo` (`python -m durability.local_kafka.demo`) runs it until Ctrl-C, for trying the audit with `BOOTSTRAP=`.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from durability.local_kafka import seed
from durability.local_kafka.cluster import LocalCluster
from durability.local_kafka.spec import ClusterSpec
from durability.local_kafka.streams import INPUT, StreamsApplication
from durability.runtime import processes

_LINES = ("all streams lead to kafka", "hello kafka streams", "join kafka summit", "replicas in three racks")


def spec() -> ClusterSpec:
    """Three racks, six brokers, three controllers, with the mistakes that are made before a cluster starts."""
    racks = {1: "az1", 2: "az2", 3: "az3", 4: "az1", 5: "az2", 6: None}
    return ClusterSpec(
        brokers=racks,
        controllers={n: racks[n] for n in (1, 2, 4)},
        # The Streams instances start together: one rebalance for all of them is quicker than one for each.
        configs={"default.replication.factor": "1", "group.initial.rebalance.delay.ms": "2000"},
        features={"eligible.leader.replicas.version": 0},
        log_dirs={seed.BAD_DISK: 2},
        offline_log_dirs={seed.BAD_DISK: 1},
    )


@contextmanager
def running(folder: Path | None = None) -> Iterator[LocalCluster]:
    """The demo cluster with everything planted, its Streams application Stable, one broker dead; then stopped."""
    with LocalCluster(spec(), folder) as cluster:
        seed.plant(cluster)
        streams = StreamsApplication(cluster, tags=seed.STREAMS_TAGS).start()
        seed.produce(cluster, INPUT, _LINES)
        cluster.kill_broker(seed.DEAD)
        streams.wait()
        yield cluster


def instructions(bootstrap: str, pids: Mapping[int, int]) -> list[str]:
    """How to audit the cluster as the demo is audited, and what to kill for the loss of a broker or a rack.

    pids: of the processes that run, by node id.
    """
    brokers = spec().brokers
    policy = "POLICY=policies/demo/policy.yaml WAIVERS=policies/demo/waivers.yaml"
    lines = ["To audit it:", f"  make audit BOOTSTRAP={bootstrap} CLUSTER=my-demo {policy}"]
    lines.append("Its brokers, each a process; a rack is lost with `kill -9` of all of its own:")
    for rack in dict.fromkeys(brokers.values()):
        mine = [(n, pids[n]) for n, at in brokers.items() if at == rack and n in pids]
        lines.append(f"  {rack or 'no rack'}: " + ", ".join(f"broker {n} is process {pid}" for n, pid in mine))
    return [*lines, "Ctrl-C stops it."]


def main() -> None:
    """Run the demo until it is told to stop."""
    processes.exit_on_sigterm()
    with running() as cluster:
        print("\n".join(instructions(cluster.bootstrap, cluster.pids())), flush=True)
        try:
            signal.pause()
        except KeyboardInterrupt:
            print("stopping")


if __name__ == "__main__":
    main()
