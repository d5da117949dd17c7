"""restart.json and the terminal's summary of a restart plan."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from durability.atomic import atomic_files
from durability.plain import plain, plural
from durability.report.words import readable

if TYPE_CHECKING:
    from durability.restart.constraints import Partitions
    from durability.restart.plan import Limits, RestartPlan

FORMAT = "durability-restart/1"
FILES = ("restart.json",)
UNAVOIDABLE, COSTLY, SHOWN = 1_000, 200, 5
WORDS = {
    "offline": "with one replica: offline while the broker restarts",
    "rejects": "without a replica to spare: acks=all writes are rejected while one of the brokers restarts",
    "margin": "without the margin",
    "unknown": "with an unknown minimum or unknown replicas: any restart may stop writes",
}
BOUNDS = {
    "clique": "no two of brokers {brokers} may stop together",
    "capacity": "a partition on brokers {brokers} can't spare more replicas at once",
    "size": "a wave has a limited number of nodes",
    "voters": "a wave has a limited number of voters",
    "three": "no three of brokers {brokers} may stop together",
    "search": "every assignment of nodes to waves was tried",
    "cover": "the largest possible waves don't cover all nodes in fewer",
}


def write(snapshot: Any, made: RestartPlan, limits: Limits, out: Path) -> dict[str, Path]:
    """Writes restart.json into the folder `out`; returns it by name. snapshot: the plan's part about the cluster."""
    with atomic_files(out, *FILES) as (file,):
        json.dump(document(snapshot, made, limits), file, ensure_ascii=False, indent=1)
        file.write("\n")
    return {name: out / name for name in FILES}


def document(snapshot: Any, made: RestartPlan, limits: Limits) -> dict[str, Any]:
    """The content of restart.json."""
    return {
        "format": FORMAT,
        "cluster": snapshot.cluster,
        "snapshot_id": snapshot.snapshot_id,
        "captured_at": snapshot.captured_at,
        "limits": {"margin": limits.margin, "max": limits.most, "voters": limits.voters},
        "waves": [list(wave) for wave in made.waves],
        "bound": made.bound.waves,
        "bound_why": {"why": made.bound.why, "brokers": list(made.bound.brokers)},
        "proven": made.proven,
        "valid": made.valid,
        "whole": made.whole,
        "before": {
            "down": list(made.down),
            "unknown": list(made.unsure),
            "partitions_not_in_sync": made.lagging,
        },
        "unknown": {
            "nodes": list(made.unsure),
            "partitions": made.unknown,
            "topics": made.unread.topics,
            "hidden_partitions": made.unread.hidden_partitions,
            "quorum": made.unread.quorum,
        },
        "unavoidable": _unavoidable(made.unavoidable),
        "by_rack": {
            "valid": made.valid_by_rack,
            "partitions": sum(count for _, count, _ in made.by_rack),
            "without_rack": list(made.no_racks),
            "too_many_voters": list(made.voter_racks),
            "too_many_nodes": list(made.large_racks),
        },
        "costly": [
            {"brokers": list(pair), "partitions": count, "topic": topic, "partition": partition}
            for pair, count, (topic, partition) in made.costly[:COSTLY]
        ],
    }


def _unavoidable(found: Iterable[tuple[Partitions, str]]) -> list[dict[str, Any]]:
    """Partitions that no plan spares, those of most partitions first."""
    listed: list[dict[str, Any]] = [
        {
            "happens": why,
            "replicas": sorted(same.replicas),
            "partitions": same.count,
            "topic": same.example[0],
            "partition": same.example[1],
        }
        for same, why in found
    ]
    return sorted(listed, key=lambda entry: (-entry["partitions"], entry["topic"]))[:UNAVOIDABLE]


def summary(found: Mapping[str, Any], files: Mapping[str, Path]) -> list[str]:
    """The plan in about twenty lines, from the content of restart.json."""
    waves = found["waves"]
    if found["proven"]:
        proof = "no plan has fewer"
    elif found["valid"] is None:
        proof = f"at least {found['bound']} are needed by what is known"
    else:
        proof = f"at least {found['bound']} are needed, fewer were not found"
    lines = [f"{found['cluster']} restarts in {plural(len(waves), 'wave')}: {proof}.", ""]
    lines += [f"  wave {number:>3}  nodes {', '.join(map(str, wave))}" for number, wave in enumerate(waves[:30], 1)]
    if len(waves) > 30:
        lines.append(f"  and {len(waves) - 30} more in restart.json")
    lines += ["", f"By the snapshot of {readable(found['captured_at'])}. Stop a wave by controlled shutdown (SIGTERM)."]
    lines.append("Start the next wave when every ISR is whole: kafka-durability restart-check --wave N says when.")
    if found["bound"] > 1:
        named = ", ".join(map(str, found["bound_why"]["brokers"][:20]))
        lines.append(
            f"{plural(found['bound'], 'wave')} at least, because {BOUNDS[found['bound_why']['why']].format(brokers=named)}."
        )
    lines += _before(found["before"]) + _unknown(found)
    counted: Counter[str] = Counter()
    for entry in found["unavoidable"]:
        counted[entry["happens"]] += entry["partitions"]
    lines += [f"{plural(count, 'partition')} {WORDS[why]}." for why, count in counted.items()]
    lines += _racks(found)
    lines += ["", *(f"  {path}" for path in files.values())]
    return [plain(line) for line in lines]


def _before(before: Mapping[str, Any]) -> list[str]:
    lines = []
    if before["unknown"]:
        lines.append(f"First find out whether these are up: {', '.join(map(str, before['unknown'][:20]))}.")
    if before["down"]:
        lines.append(f"First bring back what is down: {', '.join(map(str, before['down']))}.")
    if before["partitions_not_in_sync"]:
        lines.append(f"First let the ISR of {plural(before['partitions_not_in_sync'], 'partition')} become whole.")
    return lines


def _unknown(found: Mapping[str, Any]) -> list[str]:
    """What is unknown, so that the waves may be invalid."""
    unknown = found["unknown"]
    lines = []
    if found["valid"] is None:
        lines.append("The plan may stop writes of what is unknown. restart-check waits for it.")
    if unknown["topics"]:
        lines.append(f"Not planned for: {plural(unknown['topics'], 'topic')} whose partitions could not be read.")
    if (hidden := unknown["hidden_partitions"]) != 0:
        many = "topics that the auditor may not see" if hidden is None else f"{plural(hidden, 'hidden partition')}"
        lines.append(f"Not planned for: {many}.")
    if unknown["quorum"]:
        lines.append("Unknown: which nodes vote in the controller quorum.")
    return lines


def _racks(found: Mapping[str, Any]) -> list[str]:
    """Why racks can't restart one after the other, if they can't."""
    by_rack = found["by_rack"]
    lines = []
    if by_rack["without_rack"]:
        lines.append(f"Brokers without a known rack: {', '.join(map(str, by_rack['without_rack'][:20]))}.")
    for name, what in (("too_many_voters", "voters of the controller quorum"), ("too_many_nodes", "nodes")):
        if racks := by_rack[name]:
            named = ", ".join(racks[:SHOWN]) + (f" and {len(racks) - SHOWN} more" if len(racks) > SHOWN else "")
            lines.append(f"A wave per rack would stop more {what} at once than a wave may: {named}.")
    if by_rack["partitions"]:
        lines.append(
            f"A wave per rack would stop writes to {plural(by_rack['partitions'], 'partition')}. Pairs that cost waves:"
        )
    for pair in found["costly"][:SHOWN]:
        first, second = pair["brokers"]
        shared, example = plural(pair["partitions"], "partition"), f"{pair['topic']}-{pair['partition']}"
        lines.append(f"  brokers {first} and {second}: {shared}, for instance {example}")
    return lines
