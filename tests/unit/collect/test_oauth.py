"""The token endpoint: where client id and secret go, and how little an answer may cost."""

from __future__ import annotations

import http.server
import json
import socket
import threading

import pytest

from durability.collect import oauth
from durability.collect.reasons import CannotAuthenticate
from durability.collect.settings import client_config
from durability.errors import BadInput
from durability.runtime.processes import free_port

SECRET = "hunter2-very-secret"


def settings(url: str, **more: str) -> dict:
    keys = {
        "bootstrap.servers": "kafka-1:9093",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.client.id": "auditor",
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.token.endpoint.url": url,
    }
    return keys | {f"sasl.oauthbearer.{key.replace('_', '.')}": value for key, value in more.items()}


def provider(url: str, **more: str):
    return client_config(settings(url, **more))["sasl_oauth_token_provider"]


@pytest.fixture
def endpoint():
    """A token endpoint on this host: `answer(status, headers, body)` sets what it says; `asked` has its requests."""
    asked: list[str] = []
    said: list = [200, {}, b"{}"]

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            status, headers, body = said
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()

    def answer(status=200, headers=None, body=b""):
        said[:] = [status, headers or {}, body]
        return f"http://127.0.0.1:{server.server_port}/token"

    answer.asked = asked
    yield answer
    server.shutdown()
    server.server_close()
    thread.join()


def refusal(url: str) -> str:
    with pytest.raises(CannotAuthenticate) as caught:
        provider(url).token()
    text = str(caught.value)
    assert SECRET not in text and "auditor" not in text and caught.value.__cause__ is None
    return text


def test_a_token_is_asked_for_once_while_it_is_fresh(endpoint):
    tokens = provider(endpoint(body=json.dumps({"access_token": "abc.def-1~=", "expires_in": 3600}).encode()))
    assert (tokens.token(), tokens.token()) == ("abc.def-1~=", "abc.def-1~=")
    assert endpoint.asked == ["/token"]


def test_a_redirect_is_not_followed(endpoint):
    url = endpoint(307, {"Location": "/elsewhere"})
    assert "the token endpoint answered 307 (redirects aren't followed)" in refusal(url)
    assert "the token endpoint answered 302 (redirects" in refusal(endpoint(302, {"Location": "/elsewhere"}))
    assert endpoint.asked == ["/token", "/token"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"no JSON",
        b'{"access_token": "a\\u0001auth=Bearer b"}',
        b'{"access_token": {}}',
        b'{"access_token": "a", "expires_in": "soon"}',
        b"[" * 100_000,
        b'{"access_token": "a"}' + b" " * oauth.LARGEST,
    ],
)
def test_an_answer_without_a_token_or_too_large_is_refused(endpoint, body):
    assert refusal(endpoint(body=body)) == "CannotAuthenticate: the token endpoint returned no token"


def test_an_answer_that_comes_byte_by_byte_is_cut_at_the_deadline(monkeypatch):
    """Each byte begins the socket's own timeout again, so without a deadline this never ends."""
    monkeypatch.setattr(oauth, "TIMEOUT", 0.5)
    ended = threading.Event()

    def drip(server):
        connection, _ = server.accept()
        try:
            while not ended.wait(0.05):
                connection.sendall(b"H")
        except OSError:
            pass
        connection.close()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,))
        thread.start()
        watch = threading.Timer(30, ended.set)
        watch.start()
        try:
            said = refusal(f"http://127.0.0.1:{server.getsockname()[1]}/token")
        finally:
            watch.cancel()
            ended.set()
            thread.join()
    assert said == "CannotAuthenticate: the token endpoint didn't answer within 0.5 s"


def test_an_endpoint_that_is_down_says_so():
    port = free_port()
    assert "the token endpoint can't be reached: connection refused" in refusal(f"http://127.0.0.1:{port}/token")


def test_an_endpoint_without_tls_needs_a_word():
    key = "sasl.oauthbearer.token.endpoint.url"
    for url in ("http://idp.example.org/token", "http://10.0.0.1:8080/token"):
        with pytest.raises(BadInput, match=f"{key}: expected an https URL.*allow.http=true") as caught:
            provider(url)
        assert SECRET not in str(caught.value)
        assert provider(url, allow_http="true")
    for url in ("https://idp.example.org/token", "http://localhost/token", "http://[::1]:80/token"):
        assert provider(url)
    for url in ("ftp://idp/token", "idp/token", "https://", "https://idp:port/", "file:///etc/passwd"):
        with pytest.raises(BadInput, match=f"{key}: expected an https URL"):
            provider(url)
    with pytest.raises(BadInput, match=r"sasl\.oauthbearer\.allow\.http: expected true or false"):
        provider("https://idp/token", allow_http="yes")
