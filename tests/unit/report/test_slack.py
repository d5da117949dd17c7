"""The delivery of messages to a server that is busy, broken or absent."""

from __future__ import annotations

import json
import logging
import socket
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from durability.errors import AuditError, Rejected
from durability.report.text import digest, slack
from tests.support.report_cases import finding, findings_json

SECRET = "T000/B000/supersecret"


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    """An HTTP server that gives the answers queued in `answers`, in order, and 200 after them."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            self.server.received.append(json.loads(body))
            status, headers, *body = self.server.answers.pop(0) if self.server.answers else (200, {})
            text = b"ok" if status == 200 else b"invalid_payload" if status == 400 else b"<html>sorry</html>"
            text = body[0] if body else text
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            for byte in text:
                self.wfile.write(bytes([byte]))
                self.wfile.flush()
                self.server.hurry.wait(self.server.pause)

        def do_GET(self):
            self.server.received.append("GET")
            self.send_response(200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, *args):
            """Quiet."""

    with HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        httpd.answers, httpd.received, httpd.pause, httpd.hurry = [], [], 0, threading.Event()
        httpd.url = f"http://127.0.0.1:{httpd.server_port}/services/{SECRET}"
        thread = threading.Thread(target=httpd.serve_forever, args=(0.02,))
        thread.start()
        yield httpd
        httpd.hurry.set()
        httpd.shutdown()
        thread.join()


@pytest.fixture
def waits(monkeypatch):
    """The seconds that the sender slept, without sleeping them; other threads sleep on."""
    slept, sender, really = [], threading.current_thread(), time.sleep
    monkeypatch.setattr("time.sleep", lambda s: slept.append(s) if threading.current_thread() is sender else really(s))
    return slept


def test_a_digest_arrives_as_it_was_made(server):
    payload = digest.payload(digest.read(findings_json([finding("a", "replication-factor")])))
    slack.send(server.url, payload)
    assert server.received == [payload]


def test_a_busy_slack_is_asked_again_when_it_says(server, waits):
    server.answers = [(429, {"Retry-After": "7"})]
    slack.send(server.url, {"text": "x"})
    assert len(server.received) == 2
    assert waits == [7]


@pytest.mark.parametrize("retry_after", ["86400", "Fri, 31 Dec 2100 23:59:59 GMT", None])
def test_a_wait_is_never_longer_than_allowed(server, waits, retry_after):
    server.answers = [(429, {"Retry-After": retry_after} if retry_after else {})]
    slack.send(server.url, {"text": "x"})
    assert len(server.received) == 2
    assert max(waits) <= slack.LONGEST


@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_a_server_error_is_retried_with_growing_waits_and_then_given_up(server, waits, status):
    server.answers = [(status, {})] * 20
    with pytest.raises(slack.NotificationFailed, match=f"HTTP {status}"):
        slack.send(server.url, {"text": "x"})
    assert len(server.received) == 5
    assert [0.25 * 2**n <= wait <= 0.75 * 2**n for n, wait in enumerate(waits)] == [True] * 4


def test_busy_and_broken_share_one_bound(server, waits):
    server.answers = [(500, {}), (429, {"Retry-After": "1"}), (503, {}), (429, {}), (500, {}), (500, {})]
    with pytest.raises(slack.NotificationFailed):
        slack.send(server.url, {"text": "x"})
    assert len(server.received) == 5


def test_a_refusal_is_not_repeated_and_names_slacks_word(server, waits):
    server.answers = [(400, {})]
    with pytest.raises(Rejected, match="HTTP 400, invalid_payload"):
        slack.send(server.url, {"text": "x"})
    assert len(server.received) == 1 and not waits


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(server, waits, status):
    server.answers = [(status, {"Location": server.url})]
    with pytest.raises(slack.NotificationFailed, match=f"HTTP {status}"):
        slack.send(server.url, {"text": "x"})
    assert server.received == [{"text": "x"}]


@pytest.mark.parametrize("body", [b"ok\n", b'{"ok": true}', b'{"success": true}'])
def test_the_answers_of_slack_and_those_that_imitate_it_are_accepted(server, body):
    server.answers = [(200, {"Content-Length": str(len(body))}, body)]
    slack.send(server.url, {"text": "x"})


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b'{"ok": false}', b"[]", b'"ok"', b"\xff"])
def test_an_answer_that_is_not_slacks_is_no_delivery(server, waits, body):
    server.answers = [(200, {"Content-Length": str(len(body))}, body)]
    with pytest.raises(slack.NotificationFailed, match="a proxy may have answered"):
        slack.send(server.url, {"text": "x"})
    assert len(server.received) == 1


def test_an_answer_that_comes_byte_by_byte_is_not_waited_for(server, waits, monkeypatch):
    monkeypatch.setattr(slack, "TIMEOUT", 0.3)
    server.pause = 0.2
    server.answers = [(200, {"Content-Length": "50"}, b"ok" * 25)]
    with pytest.raises(slack.NotificationFailed, match="after 1 attempt: TimeoutError"):
        slack.send(server.url, {"text": "x"}, seconds=0)


def test_a_dead_port_is_tried_again_and_fails_without_telling_the_address(waits, caplog):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/services/{SECRET}"
    with caplog.at_level(logging.DEBUG), pytest.raises(slack.NotificationFailed) as failure:
        slack.send(url, {"text": "x"})
    assert len(waits) == 4
    assert isinstance(failure.value, AuditError)
    assert "ConnectionRefusedError" in str(failure.value)
    assert failure.value.__suppress_context__
    assert SECRET not in str(failure.value) + caplog.text


@pytest.mark.parametrize("url", [f"ftp://x/{SECRET}", SECRET, f"http://[{SECRET}", f"https://ex ample/{SECRET}", ""])
def test_an_address_that_is_none_fails_without_being_told(url, waits):
    with pytest.raises(slack.NotificationFailed) as failure:
        slack.send(url, {"text": "x"})
    assert SECRET not in str(failure.value)


def test_the_address_is_never_logged(server, waits, caplog):
    server.answers = [(500, {}), (429, {"Retry-After": "1"})]
    with caplog.at_level(logging.DEBUG):
        slack.send(server.url, {"text": "x"})
    assert "supersecret" not in caplog.text
