"""Makes the lake of an earlier version that tests/unit/lake/test_upgrade.py upgrades: two nights with a pulse in between.

Run it in a checkout of that version, whose code writes the lake, with the archive's name:

    cd CHECKOUT && PYTHONPATH=$PWD python -P THIS_FILE lake-0.1.tar.gz

tests/data/lake-0.1.tar.gz is from commit d603281, the last one before Python wrote the texts of findings. Iceberg's metadata has
absolute paths, so the archive has the lake's path in `location`. Its Avro files aren't compressed, so that
`tests.support.old_lake` can replace a path in them by another one of the same length.
"""

from __future__ import annotations

import argparse
import io
import shutil
import sqlite3
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

LENGTH = 200
"""Length of the lake's path. It must be unpacked into a path of the same length."""
POLICY = """\
format: durability-policy/1
tiers:
  all:
    replication_factor: 3
    min_insync_replicas: 2
    write_headroom: 1
    replica_racks: 3
    min_insync_racks: 2
    unclean_leader_election: false
topics:
  - tier: all
"""
WAIVERS = """\
format: durability-waivers/1
waivers:
  - {control: replication-factor, cluster: eu, resource: accepted, owner: a, reason: r, expires: 2027-01-31}
"""
# Racks: az1 has broker 1, az2 2, az3 3. az3 is lost in the second night, and then the minimum of `lowered` is 2.
FIRST = """
    topic     leader  replicas  isr    min
    thin      1       1         1      1
    accepted  1       1         1      2
    lowered   1       1,2,3     1,2,3  3
    low       1       1,2,3     1,2,3  1
    dropped   1       1,2       1,2    2
    good      1       1,2,3     1,2,3  2
    good      2       2,3,1     2,3,1  2
"""
SECOND = """
    topic     leader  replicas  isr    min
    thin      1       1         1      1
    accepted  1       1         1      2
    lowered   1       1,2,3     1,2    2
    low       1       1,2,3     1,2    1
    dropped   1       1,2       1,2    2
    wide      1       1,2       1,2    3
    gone      -       3         -      1
    good      1       1,2,3     1,2    2
    good      2       2,3,1     2,1    2
"""
RUNS = (
    ("nightly", "2026-11-20T12:00:00Z", FIRST, "1:az1 2:az2 3:az3"),
    ("pulse", "2026-11-21T11:00:00Z", SECOND, "1:az1 2:az2 3:az3!"),
    ("nightly", "2026-11-21T12:00:00Z", SECOND, "1:az1 2:az2 3:az3!"),
)


def write(lake, session, folder: Path) -> None:
    """Run the steps of the two DAGs. `folder` has the policy and the runs' artifacts."""
    from durability import report
    from durability.plan import build_plan
    from durability.policy import load_policy, load_waivers
    from durability.topology import validate
    from expectations import gate, posture
    from spark_jobs import evaluate, lake_tables
    from tests.support.topology import document

    (folder / "policy.yaml").write_text(POLICY)
    (folder / "waivers.yaml").write_text(WAIVERS)
    for kind, moment, table, brokers in RUNS:
        drawn = document(table, cluster="eu", captured_at=moment, brokers=brokers)
        attempt = lake.stage(validate(drawn, "eu.json"))
        attempt = type(attempt)(**{**vars(attempt), "kind": "pulse" if kind == "pulse" else "full"})
        plan = build_plan(
            lake,
            run_id=f"{kind} {moment}",
            result_id=f"{kind}-{moment[:10]}",
            kind=kind,
            policy=load_policy(folder / "policy.yaml"),
            waivers=load_waivers(folder / "waivers.yaml"),
            snapshots=lake.publish([attempt], gate.check(lake, [attempt])),
            attempts=[attempt],
            started_at=datetime.fromisoformat(moment),
        )
        evaluate.run(session, plan, lake_tables.reader(session, plan), lake_tables.append)
        if kind == "pulse":
            lake.discard([attempt])
            conclude(lake, plan, None, {})
        else:
            flagged = posture.flag(lake, plan, folder / "out")
            assert flagged.verified, flagged.problems
            made = report.build(lake, plan, flagged, folder / "out")
            conclude(lake, plan, True, report.files.load(made.files["findings.json"])["summary"])


def conclude(lake, plan, verified: bool | None, summary: dict) -> None:
    from kafka_durability.operators import run_row

    row = run_row(plan, "complete", verified, summary)
    lake.commit_run({**row, "finished_at": row["started_at"].replace(minute=5)})


def spark(lake, folder: Path):
    """A session on the lake."""
    from durability.launch.spark import settings
    from pyspark.sql import SparkSession

    from durability.runtime import jars
    from spark_jobs.session import REQUIRED

    files = ",".join(str(path) for path in sorted(jars.ensure("spark").glob("*.jar")))
    own = {"spark.jars": files, "spark.driver.host": "127.0.0.1", "spark.sql.warehouse.dir": str(folder / "spark")}
    builder = SparkSession.builder.master("local[2]")
    for name, value in {**settings(partitions=1), **REQUIRED, **own, **lake.spark_conf()}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


# Avro's files without compression: https://avro.apache.org/docs/1.12.0/specification/#object-container-files


def plain(compressed: bytes) -> bytes:
    """The same container file with uncompressed blocks."""
    stream = io.BytesIO(compressed)
    out = [stream.read(4)]
    properties = dict(_properties(stream))
    deflated = properties.get(b"avro.codec") == b"deflate"
    properties[b"avro.codec"] = b"null"
    out += [_number(len(properties)), *(_text(part) for pair in properties.items() for part in pair), _number(0)]
    sync = stream.read(16)
    out.append(sync)
    while stream.tell() < len(compressed):
        count, block = _read(stream), stream.read(_read(stream))
        out += [_number(count), _text(zlib.decompress(block, -15) if deflated else block), stream.read(16)]
    return b"".join(out)


def _properties(stream: io.BytesIO) -> Iterator[tuple[bytes, bytes]]:
    while count := _read(stream):
        if count < 0:
            _read(stream)  # the block's size
        for _ in range(abs(count)):
            yield stream.read(_read(stream)), stream.read(_read(stream))


def _read(stream: io.BytesIO) -> int:
    """A long in Avro's encoding: seven bits per byte, zigzag."""
    value = shift = 0
    while True:
        (byte,) = stream.read(1)
        value |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return (value >> 1) ^ -(value & 1)


def _number(value: int) -> bytes:
    value, out = (value << 1) ^ (value >> 63), bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _text(value: bytes) -> bytes:
    return _number(len(value)) + value


def uncompress(lake) -> None:
    """Rewrite all manifests and lists of manifests. The lists state the lengths of manifests."""
    from pyiceberg.manifest import write_manifest_list

    from durability.lake.tables import TABLES

    warehouse = Path(lake.location, "warehouse")
    for path in warehouse.rglob("metadata/*.avro"):
        path.write_bytes(plain(path.read_bytes()))
    for table in TABLES.values():
        current = lake._tables.load(table)
        for snapshot in current.metadata.snapshots:
            listed = snapshot.manifests(current.io)
            for manifest in listed:
                manifest[1] = Path(urlsplit(manifest.manifest_path).path).stat().st_size
            about = (snapshot.snapshot_id, snapshot.parent_snapshot_id, snapshot.sequence_number, "null")
            with write_manifest_list(2, current.io.new_output(snapshot.manifest_list), *about) as rewritten:
                rewritten.add_manifests(listed)


def pack(location: Path, archive: Path) -> None:
    with sqlite3.connect(location / "catalog.db") as database:
        database.execute("PRAGMA journal_mode = DELETE")
    (location / "location").write_text(str(location))
    with tarfile.open(archive, "w:gz", compresslevel=9) as tar:
        for name in ("location", "catalog.db", "warehouse"):
            tar.add(location / name, name, filter=_nobodys)


def _nobodys(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return None if entry.name.endswith(".crc") else entry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    archive = parser.parse_args().archive.absolute()
    folder = Path(tempfile.mkdtemp(prefix="old-lake-"))
    location = folder / ("x" * (LENGTH - len(str(folder)) - 1))

    import sys

    from durability.lake import Lake

    sys.path.append("plugins")
    lake = Lake.open(str(location))
    lake.ensure()
    session = spark(lake, folder)
    try:
        write(lake, session, folder)
    finally:
        session.stop()
    uncompress(lake)
    pack(location, archive)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
