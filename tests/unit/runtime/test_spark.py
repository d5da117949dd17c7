"""Settings of a Spark session: by size, below a user's own, and secrets in a file that only its owner reads."""

from __future__ import annotations

import re
import stat
import sys

import pytest

from durability.runtime import spark


def test_catalog_passwords_are_in_a_file_only_its_owner_reads(tmp_path):
    path = spark.write_properties(tmp_path / "p", {"a.password": "x\\y", "b": "c d"})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text() == "a.password x\\\\y\nb c d\n"
    assert "password" not in " ".join(sys.argv)


@pytest.mark.parametrize(("memory", "heap"), [("", "5g"), ("3g", "3g")])
def test_spark_defaults_count_before_what_is_tuned_and_after_what_is_needed(tmp_path, monkeypatch, memory, heap):
    defaults = "spark.driver.memory 5g\nspark.sql.extensions theirs\nspark.executor.memory 640m\nspark.cut short\\"
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.setenv("DURABILITY_SPARK_MEMORY", memory)
    file = spark.write_properties(tmp_path / "p", spark.settings(7_000_000))
    # As Spark reads it: of several lines about one thing the last.
    told = dict(line.split(" ", 1) for line in file.read_text().splitlines() if line)
    assert told["spark.driver.memory"] == heap
    assert told["spark.sql.extensions"] == spark.ALWAYS["spark.sql.extensions"]
    assert (told["spark.executor.memory"], told["spark.cut"]) == ("640m", "short\\")
    assert told["spark.sql.adaptive.enabled"] == "false"


@pytest.mark.parametrize(("partitions", "heap", "ours"), [(100, "1g", "Serial"), (7_000_000, "2000m", "Parallel")])
def test_a_smaller_heap_is_not_exceeded_by_the_first_size_of_ours(partitions, heap, ours, tmp_path, monkeypatch):
    monkeypatch.delenv("DURABILITY_SPARK_MEMORY", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    first = spark.write_properties(tmp_path / "without", spark.settings(partitions)).read_text()
    assert f"-Xms{heap}" in first and f"spark.driver.memory {heap}" in first
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.memory=700m\n")
    file = spark.write_properties(tmp_path / "with", spark.settings(partitions)).read_text()
    assert "-Xm" not in file and f"-XX:+Use{ours}GC" in file


def test_the_heap_that_is_asked_for_is_whole_from_the_start(monkeypatch):
    monkeypatch.setenv("DURABILITY_SPARK_MEMORY", "1200m")
    asked = spark.settings(7_000_000)
    assert asked["spark.driver.memory"] == "1200m"
    assert re.findall(r"-Xm\S+", asked[spark.DRIVER_OPTIONS]) == ["-Xms1200m"]


@pytest.mark.parametrize("partitions", [1, 7_000_000])
def test_a_local_session_listens_on_loopback_whatever_defaults_say(partitions, tmp_path, monkeypatch):
    (tmp_path / "spark-defaults.conf").write_text("spark.driver.bindAddress 0.0.0.0\nspark.driver.host example.org\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    told = written(tmp_path, spark.settings(partitions, "local[4]"))
    assert (told["spark.driver.bindAddress"], told["spark.driver.host"]) == ("127.0.0.1", "127.0.0.1")
    assert "spark.authenticate" not in told and spark.exposed("local[4]") is None


@pytest.mark.parametrize("master", ["yarn", "k8s://https://kubernetes.default.svc"])
def test_a_session_elsewhere_authenticates_unless_defaults_say_otherwise(master, tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    told = written(tmp_path, spark.settings(1, master))
    assert told["spark.authenticate"] == "true" and "spark.driver.bindAddress" not in told
    assert spark.exposed(master) is None
    (tmp_path / "spark-defaults.conf").write_text("spark.authenticate false\n")
    assert written(tmp_path, spark.settings(1, master))["spark.authenticate"] == "false"


def test_a_standalone_master_without_a_secret_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert "any host that reaches them" in spark.exposed("spark://master:7077")
    (tmp_path / "spark-defaults.conf").write_text("spark.authenticate=true\nspark.authenticate.secret shared\n")
    assert spark.exposed("spark://master:7077") is None
    told = written(tmp_path, spark.settings(1, "spark://master:7077"))
    assert "spark.driver.bindAddress" not in told, "executors reach the driver from other hosts"
    assert "shared" not in (spark.exposed("spark://other:7077") or "")


def written(folder, properties) -> dict[str, str]:
    """The properties as Spark reads them: of several lines about one thing the last."""
    file = spark.write_properties(folder / f"p{len(list(folder.iterdir()))}", properties)
    lines = (re.split(r"[\s=]", line, maxsplit=1) for line in file.read_text().splitlines() if line)
    return {name: value for name, value in lines}
