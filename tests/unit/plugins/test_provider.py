"""The package as Airflow finds it where pip installed the wheel: provider, plugin, and the Connection form with its Test."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

from durability.collect import probe as probing
from durability.collect.settings import MECHANISMS, PROTOCOLS, client_config
from durability.errors import Unreachable
from tests import ROOT
from tests.support.airflow import result, run_in_airflow
from tests.support.wheel import unpacked

WHEEL_ALONE = """
# This environment may have the checkout installed too: of each name the first counts, as it does for imports.
import importlib.metadata
import importlib_metadata
for module in (importlib.metadata, importlib_metadata):
    def once(every=module.distributions, **by):
        return list({d.metadata["Name"]: d for d in reversed(list(every(**by)))}.values())
    module.distributions = once
"""
LOOK = """
import json, os, sys
os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = os.environ["FOLDER"]
import warnings
warnings.simplefilter("error", DeprecationWarning)
from airflow import plugins_manager
from airflow.providers_manager import ProvidersManager
warnings.simplefilter("default")
plugins, errors = plugins_manager._get_plugins()
manager = ProvidersManager()
found = manager.providers.get("kafka-durability-audit")
hook = manager.hooks["kafka"]
fields = {n.removeprefix("extra__kafka__"): w for n, w in manager.connection_form_widgets.items() if "extra__kafka__" in n}
operators = [__import__(m, fromlist=["x"]).__name__ for e in found.data["operators"] for m in e["python-modules"]]
bare = {"hook", "operators", "evaluate", "remediate", "left", "settings", "step", "slack", "plugin", "provider"}
print("RESULT", json.dumps({
    "plugins": [p.name for p in plugins if p.name == "kafka_durability"], "errors": errors,
    "hook": [hook.package_name, hook.hook_class_name, hook.hook_name, hook.connection_testable],
    "form": manager.field_behaviours["kafka"], "operators": operators, "bare": sorted(bare & set(sys.modules)),
    "fields": sorted(fields), "secret": [n for n, w in fields.items() if w.is_sensitive],
    "from": sys.modules["kafka_durability"].__file__,
}))
"""
TEST = """
import json, os
os.environ["AIRFLOW__CORE__PLUGINS_FOLDER"] = os.environ["FOLDER"]
from airflow import settings
settings.initialize()
from airflow.models.connection import Connection
conn = Connection(conn_id="tried", conn_type="kafka", host="127.0.0.1", port=1, login="u", password="hunter2",
    extra={"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "ssl.key.password": None})
os.environ["AIRFLOW_CONN_TRIED"] = conn.get_uri()
print("RESULT", json.dumps(conn.test_connection()))
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory):
    """Runs source in a child with the wheel installed, with what is in `beside` before it, and without a checkout."""

    def run(source: str, folder: Path | None = None, beside: Path | None = None):
        home = tmp_path_factory.mktemp("airflow")
        (home / "plugins").mkdir()
        path = ":".join(str(p) for p in (beside, unpacked()) if p)
        return result(
            run_in_airflow(home, WHEEL_ALONE + source, PYTHONPATH=path, FOLDER=str(folder or home / "plugins"))
        )

    return run


def test_the_installed_wheel_is_a_provider_with_a_form_and_a_plugin(airflow):
    found = airflow(LOOK)
    assert found["from"].startswith(str(unpacked()))
    assert (found["plugins"], found["errors"], found["bare"]) == (["kafka_durability"], {}, [])
    assert found["hook"] == ["kafka-durability-audit", "kafka_durability.hook.KafkaHook", "Apache Kafka", True]
    assert found["form"]["hidden_fields"] == ["schema"]
    assert found["form"]["relabeling"] == {"login": "SASL user name", "password": "SASL password"}
    assert found["secret"] == ["ssl.key.password"]
    assert {f"kafka_durability.{name}" for name in ("operators", "evaluate", "upkeep", "remediate", "outage")} == set(
        found["operators"]
    )
    # An empty form is what the collector takes for no settings, and it refuses none of the keys.
    client_config({**dict.fromkeys(found["fields"]), "bootstrap.servers": "a:1"})
    assert {"aws.region", "aws.role.arn", "aws.profile"} <= set(found["fields"])


def test_a_checkout_whose_plugins_folder_has_the_package_too_registers_it_once(airflow):
    found = airflow(LOOK, folder=ROOT / "plugins")
    assert (found["plugins"], found["errors"], found["bare"]) == (["kafka_durability"], {}, [])


THEIRS = """
from airflow.sdk import BaseHook
class Hook(BaseHook):
    conn_name_attr, conn_type, hook_name = "kafka_config_id", "kafka", "Apache Kafka"
def info():
    kind = {"connection-type": "kafka", "hook-class-name": "airflow.providers.apache.kafka.hook.Hook"}
    return {"package-name": "apache-airflow-providers-apache-kafka", "name": "Apache Kafka", "description": "",
        "connection-types": [{**kind, "hook-name": "Apache Kafka"}]}
"""


def test_beside_airflows_own_kafka_provider_its_hook_counts_and_ours_does_no_harm(airflow, tmp_path):
    """Both declare the type `kafka`, and Airflow takes the first by name."""
    name = "apache-airflow-providers-apache-kafka"
    info, module = tmp_path / f"{name.replace('-', '_')}-1.dist-info", tmp_path / "airflow/providers/apache/kafka"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[apache_airflow_provider]\np = airflow.providers.apache.kafka.hook:info\n")
    module.mkdir(parents=True)
    (module / "hook.py").write_text(THEIRS)
    found = airflow(LOOK, beside=tmp_path)
    assert found["hook"] == [name, "airflow.providers.apache.kafka.hook.Hook", "Apache Kafka", False]
    assert (found["plugins"], found["errors"]) == (["kafka_durability"], {})


def test_airflows_test_button_says_what_is_wrong_and_no_secret(airflow):
    works, said = airflow(TEST)
    assert not works
    assert said.startswith("cluster of this Connection can't be reached: 127.0.0.1:1: connection refused. Check that")
    assert "hunter2" not in said


# The hook alone


@pytest.fixture
def hook(monkeypatch):
    """A hook whose Connection has a secret, and what a probe of it answers or raises."""
    from kafka_durability.hook import KafkaHook

    asked = []

    def answering(outcome):
        def probe(name, settings):
            asked.append(settings)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        monkeypatch.setattr(probing, "probe", probe)
        hook = KafkaHook("k")
        monkeypatch.setattr(hook, "settings", lambda: {"bootstrap.servers": "a:1", "sasl.password": "hunter2"})
        return hook

    return answering


@pytest.mark.parametrize(
    ("outcome", "works", "text"),
    [
        (probing.Answer("abc", 6), True, "Cluster abc answered: 6 brokers up. Only Metadata was read."),
        (probing.Answer(None, 1), True, "Cluster without an id answered: 1 broker up. Only Metadata was read."),
        (Unreachable("cluster k can't be reached"), False, "cluster k can't be reached"),
        (
            ValueError("SASL/PLAIN u:hunter2"),
            False,
            "The test failed with ValueError; its text isn't shown, since secrets may be in it.",
        ),
    ],
)
def test_what_the_test_button_shows(hook, outcome, works, text):
    assert hook(outcome).test_connection() == (works, text)


def test_a_server_that_never_answers_is_given_up_in_time_whatever_the_connection_says():
    patient = {"request.timeout.ms": 600_000, "socket.connection.setup.timeout.ms": 600_000}
    limits = probing.Limits(deadline=0.5, connect_timeout=0.2, request_timeout=0.2, attempts=1)
    with socket.create_server(("127.0.0.1", 0)) as server:
        started = time.monotonic()
        with pytest.raises(Unreachable, match="cluster eu can't be reached"):
            probing.probe("eu", {"bootstrap.servers": f"127.0.0.1:{server.getsockname()[1]}", **patient}, limits=limits)
        assert time.monotonic() - started < 5
    assert probing.QUICK.deadline <= 10


def test_the_form_offers_what_the_collector_supports():
    from kafka_durability.provider import get_provider_info

    fields = get_provider_info()["connection-types"][0]["conn-fields"]
    assert fields["security.protocol"]["schema"]["enum"] == list(PROTOCOLS)
    assert fields["sasl.mechanism"]["schema"]["enum"] == list(MECHANISMS)
