"""whatif.json, whatif.csv and the terminal's summary of a prediction."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.atomic import atomic_files
from durability.plain import plain
from durability.report.data import losses
from durability.report.data.losses import CLASSES, VIEWS, Counts
from durability.report.files import safe
from durability.report.words import plural, readable

if TYPE_CHECKING:
    from durability.plan import Plan
    from durability.plan.lose import Loss

FORMAT = "durability-whatif/1"
FILES = ("whatif.json", "whatif.csv")
COLUMNS = (
    *("cluster", "topic", "partition", "tier", "before", "after", "error", "leader_before", "leader_after"),
    *("data", "back_with"),
)
LISTED = 8
WORDS = {
    "lost": "acknowledged records deleted by an unclean leader",
    "at_risk": "acknowledged records only on lost brokers",
    "offline": "offline: no reads, no writes",
    "rejects": "reject acks=all writes",
    "unknown": "unknown: a fact is missing",
}


def write(lake: Any, plan: Plan, loss: Loss, out: Path) -> dict[str, Path]:
    """Writes the prediction of a plan's cluster into the folder `out`; returns the files by name."""
    [snapshot] = plan.judged
    with atomic_files(out, *FILES) as (json_file, csv_file):
        counts = Counts()
        writer = csv.DictWriter(csv_file, COLUMNS, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        for row in _rows(lake, plan):
            counts.add(row)
            writer.writerows({name: safe(cell) for name, cell in line.items()} for line in losses.lines([row]))
        json.dump(document(snapshot, loss, counts), json_file, ensure_ascii=False, indent=1)
        json_file.write("\n")
    return {name: out / name for name in FILES}


def _rows(lake: Any, plan: Plan) -> Iterator[dict[str, Any]]:
    from pyiceberg.expressions import And, EqualTo

    from durability.lake.tables import LOSS_OUTCOMES

    result = And(EqualTo("run_id", plan.run_id), EqualTo("result_id", plan.result_id))
    for part in lake.parts(LOSS_OUTCOMES, result):
        for batch in part.to_batches(max_chunksize=5_000):
            yield from batch.to_pylist()


def document(snapshot: Any, loss: Loss, counts: Counts) -> dict[str, Any]:
    """The content of whatif.json."""
    quorum = dict(counts.quorum or {})
    kept = quorum.pop("kept", None)
    return {
        "format": FORMAT,
        "cluster": snapshot.cluster,
        "snapshot_id": snapshot.snapshot_id,
        "captured_at": snapshot.captured_at,
        "lose": {
            "asked": [str(item) for item in loss.asked],
            "brokers": list(loss.brokers),
            "controllers": list(loss.controllers),
            "down_already": list(loss.down_already),
        },
        "quorum": {**quorum, "kept": kept} if quorum.get("voters") is not None else None,
        "views": {view: {name: counts.partitions[view][name] for name in CLASSES} for view in VIEWS},
        "topics": {view: {name: len(counts.topics[view][name]) for name in CLASSES} for view in VIEWS},
        "worst_topics": [
            {"topic": topic, "tier": counts.tier[topic], **found} for topic, found in counts.worst_topics()[:1_000]
        ],
        "already": dict(counts.already),
        "stalls": counts.stalls,
        "acks_1_may_lose": counts.acks_1_may_lose,
        "clients": {who: dict(found) for who, found in counts.clients.items() if found.total()},
        "unknown": {
            "partitions": counts.unknown,
            "quorum": kept is None,
            **{f"unplaced_{kind}": list(ids) for kind, ids in loss.unplaced.items()},
        },
    }


def summary(found: Mapping[str, Any], files: Mapping[str, Path]) -> list[str]:
    """The prediction in about twenty lines, from the content of whatif.json."""
    now, topics, lose = found["views"]["now"], found["topics"]["now"], found["lose"]
    lines = [
        f"If {' and '.join(lose['asked'])} of {found['cluster']} fail"
        f" (snapshot of {readable(found['captured_at'])}; {_nodes(lose)}):",
        "",
    ]
    lines += [line for line in (_quorum(found),) if line]
    broken = [name for name in CLASSES if name != "accepts" and now[name]]
    lines += [f"  {now[name]:>9,} {_of(topics[name])}: {WORDS[name]}" for name in broken]
    lines.append(f"  {now['accepts']:>9,} {_of(topics['accepts'])}: accept acks=all writes")
    if found["already"]:
        counted = ", ".join(f"{n:,} {name}" for name, n in found["already"].items())
        lines.append(f"  Before the loss already: {counted}")
    lines.append(
        f"  {found['stalls']:,} partitions stall until the lost brokers are fenced; acks=1 writes may be lost in"
        f" {found['acks_1_may_lose']:,}"
    )
    lines += _structure(found)
    if found["clients"]:
        lines.append(f"  Affected clients: {', '.join(found['clients'])}")
    lines += _gaps(found["unknown"])
    worst = found["worst_topics"]
    if worst:
        lines += ["", "Worst topics"]
        lines += [f"  {_topic(entry)}" for entry in worst[:LISTED]]
        if len(worst) > LISTED:
            lines.append(f"  and {len(worst) - LISTED:,} more in whatif.csv")
    lines += ["", *(f"  {path}" for path in files.values())]
    return [plain(line) for line in lines]


def _nodes(lose: Mapping[str, Any]) -> str:
    parts = [plural(len(lose["brokers"]), "broker"), plural(len(lose["controllers"]), "controller")]
    already = f", {len(lose['down_already'])} of them down already" if lose["down_already"] else ""
    return " and ".join(parts) + already


def _of(topics: int) -> str:
    return f"partitions of {plural(topics, 'topic')}"


def _quorum(found: Mapping[str, Any]) -> str | None:
    quorum = found["quorum"]
    if quorum is None:
        return None
    left = f"{quorum['left']} of {quorum['voters']} voters left, {quorum['needed']} needed"
    if quorum["kept"] is False:
        return f"  The controller quorum is lost ({left}): no leader is elected and no ISR shrinks."
    return f"  The controller quorum keeps its majority: {left}."


def _structure(found: Mapping[str, Any]) -> list[str]:
    """What the placement alone allows, where it differs from today."""
    views = found["views"]
    lines = []
    if any(views["structural"][name] != views["now"][name] for name in ("offline", "rejects")):
        lines.append(
            f"  With all replicas in sync before: {views['structural']['offline']:,} offline,"
            f" {views['structural']['rejects']:,} rejecting"
        )
    if views["worst"]["at_risk"]:
        lines.append(
            f"  With the smallest ISR that min.insync.replicas allows: {views['worst']['at_risk']:,} at risk of data loss"
        )
    return lines


def _gaps(unknown: Mapping[str, Any]) -> list[str]:
    lines = []
    for kind in ("brokers", "controllers"):
        if ids := unknown.get(f"unplaced_{kind}"):
            named = ", ".join(map(str, ids))
            lines.append(
                f"  The rack of {kind} {named} is unknown: they may be lost with the rack, which is not counted."
            )
    return lines


def _topic(entry: Mapping[str, Any]) -> str:
    found = [f"{entry[name]:,} {name.replace('_', ' ')}" for name in CLASSES if entry.get(name)]
    return f"{entry['topic']} ({entry['tier']}): {', '.join(found)}"
