"""Spark's JVM takes its classes from the archive that `make setup` made, and runs without one that isn't whole."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench.floor import EMPTY_JOB
from durability.cli import classes
from durability.errors import AuditError
from durability.runtime import class_archive, spark


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder without an archive."""
    monkeypatch.setenv("DURABILITY_CACHE", str(tmp_path / "cache"))
    for name in class_archive.CLASS_PATH:
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "cache"


def made(place: class_archive.Place, content: str = "classes") -> Path:
    place.file.parent.mkdir(parents=True, exist_ok=True)
    file = place.file.with_suffix(".made")
    file.write_text(content)
    return file


def test_spark_takes_most_classes_from_it(tmp_path: Path) -> None:
    loaded = tmp_path / "loaded.txt"
    properties = spark.settings(7_000_000)
    assert "-XX:SharedArchiveFile=" in properties[spark.DRIVER_OPTIONS], "make setup makes it"
    properties[spark.DRIVER_OPTIONS] += f" -Xlog:class+load:file={loaded}"
    (tmp_path / "empty.py").write_text(EMPTY_JOB)
    file = spark.write_properties(tmp_path / "spark.properties", properties)
    command = spark.submit(file, str(tmp_path / "empty.py"))
    done = subprocess.run(command, env=spark.environment(), capture_output=True, text=True)
    assert done.returncode == 0 and "shared archive" not in done.stdout + done.stderr, done.stderr[-2000:]
    sources = re.findall(r"source: (shared objects file|\S+)", loaded.read_text())
    assert sources.count("shared objects file") > 0.6 * len(sources) > 5000


def test_one_that_is_not_whole_is_never_named(cache: Path) -> None:
    place = class_archive.place()
    assert place is not None and place.file.parent == cache / "classes"
    assert class_archive.option() == "" and "-XX:Shared" not in spark.settings(7_000_000)[spark.DRIVER_OPTIONS]
    place.keep(made(place))
    assert class_archive.option() == f'"-XX:SharedArchiveFile={place.file}"'
    place.file.write_text("class")
    assert class_archive.option() == ""
    place.file.unlink()
    assert class_archive.option() == ""
    place.keep(made(place))
    place.note.write_text('{"sta')
    assert class_archive.option() == ""


def test_another_java_has_another_and_a_class_path_of_ones_own_none(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {class_archive.place().file}
    for name in ("one", "other"):
        home = tmp_path / name
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text("#!/bin/sh\n")
        (home / "bin" / "java").chmod(0o755)
        monkeypatch.setenv("JAVA_HOME", str(home))
        assert class_archive.place() is None, "nothing is known of a Java without HotSpot's library"
        (home / "lib" / "server").mkdir(parents=True)
        (home / "lib" / "server" / "libjvm.so").write_text(name)
        files.add(class_archive.place().file)
    assert len(files) == 3
    for name in class_archive.CLASS_PATH:
        with monkeypatch.context() as other:
            other.setenv(name, str(tmp_path))
            assert class_archive.place() is None and class_archive.option() == ""
    # The JVM would look for two archives.
    monkeypatch.setenv("DURABILITY_CACHE", str(tmp_path / "a:b"))
    assert class_archive.place() is None


def test_those_of_this_environment_and_of_ones_that_are_gone_make_way(cache: Path, tmp_path: Path) -> None:
    here, there, gone = tmp_path / "here", tmp_path / "there", tmp_path / "gone"
    for environment in (here, there):
        environment.mkdir()
    of = {"old": here, "another": there, "gone": gone, "new": here}
    for name, environment in of.items():
        place = class_archive.Place(cache / "classes" / f"{name}.jsa", environment)
        with place.locked():
            place.keep(made(place, name))
    kept = {path.name for path in (cache / "classes").iterdir()}
    assert kept == {f"{name}.{kind}" for name in ("another", "new") for kind in ("jsa", "json", "lock")}


def test_spark_that_cannot_judge_the_example_is_told_with_its_log(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classes, "LOG", tmp_path / "classes.log")
    monkeypatch.setattr(spark, "submit", lambda *_: ["sh", "-c", "echo no Java >&2; exit 3"])
    with pytest.raises(
        AuditError, match=r"could not evaluate .*docs/examples/eu-payments\.json; its log is .*classes\.log"
    ):
        classes.ensure()
    assert "no Java" in (tmp_path / "classes.log").read_text() and class_archive.option() == ""
    monkeypatch.setattr(spark, "submit", lambda *_: ["true"])
    assert classes.ensure() is None, "a Java that makes no archive is as good"


def test_the_lake_that_it_is_made_with_is_nobodys(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classes, "LOG", tmp_path / "classes.log")
    monkeypatch.setenv("DURABILITY_CATALOG", "postgresql://auditor:secret@127.0.0.1:1/theirs")
    asked = []

    def submit(properties: Path, *job: str) -> list[str]:
        plan = json.loads(Path(job[-1]).read_text())
        asked.append(SimpleNamespace(properties=properties.read_text(), job=job, lake=plan["lake"]))
        return ["true"]

    monkeypatch.setattr(spark, "submit", submit)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    classes.ensure()
    (told,) = asked
    assert "jdbc:sqlite" in told.properties and "postgresql" not in told.properties
    assert told.lake.startswith(str(tmp_path)), "a folder that goes with the job"
    assert not list(tmp_path.glob("durability-classes-*"))
