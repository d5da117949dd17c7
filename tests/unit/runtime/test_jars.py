"""Jars are what the lock says, or there is an error that names the jar."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from durability.errors import AuditError, Refused
from durability.runtime import jars


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository on disk with two jars, a lock over them, and a cache of its own."""
    lines = ["[little]"]
    for group, artifact, version in (("org.one", "first", "1.0"), ("org.two", "second_2.13", "2.0-3")):
        folder = tmp_path / "mirror" / group.replace(".", "/") / artifact / version
        folder.mkdir(parents=True)
        content = f"not really a jar: {artifact}".encode()
        (folder / f"{artifact}-{version}.jar").write_bytes(content)
        lines.append(f"{hashlib.sha256(content).hexdigest()} {group}:{artifact}:{version}")
    lock = tmp_path / "jars.lock"
    lock.write_text("# a comment\n" + "\n".join(lines) + "\n")
    settings = tmp_path / "settings.xml"
    pattern = f"{tmp_path}/mirror/[organisation]/[module]/[revision]/[artifact]-[revision].[ext]"
    settings.write_text(
        '<ivysettings><settings defaultResolver="disk"/><resolvers><filesystem name="disk" m2compatible="true">'
        f'<artifact pattern="{pattern}"/></filesystem></resolvers></ivysettings>'
    )
    monkeypatch.setattr(jars, "LOCK", lock)
    monkeypatch.setenv("DURABILITY_IVY_SETTINGS", str(settings))
    monkeypatch.setenv("DURABILITY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "mirror"


def test_a_set_is_fetched_once_and_holds_exactly_its_jars(mirror: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = jars.ensure("little")
    assert sorted(path.name for path in folder.iterdir()) == ["first-1.0.jar", "second_2.13-2.0-3.jar"]
    (folder / "stray.jar").write_text("left by somebody")
    monkeypatch.setattr(jars, "_download", lambda *_: pytest.fail("downloaded again"))
    assert sorted(path.name for path in jars.ensure("little").iterdir()) == ["first-1.0.jar", "second_2.13-2.0-3.jar"]


def test_a_damaged_or_deleted_jar_is_fetched_again(mirror: Path) -> None:
    folder = jars.ensure("little")
    good = (folder / "first-1.0.jar").read_bytes()
    (folder / "first-1.0.jar").write_bytes(b"damaged")
    (folder / "second_2.13-2.0-3.jar").unlink()
    assert (jars.ensure("little") / "first-1.0.jar").read_bytes() == good
    assert (folder / "second_2.13-2.0-3.jar").exists()


def test_another_checksum_is_refused_by_name(mirror: Path) -> None:
    (mirror / "org/one/first/1.0/first-1.0.jar").write_bytes(b"something else")
    with pytest.raises(AuditError, match=r"org\.one:first:1\.0 as downloaded has SHA-256 .* not used"):
        jars.ensure("little")


def test_a_jar_that_cannot_be_had_is_named(mirror: Path) -> None:
    (mirror / "org/two/second_2.13/2.0-3/second_2.13-2.0-3.jar").unlink()
    with pytest.raises(AuditError, match=r"can't download org\.two:second_2\.13:2\.0-3; check the network"):
        jars.ensure("little")


def test_an_unknown_set_is_refused() -> None:
    with pytest.raises(Refused, match=r"no set named 'kafka-0\.7'; it has kafka-3\.6\.2, kafka-4\.3\.1, spark"):
        jars.ensure("kafka-0.7")


def test_the_lock_holds_what_the_roots_ask_for() -> None:
    for name, roots in jars.ROOTS.items():
        held = {(jar.group, jar.artifact, jar.version) for jar in jars.locked(name)}
        assert set(roots) <= held, name
        assert all(len(jar.sha256) == 64 for jar in jars.locked(name))
        assert len({jar.file for jar in jars.locked(name)}) == len(jars.locked(name)), "two jars of one file name"


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        ('openjdk version "11.0.22" 2024-01-16', "is Java 11"),
        ('java version "1.8.0_402"', "is Java 8"),
        ("nonsense", "answered nothing that can be read"),
    ],
)
def test_an_old_java_is_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, complaint: str
) -> None:
    (tmp_path / "bin").mkdir()
    java = tmp_path / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Refused, match=complaint) as refusal:
        jars.java_command.__wrapped__()
    assert "apt-get install openjdk-17-jre-headless" in str(refusal.value)


def test_a_missing_java_is_refused_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(Refused, match=r"no java in JAVA_HOME .*apt-get install openjdk-17"):
        jars.java_command.__wrapped__()
