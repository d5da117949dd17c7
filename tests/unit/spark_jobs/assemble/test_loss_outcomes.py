"""Losses of brokers, against a controller that is played in every order in which the lost brokers are fenced.

Each loss is that of a cluster of its own, and one job predicts all of them. Losses that depend on unknown voters or racks:
test_unsure_losses.py.
"""

import random
from functools import cache
from itertools import combinations
from typing import Any

import pytest

from tests.support import controller
from tests.support.losses import Lost, answers, lost, outcomes_of
from tests.support.topology import document

BROKERS = "1:az1 2:az1 3:az2 4:az2 5:az3"


@pytest.fixture(scope="module")
def known(spark):
    """By cluster and topic, the rows of `loss_outcomes`."""
    drawn_ = (*played(True)[0], *played(False)[0], *structural()[0])
    return outcomes_of(spark, [*drawn_, *KNOWN])


def drawn(seed, elr_on):
    """A cluster with random partitions, some with dead brokers, as a document."""
    random.seed(seed)
    down = {random.choice([0, 0, 1, 5])} - {0}
    lines, unclean, elrs = [], {}, {}
    for n in range(40):
        replicas = random.sample(range(1, 6), random.randint(1, 4))
        m = random.randint(1, 3)
        live = [b for b in replicas if b not in down]
        isr = random.sample(live, random.randint(0, len(live))) if live else []
        elr = []
        effective = min(m, len(replicas))
        if elr_on and len(isr) < effective:
            others = [b for b in replicas if b not in isr and (isr or b in down)]
            elr = random.sample(others, min(len(others), effective - len(isr)))
        if not isr and not elr_on:
            isr = [b for b in replicas if b in down][:1] or live[:1]
        leads = [b for b in isr if b in live]
        unclean[f"t{n}"] = bool(leads) and random.random() < 0.3
        leader = random.choice(leads) if leads else None
        cells = [",".join(map(str, ids)) or "-" for ids in (replicas, isr, elr)]
        lines.append(f"t{n} {leader or '-'} {cells[0]} {cells[1]} {cells[2]} {m}")
        elrs[f"t{n}"] = elr
    table = "topic leader replicas isr elr min\n" + "\n".join(lines)
    brokers = " ".join(b + "!" if int(b[0]) in down else b for b in BROKERS.split())
    made = document(table, brokers=brokers, version="4.3", features={"eligible.leader.replicas.version": int(elr_on)})
    for topic in made["topics"]:
        topic["configs"]["unclean.leader.election.enable"] = str(unclean[topic["name"]]).lower()
        topic["config_sources"]["unclean.leader.election.enable"] = "topic"
    return made, down


@cache
def played(elr_on) -> tuple[list[Lost], dict[tuple[str, str], Any]]:
    """Losses of random clusters, and by cluster and topic what a played controller does."""
    losses, expected = [], {}
    for seed in range(6):
        for ids in [(b,) for b in range(1, 6)] + list(combinations(range(1, 6), 2)) + [(1, 3, 5), (1, 2, 3, 4)]:
            made, down = drawn(seed, elr_on)
            name = f"{'elr' if elr_on else 'isr'}-{seed}-{'-'.join(map(str, ids))}"
            made["cluster"]["id"] = name
            losses.append(lost(made, ids))
            for topic in made["topics"]:
                [p] = topic["partitions"]
                m = min(int(topic["configs"]["min.insync.replicas"]), len(p["replicas"]))
                unclean = topic["configs"]["unclean.leader.election.enable"] == "true"
                start = controller.Played(
                    *(p["replicas"], p["leader"], p["isr"], p["elr"] if elr_on else [], m, elr_on, unclean),
                    live={1, 2, 3, 4, 5} - down,
                    full={*p["isr"], *(p["elr"] if elr_on else [])},
                )
                expected[name, topic["name"]] = (*controller.after(start, ids), p)
    return losses, expected


@pytest.mark.parametrize("elr_on", [True, False])
def test_losses_are_what_a_played_controller_does(known, elr_on):
    losses, expected = played(elr_on)
    wrong = []
    of = {one.cluster: one.ids["brokers"] for one in losses}
    found = {(cluster, topic): row for cluster in of for topic, row in known[cluster].items()}
    assert len(found) == len(expected)
    for key, (outcomes, deleted, p) in expected.items():
        row = found[key]
        sure = {*p["isr"], *(p["elr"] if elr_on else [])}
        at_risk = bool(sure) and sure <= {*of[key[0]]}
        seen = (row["now"], row["leader_after"])
        if outcomes != {seen} or row["deleted"] != deleted or row["at_risk"] != at_risk:
            wrong.append((key, p, sorted(outcomes, key=str), deleted, at_risk, seen, row["deleted"], row["at_risk"]))
    assert not wrong, f"{len(wrong)} wrong, for instance\n" + "\n".join(map(repr, wrong[:3]))
    assert {r["now"] for r in found.values()} == {"NONE", "NOT_ENOUGH_REPLICAS", "LEADER_NOT_AVAILABLE"}
    assert any(r["deleted"] for r in found.values())


def whole(replicas, m, unclean):
    return controller.Played(
        list(replicas), replicas[0], list(replicas), [], m, False, unclean, {1, 2, 3, 4, 5}, set(replicas)
    )


BY_SEVERITY = ("NONE", "NOT_ENOUGH_REPLICAS", "REQUEST_TIMED_OUT", "LEADER_NOT_AVAILABLE")


@cache
def structural() -> tuple[list[Lost], dict[tuple[str, str], Any]]:
    """Losses of clusters with reassignments, and by cluster and topic what breaks by structure."""
    draw = random.Random(7)
    losses, expected = [], {}
    for brokers in [(b,) for b in range(1, 6)] + list(combinations(range(1, 6), 2)) + [(1, 3, 5)]:
        lines, ends, minima = [], {}, {}
        for n in range(30):
            replicas = draw.sample(range(1, 6), draw.randint(2, 4))
            adding = replicas[-1:] if n % 3 == 0 else []
            removing = replicas[:1] if adding and draw.random() < 0.7 else []
            isr = [b for b in replicas if b not in adding]
            m, name = draw.randint(1, 3), f"t{n}"
            minima[name] = m, n % 4 == 0
            ends[name] = [[b for b in replicas if b not in gone] for gone in (adding, removing)]
            cells = [",".join(map(str, ids)) or "-" for ids in (replicas, isr, adding, removing)]
            lines.append(f"{name} {isr[0]} {' '.join(cells)} {m}")
        made = document("topic leader replicas isr adding removing min\n" + "\n".join(lines), brokers=BROKERS)
        for topic in made["topics"]:
            topic["configs"]["unclean.leader.election.enable"] = str(minima[topic["name"]][1]).lower()
        made["cluster"]["id"] = name = "-".join(map(str, brokers))
        losses.append(lost(made, brokers))
        for topic, (m, unclean) in minima.items():
            answers = []
            for replicas in ends[topic]:
                effective = min(m, len(replicas))
                [(answer, _)] = controller.after(whole(replicas, effective, unclean), brokers)[0]
                answers.append(answer)
            # Any ISR of the effective minimum size may have acknowledged, while a reassignment runs one of all replicas too.
            sets = [*ends[topic], sorted({b for end in ends[topic] for b in end})]
            worst = any(
                set(isr) <= set(brokers) for replicas in sets for isr in combinations(replicas, min(m, len(replicas)))
            )
            expected[name, topic] = max(answers, key=BY_SEVERITY.index), worst, worst and not unclean
    return losses, expected


def test_by_structure_all_replicas_are_in_sync_and_the_worse_end_of_a_reassignment_counts(known):
    losses, expected = structural()
    seen = {(one.cluster, topic): row for one in losses for topic, row in known[one.cluster].items()}
    names = ("structural", "data_worst", "availability_worst")
    assert {key: tuple(row[name] for name in names) for key, row in seen.items()} == expected


NO_QUORUM = """
    topic  leader replicas isr   min
    led    1      1,2,3    1,2,3 2
    held   3      3,1,2    1,2,3 2
    spared 3      3,4,5    3,4,5 2
    short  3      3,1      3,1   2
"""
ONE_UNREAD = """
    topic    leader replicas isr   min
    spared   3      3,4      3,4   1
    survives 1      1,2,3    1,2,3 2
    undecided 1     1,2      1     1
"""
WERE_DOWN = """
    topic  leader replicas isr     min
    shrunk 3      3,4,2    3,4,2   2
    short  3      3,2      3,2     2
    dead   2      2,3      2,3     1
"""
MOVING = """
    topic  leader replicas isr   min
    moving 2      2,3      2     1
    spared 4      4,5      4     1
"""
WAITS = "topic leader replicas isr min\nwaits 3 3,4,2 3,4,2 2\nled 2 2,3 2,3 1"
VOTERS = {"kept": "101:az1 102:az2 103:az3", "lost": "101:az1 102:az2:- 103:az3:-"}
WAITING = [document(WAITS, cluster=name, brokers="1 2! 3 4", quorum=ids) for name, ids in VOTERS.items()]


def small(name, table, brokers=BROKERS, **parts):
    return document(table, cluster=name, brokers=brokers, **parts)


UNCLEAN = [
    small(
        f"unclean-{version}",
        "topic leader replicas isr min\norders 1 1,2 1 1",
        version=version,
        configs={"orders": {"unclean.leader.election.enable": "true"}},
    )
    for version in ("3.8", "3.9")
]
UNREAD_MODE = [
    small(
        f"mode-unread-{name}",
        "topic leader replicas isr min\norders 1 1,2 1 1",
        version=version,
        features=features,
        configs={"orders": {"unclean.leader.election.enable": "true"}},
        unreadable={"/cluster/quorum": "X"},
    )
    for name, version, features in (
        ("zookeeper-or-not", "3.8", None),
        ("kraft", "3.8", {"metadata.version": 20}),
        ("new", "3.9", None),
        ("no-release", "trunk", None),
    )
]
DISKS = """
    topic   leader replicas isr elr min
    behind  1      1,2      1   -   1
    second  1      1,3,2    1   -   1
    elr     1      1,2,3    1   2   2
    first   1      1,2,3    1   3   2
    in-sync 1      1,2      1,2 -   1
"""
OFFLINE_DISK = small(
    "offline-disk",
    DISKS,
    features={"eligible.leader.replicas.version": 1},
    configs={name: {"unclean.leader.election.enable": "true"} for name in ("behind", "second", "in-sync")},
    each_broker={id: {"offline_log_dirs": int(id == 2)} for id in range(1, 6)},
)
KNOWN = [
    *(lost(made, [1]) for made in (*UNREAD_MODE, OFFLINE_DISK)),
    lost(small("no-quorum", NO_QUORUM), [1], [101, 102]),
    lost(
        small("one-unread", ONE_UNREAD, unreadable={"/topics/2/configs/unclean.leader.election.enable": "X"}),
        [1],
    ),
    lost(small("were-down", WERE_DOWN, "1:az1 2:az1! 3:az2 4:az2"), [1]),
    lost(small("moving", MOVING, unreadable={"/cluster/reassignments": "X"}), [3]),
    lost(
        small(
            "leader-unread",
            "topic leader replicas isr min\norders 2 3,2,1 3,2,1 2",
            unreadable={"/topics/0/partitions/0/leader": "X"},
        ),
        [1],
    ),
    lost(
        small(
            "loses-none",
            "topic leader replicas isr min\norders 2 2,3 2,3 2",
            features=None,
            unreadable={"/topics/0/partitions/0/isr": "X", "/cluster/features": "X", "/topics/0/configs": "X"},
        ),
        [1],
    ),
    lost(
        small(
            "isr-unread",
            "topic leader replicas isr min\nled-on 2 3,2,1 3,2,1 2\nled-there 1 3,2,1 3,2,1 2",
            configs={name: {"unclean.leader.election.enable": "true"} for name in ("led-on", "led-there")},
            unreadable={f"/topics/{n}/partitions/0/isr": "X" for n in range(2)},
        ),
        [1],
    ),
    lost(
        small(
            "leader-unread-and-one-down",
            "topic leader replicas isr min\norders 2 3,2,1 3,2,1 1\nlast 3 3 3 1",
            "1 2 3!",
            quorum="1 2 3:-",
            unreadable={f"/topics/{n}/partitions/0/leader": "X" for n in range(2)},
        ),
        [2],
    ),
    *(lost(made, [1]) for made in WAITING),
    *(lost(made, [1]) for made in UNCLEAN),
]


def test_kraft_controllers_elect_unclean_leaders_since_39(known):
    """Source: ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic, which returned false until then."""
    found = {version: known[f"unclean-{version}"]["orders"] for version in ("3.8", "3.9")}
    assert {v: (r["now"], r["leader_after"], r["deleted"]) for v, r in found.items()} == {
        "3.8": ("LEADER_NOT_AVAILABLE", None, False),
        "3.9": ("NONE", 2, True),
    }


def test_where_zookeeper_may_elect_leaders_an_unclean_election_is_unknown(known):
    found = {name.removeprefix("mode-unread-"): known[name]["orders"] for name in known if "mode-unread" in name}
    assert {name: (row["availability_worst"], row["structural"]) for name, row in found.items()} == {
        "zookeeper-or-not": (None, None),
        "kraft": (True, None),
        "new": (False, None),
        "no-release": (None, None),
    }


def test_a_replica_that_may_be_on_an_offline_disk_may_not_lead(known):
    """Source: ReplicationControlManager.LeaderAcceptor. Seen on Kafka 4.3.1 for unclean leader election."""
    assert answers(known["offline-disk"]) == {
        "behind": (None, None),
        "second": ("NONE", 3),
        "elr": (None, None),
        "first": ("NOT_ENOUGH_REPLICAS", 3),
        "in-sync": ("NONE", 2),
    }
    deleted = {topic: row["deleted"] for topic, row in known["offline-disk"].items()}
    assert deleted == {"behind": None, "second": True, "elr": False, "first": False, "in-sync": False}


def test_without_a_quorum_nothing_changes_but_what_the_lost_brokers_serve(known):
    assert answers(known["no-quorum"]) == {
        "led": ("LEADER_NOT_AVAILABLE", 1),
        "held": ("REQUEST_TIMED_OUT", 3),
        "spared": ("NONE", 3),
        "short": ("REQUEST_TIMED_OUT", 3),
    }
    assert {tuple(r["quorum"].values()) for r in known["no-quorum"].values()} == {(3, 1, 2, False)}


def test_a_fact_that_is_missing_makes_unknown_only_what_it_decides(known):
    rows = known["one-unread"]
    assert {topic: r["now"] for topic, r in rows.items()} == {
        "spared": "NONE",
        "survives": "NONE",
        "undecided": None,
    }
    assert rows["undecided"]["deleted"] is None


def test_brokers_that_were_down_leave_the_isr_of_partitions_that_lose_nothing_too(known):
    assert answers(known["were-down"]) == {
        "shrunk": ("NONE", 3),
        "short": ("NOT_ENOUGH_REPLICAS", 3),
        "dead": ("NONE", 3),
    }


def test_what_a_reassignment_that_could_not_be_read_would_leave_is_unknown(known):
    assert {topic: (r["structural"], r["data_worst"]) for topic, r in known["moving"].items()} == {
        "moving": (None, True),
        "spared": (None, False),
    }


def test_a_leader_that_could_not_be_read_may_stay(known):
    assert answers(known["leader-unread"]) == {"orders": ("NONE", None)}
    # Without broker 2 the controllers have no majority: its partition is offline only if it led.
    assert answers(known["leader-unread-and-one-down"])["orders"] == (None, None)


def test_data_is_not_at_risk_where_the_leader_survives_though_the_isr_is_unread(known):
    found = {topic: (row["at_risk"], row["deleted"]) for topic, row in known["isr-unread"].items()}
    assert found == {"led-on": (False, False), "led-there": (None, None)}


def test_data_of_a_partition_that_loses_no_replica_is_not_at_risk_whatever_is_unread(known):
    row = known["loses-none"]["orders"]
    assert [row[name] for name in ("at_risk", "deleted", "data_worst", "availability_worst")] == [False] * 4


def test_a_leader_waits_for_a_broker_that_is_down_until_it_is_fenced_unless_the_quorum_is_lost(spark, known):
    """If nothing is lost, `before` is what the snapshot shows: a drill compares it with a prediction."""

    def before(found):
        of = {(name, topic): row for name in VOTERS for topic, row in found[name].items()}
        return {key: (row["before"], row["leader_before"]) for key, row in of.items()}

    shown = {"waits": ("REQUEST_TIMED_OUT", 3), "led": ("LEADER_NOT_AVAILABLE", 2)}
    nothing_lost = outcomes_of(spark, [lost(made, []) for made in WAITING])
    assert before(nothing_lost) == {(name, topic): seen for name in VOTERS for topic, seen in shown.items()}
    assert before(known) == {
        **{("lost", topic): seen for topic, seen in shown.items()},
        ("kept", "waits"): ("NONE", 3),
        ("kept", "led"): ("NONE", 3),
    }
