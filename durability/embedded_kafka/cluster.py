"""A real Kafka cluster on this machine: KRaft, one JVM and one folder per node, free ports on 127.0.0.1."""

from __future__ import annotations

import base64
import contextlib
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from durability.embedded_kafka import spec as specs
from durability.embedded_kafka import tools
from durability.embedded_kafka.spec import ClusterSpec
from durability.errors import AuditError, Refused, Unreachable
from durability.runtime import jars, processes

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient


NODE = "kafka.Kafka"
"""The main class of a node."""
START_SECONDS = 120.0
CHANGE_SECONDS = 60.0
WAIT_SECONDS = 0.3
_LOG_TAIL = 25  # lines

T = TypeVar("T")


def new_cluster_id() -> str:
    """A random cluster id: 22 characters of URL-safe Base64, as org.apache.kafka.common.Uuid.randomUuid draws them.

    No id begins with a dash, which Kafka's own tools would take for an option.
    """
    while True:
        drawn = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not drawn.startswith("-"):
            return drawn


@dataclass
class _Node:
    id: int
    home: Path
    process: subprocess.Popen[bytes] | None = None
    expected_down: bool = False

    @property
    def log(self) -> Path:
        return self.home / "node.log"

    @property
    def living(self) -> subprocess.Popen[bytes] | None:
        """The node's process if it lives."""
        return self.process if self.process is not None and self.process.poll() is None else None


class LocalCluster:
    """A cluster of this spec. Its processes end with this process at the latest. A context manager starts and stops it."""

    session: processes.Session

    def __init__(self, spec: ClusterSpec):
        self.spec = spec
        self.cluster_id = spec.cluster_id or new_cluster_id()
        self._nodes: dict[int, _Node] = {}
        self._ports: dict[str, dict[int, int]] = {}
        self._programs: dict[str, subprocess.Popen] = {}

    # -- life -------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Formats and starts every node in parallel; returns once every broker is registered and unfenced.

        AuditError names the node that failed and shows the end of its log. What was started is stopped again then.
        """
        jars.ensure(f"kafka-{self.spec.version}")
        self.session = processes.Session("durability-kafka-")
        self._ports = {
            "broker": {node: processes.free_port() for node in self.spec.brokers},
            "controller": {node: processes.free_port() for node in self.spec.controllers},
        }
        self._nodes = {node: _Node(node, self.session.folder / f"node-{node}") for node in self.spec.nodes}
        try:
            with ThreadPoolExecutor(len(self._nodes)) as pool:
                list(pool.map(self._format_and_launch, self._nodes.values()))
            self.wait_for_brokers(self.spec.brokers, START_SECONDS)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Kills every node and program, and removes their data."""
        for node in self._nodes.values():
            node.expected_down = True
        started = [*self._programs.values(), *(n.process for n in self._nodes.values() if n.process is not None)]
        for process in started:
            process.kill()
        for process in started:
            process.wait()
        for ports in self._ports.values():
            for port in ports.values():
                processes.release_port(port)
        self._nodes, self._ports, self._programs = {}, {}, {}
        self.session.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def bootstrap(self) -> str:
        """host:port of every broker, joined by commas."""
        return ",".join(f"127.0.0.1:{port}" for port in self._ports["broker"].values())

    @property
    def addresses(self) -> list[str]:
        """host:port of each broker whose process lives."""
        return [f"127.0.0.1:{port}" for node, port in self._ports["broker"].items() if self._nodes[node].living]

    @property
    def running(self) -> tuple[int, ...]:
        """Ids of the nodes whose process lives."""
        return tuple(node.id for node in self._nodes.values() if node.living)

    def pids(self) -> dict[int, int]:
        """Process id by node id, of those that live."""
        return {node.id: process.pid for node in self._nodes.values() if (process := node.living) is not None}

    # -- failures ---------------------------------------------------------------------------------------------------

    def stop_broker(self, node: int) -> None:
        """Shuts a process down in order (SIGTERM: leadership moves first); returns when it is gone and fenced."""
        self._stop([node], kill=False)

    def kill_broker(self, node: int) -> None:
        """Kills a process (SIGKILL); returns when the cluster has noticed (its session timed out)."""
        self._stop([node], kill=True)

    def kill_rack(self, rack: str) -> None:
        """`kill_broker` for every process of a rack at once, controllers too."""
        self._stop(self.spec.in_rack(rack), kill=True)

    def roll(self, nodes: Iterable[int]) -> None:
        """Shuts processes down in order, all at once, and starts them again; returns when every ISR is whole."""
        nodes = list(nodes)
        self._stop(nodes, kill=False)
        self.restart(nodes)
        self.wait_for_full_isr()

    def kill(self, nodes: Iterable[int]) -> None:
        """Kills processes at once (SIGKILL); returns when they are gone, which the cluster notices later."""
        self._end([self._node(node) for node in nodes], kill=True)

    def replace_disks(self, controller: int) -> None:
        """Kills a controller, and starts it again with empty disks; returns at once. See `ClusterSpec.changing_voters`."""
        node = self._node(controller)
        self._end([node], kill=True)
        for path in specs.log_dirs(self.spec, controller, node.home):
            shutil.rmtree(path)
        self._format(node, "--no-initial-controllers")
        self._launch(node)

    def restart_broker(self, node: int) -> None:
        """Starts a process again, which may be living; returns when it is unfenced."""
        self.restart([node])

    def restart_rack(self, rack: str) -> None:
        """`restart_broker` for every process of a rack."""
        self.restart(self.spec.in_rack(rack))

    def restart(self, nodes: Iterable[int]) -> None:
        """`restart_broker` for several processes at once, controllers too."""
        stated = [self._node(node) for node in nodes]
        for node in stated:
            process = node.living
            if process is not None:
                node.expected_down = True
                processes.stop(process)
            self._launch(node)
        back = {node.id for node in stated} & set(self.spec.brokers)
        if back:
            self.wait_for_brokers(back)

    def restore(self) -> None:
        """Starts every node that is down; returns when each partition has a leader and all its replicas in sync."""
        self.restart([node.id for node in self._nodes.values() if not node.living])
        self.wait_for_full_isr()

    # -- waiting ----------------------------------------------------------------------------------------------------

    def wait_until(self, condition: Callable[[], T], what: str, seconds: float = CHANGE_SECONDS) -> T:
        """The first true result of `condition`. Unreachable names `what` wasn't reached, and the last failure.

        A node that ended unexpectedly ends the wait at once, with the end of its log.
        """
        deadline = time.monotonic() + seconds
        last = "it stayed false"
        while True:
            self._check_nodes()
            try:
                result = condition()
            except _kafka_error() as error:  # not there yet: the condition is tried again
                result, last = None, f"{type(error).__name__}: {error}"
            if result:
                return result
            if time.monotonic() > deadline:
                raise Unreachable(f"{what}: not so after {seconds:.0f} s ({last}). {self._tails()}")
            time.sleep(WAIT_SECONDS)

    def wait_for_brokers(self, ids: Iterable[int], seconds: float = CHANGE_SECONDS) -> None:
        """Waits until each of `ids` is among the live (unfenced) brokers, and listens."""
        wanted = set(ids)
        first = min(wanted)
        self.wait_until(lambda: _answers(self._ports["broker"][first]), f"broker {first} listens", seconds)
        self.wait_until(lambda: wanted <= self.live_brokers(), f"brokers {sorted(wanted)} are unfenced", seconds)
        # A broker may be live a moment before it listens (seen with 3.6.2).
        for broker in sorted(wanted):
            self.wait_until(partial(_answers, self._ports["broker"][broker]), f"broker {broker} listens", seconds)

    def wait_for_loss_of(self, ids: Iterable[int]) -> None:
        """Waits until no running broker has one of `ids` among the live brokers."""
        lost = set(ids)

        def gone() -> bool:
            return not any(lost & _live(answer) for answer in self._metadata(()))

        self.wait_until(gone, f"brokers {sorted(lost)} are fenced")

    def wait_for_topics(self, names: Iterable[str]) -> None:
        """Waits until the metadata of every running broker has these topics, each partition with a leader."""
        wanted = set(names)

        def known() -> bool:
            return all(wanted <= _led(answer.topics) for answer in self._metadata(None))

        self.wait_until(known, "every broker knows the new topics")

    def wait_for_full_isr(self, seconds: float = CHANGE_SECONDS) -> None:
        """Waits until every partition has a leader and all its replicas in sync, by the metadata of every running broker."""

        def whole() -> bool:
            return all(_in_sync(answer.topics) for answer in self._metadata(None))

        self.wait_until(whole, "every partition's ISR is whole", seconds)

    def live_brokers(self) -> set[int]:
        """Ids of the unfenced brokers, by Metadata."""
        from kafka.protocol.metadata import MetadataRequest

        with self.admin() as admin:
            request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
            return _live(admin._manager.run(admin._manager.send, request))

    def _metadata(self, topics: Sequence[str] | None) -> list[Any]:
        """The metadata of every running broker, since they learn of a change one after the other. None: all topics."""
        from kafka.protocol.metadata import MetadataRequest

        asked = None if topics is None else list(topics)
        request = MetadataRequest(topics=asked, allow_auto_topic_creation=False)
        with self.admin() as admin:
            connections = admin._manager
            running = [node for node in self.spec.brokers if self._nodes[node].living]
            return [connections.run(connections.send, request, node) for node in running]

    # -- talking to it ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def admin(self, seconds: float = 10.0) -> Iterator[KafkaAdminClient]:
        """kafka-python's admin client of the living brokers, closed at the end. seconds: timeout of a request."""
        from kafka.admin import KafkaAdminClient

        client = KafkaAdminClient(
            bootstrap_servers=self.addresses, client_id="local-kafka", request_timeout_ms=int(seconds * 1000)
        )
        try:
            yield client
        finally:
            client.close()

    def cli(self, main: str, *arguments: str) -> str:
        """Standard output of one of Kafka's own tools, given `--bootstrap-server` and these arguments.

        main: a simple class name ("TopicCommand", "ConfigCommand", "GetOffsetShell") or a full one.
        """
        given = ["--bootstrap-server", self.bootstrap, *arguments]
        command = self._java(tools.main_class(self.spec.version, main), *given, home=self.session.folder, heap_mb=96)
        return tools.run(command, env=self.session.environment(), what=f"{main} {' '.join(arguments)}")

    def launch(self, name: str, main: str, *arguments: str) -> subprocess.Popen:
        """Starts a Java program on Kafka's jars that runs until the cluster stops. name: of its folder."""
        home = self.program_home(name)
        command = self._java(main, *arguments, home=home, heap_mb=64)
        self._programs[name] = self.session.popen(command, log=home / "program.log", cwd=home)
        return self._programs[name]

    def program_home(self, name: str) -> Path:
        """The folder of the program `name`, made if it is missing."""
        home = self.session.folder / name
        home.mkdir(parents=True, exist_ok=True)
        return home

    # -- inside -----------------------------------------------------------------------------------------------------

    def _java(self, main: str, *arguments: str, home: Path, heap_mb: int) -> list[str]:
        return tools.java(self.spec.version, main, *arguments, heap_mb=heap_mb, home=home)

    def _format_and_launch(self, node: _Node) -> None:
        node.home.mkdir(parents=True)
        dirs = specs.log_dirs(self.spec, node.id, node.home)
        settings = node.home / "server.properties"
        values = specs.properties(self.spec, node.id, node.home, self._ports)
        settings.write_text(specs.as_properties(values), encoding="utf-8")
        self._format(node, *specs.format_options(self.spec, node.id, self._ports))
        for damaged in dirs[len(dirs) - self.spec.offline_log_dirs.get(node.id, 0) :]:
            damaged.rename(damaged.with_suffix(".lost"))
            damaged.write_text("a plain file where a log dir was: the broker can't use it\n", encoding="utf-8")
        self._launch(node)

    def _format(self, node: _Node, *options: str) -> None:
        settings = str(node.home / "server.properties")
        tool = ("kafka.tools.StorageTool", "format", "-t", self.cluster_id, "-c", settings, *options)
        command = self._java(*tool, home=node.home, heap_mb=96)
        tools.run(command, env=self.session.environment(), what=f"formatting node {node.id}")

    def _launch(self, node: _Node) -> None:
        heap = self.spec.heap_mb
        command = self._java(NODE, str(node.home / "server.properties"), home=node.home, heap_mb=heap)
        node.expected_down = False
        node.process = self.session.popen(command, log=node.log, cwd=node.home)

    def _stop(self, ids: Iterable[int], *, kill: bool) -> None:
        nodes = [self._node(i) for i in ids]
        self._end(nodes, kill=kill)
        lost = {node.id for node in nodes} & set(self.spec.brokers)
        if lost and any(node.living for node in self._nodes.values() if node.id in self.spec.brokers):
            self.wait_for_loss_of(lost)

    def _end(self, nodes: Iterable[_Node], *, kill: bool) -> None:
        nodes = list(nodes)
        for node in nodes:
            node.expected_down = True
            process = node.living
            if process is not None:
                process.kill() if kill else process.terminate()
        for node in nodes:
            if node.process is not None:
                processes.stop(node.process)

    def _node(self, node: int) -> _Node:
        if node not in self._nodes:
            raise Refused(f"the embedded cluster has no running node {node}; it has {sorted(self._nodes)}")
        return self._nodes[node]

    def _check_nodes(self) -> None:
        for node in self._nodes.values():
            if node.process is not None and not node.living and not node.expected_down:
                node.expected_down = True
                raise AuditError(
                    f"{self._role(node.id)} {node.id} ended with exit status {node.process.returncode}; "
                    f"the end of its log ({node.log}):\n{_tail(node.log)}"
                )

    def _role(self, node: int) -> str:
        return "broker" if node in self.spec.brokers else "controller"

    def _tails(self) -> str:
        said = [(n, _tail(n.log, 5)) for n in self._nodes.values() if n.log.exists()]
        return "\n".join(f"{self._role(n.id)} {n.id} last wrote:\n{text}" for n, text in said if text)


def _tail(log: Path, lines: int = _LOG_TAIL) -> str:
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


def _answers(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _live(metadata: Any) -> set[int]:
    return {broker.node_id for broker in metadata.brokers}


def _led(topics: Iterable[Any]) -> set[str]:
    """Names of the topics whose partitions all have a leader."""
    return {topic.name for topic in topics if all(p.leader_id >= 0 for p in topic.partitions)}


def _in_sync(topics: Iterable[Any]) -> bool:
    """Does every partition have a leader and all its replicas in sync?"""
    partitions = (partition for topic in topics for partition in topic.partitions)
    return all(p.leader_id >= 0 and set(p.isr_nodes) == set(p.replica_nodes) for p in partitions)


def _kafka_error() -> type[Exception]:
    from kafka.errors import KafkaError

    return KafkaError
