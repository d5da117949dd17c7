"""The record of changes: the lake's table `changes`, and the claim of a cluster that lets one run at a time change it.

A change gets a row `intended` before it is made and a row `done` after it. A rerun reads the newest row of each change and the
cluster, so it knows what was meant and how far it is. JSON of `was` and `becomes`, by kind:

- set-config: a list of {topic, name, value, until}. topic null: the cluster-wide default. value null: no value of its own. until:
  the change that sets the final value; null if this value is final
- reassign: {"placements": [{topic, partition, replicas}], "min_isr": {topic: number or null}}; min_isr only in `was`
- throttle: a list of {type, name, setting, value}: the settings of brokers and topics (`durability.apply.throttles`)
- elect-leaders: a list of {topic, partition, leader}
- begin: `was` is {"kafka_cluster_id": Kafka's id, "troubled": {topic: [partition]}, "findings": [id], "topic_ids": {topic: id}}.
  troubled: the partitions that were offline or under their min ISR when the run began, and are since. findings: those that the
  plan fixes or improves. topic_ids: Kafka's, of the plan's topics, as far as they are known.
  It is no change, but what each later try of the run needs, and a plan that takes this one back
- reported: null; `said` is what a pulse reported of the plan, once
- stop: null; `said` is why the plan stopped. It is open until `restore` ends it, so that a retry doesn't go on
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from durability.errors import Unreachable
from durability.lake.change_table import CHANGES, DONE, INTENDED, LEFT, UNDONE

if TYPE_CHECKING:
    from durability.lake import Lake

CLAIM, SET_CONFIG, REASSIGN, THROTTLE, ELECT = "claim", "set-config", "reassign", "throttle", "elect-leaders"
BEGIN, STOP, REPORTED = "begin", "stop", "reported"
"""Values of `kind` that are also values of `change`: a plan has one of each. None of them is a change."""
LEASE = timedelta(minutes=15)
"""A claim that is older than this, and wasn't renewed, is over: its run was killed."""
RENEWED_AFTER = timedelta(minutes=5)
LOOKS = 5
"""How often, once a second, a run looks whether another one that claimed at the same time has given way."""


@dataclass(frozen=True)
class Approval:
    """Who approved a change, when, and the approver's comment."""

    by: str
    at: datetime
    comment: str | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Approval | None:
        """The approval of a row; None if it has no approval."""
        return None if row["approved_by"] is None else cls(row["approved_by"], row["approved_at"], row["comment"])


@dataclass(frozen=True)
class Row:
    """The newest row of a change. was, becomes: parsed JSON. run_id: of the run that wrote it."""

    step: str
    change: str
    kind: str
    state: str
    topics: tuple[str, ...]
    was: Any
    becomes: Any
    said: str | None
    run_id: str
    captured_at: datetime


class Changes:
    """The changes of one plan to one cluster.

    Rows may only be added while the cluster is claimed. Every method raises Unreachable if the lake's catalog or store fails.
    """

    def __init__(self, lake: Lake, cluster: str, purpose: str, plan: str, run_id: str, approval: Approval | None):
        self.cluster, self.purpose, self.plan, self.run_id = cluster, purpose, plan, run_id
        self.lake, self._approval = lake, approval
        self._claim = ""
        self._renewed: datetime | None = None  # None: not claimed
        self._rows: dict[str, Row] = {}  # complete while the cluster is claimed

    def of_plan(self, purpose: str, plan: str) -> Changes:
        """The changes of another plan to this cluster, with rows of this run and its approval."""
        return Changes(self.lake, self.cluster, purpose, plan, self.run_id, self._approval)

    # The claim

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Claims the cluster for the block, and releases it.

        After an error with open changes, the claim stays until its lease is over. So the next try of this run can go on with them
        before another run takes them back.
        """
        self.claim()
        try:
            yield
        except Exception:
            if not any(is_open(row, self._rows) for row in self._rows.values()):
                self.release()
            raise
        self.release()

    def claim(self) -> None:
        """Claims the cluster. A claim of an earlier try of this run is taken over.

        Appends never conflict in Iceberg, so a run writes its claim and then looks for others. It goes on only if it sees none:
        of two runs, the one that looks last sees the other. Raises Unreachable while another run has the cluster.
        """
        if self._renewed is not None:
            self.renew()
            return
        if not self.lake.has(CHANGES):  # a lake of an earlier version
            self.lake.ensure()
        self._claim = f"{CLAIM}:{uuid.uuid4().hex}"
        now = datetime.now(UTC)
        live = self._live_claims(now)
        earlier = [row for row in live if (row["plan"], row["run_id"]) == (self.plan, self.run_id)]
        if others := [row for row in live if row not in earlier]:
            raise self._taken(others)
        taken_over = [self._row("", row["change"], CLAIM, UNDONE, now, said="taken over") for row in earlier]
        self._write([self._row("", self._claim, CLAIM, INTENDED, now), *taken_over])
        others = self._other_claims()
        for _ in range(LOOKS):
            if not others or min(row["change"] for row in others) < self._claim:
                break
            time.sleep(1)
            others = self._other_claims()
        self._renewed = now
        if others:
            self.release()
            raise self._taken(others)
        rows = self._read()
        self._rows = newest(rows)
        if over := unended(rows) - {self._claim}:  # of killed runs
            self._write([self._row("", claim, CLAIM, UNDONE, now, said="over") for claim in sorted(over)])

    def check_unclaimed(self) -> None:
        """Raises Unreachable while a run has the cluster. This one has no claim."""
        if claims := self._live_claims(datetime.now(UTC)):
            raise self._taken(claims)

    def renew(self) -> None:
        """Renews the claim if it is older than RENEWED_AFTER. Call it at least that often.

        Raises Unreachable if the claim is over: another run may change the cluster now.
        """
        now = datetime.now(UTC)
        if now - self._claimed_at() >= RENEWED_AFTER:
            self._check(now)
            self._write([self._row("", self._claim, CLAIM, INTENDED, now)])
            self._check(now)
            self._renewed = now

    def check(self) -> None:
        """Call it right before a change. Raises Unreachable if the claim is over. Renews it if that is due."""
        self.renew()
        self._check(datetime.now(UTC))

    def release(self) -> None:
        """Ends the claim. Without one it does nothing."""
        if self._renewed is not None:
            self._renewed = None
            self._write([self._row("", self._claim, CLAIM, DONE, datetime.now(UTC))])

    def _claimed_at(self) -> datetime:
        if self._renewed is None:
            raise RuntimeError(f"cluster {self.cluster} isn't claimed")
        return self._renewed

    def _check(self, now: datetime) -> None:
        """Raises Unreachable unless the claim still holds."""
        live = self._live_claims(now)
        if others := [row for row in live if row["change"] != self._claim]:
            raise self._taken(others)
        if not live:
            raise Unreachable(
                f"cluster {self.cluster}: the claim of this run is over. It wasn't renewed in time, or a later try took it over."
                " Nothing more was changed"
            )

    def _taken(self, others: Iterable[Mapping[str, Any]]) -> Unreachable:
        other = next(iter(others))
        return Unreachable(
            f"cluster {self.cluster}: run {other['run_id']} changes it now, by plan {other['plan']}. Try again when it has ended,"
            f" or {int(LEASE.total_seconds()) // 60} minutes after it was killed"
        )

    def _other_claims(self) -> list[dict[str, Any]]:
        return [row for row in self._live_claims(datetime.now(UTC)) if row["change"] != self._claim]

    def _live_claims(self, now: datetime) -> list[dict[str, Any]]:
        recent = scan(self.lake, now - 2 * LEASE, cluster=self.cluster, kind=CLAIM)
        return live_claims(recent, now)

    # Changes

    def state(self) -> dict[str, Row]:
        """The newest row of each change of the plan, by `change`, without claims."""
        return newest(self._read()) if self._renewed is None else dict(self._rows)

    def intend(
        self, step: str, change: str, kind: str, topics: Iterable[str], was: Any, becomes: Any, said: str | None = None
    ) -> None:
        """Writes the row of a change that is about to be made. was, becomes: JSON values.

        Raises Unreachable if the claim is over.
        """
        self.check()
        self._add(Row(step, change, kind, INTENDED, tuple(topics), was, becomes, said, self.run_id, self._next()))

    def begin(
        self,
        kafka_cluster_id: str | None,
        troubled: Iterable[tuple[str, int]],
        findings: Iterable[str] = (),
        topic_ids: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Writes the row BEGIN of this run. troubled: topics and partitions. findings: ids. topic_ids: Kafka's, by topic."""
        self.check()
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(troubled):
            by_topic.setdefault(topic, []).append(partition)
        was: dict[str, Any] = {"kafka_cluster_id": kafka_cluster_id, "troubled": by_topic}
        was |= {"findings": sorted(findings), "topic_ids": dict(topic_ids)}
        self._add(Row("", BEGIN, BEGIN, DONE, (), was, None, None, self.run_id, self._next()))

    def reported(self, said: str) -> None:
        """Writes that this was reported of the plan."""
        self.check()
        self._add(Row("", REPORTED, REPORTED, DONE, (), None, None, said, self.run_id, self._next()))

    def done(self, change: str, said: str | None = None) -> None:
        """The change is made."""
        self._close(change, DONE, said)

    def undone(self, change: str, said: str | None = None) -> None:
        """The change was taken back, or wasn't made."""
        self._close(change, UNDONE, said)

    def left(self, change: str, said: str | None = None) -> None:
        """The change isn't ours any more: its value was changed by others, or its cluster is gone. It is left as it is."""
        self._close(change, LEFT, said)

    def _close(self, change: str, state: str, said: str | None) -> None:
        self.check()
        row = self._rows[change]
        self._add(
            Row(
                *(row.step, change, row.kind, state, row.topics, row.was, row.becomes),
                *(said, self.run_id, self._next()),
            )
        )

    def _next(self) -> datetime:
        """Now, but later than every row so far: the clock of a host that ran the plan before may be ahead."""
        newest = max((row.captured_at for row in self._rows.values()), default=datetime.min.replace(tzinfo=UTC))
        return max(datetime.now(UTC), newest + timedelta(microseconds=1))

    def _add(self, row: Row) -> None:
        stated = {"topics": list(row.topics), "was": json.dumps(row.was), "becomes": json.dumps(row.becomes)}
        written = self._row(row.step, row.change, row.kind, row.state, row.captured_at, said=row.said)
        self._write([written | stated])
        self._rows[row.change] = row

    def _read(self) -> list[dict[str, Any]]:
        return scan(self.lake, cluster=self.cluster, purpose=self.purpose, plan=self.plan)

    def _row(
        self, step: str, change: str, kind: str, state: str, at: datetime, said: str | None = None
    ) -> dict[str, Any]:
        approval = self._approval
        return {
            "cluster": self.cluster,
            "captured_at": at,
            "run_id": self.run_id,
            "purpose": self.purpose,
            "plan": self.plan,
            "step": step,
            "change": change,
            "kind": kind,
            "state": state,
            "topics": [],
            "said": said,
            "approved_by": approval and approval.by,
            "approved_at": approval and approval.at,
            "comment": approval and approval.comment,
        }

    def _write(self, rows: list[dict[str, Any]]) -> None:
        self.lake.append(CHANGES, pa.Table.from_pylist(rows, CHANGES.arrow))


def live_claims(rows: Iterable[Mapping[str, Any]], now: datetime) -> list[dict[str, Any]]:
    """The newest row of each claim that holds: it wasn't released or taken over, and is younger than LEASE."""
    rows = list(rows)
    held, ordered = unended(rows), sorted(rows, key=lambda row: row["captured_at"])
    last = {row["change"]: dict(row) for row in ordered if row["change"] in held}
    return [row for row in last.values() if now - row["captured_at"] < LEASE]


def unended(rows: Iterable[Mapping[str, Any]]) -> set[str]:
    """The claims that weren't released or taken over. Their runs go on, or were killed."""
    claims = [row for row in rows if row["kind"] == CLAIM]
    return {row["change"] for row in claims} - {row["change"] for row in claims if row["state"] != INTENDED}


def newest(rows: Iterable[Mapping[str, Any]]) -> dict[str, Row]:
    """The newest row of each change of one plan, by `change`, without claims."""
    ordered = sorted((row for row in rows if row["kind"] != CLAIM), key=lambda row: row["captured_at"])
    return {
        row["change"]: Row(
            *(row["step"], row["change"], row["kind"], row["state"], tuple(row["topics"] or ())),
            *(json.loads(row["was"]), json.loads(row["becomes"]), row["said"], row["run_id"], row["captured_at"]),
        )
        for row in ordered
    }


def topic_ids(rows: Mapping[str, Row]) -> Mapping[str, str]:
    """Kafka's ids of a plan's topics when its run began. Rows of an earlier release have none. rows: see `newest`."""
    return rows[BEGIN].was.get("topic_ids", {}) if BEGIN in rows else {}


def is_open(row: Row, rows: Mapping[str, Row]) -> bool:
    """Is the change to be finished or taken back? rows: the newest ones of its plan.

    A throttle is to be put back once it is made. A value that another change was to replace is, unless that change is done.
    """
    if row.kind == SET_CONFIG and row.state == DONE:
        return any(on_the_way(setting.get("until"), rows) for setting in row.becomes)
    return row.state == INTENDED or (row.kind == THROTTLE and row.state == DONE)


def on_the_way(until: str | None, rows: Mapping[str, Row]) -> bool:
    """Was a later change, which isn't complete, to replace a value? until: that change."""
    return until is not None and (until not in rows or rows[until].state != DONE)


def scan(
    lake: Lake, since: datetime | None = None, columns: Sequence[str] | None = None, **equal: str
) -> list[dict[str, Any]]:
    """The rows with these values, written since then. A lake of an earlier version has no table of changes."""
    from pyiceberg.expressions import AlwaysTrue, And, BooleanExpression, EqualTo, GreaterThanOrEqual

    if not lake.has(CHANGES):
        return []
    where: BooleanExpression = AlwaysTrue()
    if since is not None:
        where = GreaterThanOrEqual("captured_at", since.isoformat())
    for name, value in equal.items():
        where = And(where, EqualTo(name, value))
    return lake.scan(CHANGES, where, columns).to_pylist()
