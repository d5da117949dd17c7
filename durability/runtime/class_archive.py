"""Archives of the classes that JVMs load, Spark's driver and the embedded cluster's nodes: class data sharing (JEP 350).

Starting Spark and planning a run loads about 17,000 classes, a node of Kafka 5,500. Reading, verifying and linking them from jars
takes seconds in every JVM. An archive is mapped into memory instead. `durability.cli.classes` makes one per folder of jars and
Java, in the cache folder. Without an archive, a JVM loads its classes from jars.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from durability.resources import cache_folder
from durability.runtime import jars
from durability.runtime.locks import file_lock

CLASS_PATH = ("SPARK_CONF_DIR", "SPARK_HOME")
"""Variables that change the start of the class path. An archive is valid only for the class path that it was made with."""
UNTOLD = '"\\:'
"""Characters that Spark's launcher or the JVM would not read as part of a file's name."""


@dataclass(frozen=True)
class Place:
    """The place of an archive, whether it exists or not. jars: the folder of the jars whose classes are in it."""

    file: Path
    jars: Path

    @property
    def note(self) -> Path:
        """A file that is written when the archive is complete. A JVM crashes if its archive is incomplete."""
        return self.file.with_suffix(".json")

    @property
    def option(self) -> str:
        """The JVM's option that names the archive."""
        return f"-XX:SharedArchiveFile={self.file}"

    def is_whole(self) -> bool:
        try:
            return json.loads(self.note.read_text(encoding="utf-8"))["state"] == _state(self.file)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def keep(self, made: Path) -> None:
        """Moves the archive that a JVM has `made` in the same folder to its place, and removes archives that are out of use.

        These are archives of the same jars, and archives whose jars don't exist any more.
        """
        self.note.unlink(missing_ok=True)
        made.replace(self.file)
        self.note.write_text(json.dumps({"state": _state(self.file), "jars": str(self.jars)}), encoding="utf-8")
        for note in self.file.parent.glob("*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                jars_of_note = Path(json.loads(note.read_text(encoding="utf-8"))["jars"])
                if note != self.note and (jars_of_note == self.jars or not jars_of_note.exists()):
                    for kind in (".json", ".jsa", ".lock"):
                        note.with_suffix(kind).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """A lock, so that only one process at a time makes the archive."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.file.with_suffix(".lock")):
            yield


def option() -> str:
    """The JVM's option for Spark's archive, quoted for Spark; empty if there is no archive."""
    found = place()
    return f'"{found.option}"' if found and found.is_whole() else ""


def place() -> Place | None:
    """The place of Spark's archive for this Java and this environment's pyspark.

    None if either can't be found, if a variable of CLASS_PATH is set, or if the path has a character of UNTOLD.
    """
    pyspark_jars = jars.pyspark_folder()
    if pyspark_jars is None or any(os.environ.get(name) for name in CLASS_PATH):
        return None
    return of(pyspark_jars)


def of(folder: Path) -> Place | None:
    """The place of the archive for this Java and a class path of all jars in `folder`. None as for `place`."""
    java = jars.java_path()
    if java is None:
        return None
    library = Path(java).resolve().parent.parent / "lib" / "server" / "libjvm.so"
    if not library.is_file():  # `java` is a script, or not a HotSpot JVM
        return None
    # Unsorted: the class path has the same order as the folder.
    read = [[str(path), *_state(path)] for path in (library, *folder.glob("*.jar"))]
    digest = hashlib.sha256(json.dumps(read).encode()).hexdigest()
    file = cache_folder() / "classes" / f"{digest[:20]}.jsa"
    return None if any(mark in str(file) for mark in UNTOLD) else Place(file, folder)


def _state(file: Path) -> list[int]:
    """Size, and modification time in whole seconds, because container images store no fractions."""
    stat = file.stat()
    return [stat.st_size, int(stat.st_mtime)]
