"""policy.yaml, waivers.yaml and clusters.yaml, read strictly: what can't be right is refused with its line."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from durability.catalogue import CONTROLS
from durability.policy.formats import CLUSTERS, POLICY, WAIVERS
from durability.policy.match import matches
from durability.policy.model import (
    Application,
    Cluster,
    Maintenance,
    Policy,
    Readings,
    Retention,
    Selector,
    Tier,
    Waiver,
)
from durability.policy.yamlfile import Value, did_you_mean, read, shown


def load_policy(path: Path | str) -> Policy:
    """The policy in the file at `path` (format durability-policy/1).

    Raises BadInput with file, line and what was expected for anything that can't be right.
    """
    root = read(path, "policy", POLICY).mapping()
    stated = root["tiers"].mapping().items()
    tiers = {name: _tier(name, value.called(f"tier {shown(name)}")) for name, value in stated}
    applications = root["applications"].items() if "applications" in root else []
    windows = root["maintenance"].items() if "maintenance" in root else []
    return Policy(
        name=root["name"].read() if "name" in root else "policy",
        tiers=tiers,
        topics=_selectors(root["topics"], tiers),
        applications=tuple(_application(v, tiers) for v in applications),
        readings=_readings(root["readings"], tiers) if "readings" in root else Readings(),
        maintenance=tuple(_maintenance(v) for v in windows),
        retention=_retention(root["retention"]) if "retention" in root else Retention(),
    )


def _stated(keys: Mapping[str, Value], *names: str) -> dict[str, Any]:
    """What the file says under those of these keys that are there; what isn't said has its default elsewhere."""
    return {name: keys[name].read() for name in names if name in keys}


def _all_of(value: Value) -> dict[str, Any]:
    keys = value.mapping()
    return _stated(keys, *keys)


def _tier(name: str, value: Value) -> Tier:
    keys = value.mapping()
    stated = _stated(keys, *keys)
    factor, minimum = stated.get("replication_factor"), stated.get("min_insync_replicas")
    if factor is not None and minimum is not None and minimum > factor:
        raise keys["min_insync_replicas"].refuse(
            f"{value.name}: min_insync_replicas {minimum} is above replication_factor {factor}; a topic with {factor} "
            "replicas can never have that many in sync, so lower the one or raise the other"
        )
    return Tier(
        name, {key: sorted(set(said)) if isinstance(said, (list, tuple)) else said for key, said in stated.items()}
    )


def _selectors(value: Value, tiers: dict[str, Tier]) -> tuple[Selector, ...]:
    result: list[Selector] = []
    everything: Value | None = None
    for item in value.items():
        if everything is not None:
            raise item.refuse(
                f"{item.name} is never reached: line {everything.line} matches every topic, and the first match decides"
            )
        keys = item.mapping()
        conditions = _all_of(keys["match"]) if "match" in keys else {}
        result.append(Selector(tier=_tier_name(keys["tier"], tiers), **conditions))
        if result[-1].unconditional:
            everything = item
    return tuple(result)


def _tier_name(value: Value, tiers: dict[str, Tier]) -> str:
    name = value.read()
    if name not in tiers:
        raise value.refuse(
            f"{value.name}: tier {shown(name)} is not defined{did_you_mean(name, tiers)} (defined: {', '.join(tiers)})"
        )
    return name


def _application(item: Value, tiers: dict[str, Tier]) -> Application:
    keys = item.mapping()
    conditions = _all_of(keys["match"]) if "match" in keys else {}
    return Application(
        tier=_tier_name(keys["tier"], tiers) if "tier" in keys else None,
        rack_aware_tags=tuple(keys["rack_aware_tags"].read()) if "rack_aware_tags" in keys else (),
        **_stated(keys, "standby_replicas"),
        **conditions,
    )


def _readings(value: Value, tiers: dict[str, Tier]) -> Readings:
    keys = value.mapping()
    bouncing = _all_of(keys["bouncing"]) if "bouncing" in keys else {}
    delays, of_tiers = _prolonged_after(keys["prolonged_after"], tiers) if "prolonged_after" in keys else ({}, {})
    default = Readings()
    return Readings(
        prolonged_after=delays.pop(None, default.prolonged_after),
        by_category=delays,
        by_tier=of_tiers,
        bouncing_changes=bouncing.get("changes", default.bouncing_changes),
        bouncing_within=bouncing.get("within", default.bouncing_within),
    )


def _prolonged_after(value: Value, tiers: dict[str, Tier]) -> tuple[dict, dict]:
    """Delays by category (None: the others), and the same by tier: one duration, or `default`, categories, `tiers`."""
    if value.is_mapping:
        per_tier = value.mapping().get("tiers")
        named = per_tier.mapping() if per_tier else {}
        for name, delay in named.items():
            if name not in tiers:
                known = f"{did_you_mean(name, tiers)} (defined: {', '.join(tiers)})"
                raise delay.refuse(f"{delay.name}: tier {shown(name)} is not defined{known}")
        return _delays(value), {name: _delays(delay) for name, delay in named.items()}
    return {None: value.read()}, {}


def _delays(value: Value) -> dict[str | None, timedelta]:
    if not value.is_mapping:
        return {None: value.read()}
    keys = value.mapping()
    return {None if name == "default" else name: keys[name].read() for name in keys if name != "tiers"}


def _maintenance(item: Value) -> Maintenance:
    keys = item.mapping()
    start, end = keys["from"].read(), keys["to"].read()
    if not start < end:
        raise keys["to"].refuse(f"{item.name}: `to` {end.isoformat()} is not after `from` {start.isoformat()}")
    return Maintenance(keys["cluster"].read(), start, end, keys["reason"].read())


def _retention(value: Value) -> Retention:
    keys = value.mapping()
    stated = _stated(keys, "snapshots", "findings", "pulses", "counters")
    evidence = _all_of(keys["evidence"]) if "evidence" in keys else {}
    return Retention(**stated, **{f"evidence_{name}": said for name, said in evidence.items()})


def load_waivers(path: Path | str) -> list[Waiver]:
    """The waivers in the file at `path` (format durability-waivers/1), in its order; raises BadInput.

    `expires` is compulsory, as are control, cluster, resource, owner and reason; approved_by and ticket may be absent.
    """
    root = read(path, "waivers file", WAIVERS).mapping()
    return [_waiver(index, item) for index, item in enumerate(root["waivers"].called("waiver").items())]


def _waiver(index: int, item: Value) -> Waiver:
    keys = item.mapping()
    control = keys["control"].read()
    controls = tuple(c for c in CONTROLS if matches(control, c))
    if not controls:
        raise keys["control"].refuse(
            f"{keys['control'].name}: {shown(control)} matches no control{did_you_mean(control, CONTROLS)} "
            f"(controls: {', '.join(CONTROLS)})"
        )
    return Waiver(index=index, controls=controls, **_stated(keys, *keys))


def load_clusters(path: Path | str) -> list[Cluster]:
    """The clusters in the file at `path` (format durability-clusters/1), in its order; raises BadInput.

    `connection` is the id unless stated; an empty list is legal.
    """
    root = read(path, "clusters file", CLUSTERS).mapping()
    lines: dict[str, int] = {}
    clusters = []
    for item in root["clusters"].called("cluster").items():
        keys = item.mapping()
        name = keys["id"].read()
        if name in lines:
            raise keys["id"].refuse(f"cluster {shown(name)} is there twice, first in line {lines[name]}")
        lines[name] = keys["id"].line
        racks = keys["controllers"].mapping() if "controllers" in keys else {}
        clusters.append(
            Cluster(
                id=name,
                connection=keys["connection"].read() if "connection" in keys else name,
                controllers={int(node): rack.read() for node, rack in racks.items()},
                **_stated(keys, "provider", "team", "read_within"),
            )
        )
    return clusters
