"""Groups of partitions and of topics are evaluated once: every result is what it is when each is evaluated by itself."""

from __future__ import annotations

import copy
import random
from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from bench import fleet
from durability.lake import partition_groups, rows
from durability.lake.tables import ONE_FAILURE
from durability.plan.plan import Plan
from durability.policy.model import Waiver
from durability.topology import validate
from spark_jobs.scale import groups
from tests.support.judge import Judge
from tests.support.policy import shipped

pytestmark = pytest.mark.slow


def uneven(document: dict, rng: random.Random) -> dict:
    """The document with brokers that differ in what rules look at, and partitions that are worth a finding."""
    for broker in document["brokers"]:
        # As every live broker says of itself.
        broker["configs"] = broker["configs"] | {"node.id": str(broker["id"]), "log.dirs": f"/data/{broker['id']}"}
        fate = rng.random()
        if fate < 0.15:
            broker["configs"] = broker["configs"] | {"min.insync.replicas": rng.choice(["1", "2", "3"])}
        elif fate < 0.25:
            broker["rack"] = rng.choice([None, "", "az1", "az9"])
        elif fate < 0.3:
            broker["kafka_version"] = rng.choice(["3.6", "3.9"])
        elif fate < 0.35:
            document["unreadable"].append({"path": f"/brokers/{broker['id']}/configs", "reason": "denied"})
        elif fate < 0.4:
            document["unreadable"].append({"path": f"/brokers/{broker['id']}/rack", "reason": "denied"})
    for topic in document["topics"]:
        if rng.random() < 0.3:
            topic["configs"] = topic["configs"] | {"min.insync.racks": rng.choice(["1", "2", "3"])}
        for p in topic["partitions"]:
            if rng.random() < 0.1:
                p["isr"] = [b for b in p["replicas"] if b == p["leader"] or rng.random() < 0.6]
            elif rng.random() < 0.02:
                p["isr"] = list({*p["isr"], rng.choice(document["brokers"])["id"]})
            rng.shuffle(p["isr"])
            fate = rng.random()
            if fate < 0.02:
                p["adding"] = p["replicas"][-1:]
            elif fate < 0.04:
                p["leader"] = None
            elif fate < 0.05:
                document["unreadable"].append(
                    {"path": f"/topics/{topic['name']}/partitions/{p['partition']}/isr", "reason": "timed out"}
                )
    return document


def with_alike_topics(document: dict, rng: random.Random) -> dict:
    """The document with topics that only their names tell apart, on brokers that are up, in a rack each; of some nothing is
    amiss, others have settings that a command mends."""
    by_rack = {b["rack"]: b["id"] for b in document["brokers"] if b["live"] and b["rack"]}
    replicas = rng.sample(sorted(by_rack.values()), min(3, len(by_rack)))
    for least, unclean, count in ((2, "false", 3), (1, "false", 2), (1, "true", 2), (2, "true", 1)):
        first = copy.deepcopy(document["topics"][0]) | {"internal": False}
        first["configs"] = {"min.insync.replicas": str(least), "unclean.leader.election.enable": unclean}
        for p in first["partitions"]:
            p |= {"replicas": replicas, "isr": list(replicas), "leader": replicas[0], "elr": [], "adding": []}
        names = [f"alike-{least}-{unclean}-{which}" for which in "bca"[:count]]
        document["topics"] += [copy.deepcopy(first) | {"name": name} for name in names]
    return document


def at(document: dict, moment: str) -> dict:
    later = copy.deepcopy(document)
    later["cluster"]["captured_at"] = moment
    return later


@pytest.fixture(scope="module")
def documents():
    """Four clusters of some two hundred partitions each."""
    rng = random.Random(7)
    made = []
    for seed in range(4):
        (topology,) = fleet.topologies(999, seed)
        document = topology.document
        document["cluster"]["id"] = f"cluster-{seed}"
        document["brokers"] += [
            {**document["brokers"][n % 3], "id": 100 + n, "rack": f"az{n % 4 + 1}"} for n in range(rng.randrange(2, 7))
        ]
        ids = [b["id"] for b in document["brokers"] if b["live"]]
        document["topics"] = document["topics"][:12]
        for topic in document["topics"]:
            topic["partitions"] = topic["partitions"][:40]
            if rng.random() < 0.7:
                factor = min(rng.choice([1, 2, 3, 3, 3, 4]), len(ids))
                for p in topic["partitions"]:
                    p["replicas"] = rng.sample(ids, factor)
                    p["isr"], p["leader"], p["elr"] = list(p["replicas"]), p["replicas"][0], []
        made.append(with_alike_topics(uneven(document, rng), rng))
    # Here partitions are listed for their racks, whatever is in sync beyond min.insync.replicas.
    for broker in made[0]["brokers"]:
        broker["configs"] = broker["configs"] | {"min.insync.racks": "2"}
    return [at(document, "2026-11-22T00:45:00Z") for document in made]


def strict_policy():
    policy = shipped()
    more = {"min_insync_racks": 2, "acked_copies": 2, "replica_rack_balance": True}
    relative = {
        "scratch": {"replication_factor": {"min": 2, "max": 3}, "min_insync_replicas": "rf-1", "replica_racks": "all"}
    }
    tiers = {
        n: replace(t, requirements={**t.requirements, **more, **relative.get(n, {})}) for n, t in policy.tiers.items()
    }
    return replace(policy, tiers=tiers)


ALONE, OLDER = "alone-", "older-"
"""Before the ids of clusters whose partitions are in no group, and of those whose groups an earlier version made: all partitions
in one group, by settings that rules no longer read alone."""


def both_ways(documents: list[dict], other: str = ALONE) -> list[dict]:
    """Each document as that of two clusters, which differ in their groups alone. other: ALONE or OLDER."""
    return [d | {"cluster": d["cluster"] | {"id": way + d["cluster"]["id"]}} for way in ("", other) for d in documents]


@pytest.fixture(autouse=True)
def groups_by_name(monkeypatch):
    """Clusters have the groups that their names say."""
    build, grouped = rows.build, partition_groups.grouped

    def built(topology, *arguments, **options):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(partition_groups, "FROM", 10**9 if topology.cluster.startswith(ALONE) else 0)
            if topology.cluster.startswith(OLDER):
                patch.setattr(partition_groups, "READS", "older")
                patch.setattr(partition_groups, "grouped", lambda *given: np.zeros_like(grouped(*given)))
            return build(topology, *arguments, **options)

    monkeypatch.setattr(rows, "build", built)


def evaluated(judge: Judge, documents: list[dict], large: bool, *more, losses: bool = False, **options) -> list[dict]:
    """Runs as a large or a small run does, and checks that groups make no difference to its rows. Returns the findings."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Plan, "small", property(lambda plan: not large))
        found = judge.run(documents, strict_policy(), *more, losses=losses, **options)
    tables_ = tables_of(judge)
    for name, listed in tables_.items():
        grouped = [row for row in listed if not row["cluster"].startswith((ALONE, OLDER))]
        others = [row for row in listed if row["cluster"].startswith((ALONE, OLDER))]
        assert without_ids(grouped) == without_ids(others), name
    assert len(tables_["partition_health"]) > 600
    return found


def tables_of(judge: Judge) -> dict[str, list[dict]]:
    """The rows of each result table of the judge's latest run."""
    return {n: table.to_pylist() for n, table in judge.latest.items()} | {"partition_health": judge.partition_health()}


def without_ids(listed: list[dict]) -> list[str]:
    """The rows as text, without ALONE and OLDER and what hashes of them are."""
    kept = ({n: v for n, v in row.items() if n not in ("id", "snapshot_id")} for row in listed)
    return sorted(repr(row).replace(ALONE, "").replace(OLDER, "") for row in kept)


def rows_of(judge: Judge) -> dict[str, list[str]]:
    return {name: sorted(map(repr, listed)) for name, listed in tables_of(judge).items()}


def without_losses(judge: Judge) -> dict[str, list[str]]:
    """What `rows_of` the clusters with groups doesn't owe to losses."""
    found = {}
    for name, listed in tables_of(judge).items():
        mine = [row for row in listed if not row["cluster"].startswith((ALONE, OLDER))]
        mine = [row for row in mine if row.get("control") not in ("broker-loss", "rack-loss")]
        found[name] = sorted(repr({n: v for n, v in row.items() if n not in (*ONE_FAILURE, "tiers")}) for row in mine)
    return found


@pytest.fixture(scope="module")
def first_night(spark, documents):
    """The judge of a large or a small run over the documents, made the first time. Nobody may run it again: see `again`."""
    kept: dict[bool, Judge] = {}

    def judged(large: bool) -> Judge:
        if large not in kept:
            judge = Judge(spark)
            # Losses are judged without groups. Small and large runs go about them differently.
            evaluated(judge, both_ways(documents), large, losses=True)
            kept[large] = judge
        return kept[large]

    return judged


def again(judge: Judge) -> Judge:
    """A judge that has what this one has, for more runs."""
    more = copy.copy(judge)
    more.facts, more.results = dict(judge.facts), dict(judge.results)
    return more


def test_large_and_small_runs_find_the_same(spark, documents, first_night, monkeypatch):
    small, large = (rows_of(first_night(large)) for large in (False, True))
    of_losses = {"failure_costs", "loss_sets"}
    of_topics = {"verdicts", "findings", "partition_health", "health_counters", "topic_posture"}
    assert small.keys() == of_topics | of_losses
    assert len(small["loss_sets"]) > 200
    assert small == large
    monkeypatch.setattr(groups, "MOST", 1)
    too_many = Judge(spark)
    evaluated(too_many, both_ways(documents, OLDER), large=True)
    found, expected = without_losses(too_many), without_losses(first_night(large=False))
    for name in of_topics:
        assert found[name] == expected[name], name


def test_a_pulse_judges_through_one_or_by_itself(spark, documents):
    found = []
    for large in (True, False):
        judge = Judge(spark)
        evaluated(judge, both_ways(documents), large, losses=True, kind="pulse")
        found.append(rows_of(judge))
    assert found[0].keys() == {"partition_health", "health_counters"}
    assert found[0] == found[1]


def later_on(document: dict, rng: random.Random) -> dict:
    """Some of what was amiss is mended, some is new; a topic is gone."""
    later = at(document, "2026-11-22T02:00:00Z")
    later["topics"].pop()
    for topic in later["topics"]:
        if rng.random() < 0.3:
            topic["configs"] = topic["configs"] | {"min.insync.replicas": rng.choice(["1", "2", "3"])}
        for p in topic["partitions"]:
            fate = rng.random()
            if fate < 0.1:
                p["isr"] = list(p["replicas"])
            elif fate < 0.2:
                p["isr"] = [b for b in p["replicas"] if b == p["leader"] or rng.random() < 0.5]
    return later


def second_night(first: Judge, documents, large: bool, looks_back: bool) -> tuple[dict[str, list], list[dict]]:
    """Rows and findings of a run that compares with the `first`, knows waivers and can't read one cluster.

    looks_back: on an hour and a half, on what the run before counted and on snapshots from before and after it that nobody has.
    """
    rng = random.Random(11)
    later = [later_on(document, rng) for document in documents[:-1]]
    times = ("00:30", "01:05", "01:35") if looks_back else ()
    earlier = [at(document, f"2026-11-22T{time}:00Z") for time in times for document in later]
    controls = ("replication-factor", "partition-health", "at-min-isr-over-time", "log-dirs")
    expiries = (date(2026, 12, 31), date(2026, 11, 1))
    waivers = [
        Waiver(n, ".*", controls, f".*cluster-[{2 * n}{2 * n + 1}]", ".*", "team", "later", day)
        for n, day in enumerate(expiries)
    ]
    judge = again(first)
    failed = [(way + documents[-1]["cluster"]["id"], "no route") for way in ("", ALONE)]
    options = {"result": "r2", "previous": judge.plan, "earlier": both_ways(earlier), "failed": failed}
    found = evaluated(judge, both_ways(later), large, waivers, **options)
    return rows_of(judge), found


@pytest.mark.parametrize("looks_back", [True, False])
def test_a_second_night_judges_through_one_or_by_itself(documents, first_night, looks_back):
    large, found = second_night(first_night(large=True), documents, True, looks_back)
    assert {"new", "persisting", "resolved"} <= {f["change"] for f in found}
    assert {"EXEMPT", "FAIL", "PASS", "UNKNOWN"} <= {f["outcome"] for f in found}
    controls = {f["control"] for f in found if f["outcome"] == "FAIL"}
    assert {"waiver-expired", *(("at-min-isr-over-time",) if looks_back else ())} <= controls, controls
    small, _ = second_night(first_night(large=False), documents, False, looks_back)
    for name, rows_ in small.items():
        assert rows_ == large[name], name


def read_of(broker: dict) -> str:
    """What of a live broker's row, but the name of its rack, may count for its partitions."""
    own = {n: v for n, v in broker.items() if n not in ("broker", "log_dirs", "rack")}
    for name in ("configs", "config_sources"):
        own[name] = {key: value for key, value in dict(own[name] or {}).items() if key not in ("node.id", "log.dirs")}
    return repr((broker["configs"] is None, own))


def told_apart_by(row: dict, brokers: dict[int, dict]) -> tuple:
    """What rules may see of a partition: who leads, and of each replica its broker, by id if it is named, whether it is in the
    ISR and in the ELR, which one is the first in its rack, and its rack if named ones stand there, too."""

    def of(id):
        return brokers.get(id, {"live": None, "rack_state": "unknown", "rack": None})

    def facts(id):
        known = of(id)["live"] is True and of(id)["rack_state"] in ("named", "none")
        return read_of(of(id)) if known else str(id)

    led = of(row["leader"])["live"] is True
    named = [b for b in row["replicas"] if b not in row["isr"] or not led]
    in_sync = [b for b in row["replicas"] if b not in named]
    by_id = {of(b)["rack"] for b in row["replicas"] if b in named or facts(b) == str(b)} - {None}
    racks = [of(b)["rack"] for b in row["replicas"]]
    replicas = [
        (
            (facts(b), rack if rack in by_id else None) if b in in_sync else b,
            b in row["isr"],
            b in row["elr"],
            None if rack is None else racks.index(rack),
            b == row["leader"],
        )
        for b, rack in zip(row["replicas"], racks, strict=True)
    ]
    rack = of(row["leader"])["rack"]
    beside = [b for b in row["replicas"] if b in row["isr"] and rack is not None and of(b)["rack"] == rack]
    return (
        (facts(row["leader"]), None if facts(row["leader"]) == str(row["leader"]) else len(beside)),
        tuple(replicas),
        *map(tuple, (row["elr"], row["last_known_elr"])),
    )


def test_what_is_grouped(documents, monkeypatch):
    """Nothing that rules may see tells the partitions of a group apart; a topic's first one of a group stands for the others."""
    monkeypatch.setattr(partition_groups, "FROM", 0)
    several = shrunk = across = 0
    for document in documents:
        built = rows.build(validate(document, "x.json"), "s", "a")
        brokers = {b["broker"]: b for b in built["brokers"].to_pylist()}
        table = built["partitions"].to_pylist()
        by_place = {(r["topic"], r["partition"]): r for r in table}
        assert list(by_place) == sorted(by_place)
        members: dict[int, list] = {}
        for row in table:
            if row["partition_group"] is not None:
                assert row["adding"] == row["removing"] == [] and row["unreadable"] is None
                members.setdefault(row["partition_group"], []).append(row)
        seen = [{told_apart_by(row, brokers) for row in those} for those in members.values()]
        assert all(len(one) == 1 for one in seen) and len(set().union(*seen)) == len(seen)
        across += any(len({r["topic"] for r in those}) > 1 for those in members.values())
        stood_for = []
        for group in built["partition_groups"].to_pylist():
            those = [by_place[group["topic"], p] for p in group["partitions"]]
            assert {name: group[name] for name in group.keys() & those[0].keys()} == {
                name: those[0][name] for name in group.keys() & those[0].keys()
            }
            assert group["partition"] == min(group["partitions"]) and group["reads"] == partition_groups.READS
            assert [r["leader"] for r in those] == group["leaders"]
            assert {r["partition_group"] for r in those} == {group["partition_group"]}
            assert len(those) == 1 or group["partition_group"] is not None
            several += len(those) > 1
            shrunk += len(those) > 1 and len(group["isr"]) < len(group["replicas"])
            stood_for += [(group["topic"], p) for p in group["partitions"]]
        assert sorted(stood_for) == list(by_place)
        keys = [(g["topic"], g["partition_group"]) for g in built["partition_groups"].to_pylist()]
        of_groups = [key for key in keys if key[1] is not None]
        assert len(of_groups) == len(set(of_groups))
    assert several > 50 and shrunk > 5 and across > 3


def test_a_rack_carried_from_before_tells_partitions_apart(monkeypatch):
    """A replica that is down counts in its broker's rack, known from an earlier snapshot: 0 and 2 span two racks, 1 three."""
    monkeypatch.setattr(partition_groups, "FROM", 0)
    (topology,) = fleet.topologies(999, 1)
    document = topology.document
    racks = {1: "az1", 2: "az2", 3: "az3", 4: None}
    one = document["brokers"][0]
    document["brokers"] = [one | {"id": b, "rack": rack, "live": rack is not None} for b, rack in racks.items()]
    document["unreadable"] = [{"path": "/brokers/4/rack", "reason": "down"}]
    topic = document["topics"][0] | {"name": "t", "configs": {}}
    first = topic["partitions"][0] | {"leader": 1, "elr": [], "adding": [], "removing": []}
    topic["partitions"] = [
        first | {"partition": n, "replicas": [1, other, 4], "isr": [1, other]} for n, other in enumerate((2, 3, 2))
    ]
    document["topics"] = [topic]
    built = rows.build(validate(document, "x.json"), "s", "a", earlier_racks=lambda: {4: "az2"})
    assert [g["partitions"] for g in built["partition_groups"].to_pylist()] == [[0, 2], [1]]
