"""The deployment's docker-compose.yml, parsed."""

from __future__ import annotations

import json
import re
import stat

import pytest
import yaml

from deploy import new_env
from durability.embedded_kafka.spec import default_spec
from durability.policy import load_clusters
from tests import ROOT

COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
SERVICES = COMPOSE["services"]
SECRET = re.compile(r"PASSWORD|SECRET|FERNET|_KEY$")
NO_SECRETS = ("AWS_ACCESS_KEY_ID", "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE")  # a user's and a file's name
# What the images have, by what they are made of: upstream's Dockerfiles, and deploy/Dockerfile.
TOOLS = {
    "postgres": ("pg_isready",),
    "minio/minio": ("mc",),
    "apache/kafka": ("/opt/kafka/bin/kafka-broker-api-versions.sh",),
    "apache/spark": ("bash", "/opt/spark/bin/spark-class"),
    "kafka-durability-airflow": ("python", "airflow", "bash"),
}


def lock(name: str) -> dict[str, str]:
    """Versions by package, of a lock file."""
    found = re.findall(r"^([A-Za-z0-9._-]+)==([^ ;]+)", (ROOT / name).read_text(), re.M)
    assert found
    return dict(found)


def test_the_services_of_the_design_are_there():
    assert set(SERVICES) == {
        *("airflow-init", "airflow-api-server", "airflow-scheduler", "airflow-dag-processor", "airflow-triggerer"),
        *("postgres", "s3", "kafka-1", "kafka-2", "kafka-3", "spark-master", "spark-worker"),
    }


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_service_is_pinned_and_healthy_or_a_one_shot(name):
    service = SERVICES[name]
    image, _, tag = service["image"].rpartition(":")
    pinned = "build" in service or re.search(r"\d", tag)
    assert image and pinned, f"{service['image']} isn't pinned to a version"
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
        if SECRET.search(variable) and variable not in NO_SECRETS:
            assert stated == "", f"{variable} holds a literal"
        assert not re.search(r"://[^/@]*:[^/@]+@", stated), f"{variable} holds a password"


def test_the_example_names_every_value_that_is_needed_and_gives_none():
    needed = set(re.findall(r"\$\{([A-Z0-9_]+):\?", (ROOT / "docker-compose.yml").read_text()))
    example = [x for x in (ROOT / "deploy" / "env.example").read_text().splitlines() if x and not x.startswith("#")]
    assert {line.partition("=")[0] for line in example} == needed
    assert all(line.endswith("=") for line in example)


def test_a_command_makes_every_value_anew_and_never_over_another(tmp_path, capsys):
    from cryptography.fernet import Fernet

    first, second = tmp_path / "first", tmp_path / "second"
    assert (new_env.main(first), new_env.main(second)) == (0, 0)
    assert stat.S_IMODE(first.stat().st_mode) == 0o600
    values, others = (dict(line.split("=", 1) for line in p.read_text().splitlines()) for p in (first, second))
    example = [x for x in (ROOT / "deploy" / "env.example").read_text().splitlines() if x and not x.startswith("#")]
    assert [f"{name}=" for name in values] == example
    assert len(set(values.values()) | set(others.values())) == 2 * len(values)
    Fernet(values["AIRFLOW_FERNET_KEY"])
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", values["KAFKA_CLUSTER_ID"]) and values["KAFKA_CLUSTER_ID"][0] != "-"
    # The rest is in URLs.
    rest = values.keys() - {"AIRFLOW_FERNET_KEY", "KAFKA_CLUSTER_ID"}
    assert all(re.fullmatch(r"[0-9a-f]{48}", values[name]) for name in rest)
    before = first.read_text()
    assert new_env.main(first) == 1 and first.read_text() == before
    assert not any(value in capsys.readouterr().out for value in values.values())


def test_no_secret_is_an_argument():
    for name, service in SERVICES.items():
        words = [*service.get("command", ()), *service.get("healthcheck", {}).get("test", ())]
        assert not [word for word in words if "${" in word], name


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_health_check_asks_with_what_the_image_has(name):
    service = SERVICES[name]
    tools = TOOLS[service["image"].rpartition(":")[0]]
    if "healthcheck" in service:
        kind, *words = service["healthcheck"]["test"]
        assert kind == "CMD" and words[0] in tools
        assert {"interval", "timeout", "retries"} <= set(service["healthcheck"])
    if "command" in service:
        assert service["command"][0] in (*tools, "server")


def test_versions_are_those_of_the_locks():
    locked, deployed = lock("requirements.lock"), lock("deploy/requirements.lock")
    assert SERVICES["kafka-1"]["image"] == f"apache/kafka:{default_spec().version}"
    for name in ("spark-master", "spark-worker"):
        assert SERVICES[name]["image"] == f"apache/spark:{locked['pyspark']}"
    assert {n: v for n, v in deployed.items() if n in locked} == {n: locked[n] for n in deployed.keys() & locked.keys()}
    asked = re.findall(r"^([a-z0-9-]+)", (ROOT / "deploy" / "requirements.txt").read_text(), re.M)
    assert set(asked) <= set(deployed)
    image = (ROOT / "deploy" / "Dockerfile").read_text()
    assert re.search(r"^FROM python:3\.(11|12)-", image, re.M) and "openjdk-17-jre-headless" in image
    assert "-r deploy/requirements.lock" in image and "jars ensure spark-s3" in image


def test_the_image_runs_as_nobody_special_and_owns_what_volumes_are_mounted_on():
    image = (ROOT / "deploy" / "Dockerfile").read_text()
    assert re.findall(r"^USER (.+)", image, re.M) == ["airflow"]
    made = re.search(r"mkdir --parents (.+)", image)[1].split()
    targets = {v.split(":")[1] for v in SERVICES["airflow-scheduler"]["volumes"] if not v.startswith("./")}
    assert {f"/opt/durability/{path}" if path[0] != "/" else path for path in made} == targets


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_every_volume_is_named_and_declared_or_a_file_of_this_repository(name):
    for volume in SERVICES[name].get("volumes", ()):
        source, _, rest = volume.partition(":")
        if source.startswith("./"):
            assert (ROOT / source).exists() and rest.endswith(":ro")
        else:
            assert source in COMPOSE["volumes"]


def test_data_outlives_containers():
    kept = {
        name: SERVICES[name]["volumes"][0].split(":") for name in ("postgres", "s3", "kafka-1", "kafka-2", "kafka-3")
    }
    assert len({source for source, _ in kept.values()}) == len(kept), "two services share a volume"
    for n in (1, 2, 3):
        # The image's brokers write elsewhere unless they are told.
        assert kept[f"kafka-{n}"][1] == SERVICES[f"kafka-{n}"]["environment"]["KAFKA_LOG_DIRS"]
    assert kept["s3"][1] == SERVICES["s3"]["command"][1]
    file = SERVICES["airflow-api-server"]["environment"]["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"]
    assert f"airflow-auth:{file.rpartition('/')[0]}" in SERVICES["airflow-api-server"]["volumes"]
    used = {v.partition(":")[0] for s in SERVICES.values() for v in s.get("volumes", ())}
    assert set(COMPOSE["volumes"]) <= used


def test_its_own_kafka_is_what_it_audits():
    stated = SERVICES["airflow-scheduler"]["environment"]
    path = stated["DURABILITY_CLUSTERS"].replace("/opt/durability", str(ROOT))
    assert any(v.split(":")[1] == stated["DURABILITY_CLUSTERS"] for v in SERVICES["airflow-scheduler"]["volumes"])
    for cluster in load_clusters(path):
        connection = json.loads(stated[f"AIRFLOW_CONN_{cluster.connection.upper()}"])
        servers = connection["extra"]["bootstrap.servers"].split(",")
        assert servers == [f"{name}:9092" for name in SERVICES if name.startswith("kafka-")]
    assert 'os.environ.get("DURABILITY_CLUSTERS"' in (ROOT / "plugins/kafka_durability/settings.py").read_text()


def test_three_racks():
    racks = {SERVICES[f"kafka-{n}"]["environment"]["KAFKA_BROKER_RACK"] for n in (1, 2, 3)}
    assert racks == {"az1", "az2", "az3"}


def test_the_pool_that_the_dags_use_is_made_before_they_run():
    used = re.search(r'^POOL = "(.+)"', (ROOT / "plugins/kafka_durability/settings.py").read_text(), re.M)[1]
    assert f"pools set {used} " in (ROOT / "deploy" / "init.sh").read_text()
    assert f'"{used}"' in (ROOT / "durability" / "cli" / "up.py").read_text()


def test_only_airflows_pages_are_reachable_and_from_this_host_alone():
    ports = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert ports == {"airflow-api-server": ["127.0.0.1:8080:8080"]}
