"""The lake as the rooms use it: stage facts, publish them, read them, keep results.

Facts count from their row in `snapshots`, results from theirs in `runs`; each is written last, so that whoever dies in
between leaves what was there before. A pulse's facts are never committed: its row in `snapshots` says that it was taken,
its staged files are read by its own run and removed with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThanOrEqual,
    In,
    LessThanOrEqual,
)

from durability.errors import Refused
from durability.lake import alike, catalog, keep, restore, rows, staging, tables
from durability.lake.attempt import FULL, PULSE, Attempt, SnapshotRow
from durability.lake.iceberg import Tables
from durability.lake.storage import Wanted
from durability.lake.tables import FACTS, TABLES, Table
from durability.policy.model import Retention
from durability.topology.document import Topology


class Verdict(Protocol):
    """What `publish` needs of the gate's verdict on an attempt."""

    @property
    def attempt_id(self) -> str: ...

    @property
    def accepted(self) -> bool: ...

    @property
    def reason(self) -> str | None: ...


class Lake:
    """One lake; see `open`."""

    def __init__(self, place: catalog.Place):
        self.place = place
        self.location = place.location
        self._tables = Tables(place)

    @classmethod
    def open(cls, location: str) -> Lake:
        """The lake at a folder (made if need be) or s3:// address; DURABILITY_CATALOG names its PostgreSQL catalog.

        Raises Refused if the place can't be used or holds something else, Unreachable if its catalog doesn't answer.
        """
        place = catalog.place(str(location))
        catalog.prepare(place)
        return cls(place)

    def ensure(self) -> None:
        """Makes the tables that aren't there and adds columns to those of an earlier version; may run concurrently.

        Raises Refused if the lake's tables fit no earlier version.
        """
        self._tables.ensure()

    def spark_conf(self) -> dict[str, str]:
        """Settings of a Spark session whose catalog `durability` is this lake, without secrets."""
        return catalog.spark_conf(self.place)

    def spark_secrets(self) -> dict[str, str]:
        """The rest of those settings: for a properties file that only its owner can read."""
        return catalog.spark_secrets(self.place)

    # Facts

    def stage(
        self,
        topology: Topology,
        *,
        provider: str = "self",
        team: str | None = None,
        attempt_id: str | None = None,
        earlier: Iterable[Topology] = (),
    ) -> Attempt:
        """Writes a topology's rows as Parquet files of fresh names and commits nothing.

        provider, team: who runs the cluster and who owns it, as the clusters file says.
        earlier: topologies of the same input. A broker that is down and whose rack isn't known takes its rack from
            the newest of them that is older than this one, else from the cluster's last accepted snapshot.
        """
        snapshot_id = f"{topology.cluster}@{topology.captured_at.isoformat()}" if topology.live else topology.sha256
        attempt_id = attempt_id or uuid.uuid4().hex
        built = rows.build(topology, snapshot_id, attempt_id, provider=provider, team=team)
        missing = rows.unknown_racks(built[tables.BROKERS.name])
        if missing:
            carried = self._known_racks(topology, earlier)
            built[tables.BROKERS.name] = rows.carry(built[tables.BROKERS.name], carried)
        files = self.write(built)
        return Attempt(
            cluster=topology.cluster,
            snapshot_id=snapshot_id,
            attempt_id=attempt_id,
            captured_at=topology.captured_at,
            sha256=topology.sha256,
            source=topology.source,
            files=files,
            partitions=built[tables.PARTITIONS.name].num_rows,
        )

    def write(self, built: Mapping[str, pa.Table]) -> dict[str, list[str]]:
        """Writes rows by fact table's name as files of fresh names, which no table shows; their addresses by table."""
        return {
            table.name: [self._tables.storage.write(table.identifier, *_parts(table, built[table.name]))]
            for table in FACTS
            if built[table.name].num_rows
        }

    def _known_racks(self, topology: Topology, earlier: Iterable[Topology]) -> dict[int, str]:
        """Racks by broker id: the last accepted snapshot's, then each earlier topology's of the input over them."""
        last = self.last_accepted(topology.cluster, before=topology.captured_at)
        racks = rows.racks_of(self.facts(tables.BROKERS, last)) if last else {}
        older = [t for t in earlier if t.cluster == topology.cluster and t.captured_at < topology.captured_at]
        for other in sorted(older, key=lambda t: t.captured_at):
            racks |= rows.racks_named(other)
        return racks

    def read_staged(self, attempt: Attempt, table: Table) -> pa.Table:
        """The rows that an attempt staged for a fact table; raises Refused, naming the file, if it is damaged."""
        return self.read_files(table, attempt.files.get(table.name, []))

    def read_files(self, table: Table, paths: Iterable[str]) -> pa.Table:
        """The rows of files staged for a fact table; raises Refused, naming the file, if one is damaged."""
        parts = [self._tables.storage.read(path, Wanted(table.arrow, None, table.arrow)) for path in paths]
        return pa.concat_tables(parts) if parts else table.arrow.empty_table()

    def publish(self, attempts: Sequence[Attempt], verdicts: Iterable[Verdict]) -> list[SnapshotRow]:
        """Commits attempts, each fact table once, then their rows in `snapshots`, which make them count.

        An attempt that the gate rejected is kept, with the reason. What an interrupted publish has committed already
        isn't committed again. Of a pulse's attempts nothing is committed but the rows in `snapshots`.
        Raises Refused, naming the file, if one is missing or damaged; then nothing is committed.
        """
        judged = {verdict.attempt_id: verdict for verdict in verdicts}
        for attempt in attempts:
            if attempt.attempt_id not in judged:
                raise Refused(f"cluster {attempt.cluster}: its snapshot has no verdict; rerun the gate")
            for paths in attempt.files.values():
                for path in paths:
                    self._tables.storage.footer(path)
        full = [attempt for attempt in attempts if attempt.kind != PULSE]
        for table in FACTS:
            self._publish_table(table, full)
        now = datetime.now(UTC)
        published = [_snapshot_row(attempt, judged[attempt.attempt_id], now) for attempt in attempts]
        self._append_snapshots(published)
        return published

    def _publish_table(self, table: Table, attempts: Sequence[Attempt]) -> None:
        paths = [path for attempt in attempts for path in attempt.files.get(table.name, [])]
        if not paths:
            return
        there = self._committed(table, attempts)
        fresh = [path for path in paths if path not in there]
        if fresh:
            self._tables.add_files(table, fresh)

    def _committed(self, table: Table, attempts: Sequence[Attempt]) -> set[str]:
        """The committed files of a fact table that may hold rows of these attempts."""
        moments = [attempt.captured_at for attempt in attempts]
        ids = {attempt.attempt_id for attempt in attempts}
        return self._tables.files(table, And(_between(min(moments), max(moments)), In("attempt_id", ids)))

    def discard(self, attempts: Sequence[Attempt]) -> int:
        """Removes the staged files of attempts, but none that is committed; returns how many were there to remove."""
        removed = 0
        for table in FACTS:
            paths = [path for attempt in attempts for path in attempt.files.get(table.name, [])]
            if paths:
                removed += staging.remove(self.place.warehouse, set(paths) - self._committed(table, attempts))
        return removed

    def discard_orphans(self, older_than: timedelta = staging.ORPHANED_AFTER) -> int:
        """Removes staged files of runs that were killed: so old, and in no snapshot of their table; returns how many.

        A run that may still publish must be younger than that.
        """
        before = datetime.now(UTC) - older_than
        removed = 0
        for table in FACTS:
            # Listed before the table is read, so that what is committed in between is seen as committed.
            old = staging.listed(self.place.warehouse, self._tables.storage.table_location(table.identifier), before)
            if old:
                known = self._tables.names_of_files(table)
                orphans = [path for path in old if path.rpartition("/")[2] not in known]
                removed += staging.remove(self.place.warehouse, orphans)
        return removed

    def record_failures(self, failures: Iterable[tuple[str, datetime, str]], kind: str = FULL) -> list[SnapshotRow]:
        """Writes that clusters could not be read: (cluster, when it was tried, why). kind: of the run that tried."""
        now = datetime.now(UTC)
        failed = [
            SnapshotRow(
                cluster=cluster,
                captured_at=captured_at,
                snapshot_id=f"{cluster}@{captured_at.astimezone(UTC).isoformat()}",
                attempt_id=uuid.uuid4().hex,
                status="failed",
                reason=reason,
                sha256=None,
                source=None,
                published_at=now,
                kind=kind,
                partitions=None,
            )
            for cluster, captured_at, reason in failures
        ]
        self._append_snapshots(failed)
        return failed

    def _append_snapshots(self, published: list[SnapshotRow]) -> None:
        if published:
            self.append(
                tables.SNAPSHOTS, pa.Table.from_pylist([vars(row) for row in published], tables.SNAPSHOTS.arrow)
            )

    def snapshots(
        self,
        cluster: str | None = None,
        status: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
    ) -> list[dict]:
        """The rows of `snapshots` that count: of each snapshot the newest, sorted by cluster and captured_at.

        kind: full or pulse, both by default. A document's snapshot may have been taken by a pulse and in full: those are
        two rows, since the one has facts and the other hasn't. since: captured then or later.
        """
        where: BooleanExpression = EqualTo("cluster", cluster) if cluster is not None else AlwaysTrue()
        if kind is not None:
            where = And(where, EqualTo("kind", kind))
        if since is not None:
            where = And(where, GreaterThanOrEqual("captured_at", since.astimezone(UTC).isoformat()))
        newest: dict[tuple[str, str, str], dict] = {}
        for row in self.scan(tables.SNAPSHOTS, where).to_pylist():
            key = (row["cluster"], row["snapshot_id"], row["kind"])
            if key not in newest or newest[key]["published_at"] <= row["published_at"]:
                newest[key] = row
        found = [row for row in newest.values() if status is None or row["status"] == status]
        return sorted(found, key=lambda row: (row["cluster"], row["captured_at"], row["published_at"]))

    def last_accepted(self, cluster: str, before: datetime | None = None) -> dict | None:
        """The newest accepted row of `snapshots` of a cluster (captured before that moment) with all its facts, if any.

        A pulse's has none.
        """
        accepted = self.snapshots(cluster, "accepted", FULL)
        older = [row for row in accepted if before is None or row["captured_at"] < before]
        return older[-1] if older else None

    def facts(self, table: Table, snapshot: Mapping, columns: Iterable[str] | None = None) -> pa.Table:
        """The rows of a fact table that a row of `snapshots` points at."""
        here = And(EqualTo("cluster", snapshot["cluster"]), EqualTo("attempt_id", snapshot["attempt_id"]))
        moment = snapshot["captured_at"]
        return self.scan(table, And(_between(moment, moment), here), columns)

    # Results

    def commit_run(self, run: Mapping) -> None:
        """Writes a row of `runs` (its columns by name): from then on that run's results exist."""
        unknown = set(run) - {name for name, _ in tables.RUNS.columns}
        if unknown:
            raise ValueError(f"runs has no columns {sorted(unknown)}")
        self.append(tables.RUNS, pa.Table.from_pylist([dict(run)], tables.RUNS.arrow))

    def runs(self, kind: str | None = None) -> list[dict]:
        """The rows of `runs`, oldest first by finished_at; of a result written twice, the newest."""
        where = EqualTo("kind", kind) if kind is not None else None
        newest: dict[str, dict] = {}
        for row in sorted(self.scan(tables.RUNS, where).to_pylist(), key=lambda row: row["finished_at"]):
            newest.pop(row["result_id"], None)
            newest[row["result_id"]] = row
        return list(newest.values())

    def results(self, table: Table, run: Mapping, where: BooleanExpression | None = None) -> pa.Table:
        """The rows of a result table that a row of `runs` points at."""
        condition = And(EqualTo("run_id", run["run_id"]), EqualTo("result_id", run["result_id"]))
        moments = [snapshot["captured_at"] for snapshot in run["snapshots"] or [] if snapshot["captured_at"]]
        if moments:
            condition = And(_between(min(moments), max(moments)), condition)
        return self.scan(table, condition if where is None else And(condition, where))

    # Upkeep

    def decide(self, retention: Retention, look_back: timedelta, now: datetime) -> keep.Decision:
        """What the lake keeps at `now`, see `durability.lake.keep`; look_back: of the policy's readings over time."""
        full = self.scan(tables.SNAPSHOTS, EqualTo("kind", FULL)).to_pylist()
        nightly = self.scan(tables.RUNS, EqualTo("kind", "nightly"), keep.RUN_COLUMNS).to_pylist()
        return keep.decide(retention, look_back, now, full, nightly)

    def backup(self, now: datetime) -> str:
        """Writes where each table's metadata is beside the tables; returns the address, see `durability.lake.restore`."""
        return restore.backup(self._tables, now)

    # Any table

    def scan(
        self,
        table: Table,
        where: str | BooleanExpression | None = None,
        columns: Iterable[str] | None = None,
    ) -> pa.Table:
        """The rows of a table that meet a condition (all by default), in the column types of `tables.py`.

        Raises Refused, naming the file, if one is missing or damaged.
        """
        return self._tables.scan(table, where, columns)

    def parts(self, table: Table, where: BooleanExpression) -> Iterator[pa.Table]:
        """The rows of a table that meet a condition, file by file; errors as `scan`."""
        return self._tables.parts(table, where)

    def append(self, table: Table, added: pa.Table) -> None:
        """Commits rows to a table, all at once. Columns that `added` hasn't are NULL; an unknown one is a ValueError."""
        self.append_parts(table, [added])

    def append_parts(self, table: Table, parts: Iterable[pa.Table]) -> int:
        """`append` of rows that come in parts, in one commit; each is written as it comes. Returns how many rows."""
        paths, rows_ = [], 0
        for part in parts:
            complete = _complete(table, part)
            paths += [self._tables.storage.write(table.identifier, of_day) for of_day in _by_day(table, complete)]
            rows_ += complete.num_rows
        if paths:
            self._tables.add_files(table, paths)
        return rows_


def _complete(table: Table, added: pa.Table) -> pa.Table:
    """`added` with the table's columns, in its order."""
    unknown = set(added.column_names) - set(table.arrow.names)
    if unknown or table.name not in TABLES:
        raise ValueError(f"{table.name} has no columns {sorted(unknown)}")
    columns = [
        added[field.name].cast(field.type) if field.name in added.column_names else pa.nulls(added.num_rows, field.type)
        for field in table.arrow
    ]
    return pa.Table.from_arrays(columns, schema=table.arrow)


def _between(first: datetime, last: datetime) -> BooleanExpression:
    return And(
        GreaterThanOrEqual("captured_at", first.astimezone(UTC).isoformat()),
        LessThanOrEqual("captured_at", last.astimezone(UTC).isoformat()),
    )


def _by_day(table: Table, added: pa.Table) -> list[pa.Table]:
    """The rows in the table's order, one part for each day of captured_at: a file lies in one partition."""
    ordered = added.sort_by([(name, "ascending") for name in table.sort]) if added.num_rows > 1 else added
    if not table.by_day or not ordered.num_rows:
        return [ordered] if ordered.num_rows else []
    if ordered["captured_at"].null_count:
        raise ValueError(f"{table.name}: rows without captured_at")
    days = pc.floor_temporal(ordered["captured_at"], unit="day")
    distinct = pc.unique(days)
    return [ordered] if len(distinct) == 1 else [ordered.filter(pc.equal(days, day)) for day in distinct]


def _snapshot_row(attempt: Attempt, verdict: Verdict, now: datetime) -> SnapshotRow:
    return SnapshotRow(
        cluster=attempt.cluster,
        captured_at=attempt.captured_at,
        snapshot_id=attempt.snapshot_id,
        attempt_id=attempt.attempt_id,
        status="accepted" if verdict.accepted else "rejected",
        reason=verdict.reason,
        sha256=attempt.sha256,
        source=attempt.source,
        published_at=now,
        kind=attempt.kind,
        partitions=attempt.partitions,
    )


def _parts(table: Table, rows: pa.Table) -> list[pa.Table]:
    return alike.apart(rows) if table is tables.PARTITIONS else [rows]
