"""Losses of any one broker and rack, against predictions of each of these losses by itself."""

import random
from collections import Counter
from itertools import combinations

import pytest

from durability.lake.loss_tables import VIEWS
from durability.plan import lose
from spark_jobs.assemble.failure_costs import IN_SETS
from spark_jobs.frames.loss_bits import BITS
from tests.support import controller
from tests.support.losses import lake_of, predicted
from tests.support.topology import document
from tests.unit.spark_jobs.assemble.test_loss_outcomes import drawn

NONE, OFFLINE = "NONE", "LEADER_NOT_AVAILABLE"


@pytest.fixture(scope="module")
def losses(spark):
    """Makes `Losses` of documents, with the plan's clusters and topics by name."""
    from spark_jobs.assemble import failure_costs

    def made(documents):
        read, plan = lake_of(spark, documents)
        return failure_costs.of_plan(read, plan)

    return made


def moved(seed):
    """A cluster that reassigns partitions, with brokers and a voter of unknown rack, and one topic of ten replicas."""
    draw = random.Random(seed)
    lines, unclean = [], {}
    for n in range(30):
        replicas = draw.sample(range(1, 7), draw.randint(1, 5))
        adding = replicas[-1:] if n % 3 == 0 and len(replicas) > 1 else []
        removing = replicas[:1] if adding and len(replicas) > 2 and draw.random() < 0.7 else []
        isr = draw.sample(replicas, draw.randint(1, len(replicas)))
        unclean[f"t{n}"] = draw.random() < 0.3
        cells = [",".join(map(str, ids)) or "-" for ids in (replicas, isr, adding, removing)]
        lines.append(f"t{n} {draw.choice(isr)} {' '.join(cells)} {draw.randint(1, 3)}")
    lines.append("wide 1 1,2,3,4,5,6,7,8,9,10 1,2,3,10 - - 3")
    more = " ".join(f"{b}:az2" for b in range(7, 11))
    made = document(
        "topic leader replicas isr adding removing min\n" + "\n".join(lines),
        brokers=f"1:az1 2:az1 3:az2 4:az3 5 6 {more}",
        quorum=["101:az1 102 103:az2", "1:az1 3:az2 102:az2", "101:az1 102:az1 103"][seed % 3],
    )
    for topic in made["topics"]:
        topic["configs"]["unclean.leader.election.enable"] = str(unclean.get(topic["name"], False)).lower()
        topic["config_sources"]["unclean.leader.election.enable"] = "topic"
    return made


def of_partitions(found):
    """tid, partition, losses and elsewhere of each partition: of its pattern, or its own."""
    from pyspark.sql import functions as F

    columns = ("tid", "partition", "losses", "elsewhere")
    named = found._ids.join(found._patterns, "pattern").withColumn("partition", F.explode("ids")).select(*columns)
    rows = named if found._alone is None else named.unionByName(found._alone.select(*columns))
    return rows.collect()


def conditions(row, nothing):
    """By view and class: does the loss break the partition that holds without it? None: unknown."""

    def both(one, other):
        return False if one is False or other is False else None if one is None or other is None else True

    def either(one, other):
        return True if one or other else None if one is None or other is None else False

    def refused(answer, bad):
        return None if answer is None else bad(answer)

    def newly(view, before, bad):
        held = refused(before, lambda a: not bad(a))
        return both(refused(row[view], bad), held)

    offline, refuses = (lambda a: a == OFFLINE), (lambda a: a != NONE)
    return {
        "now_data": either(row["at_risk"], row["deleted"]),
        "now_availability": newly("now", nothing["before"], offline),
        "now_writes": newly("now", nothing["before"], refuses),
        "structural_data": row["at_risk_structural"],
        "structural_availability": newly("structural", nothing["structural"], offline),
        "structural_writes": newly("structural", nothing["structural"], refuses),
        "worst_data": row["data_worst"],
        "worst_availability": row["availability_worst"],
    }


def test_each_loss_breaks_what_its_own_prediction_says(spark, losses):
    documents = []
    for seed in range(4):
        made = drawn(seed, elr_on=seed % 2 == 0)[0] if seed < 2 else moved(seed)
        made["cluster"]["id"] = f"c{seed}"
        documents.append(made)
    alone, lost = [], {}
    for made in documents:
        brokers = [{"broker": b["id"], "rack": b["rack"], "live": b["live"]} for b in made["brokers"]]
        voters = made["cluster"]["quorum"]["voters"]
        controllers = [{"controller": v["id"], "rack": v.get("rack"), "role": "voter"} for v in voters]
        items = ["", *(f"broker:{b['broker']}" for b in brokers)]
        items += [f"rack:{rack}" for rack in sorted({b["rack"] for b in brokers if b["rack"]})]
        for item in items:
            loss = lose.resolve(lose.parse(item), brokers, controllers) if item else None
            least = {kind: getattr(loss, kind, ()) for kind in ("brokers", "controllers")}
            most = {kind: (*ids, *(loss.unplaced[kind] if loss else ())) for kind, ids in least.items()}
            for reading, of in (("least", least), ("most", most)):
                name = f"{made['cluster']['id']} {reading} {item}"
                alone.append(made | {"cluster": made["cluster"] | {"id": name}})
                lost[name] = {kind: sorted(set(ids)) for kind, ids in of.items()}
    rows = predicted(spark, alone, lost)
    found = losses(documents)
    racks = {r.cluster: r.racks for r in found.clusters.select("cluster", "racks").collect()}
    topics = {r.tid: (r.cluster, r.topic) for r in found.topics.collect()}
    broken = {}
    judged = of_partitions(found)
    replicas = {
        (m["cluster"]["id"], t["name"], p["partition"]): p["replicas"]
        for m in documents
        for t in m["topics"]
        for p in t["partitions"]
    }
    assert len(judged) == len(replicas)
    for row in judged:
        for one in row.losses:
            cluster, topic = topics[row.tid]
            id = replicas[cluster, topic, row.partition][one.place - 1]
            rack = next(
                b["rack"] for m in documents if m["cluster"]["id"] == cluster for b in m["brokers"] if b["id"] == id
            )
            item = f"rack:{rack}" if one.rack else f"broker:{id}"
            broken[cluster, item, topic, row.partition] = one.breaks, one.unsure
    elsewhere = {(*topics[r.tid], r.partition): r.elsewhere for r in judged}
    wrong, compared, unsure = [], 0, 0
    for (name, topic, partition), row in rows.items():
        cluster, reading, item = name.split(" ", 2)
        if not item or reading == "most":
            continue
        nothing = rows[f"{cluster} least ", topic, partition]
        least = conditions(row, nothing)
        most = conditions(rows[f"{cluster} most {item}", topic, partition], nothing)
        breaks = sum(BITS[n] for n, holds in least.items() if holds)
        may = sum(BITS[n] for n in BITS if not least[n] and (least[n] is None or most[n] is not False))
        seen = broken.get((cluster, item, topic, partition), (0, 0))
        if item.startswith("rack:") and not breaks and may and seen == (0, 0):
            # This counts what any rack without a replica of the partition may break.
            seen = 0, elsewhere.get((cluster, topic, partition), 0) & may
        compared, unsure = compared + 1, unsure + bool(may)
        if seen != (breaks, may):
            wrong.append((name, topic, seen, (breaks, may), least, most))
    assert not wrong, f"{len(wrong)} of {compared} wrong, for instance\n" + "\n".join(map(repr, wrong[:5]))
    assert compared > 1000 and unsure > 50 and racks
    assert len(VIEWS) == 3


def broken_by_any(p, m, elr_on, unclean, live):
    """By class: which sets of replicas newly break the partition, by a played controller, the quorum alive."""
    elr = p["elr"] if elr_on else []
    placed = controller.Played(
        *(p["replicas"], p["leader"], p["isr"], elr, m, elr_on, unclean), live=set(live), full={*p["isr"], *elr}
    )
    whole = controller.Played(
        *(p["replicas"], p["replicas"][0], list(p["replicas"]), [], m, elr_on, unclean), live={1, 2, 3, 4, 5}
    )
    before = "LEADER_NOT_AVAILABLE" if p["leader"] is None else placed.answer()
    found = {}
    for size in range(1, len(p["replicas"]) + 1):
        for lost in combinations(sorted(p["replicas"]), size):
            [(now, _)], deleted = controller.after(placed, lost)
            [(structural, _)], _ = controller.after(whole, lost)
            sure = {*p["isr"], *elr}
            found[lost] = {
                "now_data": (bool(sure) and sure <= set(lost)) or deleted,
                "now_availability": now == OFFLINE != before,
                "now_writes": now != NONE == before,
                "structural_data": set(p["replicas"]) <= set(lost),
                "structural_availability": structural == OFFLINE,
                "structural_writes": structural != NONE,
            }
    return found


def smallest(found, name):
    bad = [set(lost) for lost, classes in found.items() if classes[name]]
    return [tuple(sorted(one)) for one in bad if not any(other < one for other in bad)]


def test_the_smallest_sets_are_those_of_every_set(losses):
    """A partition is broken already if its ISR has dead brokers alone, which the played controller hasn't fenced yet."""
    documents, expected = [], Counter()
    for seed in range(4):
        elr_on = seed % 2 == 0
        made, down = drawn(seed, elr_on)
        made["cluster"]["id"] = f"c{seed}"
        documents.append(made)
        racks = {b["id"]: b["rack"] for b in made["brokers"]}
        for topic in made["topics"]:
            [p] = topic["partitions"]
            m = min(int(topic["configs"]["min.insync.replicas"]), len(p["replicas"]))
            unclean = topic["configs"]["unclean.leader.election.enable"] == "true"
            found = broken_by_any(p, m, elr_on, unclean, {1, 2, 3, 4, 5} - down)
            # A set of racks has all replicas there.
            of_racks = {}
            for lost, classes in found.items():
                named = {racks[b] for b in lost}
                if {b for b in p["replicas"] if racks[b] in named} == set(lost):
                    of_racks[tuple(sorted(named))] = classes
            for name in next(iter(found.values())):
                for kind, sets in (("broker", found), ("rack", of_racks)):
                    for one in smallest(sets, name):
                        expected[f"c{seed}", kind, tuple(map(str, one)), name] += 1
    seen = {
        (row.cluster, row.kind, tuple(row.members), name): row[name]
        for row in losses(documents).sets().collect()
        for name in IN_SETS
        if row[name]
    }
    assert seen == dict(expected)
    assert {len(members) for _, kind, members, _ in seen if kind == "broker"} == {1, 2, 3, 4}


def test_sets_of_large_ids_and_of_many_nodes(losses):
    """Sets of up to three small ids are counted as numbers, all others as arrays."""
    table = """
        topic  replicas         isr              min
        small  1,2,3            1,2,3            2
        large  9000000,2,3      9000000,2,3      2
        many   1,2,3,4,9000000  1,2,3,4,9000000  1
    """
    brokers = "1:az1 2:az2 3:az3 4:az4 9000000:az5"
    rows = [row for row in losses([document(table, brokers=brokers)]).sets().collect() if row.structural_writes]
    seen = {(row.kind, tuple(row.members)): row.structural_writes for row in rows}
    every = ("1", "2", "3", "4", "9000000")
    of_three = {("1", "2"): 1, ("1", "3"): 1, ("2", "3"): 2, ("2", "9000000"): 1, ("3", "9000000"): 1}
    of_racks = {tuple(f"az{every.index(id) + 1}" for id in ids): n for ids, n in of_three.items()}
    assert seen == {
        **{("broker", ids): n for ids, n in of_three.items()},
        **{("rack", racks): n for racks, n in of_racks.items()},
        **{("broker", every): 1, ("rack", ("az1", "az2", "az3", "az4", "az5")): 1},
    }


def test_what_a_loss_costs_is_the_sum_over_topics(losses):
    table = """
        topic    partition leader replicas isr   min
        orders   0         1      1,2,3    1,2,3 2
        orders   1         2      2,3,1    2,3   2
        payments 0         1      1,3      1,3   2
        scratch  0         4      4        4     1
    """
    found = losses([document(table, brokers="1:az1 2:az2 3:az3 4:az1", quorum="101:az1 102:az1 103:az3")])
    costs = {(r.kind, r.name): r for r in found.costs().collect()}
    assert set(costs) == {
        *(("broker", str(b)) for b in range(1, 5)),
        *(("rack", f"az{r}") for r in (1, 2, 3)),
        ("already", None),
    }

    def numbers(kind, name):
        row = costs[kind, name]
        return {n: tuple(row[n]) for n in BITS if tuple(row[n]) != (0, 0)}

    assert (costs["broker", "1"].held, costs["broker", "1"].led, costs["broker", "1"].quorum) == (3, 2, "kept")
    assert (costs["rack", "az1"].held, costs["rack", "az1"].led, costs["rack", "az1"].quorum) == (4, 3, "lost")
    assert numbers("broker", "2") == {"now_writes": (1, 1)}
    assert numbers("broker", "3") == {"now_writes": (2, 2), "structural_writes": (1, 1)}
    assert numbers("broker", "4")["now_data"] == numbers("broker", "4")["worst_availability"] == (1, 1)
    # Without a quorum, the leader waits for the lost member of the ISR.
    assert numbers("rack", "az1")["now_writes"] == (3, 3)
    assert numbers("rack", "az1")["now_availability"] == (3, 3)


def test_distances_count_what_one_loss_would_break_or_is_broken(losses):
    table = """
        topic    partition leader replicas isr   min
        orders   0         1      1,2,3    1,2,3 2
        orders   1         2      2,3,1    2,3   2
        orders   2         3      3,2,1    3     2
        scratch  0         4      4        4     1
        near     0         1      1,4,2    1,4,2 2
    """
    racks = losses([document(table, brokers="1:az1 2:az2 3:az3 4:az1", quorum="101:az1 102:az2 103:az3")])
    none = losses([document(table, brokers="1 2 3 4", quorum="101 102 103")])
    found = [{r.topic: tuple(r)[2:] for r in one.distances().collect()} for one in (racks, none)]
    assert found[0] == {"orders": (2, 1, 2, 1, 0), "scratch": (1, 1, 1, 1, 0), "near": (0, 0, 1, 0, 0)}
    assert found[1] == {"orders": (2, 1, 3, 3, 0), "scratch": (1, 1, 1, 1, 0), "near": (0, 0, 1, 1, 0)}


def test_distances_of_what_could_not_be_read_are_unknown(losses):
    table = """
        topic    leader replicas isr   min
        orders   1      1,2,3    1,2,3 2
        hidden   1      1,2,3    1,2,3 2
    """
    made = document(table, unreadable={"/topics/0/partitions/0/isr": "X", "/topics/1/partitions": "X"})
    found = {r.topic: r.one_failure_unknown for r in losses([made]).distances().collect()}
    assert found == {"orders": 1, "hidden": 1}


def test_a_broker_without_a_rack_may_stand_in_any(losses):
    """Writes stop if az1 or az2 is lost, and may stop if az3 is: broker 4 may stand there. Nothing depends on broker 3."""
    made = document(
        "topic leader replicas isr min\nt 1 1,2,4 1,2,4 3\nu 1 1,2 1,2 1",
        brokers="1:az1 2:az2 3:az3 4",
    )
    rows = {row.name: row for row in losses([made]).costs().collect() if row.kind == "rack"}
    assert {name: (row.now_writes.partitions, row.unknown, row.held) for name, row in rows.items()} == {
        "az1": (1, 0, 2),
        "az2": (1, 0, 2),
        "az3": (0, 1, 0),
    }


def test_a_rack_of_controllers_alone_is_a_rack_that_may_be_lost(losses):
    """If no broker has a rack, nothing is known of the loss of any."""
    table = "topic leader replicas isr min\nt 1 1,2 1,2 1"
    hub = document(table, cluster="hub", brokers="1:az1 2:az2", quorum="101:hub 102:hub 103:az1")
    unracked = document(table, cluster="unracked", brokers="1 2", quorum="101:hub 102:hub 103:az1")
    rows = [row for row in losses([hub, unracked]).costs().collect() if row.kind == "rack"]
    assert {(row.cluster, row.name): (row.held, row.quorum, row.now_availability.partitions) for row in rows} == {
        ("hub", "az1"): (1, "kept", 0),
        ("hub", "az2"): (1, "kept", 0),
        ("hub", "hub"): (0, "lost", 0),
    }
