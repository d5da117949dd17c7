"""policy.yaml, waivers.yaml and clusters.yaml, read strictly: what can't be right is refused with its line."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from durability.catalogue import CONTROLS, PROVIDERS
from durability.policy.match import matches
from durability.policy.model import (
    DEGRADED,
    PERIODS,
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

MAX_REPLICAS = 32767  # replication factors are int16 on the wire
LOSSES = ("broker", "rack")
LONGEST_READING = timedelta(minutes=30)
TIER_MINIMUM = {
    "replication_factor": 1,
    "min_insync_replicas": 1,
    "write_headroom": 0,
    "replica_racks": 1,
    "min_insync_racks": 1,
    "acked_copies": 1,
    "acked_racks": 1,
}
TIER_KEYS = (*TIER_MINIMUM, "unclean_leader_election", "survive")


def load_policy(path: Path | str) -> Policy:
    """The policy in the file at `path` (format durability-policy/1).

    Raises BadInput with file, line and what was expected for anything that can't be right.
    """
    known = ("format", "name", "tiers", "topics", "applications", "readings", "maintenance", "retention")
    root = read(path, "policy", "durability-policy/1").mapping(known, required=("tiers", "topics"))
    tiers = {}
    for name, value in root["tiers"].mapping().items():
        tiers[name] = _tier(name, Value(value.file, value.node, f"tier {shown(name)}"))
    if not tiers:
        raise root["tiers"].refuse("tiers: at least one tier is needed")
    applications = root["applications"].items() if "applications" in root else []
    windows = root["maintenance"].items() if "maintenance" in root else []
    return Policy(
        name=root["name"].text() if "name" in root else "policy",
        tiers=tiers,
        topics=_selectors(root["topics"], tiers),
        applications=tuple(_application(v, tiers) for v in applications),
        readings=_readings(root["readings"], tiers) if "readings" in root else Readings(),
        maintenance=tuple(_maintenance(v) for v in windows),
        retention=_retention(root["retention"]) if "retention" in root else Retention(),
    )


def _tier(name: str, value: Value) -> Tier:
    keys = value.mapping(TIER_KEYS)
    numbers = {k: v.integer(TIER_MINIMUM[k], MAX_REPLICAS) for k, v in keys.items() if k in TIER_MINIMUM}
    factor, minimum = numbers.get("replication_factor"), numbers.get("min_insync_replicas")
    if factor is not None and minimum is not None and minimum > factor:
        raise keys["min_insync_replicas"].refuse(
            f"{value.name}: min_insync_replicas {minimum} is above replication_factor {factor}; a topic with {factor} "
            "replicas can never have that many in sync, so lower the one or raise the other"
        )
    unclean = keys["unclean_leader_election"].boolean() if "unclean_leader_election" in keys else None
    survive = [v.choice(LOSSES) for v in keys["survive"].items()] if "survive" in keys else []
    return Tier(name=name, unclean_leader_election=unclean, survive=tuple(sorted(set(survive))), **numbers)


def _selectors(value: Value, tiers: dict[str, Tier]) -> tuple[Selector, ...]:
    result: list[Selector] = []
    everything: Value | None = None
    for item in value.items():
        if everything is not None:
            raise item.refuse(
                f"{item.name} is never reached: line {everything.line} matches every topic, and the first match decides"
            )
        keys = item.mapping(("match", "tier"), required=("tier",))
        match = keys["match"].mapping(("cluster", "topic", "internal", "team")) if "match" in keys else {}
        patterns = {k: v.pattern() for k, v in match.items() if k != "internal"}
        internal = match["internal"].boolean() if "internal" in match else None
        result.append(Selector(tier=_tier_name(keys["tier"], tiers), internal=internal, **patterns))
        if result[-1].unconditional:
            everything = item
    if not result:
        raise value.refuse("topics: at least one line is needed, such as {tier: " + next(iter(tiers)) + "}")
    return tuple(result)


def _tier_name(value: Value, tiers: dict[str, Tier]) -> str:
    name = value.text()
    if name not in tiers:
        raise value.refuse(
            f"{value.name}: tier {shown(name)} is not defined{did_you_mean(name, tiers)} (defined: {', '.join(tiers)})"
        )
    return name


def _application(item: Value, tiers: dict[str, Tier]) -> Application:
    keys = item.mapping(("match", "tier", "rack_aware_tags", "standby_replicas"))
    match = keys["match"].mapping(("group", "cluster")) if "match" in keys else {}
    return Application(
        tier=_tier_name(keys["tier"], tiers) if "tier" in keys else None,
        rack_aware_tags=tuple(v.text() for v in keys["rack_aware_tags"].items()) if "rack_aware_tags" in keys else (),
        standby_replicas=keys["standby_replicas"].integer(0, MAX_REPLICAS) if "standby_replicas" in keys else None,
        **{k: v.pattern() for k, v in match.items()},
    )


def _readings(value: Value, tiers: dict[str, Tier]) -> Readings:
    keys = value.mapping(("prolonged_after", "bouncing"))
    bouncing = keys["bouncing"].mapping(("changes", "within")) if "bouncing" in keys else {}
    default = Readings()
    delays, of_tiers = _prolonged_after(keys["prolonged_after"], tiers) if "prolonged_after" in keys else ({}, {})
    return Readings(
        prolonged_after=delays.pop(None, default.prolonged_after),
        by_category=delays,
        by_tier=of_tiers,
        bouncing_changes=bouncing["changes"].integer(1) if "changes" in bouncing else default.bouncing_changes,
        bouncing_within=bouncing["within"].duration() if "within" in bouncing else default.bouncing_within,
    )


def _prolonged_after(value: Value, tiers: dict[str, Tier]) -> tuple[dict, dict]:
    """Delays by category (None: the others), and the same by tier: one duration, or `default`, categories, `tiers`."""
    if value.is_mapping:
        per_tier = value.mapping(("default", *DEGRADED, "tiers")).get("tiers")
        named = per_tier.mapping() if per_tier else {}
        for name, delay in named.items():
            if name not in tiers:
                known = f"{did_you_mean(name, tiers)} (defined: {', '.join(tiers)})"
                raise delay.refuse(f"{delay.name}: tier {shown(name)} is not defined{known}")
        return _delays(value, ("tiers",)), {name: _delays(delay) for name, delay in named.items()}
    return {None: value.duration()}, {}


def _delays(value: Value, beside: tuple[str, ...] = ()) -> dict[str | None, timedelta]:
    if not value.is_mapping:
        return {None: value.duration()}
    keys = value.mapping(("default", *DEGRADED, *beside))
    return {None if name == "default" else name: v.duration() for name, v in keys.items() if name not in beside}


def _maintenance(item: Value) -> Maintenance:
    names = ("cluster", "from", "to", "reason")
    keys = item.mapping(names, required=names)
    start, end = keys["from"].instant(), keys["to"].instant()
    if not start < end:
        raise keys["to"].refuse(f"{item.name}: `to` {end.isoformat()} is not after `from` {start.isoformat()}")
    return Maintenance(keys["cluster"].pattern(), start, end, keys["reason"].text())


def _retention(value: Value) -> Retention:
    ages = ("snapshots", "findings", "pulses", "counters")
    keys = value.mapping((*ages, "evidence"))
    stated: dict = {name: keys[name].duration() for name in ages if name in keys}
    evidence = keys["evidence"].mapping(("each", "for")) if "evidence" in keys else {}
    if "each" in evidence:
        stated["evidence_each"] = evidence["each"].choice(PERIODS)
    if "for" in evidence:
        stated["evidence_for"] = evidence["for"].duration()
    return Retention(**stated)


def load_waivers(path: Path | str) -> list[Waiver]:
    """The waivers in the file at `path` (format durability-waivers/1), in its order; raises BadInput.

    `expires` is compulsory, as are control, cluster, resource, owner and reason; approved_by and ticket may be absent.
    """
    root = read(path, "waivers file", "durability-waivers/1").mapping(("format", "waivers"), required=("waivers",))
    items = Value(root["waivers"].file, root["waivers"].node, "waiver").items()
    return [_waiver(index, item) for index, item in enumerate(items)]


def _waiver(index: int, item: Value) -> Waiver:
    required = ("control", "cluster", "resource", "owner", "reason", "expires")
    keys = item.mapping((*required, "approved_by", "ticket"), required=required)
    control = keys["control"].pattern()
    controls = tuple(c for c in CONTROLS if matches(control, c))
    if not controls:
        raise keys["control"].refuse(
            f"{keys['control'].name}: {shown(control)} matches no control{did_you_mean(control, CONTROLS)} "
            f"(controls: {', '.join(CONTROLS)})"
        )
    return Waiver(
        index=index,
        control=control,
        controls=controls,
        cluster=keys["cluster"].pattern(),
        resource=keys["resource"].pattern(),
        owner=keys["owner"].text(),
        reason=keys["reason"].text(),
        expires=keys["expires"].date(),
        approved_by=keys["approved_by"].text() if "approved_by" in keys else None,
        ticket=keys["ticket"].text() if "ticket" in keys else None,
    )


def load_clusters(path: Path | str) -> list[Cluster]:
    """The clusters in the file at `path` (format durability-clusters/1), in its order; raises BadInput.

    `connection` is the id unless stated; an empty list is legal.
    """
    root = read(path, "clusters file", "durability-clusters/1").mapping(("format", "clusters"), required=("clusters",))
    lines: dict[str, int] = {}
    clusters = []
    for item in Value(root["clusters"].file, root["clusters"].node, "cluster").items():
        optional = ("connection", "provider", "team", "controllers", "read_within")
        keys = item.mapping(("id", *optional), required=("id",))
        name = keys["id"].text()
        if name in lines:
            raise keys["id"].refuse(f"cluster {shown(name)} is there twice, first in line {lines[name]}")
        lines[name] = keys["id"].line
        clusters.append(
            Cluster(
                id=name,
                connection=keys["connection"].text() if "connection" in keys else name,
                provider=keys["provider"].choice(PROVIDERS) if "provider" in keys else "self",
                team=keys["team"].text() if "team" in keys else None,
                controllers=_controllers(keys["controllers"]) if "controllers" in keys else {},
                read_within=_read_within(keys["read_within"]) if "read_within" in keys else Cluster.read_within,
            )
        )
    return clusters


def _read_within(value: Value) -> timedelta:
    if (stated := value.duration()) > LONGEST_READING:
        raise value.refuse(f"{value.name}: expected {LONGEST_READING.total_seconds() / 60:.0f}m at most")
    return stated


def _controllers(value: Value) -> dict[int, str]:
    result = {}
    for node_id, rack in value.mapping().items():
        if not (node_id.isascii() and node_id.isdigit()):
            raise rack.refuse(f"{value.name}: expected controllers' node ids and their racks, such as 100: az1")
        result[int(node_id)] = rack.text()
    return result
