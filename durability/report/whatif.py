"""whatif.json, whatif.csv and the terminal's summary of a prediction."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.atomic import atomic_files
from durability.lake.conditions import of_result
from durability.plain import plain, plural
from durability.report import clients
from durability.report.cells import safe
from durability.report.data import losses
from durability.report.data.clients import Known, stopped
from durability.report.data.losses import CLASSES, VIEWS, Counts
from durability.report.html import whatif as page
from durability.report.words import readable

if TYPE_CHECKING:
    from durability.plan import Plan
    from durability.plan.lose import Loss

FORMAT = "durability-whatif/1"
FILES = ("whatif.json", "whatif.csv", "whatif.html")
COLUMNS = (
    *("cluster", "topic", "partition", "tier", "before", "after", "error", "leader_before", "leader_after"),
    *("data", "back_with"),
)
LISTED, WORST = 8, 1_000
KNOWN = Known()
STALLED = "A producer that sends one of these in a request with others gets no answer for any of them meanwhile."
WORDS = {
    "lost": "acknowledged records deleted by an unclean leader",
    "at_risk": "acknowledged records only on lost brokers",
    "offline": "offline: no reads, no writes",
    "rejects": "reject acks=all writes, or let them time out",
    "accepts": "accept acks=all writes",
    "unknown": "unknown: a fact is missing",
}
REJECTS = {
    "NOT_ENOUGH_REPLICAS": ("rejects acks=all writes", "reject acks=all writes", "rejecting"),
    "REQUEST_TIMED_OUT": ("lets acks=all writes time out", "let acks=all writes time out", "where writes time out"),
}
"""What partitions of the class `rejects` do, by the brokers' answer: of one, of many, and after a number."""
EITHER = (
    "rejects acks=all writes, or lets them time out",
    WORDS["rejects"],
    "rejecting writes, or where they time out",
)
"""The same if partitions differ, or if the answer is unknown."""


def write(
    lake: Any, plan: Plan, loss: Loss, unread: Mapping[str, Any], out: Path, known: Known = KNOWN
) -> dict[str, Path]:
    """Writes the prediction of a plan's cluster into the folder `out`; returns the files by name.

    unread: what the snapshot lacks, see `durability.steps.whatif.unread`. known: what it knows of clients.
    """
    [snapshot] = plan.judged
    with atomic_files(out, *FILES) as (json_file, csv_file, html_file):
        counts = Counts()
        writer = csv.DictWriter(csv_file, COLUMNS, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        for row in rows(lake, plan):
            counts.add(row)
            writer.writerows({name: safe(cell) for name, cell in line.items()} for line in losses.lines([row]))
        found = document(snapshot, loss, counts, unread, known)
        json.dump(found, json_file, ensure_ascii=False, indent=1)
        json_file.write("\n")
        html_file.writelines(page.render(found, words(found), sentences(found)))
    return {name: out / name for name in FILES}


def rows(lake: Any, plan: Any) -> Iterator[dict[str, Any]]:
    """The rows of `loss_outcomes` of a result. plan: its `run_id` and `result_id` count."""
    from durability.lake.tables import LOSS_OUTCOMES

    result = of_result(plan)
    for part in lake.parts(LOSS_OUTCOMES, result):
        for batch in part.to_batches(max_chunksize=5_000):
            yield from batch.to_pylist()


def document(
    snapshot: Any, loss: Loss, counts: Counts, unread: Mapping[str, Any], known: Known = KNOWN
) -> dict[str, Any]:
    """The content of whatif.json."""
    quorum = dict(counts.quorum or {})
    kept = quorum.pop("kept", None)
    return {
        "format": FORMAT,
        "cluster": snapshot.cluster,
        "snapshot_id": snapshot.snapshot_id,
        "captured_at": snapshot.captured_at,
        "lose": loss.described(),
        "quorum": {**quorum, "kept": kept} if quorum.get("voters") is not None else None,
        "views": {view: {name: counts.partitions[view][name] for name in CLASSES} for view in VIEWS},
        "topics": {view: {name: len(counts.topics[view][name]) for name in CLASSES} for view in VIEWS},
        "errors": {view: {name: of_view[name] for name in losses.ERRORS} for view, of_view in counts.errors.items()},
        "worst_topics": [
            {"topic": topic, "tier": counts.tier[topic], **found} for topic, found in counts.worst_topics()[:WORST]
        ],
        "already": dict(counts.already),
        "stalls": counts.stalls,
        "acks_1_may_lose": counts.acks_1_may_lose,
        "clients": stopped(counts, known, [item.name for item in loss.asked if item.kind == "rack"]),
        "unknown": {
            "partitions": counts.unknown,
            "quorum": kept is None,
            **unread,
            **{f"unplaced_{kind}": list(ids) for kind, ids in loss.unplaced.items()},
        },
    }


def summary(found: Mapping[str, Any], files: Mapping[str, Path]) -> list[str]:
    """The prediction in about twenty lines, from the content of whatif.json."""
    now, topics = found["views"]["now"], found["topics"]["now"]
    headline, *more = sentences(found)
    lines = [headline, ""]
    shown = [name for name in CLASSES if name == "accepts" or now[name]]
    of_class = words(found)
    lines += [f"  {now[name]:>9,} {_partitions(now[name], topics[name])}: {of_class[name]}" for name in shown]
    lines += ["", *more]
    worst = found["worst_topics"]
    if worst:
        lines += ["", "Worst topics"]
        lines += [f"  {_topic(entry)}" for entry in worst[:LISTED]]
        if len(worst) > LISTED:
            many = f"{len(worst) - LISTED:,}" if len(worst) < WORST else "many"
            lines.append(f"  and {many} more in whatif.csv")
    lines += ["", *(f"  {path}" for path in files.values())]
    return [plain(line) for line in lines]


def sentences(found: Mapping[str, Any]) -> list[str]:
    """The headline, then what else a reader must know."""
    lose, views = found["lose"], found["views"]
    said = [f"Without {' and '.join(lose['asked'])}, in {found['cluster']}: {_in_short(found)}.", *_quorum(found)]
    said.append(f"Lost: {_nodes(lose)}, by the snapshot of {readable(found['captured_at'])}.")
    if found["already"]:
        counted = ", ".join(f"{n:,} {name}" for name, n in found["already"].items())
        said.append(f"Before the loss already: {counted}.")
    if found["stalls"]:
        lost = (found["quorum"] or {}).get("kept") is False
        until = "until a controller leads again" if lost else "until the lost brokers are fenced"
        said += [f"acks=all writes of {plural(found['stalls'], 'partition')} wait {until}.", STALLED]
    if found["acks_1_may_lose"]:
        said.append(f"acks=1 writes may be lost in {plural(found['acks_1_may_lose'], 'partition')} led there.")
    if any(views["structural"][name] != views["now"][name] for name in ("offline", "rejects")):
        structural = views["structural"]
        said.append(
            f"If all replicas were in sync before: {structural['offline']:,} offline, {structural['rejects']:,}"
            f" {_rejects(found, 'structural')[2]}."
        )
    if views["worst"]["at_risk"]:
        said.append(
            f"With the smallest ISR that min.insync.replicas allows: {views['worst']['at_risk']:,} at risk of data loss."
        )
    return said + clients.sentences(found["clients"]) + _gaps(found["unknown"])


def words(found: Mapping[str, Any]) -> dict[str, str]:
    """Each class in words, from the content of whatif.json."""
    error = _error(found, "now")
    return WORDS | ({"rejects": f"{REJECTS[error][1]} ({error})"} if error else {})


def _error(found: Mapping[str, Any], view: str) -> str | None:
    """The brokers' answer to acks=all writes of all partitions that reject them; None if they differ, or if it is unknown.

    If no partition rejects writes, the answer is the usual one.
    """
    count, errors = found["views"][view]["rejects"], found["errors"][view]
    return next((error for error in REJECTS if errors[error] == count), None)


def _rejects(found: Mapping[str, Any], view: str) -> tuple[str, str, str]:
    error = _error(found, view)
    return REJECTS[error] if error else EITHER


def _in_short(found: Mapping[str, Any]) -> str:
    """What happens to partitions, in a few words, the worst first."""
    now = found["views"]["now"]
    verbs = {
        "lost": ("loses acknowledged records", "lose acknowledged records"),
        "offline": ("goes offline", "go offline"),
        "at_risk": (
            "has acknowledged records on lost brokers alone",
            "have acknowledged records on lost brokers alone",
        ),
        "rejects": _rejects(found, "now")[:2],
        "unknown": ("can't be predicted", "can't be predicted"),
    }
    happens = [(now[name], one if now[name] == 1 else many) for name, (one, many) in verbs.items() if now[name]]
    if not happens:
        return "every partition goes on accepting acks=all writes"
    (count, verb), *more = happens
    return ", ".join([f"{plural(count, 'partition')} {verb}", *(f"{n:,} {what}" for n, what in more)])


def _nodes(lose: Mapping[str, Any]) -> str:
    parts = [plural(len(lose["brokers"]), "broker"), plural(len(lose["controllers"]), "controller")]
    already = f", {len(lose['down_already'])} of them down already" if lose["down_already"] else ""
    return " and ".join(parts) + already


def _partitions(count: int, topics: int) -> str:
    return f"{'partition' if count == 1 else 'partitions'} of {plural(topics, 'topic')}"


def _quorum(found: Mapping[str, Any]) -> list[str]:
    quorum = found["quorum"]
    if quorum is None:
        return []
    left = f"{quorum['left']} of {quorum['voters']} voters left, {quorum['needed']} needed"
    if quorum["kept"] is None:
        # `_gaps` says that it is unknown whether they are enough.
        return [f"At most {left}."]
    if quorum["kept"] is False:
        what = "The controller quorum is lost" if quorum["left"] < quorum["needed"] else "No controller leads"
        return [f"{what} ({left}): no leader is elected and no ISR shrinks."]
    return [f"The controller quorum keeps its majority: {left}."]


def _gaps(unknown: Mapping[str, Any]) -> list[str]:
    said = []
    if unknown["quorum"]:
        said.append("Unknown: whether the controllers keep a majority.")
    for kind in ("brokers", "controllers"):
        if ids := unknown[f"unplaced_{kind}"]:
            named = ", ".join(map(str, ids))
            said.append(f"{kind.capitalize()} without a known rack, which may be in the lost one: {named}.")
    if unknown["topics"]:
        said.append(f"Not predicted: {plural(unknown['topics'], 'topic')} whose partitions could not be read.")
    if unknown["hidden_partitions"] != 0:
        hidden = unknown["hidden_partitions"]
        many = (
            "Topics that the auditor may not see"
            if hidden is None
            else f"{plural(hidden, 'partition')} of hidden topics"
        )
        said.append(f"{many} {'may be' if hidden is None else 'are'} missing from the prediction.")
    return said


def _topic(entry: Mapping[str, Any]) -> str:
    found = [f"{entry[name]:,} {name.replace('_', ' ')}" for name in CLASSES if entry.get(name)]
    tier = f" ({entry['tier']})" if entry["tier"] else ""
    return f"{entry['topic']}{tier}: {', '.join(found)}"
