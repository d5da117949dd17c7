"""A cluster that can't be reached: said with its name, the address, the reason and what to check; nothing is left."""

from __future__ import annotations

import socket
import threading

import pytest

from durability.collect import Limits, collect
from durability.errors import BadInput, Unreachable
from durability.runtime.processes import free_port

QUICK = Limits(connect_timeout=0.5, attempts=2, backoff=0.05)


@pytest.fixture
def listener():
    """A listening socket and a list of what to do with connections: `serve(handler)`."""
    server = socket.create_server(("127.0.0.1", 0))
    threads = []

    def serve(handler):
        def loop():
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                handler(connection)

        threads.append(threading.Thread(target=loop))
        threads[-1].start()
        return f"127.0.0.1:{server.getsockname()[1]}"

    yield serve
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    for thread in threads:
        thread.join()


def said(settings: dict) -> str:
    before = set(threading.enumerate())
    with pytest.raises(Unreachable) as error:
        collect("eu", settings, limits=QUICK)
    assert set(threading.enumerate()) <= before
    text = str(error.value)
    assert text.startswith("cluster eu can't be reached: ")
    assert "Traceback" not in text
    return text


def test_refused():
    port = free_port()
    text = said({"bootstrap.servers": f"127.0.0.1:{port}"})
    assert f"127.0.0.1:{port}: connection refused. Check that a broker listens" in text


def test_a_name_that_does_not_resolve():
    assert "kafka.invalid:9092: the host name can't be resolved" in said({"bootstrap.servers": "kafka.invalid:9092"})


def test_every_server_is_named():
    text = said({"bootstrap.servers": "127.0.0.1:1,kafka.invalid:9092"})
    assert "127.0.0.1:1: connection refused" in text
    assert "kafka.invalid:9092: the host name can't be resolved" in text


def test_a_server_that_never_answers_is_given_up_in_time(listener):
    held = []
    address = listener(held.append)
    assert "timed out" in said({"bootstrap.servers": address})
    for connection in held:
        connection.close()


def test_a_tls_handshake_that_never_ends_is_given_up_in_time(listener):
    held = []
    address = listener(held.append)
    assert "timed out" in said({"bootstrap.servers": address, "security.protocol": "SSL", "request.timeout.ms": 500})
    for connection in held:
        connection.close()


def test_something_that_is_no_kafka(listener):
    def answer(connection):
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.close()

    assert "Check" in said({"bootstrap.servers": listener(answer)})


def test_an_answer_that_is_no_api_versions(listener):
    def answer(connection):
        correlation = connection.recv(64)[8:12]
        connection.sendall(b"\x00\x00\x00\x08" + correlation + b"\x00\x00\x00\x00")
        connection.close()

    assert "Check" in said({"bootstrap.servers": listener(answer)})


def test_tls_against_plain_text(listener):
    def answer(connection):
        connection.sendall(b"\x00\x00\x00\x05plain")
        connection.close()

    text = said({"bootstrap.servers": listener(answer), "security.protocol": "SSL"})
    assert "TLS failed" in text
    assert "security.protocol" in text


def test_a_mechanism_that_this_host_cannot_use(listener, monkeypatch):
    """A broker that offers AWS_MSK_IAM, and a host with no AWS credentials."""
    from kafka.net import connection
    from kafka.protocol.metadata import ApiVersionsResponse
    from kafka.protocol.sasl import SaslHandshakeResponse

    class NoCredentials:
        def __init__(self, **_):
            raise RuntimeError("no credentials were found")

    monkeypatch.setattr(connection, "get_sasl_mechanism", lambda name: NoCredentials)
    key = ApiVersionsResponse.ApiVersion
    keys = [key(api_key=k, min_version=0, max_version=1) for k in (3, 17, 18, 36)]
    answers = (
        ApiVersionsResponse(version=4, error_code=0, api_keys=keys),
        SaslHandshakeResponse(version=1, error_code=0, mechanisms=["PLAIN"]),
    )

    def answer(connection):
        stream = connection.makefile("rwb")
        for response in answers:
            size = int.from_bytes(stream.read(4), "big")
            request = stream.read(size)
            body = request[4:8] + response.encode()
            stream.write(len(body).to_bytes(4, "big") + body)
            stream.flush()
        stream.read()  # until the client hangs up
        stream.close()
        connection.close()

    sasl = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "u"}
    text = said({"bootstrap.servers": listener(answer), **sasl, "sasl.password": "p"})
    assert "authentication can't begin (RuntimeError: no credentials were found)" in text


def test_wrong_settings_are_said_before_anything_is_connected():
    with pytest.raises(BadInput, match=r"the connection of cluster eu, sasl.pasword: unknown"):
        collect("eu", {"bootstrap.servers": "127.0.0.1:1", "sasl.pasword": "x"})
