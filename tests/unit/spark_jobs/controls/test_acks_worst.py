"""The worst case of acked-durability equals brute force over all ISRs, for every replica layout up to RF 7 and 4 racks.

Every layout up to renaming (some replicas may be on brokers without broker.rack), times min.insync.replicas from 1 to one
above the replication factor, with ISR states drawn, before and since 3.7: one fleet, judged in one job.
"""

import itertools
import random

import pytest

from tests.support.joined import Part
from tests.support.judge import pick
from tests.support.oracle_acks import Case
from tests.support.policy import policy

RACKS = ("az1", "az2", "az3", "az4")
MOST = 7
TIERS = {
    "two-two": (2, 2),
    "three-three": (3, 3),
    "one-four": (1, 4),
    "copies": (2, None),
    "only-racks": (None, 2),
}
POLICY = policy(
    tiers={
        name: ({"acked_copies": copies} if copies else {})
        | ({"acked_racks": racks, "min_insync_racks": racks} if racks else {})
        for name, (copies, racks) in TIERS.items()
    },
    topics=[*({"match": {"topic": f"{name}[.].*"}, "tier": name} for name in TIERS), {"tier": "copies"}],
)


def spread(replicas: int, racks: int, most: int):
    """`replicas` over at most `racks` racks, up to renaming: sizes that don't grow."""
    if replicas == 0:
        yield ()
    elif racks:
        for first in range(min(replicas, most), 0, -1):
            for rest in spread(replicas - first, racks - 1, first):
                yield (first, *rest)


def layouts():
    """Racks of the replicas of every layout: named ones, and None for brokers without a rack."""
    for replicas in range(1, MOST + 1):
        for unracked in range(replicas + 1):
            for sizes in spread(replicas - unracked, len(RACKS), replicas):
                held = [rack for rack, size in zip(RACKS, sizes, strict=False) for _ in range(size)]
                yield (*held, *(None,) * unracked)


def unknown_layouts():
    """Of layouts up to RF 4, those with one or two racks unknown."""
    seen = set()
    for racks in layouts():
        for lost in itertools.chain.from_iterable(itertools.combinations(range(len(racks)), n) for n in (1, 2)):
            if len(racks) <= 4:
                seen.add(tuple(sorted(("?" if i in lost else r or "" for i, r in enumerate(racks)), key=str)))
    return [tuple(r or None for r in racks) for racks in sorted(seen)]


def states(racks, draw: random.Random):
    """ISRs with a leader: all in sync, and a smaller one, now and then empty."""
    whole = tuple(range(len(racks)))
    yield whole, draw.choice(whole)
    isr = tuple(sorted(draw.sample(whole, draw.randrange(len(racks)))))
    yield isr, draw.choice(isr) if isr else None


def cases(new: bool):
    draw = random.Random(926)
    tiers = itertools.cycle(TIERS)
    for racks in [*layouts(), *unknown_layouts()]:
        for min_isr in range(1, len(racks) + 2):
            for isr, leader in states(racks, draw):
                tier = next(tiers)
                yield tier, Case(racks, min_isr, isr, leader, new, TIERS[tier][1], draw.random() < 0.2)


def moves(new: bool):
    """Reassignments of every layout without unknown racks up to six replicas, old and new ones together."""
    draw = random.Random(1290)
    tiers = itertools.cycle(TIERS)
    for racks in layouts():
        for min_isr in range(1, len(racks) + 2) if 2 <= len(racks) <= 6 else ():
            shuffled = draw.sample(racks, len(racks))
            stays, isr = draw.randrange(len(racks)), draw.sample(range(len(racks)), draw.randint(1, len(racks)))
            comes = draw.randint(0, len(racks) - stays)
            adding, removing = tuple(range(stays, stays + comes)), tuple(range(stays + comes, len(racks)))
            if not stays and not (adding and removing):
                continue
            tier = next(tiers)
            at = (tuple(sorted(isr)), draw.choice(isr), new, TIERS[tier][1], False)
            yield f"{tier}.move", Case(tuple(shuffled), min_isr, *at, adding, removing)


class Fleet:
    """A cluster with brokers enough in each rack, of none and of unknown ones; a topic of one partition a case."""

    def __init__(self, name: str, version: str, drawn):
        kinds = [*RACKS, None, "?"]
        ids = itertools.count(1)
        self.brokers = {kind: [next(ids) for _ in range(MOST)] for kind in kinds}
        self.cases = {f"{tier}.{n}": case for n, (tier, case) in enumerate(drawn)}
        listed = [(i, None if kind == "?" else kind) for kind, held in self.brokers.items() for i in held]
        places = {i: n for n, (i, _) in enumerate(listed)}
        self.document = {
            "format": "kafka-topology/1",
            "cluster": {
                "id": name,
                "kafka_version": version,
                "captured_at": "2026-11-21T12:00:00Z",
                "features": {},
                "quorum": None,
            },
            "brokers": [{"id": i, "rack": rack, "live": True, "configs": {}} for i, rack in listed],
            "topics": [self.topic(topic, case) for topic, case in self.cases.items()],
            "unreadable": [{"path": f"/brokers/{places[i]}/rack", "reason": "TIMEOUT"} for i in self.brokers["?"]],
        }

    def topic(self, name: str, case: Case) -> dict:
        free = {kind: iter(held) for kind, held in self.brokers.items()}
        replicas = [next(free[rack]) for rack in case.racks]
        partition = {"partition": 0, "leader": None if case.leader is None else replicas[case.leader]}
        partition |= {"replicas": replicas, "isr": [replicas[i] for i in case.isr]}
        partition |= {"elr": [], "last_known_elr": []}
        partition |= {"adding": [replicas[i] for i in case.adding], "removing": [replicas[i] for i in case.removing]}
        configs = {
            "min.insync.replicas": str(case.min_isr),
            "unclean.leader.election.enable": "true" if case.unclean else "false",
        }
        sources = dict.fromkeys(configs, "topic")
        return {
            "name": name,
            "internal": False,
            "configs": configs,
            "config_sources": sources,
            "partitions": [partition],
        }


FLEETS = {
    "new": Fleet("new", "4.3", [*cases(new=True), *moves(new=True)]),
    "old": Fleet("old", "3.6", [*itertools.islice(cases(new=False), 0, None, 3), *moves(new=False)]),
}
PARTS = [Part("acked", POLICY, [f.document for f in FLEETS.values()])]


@pytest.fixture(scope="module")
def fleets(judged_once):
    """The clusters, and their findings by topic."""
    mine = pick(judged_once(*PARTS)[1], control="acked-durability", resource_type="topic")
    return FLEETS, {(f["cluster"], f["resource"]): f for f in mine}


def test_every_layout_is_there():
    """Partitions of n into at most four parts, with every number of replicas that have no rack: 108 in all."""
    assert len(set(layouts())) == len(list(layouts())) == 2 + 4 + 7 + 12 + 18 + 27 + 38
    assert max(len({r for r in racks if r}) for racks in layouts()) == len(RACKS)


@pytest.mark.parametrize("name", ["new", "old"])
def test_worst_cases_and_verdicts_are_those_of_brute_force(fleets, name):
    fleets, found = fleets
    wrong = []
    for topic, case in fleets[name].cases.items():
        finding, (copies, racks) = found[name, topic], TIERS[topic.partition(".")[0]]
        seen = finding["observed"]
        expected = {
            "outcome": case.outcome(copies, racks),
            "smallest_min_insync_replicas": case.smallest(racks),
            "with_min_insync_racks": case.pair(copies, racks),
            "acks": case.table(),
        }
        got = {"outcome": finding["outcome"], **{k: seen[k] for k in expected if k != "outcome"}}
        wrong += [f"{case}: {k} {got[k]}, brute force says {v}" for k, v in expected.items() if got[k] != v]
    assert not wrong, f"{len(wrong)} differ\n" + "\n".join(wrong[:5])


def test_no_write_that_is_accepted_now_is_worse_than_the_worst(fleets):
    accepted = [
        (key, f["observed"]["acks"]["all"]) for key, f in fleets[1].items() if f["observed"]["acks"]["all"]["accepted"]
    ]
    for what in ("copies", "racks"):
        seen = [(key, a[f"{what}_worst"], a[f"{what}_now"]) for key, a in accepted]
        wrong = [one for one in seen if None not in one and one[1] > one[2]]
        assert not wrong, f"{len(wrong)} of {len(seen)}: {wrong[:5]}"
    assert sum("move" in topic for (_, topic), _ in accepted) > 100


def test_all_outcomes_were_compared(fleets):
    outcomes = {finding["outcome"] for finding in fleets[1].values()}
    assert outcomes == {"PASS", "FAIL", "UNKNOWN"}
    assert len(fleets[1]) > 2000
