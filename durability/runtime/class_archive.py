"""An archive of the classes that a large run's Spark driver loads: the JDK's class data sharing (JEP 350).

Starting Spark and planning a run loads some 17,000 classes. Read from jars, checked and linked that is seconds of every
run; from the archive they are mapped into memory as they were. `durability.cli.classes` makes one for each environment and
its Java, in the cache folder. A run for which there is none loads its classes as ever.
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
"""Where one of these is set, another folder or another Spark's jars begin the class path, which has to be the archive's."""
UNTOLD = '"\\:'
"""What Spark's launcher or the JVM would take for more than a part of the file's name."""


@dataclass(frozen=True)
class Place:
    """Where the archive of an environment's `jars` (pyspark's folder of them) stands, or would."""

    file: Path
    jars: Path

    @property
    def note(self) -> Path:
        """Written when the archive is whole: a JVM that is given half of one dies of it."""
        return self.file.with_suffix(".json")

    def is_whole(self) -> bool:
        try:
            return json.loads(self.note.read_text(encoding="utf-8"))["state"] == _state(self.file)
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def keep(self, made: Path) -> None:
        """Takes the archive that a JVM has `made`, in the same folder; those that nobody will ask for any more go."""
        self.note.unlink(missing_ok=True)
        made.replace(self.file)
        self.note.write_text(json.dumps({"state": _state(self.file), "jars": str(self.jars)}), encoding="utf-8")
        for note in self.file.parent.glob("*.json"):
            with suppress(OSError, ValueError, KeyError, TypeError):
                theirs = Path(json.loads(note.read_text(encoding="utf-8"))["jars"])
                if note != self.note and (theirs == self.jars or not theirs.exists()):
                    for kind in (".json", ".jsa", ".lock"):
                        note.with_suffix(kind).unlink(missing_ok=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """While one is made nobody else makes it."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.file.with_suffix(".lock")):
            yield


def option() -> str:
    """The JVM's option that names the archive, as Spark reads options; empty where there is none."""
    found = place()
    return f'"-XX:SharedArchiveFile={found.file}"' if found and found.is_whole() else ""


def place() -> Place | None:
    """For this Java and this environment's pyspark; None where either can't be told, or something else counts."""
    java, theirs = jars.java_path(), jars.pyspark_folder()
    if java is None or theirs is None or any(os.environ.get(name) for name in CLASS_PATH):
        return None
    library = Path(java).resolve().parent.parent / "lib" / "server" / "libjvm.so"
    if not library.is_file():  # what is called java is a script, or another maker's
        return None
    # In the folder's own order, which is that of the class path.
    read = [[str(path), *_state(path)] for path in (library, *theirs.glob("*.jar"))]
    digest = hashlib.sha256(json.dumps(read).encode()).hexdigest()
    file = cache_folder() / "classes" / f"{digest[:20]}.jsa"
    return None if any(mark in str(file) for mark in UNTOLD) else Place(file, theirs)


def _state(file: Path) -> list[int]:
    """Size and modification time in seconds: a container's image keeps no more of it."""
    stat = file.stat()
    return [stat.st_size, int(stat.st_mtime)]
