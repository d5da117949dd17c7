"""The specification of an embedded cluster, and its nodes' properties files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from durability.errors import Refused
from durability.topology import versions

# Small and quick, and as durable as three racks allow: an audit of such a cluster has no findings.
DEFAULTS = {
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": "3000",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "share.coordinator.state.topic.min.isr": "2",
    "share.coordinator.state.topic.num.partitions": "3",
    "group.initial.rebalance.delay.ms": "0",
    "controller.quorum.election.timeout.ms": "1000",
    "controller.quorum.fetch.timeout.ms": "2000",
    # A record that says nothing, every 500 ms by default: 5 idle nodes use a third less CPU without most of them.
    "metadata.max.idle.interval.ms": "5000",
    "controlled.shutdown.max.retries": "2",
    "num.network.threads": "2",
    "num.io.threads": "3",
    "num.recovery.threads.per.data.dir": "1",
    "background.threads": "2",
    "log.cleaner.dedupe.buffer.size": "4194304",
    "log.index.size.max.bytes": "1048576",
    "log.segment.bytes": "67108864",
}
_SINCE_4 = "share.coordinator.state."


@dataclass(frozen=True)
class ClusterSpec:
    """An embedded cluster.

    brokers, controllers: rack by node id (None: no broker.rack). A node in both is one combined process. Kafka has no
        setting for a separate controller's rack; here it decides which rack's loss takes the controller.
    configs: properties of every node, over DEFAULTS. node_configs: properties of one node, over both.
    features: level by feature for `kafka-storage format`, over the release's own defaults.
    log_dirs: number of log dirs by node id (default 1).
    offline_log_dirs: how many of a node's last log dirs are damaged after formatting, so that the broker finds them
        offline when it starts.
    changing_voters: can controllers join and leave the quorum while it runs (KIP-853, from 3.9 on)?
    heap_mb: -Xmx of each process.
    cluster_id: 22 characters of URL-safe Base64; None: a random one.
    """

    brokers: Mapping[int, str | None]
    controllers: Mapping[int, str | None]
    version: str = "4.3.1"
    configs: Mapping[str, str] = field(default_factory=dict)
    node_configs: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    features: Mapping[str, int] = field(default_factory=dict)
    log_dirs: Mapping[int, int] = field(default_factory=dict)
    offline_log_dirs: Mapping[int, int] = field(default_factory=dict)
    changing_voters: bool = False
    heap_mb: int = 160
    cluster_id: str | None = None

    def __post_init__(self) -> None:
        if not self.brokers or not self.controllers:
            raise Refused("a cluster needs at least one broker and one controller")
        for node, offline in self.offline_log_dirs.items():
            if offline >= self.log_dirs.get(node, 1):
                raise Refused(f"node {node}: at least one log dir must stay online, {offline} are to be damaged")

    @property
    def nodes(self) -> tuple[int, ...]:
        """Ids of all processes, controllers first, since brokers wait for them."""
        return (*sorted(self.controllers), *sorted(set(self.brokers) - set(self.controllers)))

    def in_rack(self, rack: str) -> tuple[int, ...]:
        """Ids of the processes in a rack; Refused if there are none."""
        racks = {**self.controllers, **self.brokers}
        found = tuple(node for node in self.nodes if racks[node] == rack)
        if not found:
            raise Refused(f"no broker or controller is in rack {rack!r}")
        return found


def default_spec(**changes: object) -> ClusterSpec:
    """Three racks of two brokers, one controller in each rack combined with a broker; eligible leader replicas on.

    Losing a rack leaves two of three voters. `changes` are ClusterSpec's fields.
    """
    racks = {1: "az1", 2: "az2", 3: "az3", 4: "az1", 5: "az2", 6: "az3"}
    fields: dict = {"brokers": racks, "controllers": {n: racks[n] for n in (1, 2, 3)}}
    return ClusterSpec(**{**fields, "features": {"eligible.leader.replicas.version": 1}, **changes})


def log_dirs(spec: ClusterSpec, node: int, home: Path) -> list[Path]:
    """The node's log dirs under its folder `home`; the first also holds the cluster's metadata log."""
    return [home / f"data-{i}" for i in range(spec.log_dirs.get(node, 1))]


def properties(spec: ClusterSpec, node: int, home: Path, ports: Mapping[str, Mapping[int, int]]) -> dict[str, str]:
    """server.properties of one node; `ports`: "broker" and "controller" -> node id -> port on 127.0.0.1."""
    roles, listeners = [], []
    if node in spec.brokers:
        roles.append("broker")
        listeners.append(f"PLAINTEXT://127.0.0.1:{ports['broker'][node]}")
    if node in spec.controllers:
        roles.append("controller")
        listeners.append(f"CONTROLLER://127.0.0.1:{ports['controller'][node]}")
    dirs = log_dirs(spec, node, home)
    voters = {n: f"127.0.0.1:{p}" for n, p in sorted(ports["controller"].items())}
    quorum = {"controller.quorum.voters": ",".join(f"{n}@{address}" for n, address in voters.items())}
    if spec.changing_voters:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(voters.values())}
    own = {
        **quorum,
        "process.roles": ",".join(roles),
        "node.id": str(node),
        "listeners": ",".join(listeners),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
        "log.dirs": ",".join(str(path) for path in dirs),
        "metadata.log.dir": str(dirs[0]),
    }
    if node in spec.brokers:
        own["inter.broker.listener.name"] = "PLAINTEXT"
        own["advertised.listeners"] = listeners[0]
        rack = spec.brokers[node]
        if rack is not None:
            own["broker.rack"] = rack
    defaults = {
        k: v for k, v in DEFAULTS.items() if versions.at_least(spec.version, "4.0") or not k.startswith(_SINCE_4)
    }
    return {**defaults, **own, **spec.configs, **spec.node_configs.get(node, {})}


def format_options(spec: ClusterSpec, node: int, ports: Mapping[str, Mapping[int, int]]) -> list[str]:
    """Options of `kafka-storage format` for one node: feature levels, and the first voters if they can change."""
    options = [option for name, level in spec.features.items() for option in ("--feature", f"{name}={level}")]
    if not spec.changing_voters:
        return options
    if node not in spec.controllers:
        return [*options, "--no-initial-controllers"]
    # The directory id is a UUID of one's choice.
    voters = [f"{n}@127.0.0.1:{p}:{n:022}" for n, p in sorted(ports["controller"].items())]
    return [*options, "--initial-controllers", ",".join(voters)]


def as_properties(values: Mapping[str, str]) -> str:
    """Text of a Java properties file (java.util.Properties escapes)."""
    return "".join(f"{_escaped(k)}={_escaped(v)}\n" for k, v in values.items())


def _escaped(text: str) -> str:
    r"""A key or value for java.util.Properties. What isn't printable ASCII is \\uXXXX, so a line end starts no property.

    >>> print(_escaped("az\r=9"), _escaped(" \u00e9"))
    az\u000d\=9 \ \u00e9
    """
    raw = text.encode("utf-16-be", "surrogatepass")
    units = [int.from_bytes(raw[at : at + 2]) for at in range(0, len(raw), 2)]
    written = "".join(_character(unit) for unit in units)
    return "\\" + written if written.startswith(" ") else written


def _character(unit: int) -> str:
    """A UTF-16 code unit as a properties file has it."""
    if not 32 <= unit < 127:
        return f"\\u{unit:04x}"
    return f"\\{chr(unit)}" if chr(unit) in "\\=:#!" else chr(unit)
