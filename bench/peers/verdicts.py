"""The verdicts on topics as SQL over one row per topic (`bench.peers.topics`).

Columns `o_...` are outcomes, `w_...` describe the topic's worst partition for acks=all, and `n_...` are numbers of partitions.
Lists of partitions that fall short are NULL if none does.
"""

from __future__ import annotations

from typing import NamedTuple

from durability import catalogue

HEALTH = "partition-health"
_CATEGORIES = ("offline", "under-min-isr", "at-min-isr", "under-replicated")


class Verdict(NamedTuple):
    """An outcome, observed and required values by name, and columns that only a FAIL has. Each is SQL."""

    control: str
    outcome: str
    observed: dict[str, str]
    required: dict[str, str]
    cause: str = "NULL"
    partitions: str = "NULL"
    category: str = "NULL"
    severity: str = ""


def _columns(verdict: Verdict) -> dict[str, str]:
    """SQL by column of `verdicts`. The id is the first 20 digits of a key's SHA-256."""
    fails = f"{verdict.outcome} = 'FAIL'"
    of_failure = {
        "category": verdict.category,
        "severity": verdict.severity or _severity(verdict.control),
        "cause": verdict.cause,
        "partitions": verdict.partitions,
        "change": "'new'",
        "since": "captured_at",
    }
    key = f"concat(cluster, '\n{verdict.control}\ntopic\n', topic"
    if verdict.control == HEALTH:
        key += f", '\n', CASE WHEN {fails} THEN {verdict.category} ELSE '' END"
    return {
        **{name: name for name in ("cluster", "captured_at", "snapshot_id", "tier")},
        "id": f"substr(sha256({key})), 1, 20)",
        "resource_type": "'topic'",
        "resource": "topic",
        "control": f"'{verdict.control}'",
        "outcome": verdict.outcome,
        "observed": f"to_json({_struct(verdict.observed)})::VARCHAR",
        "required": f"to_json({_struct(verdict.required)})::VARCHAR" if verdict.required else "'{}'",
        **{name: f"CASE WHEN {fails} THEN {value} END" for name, value in of_failure.items() if value != "NULL"},
    }


def _struct(values: dict[str, str]) -> str:
    return "{" + ", ".join(f"'{name}': {value}" for name, value in values.items()) + "}"


def _severity(control: str, category: str | None = None) -> str:
    return f"'{catalogue.CONTROLS[control].severity_of(category)}'"


_INFEASIBLE = "'policy:' || tier || ' infeasible'"
_IF_INFEASIBLE = f"CASE WHEN too_few_brokers THEN {_INFEASIBLE} END"
_TOPIC, _DEFAULT = "'configuration:topic'", "'configuration:cluster-default'"
_BY_MIN_ISR = f"CASE WHEN min_isr_source <> 'topic' THEN {_DEFAULT} ELSE {_TOPIC} END"
_REQUIRED_COPIES = (
    "greatest(min_insync_replicas, acked_copies, acked_racks, CASE WHEN survives THEN 2 END,"
    " CASE WHEN acked_racks > 1 THEN coalesce(smallest_min_isr, 32767) END)"
)
_VALUE_TOO_HIGH = (
    "min_isr > headroom_rf OR target_min_isr < min_isr"
    f" OR (min_isr > {_REQUIRED_COPIES} AND {_REQUIRED_COPIES} + least_headroom <= headroom_rf)"
)
"""Is min.insync.replicas why there is no headroom? See `spark_jobs.frames.headroom.cause`."""
_BY_PLACEMENT = "CASE WHEN rack_count = 0 THEN 'configuration:broker.rack' ELSE 'placement' END"
_WITHIN, _ISR, _VALID = "min-isr-within-replication-factor", "isr-rack-spread", "min-insync-racks-valid"
_EFFECT = "CASE WHEN min_isr > rf THEN CASE WHEN caps THEN 'silent-downgrade' ELSE 'outage' END END"
_UNDER = "o_under_racks = 'FAIL'"
_ISR_CATEGORY = f"CASE WHEN {_UNDER} THEN 'under-min-rack-isr' WHEN o_isr_racks = 'FAIL' THEN 'at-min-rack-isr' END"
_BY_CATEGORY = "{'under-min-rack-isr': coalesce(under_racks, []), 'at-min-rack-isr': coalesce(at_racks, [])}"

SCALARS = (
    Verdict(
        "replication-factor",
        "o_rf",
        {"replication_factor": "rf"},
        {"replication_factor": "replication_factor"},
        f"coalesce({_IF_INFEASIBLE}, {_TOPIC})",
        "few_replicas",
    ),
    Verdict(
        "min-insync-replicas",
        "o_min_isr",
        {"min_insync_replicas": "min_isr", "effective_min_insync_replicas": "effective", "source": "min_isr_source"},
        {"min_insync_replicas": "min_insync_replicas"},
        f"coalesce({_IF_INFEASIBLE}, CASE WHEN min_isr >= min_insync_replicas THEN {_TOPIC} ELSE {_BY_MIN_ISR} END)",
        "few_in_sync",
    ),
    Verdict(
        _WITHIN,
        "o_above",
        {
            "min_insync_replicas": "min_isr",
            "replication_factor": "rf",
            "effect": _EFFECT,
            "error": "CASE WHEN min_isr > rf AND NOT caps THEN 'NOT_ENOUGH_REPLICAS' END",
            "proposed_error": "CASE WHEN min_isr > rf THEN 'INCONSISTENT_REPLICATION_FACTOR' END",
            "retriable": "CASE WHEN min_isr > rf THEN false END",
            "readings": "NULL",
        },
        {"min_insync_replicas_at_most": "rf"},
        _BY_MIN_ISR,
        "above",
        _EFFECT,
        f"CASE WHEN caps THEN {_severity(_WITHIN, 'silent-downgrade')} ELSE {_severity(_WITHIN, 'outage')} END",
    ),
    Verdict(
        "write-headroom",
        "o_headroom",
        {"write_headroom": "headroom"},
        {"write_headroom": "write_headroom"},
        f"coalesce({_IF_INFEASIBLE}, CASE WHEN {_VALUE_TOO_HIGH} THEN {_BY_MIN_ISR} ELSE {_TOPIC} END)",
        "no_headroom",
    ),
    Verdict(
        "unclean-leader-election",
        "o_unclean",
        {"unclean_leader_election": "unclean", "source": "unclean_source"},
        {"unclean_leader_election": "CASE WHEN forbids_unclean THEN false END"},
        f"CASE WHEN unclean_source = 'topic' THEN {_TOPIC} ELSE {_DEFAULT} END",
    ),
    Verdict(
        "replica-rack-spread",
        "o_racks",
        {"replica_racks": "CASE WHEN replica_racks IS NOT NULL THEN span END"},
        {"replica_racks": "replica_racks"},
        f"CASE WHEN replica_racks > rack_count THEN {_INFEASIBLE} ELSE {_BY_PLACEMENT} END",
        "few_racks",
    ),
)
RACKS = (
    Verdict(
        _ISR,
        "o_isr_racks",
        {
            "isr_racks": "CASE WHEN wanted IS NOT NULL THEN isr_racks END",
            "category": _ISR_CATEGORY,
            "partitions_by_category": f"CASE WHEN o_isr_racks = 'FAIL' THEN {_BY_CATEGORY} END",
        },
        {"min_insync_racks": "wanted"},
        f"CASE WHEN NOT ({_UNDER} AND isr_misplaced) THEN coalesce(rack_causes, 'placement')"
        f" WHEN wanted > rack_count + unnamed THEN {_INFEASIBLE} ELSE {_BY_PLACEMENT} END",
        f"CASE WHEN {_UNDER} THEN under_racks ELSE at_racks END",
        _ISR_CATEGORY,
        f"CASE WHEN {_UNDER} THEN {_severity(_ISR, 'under-min-rack-isr')} ELSE {_severity(_ISR, 'at-min-rack-isr')} END",
    ),
    Verdict(
        _VALID,
        "o_valid",
        {"problem": "problems[1]", "min_insync_racks": "min_insync_racks", "problems": "problems"},
        {"min_insync_racks": "min_insync_racks"},
        "CASE WHEN problems[1] = 'broker-without-rack' THEN 'configuration:broker.rack'"
        f" WHEN problems[1] = 'above-known-racks' THEN {_INFEASIBLE} ELSE 'placement' END",
        "CASE WHEN problems[1] = 'above-replication-factor' THEN above_rf"
        " WHEN problems[1] = 'above-replica-racks' THEN above_span END",
        severity=f"CASE WHEN problems = ['above-known-racks'] THEN {_severity(_VALID, 'above-known-racks')}"
        f" ELSE {_severity(_VALID, 'above-replication-factor')} END",
    ),
)
_SEVERITIES = " ".join(f"WHEN '{category}' THEN {_severity(HEALTH, category)}" for category in _CATEGORIES)
UNHEALTHY = Verdict(
    HEALTH,
    "'FAIL'",
    {
        "category": "category",
        "cause": "CASE WHEN whole AND category <> 'offline' THEN 'configuration' ELSE 'shrunk' END",
        "isr": "least.isr",
        "replication_factor": "least.rf",
        "min_insync_replicas": "min_isr",
        "effective_min_insync_replicas": "CASE WHEN min_isr <= least.rf OR NOT caps THEN min_isr ELSE least.rf END",
    },
    {},
    f"CASE WHEN shrunk OR category = 'offline' THEN coalesce(causes, 'replicas lagging') ELSE {_BY_MIN_ISR} END",
    "ids",
    "category",
    f"CASE WHEN category = 'at-min-isr' AND NOT shrunk THEN {_severity(HEALTH, 'at-min-isr/configuration')}"
    f" ELSE CASE category {_SEVERITIES} END END",
)
HEALTHY = Verdict(HEALTH, "'PASS'", {"category": "NULL", "cause": "NULL"}, {})

# The answer to a producer by its acks value, on the topic's worst partition. A replica may come back, but a topic doesn't get
# more replicas. A proposed error counts only if today's brokers don't answer it, or if no retry helps.
_LEADERLESS = "CASE WHEN NOT w_led THEN 'LEADER_NOT_AVAILABLE'"
_ERROR = f"{_LEADERLESS} WHEN NOT w_accepted THEN 'NOT_ENOUGH_REPLICAS' END"
_PROPOSED = (
    f"{_LEADERLESS} WHEN min_isr > w_rf THEN 'INCONSISTENT_REPLICATION_FACTOR'"
    " WHEN NOT w_accepted THEN 'NOT_ENOUGH_REPLICAS' WHEN w_few_racks THEN 'NOT_ENOUGH_RACKS' END"
)
_RETRIABLE = (
    "CASE WHEN NOT w_led THEN true WHEN NOT w_accepted THEN min_isr <= w_rf OR caps WHEN min_isr > w_rf THEN false"
    " WHEN w_few_racks THEN w_kip_span >= min_insync_racks END"
)
_VISIBLE = "w_led AND (w_accepted OR NOT caps)"


def _now(value: str, when: str = "w_accepted") -> str:
    return f"CASE WHEN {when} THEN {value} ELSE 0 END"


_ANSWER, _RETRY = f"{_LEADERLESS} END", "CASE WHEN NOT w_led THEN true END"
_INVALID = f"{_LEADERLESS} ELSE 'INVALID_REQUIRED_ACKS' END"
_LED_RACK, _ONE_RACK = _now("1", "w_led AND w_leader_racked"), _now("1", "NOT w_unracked")
_ACKS = ("0", "1", "all", "min.insync.replicas")
_BY_ACKS = {
    "accepted": ("w_led", "w_led", "w_accepted", "false"),
    "error": (_ANSWER, _ANSWER, _ERROR, _INVALID),
    "proposed_error": (_ANSWER, _ANSWER, _PROPOSED, _ERROR),
    "retriable": (_RETRY, _RETRY, _RETRIABLE, "NOT w_led"),
    "copies_now": ("0", _now("1", "w_led"), _now("w_isr_count"), _now("w_effective")),
    "racks_now": ("0", _LED_RACK, _now("w_racks_now"), _now("w_fastest")),
    "copies_worst": ("0", "1", "w_copies", "w_copies"),
    "racks_worst": ("0", _ONE_RACK, "w_racks", "w_racks"),
    "waits_for": ("0", "0", _now("w_isr_count - 1"), _now("w_effective - 1")),
    "fewer_than_all": ("", "", "", _now("w_isr_count - w_effective")),
    "visible_now": (_VISIBLE, _VISIBLE, "w_accepted", "w_accepted"),
    "survives_leader_loss": ("false", "false", "w_copies >= 2 AND NOT unclean", "false"),
}
_ENTRIES = {acks: _struct({k: v[n] for k, v in _BY_ACKS.items() if v[n]}) for n, acks in enumerate(_ACKS)}
_PAIR = "{'min.insync.replicas': greatest(acked_copies, acked_racks), 'min.insync.racks': acked_racks}"
_TODAY = {
    "NONE": "partitions - n_offline - n_under",
    "LEADER_NOT_AVAILABLE": "n_offline",
    "NOT_ENOUGH_REPLICAS": "n_under",
    "REQUEST_TIMED_OUT": "0",
    "UNKNOWN": "0",
}
_WITH_PROPOSALS = {
    "NONE": "partitions - n_offline - n_inconsistent - n_few - n_few_racks",
    "LEADER_NOT_AVAILABLE": "n_offline",
    "NOT_ENOUGH_REPLICAS": "n_few",
    "REQUEST_TIMED_OUT": "0",
    "INCONSISTENT_REPLICATION_FACTOR": "n_inconsistent",
    "NOT_ENOUGH_RACKS": "n_few_racks",
    "UNKNOWN": "0",
}
_SHORT_OF_RACKS = "coalesce(w_racks < acked_racks, false)"
_NO_ROOM = f"coalesce(least_headroom + 1 > brokers_elsewhere, false) AND {_SHORT_OF_RACKS}"
ACKED_DURABILITY = Verdict(
    "acked-durability",
    "o_acked",
    {
        "acks": _struct(_ENTRIES),
        "smallest_min_insync_replicas": "smallest_min_isr",
        "with_min_insync_racks": f"CASE WHEN racks_would_do THEN {_PAIR} END",
        "partition": "w_partition",
        "effective_min_insync_replicas": "w_effective",
        "readings": "NULL",
        "partitions_by_answer": _struct({"today": _struct(_TODAY), "proposed": _struct(_WITH_PROPOSALS)}),
    },
    {"acked_copies": "acked_copies", "acked_racks": "acked_racks"},
    f"CASE WHEN coalesce(acked_racks > rack_count, false) OR too_few_brokers OR ({_NO_ROOM}) THEN {_INFEASIBLE}"
    f" WHEN ({_SHORT_OF_RACKS} AND smallest_min_isr IS NULL)"
    f" OR (reassign AND target_acked_racks IS NOT NULL AND NOT grows) THEN {_BY_PLACEMENT}"
    f" WHEN coalesce(min_isr < acked_copies, false) OR w_copies = 0 THEN {_BY_MIN_ISR} ELSE {_TOPIC} END",
    "short",
)
CONTROLS = (*(verdict.control for verdict in (*SCALARS, *RACKS, ACKED_DURABILITY)), HEALTH)
"""The controls that the peers compute. A new control needs no edit here, and isn't compared."""


def query() -> str:
    """The verdicts of all controls. A first run has no reasons, no waivers and no earlier severities."""
    selects = [_select(verdict, "result") for verdict in (*SCALARS, *RACKS)]
    selects.append(_select(ACKED_DURABILITY, "result JOIN acks USING (tid)"))
    selects.append(_select(UNHEALTHY, "result JOIN categories USING (tid)"))
    selects.append(_select(HEALTHY, "result ANTI JOIN categories USING (tid)"))
    return f"""SELECT *, NULL::VARCHAR AS why, NULL::VARCHAR AS was, NULL::INT AS waiver, NULL::VARCHAR AS previous_severity,
      NULL::VARCHAR AS previous_outcome
      FROM ({" UNION ALL BY NAME ".join(selects)})"""


def _select(verdict: Verdict, source: str) -> str:
    return f"SELECT {', '.join(f'{sql} AS {name}' for name, sql in _columns(verdict).items())} FROM {source}"


_CHECKS = {
    "replication-factor": ("o_rf", "rf", "replication_factor"),
    "min-insync-replicas": ("o_min_isr", "effective", "min_insync_replicas"),
    _WITHIN: ("o_above", "min_isr", "rf"),
    "write-headroom": ("o_headroom", "headroom", "write_headroom"),
    "unclean-leader-election": ("o_unclean", "unclean", "0"),
    "replica-rack-spread": ("o_racks", "span", "replica_racks"),
    _ISR: ("o_under_racks", "isr_racks", "min_insync_racks"),
}


def checks() -> str:
    """The list `topic_posture.checks`, in the catalogue's order."""
    entries = []
    for control in filter(_CHECKS.get, catalogue.SCALAR_CONTROLS):
        outcome, *numbers = _CHECKS[control]
        known = f"{outcome} IN ('PASS', 'FAIL')"
        observed, required = (f"CASE WHEN {known} THEN CAST({number} AS INT) ELSE 0 END" for number in numbers)
        entries.append(_struct({"control": f"'{control}'", "observed": observed, "required": required, "known": known}))
    return f"[{', '.join(entries)}]"
