"""The signing key of the Connection `kafka_durability_signing`, as a task reads it."""

from __future__ import annotations

import json

from durability.evidence import keys
from tests.support.airflow import result, run_in_airflow
from tests.support.evidence import new_key

READ = """
import json, os
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException
from durability.errors import AuditError
from kafka_durability.signing import signing_key
stated, found = json.loads(os.environ["STATED"]), []
for connection in stated:
    text = connection if isinstance(connection, str) else json.dumps(connection)
    os.environ["AIRFLOW_CONN_KAFKA_DURABILITY_SIGNING"] = text
    try:
        found.append(signing_key().id)
    except AuditError as error:
        found.append(str(error))
del os.environ["AIRFLOW_CONN_KAFKA_DURABILITY_SIGNING"]
print("RESULT", json.dumps([*found, signing_key()]))
"""


def test_the_key_comes_from_the_connections_password_or_the_file_in_its_extra(tmp_path):
    file = new_key(tmp_path / "key.pem")
    loose = new_key(tmp_path / "loose.pem")
    loose.chmod(0o644)
    stated = [
        {"conn_type": "generic", "password": file.read_text()},
        {"conn_type": "generic", "extra": {"file": str(file)}},
        {"conn_type": "generic", "extra": {"file": str(loose)}},
        {"conn_type": "generic", "host": "nowhere"},
        '{"conn_type": "generic", "password": "hunter2"',
    ]
    output = run_in_airflow(tmp_path, READ, STATED=json.dumps(stated))
    found = result(output)
    assert found[:2] == [keys.from_file(file).id] * 2
    assert "has mode 0644" in found[2] and "has no key" in found[3]
    assert found[4].startswith("AIRFLOW_CONN_KAFKA_DURABILITY_SIGNING is set, but it is no Connection")
    assert "hunter2" not in output and found[5] is None
