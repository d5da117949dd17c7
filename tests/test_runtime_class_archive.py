"""Spark's JVM takes its classes from the archive that `make setup` made, and runs without one that isn't whole."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from bench.floor import EMPTY_JOB
from durability.errors import AuditError
from durability.launch import classes, spark
from durability.runtime import class_archive


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder without an archive."""
    monkeypatch.setenv("DURABILITY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    return tmp_path / "cache"


def made(tmp_path: Path, content: bytes = b"classes") -> Path:
    file = tmp_path / "made.jsa"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("partitions", [1, 7_000_000])
def test_spark_takes_most_classes_from_it(partitions: int, tmp_path: Path) -> None:
    loaded = tmp_path / "loaded.txt"
    properties = spark.settings(partitions)
    assert "-XX:SharedArchiveFile=" in properties[spark.DRIVER_OPTIONS], "make setup makes it"
    properties[spark.DRIVER_OPTIONS] += f" -Xlog:class+load:file={loaded}"
    (tmp_path / "empty.py").write_text(EMPTY_JOB)
    file = spark.write_properties(tmp_path / "spark.properties", properties)
    command = spark.submit(file, str(tmp_path / "empty.py"))
    done = subprocess.run(command, env=spark.environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "archive" not in done.stdout + done.stderr, done.stderr[-2000:]
    sources = re.findall(r"source: (shared objects file|\S+)", loaded.read_text())
    assert sources.count("shared objects file") > 0.6 * len(sources) > 5000


def test_one_that_is_not_whole_is_never_named(cache: Path, tmp_path: Path) -> None:
    file = class_archive.place()
    assert file is not None and file.parent == cache / "classes"
    assert class_archive.option() == "" and spark.settings(1)[spark.DRIVER_OPTIONS].endswith("128m -Xms1g -Xmn500m")
    class_archive.keep(made(tmp_path), file)
    assert class_archive.option() == f'"-XX:SharedArchiveFile={file}"'
    file.write_bytes(b"class")
    assert class_archive.option() == ""
    file.unlink()
    assert class_archive.option() == ""


def test_other_jars_another_java_and_a_class_path_of_ones_own_have_another_or_none(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {class_archive.place()}
    for name in ("one", "other"):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text("#!/bin/sh\n")
        (home / "bin" / "java").chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert class_archive.place() is None, "nothing is known of a Java without HotSpot's library"
        (home / "lib" / "server").mkdir(parents=True)
        (home / "lib" / "server" / "libjvm.so").write_text(name)
        places.add(class_archive.place())
    assert len(places) == 3 and None not in places
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    assert class_archive.place() is None and class_archive.option() == ""


def test_the_newest_stay(cache: Path, tmp_path: Path) -> None:
    files = [cache / "classes" / f"{name}.jsa" for name in "abcde"]
    for file in files:
        class_archive.keep(made(tmp_path, file.name.encode()), file)
    assert sorted(path.name for path in (cache / "classes").iterdir()) == [
        f"{name}.{kind}" for name in "cde" for kind in ("jsa", "json")
    ]


def test_spark_that_cannot_judge_the_example_is_told_with_its_log(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "LOG", tmp_path / "classes.log")
    monkeypatch.setattr(spark, "submit", lambda *_: ["sh", "-c", "echo no Java >&2; exit 3"])
    with pytest.raises(AuditError, match=r"could not judge docs/examples/eu-payments\.json; its log is .*classes\.log"):
        classes.ensure()
    assert "no Java" in (tmp_path / "classes.log").read_text() and class_archive.option() == ""
    monkeypatch.setattr(spark, "submit", lambda *_: ["true"])
    assert classes.ensure() is None, "a Java that makes no archive is as good"
