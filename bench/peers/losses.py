"""`python -m bench.peers.losses inputs.json folder`: what the loss of each broker and rack breaks, computed with DuckDB.

It writes rows of `failure_costs` and `loss_sets`. Sources: KIP-966, and ReplicationControlManager of Kafka 4.0. Like `evaluate`,
it judges partitions whose replicas are in equal states once. It relies on the generated fleets: everything is known, nothing is
being reassigned, no broker is a voter, and no single loss costs the quorum. An ISR with a leader has live members only. Of a
cluster's brokers all have a rack, or none has.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from bench.peers import program
from bench.peers.program import Files
from bench.placements import WIDEST

TABLES = {"costs": "failure_costs", "sets": "loss_sets"}
"""The lake's table, by the file in which this program writes its rows."""
CLASSES = {
    "now_data": "(sure <> 0 AND sure & ~lost = 0)"
    " OR (unclean AND sure & live <> 0 AND sure & live & ~lost = 0 AND live & ~sure <> 0)",
    "now_availability": "led AND NOT electable",
    "now_writes": "accepted AND NOT (electable AND in_sync >= min_isr)",
    "structural_data": "whole & ~lost = 0",
    "structural_availability": "whole & ~lost = 0",
    "structural_writes": "rf >= min_isr AND bit_count(whole & ~lost) < min_isr",
    "worst_data": "bit_count(lost) >= min_isr",
    "worst_availability": "bit_count(lost) >= min_isr AND NOT unclean",
}
"""Does a loss break it? Sets of replicas are numbers with a bit per replica."""
IN_SETS = tuple(name for name in CLASSES if not name.startswith("worst_"))
ALREADY = {"now_data": "sure = 0", "now_availability": "NOT led", "now_writes": "NOT accepted"}
ALREADY["structural_writes"] = "rf < min_isr"
_OF_SETS = sum(1 << list(CLASSES).index(name) for name in IN_SETS)


def _bits(tests: dict[str, str]) -> str:
    return " + ".join(
        f"CASE WHEN {test} THEN {1 << list(CLASSES).index(name)} ELSE 0 END" for name, test in tests.items()
    )


def _replicas(test: str) -> str:
    """A number with the bits of the replicas that pass the test."""
    tests = (test.format(x=f"replicas[{i}]") for i in range(1, WIDEST + 1))
    return " + ".join(f"CASE WHEN {each} THEN {1 << place} ELSE 0 END" for place, each in enumerate(tests))


# A pattern packs what decides on a loss: the number of replicas, whether one leads, which are live, in sync and eligible, the
# topic's settings, and for each replica the number of the first one in its rack, 0 without a rack.
_FIRST = "CASE WHEN coalesce(racks[{i}], 1) = 1 THEN 0 ELSE list_position(racks, racks[{i}])::BIGINT << {bit} END"
PLACED = f"""
CREATE TEMP TABLE placed AS
WITH read AS (
  SELECT tid, base, leader, replicas, isr, elr, elr_on, topic_facts.caps, elects_unclean, topic_facts.min_isr,
    list_transform(replicas, lambda b: getvariable('bit')[topic_facts.base + b]) AS racks
  FROM partitions JOIN topic_facts USING (cluster, topic) JOIN cluster_facts USING (cluster, base)
)
SELECT tid, leader, replicas, len(replicas) + 8 * coalesce(getvariable('live')[base + leader], false)::INT
    + (({_replicas("coalesce(getvariable('live')[base + {x}], false)")})::BIGINT << 4)
    + (({_replicas("list_contains(isr, {x})")})::BIGINT << 9) + (({_replicas("list_contains(elr, {x})")})::BIGINT << 14)
    + (elr_on::BIGINT << 19) + (caps::BIGINT << 20) + (elects_unclean::BIGINT << 21) + (min_isr::BIGINT << 22)
    + {" + ".join(_FIRST.format(i=i + 1, bit=30 + 3 * i) for i in range(WIDEST))} AS pattern
FROM read
"""
COUNTED = "CREATE TEMP TABLE counted AS SELECT tid, pattern, count(*) AS n FROM placed GROUP BY ALL"
JUDGED = f"""
CREATE TEMP TABLE judged AS
WITH unpacked AS (
  SELECT pattern, (pattern & 7)::INT AS rf, pattern & 8 <> 0 AS led, (pattern >> 4 & 31)::INT AS live,
    (pattern >> 9 & 31)::INT AS isr, (pattern >> 14 & 31)::INT AS elr, pattern >> 19 & 1 = 1 AS elr_on,
    pattern >> 20 & 1 = 1 AS caps, pattern >> 21 & 1 = 1 AS unclean, (pattern >> 22 & 255)::INT AS configured,
    (1 << rf) - 1 AS whole, CASE WHEN caps THEN least(configured, rf) ELSE configured END AS min_isr,
    CASE WHEN elr_on THEN isr | elr ELSE isr END AS sure, led AND bit_count(isr) >= min_isr AS accepted
  FROM (SELECT DISTINCT pattern FROM counted)
), after AS (
  SELECT *, isr & live & ~lost AS stays, greatest(bit_count(isr & live & ~lost), 1) AS in_sync,
    stays <> 0 OR (elr_on AND elr & live & ~lost <> 0) OR (unclean AND live & ~lost <> 0) AS electable
  FROM unpacked, (SELECT unnest(range(1, {1 << WIDEST}))::INT AS lost) WHERE lost <= whole
)
SELECT pattern, lost, rf, {_bits(CLASSES)} AS breaks, {_bits(ALREADY)} AS already FROM after
"""
# The sets of replicas that are whole racks.
RACKS = f"""
CREATE TEMP TABLE racks AS
WITH firsts AS (
  SELECT pattern, lost, rf, breaks,
    list_transform(range(0, {WIDEST}), lambda i: (pattern >> (30 + 3 * i)::INT) & 7) AS digits
  FROM judged
), members AS (
  SELECT *, list_filter(range(1, rf + 1), lambda i: lost >> (i - 1)::INT & 1 = 1) AS inside,
    list_filter(range(1, rf + 1), lambda i: lost >> (i - 1)::INT & 1 = 0) AS outside
  FROM firsts
)
SELECT pattern, lost, breaks, list_filter(inside, lambda i: digits[i] = i) AS places
FROM members WHERE NOT list_has_any(list_transform(inside, lambda i: digits[i]), list_transform(outside, lambda i: digits[i]))
  AND NOT list_contains(list_transform(inside, lambda i: digits[i]), 0)
"""
# By topic, pattern, number of the replica and broker.
BY_PLACE = """
CREATE TEMP TABLE by_place AS
SELECT tid, pattern, place, id, count(*) AS n, count(*) FILTER (leader = id) AS led
FROM (SELECT tid, pattern, leader, unnest(replicas) AS id, unnest(range(1, len(replicas) + 1))::INT AS place FROM placed)
GROUP BY ALL
"""
OF_BROKERS = """
SELECT tid, 'broker' AS kind, id::VARCHAR AS name, n, breaks FROM by_place JOIN judged
ON by_place.pattern = judged.pattern AND judged.lost = 1 << (place - 1)
"""
OF_RACKS = """
SELECT tid, 'rack' AS kind, rack AS name, n, breaks FROM by_place
JOIN (SELECT pattern, places[1]::INT AS place, breaks FROM racks WHERE len(places) = 1) r USING (pattern, place)
JOIN topic_facts USING (tid) JOIN broker_facts ON broker_facts.cluster = topic_facts.cluster AND broker = id
"""
_COUNTS = ", ".join(
    f"sum(CASE WHEN breaks & {1 << n} <> 0 THEN n ELSE 0 END) AS {name}" for n, name in enumerate(CLASSES)
)
_PAIRS = ", ".join(
    f"{{partitions: coalesce(sum({name}), 0)::BIGINT, topics: (count(*) FILTER ({name} > 0))::BIGINT}} AS {name}"
    for name in CLASSES
)
HELD = """
SELECT cluster, id, sum(n) AS held, sum(led) AS led, sum(n) FILTER (first) AS first FROM (
  SELECT tid, id, n, led, pattern >> (30 + 3 * (place - 1)) & 7 = place AS first FROM by_place
) JOIN topic_facts USING (tid) GROUP BY cluster, id
"""
COSTS = f"""
WITH each AS ({OF_BROKERS} UNION ALL {OF_RACKS}),
per_topic AS (SELECT tid, kind, name, {_COUNTS} FROM each GROUP BY ALL),
broken AS (SELECT cluster, kind, name, {_PAIRS} FROM per_topic JOIN topic_facts USING (tid) GROUP BY ALL),
held AS ({HELD}),
names AS (
  SELECT broker_facts.cluster, 'broker' AS kind, broker::VARCHAR AS name, coalesce(held, 0) AS held, coalesce(led, 0) AS led
  FROM broker_facts LEFT JOIN held ON held.cluster = broker_facts.cluster AND broker = id
  UNION ALL
  SELECT broker_facts.cluster, 'rack', rack, sum(coalesce(first, 0)), sum(coalesce(led, 0))
  FROM broker_facts LEFT JOIN held ON held.cluster = broker_facts.cluster AND broker = id WHERE rack IS NOT NULL GROUP BY ALL
  UNION ALL
  SELECT DISTINCT cluster, 'rack', rack, 0, 0 FROM controllers
  WHERE role = 'voter' AND rack <> '' AND cluster IN (SELECT cluster FROM broker_facts WHERE rack IS NOT NULL)
    AND (cluster, rack) NOT IN (SELECT (cluster, rack) FROM broker_facts WHERE rack IS NOT NULL)
),
already AS (
  SELECT cluster, 'already' AS kind, NULL AS name, {_PAIRS}
  FROM (SELECT tid, {_COUNTS} FROM counted JOIN (SELECT DISTINCT pattern, already AS breaks FROM judged) USING (pattern)
    GROUP BY tid) JOIN topic_facts USING (tid) GROUP BY cluster
)
SELECT cluster, kind, name, held::BIGINT AS held, led::BIGINT AS led, 'kept' AS quorum, 0::BIGINT AS unknown,
  {", ".join(f"coalesce({name}, {{partitions: 0::BIGINT, topics: 0::BIGINT}}) AS {name}" for name in CLASSES)}
FROM names LEFT JOIN broken USING (cluster, kind, name)
UNION ALL BY NAME SELECT *, 0::BIGINT AS unknown FROM already
"""
_MINIMAL = """
SELECT one.pattern, '{kind}' AS kind, any_value({places}) AS places,
  any_value(one.breaks) & ~coalesce(bit_or(part.breaks), 0) & {of_sets} AS breaks
FROM {table} one LEFT JOIN {table} part
  ON part.pattern = one.pattern AND part.lost <> one.lost AND part.lost & one.lost = part.lost
GROUP BY one.pattern, one.lost
"""
_PLACES = f"list_filter(range(1, {WIDEST} + 1), lambda i: one.lost >> (i - 1)::INT & 1 = 1)"
_SUMS = ", ".join(
    f"sum(CASE WHEN breaks & {1 << list(CLASSES).index(name)} <> 0 THEN n ELSE 0 END)::BIGINT AS {name}"
    for name in IN_SETS
)
# A broker's number is its id, a rack's is its place in the cluster's racks.
SETS = f"""
WITH sets AS (
  SELECT * FROM (
    {_MINIMAL.format(kind="broker", places=_PLACES, of_sets=_OF_SETS, table="judged")}
    UNION ALL
    {_MINIMAL.format(kind="rack", places="one.places", of_sets=_OF_SETS, table="racks")}
  ) WHERE breaks <> 0
), alike AS (
  SELECT cluster, base, replicas, pattern, count(*) AS n FROM placed JOIN topic_facts USING (tid) GROUP BY ALL
), found AS (
  SELECT cluster, kind, n, breaks, list_sort(CASE kind WHEN 'broker' THEN list_transform(places, lambda p: replicas[p])
    ELSE list_transform(places, lambda p: bit_count(getvariable('bit')[base + replicas[p]] - 1)::INT) END) AS numbers
  FROM alike JOIN sets USING (pattern)
), sums AS (SELECT cluster, kind, numbers, {_SUMS} FROM found GROUP BY cluster, kind, numbers)
SELECT sums.* EXCLUDE numbers, CASE kind WHEN 'broker' THEN list_transform(numbers, lambda n: n::VARCHAR)
  ELSE list_transform(numbers, lambda n: racks[n]) END AS members
FROM sums JOIN cluster_facts USING (cluster)
"""


def main(inputs: Files, folder: Path) -> None:
    """Write costs and sets.parquet. inputs: Parquet files by table."""
    with program.opened(inputs, folder) as db:
        program.set_lists(db, ("bit", "live"))
        for statement in (PLACED, COUNTED, JUDGED, RACKS, BY_PLACE):
            db.execute(statement)
        program.write(db, {"costs": COSTS, "sets": SETS}, folder)


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
