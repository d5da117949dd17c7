"""A lake on S3 (moto's server) with a PostgreSQL catalog. Both are real servers on this machine's loopback address."""

from __future__ import annotations

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from durability.runtime.processes import free_port

KEY = {"AWS_ACCESS_KEY_ID": "auditor", "AWS_SECRET_ACCESS_KEY": "not-a-secret", "AWS_REGION": "eu-north-1"}


def programs() -> Path:
    """The folder of PostgreSQL's programs: on PATH, or that of Debian's package."""
    found = shutil.which("initdb") or next(iter(sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))), None)
    if found is None:
        pytest.fail("PostgreSQL's server is needed: on Debian, apt-get install postgresql")
    return Path(found).resolve().parent


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a server with an empty set of databases. Its superuser has a password."""
    # Not below pytest's folder: another run makes that accessible to its own user only, and the server runs as another user.
    folder = Path(tempfile.mkdtemp(prefix="durability-postgresql-"))
    # PostgreSQL refuses to run as root.
    owner = "nobody" if os.geteuid() == 0 else getpass.getuser()
    password = folder / "password"
    password.write_text("p@ss/word")
    data, port = folder / "data", free_port()
    data.mkdir(mode=0o700)
    for path in (folder, password, data):
        shutil.chown(path, owner, pwd.getpwnam(owner).pw_gid)
    run = dict(check=True, user=owner if os.geteuid() == 0 else None, cwd=folder, stdout=subprocess.DEVNULL)
    bin_ = programs()
    auth = ["--username=auditor", "--auth=scram-sha-256", f"--pwfile={password}", "--no-sync"]
    subprocess.run([bin_ / "initdb", f"--pgdata={data}", *auth], **run)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    control = [bin_ / "pg_ctl", f"--pgdata={data}", "--wait"]
    subprocess.run([*control, f"--log={folder / 'log'}", f"--options={options}", "start"], **run)
    try:
        yield f"postgresql://auditor:p%40ss%2Fword@127.0.0.1:{port}"
    finally:
        subprocess.run([*control, "--mode=immediate", "stop"], **run)
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The endpoint of an object store."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@pytest.fixture
def away(postgresql, s3, monkeypatch) -> str:
    """The address of an empty lake on S3. Its catalog is a separate database, set in the environment."""
    import boto3
    import psycopg2

    name = f"lake_{uuid.uuid4().hex}"
    with_database = psycopg2.connect(f"{postgresql}/postgres")
    with_database.autocommit = True
    with_database.cursor().execute(f"CREATE DATABASE {name}")
    with_database.close()
    for variable, value in (KEY | {"AWS_ENDPOINT_URL": s3, "DURABILITY_CATALOG": f"{postgresql}/{name}"}).items():
        monkeypatch.setenv(variable, value)
    bucket = name.replace("_", "-")[:60]
    where = {"LocationConstraint": KEY["AWS_REGION"]}
    boto3.client("s3", region_name=KEY["AWS_REGION"]).create_bucket(Bucket=bucket, CreateBucketConfiguration=where)
    return f"s3://{bucket}/lake"
