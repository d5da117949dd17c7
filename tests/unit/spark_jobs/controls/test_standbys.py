"""standby-replicas and standby-spread (KIP-708): cases from Kafka's own tests, states of groups, and random applications
against a naive walk. All are judged as one fleet in one job."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from durability.streams.classic import NO_EVIDENCE
from tests.support import walk
from tests.support.joined import Part
from tests.support.judge import Judge, one, pick
from tests.support.policy import policy
from tests.support.topology import document
from tests.support.walk import application

POLICY = policy("""
tiers: {gold: {}}
applications:
  - {match: {group: "zone-1.*"}, tier: gold, rack_aware_tags: [zone], standby_replicas: 1}
  - {match: {group: "both-1.*"}, rack_aware_tags: [zone, cluster], standby_replicas: 1}
  - {match: {group: "both-2.*"}, rack_aware_tags: [zone, cluster], standby_replicas: 2}
  - {match: {group: "cluster-1.*"}, rack_aware_tags: [cluster], standby_replicas: 1}
  - {match: {group: "[0-9]+"}, rack_aware_tags: [zone], standby_replicas: 1}
  - {match: {group: "free-0"}, standby_replicas: 0}
  - {match: {group: "tags-only"}, rack_aware_tags: [zone]}
  - {match: {group: "random-1-.*"}, rack_aware_tags: [zone], standby_replicas: 1}
  - {match: {group: "random-2-.*"}, rack_aware_tags: [zone, cluster], standby_replicas: 1}
  - {match: {group: "random-3-.*"}, rack_aware_tags: [zone, cluster, host], standby_replicas: 2}
topics: [{tier: gold}]
""")


def app(group: str, clients: str, stateful: Iterable[str] | None = None, **stated) -> dict:
    """A group drawn as `name zone/cluster active standby`, one client a line; `-` for none, tasks joined by commas."""
    rows = []
    for line in clients.strip().splitlines():
        name, place, active, standby = line.split()
        tags = dict(zip(("zone", "cluster"), place.split("/"), strict=False)) if place != "-" else {}
        held = [[] if cell == "-" else cell.split(",") for cell in (active, standby)]
        rows.append({"process": name, "tags": tags, "active": held[0], "standby": held[1]})
    tasks = sorted({t for r in rows for t in r["active"]}) if stateful is None else list(stateful)
    base = {"group": group, "type": "classic", "state": "Stable", "in_transition": False}
    return {**base, "stateful_tasks": tasks, "clients": rows, **stated}


NINE = """
    1 z1/c1 {1} -
    2 z2/c1 {2} {a2}
    3 z3/c1 {3} {a3}
    4 z1/c2 {4} {a4}
    5 z2/c2 -   {a5}
    6 z3/c2 -   {a6}
    7 z1/c3 {7} {a7}
    8 z2/c3 -   {a8}
    9 z3/c3 -   {a9}
"""


def nine(group: str, actives: dict[int, str], standbys: dict[int, str]) -> dict:
    cells = {str(n): actives.get(n, "-") for n in (1, 2, 3, 4, 7)} | {
        f"a{n}": standbys.get(n, "-") for n in range(2, 10)
    }
    text = NINE
    for name, cell in cells.items():
        text = text.replace("{" + name + "}", cell)
    return app(group, text)


SIX = "1 z1/c1 0_0 -\n2 z2/c1 - {2}\n3 z3/c1 - {3}\n4 z1/c2 - {4}\n5 z2/c2 - {5}\n6 z3/c2 1_0 {6}"


def six(group: str, *standbys: int) -> dict:
    """Task 0_0 on client 1 of two clusters in three zones, its standbys on these clients."""
    text = SIX
    for n in range(2, 7):
        text = text.replace(f"{{{n}}}", "0_0" if n in standbys else "-")
    return app(group, text, stateful=["0_0"])


# Placements of ClientTagAwareStandbyTaskAssignorTest, and others of the same clients: group -> (application, category)
KAFKA = {
    # Actives in one zone of three clusters, two standbys each: zone and cluster can both differ.
    "same-zone": (nine("both-2-same-zone", {1: "0_0", 4: "0_1", 7: "0_2"},
                       {9: "0_0,0_1", 5: "0_0", 2: "0_1", 6: "0_2", 3: "-"}), None),
    "same-zone-worse": (nine("both-2-worse", {1: "0_0"}, {5: "0_0", 6: "0_0"}), "below-achievable"),
    # Actives in one cluster of three zones.
    "same-cluster": (nine("both-2-same-cluster", {1: "0_0", 2: "0_1", 3: "0_2"},
                          {6: "0_0", 8: "0_0", 4: "0_1", 9: "0_1", 5: "0_2", 7: "0_2"}), None),
    "same-cluster-worse": (nine("both-2-cluster-worse", {2: "0_1"}, {4: "0_1", 7: "0_1"}), "below-achievable"),
    # Two clusters, three clients a task: only the first standby can be in another cluster.
    "partial": (six("both-2-partial-5-3", 5, 3), None),
    "partial-other": (six("both-2-partial-5-6", 5, 6), None),
    "partial-one-cluster": (six("both-2-partial-2-3", 2, 3), "below-achievable"),
    "partial-own-zone": (six("both-2-partial-4-5", 4, 5), "below-achievable"),
    # A tag that isn't rack-aware doesn't count.
    "ignored": (app("cluster-1-ignored", "1 z1/c1 0_0 -\n2 z2/c1 - -\n3 z1/c2 - 0_0"), None),
    "ignored-worse": (app("cluster-1-worse", "1 z1/c1 0_0 -\n2 z2/c1 - 0_0\n3 z1/c2 - -"), "below-achievable"),
    # The same value of two tags means nothing.
    "overlapping": (app("both-1-overlapping", "1 z1/c1 0_0 -\n2 c1/c3 - 0_0"), None),
    # All clients alike: anywhere is as good.
    "alike": (app("both-1-alike", "1 z1/c1 0_0 0_1\n2 z1/c1 0_1 0_2\n3 z1/c1 0_2 1_0\n4 z1/c1 1_0 0_0"), None),
    # One cluster, three zones, everybody busy.
    "busy": (app("both-1-busy", "1 z1/c1 0_0 0_1\n2 z2/c1 0_1 0_2\n3 z3/c1 0_2 0_0"), None),
    "busy-worse": (app("both-1-busy-worse", "1 z1/c1 0_0 -\n2 z1/c1 - 0_0\n3 z3/c1 - -"), "below-achievable"),
    # The KIP's example: three clusters in three zones.
    "kip": (nine("both-2-kip", {1: "0_0"}, {5: "0_0", 9: "0_0"}), None),
    "kip-other": (nine("both-2-kip-other", {1: "0_0"}, {6: "0_0", 8: "0_0"}), None),
    # The walk may take client 2 first and is stuck: what shares no zone and no cluster with 1 and 2 isn't there.
    "dead-end": (app("both-2-dead-end", "1 z1/c1 0_0 -\n2 z2/c2 - 0_0\n3 z3/c2 - -\n4 z2/c3 - -\n5 z1/c3 - 0_0"),
                 "below-ideal"),
}  # fmt: skip
ONE_ZONE = "a az1 0_0,0_1 -\nb az1 - 0_0\nc az2 - 0_1"
STATES = {
    "zone-1-moving": app("zone-1-moving", ONE_ZONE, in_transition=True),
    "zone-1-rebalancing": app("zone-1-rebalancing", ONE_ZONE, state="PreparingRebalance"),
    "zone-1-denied": app("zone-1-denied", ONE_ZONE),
    "zone-1-listed": app("zone-1-listed", ONE_ZONE),
    "zone-1-fresh": app("zone-1-fresh", ONE_ZONE),
    "zone-1-streams": app("zone-1-streams", ONE_ZONE, type="streams"),
    "zone-1-stateless": app("zone-1-stateless", ONE_ZONE, stateful=[]),
    "zone-1-mixed": app("zone-1-mixed", "a az1 0_0,0_1 -\nb - - 0_0\nc az2 - 0_1"),
    "zone-1-untagged": app("zone-1-untagged", "a - 0_0 -\nb - - 0_0"),
    "zone-1-moved": app("zone-1-moved", "p1 az1 0_0 -\np2 az1 - 0_0\np3 az2 - -\np4 - - -"),
    "zone-1-lost": app("zone-1-lost", "a az1 - -\nb az2 - 0_0", stateful=["0_0"]),
    "zone-1-twice": app("zone-1-twice", "a az1 0_0 -\nb az2 - 0_0\nc az3 0_0 -"),
    "zone-1-none": app("zone-1-none", "a az1 0_0,0_1,7_0 -\nb az2 - 0_0", stateful=["0_0", "0_1"]),
    "zone-1-own": app("zone-1-own", "a az1 0_0 0_0\nb az2 - -"),
    "zone-1-threads": app("zone-1-threads", "a az1 0_0 -\na az1 0_1 -\nb az2 - 0_0\nb az2 - 0_1"),
    "zone-1-<b>\n": app("zone-1-<b>\n", "<i>%s az1 0_0 -\n{}\x1b[31m az1 - 0_0\nc az2 - -"),
    "both-2-alone": app("both-2-alone", "a z1/c1 0_0 -\nb z2/c2 - 0_0"),
    "free-0": app("free-0", "a - 0_0 -"),
    "tags-only": app("tags-only", ONE_ZONE),
    "unnamed": app("unnamed", ONE_ZONE),
    "zone-1-old": app("zone-1-old", ONE_ZONE),
    "zone-1-limits": app("zone-1-limits", f"a {'z' * 31} 0_0 -\nb az2 - 0_0"),
}
UNREADABLE = {
    "/streams/zone-1-denied": "GROUP_AUTHORIZATION_FAILED",
    "/streams/zone-1-listed/stateful_tasks": "no member tells its offsets",
    "/streams/zone-1-fresh/stateful_tasks": NO_EVIDENCE,
    "/streams/zone-1-old/clients/0/tags": "SubscriptionInfo version 10 has no tags",
    "/streams/zone-1-gone": "SubscriptionInfo version 5",
    "/streams/4200": "COORDINATOR_NOT_AVAILABLE",
    "/groups/4300": "COORDINATOR_NOT_AVAILABLE",
}


def random_applications(count: int) -> dict[str, dict]:
    """Applications of up to six clients, each task with as many standbys as its policy line wants, put anywhere."""
    rng, found = random.Random(7), {}
    for n in range(count):
        tags, aware = application(rng, rng.randint(2, 6))
        group, standbys = f"random-{len(aware)}-{n}", 2 if len(aware) == 3 else 1
        clients = [{"process": f"p{c}", "tags": t, "active": [], "standby": []} for c, t in enumerate(tags)]
        tasks = [f"0_{t}" for t in range(rng.randint(1, 3))]
        for task in tasks:
            active, *rest = rng.sample(range(len(tags)), min(standbys + 1, len(tags)))
            clients[active]["active"].append(task)
            for c in rest:
                clients[c]["standby"].append(task)
        found[group] = app(group, "", stateful_tasks=tasks) | {"clients": clients}
    return found


RANDOM = random_applications(400)


GROUPS = [*(a for a, _ in KAFKA.values()), *STATES.values(), *RANDOM.values()]
DOCUMENTS = [
    document(cluster="streams", streams=GROUPS, unreadable=UNREADABLE),
    document(cluster="blind", streams=[], unreadable={"/streams": "CLUSTER_AUTHORIZATION_FAILED"}),
    document(cluster="none"),
]
PARTS = [Part("nothing", POLICY, DOCUMENTS, (("down", "no answer"),))]


@pytest.fixture(scope="module")
def judge(judged_once) -> Judge:
    return judged_once(*PARTS)[0]


@pytest.fixture(scope="module")
def found(judged_once) -> list[dict]:
    return judged_once(*PARTS)[1]


def spread(found: list[dict], group: str) -> dict:
    return one(found, control="standby-spread", resource=group, resource_type="application")


def replicas(found: list[dict], group: str) -> dict:
    return one(found, control="standby-replicas", resource=group, resource_type="application")


@pytest.mark.parametrize("case", KAFKA)
def test_placements_of_kafkas_own_tests(found: list[dict], case: str) -> None:
    group, category = KAFKA[case][0]["group"], KAFKA[case][1]
    finding = spread(found, group)
    assert (finding["outcome"], finding["category"]) == ("FAIL" if category else "PASS", category)
    assert finding["severity"] == {"below-achievable": "warning", "below-ideal": "info", None: None}[category]


def test_what_a_finding_says(found: list[dict]) -> None:
    finding = spread(found, "both-2-partial-4-5")
    (task,) = finding["observed"]["tasks"]
    assert finding["observed"]["category"] == "below-achievable"
    assert task["task"] == "0_0" and task["tags"] == ["zone", "cluster"] and task["clients"] == ["1", "4", "5"]
    assert task["achievable"] == ["2", "3", "5", "6"]
    assert finding["required"] == {"rack_aware_tags": ["zone", "cluster"]}
    assert finding["message"].startswith("Kafka's assignor can't have placed 1 of 1 stateful tasks as they are")
    assert "2, 3, 5, 6" in finding["message"]
    better = spread(found, "both-2-dead-end")["observed"]["tasks"][0]
    assert (better["better"], better["tags"]) == (["3", "4"], ["zone"])


def test_random_applications_are_judged_as_the_naive_walk_does(found: list[dict]) -> None:
    seen: dict[str | None, int] = {}
    for group, stated in RANDOM.items():
        tags = [c["tags"] for c in stated["clients"]]
        aware = ("zone", "cluster", "host")[: int(group.split("-")[1])]
        worst: dict[str, dict[str, set[str]]] = {"below-achievable": {}, "below-ideal": {}}
        for task in stated["stateful_tasks"]:
            (active,) = (n for n, c in enumerate(stated["clients"]) if task in c["active"])
            held = frozenset(n for n, c in enumerate(stated["clients"]) if task in c["standby"])
            possible = walk.sets(tags, aware, active, len(held))
            reach = {f"p{n}" for s in possible for n in s}
            if held not in possible:
                worst["below-achievable"][task] = reach
            elif walk.better(tags, aware, active, held):
                worst["below-ideal"][task] = reach
        category = next((name for name, tasks in worst.items() if tasks), None)
        finding = spread(found, group)
        assert (finding["category"], finding["outcome"]) == (category, "FAIL" if category else "PASS"), stated
        told = {(t["category"], t["task"]): set(t["achievable"]) for t in finding["observed"]["tasks"]}
        assert told == {(name, task): reach for name, tasks in worst.items() for task, reach in tasks.items()}
        seen[category] = seen.get(category, 0) + 1
    assert min(seen.values()) >= 8 and len(seen) == 3


@pytest.mark.parametrize(
    ("group", "outcome", "words"),
    [
        ("zone-1-moving", "UNKNOWN", "in transition"),
        ("zone-1-rebalancing", "UNKNOWN", "PreparingRebalance"),
        ("zone-1-denied", "UNKNOWN", "GROUP_AUTHORIZATION_FAILED"),
        ("zone-1-listed", "UNKNOWN", "stateful_tasks could not be read: no member tells its offsets"),
        ("zone-1-gone", "UNKNOWN", "SubscriptionInfo version 5"),
        ("4200", "UNKNOWN", "COORDINATOR_NOT_AVAILABLE"),  # the lists aren't that long: it is a name
        ("4300", "UNKNOWN", "COORDINATOR_NOT_AVAILABLE"),
        ("zone-1-stateless", "NOT_APPLICABLE", "no stateful task"),
        ("unnamed", "NOT_APPLICABLE", "no line of the policy"),
    ],
)
def test_groups_that_neither_control_judges(found: list[dict], group: str, outcome: str, words: str) -> None:
    for finding in (spread(found, group), replicas(found, group)):
        assert finding["outcome"] == outcome and words in finding["message"]


@pytest.mark.parametrize(
    ("group", "words"),
    [
        ("zone-1-moving", "Stable"),
        ("zone-1-rebalancing", "Stable"),
        ("zone-1-denied", "Let the auditor describe the group"),
        ("zone-1-listed", "Let the auditor describe the group"),
        ("zone-1-gone", "the application's release of Kafka Streams"),
        ("zone-1-fresh", "after the group's next rebalance"),
    ],
)
def test_what_helps_where_an_application_is_unknown(found: list[dict], group: str, words: str) -> None:
    for finding in (spread(found, group), replicas(found, group)):
        assert finding["outcome"] == "UNKNOWN" and words in finding["remediation"]


@pytest.mark.parametrize(
    ("group", "outcome", "standbys", "words"),
    [
        ("zone-1-none", "FAIL", 0, "1 of 2 stateful tasks have fewer than 1 standby: 0_1 has 0"),
        ("zone-1-own", "FAIL", 0, "0_0 has 0"),
        ("zone-1-lost", "UNKNOWN", 1, "0_0 has no active task, or several"),
        ("zone-1-twice", "UNKNOWN", 1, "0_0 has no active task, or several"),
        ("both-2-alone", "FAIL", 1, "2 instances are too few for them"),
        ("zone-1-threads", "PASS", 1, None),
        ("zone-1-old", "PASS", 1, None),
        ("zone-1-streams", "PASS", 1, None),
        ("free-0", "PASS", 0, None),
        ("tags-only", "NOT_APPLICABLE", 1, "doesn't state standby_replicas"),
    ],
)
def test_standbys_are_counted(found: list[dict], group: str, outcome: str, standbys: int, words: str | None) -> None:
    finding = replicas(found, group)
    assert (finding["outcome"], finding["observed"]["standby_replicas"]) == (outcome, standbys)
    assert finding["message"] is None if words is None else words in finding["message"]


@pytest.mark.parametrize(
    ("group", "outcome", "category", "words"),
    [
        ("tags-only", "FAIL", "below-achievable", "0_0 on a, b shares zone; its standby could have been on c"),
        ("zone-1-streams", "NOT_APPLICABLE", None, "KIP-1071"),
        ("free-0", "NOT_APPLICABLE", None, "doesn't state rack_aware_tags"),
        ("zone-1-untagged", "UNKNOWN", None, "a (+1 more) carries no tag zone"),
        ("zone-1-old", "UNKNOWN", None, "a client's tags are unknown: SubscriptionInfo version 10 has no tags"),
        ("zone-1-mixed", "UNKNOWN", None, "b carries no tag zone"),
        ("zone-1-moved", "FAIL", "below-ideal", "1 of 1 stateful tasks could be spread better: 0_0 on p1, p2"),
        ("zone-1-lost", "UNKNOWN", None, "0_0 has no active task, or several"),
        ("zone-1-limits", "FAIL", "tag-limits", "the value of tag zone has 31 characters, 30 are allowed"),
        ("zone-1-<b>\n", "FAIL", "below-achievable", "{}\x1b[31m"),
        ("zone-1-threads", "PASS", None, None),
    ],
)
def test_where_standbys_stand(found: list[dict], group: str, outcome: str, category: str | None, words) -> None:
    finding = spread(found, group)
    assert (finding["outcome"], finding["category"]) == (outcome, category)
    assert finding["message"] is None if words is None else words in finding["message"]


def test_what_a_zone_takes_with_it(found: list[dict]) -> None:
    lost = {(r["value"]): r["tasks"] for r in spread(found, "tags-only")["observed"]["losses"]}
    assert lost == {"az1": ["0_0"], "az2": []}


def test_groups_that_cant_be_listed_are_unknown_for_the_cluster(found: list[dict]) -> None:
    for control in ("standby-replicas", "standby-spread"):
        assert one(found, control=control, cluster="blind")["outcome"] == "UNKNOWN"
        assert one(found, control=control, cluster="down")["outcome"] == "UNKNOWN"
        assert not pick(found, control=control, cluster="none")
