"""An archive of the classes that Spark's driver loads: the JDK's class data sharing (JEP 350).

Starting Spark and planning a run loads some 17,000 classes. Read from jars, checked and linked that is seconds of every
run; from the archive they are mapped into memory as they were. `durability.launch.classes` makes one for each Java and each
set of jars, in the cache folder. A run for which there is none loads its classes as ever.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from durability.runtime import jars

KEPT = 3
"""Archives in one cache folder, for environments that share it; some 180 MB each."""


def option() -> str:
    """The JVM's option that names the archive, as Spark reads options; empty where there is none."""
    file = place()
    return f'"-XX:SharedArchiveFile={file}"' if file and _state(file) == _noted(file) else ""


def place() -> Path | None:
    """Where the archive stands, or would, for this Java and these jars; None where either can't be told.

    None with a SPARK_CONF_DIR too: that is put before the jars, and a class path has to begin as the archive's does.
    """
    if os.environ.get("SPARK_CONF_DIR"):
        return None
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")
    spec = importlib.util.find_spec("pyspark")  # located, not imported: importing it takes a second
    if java is None or spec is None or spec.origin is None:
        return None
    library = Path(java).resolve().parent.parent / "lib" / "server" / "libjvm.so"
    if not library.is_file():  # what is called java is a script, or another maker's
        return None
    read = [library, *sorted(Path(spec.origin).parent.joinpath("jars").glob("*.jar"))]
    digest = hashlib.sha256(json.dumps([[str(path), *_state(path)] for path in read]).encode()).hexdigest()
    return jars.cache_folder() / "classes" / f"{digest[:20]}.jsa"


def keep(made: Path, file: Path) -> None:
    """Puts an archive that a JVM has `made`, whole, in its `place`; the oldest of more than KEPT go."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(f".{os.getpid()}")
    shutil.move(made, beside)
    beside.replace(file)
    # A JVM that is given half an archive dies of it.
    _note(file).write_text(json.dumps(_state(file)), encoding="utf-8")
    for old in _oldest(file.parent.glob("*.jsa")):
        _note(old).unlink(missing_ok=True)
        old.unlink(missing_ok=True)


def _oldest(files: Iterable[Path]) -> list[Path]:
    return sorted(files, key=lambda path: path.stat().st_mtime_ns, reverse=True)[KEPT:]


def _note(file: Path) -> Path:
    return file.with_suffix(".json")


def _noted(file: Path) -> list[int] | None:
    try:
        return json.loads(_note(file).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None


def _state(file: Path) -> list[int]:
    """Size and modification time of a file, zeros where there is none."""
    if not file.is_file():
        return [0, 0]
    stat = file.stat()
    return [stat.st_size, stat.st_mtime_ns]
