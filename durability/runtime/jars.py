"""Fetches the Java libraries once into the cache folder (`durability.resources`) and checks them against `jars.lock`.

The lock file names every jar of a set with its SHA-256. No other jar is put on a class path. Apache Ivy, which comes with
pyspark, downloads the jars, so no registry address is needed here. To use a mirror, set DURABILITY_IVY_SETTINGS to an Ivy
settings file.

Sets:

- `kafka-4.3.1`: brokers, command-line tools, Streams and its examples, with their runtime dependencies;
- `kafka-3.6.2`: the old broker (before effective min ISR, KAFKA-15583) and its tools;
- `spark`: Iceberg's Spark runtime and the two catalogs' JDBC drivers;
- `spark-s3`: what Iceberg also needs for a lake on S3.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from durability.errors import AuditError, Refused
from durability.resources import cache_folder
from durability.runtime.locks import file_lock

LOCK = Path(__file__).with_name("jars.lock")
JAVA_MINIMUM = 17
IVY_PROCESSES = 2
IVY_TIMEOUT = 240  # seconds, for one Ivy process

# Roots that `lock` resolves, (group, artifact, version), with their runtime dependencies. Kafka includes slf4j without a
# binding. Without one, a broker that fails logs nothing.
ROOTS: dict[str, tuple[tuple[str, str, str], ...]] = {
    "kafka-4.3.1": (
        ("org.apache.kafka", "kafka_2.13", "4.3.1"),
        ("org.apache.kafka", "kafka-tools", "4.3.1"),
        ("org.apache.kafka", "kafka-streams-examples", "4.3.1"),
        ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
    ),
    "kafka-3.6.2": (
        ("org.apache.kafka", "kafka_2.13", "3.6.2"),
        ("org.apache.kafka", "kafka-tools", "3.6.2"),
        ("org.slf4j", "slf4j-reload4j", "1.7.36"),
    ),
    "spark": (
        ("org.apache.iceberg", "iceberg-spark-runtime-4.1_2.13", "1.11.0"),
        ("org.xerial", "sqlite-jdbc", "3.50.3.0"),
        ("org.postgresql", "postgresql", "42.7.8"),
    ),
    "spark-s3": (("org.apache.iceberg", "iceberg-aws-bundle", "1.11.0"),),
}

_SETTINGS = """<ivysettings><settings defaultResolver="central"/>
<resolvers><ibiblio name="central" m2compatible="true" {poms}/></resolvers></ivysettings>
"""


@dataclass(frozen=True, order=True)
class Jar:
    """One locked jar: Maven coordinates and the SHA-256 (hex) of the file."""

    group: str
    artifact: str
    version: str
    classifier: str
    sha256: str

    @property
    def file(self) -> str:
        return "-".join(p for p in (self.artifact, self.version, self.classifier) if p) + ".jar"

    @property
    def fetched_as(self) -> str:
        return "@".join(p for p in (self.group, self.artifact, self.version, self.classifier) if p) + ".jar"

    @property
    def coordinates(self) -> str:
        return ":".join(p for p in (self.group, self.artifact, self.version, self.classifier) if p)


def locked(name: str) -> list[Jar]:
    """The jars of set `name` in `jars.lock`. Raises Refused for an unknown name."""
    sets = _read_lock()
    if name not in sets:
        raise Refused(f"jars.lock knows no set named {name!r}; it has {', '.join(sorted(sets))}")
    return sets[name]


def ensure(name: str) -> Path:
    """The folder with exactly the jars of set `name`, each checked against its SHA-256.

    Missing jars are downloaded, by one process at a time. A checked file is trusted as long as its size and modification
    time don't change. Raises AuditError with the name of a jar that can't be fetched or has another checksum.
    """
    jars = locked(name)
    home = cache_folder() / "jars"
    folder, stamp = home / name, home / f"{name}.json"
    home.mkdir(parents=True, exist_ok=True)
    with file_lock(home / f"{name}.lock"):
        folder.mkdir(exist_ok=True)
        known = _read_stamp(stamp)
        missing = [jar for jar in jars if not _is_intact(folder / jar.file, jar, known)]
        if missing:
            _download(missing, folder)
        wanted = {jar.file for jar in jars}
        for stray in folder.iterdir():
            if stray.name not in wanted:
                stray.unlink()
        current = {jar.file: _state(folder / jar.file, jar) for jar in jars}
        if current != known:
            _replace(stamp, json.dumps(current, indent=0))
    return folder


def is_fetched(name: str) -> bool:
    """Whether set `name` was fetched before. If not, `ensure` takes a while and the user should be informed."""
    return (cache_folder() / "jars" / f"{name}.json").is_file()


def java_path() -> str | None:
    """Path of the `java` that would be started, from JAVA_HOME, else PATH; None if there is none."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=str(Path(home, "bin"))) if home else shutil.which("java")


def pyspark_folder() -> Path | None:
    """The folder of pyspark's jars in this environment; None if pyspark isn't installed."""
    spec = importlib.util.find_spec("pyspark")  # located, not imported: importing it takes a second
    return Path(spec.origin).parent / "jars" if spec and spec.origin else None


@functools.lru_cache(maxsize=1)
def java_command() -> str:
    """Path of a `java` of version 17 or newer. Raises Refused with the fix if there is none."""
    remedy = f"Java {JAVA_MINIMUM} or newer is needed; on Debian: apt-get install openjdk-17-jre-headless"
    home, java = os.environ.get("JAVA_HOME"), java_path()
    if java is None:
        raise Refused(f"no java in {f'JAVA_HOME ({home})' if home else 'PATH'}: {remedy}")
    said = subprocess.run([java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-version"], capture_output=True, text=True)
    found = re.search(r'version "(\d+)(?:\.(\d+))?', said.stderr)
    if found is None:
        raise Refused(f"{java} -version answered nothing that can be read: {remedy}")
    major = int(found[2] or 8) if found[1] == "1" else int(found[1])
    if major < JAVA_MINIMUM:
        raise Refused(f"{java} is Java {major}: {remedy}")
    return java


def _read_lock() -> dict[str, list[Jar]]:
    sets: dict[str, list[Jar]] = {}
    for line in LOCK.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = sets.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            sha256, coordinates = line.split()
            group, artifact, version, *classifier = coordinates.split(":")
            current.append(Jar(group, artifact, version, ":".join(classifier), sha256))
    return sets


def _state(path: Path, jar: Jar) -> list:
    stat = path.stat()
    return [jar.sha256, stat.st_size, stat.st_mtime_ns]


def _is_intact(path: Path, jar: Jar, known: dict[str, list]) -> bool:
    if not path.is_file():
        return False
    return known.get(jar.file) == _state(path, jar) or _sha256(path) == jar.sha256


def _read_stamp(stamp: Path) -> dict[str, list]:
    try:
        known = json.loads(stamp.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}  # no file was checked yet
    return known if isinstance(known, dict) else {}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def _ivy_jar() -> Path:
    folder = pyspark_folder()
    if folder is None:
        raise Refused("pyspark isn't installed, and the downloader of jars comes with it: run `make setup`")
    found = sorted(folder.glob("ivy-*.jar"))
    if not found:
        raise Refused(f"no ivy-*.jar in {folder}: the installed pyspark isn't the full one")
    return found[-1]


def _download(jars: Sequence[Jar], folder: Path) -> None:
    """Download `jars`, check each one, and move it into `folder` atomically."""
    prefix = f".fetch-{folder.name}."
    for left in folder.parent.glob(f"{prefix}*"):  # left by a killed process: the caller has the folder's lock
        shutil.rmtree(left, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=folder.parent) as temporary:
        parts = [jars[i::IVY_PROCESSES] for i in range(IVY_PROCESSES)]
        with ThreadPoolExecutor(IVY_PROCESSES) as pool:
            outputs = list(pool.map(lambda i: _ivy(parts[i], Path(temporary, str(i))), range(len(parts))))
        for i, part in enumerate(parts):
            for jar in part:
                _accept(jar, Path(temporary, str(i), "out", jar.fetched_as), folder, outputs[i])


def _accept(jar: Jar, fetched: Path, folder: Path, output: str) -> None:
    if not fetched.is_file():
        raise AuditError(
            f"can't download {jar.coordinates}; check the network, or name your own mirror in an Ivy settings file "
            f"(DURABILITY_IVY_SETTINGS). The downloader said: {_complaint(output, jar)}"
        )
    found = _sha256(fetched)
    if found != jar.sha256:
        raise AuditError(f"{jar.coordinates} as downloaded has SHA-256 {found}, jars.lock wants {jar.sha256}: not used")
    fetched.replace(folder / jar.file)


def _complaint(output: str, jar: Jar) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip(" \t:.")]
    about = [
        line
        for line in lines
        if jar.artifact in line and ("rror" in line or "nreachable" in line or "not found" in line)
    ]
    return (about or [line for line in lines if "rror" in line or "xception" in line] or lines or ["nothing"])[0][:300]


def _ivy(jars: Sequence[Jar], work: Path) -> str:
    """Fetch only `jars` into `work`/out with one Ivy process that has its own cache. Returns its output."""
    if not jars:
        return ""
    wanted = "".join(_dependency(jar) for jar in jars)
    return _run_ivy(wanted, 'defaultconf="*->*"', work, 'usepoms="false" checksums=""')


def _dependency(jar: Jar) -> str:
    group, artifact, version = quoteattr(jar.group), quoteattr(jar.artifact), quoteattr(jar.version)
    start = f'<dependency org={group} name={artifact} rev={version} transitive="false"'
    if not jar.classifier:
        return f"{start}/>"
    classified = f'<artifact name={artifact} type="jar" ext="jar" m:classifier={quoteattr(jar.classifier)}/>'
    return f"{start}>{classified}</dependency>"


def _run_ivy(dependencies: str, attributes: str, work: Path, poms: str) -> str:
    work.mkdir(parents=True)
    module = work / "ivy.xml"
    module.write_text(
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        '<info organisation="durability" module="jars"/>'
        f"<dependencies {attributes}>{dependencies}</dependencies></ivy-module>",
        encoding="utf-8",
    )
    settings = os.environ.get("DURABILITY_IVY_SETTINGS")
    if settings is None:
        settings = str(work / "settings.xml")
        Path(settings).write_text(_SETTINGS.format(poms=poms), encoding="utf-8")
    elif not Path(settings).is_file():
        raise Refused(f"DURABILITY_IVY_SETTINGS names {settings}, which is no file")
    command = [
        *(java_command(), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", str(_ivy_jar()), "org.apache.ivy.Main"),
        *("-settings", settings, "-cache", str(work / "cache"), "-ivy", str(module), "-types", "jar", "bundle"),
        *("-retrieve", str(work / "out" / "[organisation]@[artifact]@[revision](@[classifier]).[ext]")),
    ]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=IVY_TIMEOUT)
    except subprocess.TimeoutExpired as slow:
        raise AuditError(f"downloading jars took more than {IVY_TIMEOUT} s; check the network") from slow
    return done.stdout


def main(arguments: Sequence[str]) -> int:
    """`ensure SET...` fetches sets and prints their folders."""
    match list(arguments):
        case ["ensure", *names] if names:
            for name in names:
                print(ensure(name))
        case _:
            print("usage: python -m durability.runtime.jars ensure SET...", file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except AuditError as error:
        sys.exit(f"error: {error}")
