"""What the DuckDB program says should be done: shell scripts, in the order in which their lines are safe, or advice."""

from __future__ import annotations


def text(words: str) -> str:
    """Words as SQL has them."""
    return "'" + words.replace("'", "''") + "'"


CONFIGS = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter'
UNDER_REPLICATED = text('kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --under-replicated-partitions')
MOVE = 'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP"'
WAIT = text(
    "Don't change min.insync.replicas now: with eligible leader replicas on, the change would wipe the ELR and could leave "
    "partitions without a leader. Bring the brokers back first, then audit again."
)
NO_HEADROOM_WANTED = text(
    "Nothing to mend while the topic's tier asks for no headroom; if writes shall go on without one of its brokers, give it"
    " a tier with write_headroom"
)
LF = "chr(10)"


def script(*lines: str) -> str:
    """Lines, but those that are NULL."""
    return f"concat_ws({LF}, {', '.join(lines)})"


def topic_config(setting: str, value: str) -> str:
    return f"{text(f'{CONFIGS} --entity-type topics --entity-name ')} || topic || {text(f' --add-config {setting}=')} || {value}"


_DEFAULT = script(
    text(
        "# The default of every topic without a value of its own: one with fewer replicas in sync than that will refuse"
        " acks=all writes."
    ),
    text(f"{CONFIGS} --entity-type brokers --entity-default --add-config min.insync.replicas=") + " || target_min_isr",
)
_REFUSED = (
    f"CASE WHEN isr_least < target_min_isr THEN {text('# First bring back the replicas that are out of sync: with ')}"
    f" || isr_least || {text(' in sync, as now, acks=all writes would be refused.')} END"
)
_OWN = topic_config("min.insync.replicas", "target_min_isr")
_TARGET = (
    "'# Target for ' || topic || ': replication factor ' || target_rf || ', min.insync.replicas ' || target_min_isr"
    " || ' (now ' || rf || ' and ' || min_isr || ').'"
)
_WHY_LOWER = """'# ' || CASE WHEN effective <= target_min_isr THEN 'Brokers enforce no more than this already.'
  WHEN effective > rf THEN 'No acks=all write can pass as it is.'
  ELSE 'Lowers what an acks=all write waits for from ' || effective || ' replicas to ' || target_min_isr || '.' END
  || CASE WHEN target_min_isr = target_rf THEN
    ' It leaves no headroom: one replica out of sync, and acks=all writes are refused. With headroom: give the topic '
    || (target_min_isr + 1) || ' replicas.' ELSE '' END"""
_FILE = "' --reassignment-json-file plans/' || cluster || '/' || topic || '.json'"
_REASSIGN = script(
    "CASE WHEN len(dead) = 1 THEN '# Not before broker ' || dead[1] || ' is back: the tool refuses a plan that names it.'"
    " WHEN len(dead) > 1 THEN '# Not before brokers ' || listed(dead)"
    " || ' are back: the tool refuses a plan that names one of them.' END",
    text("# The plan stands in the report's folder: read it, and run this there in a quiet hour."),
    "CASE WHEN grows AND least(target_min_isr, min_isr) > rf THEN "
    + text("# Until the new replicas are in sync acks=all writes are refused: min.insync.replicas is above the ISR.")
    + " END",
    f"{text(f'{MOVE} --execute --throttle 50000000')} || {_FILE}",
    f"{text(f'{MOVE} --verify')} || {_FILE} || ' # again until it is complete, which removes the throttle'",
)
# While replicas are being added they count in the effective minimum before they are in sync, so it is raised at once only
# where those that are there suffice; and lowered last where acked racks lean on it.
_AT_ONCE = "raises AND (NOT reassign OR target_min_isr <= rf)"
_AT_LAST = "coalesce(lowers AND reassign AND target_acked_racks IS NOT NULL AND leans, false)"
_STEPS = script(
    f"CASE WHEN everywhere AND NOT reassign THEN NULL WHEN lowers OR raises OR grows THEN {_TARGET}"
    " ELSE '# ' || topic || ': some of its replicas go to other racks.' END",
    f"CASE WHEN lowers AND NOT {_AT_LAST} THEN {script(_WHY_LOWER, _OWN)} END",
    f"CASE WHEN reassign THEN {_REASSIGN} END",
    f"CASE WHEN {_AT_ONCE} THEN CASE WHEN everywhere THEN {_DEFAULT} ELSE {script(_REFUSED, _OWN)} END END",
    f"CASE WHEN (raises AND NOT ({_AT_ONCE})) OR {_AT_LAST} THEN '# When it is complete, audit again:"
    " min.insync.replicas=' || target_min_isr || ' comes next.' END",
)
# The way to a topic's target, the same for all of its findings; nothing where nobody asks for one.
REMEDIES = f"""
CREATE TEMP TABLE w AS
SELECT tid, CASE
    WHEN NOT differs AND 'FAIL' NOT IN (o_rf, o_min_isr, o_above, o_room, o_racks, o_isr_racks) THEN NULL
    WHEN too_few_brokers THEN 'Give the cluster ' || target_rf || ' brokers (it has ' || brokers
      || '), or the topic a tier that asks for less'
    WHEN (lowers OR raises) AND CASE WHEN everywhere THEN unsafe_everywhere ELSE unsafe END THEN {WAIT}
    WHEN lowers OR raises OR reassign THEN {_STEPS}
    ELSE {text("Give all brokers the same min.insync.replicas: partitions of this topic have different ones")}
  END AS remedy
FROM o JOIN g USING (tid)
"""
# All that is said of a topic comes of this.
TOPICS = """
CREATE TEMP VIEW r AS SELECT o.* EXCLUDE (smallest, would_do), g.* EXCLUDE tid, remedy
FROM o JOIN g USING (tid) JOIN w USING (tid)
"""
SET_RACKS = (
    "'Set broker.rack in server.properties of ' || CASE WHEN len(unracked) = 1 THEN 'broker ' || listed(unracked)"
    " || ' and restart it' ELSE 'brokers ' || listed(unracked) || ', and restart them one after the other' END"
)
PLACE = f"""CASE WHEN rack_count = 0 THEN {SET_RACKS}
  WHEN too_few_racks THEN 'Add racks (' || target_racks || ' are wanted, the cluster has ' || rack_count
    || '), or give the topic a tier that asks for fewer'
  WHEN target_racks > target_rf THEN 'Want fewer racks than ' || target_racks || ' of this topic, or give it as many replicas'
  ELSE remedy END"""


def bring_back(cause: str) -> str:
    """What mends a short ISR, the same words wherever the cause is the same."""
    down = f"'# Start what is down (' || {cause} || '); then this lists nothing:'"
    lags = f"'# Find why it lags (' || {cause} || '): load, disk, network, a throttle left behind. What lags:'"
    return (
        f"CASE WHEN {cause} LIKE '% down' THEN {script(down, UNDER_REPLICATED)}"
        f" WHEN {cause} LIKE '% offline' THEN 'Replace the disk and restart (' || {cause} || ')'"
        f" ELSE {script(lags, UNDER_REPLICATED)} END"
    )


def waiting(cause: str) -> str:
    """`bring_back`, a script or a sentence, and not to change min.insync.replicas where that would cost an ELR."""
    sentence = f"{cause} LIKE '% offline'"
    return (
        f"CASE WHEN unsafe AND NOT {sentence} THEN '# ' || {WAIT} || {LF} ELSE '' END || {bring_back(cause)}"
        f" || CASE WHEN unsafe AND {sentence} THEN '. ' || {WAIT} ELSE '' END"
    )
