"""The lake's interface for other packages: stage facts, publish them, read them, write results.

Readers see facts once their row in `snapshots` exists, and results once their row in `runs` exists. Each row is written last, so
a task killed earlier changes nothing for readers. A pulse's facts are never committed. Its run reads the staged files and
removes them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThanOrEqual

from durability.errors import Refused
from durability.lake import catalog, encryption, restore, retention, rows, tables
from durability.lake.attempt import FULL, PULSE, Attempt
from durability.lake.conditions import captured_within, of_attempts
from durability.lake.documents import Documents
from durability.lake.facts import Facts
from durability.lake.iceberg import Tables
from durability.lake.tables import FACTS, Table
from durability.policy.model import Retention
from durability.topology.document import LIVE, Topology

SENT = 100
STATED_WITHIN = 10
"""In how many of a cluster's last snapshots to look for its id."""
ORPHANED_AFTER = timedelta(days=1)
"""Longer than any run takes from staging to publishing."""


class Verdict(Protocol):
    """The fields of the gate's verdict that `publish` reads."""

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
        self._racks: dict[str, dict[int, str]] = {}  # by SHA-256 of the topology

    @classmethod
    def open(cls, location: str, environ: dict[str, str] | None = None) -> Lake:
        """The lake at a folder (created if missing) or s3:// address. DURABILITY_CATALOG names its PostgreSQL catalog.

        environ: the variables; None for those of this process.
        Raises Refused if the place can't be used or has other files in it. Raises Unreachable if its catalog doesn't answer.
        """
        place = catalog.place(str(location), environ)
        catalog.prepare(place)
        return cls(place)

    def ensure(self) -> None:
        """Create missing tables and add missing columns. Concurrent calls are safe.

        Raises Refused if the lake's tables fit no earlier version.
        """
        self._tables.ensure()

    def spark_conf(self) -> dict[str, str]:
        """Settings of a Spark session with this lake as catalog `durability`; see `durability.lake.catalog.spark_conf`."""
        return catalog.spark_conf(self.place, self._tables.namespace)

    def without_tls(self) -> str | None:
        """A warning if the lake is on an S3 store that is reached without TLS."""
        return encryption.without_tls() if self.place.folder is None else None

    @property
    def documents(self) -> Documents:
        """The topology documents of recent snapshots."""
        return Documents(self._tables.files)

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
        """Write a topology's rows as Parquet files with new names. Nothing is committed.

        provider, team: who runs the cluster and who owns it, as in the clusters file.
        earlier: topologies of the same input. The rack of a dead broker, if unknown, comes from the newest of them that is older
            than this one, else from the cluster's last accepted snapshot.
        """
        snapshot_id = f"{topology.cluster}@{topology.captured_at.isoformat()}" if topology.live else topology.sha256
        attempt_id = attempt_id or uuid.uuid4().hex
        built = rows.build(
            topology,
            snapshot_id,
            attempt_id,
            provider=provider,
            team=team,
            earlier_racks=lambda: self._earlier_racks(topology, earlier),
        )
        return Attempt(
            cluster=topology.cluster,
            snapshot_id=snapshot_id,
            attempt_id=attempt_id,
            captured_at=topology.captured_at,
            sha256=topology.sha256,
            source=topology.source,
            files=self.write(built),
            partitions=built[tables.PARTITIONS.name].num_rows,
        )

    def write(self, built: Mapping[str, pa.Table]) -> dict[str, list[str]]:
        """Write rows by fact table as files with new names. Nothing is committed. Returns the addresses by table."""
        return {
            table.name: [self._tables.files.write(table, built[table.name])]
            for table in FACTS
            if built[table.name].num_rows
        }

    def _earlier_racks(self, topology: Topology, earlier: Iterable[Topology]) -> dict[int, str]:
        """Racks by broker id, from the last accepted snapshot and then from older topologies of the input, which override it."""
        last = self.last_accepted(topology.cluster, before=topology.captured_at)
        racks = rows.named_racks(self.facts(tables.BROKERS, last).to_pylist()) if last else {}
        older = [t for t in earlier if t.cluster == topology.cluster and t.captured_at < topology.captured_at]
        for other in sorted(older, key=lambda t: t.captured_at):
            if other.sha256 not in self._racks:  # cached, because each later topology needs it
                self._racks[other.sha256] = rows.named_racks(rows.broker_rows(Facts(other)))
            racks |= self._racks[other.sha256]
        return racks

    def read_staged(self, attempt: Attempt, table: Table) -> pa.Table:
        """The rows that an attempt staged for a fact table. Raises Refused with the file's name if it is damaged."""
        return self.read_files(table, attempt.files.get(table.name, []))

    def staged_batches(
        self, attempt: Attempt, table: Table, columns: Sequence[str], rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Some columns that an attempt staged for a fact table, in batches.

        Raises Refused with the file's name if it is damaged.
        """
        for address in attempt.files.get(table.name, []):
            yield from self._tables.files.batches(address, columns, rows)

    def read_files(self, table: Table, addresses: Iterable[str], columns: Sequence[str] | None = None) -> pa.Table:
        """The rows of files staged for a fact table, with all columns by default.

        Raises Refused with the file's name if one is damaged.
        """
        parts = [self._tables.files.read(table, address, columns) for address in addresses]
        schema = table.arrow if columns is None else pa.schema([table.arrow.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *parts])

    def publish(self, attempts: Sequence[Attempt], verdicts: Iterable[Verdict]) -> list[dict[str, Any]]:
        """Commit attempts, with one commit per fact table, then their rows in `snapshots`. Returns these rows.

        A rejected attempt is kept, with the reason. Files that an interrupted publish has committed aren't committed again. For
        a pulse's attempts, only the rows in `snapshots` are committed.
        Raises Refused with the file's name if one is missing or damaged. Then nothing is committed.
        """
        by_attempt = {verdict.attempt_id: verdict for verdict in verdicts}
        for attempt in attempts:
            if attempt.attempt_id not in by_attempt:
                raise Refused(f"cluster {attempt.cluster}: its snapshot has no verdict; rerun the gate")
            for address in (address for addresses in attempt.files.values() for address in addresses):
                self._tables.files.footer(address)
        full = [attempt for attempt in attempts if attempt.kind != PULSE]
        for table in FACTS:
            if staged := _staged(table, full):
                there = self._committed(table, full)
                if fresh := [address for address in staged if address not in there]:
                    self._tables.add_files(table, fresh)
        columns = ("cluster", "captured_at", "snapshot_id", "attempt_id", "sha256", "source", "kind", "partitions")
        snapshots = []
        for attempt in attempts:
            verdict = by_attempt[attempt.attempt_id]
            status = "accepted" if verdict.accepted else "rejected"
            row = {name: getattr(attempt, name) for name in columns}
            snapshots.append(row | {"status": status, "reason": verdict.reason})
        return self._append_snapshots(snapshots)

    def _committed(self, table: Table, attempts: Sequence[Attempt]) -> set[str]:
        """The committed files of a fact table that may have rows of these attempts."""
        return self._tables.committed(table, of_attempts(map(vars, attempts)))

    def discard(self, attempts: Sequence[Attempt]) -> int:
        """Remove the staged files of attempts, except committed ones. Returns how many were removed."""
        removed = 0
        for table in FACTS:
            if staged := _staged(table, attempts):
                removed += self._tables.files.remove(set(staged) - self._committed(table, attempts))
        return removed

    def discard_orphans(self, older_than: timedelta = ORPHANED_AFTER) -> int:
        """Remove staged files of killed runs: those of that age and in no snapshot of their table. Returns how many.

        A run that may still publish must be younger.
        """
        before = datetime.now(UTC) - older_than
        removed = 0
        for table in FACTS:
            # List files before reading the table. So a file committed in between is known as committed.
            if old := self._tables.files.written_before(table, before):
                known = self._tables.names_of_files(table)
                removed += self._tables.files.remove(a for a in old if a.rpartition("/")[2] not in known)
        return removed

    def record_failures(self, failures: Iterable[tuple[str, datetime, str]], kind: str = FULL) -> list[dict[str, Any]]:
        """Write and return rows of `snapshots` for clusters that could not be read.

        failures: (cluster, time of the attempt, reason).
        kind: the kind of the run's snapshots.
        """
        return self._append_snapshots(
            {
                "cluster": cluster,
                "captured_at": captured_at,
                "snapshot_id": f"{cluster}@{captured_at.astimezone(UTC).isoformat()}",
                "attempt_id": uuid.uuid4().hex,
                "status": "failed",
                "reason": reason,
                "kind": kind,
            }
            for cluster, captured_at, reason in failures
        )

    def _append_snapshots(self, snapshots: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
        now = datetime.now(UTC)
        added = pa.Table.from_pylist([{**row, "published_at": now} for row in snapshots], tables.SNAPSHOTS.arrow)
        if added.num_rows:
            self.append(tables.SNAPSHOTS, added)
        return added.to_pylist()

    def snapshots(
        self,
        cluster: str | None = None,
        status: str | None = None,
        kind: str | None = None,
        since: datetime | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of `snapshots` that count, the newest per snapshot, sorted by cluster and captured_at.

        If a pulse and a full collection took a document's snapshot, it has two rows, because only one has facts.

        kind: full or pulse; both by default.
        since: the earliest captured_at.
        """
        where: BooleanExpression = EqualTo("cluster", cluster) if cluster is not None else AlwaysTrue()
        if kind is not None:
            where = And(where, EqualTo("kind", kind))
        if since is not None:
            where = And(where, GreaterThanOrEqual("captured_at", since.astimezone(UTC).isoformat()))
        listed = sorted(self.scan(tables.SNAPSHOTS, where).to_pylist(), key=lambda row: row["published_at"])
        newest = {(row["cluster"], row["snapshot_id"], row["kind"]): row for row in listed}
        found = [row for row in newest.values() if status is None or row["status"] == status]
        return sorted(found, key=lambda row: (row["cluster"], row["captured_at"], row["published_at"]))

    def last_accepted(self, cluster: str, before: datetime | None = None) -> dict[str, Any] | None:
        """The row of a cluster's newest accepted full snapshot, captured before `before` if given; else None."""
        accepted = self.snapshots(cluster, "accepted", FULL)
        older = [row for row in accepted if before is None or row["captured_at"] < before]
        return older[-1] if older else None

    def kafka_cluster_ids(self, clusters: Iterable[str], *, documents: bool = False) -> dict[str, tuple[str, datetime]]:
        """By cluster, its Kafka cluster id in the last accepted live snapshot that has one, and the time of that snapshot.

        documents: snapshots of documents count, too. Clusters without such a snapshot are left out.
        """
        read: dict[str, list[dict[str, Any]]] = {cluster: [] for cluster in clusters}
        for row in self.snapshots(status="accepted", kind=FULL):
            if (documents or row["source"] == LIVE) and row["cluster"] in read:
                read[row["cluster"]].append(row)
        last = [row for of_cluster in read.values() for row in of_cluster[-STATED_WITHIN:]]
        if not last:
            return {}
        found = self.scan(tables.CLUSTERS, of_attempts(last), ["cluster", "captured_at", "kafka_cluster_id"])
        stated = found.filter(pc.is_valid(found["kafka_cluster_id"])).sort_by("captured_at").to_pylist()
        return {row["cluster"]: (row["kafka_cluster_id"], row["captured_at"]) for row in stated}

    def facts(self, table: Table, snapshot: Mapping[str, Any]) -> pa.Table:
        """The rows of a fact table that belong to a row of `snapshots`."""
        return self.scan(table, of_attempts([snapshot]))

    # Results

    def commit_run(self, run: Mapping[str, Any]) -> None:
        """Write a row of `runs` (its columns by name). From then on readers see the run's results."""
        self.append(tables.RUNS, pa.Table.from_pylist([dict(run)], tables.RUNS.arrow))

    def runs(self, kind: str | None = None, columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """The rows of `runs`, oldest first by finished_at. A result that was written twice has its newest row.

        columns: must include result_id and finished_at; all by default.
        """
        where = EqualTo("kind", kind) if kind is not None else None
        newest: dict[str, dict[str, Any]] = {}
        for row in sorted(self.scan(tables.RUNS, where, columns).to_pylist(), key=lambda row: row["finished_at"]):
            newest.pop(row["result_id"], None)
            newest[row["result_id"]] = row
        return list(newest.values())

    def results(self, table: Table, run: Mapping[str, Any], where: BooleanExpression | None = None) -> pa.Table:
        """The rows of a result table that belong to a row of `runs`."""
        condition: BooleanExpression = And(EqualTo("run_id", run["run_id"]), EqualTo("result_id", run["result_id"]))
        moments = [snapshot["captured_at"] for snapshot in run["snapshots"] or [] if snapshot["captured_at"]]
        if moments:
            condition = And(captured_within(moments), condition)
        return self.scan(table, condition if where is None else And(condition, where))

    # Upkeep

    def plan_retention(self, periods: Retention, look_back: timedelta, now: datetime) -> retention.RetentionPlan:
        """What the lake keeps at `now`; see `durability.lake.retention`. look_back: that of the policy's readings over time."""
        full = self.scan(tables.SNAPSHOTS, EqualTo("kind", FULL)).to_pylist()
        return retention.plan(periods, look_back, now, full, self.runs("nightly", retention.RUN_COLUMNS))

    def backup(self, now: datetime) -> str:
        """Write the location of each table's metadata beside the tables. Returns the address; see `durability.lake.restore`."""
        return restore.backup(self._tables, now)

    # Messages

    def was_sent(self, name: str) -> bool:
        """Whether `remember_sent` was called with this name."""
        return self._tables.files.exists(f"{self._sent}/{name}")

    def remember_sent(self, name: str) -> None:
        """Record that a message was sent. The newest SENT are kept. name: letters and digits."""
        files = self._tables.files
        files.write_text(f"{self._sent}/{name}", "")
        old = sorted(files.listed(self._sent), key=lambda entry: entry.mtime)[:-SENT]
        files.remove(f"{self._sent}/{entry.base_name}" for entry in old)

    def is_owed(self, name: str) -> bool:
        """Whether a message of this name could not be sent, and none was sent since."""
        return self._tables.files.exists(self._owed(name))

    def remember_owed(self, name: str, owed: bool) -> None:
        """Record that a message of this name could not be sent, or that one was sent since. name: letters and digits."""
        if owed:
            self._tables.files.write_text(self._owed(name), "")
        elif self.is_owed(name):
            self._tables.files.remove([self._owed(name)])

    def _owed(self, name: str) -> str:
        return f"{self._tables.files.warehouse}/_owed/{name}"

    @property
    def _sent(self) -> str:
        return f"{self._tables.files.warehouse}/_sent"

    # Any table

    def has(self, table: Table) -> bool:
        """Whether the lake has a table. A lake of an earlier version may lack it until `ensure`."""
        return self._tables.exists(table)

    def scan(
        self,
        table: Table,
        where: str | BooleanExpression | None = None,
        columns: Sequence[str] | None = None,
    ) -> pa.Table:
        """The rows of a table that meet a condition (all by default), with the column types of `tables.py`.

        Raises Refused with the file's name if one is missing or damaged.
        """
        schema = table.arrow if columns is None else pa.schema([table.arrow.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *self._tables.parts(table, where, columns)])

    def parts(self, table: Table, where: BooleanExpression, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """`scan` file by file, so that large tables need not fit into memory."""
        return self._tables.parts(table, where, columns)

    def append(self, table: Table, added: pa.Table) -> None:
        """Commit rows to a table in one commit. Missing columns are NULL. Raises ValueError for an unknown column."""
        self.append_parts(table, [added])

    def append_parts(self, table: Table, parts: Iterable[pa.Table]) -> int:
        """`append` for rows in parts, in one commit. Each part is written when it arrives. Returns the number of rows."""
        addresses, count = [], 0
        for part in parts:
            if unknown := set(part.column_names) - set(table.arrow.names):
                raise ValueError(f"{table.name} has no columns {sorted(unknown)}")
            stated = part.cast(pa.schema([table.arrow.field(name) for name in part.column_names]))
            complete = pa.concat_tables([table.arrow.empty_table(), stated], promote_options="default")
            if complete["captured_at"].null_count:
                raise ValueError(f"{table.name}: rows without captured_at")
            addresses += [self._tables.files.write(table, of_day) for of_day in _by_day(table, complete)]
            count += complete.num_rows
        if addresses:
            self._tables.add_files(table, addresses)
        return count


def _by_day(table: Table, added: pa.Table) -> list[pa.Table]:
    """The rows in the table's order, one part per day of captured_at, because a file belongs to one partition."""
    ordered = added.sort_by([(name, "ascending") for name in table.sort])
    days = pc.floor_temporal(ordered["captured_at"], unit="day")
    return [ordered.filter(pc.equal(days, day)) for day in pc.unique(days)]


def _staged(table: Table, attempts: Iterable[Attempt]) -> list[str]:
    return [address for attempt in attempts for address in attempt.files.get(table.name, [])]
