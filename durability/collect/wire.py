"""Sends requests to a cluster through kafka-python's connection manager, in the calling thread.

kafka-python's admin client isn't used. It loses members' user data, stops at the first page, fails on 3.6 in
`describe_cluster`, and gives no reason if bootstrapping fails.
"""

from __future__ import annotations

import copy
import logging
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import kafka.errors as kafka_errors
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from durability.collect import interrupts
from durability.collect.answer_sizes import UNAUTHENTICATED, allow, largest_answer
from durability.collect.limits import Limits
from durability.collect.reasons import (
    AUTHENTICATION,
    CannotAuthenticate,
    Unread,
    error_name,
    explained,
    is_retriable,
    unread,
)
from durability.collect.settings import client_config
from durability.errors import Unreachable

# Everything it would log is raised as an exception, and its debug output contains SASL bytes.
logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)

AT_ONCE = 16
"""The most concurrent requests."""
GREETED_AT_ONCE = 256
"""Brokers that are connected to at the same time."""
PATIENCE = 2.0
"""Seconds until other brokers are asked, too, if one doesn't forward a request to the controller."""
NO_CONTROLLER = ("REQUEST_TIMED_OUT", "NOT_CONTROLLER", "BROKER_NOT_AVAILABLE")
"""Errors of a broker that can't reach a controller. Another broker may reach it."""
FORWARDERS = 4
"""The most brokers that are asked to forward a request to the controller."""

T = TypeVar("T")
Job = Callable[[], Awaitable[Any]]


@contextmanager
def connected(cluster: str, settings: Mapping[str, object], limits: Limits) -> Iterator[Wire]:
    """Connections to a cluster, closed at the end.

    cluster: its name in errors.
    settings: see `client_config`.
    Raises BadInput for settings that can't be used, and Unreachable if the block raises Unread.
    """
    wire = Wire(cluster, client_config(settings, f"the connection of cluster {cluster}"), limits)
    try:
        yield wire
    except Unread as exc:
        raise Unreachable(f"cluster {cluster} can't be read: {exc.reason}. Check that its brokers are up.") from exc
    finally:
        wire.close()


def batches(items: Sequence[T], size: int) -> list[Sequence[T]]:
    return [items[start : start + size] for start in range(0, len(items), size)]


def error_code(response: Any) -> int:
    """The error code of an answer as a whole; 0 for answers without one."""
    return getattr(response, "error_code", 0) or 0


def _reached_no_controller(exc: Exception) -> bool:
    """Whether the broker that should forward a request can't reach a controller, or can't be reached itself."""
    return isinstance(exc, Unread) and (exc.connection or exc.reason in NO_CONTROLLER)


class Wire:
    """Connections to one cluster. kafka-python's event loop runs only in `run`, so no thread is needed.

    The request timeout and the collection's deadline limit every request. A broker that can't be reached gets no further
    requests.
    """

    def __init__(self, cluster: str, config: dict[str, Any], limits: Limits):
        self.cluster = cluster
        self.limits = limits
        self.deadline = time.monotonic() + limits.deadline
        self.request_timeout = config.pop("request_timeout_ms", limits.request_timeout * 1000) / 1000
        setup = config.pop("socket_connection_setup_timeout_ms", limits.connect_timeout * 1000)
        self.config: Mapping[str, Any] = config
        self._config = {
            **config,
            "request_timeout_ms": int(self.request_timeout * 1000),
            "socket_connection_setup_timeout_ms": int(setup),
            "socket_connection_setup_timeout_max_ms": int(setup),
            "reconnect_backoff_max_ms": 1000,
            "receive_message_max_bytes": UNAUTHENTICATED,
            "max_in_flight_requests_per_connection": 100,
        }
        self.connect_timeout = setup / 1000
        self._net = NetworkSelector(client_id=config["client_id"], slow_task_threshold_secs=0)
        self._managers: list[KafkaConnectionManager] = []
        self._manager = self._new_manager(config["bootstrap_servers"])
        self._forwarding = self._new_manager(config["bootstrap_servers"])
        self._lost: dict[int, Unread] = {}
        self.no_controller: Unread | None = None  # why no broker reaches a controller
        self.controllers: Sequence[tuple[str, int]] = ()  # listeners of controllers that are asked themselves
        self._forwarded: set[Future] = set()  # answers of the controller that are awaited
        self._answered: set[int] = set()  # brokers that have answered
        self.nodes: list[int] = []  # brokers that the cluster calls live, by id
        self.forwarded_by: int | None = None  # the broker that has reached the controller last
        self.requests: Counter[tuple[str, int, int]] = Counter()  # that were answered: name, API key, version

    def _new_manager(self, servers: Sequence[str]) -> KafkaConnectionManager:
        manager = KafkaConnectionManager(self._net, **{**self._config, "bootstrap_servers": list(servers)})
        self._managers.append(manager)
        return manager

    # -- Running ---------------------------------------------------------------------------------------------------

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.deadline - time.monotonic())

    def run(self, work: Job) -> Any:
        """Run the event loop in this thread until `work` has ended, or a signal ends it. Returns its result."""
        future = self._net.call_soon_with_future(work)
        # The deadline limits every wait inside. The margin is for the work between the last wait and the end.
        with interrupts.awaited(future, self._net.wakeup) as waits:
            self._net.poll(timeout_ms=(self.remaining + 60) * 1000, future=waits)
        if not future.is_done:
            raise Unread("REQUEST_TIMED_OUT: the collection's deadline has passed")
        if future.exception is not None:
            raise future.exception
        return future.value

    async def gather(self, jobs: Sequence[Job], at_once: int = AT_ONCE) -> list[Any]:
        """The jobs' results in order. At most `at_once` jobs run concurrently."""
        results: list[Any] = [None] * len(jobs)
        waiting = iter(enumerate(jobs))

        async def worker() -> None:
            for index, job in waiting:
                results[index] = await job()

        futures = [self._net.call_soon_with_future(worker) for _ in range(min(at_once, len(jobs)))]
        for future in futures:
            await future
        return results

    async def pause(self, seconds: float) -> None:
        await self._net.sleep(min(seconds, self.remaining))

    async def _back_off(self, attempt: int) -> None:
        """Wait before a further attempt, each time twice as long. attempt: from 0."""
        if attempt:
            await self.pause(self.limits.backoff * 2 ** (attempt - 1))

    def close(self) -> None:
        """Closes every connection and the event loop."""
        for manager in self._managers:
            manager.close()
        self._net.drain()
        self._net.close()

    # -- Requests --------------------------------------------------------------------------------------------------

    async def ask(self, node: int, request: Any, code: Callable[[Any], int] = error_code) -> Any:
        """The answer of broker `node`. Raises Unread.

        code: returns the error code of an answer. After a retriable one the request is repeated.
        """
        if node in self._lost:
            raise Unread(self._lost[node].reason, connection=True)
        try:
            answer = await self._repeated(self._manager, node, request, code)
        except Unread as failure:
            if failure.connection:
                self._lost[node] = failure
            raise
        self._answered.add(node)
        return answer

    def why_lost(self, node: int) -> str | None:
        """Why broker `node` couldn't be reached; None if there was no request, or an answer."""
        return self._lost[node].reason if node in self._lost else None

    def has_answered(self, node: int) -> bool:
        """Did broker `node` answer any request?"""
        return node in self._answered

    def forget(self, nodes: Iterable[int]) -> None:
        """Allow requests again to brokers that couldn't be reached."""
        for node in nodes:
            self._lost.pop(node, None)

    async def _repeated(
        self, manager: KafkaConnectionManager, node: int, request: Any, code: Callable[[Any], int], seconds: float = 0
    ) -> Any:
        """Send until there is an answer without a retriable error. A broker that doesn't answer in time gets one request.

        seconds: the time for each answer; 0 for the request timeout.
        """
        for attempt in range(self.limits.attempts):
            await self._back_off(attempt)
            try:
                response = await self._send(manager, node, request, seconds)
            except (kafka_errors.KafkaError, OSError) as exc:
                failure = unread(exc)
                if not failure.connection or not self.remaining:
                    raise failure from exc
                if failure.reason.startswith("REQUEST_TIMED_OUT") or "timed out" in failure.reason:
                    break
            else:
                error = code(response)
                if not error:
                    return response
                failure = Unread(error_name(error))
                if not is_retriable(error) or not self.remaining:
                    break
        raise failure

    async def ask_any(self, request: Any, code: Callable[[Any], int] = error_code, *, second: bool = False) -> Any:
        """The answer of the first broker of `nodes` that can be reached, the same one as long as it answers.

        second: begin with the second broker, whose view of the metadata may differ.
        """
        failure = Unread("BROKER_NOT_AVAILABLE", connection=True)
        for node in self.nodes[second:] + self.nodes[:second]:
            try:
                return await self.ask(node, request, code)
            except Unread as exc:
                failure = exc
                if not exc.connection or not self.remaining:
                    break
        raise failure

    async def ask_controller(self, request: Any, code: Callable[[Any], int] = error_code) -> Any:
        """The active controller's answer to a request that brokers forward (KIP-590). Raises Unread.

        A broker that can't reach a controller doesn't answer, and it answers a connection's requests in order. So these
        requests have their own connections. If no broker gets an answer in time, other calls fail at once: those that are
        running, and later ones, unless `controllers` are known, of which one leads.
        """
        if self.controllers:
            return await self.ask_addresses(self.controllers, request, code)
        if self.no_controller:
            raise self.no_controller
        asked: set[int] = set()
        failure = Unread("BROKER_NOT_AVAILABLE", connection=True)

        async def forward() -> Any:
            nonlocal failure
            if (node := self._forwarder(asked)) is None:
                raise failure
            asked.add(node)
            try:
                answer = await self._repeated(self._forwarding, node, request, code, self.limits.controller_timeout)
            except Unread as exc:
                failure = exc
                raise
            self.forwarded_by = node
            return answer

        result = Future()
        self._forwarded.add(result)
        try:
            jobs = [forward] * min(FORWARDERS, len(self.nodes) - len(self._lost.keys() & set(self.nodes)))
            return await self._first(jobs, PATIENCE, lambda exc: not _reached_no_controller(exc), result)
        except Unread as exc:
            if not _reached_no_controller(exc):
                raise
            if self.no_controller is None:
                self.no_controller = Unread(f"{exc.reason}: no broker reaches a controller")
                for waiting in self._forwarded - {result}:
                    if not waiting.is_done:
                        waiting.failure(self.no_controller)
            raise self.no_controller from exc
        finally:
            self._forwarded.discard(result)

    def _forwarder(self, asked: set[int]) -> int | None:
        """The next broker that can be reached, as far as is known. Brokers that have answered come first."""
        nodes = [node for node in self.nodes if node not in self._lost and node not in asked]
        return min(nodes, key=lambda node: node not in self._answered, default=None)

    async def _first(
        self,
        jobs: Sequence[Job],
        patience: float,
        decides: Callable[[Exception], bool],
        result: Future | None = None,
    ) -> Any:
        """The result of the first job that succeeds. The others begin `patience` seconds after the first one.

        decides: whether the failure of a job is the result. If all jobs fail, the last failure is.
        result: ends the wait if it is done before.
        """
        result, failed = Future() if result is None else result, 0

        async def run(job: Job, pause: float) -> None:
            nonlocal failed
            if pause:
                await self.pause(pause)
            if result.is_done:
                return
            try:
                value = await job()
            except Exception as exc:
                failed += 1
                if not result.is_done and (decides(exc) or failed == len(jobs)):
                    result.failure(exc)
            else:
                if not result.is_done:
                    result.success(value)

        if not jobs:
            raise Unread("BROKER_NOT_AVAILABLE", connection=True)
        for turn, job in enumerate(jobs):
            self._net.call_soon_with_future(partial(run, job, patience if turn else 0))
        return await result

    async def ask_addresses(
        self, addresses: Sequence[tuple[str, int]], request: Any, code: Callable[[Any], int]
    ) -> Any:
        """The first answer without an error from these addresses, which are asked at once, for PATIENCE seconds each."""
        jobs = [partial(self.ask_address, host, port, request, code, PATIENCE) for host, port in addresses]
        return await self._first(jobs, 0, lambda exc: False)

    async def ask_address(
        self, host: str, port: int, request: Any, code: Callable[[Any], int], seconds: float = 0
    ) -> Any:
        """The answer from an address that isn't a registered broker (a controller's listener). There is one attempt.

        seconds: as in `_send`.
        """
        manager = self._new_manager([f"[{host}]:{port}" if ":" in host else f"{host}:{port}"])
        try:
            response = await self._send(manager, manager.cluster.bootstrap_brokers()[0].node_id, request, seconds)
        except (kafka_errors.KafkaError, OSError) as exc:
            raise unread(exc) from exc
        if error := code(response):
            raise Unread(error_name(error))
        return response

    async def _send(self, manager: KafkaConnectionManager, node: object, request: Any, seconds: float = 0) -> Any:
        """Send once. Waits during reconnection backoffs and broker throttling, which are not failures.

        seconds: the time for the answer; 0 for the request timeout and the time to connect.
        """
        until = time.monotonic() + min(seconds or self.request_timeout + self.connect_timeout, self.remaining)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise kafka_errors.KafkaTimeoutError(f"no answer within {self.request_timeout:g} s")
            try:
                # manager.send() would start its own metadata refresh on a lost connection.
                connection = manager.get_connection(node, refresh_metadata_on_err=False)
                allow(connection, largest_answer(request))
                # Send a copy, because the connection sets the version that its broker supports.
                sent = copy.copy(request)
                answer = connection.send_request(sent, request_timeout_ms=left * 1000)
                response = await manager.wait_for(answer, left * 1000)
                self.requests[type(sent).__name__.removesuffix("Request"), sent.API_KEY, sent.API_VERSION] += 1
                return response
            except kafka_errors.KafkaConnectionError as exc:
                if self._closed_while_authenticating(connection):
                    raise kafka_errors.SaslAuthenticationFailedError("closed by the broker") from exc
                raise
            except kafka_errors.NodeNotReadyError:
                await self._net.sleep(min(left, max(0.05, manager.connection_delay(node))))
            except (kafka_errors.KafkaError, OSError):
                raise
            except Exception as exc:
                if not connection.init_future.failed() or connection.init_future.exception is not exc:
                    raise
                if connection.broker_version_data is None:  # kafka-python couldn't decode the answer
                    raise kafka_errors.KafkaProtocolError("the answer isn't Kafka's protocol") from exc
                raise CannotAuthenticate(f"{type(exc).__name__}: {exc}") from exc

    def _closed_while_authenticating(self, connection: Any) -> bool:
        """Whether the broker closed the connection between ApiVersions and the end of SASL.

        A refusal looks like this: brokers send their answer and close at once, and kafka-python drops bytes that arrive
        together with the end of the stream.
        """
        sasl = self._config["security_protocol"].startswith("SASL")
        return sasl and connection.broker_version_data is not None and connection.init_future.failed()

    # -- Bootstrap -------------------------------------------------------------------------------------------------

    async def bootstrap(self) -> Any:
        """Connect through the first bootstrap server that answers. Returns its Metadata (without topics).

        Raises Unreachable, which names every server with its reason.
        """
        failures: dict[str, Exception] = {}

        async def ask(server: Any) -> Any:
            try:
                return await self._metadata(server)
            except (kafka_errors.KafkaError, OSError, Unread) as exc:
                failures[f"{server.host}:{server.port}"] = exc
                raise

        for attempt in range(self.limits.attempts):
            await self._back_off(attempt)
            failures.clear()
            jobs = [partial(ask, server) for server in self._manager.cluster.bootstrap_brokers()]
            try:
                return self._started(await self._first(jobs, PATIENCE, lambda exc: False))
            except (kafka_errors.KafkaError, OSError, Unread):
                if not self.remaining or all(isinstance(failure, AUTHENTICATION) for failure in failures.values()):
                    break
        explanations = {server: explained(exc) for server, exc in failures.items()}
        happened = "; ".join(f"{server}: {what}" for server, (what, _) in explanations.items())
        checks = "; ".join(dict.fromkeys(check for _, check in explanations.values()))
        raise Unreachable(f"cluster {self.cluster} can't be reached: {happened}. Check {checks}.")

    async def _metadata(self, server: Any) -> Any:
        request = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        # A server that was asked before may be a controller, which knows other requests.
        self._manager.broker_version_data = None
        response = await self._send(self._manager, server.node_id, request)
        if not response.brokers:
            raise Unread("BROKER_NOT_AVAILABLE: it knows no live broker")
        return response

    def _started(self, metadata: Any) -> Any:
        """Register the brokers of the first answer, and return it."""
        for manager in (self._manager, self._forwarding):
            manager.cluster.update_metadata(metadata)
            # Each connection negotiates its versions, because brokers differ during an upgrade.
            manager.broker_version_data = None
        self.nodes = sorted(broker.node_id for broker in metadata.brokers)
        return metadata
