"""at-min-isr-over-time against drawn histories, and against a reading written independently of Spark (KIP-427)."""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import pytest

from durability.policy.model import Readings
from tests.support.readings import NOON, PULSE, Moment, drawn, judge, policy_of
from tests.support.readings_oracle import reading

# history, maintenance (m: in a window, from that moment to the next), verdict on the topic. prolonged@n: since n moments ago.
CASES = {
    # KIP-427, "AtMinIsr Values + Possible Explanations"
    "1. zero": ("0000 0000 0000", "", "PASS"),
    "2. consistently above zero for a prolonged period": ("0000 0111 1111", "", "prolonged@6"),
    "3. bouncing between zero and non-zero": ("0001 0000 1000", "", "bouncing:4"),
    "planned maintenance": ("0001 1111 1111", "...mmmmmmmmm", "PASS"),
    # prolonged, just under and at thirty minutes
    "25 minutes": ("0000 0011 1111", "", "PASS"),
    "30 minutes": ("0000 0111 1111", "", "prolonged@6"),
    "over by now": ("0111 1111 1110", "", "PASS"),
    "from worse to better and back, never whole": ("0000 01ux 11ux", "", "prolonged@6"),
    "under min ISR all the time": ("0000 0uuu uuuu", "", "prolonged@6"),
    "offline all the time": ("0000 0xxx xxxx", "", "prolonged@6"),
    "by configuration alone": ("cccc cccc cccc", "", "PASS"),
    "short of replicas, above the minimum": ("rrrr rrrr rrrr", "", "PASS"),
    "longer than is looked back on shows": ("1" * 40, "", "prolonged@39"),
    # bouncing, just under and at three changes
    "2 changes": ("0001 1000 0000", "", "PASS"),
    "3 changes": ("0001 1000 0001", "", "bouncing:3"),
    "both": ("0100 0111 1111", "", "bouncing:3 prolonged@6"),
    "changes are seen across an unreadable moment": ("0?1? 0?1? 0000", "", "bouncing:4"),
    "what can't be read is no zero": ("0111 ?1?1 1?11", "", "UNKNOWN"),
    "nor is it min ISR, however often that is seen beside it": ("01?1 ?1?1 ?1?1 ?1", "", "UNKNOWN"),
    "so long after what couldn't be read that it doesn't matter": ("0?11 1111 11", "", "prolonged@7"),
    "not half an hour, whatever couldn't be read": ("0000 0001 ?1?1", "", "PASS"),
    "not readable now": ("0000 0000 000?", "", "UNKNOWN"),
    # gaps
    "one pulse missing is no gap": ("0000 0111 1-11", "", "prolonged@6"),
    "two in a row are bridged by half of prolonged_after": ("0000 0000 0011 1--1 11", "", "prolonged@7"),
    "a gap is not bridged": ("0000 0000 0011 ---- 1111", "", "UNKNOWN"),
    "a gap is no zero": ("0000 0000 0011 ---- 11-- --11", "", "UNKNOWN"),
    "so long after the gap that it doesn't matter": ("0000 0000 0011 ---- 1111 111", "", "prolonged@6"),
    "zero before a short gap": ("0000 0000 0000 00-- -11", "", "PASS"),
    "zero before a long gap": ("0000 0000 0000 00-- ---- --11", "", "UNKNOWN"),
    "zero now, whatever was in the gap": ("0000 0000 0000 11-- --00", "", "PASS"),
    # maintenance
    "began in a window, half an hour after it is prolonged": ("0001 1111 1111 11", "...mmmm.......", "prolonged@10"),
    "began in a window, not yet half an hour": ("0001 1111 1111 1", "...mmmm......", "PASS"),
    "broken before the window and after it": ("0111 1111 1111", ".....mmm....", "prolonged@10"),
    "a window that begins later explains nothing": ("0111 1111 1111", "...........m", "prolonged@10"),
    "not half an hour before the window that goes on": ("0111 1111 1111", "......mmmmmm", "PASS"),
    "a gap in a window": ("0000 0000 0011 ---- 1111", ".........mmmmmmmmmmm", "PASS"),
    "a gap before the window": ("0000 0000 0011 ---- 1111", ".................mmm", "UNKNOWN"),
    "changes in a window don't count": ("0010 1010 0100", ".mmmmmmm....", "PASS"),
    "those after it do": ("0010 1010 0101 0", ".mmmmm.......", "bouncing:5"),
    # rolling restarts
    "orderly": ("0010 2030 4050", "", "PASS"),
    "orderly, still going on": ("0010 2030 4005", "", "PASS"),
    "two pulses each": ("0110 2203 3044", "", "PASS"),
    "one broker twice": ("0010 2010 0000", "", "bouncing:6"),
    "two at once": ("0010 0&00 3000", "", "bouncing:6"),
    "not whole in between": ("0012 0030 0000", "", "bouncing:4"),
    "a gap in it": ("0000 0000 0001 ---- 0203 00", "", "bouncing:6"),
    "unreadable in it": ("0010 2?03 0000", "", "PASS"),
    "unreadable while a broker comes back": ("0001 ?020 ?300", "", "PASS"),
    "unreadable for longer than a gap": ("0001 0??? ??20 3000", "", "bouncing:6"),
    "unreadable, with two at once": ("0010 2!03 0000", "", "bouncing:6"),
    "one broker twice, and unreadable in between": ("0010 ?010 2000", "", "bouncing:6"),
    "the last one stays away": ("0010 2030 0004 4444 44", "", "prolonged@6"),
    "the last one takes no longer than the one before": ("0011 1111 1100 2222 2222", "", "PASS"),
    "the last one takes longer than the one before": ("0011 1111 1022 2222 222", "", "prolonged@8"),
    "one broker alone is not rolling": ("0000 0333 3333", "", "prolonged@6"),
    "one of the restarts is in a window": ("0010 2010 3040", "......m.....", "PASS"),
}


def verdict(found: dict) -> str:
    """The outcome, or readings with their since (in moments before now) and their changes."""
    words = []
    for category, finding in sorted(found.items()):
        if finding["outcome"] != "FAIL":
            words.append(finding["outcome"])
        elif category == "prolonged":
            assert finding["observed"]["reading"] == "prolonged"
            words.append(f"prolonged@{round((NOON - _moment(finding)) / PULSE)}")
        else:
            assert finding["observed"]["reading"] == "bouncing"
            words.append(f"bouncing:{finding['observed']['changes']}")
    return " ".join(words)


def _moment(finding: dict):
    return datetime.fromisoformat(finding["observed"]["since"])


def windows(cluster: str, marks: str) -> list:
    """A window for each run of m, from its first moment to the one after its last."""
    cells = marks.replace(" ", "")
    count = len(cells)
    return [
        (cluster, NOON - (count - 1 - n) * PULSE, NOON - (count - 2 - n) * PULSE)
        for n, mark in enumerate(cells)
        if mark == "m"
    ]


@pytest.fixture(scope="module")
def judged(spark):
    names = {name: f"c{n}" for n, name in enumerate(CASES)}
    lines = {names[name]: drawn(line) for name, (line, _, _) in CASES.items()}
    marked = [w for name, (_, marks, _) in CASES.items() for w in windows(names[name], marks)]
    found = judge(spark, lines, policy_of(maintenance=marked))
    return {name: {r: found.get((c, r), {}) for r in ("cluster", "orders")} for name, c in names.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_topic_is_read_as_drawn(judged, name):
    assert verdict(judged[name]["orders"]) == CASES[name][2]


@pytest.mark.parametrize("name", CASES)
def test_the_cluster_of_one_topic_is_read_like_it(judged, name):
    assert verdict(judged[name]["cluster"]) == CASES[name][2]


def history(rng: random.Random) -> list[Moment]:
    """A random history with long and short trouble, restarts, gaps, late pulses and unreadable moments."""
    cells: list[str] = []
    while len(cells) < rng.choice((5, 20, 60, 110)):
        kind = rng.choice(("0", "0", "0", "0123", "03", "0?1", "0!12", "1", "2", "xu1", "0&", "-", "r0", "c"))
        if rng.random() < 0.3:
            cells += [
                c for n in rng.sample(range(1, 7), rng.randint(2, 5)) for c in [str(n)] * rng.randint(1, 9) + ["0"]
            ]
        cells += [rng.choice(kind) for _ in range(rng.choice((1, 2, 3, 8, 20)))]
    step = rng.choice(
        (timedelta(minutes=5), timedelta(minutes=5), timedelta(minutes=1), timedelta(hours=1, minutes=20))
    )
    line = drawn("".join([*cells, rng.choice("0011x?")]), step)
    late = [Moment(m.at - rng.choice((0, 0, 0, 0.3)) * step, m.drawn) for m in line[:-1]]
    return [*late, line[-1]]


@pytest.mark.parametrize("seed", [1, 2])
def test_random_histories_are_read_as_by_hand(spark, seed):
    rng = random.Random(seed)
    wanted = Readings(
        timedelta(minutes=30),
        bouncing_changes=rng.choice((2, 3, 5)),
        bouncing_within=timedelta(hours=rng.choice((3, 6))),
        by_category={"under-min-isr": timedelta(minutes=10)},
        by_tier={"gold": {"offline": timedelta(minutes=2), None: timedelta(minutes=20)}},
    )
    lines = {f"c{n}": history(rng) for n in range(400)}
    tiers = {c: rng.choice(("gold", "t")) for c in lines}
    marked = []
    for cluster, line in lines.items():
        for _ in range(rng.choice((0, 0, 1, 3))):
            start = rng.choice(line).at + rng.choice((timedelta(0), timedelta(minutes=2)))
            marked.append((cluster, start, start + rng.choice((timedelta(minutes=4), timedelta(hours=1)))))
    found = judge(spark, lines, policy_of(wanted, marked), tiers)
    seen = {"PASS", "UNKNOWN", "NOT_APPLICABLE", "prolonged", "bouncing"}
    for cluster, line in lines.items():
        mine = [(start, end) for name, start, end in marked if name == cluster]
        for resource, tier in (("cluster", None), ("orders", tiers[cluster])):
            expected = reading(line, wanted, mine, tier, whole_cluster=resource == "cluster")
            got = told(found.get((cluster, resource), {}))
            assert got == expected, (cluster, resource, tier, [(str(NOON - m.at), m.drawn) for m in line], mine)
            seen -= set(expected)
    assert not seen, f"no history came to {seen}"


def told(found: dict) -> dict:
    """Outcomes, and of readings what was observed."""
    return {
        category: (f["observed"]["since"], f["observed"]["changes"]) if f["outcome"] == "FAIL" else None
        for category, f in found.items()
    }
