"""Writes .env beside docker-compose.yml, with a fresh value for each variable of deploy/env.example.

Run `python3 deploy/new_env.py` once before `docker compose up`. It needs only Python. It never changes an existing file.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def fresh(name: str) -> str:
    """A value for a variable of env.example. Hex, which needs no escaping in URLs, unless another form is needed."""
    if name == "AIRFLOW_FERNET_KEY":
        return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
    if name == "KAFKA_CLUSTER_ID":
        # The tools would treat an id that begins with a dash as an option.
        return "k" + base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")[1:]
    return secrets.token_hex(24)


def main(path: Path = HERE.parent / ".env") -> int:
    """Writes the file for its owner only. Returns 1 if it exists already."""
    lines = (HERE / "env.example").read_text().splitlines()
    names = [line.partition("=")[0] for line in lines if line and not line.startswith("#")]
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(f"{path} exists already; the databases and volumes created with it use its passwords", file=sys.stderr)
        return 1
    with os.fdopen(descriptor, "w") as file:
        file.writelines(f"{name}={fresh(name)}\n" for name in names)
    print(f"{path} written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
