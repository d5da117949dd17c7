"""What a peer announces costs no memory beyond what an answer to the request can have."""

from __future__ import annotations

import socket
import threading

import pytest
from kafka.protocol.metadata import ApiVersionsResponse, MetadataRequest, MetadataResponse

from durability.collect import Limits
from durability.collect.reasons import Unread
from durability.collect.wire import connected
from durability.errors import Unreachable

QUICK = Limits(deadline=60, connect_timeout=20, request_timeout=20, attempts=1)
ANNOUNCED = 499_000_000
KEY = ApiVersionsResponse.ApiVersion
VERSIONS = ApiVersionsResponse(
    version=4, error_code=0, api_keys=[KEY(api_key=k, min_version=0, max_version=1) for k in (3, 18)]
)


def metadata(port: int, topics: int = 0) -> MetadataResponse:
    broker = MetadataResponse.MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port, rack=None)
    topic = MetadataResponse.MetadataResponseTopic
    names = (f"{number:0200}" for number in range(topics))
    rows = [topic(error_code=0, name=name, is_internal=False, partitions=[]) for name in names]
    return MetadataResponse(version=1, brokers=[broker], controller_id=1, topics=rows)


@pytest.fixture
def broker():
    """A peer that gives each connection the same answers in turn; a number is announced and nothing follows."""
    server = socket.create_server(("127.0.0.1", 0))
    answers: list = []
    threads = []

    def serve(connection):
        stream = connection.makefile("rwb")
        for answer in answers:
            size = int.from_bytes(stream.read(4), "big")
            request = stream.read(size)
            if isinstance(answer, int):
                stream.write(answer.to_bytes(4, "big") + request[4:8] + bytes(100))
            else:
                body = request[4:8] + answer.encode()
                stream.write(len(body).to_bytes(4, "big") + body)
            stream.flush()
        stream.read()  # until the client hangs up
        stream.close()
        connection.close()

    def loop():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=serve, args=(connection,)))
            threads[-1].start()

    acceptor = threading.Thread(target=loop)
    acceptor.start()
    yield server.getsockname()[1], answers
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    for thread in [acceptor, *threads]:
        thread.join()


def run(port: int, work):
    with connected("eu", {"bootstrap.servers": f"127.0.0.1:{port}"}, QUICK) as wire:
        return wire.run(lambda: work(wire))


def test_a_large_answer_that_is_announced_before_authentication_is_refused(broker):
    port, answers = broker
    answers.append(ANNOUNCED)
    with pytest.raises(Unreachable, match="its answer isn't Kafka's protocol"):
        run(port, lambda wire: wire.bootstrap())


@pytest.mark.parametrize("size", [ANNOUNCED, 17 << 20])
def test_an_answer_larger_than_what_was_asked_for_is_refused(broker, size):
    port, answers = broker
    answers += [VERSIONS, size]
    with pytest.raises(Unreachable, match="its answer isn't Kafka's protocol"):
        run(port, lambda wire: wire.bootstrap())


def test_an_answer_beyond_a_mebibyte_is_read_once_the_peer_has_authenticated(broker):
    port, answers = broker
    answers += [VERSIONS, metadata(port, topics=10_000)]
    got = run(port, lambda wire: wire._metadata(wire._manager.cluster.bootstrap_brokers()[0]))
    assert len(got.topics) == 10_000


def test_an_answer_too_large_has_a_reason_of_its_own(broker):
    port, answers = broker
    answers += [VERSIONS, metadata(port)]

    async def work(wire):
        await wire.bootstrap()
        answers[1:] = [ANNOUNCED]
        with pytest.raises(Unread) as caught:
            await wire.ask(1, MetadataRequest(topics=None))
        return caught.value.reason

    assert run(port, work) == "CORRUPT_MESSAGE: the answer is larger than one to this request can be"
