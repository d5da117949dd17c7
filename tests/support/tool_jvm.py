"""Kafka's command-line tools in one JVM per release. A call in its own JVM takes 0.8 CPU seconds, mostly to load classes."""

from __future__ import annotations

import json
import os
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import NamedTuple

import pyspark
from py4j.java_gateway import CallbackServerParameters, GatewayParameters, JavaGateway
from py4j.protocol import Py4JError

from durability.embedded_kafka import tools
from durability.runtime import watchdog

CLIENT = """#!{python} -IS
import json, os, socket, sys
arguments = [os.path.abspath(a) if os.path.exists(a) else a for a in sys.argv[1:]]
with socket.socket(socket.AF_UNIX) as connection:
    connection.connect({address!r})
    connection.sendall(json.dumps([{version!r}, {main!r}, arguments]).encode() + b"\\n")
    status, out, err = json.loads(connection.makefile().read())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(status)
"""
"""A script that passes its arguments to a tool here. A file's name becomes absolute, because this JVM has its own folder."""


class Done(NamedTuple):
    """What a tool printed, and its exit status."""

    status: int
    out: str
    err: str


class _Exit:
    """Ends a tool instead of the JVM. done: what it had printed by then; None if it didn't ask for an end.

    A tool may catch the exception that ends it, print it, and ask for another status.
    """

    def __init__(self, printed: Callable[[], tuple[str, str]]):
        self.done: Done | None = None
        self._printed = printed

    def execute(self, status: int, _message: str | None) -> None:
        if self.done is None:
            self.done = Done(status, *self._printed())
        raise InterruptedError("the tool ends")

    class Java:
        implements = ("org.apache.kafka.common.utils.Exit$Procedure",)


class ToolJvm:
    """A JVM that runs one tool at a time."""

    def __init__(self, version: str):
        self._lock = threading.Lock()
        self._home = tempfile.TemporaryDirectory(prefix="durability-test-tools-")
        command = tools.java(version, "py4j.GatewayServer", heap_mb=256, home=Path(self._home.name))
        at = command.index("-cp")
        [py4j] = (Path(pyspark.__file__).parent / "jars").glob("py4j-*.jar")
        command[at + 1] += f":{py4j}"
        # A session of `durability.runtime.processes` that is closed must not end it.
        environment = {name: value for name, value in os.environ.items() if name != watchdog.MARK}
        self._process = subprocess.Popen(
            [*command, "--die-on-broken-pipe", "--enable-auth", "0"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
            text=True,
        )
        port, token = int(self._process.stdout.readline()), self._process.stdout.readline().strip()
        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token),
            callback_server_parameters=CallbackServerParameters(port=0, daemonize=True, daemonize_connections=True),
        )
        server = self._gateway.java_gateway_server
        server.resetCallbackClient(
            server.getCallbackClient().getAddress(), self._gateway.get_callback_server().get_listening_port()
        )
        # Scala's console and Log4j remember the streams that they find first.
        stream = self._gateway.jvm.java.io.ByteArrayOutputStream
        self._out, self._err = stream(), stream()
        printed = self._gateway.jvm.java.io.PrintStream
        self._gateway.jvm.System.setOut(printed(self._out, True))
        self._gateway.jvm.System.setErr(printed(self._err, True))

    def run(self, main: str, arguments: Sequence[str]) -> Done:
        """main: a full class name."""
        with self._lock:
            ended = _Exit(self._printed)
            given = self._gateway.new_array(self._gateway.jvm.java.lang.String, len(arguments))
            for number, argument in enumerate(arguments):
                given[number] = argument
            self._gateway.jvm.org.apache.kafka.common.utils.Exit.setExitProcedure(ended)
            status, said = 0, ""
            try:
                reduce(getattr, main.split("."), self._gateway.jvm).main(given)
            except Py4JError as error:  # PySpark, once imported, looks for Spark's classes in an exception of Java
                status, said = 1, str(error)
            out, err = self._printed()
            self._out.reset()
            self._err.reset()
            return ended.done or Done(status, out, err + said)

    def _printed(self) -> tuple[str, str]:
        return self._out.toString(), self._err.toString()

    def close(self) -> None:
        self._gateway.shutdown()
        self._process.stdin.close()
        self._process.wait(60)
        self._home.cleanup()


_LOCK = threading.Lock()
_STARTED: dict[str, ToolJvm] = {}


def of(version: str) -> ToolJvm:
    """The JVM of this process for a release. It ends with the process."""
    with _LOCK:
        if version not in _STARTED:
            _STARTED[version] = ToolJvm(version)
        return _STARTED[version]


def close() -> None:
    """End the JVMs of this process."""
    with _LOCK:
        while _STARTED:
            _STARTED.popitem()[1].close()


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        version, main, arguments = json.loads(self.rfile.readline())
        self.wfile.write(json.dumps(of(version).run(main, arguments)).encode())


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    folder: tempfile.TemporaryDirectory[str]


@cache
def _server() -> _Server:
    """The socket on which tools are asked for from other processes."""
    folder = tempfile.TemporaryDirectory(prefix="durability-test-tools-")
    server = _Server(os.path.join(folder.name, "socket"), _Handler)
    server.folder = folder
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def client(version: str, main: str, python: str) -> str:
    """The text of a script that runs a tool here."""
    return CLIENT.format(python=python, address=_server().server_address, version=version, main=main)
