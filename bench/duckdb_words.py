"""The DuckDB program's findings of topics: evidence as JSON, and words where something fails."""

from __future__ import annotations

from typing import NamedTuple

from bench.duckdb_remedies import (
    NO_HEADROOM_WANTED,
    PLACE,
    SET_RACKS,
    bring_back,
    text,
    topic_config,
    waiting,
)
from bench.duckdb_topics import CATEGORIES
from durability.policy.catalogue import severity_of


class Finding(NamedTuple):
    """SQL over a topic: an outcome (NULL: no finding), what was seen and is required as JSON, and a FAIL's words."""

    control: str
    outcome: str
    observed: str
    required: str
    cause: str
    message: str
    remediation: str
    partitions: str = "NULL::INT[]"
    category: str = "NULL::VARCHAR"
    severity: str = ""


def weight(control: str, category: str | None = None) -> str:
    return text(severity_of(control, category))


def as_json(**values: str) -> str:
    return f"to_json({{{', '.join(f'{name!r}: {value}' for name, value in values.items())}}})"


def partitions(ids: str) -> str:
    return f"CASE WHEN len({ids}) = 1 THEN 'partition ' ELSE 'partitions ' END || listed({ids})"


INFEASIBLE = "'policy:' || tier || ' can''t be met here'"
IF_INFEASIBLE = f"CASE WHEN too_few_brokers THEN {INFEASIBLE} END"
BY_MIN_ISR = "CASE WHEN min_isr_source <> 'topic' THEN 'configuration:cluster-default' ELSE 'configuration:topic' END"
BY_PLACEMENT = "CASE WHEN rack_count = 0 THEN 'configuration:broker.rack' ELSE 'placement' END"

REPLICATION_FACTOR = Finding(
    "replication-factor",
    "o_rf",
    as_json(replication_factor="rf"),
    as_json(replication_factor="replication_factor"),
    f"coalesce({IF_INFEASIBLE}, 'configuration:topic')",
    f"{partitions('few_replicas')} || ': replication factor ' || rf || ', ' || replication_factor || ' required by tier '"
    " || tier",
    "remedy",
    "few_replicas",
)
MIN_ISR = Finding(
    "min-insync-replicas",
    "o_min_isr",
    as_json(min_insync_replicas="min_isr", effective_min_insync_replicas="effective", source="min_isr_source"),
    as_json(min_insync_replicas="min_insync_replicas"),
    f"coalesce({IF_INFEASIBLE}, CASE WHEN min_isr >= min_insync_replicas THEN 'configuration:topic' ELSE {BY_MIN_ISR} END)",
    f"{partitions('few_in_sync')} || ': effective min.insync.replicas ' || effective || ', ' || min_insync_replicas"
    " || ' required by tier ' || tier || ' (configured ' || min_isr || ', from ' || min_isr_source || ')'",
    "remedy",
    "few_in_sync",
)
_DOWNGRADE = text(
    "since Kafka 3.7 the leader silently enforces the number of replicas instead (those being added included), and acks=all"
    " guarantees no more copies than that (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR, and retrying would be"
    " useless)"
)
_OUTAGE = text(
    "before Kafka 3.7 every acks=all write fails with NOT_ENOUGH_REPLICAS and retrying is useless"
    " (KIP-579 would answer INCONSISTENT_REPLICATION_FACTOR)"
)
_WITHIN = "min-isr-within-replication-factor"
_EFFECT = "CASE WHEN min_isr > rf THEN CASE WHEN caps THEN 'silent-downgrade' ELSE 'outage' END END"
WITHIN = Finding(
    _WITHIN,
    "o_above",
    as_json(
        min_insync_replicas="min_isr",
        replication_factor="rf",
        effect=_EFFECT,
        error="CASE WHEN min_isr > rf AND NOT caps THEN 'NOT_ENOUGH_REPLICAS' END",
        proposed_error="CASE WHEN min_isr > rf THEN 'INCONSISTENT_REPLICATION_FACTOR' END",
        retriable="CASE WHEN min_isr > rf THEN false END",
        readings="NULL",
    ),
    as_json(min_insync_replicas_at_most="rf"),
    BY_MIN_ISR,
    f"{partitions('above')} || ': min.insync.replicas=' || min_isr || ' is above the replication factor ' || rf || '; '"
    f" || CASE WHEN caps THEN {_DOWNGRADE} ELSE {_OUTAGE} END",
    "remedy",
    "above",
    _EFFECT,
    f"CASE WHEN caps THEN {weight(_WITHIN, 'silent-downgrade')} ELSE {weight(_WITHIN, 'outage')} END",
)
HEADROOM = Finding(
    "write-headroom",
    "o_room",
    as_json(write_headroom="headroom"),
    as_json(write_headroom="write_headroom"),
    f"coalesce({IF_INFEASIBLE}, CASE WHEN min_isr > headroom_rf THEN {BY_MIN_ISR} ELSE 'configuration:topic' END)",
    f"{partitions('no_room')} || ': broker losses with acks=all writes still accepted: ' || headroom || ', '"
    " || write_headroom || ' required (replication factor ' || headroom_rf || ', effective min.insync.replicas '"
    " || (headroom_rf - headroom) || ')'",
    "remedy",
    "no_room",
)
UNCLEAN = Finding(
    "unclean-leader-election",
    "o_unclean",
    as_json(unclean_leader_election="unclean", source="unclean_source"),
    as_json(unclean_leader_election="unclean_leader_election"),
    "CASE WHEN unclean_source = 'topic' THEN 'configuration:topic' ELSE 'configuration:cluster-default' END",
    "'unclean leader election is on (from ' || unclean_source"
    " || '): a replica out of sync may become leader, and what acks=all acknowledged is lost'",
    topic_config("unclean.leader.election.enable", "'false'"),
)
REPLICA_RACKS = Finding(
    "replica-rack-spread",
    "o_racks",
    as_json(replica_racks="CASE WHEN replica_racks IS NOT NULL THEN span END"),
    as_json(replica_racks="replica_racks"),
    f"CASE WHEN replica_racks > rack_count THEN {INFEASIBLE} ELSE {BY_PLACEMENT} END",
    f"{partitions('few_racks')} || ': replicas span ' || span || ' of the ' || replica_racks || ' racks that tier '"
    " || tier || ' requires'",
    PLACE,
    "few_racks",
)
_ISR = "isr-rack-spread"
_UNDER_RACKS = "o_enough_racks = 'FAIL'"
_ISR_CATEGORY = (
    f"CASE WHEN {_UNDER_RACKS} THEN 'under-min-rack-isr' WHEN o_isr_racks = 'FAIL' THEN 'at-min-rack-isr' END"
)
_ISR_IDS = f"CASE WHEN {_UNDER_RACKS} THEN under_racks ELSE at_racks END"
_ISR_CAUSE = "coalesce(rack_causes, 'placement')"
_ANSWERS = """coalesce(' (' || nullif(concat_ws('; ',
    CASE WHEN racks_leaderless THEN 'without a leader writes are answered LEADER_NOT_AVAILABLE' END,
    CASE WHEN racks_refused THEN 'KIP-1290 would answer NOT_ENOUGH_RACKS' END,
    CASE WHEN racks_few_replicas THEN 'KIP-1290 checks replicas first: NOT_ENOUGH_REPLICAS' END), '') || ')', '')"""
_NAMES = """ordered(list_filter(list_transform(
    list_filter(narrowest.replicas, lambda x: list_contains(narrowest.isr, x)),
    lambda x: getvariable('rack')[narrowest.base + x]), lambda r: r IS NOT NULL))"""
ISR_RACKS = Finding(
    _ISR,
    "o_isr_racks",
    as_json(
        isr_racks="isr_racks",
        category=_ISR_CATEGORY,
        partitions_by_category="CASE WHEN wanted IS NOT NULL AND (under_racks IS NOT NULL OR at_racks IS NOT NULL)"
        " THEN {'under-min-rack-isr': coalesce(under_racks, []), 'at-min-rack-isr': coalesce(at_racks, [])} END",
    ),
    as_json(min_insync_racks="wanted"),
    f"CASE WHEN {_UNDER_RACKS} AND isr_misplaced"
    f" THEN CASE WHEN wanted > rack_count + unnamed THEN {INFEASIBLE} ELSE {BY_PLACEMENT} END ELSE {_ISR_CAUSE} END",
    f"CASE WHEN {_UNDER_RACKS} THEN {partitions('under_racks')} ELSE {partitions('at_racks')} END || ': isr spans '"
    f" || isr_racks || ' of ' || wanted || ' racks required'"
    f" || coalesce(' (' || nullif(array_to_string(list_sort({_NAMES}), ', '), '') || ')', '') || '; '"
    f" || CASE WHEN {_UNDER_RACKS} THEN 'acknowledged writes may be in no other rack' || {_ANSWERS}"
    " ELSE 'exactly the minimum, one more rack lost would be too many' END"
    f" || CASE WHEN {_UNDER_RACKS} AND at_racks IS NOT NULL"
    f" THEN '; at exactly the minimum: ' || {partitions('at_racks')} ELSE '' END",
    f"CASE WHEN {_UNDER_RACKS} AND isr_misplaced THEN {PLACE} ELSE {bring_back(_ISR_CAUSE)} END",
    _ISR_IDS,
    _ISR_CATEGORY,
    f"CASE WHEN {_UNDER_RACKS} THEN {weight(_ISR, 'under-min-rack-isr')} ELSE {weight(_ISR, 'at-min-rack-isr')} END",
)
_VALID = "min-insync-racks-valid"
_FIRST = "problems[1]"
_VALID_IDS = (
    f"CASE {_FIRST} WHEN 'above-replication-factor' THEN above_rf WHEN 'above-replica-racks' THEN above_span END"
)
VALID = Finding(
    _VALID,
    "o_valid",
    as_json(problem=_FIRST, min_insync_racks="min_insync_racks", problems="problems"),
    as_json(min_insync_racks="min_insync_racks"),
    f"CASE {_FIRST} WHEN 'broker-without-rack' THEN 'configuration:broker.rack' WHEN 'above-known-racks' THEN {INFEASIBLE}"
    " ELSE 'placement' END",
    f"'min.insync.racks=' || min_insync_racks || ' wanted; ' || CASE {_FIRST}"
    " WHEN 'above-known-racks' THEN 'racks in the cluster: ' || rack_count || ' (KIP-1290 would warn)'"
    f" WHEN 'above-replication-factor' THEN {partitions('above_rf')} || ': replication factor ' || rf"
    " || ', no acks=all write could pass'"
    f" WHEN 'above-replica-racks' THEN {partitions('above_span')} || ': the replicas don''t span as many'"
    " ELSE 'without broker.rack: broker ' || listed(unracked) END",
    f"CASE WHEN {_FIRST} = 'broker-without-rack' OR ({_FIRST} = 'above-known-racks' AND rack_count = 0) THEN {SET_RACKS}"
    f" WHEN {_FIRST} = 'above-known-racks' THEN 'Lower min_insync_racks of tier ' || tier || ' to at most ' || rack_count"
    " || ', the racks that this cluster has, or add racks' WHEN reassign THEN remedy"
    " ELSE 'Spread the topic''s replicas over more racks, or want fewer racks of this topic' END",
    _VALID_IDS,
    severity=f"CASE WHEN len(list_filter(problems, lambda p: p <> 'above-known-racks')) = 0"
    f" THEN {weight(_VALID, 'above-known-racks')} ELSE {weight(_VALID, 'above-replication-factor')} END",
)
_WORDS = {
    "offline": "no live leader: neither reads nor writes",
    "under-min-isr": "acks=all writes are refused (NOT_ENOUGH_REPLICAS)",
    "at-min-isr": "one more replica out of sync refuses acks=all writes",
    "under-replicated": "fewer copies than meant",
}
_SINGLE = _WORDS | {"at-min-isr": "its broker holds the only copy, and while it is away nobody reads or writes"}
_HEALTH = "partition-health"


def health(category: str, flag: str) -> Finding:
    """flag: the category's column of a partition."""
    isr, rf, ids = f"({flag}_least >> 32)", f"({flag}_least & 4294967295)", f"{flag}_ids"
    effective = f"CASE WHEN min_isr <= {rf} OR NOT caps THEN min_isr ELSE {rf} END"
    shrunk = "true" if category == "offline" else f"{flag}_shrunk"
    cause = f"coalesce({flag}_causes, 'replicas lagging')"
    severity = weight(_HEALTH, category)
    if category == "at-min-isr":
        severity = f"CASE WHEN {shrunk} THEN {severity} ELSE {weight(_HEALTH, 'at-min-isr/configuration')} END"
    return Finding(
        _HEALTH,
        f"CASE WHEN {ids} IS NOT NULL THEN 'FAIL' END",
        as_json(
            category=text(category),
            cause="'shrunk'"
            if category == "offline"
            else f"CASE WHEN {flag}_whole THEN 'configuration' ELSE 'shrunk' END",
            isr=isr,
            replication_factor=rf,
            min_insync_replicas="min_isr",
            effective_min_insync_replicas=effective,
        ),
        "'{}'",
        f"CASE WHEN {shrunk} THEN {cause} ELSE {BY_MIN_ISR} END",
        f"{partitions(ids)} || ': isr ' || {isr} || ' of ' || {rf} || ' replicas, effective min.insync.replicas '"
        f" || {effective} || '; ' || CASE WHEN {rf} = 1 THEN {text(_SINGLE[category])} ELSE {text(_WORDS[category])} END"
        f" || coalesce('; ' || nullif(array_to_string({flag}_cli, '; '), ''), '')",
        f"CASE WHEN {shrunk} THEN {waiting(cause)} WHEN differs THEN remedy ELSE {NO_HEADROOM_WANTED} END",
        ids,
        text(category),
        severity,
    )


HEALTHY = Finding(
    _HEALTH,
    "CASE WHEN healthy THEN 'PASS' END",
    text('{"category": null, "cause": null}'),
    "'{}'",
    "NULL::VARCHAR",
    "NULL::VARCHAR",
    "NULL::VARCHAR",
)


FINDINGS = (
    *(REPLICATION_FACTOR, MIN_ISR, WITHIN, HEADROOM, UNCLEAN, REPLICA_RACKS, ISR_RACKS, VALID),
    *map(health, _WORDS, CATEGORIES),
    HEALTHY,
)


def select(f: Finding, source: str = "r") -> str:
    """Rows of `findings` of one kind. What has a finding a category has that in its id, which is empty where it passes."""
    fails = "o = 'FAIL'"
    words = ", ".join(
        f"CASE WHEN {fails} THEN {value} END AS {name}"
        for name, value in {
            "category": f.category,
            "severity": f.severity or weight(f.control),
            "cause": f.cause,
            "partitions": f.partitions,
            "remediation": f.remediation,
        }.items()
    )
    of_category = f" || chr(10) || CASE WHEN {fails} THEN {f.category} ELSE '' END" if f.control == _HEALTH else ""
    named = f"cluster || {text(chr(10) + f.control + chr(10) + 'topic' + chr(10))} || topic{of_category}"
    return f"""
SELECT cluster, captured_at, snapshot_id, substr(sha256({named}), 1, 20) AS id, 'topic' AS resource_type, topic AS resource,
  {text(f.control)} AS control, o AS outcome, {f.observed}::VARCHAR AS observed, {f.required}::VARCHAR AS required, {words},
  CASE WHEN {fails} THEN {f.message} WHEN o = 'NOT_APPLICABLE' THEN coalesce('tier ' || tier || ' doesn''t require it',
    'no selector of the policy matches it') END AS message,
  CASE WHEN {fails} THEN 'new' END AS change, NULL::VARCHAR AS why, CASE WHEN {fails} THEN captured_at END AS since,
  NULL::INT AS waiver, tier, NULL::VARCHAR AS previous_severity
FROM (SELECT *, {f.outcome} AS o FROM {source}) WHERE o IS NOT NULL"""
