"""Loads policy.yaml, waivers.yaml and clusters.yaml. Errors name the file, the line and what was expected."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from durability.catalogue import CONTROLS
from durability.policy.formats import CLUSTERS, POLICY, WAIVERS
from durability.policy.inventory import INVENTORY
from durability.policy.match import matches
from durability.policy.model import (
    PAGING,
    Application,
    Cluster,
    EvidenceCopy,
    Maintenance,
    Owner,
    Policy,
    Readings,
    Retention,
    Selector,
    Tier,
    Waiver,
)
from durability.policy.numbers import AT_MOST, numbers
from durability.policy.yamlfile import Document, Place, did_you_mean, read, shown


def load_policy(path: Path | str) -> Policy:
    """The policy in the file at `path` (format durability-policy/1). Raises BadInput."""
    document = read(path, "policy", POLICY)
    stated = document.content
    return Policy(
        name=stated.get("name", "policy"),
        tiers={name: _tier(document, name, requirements) for name, requirements in stated["tiers"].items()},
        topics=_selectors(document),
        applications=tuple(_application(document, i, line) for i, line in enumerate(stated.get("applications", []))),
        readings=_readings(document, stated.get("readings", {})),
        maintenance=tuple(_maintenance(document, i, window) for i, window in enumerate(stated.get("maintenance", []))),
        retention=_retention(stated.get("retention", {})),
        evidence=_evidence(stated.get("evidence")),
        owners=tuple(Owner(line["team"], **line.get("match", {})) for line in stated.get("owners", [])),
    )


def _tier(document: Document, name: str, requirements: dict[str, Any]) -> Tier:
    objective = requirements.pop("objective", {})
    page_after = requirements.pop("page_after", {})
    waiver_longest = requirements.pop("waiver_longest", None)
    if isinstance(page_after, timedelta):
        page_after = dict.fromkeys(PAGING, page_after)
    for key, value in requirements.items():
        if isinstance(value, dict):
            _check_range(document, value, ("tiers", name, key))
    plain = numbers(requirements)
    factor = plain.get("replication_factor", plain.get(f"replication_factor{AT_MOST}"))
    minimum = plain.get("min_insync_replicas")
    if factor is not None and minimum is not None and minimum > factor:
        raise document.refuse(
            ("tiers", name, "min_insync_replicas"),
            f"min_insync_replicas {minimum} is above replication_factor {factor}; a topic with {factor} replicas can never "
            "have that many in sync. Lower min_insync_replicas or raise replication_factor",
        )
    stated = {key: sorted(set(v)) if isinstance(v, list) else v for key, v in requirements.items()}
    return Tier(name, stated, objective, page_after, waiver_longest)


def _check_range(document: Document, stated: dict[str, int], place: Place) -> None:
    low, high = stated.get("min"), stated.get("max")
    if low is not None and high is not None and low > high:
        raise document.refuse((*place, "max"), f"max {high} is below min {low}")


def _selectors(document: Document) -> tuple[Selector, ...]:
    selectors: list[Selector] = []
    for index, line in enumerate(document.content["topics"]):
        if selectors and selectors[-1].unconditional:
            before = document.lines["topics", index - 1]
            raise document.refuse(
                ("topics", index),
                f"is never reached: line {before} matches every topic, and the first line that matches decides",
            )
        _check_tier(document, line["tier"], ("topics", index, "tier"))
        match = dict(line.get("match", {}))
        factor = match.pop("replication_factor", None)
        if isinstance(factor, dict):
            _check_range(document, factor, ("topics", index, "match", "replication_factor"))
        selectors.append(Selector(tier=line["tier"], **match, replication_factor=_bounds(factor)))
    return tuple(selectors)


def _bounds(stated: int | dict[str, int] | None) -> tuple[int | None, int | None] | None:
    """The least and the greatest of a number that a selector states as one number or as a range."""
    if isinstance(stated, dict):
        return stated.get("min"), stated.get("max")
    return None if stated is None else (stated, stated)


def _check_tier(document: Document, name: str, place: Place) -> None:
    tiers = document.content["tiers"]
    if name not in tiers:
        hint = f"{did_you_mean(name, tiers)} (defined: {', '.join(tiers)})"
        raise document.refuse(place, f"tier {shown(name)} is not defined{hint}")


def _application(document: Document, index: int, line: dict[str, Any]) -> Application:
    if "tier" in line:
        _check_tier(document, line["tier"], ("applications", index, "tier"))
    match = line.pop("match", {})
    return Application(**{**line, **match, "rack_aware_tags": tuple(line.get("rack_aware_tags", ()))})


def _readings(document: Document, stated: dict[str, Any]) -> Readings:
    default = Readings()
    prolonged_after, bouncing = stated.get("prolonged_after", {}), stated.get("bouncing", {})
    by_tier = prolonged_after.get("tiers", {}) if isinstance(prolonged_after, dict) else {}
    for name in by_tier:
        _check_tier(document, name, ("readings", "prolonged_after", "tiers", name))
    delays = _delays(prolonged_after)
    return Readings(
        prolonged_after=delays.pop(None, default.prolonged_after),
        by_category=delays,
        by_tier={name: _delays(delay) for name, delay in by_tier.items()},
        bouncing_changes=bouncing.get("changes", default.bouncing_changes),
        bouncing_within=bouncing.get("within", default.bouncing_within),
    )


def _delays(stated: timedelta | dict[str, Any]) -> dict[Any, timedelta]:
    """Delays by category (None: the others): one duration, or `default` and categories."""
    if isinstance(stated, timedelta):
        return {None: stated}
    return {None if name == "default" else name: delay for name, delay in stated.items() if name != "tiers"}


def _maintenance(document: Document, index: int, window: dict[str, Any]) -> Maintenance:
    start, end = window["from"], window["to"]
    if not start < end:
        place = ("maintenance", index, "to")
        raise document.refuse(place, f"`to` {end.isoformat()} is not after `from` {start.isoformat()}")
    return Maintenance(window["cluster"], start, end, window["reason"])


def _evidence(stated: dict[str, Any] | None) -> EvidenceCopy | None:
    if stated is None:
        return None
    bucket, _, prefix = stated["s3"].removeprefix("s3://").partition("/")
    return EvidenceCopy(bucket, prefix.strip("/"), **stated.get("object_lock", {}))


def _retention(stated: dict[str, Any]) -> Retention:
    evidence = stated.pop("evidence", {})
    return Retention(**stated, **{f"evidence_{name}": value for name, value in evidence.items()})


def load_waivers(path: Path | str) -> list[Waiver]:
    """The waivers in the file at `path` (format durability-waivers/1), in its order. Raises BadInput."""
    document = read(path, "waivers file", WAIVERS)
    return [_waiver(document, index, stated) for index, stated in enumerate(document.content["waivers"])]


def _waiver(document: Document, index: int, stated: dict[str, Any]) -> Waiver:
    control = stated["control"]
    controls = tuple(c for c in CONTROLS if matches(control, c))
    if not controls:
        hint = f"{did_you_mean(control, CONTROLS)} (controls: {', '.join(CONTROLS)})"
        raise document.refuse(("waivers", index, "control"), f"{shown(control)} matches no control{hint}")
    waiver = Waiver(index=index, controls=controls, **stated)
    if waiver.approved_by and waiver.approved_by.strip().casefold() == waiver.owner.strip().casefold():
        who = f"{shown(waiver.approved_by)} is the owner: name who else approved it, or leave approved_by out"
        raise document.refuse(("waivers", index, "approved_by"), who)
    if waiver.approved_at and waiver.approved_at > waiver.expires:
        late = f"{waiver.approved_at} is after its last day {waiver.expires}"
        raise document.refuse(("waivers", index, "approved_at"), late)
    return waiver


def load_clusters(path: Path | str) -> list[Cluster]:
    """The clusters in the file at `path` (format durability-clusters/1), in its order. Raises BadInput.

    `connection` is the id unless stated. The list may be empty.
    """
    document = read(path, "clusters file", CLUSTERS)
    lines: dict[str, int] = {}
    clusters = []
    for index, stated in enumerate(document.content["clusters"]):
        name, place = stated["id"], ("clusters", index, "id")
        if name in lines:
            raise document.refuse(place, f"cluster {shown(name)} is there twice, first in line {lines[name]}")
        if name == INVENTORY and document.content.get("inventory"):
            raise document.refuse(place, f"findings on an inventory have cluster {name}; give this cluster another id")
        lines[name] = document.lines[place]
        racks = {int(node): rack for node, rack in stated.pop("controllers", {}).items()}
        others = tuple(stated.pop("inventory_names", ()))
        clusters.append(Cluster(**{"connection": name, **stated, "controllers": racks, "inventory_names": others}))
    _check_inventory_names(document)
    return clusters


def _check_inventory_names(document: Document) -> None:
    """Raises BadInput if two clusters have one name in inventories: it would hide that one of them isn't audited."""
    owner: dict[str, int] = {}
    for index, stated in enumerate(document.content["clusters"]):
        owner[stated["id"]] = index
    for index, stated in enumerate(document.content["clusters"]):
        for number, name in enumerate(stated.get("inventory_names", ())):
            if owner.setdefault(name, index) != index:
                other = document.content["clusters"][owner[name]]["id"]
                place = ("clusters", index, "inventory_names", number)
                raise document.refuse(
                    place, f"{shown(name)} is a name of cluster {shown(other)}, too; keep one of them"
                )
