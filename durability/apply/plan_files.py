"""A plan's folder as steps that can be applied."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from durability.errors import Refused
from durability.remedies import safety
from durability.remedies.change.model import MIN_ISR, Move, Setting, Step
from durability.topology import versions


@dataclass(frozen=True)
class PlanFiles:
    """A plan that was offered.

    cluster_id: Kafka's. steps: in their order; sizes of moves are unknown. before: the value of each setting by topic (None: the
    whole cluster) and name; None if there was none. inherited: the highest min.insync.replicas that a topic without its own
    value, in a cluster without a dynamic default, inherits from a broker; None if unknown. findings: ids of those that it is for,
    or improves. topic_ids: Kafka's, by topic, as far as they were known. caps: do all brokers take min.insync.replicas for at
    most the number of replicas (KAFKA-15583, since 3.7)?
    """

    id: str
    cluster: str
    cluster_id: str
    steps: tuple[Step, ...] = field(repr=False)
    before: Mapping[tuple[str | None, str], str | None] = field(repr=False)
    inherited: int | None
    findings: frozenset[str] = field(default=frozenset(), repr=False)
    topic_ids: Mapping[str, str] = field(default_factory=dict, repr=False)
    caps: bool = False

    @property
    def topics(self) -> list[str]:
        return sorted({topic for step in self.steps for topic in step.topics})


def findings(content: Mapping[str, Any]) -> frozenset[str]:
    """Ids of the findings that the cluster had before a plan, as far as the plan names them. content: of plan.json."""
    # A plan without `improves` is of an earlier release.
    return frozenset({*content["targets"], *content["proof"].get("improves", ())})


def load(folder: Path, content: Mapping[str, Any]) -> PlanFiles:
    """The plan in a folder. content: of plan.json, as `durability.report.change.read` returns it after it compared all hashes.

    Raises Refused if the plan wasn't offered, or isn't for a known cluster.
    """
    id, named = content["id"], f"plan {content['id']} of cluster {content['cluster']}"
    if content["proof"]["offered"] is not True:
        raise Refused(f"{named} can't be applied, because it isn't offered: its README.txt says why. Make a new plan")
    if content["kafka_cluster_id"] is None:
        raise Refused(f"{named} can't be applied, because it has no Kafka cluster id. Make a plan of the live cluster")
    try:
        before = _json(folder / "before.json")
        placed = {(row["topic"], row["partition"]): tuple(row["replicas"]) for row in before["placements"]}
        settings = {(row["topic"], row["name"]): row["value"] for row in before["settings"]}
        steps = tuple(_step(folder, stated, placed) for stated in content["steps"])
        topic_ids = dict(before.get("topic_ids", {}))  # a plan of an earlier release has none
        planned = _json(folder / "planned.json")
        inherited, caps = _inherited(planned), _caps(planned)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise Refused(f"{named} can't be applied, because it can't be read ({error}). Make a new plan") from error
    for step in steps:
        if any(setting.topic is None and setting.name == MIN_ISR for setting in step.settings):
            raise Refused(
                f"{named} can't be applied: a cluster-wide {MIN_ISR} isn't changed, because that wipes every ELR"
            )
    return PlanFiles(
        id,
        content["cluster"],
        content["kafka_cluster_id"],
        steps,
        settings,
        inherited,
        findings(content),
        topic_ids,
        caps,
    )


def _step(folder: Path, stated: Mapping[str, Any], placed: Mapping[tuple[str, int], tuple[int, ...]]) -> Step:
    kind = stated["kind"]
    rows = (
        _json(folder / "steps" / f"{stated['id']}.json")["partitions"] if kind in ("reassign", "elect-leaders") else []
    )
    return Step(
        id=stated["id"],
        kind=kind,
        why=stated["why"],
        moves=tuple(
            Move(row["topic"], row["partition"], placed[row["topic"], row["partition"]], tuple(row["replicas"]))
            for row in rows
            if kind == "reassign"
        ),
        settings=tuple(Setting(s["topic"], s["name"], s["was"], s["value"]) for s in stated["settings"]),
        elections=tuple((row["topic"], row["partition"]) for row in rows if kind == "elect-leaders"),
        brokers=tuple(stated["brokers"]),
        after=tuple(stated["after"]),
    )


def _inherited(document: Mapping[str, Any]) -> int | None:
    """Kafka's default is 1. A document states it too if it has defaults (docs/topology.md)."""
    found = []
    for broker in document["brokers"]:
        if broker.get("live") is False:
            continue
        configs = broker.get("configs")
        described = "default" in (broker.get("config_sources") or {}).values()
        value = None if configs is None else configs.get(MIN_ISR, None if described else "1")
        if value is None or not value.isdecimal():
            return None
        found.append(int(value))
    return max(found, default=None)


def _caps(document: Mapping[str, Any]) -> bool:
    whole = document["cluster"].get("kafka_version")
    stated = [broker.get("kafka_version") or whole for broker in document["brokers"]]
    return all((release := versions.parse(version)) is not None and release >= safety.CAPPED for version in stated)


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
