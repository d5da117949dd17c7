"""The deployment's docker-compose.yml, parsed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD|SECRET|FERNET|_KEY$")


def test_the_services_of_the_design_are_there():
    assert set(SERVICES) == {
        *("airflow-init", "airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"),
        *("postgres", "s3", "kafka-1", "kafka-2", "kafka-3", "spark-master", "spark-worker"),
    }


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_is_pinned_and_healthy_or_a_one_shot(name):
    service = SERVICES[name]
    image, _, tag = service["image"].rpartition(":")
    assert image and re.search(r"\d", tag), f"{service['image']} isn't pinned to a version"
    one_shot = service.get("restart") == "no"
    assert one_shot or service["healthcheck"]["test"], f"{name} has no health check"
    for needed, how in service.get("depends_on", {}).items():
        expected = "service_completed_successfully" if SERVICES[needed].get("restart") == "no" else "service_healthy"
        assert how["condition"] == expected


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_no_secret_has_a_value_or_a_default(name):
    for variable, value in SERVICES[name].get("environment", {}).items():
        stated = re.sub(r"\$\{[A-Z0-9_]+:\?[^}]+\}", "", str(value))
        assert "${" not in stated, f"{variable} is optional"
        if SECRET.search(variable) and variable != "AWS_ACCESS_KEY_ID":
            assert stated == "", f"{variable} holds a literal"
        assert not re.search(r"://[^/@]*:[^/@]+@", stated), f"{variable} holds a password"


def test_the_example_names_every_value_that_is_needed_and_gives_none():
    needed = set(re.findall(r"\$\{([A-Z0-9_]+):\?", (ROOT / "docker-compose.yml").read_text()))
    example = [x for x in (ROOT / "deploy" / "env.example").read_text().splitlines() if x and not x.startswith("#")]
    assert {line.partition("=")[0] for line in example} == needed
    assert all(line.endswith("=") for line in example)


def test_every_volume_is_named_and_data_outlives_containers():
    for name in ("postgres", "s3", "kafka-1", "kafka-2", "kafka-3"):
        named = {str(v).partition(":")[0] for v in SERVICES[name]["volumes"]} & set(COMPOSE["volumes"])
        assert named, f"{name} keeps its data in the container"


def test_three_racks():
    racks = {SERVICES[f"kafka-{n}"]["environment"]["KAFKA_BROKER_RACK"] for n in (1, 2, 3)}
    assert racks == {"az1", "az2", "az3"}


def test_the_pool_that_the_dags_use_is_made_before_they_run():
    used = re.search(r'^POOL = "(.+)"', (ROOT / "plugins/kafka_durability/settings.py").read_text(), re.M)[1]
    assert f"pools set {used} " in (ROOT / "deploy" / "init.sh").read_text()
    assert f'"{used}"' in (ROOT / "durability" / "launch" / "up.py").read_text()


def test_only_airflows_pages_are_reachable_and_from_this_host_alone():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"airflow-api-server": ["127.0.0.1:8080:8080"]}
