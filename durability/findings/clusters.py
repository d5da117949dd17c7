"""Reads the facts about each cluster that its remedies need, once per cluster."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

from durability.findings import fragile, quorum, starts
from durability.findings.reassignments import Plans
from durability.lake.conditions import of_result
from durability.lake.tables import BROKERS, CLUSTERS, TOPIC_POSTURE, VERDICTS
from durability.plan.plan import Plan
from durability.remedies.cluster import ClusterFacts, Restored
from durability.remedies.elr import FEATURE
from durability.topology import versions


def facts_of_clusters(lake: Any, plan: Plan, plans: Plans) -> dict[str, ClusterFacts]:
    """The facts of the evaluated clusters, by cluster. lake: has `scan(table, where, columns) -> pa.Table`."""
    from pyiceberg.expressions import In

    attempts = set(plan.attempts)
    if not attempts:
        return {}
    snapshots = In("attempt_id", attempts)
    clusters = lake.scan(
        CLUSTERS, snapshots, columns=("cluster", "kafka_version", "quorum_mode", "features", "provider")
    ).to_pylist()
    columns = ("broker", "live", "rack_state", "kafka_version", "configs", "config_sources", "offline_log_dirs")
    brokers = lake.scan(BROKERS, snapshots, columns=("cluster", *columns)).to_pylist()
    quorums = quorum.read(lake, attempts)
    restores = _restores(lake, plan)
    at_risk, lag = fragile.read(lake, plan)
    first = starts.read(lake, plan)
    throttled = _throttled(lake, plan)
    stated: dict[str, list[str | None]] = {row["cluster"]: [row["kafka_version"]] for row in clusters}
    min_isr: defaultdict[str, list[int | None]] = defaultdict(list)
    default_rf: defaultdict[str, list[int | None]] = defaultdict(list)
    down: defaultdict[str, list[int]] = defaultdict(list)
    failed: defaultdict[str, list[int]] = defaultdict(list)
    unracked: defaultdict[str, list[int]] = defaultdict(list)
    unknown = quorum.Quorum(None, None)
    for broker in brokers:
        if broker["rack_state"] == "none":
            unracked[broker["cluster"]].append(broker["broker"])
        if broker["live"] is False:
            down[broker["cluster"]].append(broker["broker"])
        else:
            min_isr[broker["cluster"]].append(_number(broker, "min.insync.replicas"))
            default_rf[broker["cluster"]].append(_number(broker, "default.replication.factor"))
            stated.setdefault(broker["cluster"], []).append(broker["kafka_version"])
            if broker["offline_log_dirs"]:
                failed[broker["cluster"]].append(broker["broker"])
    planned: defaultdict[str, set[str]] = defaultdict(set)
    without: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for made in plans.made:
        planned[made.cluster].add(made.topic)
    for (cluster, topic), why in plans.without.items():
        without[cluster][topic] = why
    return {
        row["cluster"]: ClusterFacts(
            release=_oldest(stated[row["cluster"]]),
            newest=_newest(stated[row["cluster"]]),
            kraft={"kraft": True, "zookeeper": False}.get(row["quorum_mode"]),
            led=quorums.get(row["cluster"], unknown).led,
            spare_voter=quorums.get(row["cluster"], unknown).spare,
            missing_voters=quorums.get(row["cluster"], unknown).missing,
            elr=None if row["features"] is None else dict(row["features"]).get(FEATURE, 0) > 0,
            highest_min_isr=_extreme(max, min_isr[row["cluster"]]),
            lowest_min_isr=_extreme(min, min_isr[row["cluster"]]),
            lowest_default_rf=_extreme(min, default_rf[row["cluster"]]),
            down=tuple(sorted(down[row["cluster"]])),
            failed_disks=tuple(sorted(failed[row["cluster"]])),
            provider=row["provider"],
            unracked=tuple(sorted(unracked[row["cluster"]])),
            fragile=at_risk.get(row["cluster"]),
            lag_shares=lag.get(row["cluster"]),
            throttled=row["cluster"] in throttled,
            gone=plans.gone.get(row["cluster"]),
            planned=frozenset(planned[row["cluster"]]),
            without=without[row["cluster"]],
            restores=restores.get(row["cluster"], {}),
            starts_first=first.get(row["cluster"], ()),
        )
        for row in clusters
    }


def _restores(lake: Any, plan: Plan) -> dict[str, dict[str, Restored]]:
    """By cluster, `ClusterFacts.restores`. `spark_jobs.history.rack_outage` decides when a value can be restored."""
    from pyiceberg.expressions import And, EqualTo

    over = And(of_result(plan), EqualTo("rack_outage_step", "restore"))
    found: defaultdict[str, dict[str, Restored]] = defaultdict(dict)
    for row in lake.scan(TOPIC_POSTURE, over, columns=("cluster", "topic", "rack_outage")).to_pylist():
        for entry in row["rack_outage"]:
            if (entry["setting"], entry["step"], entry["now_source"]) == ("min.insync.replicas", "restore", "topic"):
                found[row["cluster"]][row["topic"]] = Restored(entry["value"], entry["source"] == "topic")
    return found


def _throttled(lake: Any, plan: Plan) -> set[str]:
    """The clusters with throttles that are left without a reassignment."""
    from pyiceberg.expressions import And, EqualTo

    left = And(
        of_result(plan), EqualTo("control", "reassignment-leftovers"), EqualTo("cause", "configuration:throttle")
    )
    rows = lake.scan(VERDICTS, left, columns=("cluster", "outcome")).to_pylist()
    return {row["cluster"] for row in rows if row["outcome"] in ("FAIL", "EXEMPT")}


def _newest(stated: list[str | None]) -> tuple[int, ...] | None:
    """The newest of the releases; None if one is unknown."""
    numbers = [versions.parse(version) for version in stated]
    return None if None in numbers else max((n for n in numbers if n is not None), default=None)


def _number(broker: dict[str, Any], setting: str) -> int | None:
    """A broker's value of a setting whose default is 1; None if unknown.

    A document that doesn't state it means Kafka's default. An answer of DescribeConfigs states defaults too.
    """
    left_out = "" if "default" in dict(broker["config_sources"] or ()).values() else "1"
    value = "" if broker["configs"] is None else dict(broker["configs"]).get(setting, left_out)
    return int(value) if value.isdecimal() else None


def _extreme(choose: Callable[[Iterable[int]], int], values: list[int | None]) -> int | None:
    """The highest or lowest of the values; None if there is none or one is unknown."""
    return None if not values or None in values else choose(n for n in values if n is not None)


def _oldest(stated: list[str | None]) -> tuple[int, ...] | None:
    """The oldest of the releases; None if none is known."""
    return min((numbers for version in stated if (numbers := versions.parse(version))), default=None)
