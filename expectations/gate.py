"""The snapshot gate: rejects a reading of a cluster that contradicts itself as a whole. It is kept, with the reason.

Contradicting facts of one partition or one topic don't reject a snapshot. They are unknown (`durability.lake.contradictions`),
and the rest is evaluated. Topics hidden from the auditor don't reject it, either. Then no statement about the whole cluster can
pass (`spark_jobs.frames.base.all_topics_shown`).

Counts come from the attempt's own Parquet files (`expectations.contradictions`). The verdict comes from a Great Expectations
suite over one row per cluster, in which every count must be zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from durability.errors import AuditError, Refused
from durability.lake.tables import BROKERS, CLUSTERS, PARTITIONS, TOPICS
from expectations import contradictions
from expectations.data_docs import FOLDER, GATE, write_data_docs
from expectations.gx import validate

if TYPE_CHECKING:
    from durability.lake import Attempt, Lake


LIVE = "live"  # `clusters.source` of a cluster that was read over the network


@dataclass(frozen=True)
class Check:
    """A count that must be zero.

    words: what is counted, to follow the number in a reason. means: the sentence that holds if the count is zero.
    """

    id: str
    words: str
    means: str


CHECKS = (
    Check("files-readable", "staged files can't be read", "All staged files can be read."),
    Check(
        "one-cluster-row",
        "too many or too few rows for the cluster itself",
        "The reading has one row for the cluster itself.",
    ),
    Check("consistent", "(the cluster changed while it was read)", "The cluster didn't change while it was read."),
    Check(
        "read-again",
        "(the cluster could not be read a second time, so it is unknown whether it changed)",
        "The cluster was read a second time.",
    ),
    Check(
        "topics-readable",
        "(the topics as a whole could not be read, so there is nothing to judge)",
        "The topics as a whole could be read.",
    ),
    Check("brokers-present", "(the cluster named no broker)", "The cluster named a broker."),
    Check(
        "declared-brokers",
        "broker rows more or fewer than the cluster declared",
        "The reading has as many brokers as the cluster declared.",
    ),
    Check(
        "declared-topics",
        "topic rows more or fewer than the cluster declared",
        "The reading has as many topics as the cluster declared.",
    ),
    Check(
        "declared-partitions",
        "partition rows more or fewer than the cluster declared",
        "The reading has as many partitions as the cluster declared.",
    ),
    Check("unique-brokers", "broker rows repeat a broker", "No broker has two rows."),
    Check("unique-topics", "topic rows repeat a topic", "No topic has two rows."),
    Check("unique-partitions", "partition rows repeat a partition", "No partition has two rows."),
    Check(
        "topics-listed",
        "topics have partitions but no row of their own",
        "Each topic with partitions has a row of its own.",
    ),
    Check(
        "topics-complete",
        "topics lack partitions that they declared, or have others",
        "Each topic has the partitions that it declared.",
    ),
    Check(
        "replicas-on-known-brokers",
        "broker ids named by partitions have no broker row",
        "Each broker that a partition names has a row.",
    ),
)
UNREAD = {"read-again": ("/cluster/consistent",), "topics-readable": ("", "/topics")}
"""Unreadable paths whose reasons explain a failed check."""


@dataclass(frozen=True)
class Verdict:
    """The gate's verdict on one attempt. counts: by check id. reason: None if accepted, else each failed check with its count."""

    cluster: str
    attempt_id: str
    accepted: bool
    reason: str | None
    counts: dict[str, int] = field(default_factory=dict)


def check(
    lake: Lake, attempts: Sequence[Attempt], run: tuple[str, str] | None = None, out: Path | None = None
) -> list[Verdict]:
    """One verdict per staged attempt, in order. An attempt with unreadable files is rejected, with the file's name.

    run, out: name and time of the run, and the folder whose Data Docs get the gate's pages; without them none are written.
    Raises AuditError if there is no attempt, because nothing would have been checked.
    """
    if not attempts:
        raise AuditError("the gate got no snapshots: no cluster could be read; see the errors of collecting them")
    import pandas as pd

    counted = [_counts(lake, attempt) for attempt in attempts]
    ids = [c.id for c in CHECKS]
    frame = pd.DataFrame([[counts[id_] for id_ in ids] for counts, _ in counted], columns=ids)
    validation = validate(GATE, frame.astype("int64"), _expectations(), run)
    failed: list[list[Check]] = [[] for _ in attempts]
    for one in CHECKS:
        if validation.checked[one.id] != len(attempts):
            raise RuntimeError(f"the gate checked {one.id} on {validation.checked[one.id]} of {len(attempts)} clusters")
        for row in validation.failed[one.id]:
            failed[row].append(one)
    if run and out is not None:
        write_data_docs(validation, [(a.cluster, a.attempt_id) for a in attempts], run[1], out / FOLDER)
    return [_verdict(a, *c, f) for a, c, f in zip(attempts, counted, failed, strict=True)]


def _verdict(attempt: Attempt, counts: dict[str, int], detail: str | None, failed: list[Check]) -> Verdict:
    reasons = [f"{c.id}: {counts[c.id]} {c.words}" for c in failed]
    if detail:
        reasons.append(detail)
    return Verdict(attempt.cluster, attempt.attempt_id, not failed, "; ".join(reasons) if failed else None, counts)


def _expectations() -> list[Any]:
    import great_expectations.expectations as gxe
    from great_expectations.expectations.metadata_types import FailureSeverity

    return [
        gxe.ExpectColumnValuesToBeBetween(
            column=c.id,
            min_value=0,
            max_value=0,
            severity=FailureSeverity.CRITICAL,
            description=f"{c.id}: {c.means}",
            meta={"id": c.id, "words": c.words},
        )
        for c in CHECKS
    ]


def _counts(lake: Lake, attempt: Attempt) -> tuple[dict[str, int], str | None]:
    """Counts by check id, and an addition to the reason if files or a part of the cluster can't be read."""
    counts = {c.id: 0 for c in CHECKS}
    try:
        clusters, brokers, topics = (lake.read_staged(attempt, table) for table in (CLUSTERS, BROKERS, TOPICS))
        found = contradictions.scan(
            lake.staged_batches(attempt, PARTITIONS, contradictions.COLUMNS, contradictions.BATCH_ROWS)
        )
    except Refused as error:
        counts["files-readable"] = 1
        return counts, str(error)
    if clusters.num_rows != 1:
        counts["one-cluster-row"] = max(1, abs(clusters.num_rows - 1))
        return counts, None
    cluster = clusters.to_pylist()[0]
    counts |= _against_itself(cluster, brokers, topics, found)
    details = [_unread(cluster, paths) for check, paths in UNREAD.items() if counts[check]]
    return counts, "; ".join(filter(None, details)) or None


def _against_itself(
    cluster: dict[str, Any], brokers: pa.Table, topics: pa.Table, found: contradictions.Partitions
) -> dict[str, int]:
    ids = set(brokers["broker"].to_pylist())
    # Brokers seen only as replicas have a row, but the cluster didn't list them.
    listed = sum(described is not False for described in brokers["described"].to_pylist())
    partitions = contradictions.against_topics(found, topics, numbered=cluster["source"] == LIVE)
    return {
        "consistent": int(cluster["consistent"] is False),
        "read-again": int(bool(_unread(cluster, UNREAD["read-again"]))),
        "topics-readable": int(
            cluster["topics_known"] is False
            and (topics.num_rows == 0 or bool(_unread(cluster, UNREAD["topics-readable"])))
        ),
        "brokers-present": int(cluster["brokers_known"] is not False and not ids),
        "declared-brokers": min(_difference(cluster["declared_brokers"], n) for n in (listed, brokers.num_rows)),
        "declared-topics": _difference(cluster["declared_topics"], topics.num_rows),
        "declared-partitions": _difference(cluster["declared_partitions"], found.rows),
        "unique-brokers": contradictions.duplicates(brokers["broker"]),
        "unique-topics": contradictions.duplicates(topics["topic"]),
        "unique-partitions": partitions["duplicate_partitions"],
        "topics-listed": partitions["unlisted_topics"],
        "topics-complete": partitions["incomplete_topics"],
        "replicas-on-known-brokers": len(found.brokers - ids) if cluster["brokers_known"] is not False else 0,
    }


def _difference(declared: int | None, found: int) -> int:
    return 0 if declared is None else abs(declared - found)


def _unread(cluster: dict[str, Any], paths: Sequence[str]) -> str:
    """Why these paths could not be read as a whole. Empty if they could, or if only parts of them are unreadable."""
    entries = cluster["unreadable"] or []
    return "; ".join(f"{e['path'] or '/'}: {e['reason']}" for e in entries if e["path"] in paths)
