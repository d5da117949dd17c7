"""Requests to a cluster: kafka-python's connection manager, driven by the calling thread; no thread of its own.

kafka-python's admin client is not used: it decodes members' user data away, stops at the first page, fails on 3.6 in
`describe_cluster` and says "unable to bootstrap" whatever the cause.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import kafka.errors as kafka_errors
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.metadata import MetadataRequest

from durability.collect.limits import Limits
from durability.collect.reasons import Unread, connection_words, error_name, is_authentication, is_connection, reason_of
from durability.errors import Unreachable

# Everything it would log reaches us as an exception, and its debug output holds SASL bytes.
logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)

Build = Callable[[], Any]


class CannotAuthenticate(kafka_errors.KafkaError):
    """This side can't begin to authenticate: no library, credentials or region. The text says why, without secrets."""


class Wire:
    """Connections to one cluster.

    Coroutines run on `run`; several at once through `gather`. Every request is bounded by the request timeout and by
    the deadline of the whole; a broker that can't be talked to is asked no more.
    """

    def __init__(self, config: dict[str, Any], limits: Limits):
        self.limits = limits
        self.deadline = time.monotonic() + limits.deadline
        self.request_timeout = config.pop("request_timeout_ms", limits.request_timeout * 1000) / 1000
        setup = config.pop("socket_connection_setup_timeout_ms", limits.connect_timeout * 1000)
        self._config = {
            **config,
            "request_timeout_ms": int(self.request_timeout * 1000),
            "socket_connection_setup_timeout_ms": int(setup),
            "socket_connection_setup_timeout_max_ms": int(setup),
            "reconnect_backoff_max_ms": 1000,
            "receive_message_max_bytes": 500_000_000,
            "max_in_flight_requests_per_connection": 100,
        }
        self.connect_timeout = setup / 1000
        self._net = NetworkSelector(client_id=config["client_id"], slow_task_threshold_secs=0)
        self._managers: list[KafkaConnectionManager] = []
        self._manager = self._new_manager(config["bootstrap_servers"])
        self._lost: dict[object, Unread] = {}
        self.nodes: list[int] = []  # live brokers, by id

    def _new_manager(self, servers: Sequence[str]) -> KafkaConnectionManager:
        manager = KafkaConnectionManager(self._net, **{**self._config, "bootstrap_servers": list(servers)})
        self._managers.append(manager)
        return manager

    # -- Running ---------------------------------------------------------------------------------------------------

    @property
    def remaining(self) -> float:
        """Seconds until the deadline, never negative."""
        return max(0.0, self.deadline - time.monotonic())

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Drives the event loop in this thread until `work` has ended."""
        future = self._net.call_soon_with_future(work)
        # Every wait inside is bounded by the deadline; the margin is for the work between the last wait and the end.
        self._net.poll(timeout_ms=(self.remaining + 60) * 1000, future=future)
        if not future.is_done:
            raise Unread("REQUEST_TIMED_OUT: the collection's deadline has passed")
        if future.exception is not None:
            raise future.exception
        return future.value

    async def gather(self, jobs: Sequence[Callable[[], Awaitable[Any]]]) -> list[Any]:
        """The jobs' results in their order, at most `limits.width` under way at once."""
        results: list[Any] = [None] * len(jobs)
        waiting = iter(enumerate(jobs))

        async def worker() -> None:
            for index, job in waiting:
                results[index] = await job()

        futures = [self._net.call_soon_with_future(worker) for _ in range(min(self.limits.width, len(jobs)))]
        for future in futures:
            await future
        return results

    async def pause(self, seconds: float) -> None:
        await self._net.sleep(min(seconds, self.remaining))

    def close(self) -> None:
        """Closes every connection and the event loop."""
        for manager in self._managers:
            manager.close()
        self._net.drain()
        self._net.close()

    # -- Requests --------------------------------------------------------------------------------------------------

    async def ask(self, node: object, build: Build) -> Any:
        """The answer of `node` (broker id) to the request that `build` makes anew for each attempt.

        Raises Unread. Error codes inside the answer are the caller's to read; see `checked`.
        """
        if node in self._lost:
            raise Unread(self._lost[node].reason, connection=True)
        backoff, timeouts = self.limits.backoff, 0
        for attempt in range(self.limits.attempts):
            if attempt:
                await self.pause(backoff)
                backoff *= 2
            try:
                return await self._send(self._manager, node, build())
            except (kafka_errors.KafkaError, OSError) as exc:
                failure = Unread(reason_of(exc), connection=is_connection(exc))
                if not failure.connection or not self.remaining:
                    raise failure from exc
                timeouts += failure.reason.startswith("REQUEST_TIMED_OUT") or "timed out" in failure.reason
                if timeouts > 1:  # a broker that hangs would cost a full timeout each time
                    break
        self._lost[node] = failure
        raise failure

    async def checked(self, node: object, build: Build, code: Callable[[Any], int]) -> Any:
        """`ask`, where `code` picks the answer's error code: 0 is an answer, a retriable one is asked again."""
        backoff = self.limits.backoff
        for attempt in range(self.limits.attempts):
            if attempt:
                await self.pause(backoff)
                backoff *= 2
            response = await self.ask(node, build)
            error = code(response)
            if not error:
                return response
            known = kafka_errors.kafka_errors.get(error)
            if known is None or not known.retriable or not self.remaining:
                break
        raise Unread(error_name(error))

    async def ask_any(self, build: Build, code: Callable[[Any], int] | None = None, *, second: bool = False) -> Any:
        """The answer of the first broker of `nodes` that can be talked to: the same one as long as it answers.

        code: as in `checked`. second: begin with the second broker, to hear another's view of the metadata.
        """
        failure = Unread("BROKER_NOT_AVAILABLE", connection=True)
        for node in self.nodes[second:] + self.nodes[:second]:
            try:
                return await (self.ask(node, build) if code is None else self.checked(node, build, code))
            except Unread as exc:
                failure = exc
                if not exc.connection or not self.remaining:
                    break
        raise failure

    async def _send(self, manager: KafkaConnectionManager, node: object, request: Any) -> Any:
        """Sends once; waits out reconnection backoffs and broker throttling, which are not failures."""
        until = time.monotonic() + min(self.request_timeout + self.connect_timeout, self.remaining)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                raise kafka_errors.KafkaTimeoutError(f"no answer within {self.request_timeout:g} s")
            try:
                # Not manager.send(): on a lost connection that would start a metadata refresh of its own.
                connection = manager.get_connection(node, refresh_metadata_on_err=False)
                answer = connection.send_request(request, request_timeout_ms=left * 1000)
                return await manager.wait_for(answer, left * 1000)
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
                if connection.broker_version_data is None:  # kafka-python stumbled over what was answered
                    raise kafka_errors.KafkaProtocolError("the answer isn't Kafka's protocol") from exc
                raise CannotAuthenticate(f"{type(exc).__name__}: {exc}") from exc

    def _closed_while_authenticating(self, connection: Any) -> bool:
        """Whether the broker hung up between ApiVersions and the end of SASL.

        That is how a refusal looks: kafka-python drops bytes that arrive together with the end of the stream, and
        brokers send their answer and close at once.
        """
        sasl = self._config["security_protocol"].startswith("SASL")
        return sasl and connection.broker_version_data is not None and connection.init_future.failed()

    # -- Bootstrap -------------------------------------------------------------------------------------------------

    async def bootstrap(self, cluster_id: str) -> Any:
        """Connects through the first bootstrap server that answers; returns its Metadata (no topics).

        Raises Unreachable, which names every server with its reason.
        """
        backoff = self.limits.backoff
        failures: dict[str, BaseException] = {}
        for attempt in range(self.limits.attempts):
            if attempt:
                await self.pause(backoff)
                backoff *= 2
            failures = {}
            for server in self._manager.cluster.bootstrap_brokers():
                try:
                    return await self._bootstrap_from(server)
                except (kafka_errors.KafkaError, OSError, Unread) as exc:
                    failures[f"{server.host}:{server.port}"] = exc
            if (
                all(is_authentication(e) or isinstance(e, CannotAuthenticate) for e in failures.values())
                or not self.remaining
            ):
                break
        raise _unreachable(cluster_id, failures)

    async def _bootstrap_from(self, server: Any) -> Any:
        build = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        response = await self._send(self._manager, server.node_id, build)
        if not response.brokers:
            raise Unread("BROKER_NOT_AVAILABLE: it knows no live broker")
        self._manager.cluster.update_metadata(response)
        self.nodes = sorted(broker.node_id for broker in response.brokers)
        # Each connection negotiates its own versions: brokers of a cluster in upgrade differ.
        self._manager.broker_version_data = None
        return response

    async def ask_address(self, host: str, port: int, build: Build) -> Any:
        """One request to an address that is no registered broker (a controller's listener); one attempt."""
        manager = self._new_manager([f"[{host}]:{port}" if ":" in host else f"{host}:{port}"])
        try:
            return await self._send(manager, manager.cluster.bootstrap_brokers()[0].node_id, build())
        except (kafka_errors.KafkaError, OSError) as exc:
            raise Unread(reason_of(exc), connection=is_connection(exc)) from exc


def _unreachable(cluster_id: str, failures: dict[str, BaseException]) -> Unreachable:
    said, checks = [], []
    for server, exc in failures.items():
        happened, check = _words(exc)
        said.append(f"{server}: {happened}")
        if check not in checks:
            checks.append(check)
    return Unreachable(
        f"cluster {cluster_id} can't be reached: {'; '.join(said) or 'bootstrap.servers is empty'}. "
        f"Check {'; '.join(checks) or 'bootstrap.servers'}."
    )


def _words(exc: BaseException) -> tuple[str, str]:
    if isinstance(exc, kafka_errors.IllegalSaslStateError):
        return "authentication failed: this listener doesn't ask for it", "security.protocol against the listener's"
    if isinstance(exc, kafka_errors.UnsupportedSaslMechanismError):
        return "authentication failed: the broker doesn't offer this mechanism", "sasl.mechanism"
    if isinstance(exc, kafka_errors.KafkaProtocolError):
        return "its answer isn't Kafka's protocol", "that the port belongs to a broker, and security.protocol"
    if isinstance(exc, (CannotAuthenticate, kafka_errors.KafkaConfigurationError)):
        checks = "what sasl.mechanism needs on this host: its library, credentials and, for AWS_MSK_IAM, a region"
        return f"authentication can't begin ({exc.args[0]})", checks
    if is_authentication(exc):
        checks = "sasl.mechanism and the credentials (sasl.username, sasl.password)"
        return "authentication failed: the broker refused the credentials", checks
    if isinstance(exc, Unread):
        return exc.reason, "that the brokers are up"
    if isinstance(exc, kafka_errors.IncompatibleBrokerVersion):
        return "it doesn't serve metadata", "that the port belongs to a broker, not to a controller"
    if isinstance(exc, kafka_errors.AuthorizationError):
        return reason_of(exc), "the principal's ACLs"
    if isinstance(exc, kafka_errors.KafkaTimeoutError):
        return connection_words("timed out")
    return connection_words(str(exc))
