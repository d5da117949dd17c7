"""Spark jobs of child processes in the Spark session of this worker, which is warm: a JVM of its own costs 20 CPU seconds more.

`spark-submit` starts what SPARK_HOME names. Here it is a client that passes its arguments to a thread of this process. Tests of
how jobs are started, killed and logged use the real one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import socket
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

CLIENT = '''\
#!{python} -ES
"""In place of Spark's launcher: runs a job in the session behind the socket beside this file, and ends with its status."""
import json, os, socket, sys

arguments = sys.argv[2:]
if "--awaited" in arguments:
    at = arguments.index("--awaited")
    with open(arguments[at + 1]) as pipe:
        plan = pipe.read()
    if not plan:
        sys.exit(0)
    file = arguments[at + 1] + ".json"
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as written:
        written.write(plan)
    arguments[at : at + 2] = ["--plan", file]
with socket.socket(socket.AF_UNIX) as server:
    server.connect(os.path.join(os.path.dirname(os.path.abspath(__file__)), "socket"))
    server.sendall(json.dumps({{"arguments": arguments, "environ": dict(os.environ)}}).encode() + b"\\n")
    answer = json.loads(server.makefile().readline() or '{{"status": 1, "text": "the session has ended"}}')
sys.stderr.write(answer["text"])
sys.exit(answer["status"])
'''
PASSED_ON = ("DURABILITY_", "AWS_")
"""How the variables begin that jobs read."""


@pytest.fixture(scope="session")
def warm_spark_home(spark, tmp_path_factory) -> Iterator[str]:
    """A SPARK_HOME whose launcher uses this worker's session."""
    home = tmp_path_factory.mktemp("warm")
    (home / "bin").mkdir()
    launcher = home / "bin" / "spark-class"
    launcher.write_text(CLIENT.format(python=sys.executable))
    launcher.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(home / "bin" / "socket"))
        listening.listen()
        threading.Thread(target=_serve, args=(listening, spark), daemon=True).start()
        yield str(home)
        listening.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def warm_spark(warm_spark_home, monkeypatch) -> None:
    """Within the test, child processes run their Spark jobs in this worker's session."""
    monkeypatch.setenv("SPARK_HOME", warm_spark_home)


def _serve(listening: socket.socket, spark) -> None:
    """Runs one job after the other until the socket is shut down."""
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        # A client that was killed costs no later one its job.
        with client, suppress(OSError, ValueError):
            asked = json.loads(client.makefile().readline())
            try:
                _run(spark, asked["arguments"], asked["environ"])
                answer = {"status": 0, "text": ""}
            except BaseException:
                answer = {"status": 1, "text": traceback.format_exc()}
            client.sendall(json.dumps(answer).encode() + b"\n")


def _run(spark, arguments: list[str], environ: Mapping[str, str]) -> None:
    """A job in a session of its own, because a session keeps its first catalog."""
    from spark_jobs import session
    from spark_jobs.assemble import evaluation
    from tests.support.judge import expressions

    options, job = _options(arguments)
    made = spark.newSession()
    for name, value in options.items():
        if made.conf.isModifiable(name) or name.startswith("spark.sql.catalog."):
            made.conf.set(name, value)
    made.stop = lambda: None  # its context is that of all sessions
    main = importlib.import_module(f"spark_jobs.{Path(job[0]).stem}").main
    ready = {pulse: expressions(pulse) for pulse in (False, True)}
    with pytest.MonkeyPatch.context() as patch:
        for name in {*environ, *os.environ}:
            if name.startswith(PASSED_ON):
                patch.setenv(name, environ[name]) if name in environ else patch.delenv(name)
        patch.setattr(sys, "argv", job)
        patch.setattr(session, "start", lambda name: made)
        patch.setattr(evaluation, "topic_expressions", ready.__getitem__)
        main()


def _options(arguments: list[str]) -> tuple[dict[str, str], list[str]]:
    """What spark-submit sets, by property, and the job with its arguments."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--conf", action="append", default=[])
    parser.add_argument("--properties-file", type=Path)
    for ignored in ("--master", "--name", "--jars"):
        parser.add_argument(ignored)
    parser.add_argument("job", nargs=argparse.REMAINDER)
    given = parser.parse_args(arguments)
    lines = given.properties_file.read_text(encoding="utf-8").splitlines()
    properties = dict(line.split(" ", 1) for line in lines if " " in line)
    stated = dict(entry.split("=", 1) for entry in given.conf)
    return {**{name: value.replace("\\\\", "\\") for name, value in properties.items()}, **stated}, given.job
