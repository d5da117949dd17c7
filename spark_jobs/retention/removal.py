"""Removes rows that the lake no longer keeps, in an order that readers can rely on.

Rows of `runs` are removed before their results, rows of `snapshots` before their facts, and `clusters` last. If the job is killed
in between, no reader sees the rest, and the next upkeep removes it. If no row of a file stays, the file is dropped by name
without reading it. Otherwise it is rewritten. Rows are selected by run or attempt, not by days only, so rows of concurrent
commits aren't touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.lake import tables
from durability.lake.retention import RetentionPlan
from durability.lake.tables import Table
from spark_jobs import session
from spark_jobs.retention import compaction


class Removed(NamedTuple):
    """The number of a table's files that were dropped by name, and that were rewritten without some rows."""

    table: str
    dropped: int
    rewritten: int


class Upkeep:
    """One upkeep of a lake, which removes what `plan` names."""

    def __init__(self, spark: SparkSession, plan: RetentionPlan):
        self.spark, self.plan, self.cuts = spark, plan, plan.cuts

    def remove(self) -> Iterator[Removed]:
        """Remove everything in order. Yields the result for each table."""
        yield self._listed(tables.RUNS, self.cuts.counters, "finished_at", self.cuts.counters, self.plan.runs)
        before = max(self.cuts.pulses, self.cuts.snapshots)
        yield self._listed(tables.SNAPSHOTS, before, "published_at", self.cuts.pulses, self.plan.attempts)
        yield from self._results()
        yield from self._facts()

    def _listed(self, table: Table, before: datetime, written: str, pulses: datetime, ids: list[str]) -> Removed:
        """Remove rows of these ids and of old pulses from `runs` or `snapshots`. pulses: rows before this time are old."""
        rows = self._rows(table, before, "kind", written)
        rows = rows.join(self._named(ids, _key(table)), _key(table), "left")
        old_pulse = (F.col("kind") == "pulse") & _old(written, pulses)
        return self._drop(table, rows.where(old_pulse | F.col("named")))

    def _results(self) -> Iterator[Removed]:
        """Remove details of old runs. In `health_counters`, rows of topics are details. Rows of clusters stay with their run.

        Results without a row in `runs` are removed once findings of that age are.
        """
        runs = self.spark.table(session.table(self.spark, "runs")).select(
            "result_id", "kind", "captured_at", "finished_at"
        )
        young = (F.col("kind") == "pulse") & ~_old("finished_at", self.cuts.pulses)
        stays = F.coalesce("named", F.lit(False)) | young
        known = runs.join(self._named(self.plan.in_full, "result_id"), "result_id", "left")
        # There are few runs, but maybe millions of result rows, which aren't shuffled this way.
        known = F.broadcast(known.groupBy("result_id").agg(F.max(stays).alias("stays")).localCheckpoint(eager=True))
        unconcluded = F.col("stays").isNull() & (F.col("captured_at") < F.lit(self.cuts.findings))
        before = max(self.cuts.pulses, self.cuts.findings)
        counters = tables.HEALTH_COUNTERS
        for table in (*(t for t in tables.RESULTS if t is not counters), counters):
            details = "topic IS NOT NULL" if table is counters else "true"
            rows = self._rows(table, before, where=details).join(known, "result_id", "left")
            yield self._drop(table, rows.where(~F.col("stays") | unconcluded), details)
        rows = self._rows(counters, self.cuts.findings).join(known, "result_id", "left_anti")
        yield self._drop(counters, rows)

    def _facts(self) -> Iterator[Removed]:
        """Remove facts of attempts without a row in `snapshots`. Every attempt has a row in `clusters`, which is removed last."""
        full = self.spark.table(session.table(self.spark, "snapshots")).where(F.col("kind") == "full")
        rows = self._rows(tables.CLUSTERS, self.cuts.snapshots).join(full, "attempt_id", "left_anti")
        gone = rows.select("attempt_id", F.to_date("captured_at").alias("day")).distinct().collect()
        if not gone:
            return
        # There are few attempts, but maybe millions of partitions, which aren't shuffled this way.
        named = F.broadcast(self._named((row.attempt_id for row in gone), "attempt_id"))
        days = sorted({row.day for row in gone})
        for table in (*(t for t in tables.FACTS if t is not tables.CLUSTERS), tables.CLUSTERS):
            rows = self._rows(table, self.cuts.snapshots).where(F.to_date("captured_at").isin(days))
            yield self._drop(table, rows.join(named, "attempt_id", "left_semi"))

    def _rows(self, table: Table, before: datetime, *columns: str, where: str = "true") -> DataFrame:
        """Rows captured before a time, with their file, times, keys and these columns."""
        rows = (
            self.spark.table(session.table(self.spark, table.name))
            .where(F.col("captured_at") < F.lit(before))
            .where(where)
        )
        return rows.select("_file", "captured_at", _key(table), *columns)

    def _named(self, ids: Iterable[str], key: str) -> DataFrame:
        """The ids, with `named` True."""
        return self.spark.createDataFrame([(value, True) for value in ids], f"{key} string, named boolean")

    def _drop(self, table: Table, goes: DataFrame, where: str = "true") -> Removed:
        """Remove these rows from a table, by their keys and the condition `where`."""
        key, name = _key(table), session.table(self.spark, table.name)
        found = (
            goes.groupBy("_file", key)
            .agg(
                F.count(F.lit(1)).alias("rows"), F.min("captured_at").alias("first"), F.max("captured_at").alias("last")
            )
            .localCheckpoint(eager=True)
        )
        if found.isEmpty():
            return Removed(table.name, 0, 0)
        files = self._committed_files(name)
        found = found.join(files, F.col("_file") == F.col("file_path")).localCheckpoint(eager=True)
        by_file = found.groupBy("_file", "record_count").agg(F.sum("rows").alias("rows"))
        whole = [row["_file"] for row in by_file.where("rows = record_count").collect()]
        if whole:
            compaction.drop_files(self.spark, name, whole)
        partly = found.join(by_file.where("rows < record_count").select("_file"), "_file", "left_semi")
        bounds = partly.agg(F.countDistinct("_file").alias("files"), F.min("first"), F.max("last")).collect()[0]
        if bounds["files"]:
            first, last = (compaction.timestamp(moment.replace(tzinfo=UTC)) for moment in bounds[1:])
            partly.select(key).distinct().createOrReplaceTempView("goes")
            self.spark.sql(
                f"DELETE FROM {name} WHERE captured_at >= {first} AND captured_at <= {last} AND {where} "
                f"AND {key} IN (SELECT {key} FROM goes)"
            )
        return Removed(table.name, len(whole), bounds["files"])

    def _committed_files(self, name: str) -> DataFrame:
        """file_path and record_count of a table's files, if their commit is so old that its run must be over."""
        young = self.spark.table(f"{name}.snapshots").where(F.col("committed_at") >= F.lit(self.plan.committed_before))
        entries = self.spark.table(f"{name}.entries").where("status < 2")
        old = entries.join(young.select("snapshot_id"), "snapshot_id", "left_anti")
        return old.select("data_file.file_path", "data_file.record_count")


def _key(table: Table) -> str:
    return "attempt_id" if table in (*tables.FACTS, tables.SNAPSHOTS) else "result_id"


def _old(written: str, cut: datetime) -> Column:
    """Written and captured before `cut`, as in `durability.lake.retention`."""
    return (F.col(written) < F.lit(cut)) & (F.col("captured_at") < F.lit(cut))
