"""The verdicts of topics as SQL over one row per topic, in the words that DuckDB and Polars share.

A program provides these columns:

- cluster, captured_at, snapshot_id, topic, tier; the tier's requirements by their names in the policy; `forbids_unclean`;
  `wanted`: its min_insync_racks if above 1
- rf, effective, span, isr_racks, headroom, headroom_rf: the worst partitions' values; min_isr, min_isr_source, unclean,
  unclean_source, caps (a leader enforces at most the replicas, since Kafka 3.7); rack_count, unnamed (1 if a broker has no rack)
- o_...: outcomes; problems; lists of partitions that fail, NULL if none does; n_...: how many partitions do
- too_few_brokers, isr_misplaced, rack_causes, reassign, grows, target_acked_racks, least_headroom, brokers_elsewhere
- w_...: of the worst partition for acks=all; smallest_min_isr that guarantees the acked racks, racks_would_do
- for partition-health, of the unhealthy partitions of one category: ids, shrunk, whole, causes; h_isr, h_rf: of the smallest ISR
"""

from __future__ import annotations

from typing import NamedTuple

from durability.catalogue import SCALAR_CONTROLS, severity_of

HEALTH = "partition-health"
CATEGORIES = {
    "offline": "offline",
    "under": "under-min-isr",
    "at_min": "at-min-isr",
    "under_replicated": "under-replicated",
}
"""KIP-427's categories by the column that marks a partition."""


class Verdict(NamedTuple):
    """An outcome (NULL: no verdict), observed and required as JSON, and what only a FAIL has."""

    control: str
    outcome: str
    observed: str
    required: str
    cause: str = "NULL"
    partitions: str = "NULL"
    category: str = "NULL"
    severity: str = ""


def columns(verdict: Verdict) -> dict[str, str]:
    """SQL by column of `verdicts`, without those that are NULL; `key`: the first 20 digits of its SHA-256 are the id."""
    fails = f"{verdict.outcome} = 'FAIL'"
    of_failure = {
        "category": verdict.category,
        "severity": verdict.severity or _severity(verdict.control),
        "cause": verdict.cause,
        "partitions": verdict.partitions,
        "change": "'new'",
        "since": "captured_at",
    }
    key = ['"cluster"', f"'\n{verdict.control}\ntopic\n'", "topic"]
    if verdict.control == HEALTH:
        key += ["'\n'", f"CASE WHEN {fails} THEN {verdict.category} ELSE '' END"]
    return {
        **{name: f'"{name}"' for name in ("cluster", "captured_at", "snapshot_id", "tier")},
        "key": f"concat({', '.join(key)})",
        "resource_type": "'topic'",
        "resource": "topic",
        "control": f"'{verdict.control}'",
        "outcome": verdict.outcome,
        "observed": verdict.observed,
        "required": verdict.required,
        **{name: f"CASE WHEN {fails} THEN {value} END" for name, value in of_failure.items() if value != "NULL"},
    }


def _json(**values: str) -> str:
    """A JSON object of numbers, booleans and what is JSON already; NULL is null."""
    pieces = []
    for place, (name, value) in enumerate(values.items()):
        comma = "," if place else "{"
        pieces += [f"""'{comma}"{name}":'""", f"coalesce(CAST({value} AS VARCHAR), 'null')"]
    return f"concat({', '.join(pieces)}, '}}')"


def _word(text: str) -> str:
    return f"""'"{text}"'"""


def _quoted(text: str) -> str:
    return f"""('"' || {text} || '"')"""


def _listed(ids: str) -> str:
    return f"concat('[', coalesce(array_to_string({ids}, ','), ''), ']')"


def _severity(control: str, category: str | None = None) -> str:
    return f"'{severity_of(control, category)}'"


_NOT_ENOUGH, _INCONSISTENT = _word("NOT_ENOUGH_REPLICAS"), _word("INCONSISTENT_REPLICATION_FACTOR")
_INFEASIBLE = "'policy:' || tier || ' infeasible'"
_IF_INFEASIBLE = f"CASE WHEN too_few_brokers THEN {_INFEASIBLE} END"
_TOPIC, _DEFAULT = "'configuration:topic'", "'configuration:cluster-default'"
_BY_MIN_ISR = f"CASE WHEN min_isr_source <> 'topic' THEN {_DEFAULT} ELSE {_TOPIC} END"
_BY_PLACEMENT = "CASE WHEN rack_count = 0 THEN 'configuration:broker.rack' ELSE 'placement' END"
_WITHIN, _ISR, _VALID = "min-isr-within-replication-factor", "isr-rack-spread", "min-insync-racks-valid"
_EFFECT = "CASE WHEN min_isr > rf THEN CASE WHEN caps THEN 'silent-downgrade' ELSE 'outage' END END"
_UNDER = "o_under_racks = 'FAIL'"
_ISR_CATEGORY = f"CASE WHEN {_UNDER} THEN 'under-min-rack-isr' WHEN o_isr_racks = 'FAIL' THEN 'at-min-rack-isr' END"
_BY_CATEGORY = _json(**{"under-min-rack-isr": _listed("under_racks"), "at-min-rack-isr": _listed("at_racks")})
_FIRST = "problems[1]"
_PROBLEMS = f"""CASE WHEN {_FIRST} IS NULL THEN '[]' ELSE concat('["', array_to_string(problems, '","'), '"]') END"""

SCALARS = (
    Verdict(
        "replication-factor",
        "o_rf",
        _json(replication_factor="rf"),
        _json(replication_factor="replication_factor"),
        f"coalesce({_IF_INFEASIBLE}, {_TOPIC})",
        "few_replicas",
    ),
    Verdict(
        "min-insync-replicas",
        "o_min_isr",
        _json(
            min_insync_replicas="min_isr", effective_min_insync_replicas="effective", source=_quoted("min_isr_source")
        ),
        _json(min_insync_replicas="min_insync_replicas"),
        f"coalesce({_IF_INFEASIBLE}, CASE WHEN min_isr >= min_insync_replicas THEN {_TOPIC} ELSE {_BY_MIN_ISR} END)",
        "few_in_sync",
    ),
    Verdict(
        _WITHIN,
        "o_above",
        _json(
            min_insync_replicas="min_isr",
            replication_factor="rf",
            effect=_quoted(_EFFECT),
            error=f"CASE WHEN min_isr > rf AND NOT caps THEN {_NOT_ENOUGH} END",
            proposed_error=f"CASE WHEN min_isr > rf THEN {_INCONSISTENT} END",
            retriable="CASE WHEN min_isr > rf THEN 'false' END",
            readings="'null'",
        ),
        _json(min_insync_replicas_at_most="rf"),
        _BY_MIN_ISR,
        "above",
        _EFFECT,
        f"CASE WHEN caps THEN {_severity(_WITHIN, 'silent-downgrade')} ELSE {_severity(_WITHIN, 'outage')} END",
    ),
    Verdict(
        "write-headroom",
        "o_headroom",
        _json(write_headroom="headroom"),
        _json(write_headroom="write_headroom"),
        f"coalesce({_IF_INFEASIBLE}, CASE WHEN min_isr > headroom_rf THEN {_BY_MIN_ISR} ELSE {_TOPIC} END)",
        "no_headroom",
    ),
    Verdict(
        "unclean-leader-election",
        "o_unclean",
        _json(unclean_leader_election="unclean", source=_quoted("unclean_source")),
        _json(unclean_leader_election="CASE WHEN forbids_unclean THEN 'false' END"),
        f"CASE WHEN unclean_source = 'topic' THEN {_TOPIC} ELSE {_DEFAULT} END",
    ),
    Verdict(
        "replica-rack-spread",
        "o_racks",
        _json(replica_racks="CASE WHEN replica_racks IS NOT NULL THEN span END"),
        _json(replica_racks="replica_racks"),
        f"CASE WHEN replica_racks > rack_count THEN {_INFEASIBLE} ELSE {_BY_PLACEMENT} END",
        "few_racks",
    ),
)
RACKS = (
    Verdict(
        _ISR,
        "o_isr_racks",
        _json(
            isr_racks="CASE WHEN wanted IS NOT NULL THEN isr_racks END",
            category=_quoted(_ISR_CATEGORY),
            partitions_by_category=f"CASE WHEN o_isr_racks = 'FAIL' THEN {_BY_CATEGORY} END",
        ),
        _json(min_insync_racks="wanted"),
        f"CASE WHEN NOT ({_UNDER} AND isr_misplaced) THEN coalesce(rack_causes, 'placement')"
        f" WHEN wanted > rack_count + unnamed THEN {_INFEASIBLE} ELSE {_BY_PLACEMENT} END",
        f"CASE WHEN {_UNDER} THEN under_racks ELSE at_racks END",
        _ISR_CATEGORY,
        f"CASE WHEN {_UNDER} THEN {_severity(_ISR, 'under-min-rack-isr')} ELSE {_severity(_ISR, 'at-min-rack-isr')} END",
    ),
    Verdict(
        _VALID,
        "o_valid",
        _json(problem=_quoted(_FIRST), min_insync_racks="min_insync_racks", problems=_PROBLEMS),
        _json(min_insync_racks="min_insync_racks"),
        f"CASE WHEN {_FIRST} = 'broker-without-rack' THEN 'configuration:broker.rack'"
        f" WHEN {_FIRST} = 'above-known-racks' THEN {_INFEASIBLE} ELSE 'placement' END",
        f"CASE WHEN {_FIRST} = 'above-replication-factor' THEN above_rf"
        f" WHEN {_FIRST} = 'above-replica-racks' THEN above_span END",
        severity=f"CASE WHEN {_FIRST} = 'above-known-racks' AND array_length(problems) = 1"
        f" THEN {_severity(_VALID, 'above-known-racks')} ELSE {_severity(_VALID, 'above-replication-factor')} END",
    ),
)


def health(category: str) -> Verdict:
    """partition-health of topics with unhealthy partitions of a category."""
    offline, severity = category == "offline", _severity(HEALTH, category)
    shrunk = "true" if offline else "shrunk"
    if category == "at-min-isr":
        severity = f"CASE WHEN shrunk THEN {severity} ELSE {_severity(HEALTH, 'at-min-isr/configuration')} END"
    code = _word("shrunk")
    if not offline:
        code = f"CASE WHEN whole THEN {_word('configuration')} ELSE {code} END"
    observed = _json(
        category=_word(category),
        cause=code,
        isr="h_isr",
        replication_factor="h_rf",
        min_insync_replicas="min_isr",
        effective_min_insync_replicas="CASE WHEN min_isr <= h_rf OR NOT caps THEN min_isr ELSE h_rf END",
    )
    cause = f"CASE WHEN {shrunk} THEN coalesce(causes, 'replicas lagging') ELSE {_BY_MIN_ISR} END"
    return Verdict(HEALTH, "'FAIL'", observed, "'{}'", cause, "ids", f"'{category}'", severity)


HEALTHY = Verdict(HEALTH, "'PASS'", """'{"category":null,"cause":null}'""", "'{}'")

# What a producer is answered by its acks value, on the topic's worst partition. A replica may come back; more replicas than
# the topic has never will. Of the proposed errors only those count that brokers don't answer today, or that no retry helps.
_LEADERLESS = f"CASE WHEN NOT w_led THEN {_word('LEADER_NOT_AVAILABLE')}"
_ERROR = f"{_LEADERLESS} WHEN NOT w_accepted THEN {_NOT_ENOUGH} END"
_PROPOSED = (
    f"{_LEADERLESS} WHEN min_isr > w_rf THEN {_INCONSISTENT} WHEN NOT w_accepted THEN {_NOT_ENOUGH}"
    f" WHEN w_few_racks THEN {_word('NOT_ENOUGH_RACKS')} END"
)
_RETRIABLE = (
    "CASE WHEN NOT w_led THEN true WHEN NOT w_accepted THEN min_isr <= w_rf OR caps WHEN min_isr > w_rf THEN false"
    " WHEN w_few_racks THEN w_kip_span >= min_insync_racks END"
)
_VISIBLE = "w_led AND (w_accepted OR NOT caps)"


def _now(value: str, when: str = "w_accepted") -> str:
    return f"CASE WHEN {when} THEN {value} ELSE 0 END"


_ANSWER, _NO, _RETRY = f"{_LEADERLESS} END", "'false'", "CASE WHEN NOT w_led THEN true END"
_INVALID = f"{_LEADERLESS} ELSE {_word('INVALID_REQUIRED_ACKS')} END"
_LED_RACK, _ONE_RACK = _now("1", "w_led AND w_leader_racked"), _now("1", "NOT w_unracked")
_ACKS = ("0", "1", "all", "min.insync.replicas")
_BY_ACKS = {
    "accepted": ("w_led", "w_led", "w_accepted", _NO),
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
    "survives_leader_loss": (_NO, _NO, "w_copies >= 2 AND NOT unclean", _NO),
}
_ENTRIES = {acks: _json(**{k: v[n] for k, v in _BY_ACKS.items() if v[n]}) for n, acks in enumerate(_ACKS)}
_PAIR = _json(**{"min.insync.replicas": "greatest(acked_copies, acked_racks)", "min.insync.racks": "acked_racks"})
_TODAY = _json(
    NONE="partitions - n_offline - n_under",
    LEADER_NOT_AVAILABLE="n_offline",
    NOT_ENOUGH_REPLICAS="n_under",
    UNKNOWN="0",
)
_WITH_PROPOSALS = _json(
    NONE="partitions - n_offline - n_inconsistent - n_few - n_few_racks",
    LEADER_NOT_AVAILABLE="n_offline",
    NOT_ENOUGH_REPLICAS="n_few",
    INCONSISTENT_REPLICATION_FACTOR="n_inconsistent",
    NOT_ENOUGH_RACKS="n_few_racks",
    UNKNOWN="0",
)
_SHORT_OF_RACKS = "coalesce(w_racks < acked_racks, false)"
_NO_ROOM = f"coalesce(least_headroom + 1 > brokers_elsewhere, false) AND {_SHORT_OF_RACKS}"
ACKED_DURABILITY = Verdict(
    "acked-durability",
    "o_acked",
    _json(
        acks=_json(**_ENTRIES),
        smallest_min_insync_replicas="smallest_min_isr",
        with_min_insync_racks=f"CASE WHEN racks_would_do THEN {_PAIR} END",
        partition="w_partition",
        effective_min_insync_replicas="w_effective",
        readings="'null'",
        partitions_by_answer=_json(today=_TODAY, proposed=_WITH_PROPOSALS),
    ),
    _json(acked_copies="acked_copies", acked_racks="acked_racks"),
    f"CASE WHEN coalesce(acked_racks > rack_count, false) OR too_few_brokers OR ({_NO_ROOM}) THEN {_INFEASIBLE}"
    f" WHEN ({_SHORT_OF_RACKS} AND smallest_min_isr IS NULL)"
    f" OR (reassign AND target_acked_racks IS NOT NULL AND NOT grows) THEN {_BY_PLACEMENT}"
    f" WHEN coalesce(min_isr < acked_copies, false) OR w_copies = 0 THEN {_BY_MIN_ISR} ELSE {_TOPIC} END",
    "short",
)
OF_TOPICS = (*SCALARS, *RACKS, ACKED_DURABILITY)
CONTROLS = (*(verdict.control for verdict in OF_TOPICS), HEALTH)
"""The controls that the peers judge. A control that is added later needs no edit here, and isn't compared."""

_CHECKS = {
    "replication-factor": ("o_rf", "rf", "replication_factor"),
    "min-insync-replicas": ("o_min_isr", "effective", "min_insync_replicas"),
    _WITHIN: ("o_above", "min_isr", "rf"),
    "write-headroom": ("o_headroom", "headroom", "write_headroom"),
    "unclean-leader-election": ("o_unclean", "unclean", "0"),
    "replica-rack-spread": ("o_racks", "span", "replica_racks"),
    _ISR: ("o_under_racks", "isr_racks", "min_insync_racks"),
}


def checks() -> list[dict[str, str]]:
    """The entries of `topic_posture.checks`, in the catalogue's order: SQL by field."""
    entries = []
    for control in filter(_CHECKS.get, SCALAR_CONTROLS):
        outcome, observed, required = _CHECKS[control]
        known = f"{outcome} IN ('PASS', 'FAIL')"
        numbers = {"observed": observed, "required": required}
        sql = {name: f"CASE WHEN {known} THEN CAST({value} AS INT) ELSE 0 END" for name, value in numbers.items()}
        entries.append({"control": f"'{control}'", **sql, "known": known})
    return entries


# `partition_health.cli_differs`: kafka-topics compares min.insync.replicas as configured, and counts leaderless partitions.
CLI_DIFFERS = """NULLIF(CONCAT_WS(';', CASE WHEN offline THEN 'leaderless' END,
  CASE WHEN NOT offline AND isr_count >= effective AND isr_count < min_isr
    THEN CONCAT_WS(':', 'under', CAST(min_isr AS VARCHAR), CAST(effective AS VARCHAR)) END,
  CASE WHEN NOT offline AND min_isr <> effective AND isr_count = effective THEN 'not-at' END), '')"""
