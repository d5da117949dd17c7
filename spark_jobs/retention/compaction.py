"""Compacts tables with Iceberg's own procedures. Each procedure is called only if a table needs it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from py4j.java_gateway import JavaObject  # type: ignore[import-untyped]
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from durability.lake.retention import RetentionPlan
from durability.lake.tables import CATALOG, Table
from spark_jobs import session

MANIFESTS = 16
"""The number of manifests from which on they are rewritten into fewer. Every commit adds one."""
FILE_BYTES = 128 << 20
OPTIONS = {
    "min-input-files": "2",
    "target-file-size-bytes": str(FILE_BYTES),
    # Rewrite one day at a time. That bounds memory, and finished days stay done if the job is killed.
    "max-concurrent-file-group-rewrites": "1",
    "partial-progress.enabled": "true",
    "partial-progress.max-commits": "10",
}


def maintain(spark: SparkSession, table: Table, plan: RetentionPlan) -> Iterator[str]:
    """Compact past days, rewrite manifests, expire states and remove orphan files. Yields a line per action."""
    name = session.table(spark, table.name)
    if _data_files(_loaded(spark, name)) > 1 and crowded(spark, name, plan.compact_before):
        before, after = compact(spark, table, plan.compact_before)
        yield f"files={before}->{after}"
    manifests = _manifests(_loaded(spark, name))
    if manifests >= MANIFESTS:
        _call(spark, "rewrite_manifests", table, "use_caching => false")
        yield f"manifests_rewritten={manifests}"
    if expire(_loaded(spark, name), plan.expire_before):
        yield f"expired_before={plan.expire_before:%Y-%m-%dT%H:%M}"
    # Spark has no file system for S3 here, so Iceberg's own client lists S3.
    on_s3 = (spark.conf.get(f"spark.sql.catalog.{CATALOG}.warehouse") or "").startswith("s3://")
    listing = ["prefix_listing => true"] if on_s3 else []
    orphans = _call(spark, "remove_orphan_files", table, f"older_than => {timestamp(plan.orphans_before)}", *listing)
    if orphans:
        yield f"orphans_removed={len(orphans)}"


def expire(stored: JavaObject, before: datetime) -> bool:
    """Expire a table's states older than `before`, and delete files that no state needs. Returns whether there were any.

    Iceberg's library does it without Spark. The procedure `expire_snapshots` took 2.5 s per table for a few files, because it
    finds unused files with joins.
    """
    millis = int(before.timestamp() * 1000)
    named = {ref.snapshotId() for ref in stored.refs().values()}
    if not any(s.timestampMillis() < millis and s.snapshotId() not in named for s in stored.snapshots()):
        return False
    stored.expireSnapshots().expireOlderThan(millis).retainLast(1).commit()
    return True


def _loaded(spark: SparkSession, name: str) -> JavaObject:
    """A table's present state, as Iceberg's `org.apache.iceberg.Table`."""
    return session.jvm(spark).org.apache.iceberg.spark.Spark3Util.loadIcebergTable(spark._jsparkSession, name)


def _data_files(stored: JavaObject) -> int:
    current = stored.currentSnapshot()
    return 0 if current is None else int(current.summary()["total-data-files"])


def _manifests(stored: JavaObject) -> int:
    current = stored.currentSnapshot()
    return 0 if current is None else current.allManifests(stored.io()).size()


def crowded(spark: SparkSession, name: str, before: datetime) -> bool:
    """Whether a day before `before` has several small files."""
    files = spark.table(f"{name}.files").where(f"file_size_in_bytes < {FILE_BYTES * 3 // 4}")
    by_day = files.groupBy(F.col("partition.captured_at_day").alias("day")).count()
    return not by_day.where((F.col("day") < F.lit(before.date())) & (F.col("count") > 1)).isEmpty()


def compact(spark: SparkSession, table: Table, before: datetime) -> tuple[int, int]:
    """Rewrite the small files of each day before `before` in the table's order. Returns their number before and after."""
    name = session.table(spark, table.name)
    order = ", ".join(f"{column} ASC NULLS FIRST" for column in table.sort)
    options = ", ".join(f"'{key}', '{value}'" for key, value in OPTIONS.items())
    (done,) = _call(
        spark,
        "rewrite_data_files",
        table,
        "strategy => 'sort'",
        f"sort_order => '{order}'",
        f'where => "captured_at < {timestamp(before)}"',
        f"options => map({options})",
    )
    if done["failed_data_files_count"]:
        raise RuntimeError(f"{name}: {done['failed_data_files_count']} files could not be compacted; see the log above")
    return done["rewritten_data_files_count"], done["added_data_files_count"]


def drop_files(spark: SparkSession, name: str, paths: Sequence[str]) -> None:
    """Remove files from a table in one commit. It reads no data and doesn't conflict with concurrent appends."""
    delete = _loaded(spark, name).newDelete()
    for path in paths:
        # Don't pass a Java String: py4j would call SnapshotProducer's own deleteFile(String), which deletes the file
        # itself but not its entry in the table.
        delete.deleteFile(session.jvm(spark).java.lang.StringBuilder(path))
    delete.commit()


def timestamp(moment: datetime) -> str:
    """A time as SQL text in the session's time zone, UTC."""
    return f"TIMESTAMP '{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"


def _call(spark: SparkSession, procedure: str, table: Table, *arguments: str) -> list:
    named = ", ".join([f"table => '{session.namespace(spark)}.{table.name}'", *arguments])
    return spark.sql(f"CALL {CATALOG}.system.{procedure}({named})").collect()
