"""Waivers, providers' duties, and what changed between two runs: one pair of fleets, judged one after the other.

The second run has more clusters: a platform that hides what is in sync, diskless topics, and two days of the same waivers.
"""

import copy

import pytest

from durability.plan.inventory import Inventory, compare
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.policy.model import Cluster
from tests.support.judge import Judge, one, pick
from tests.support.policy import policy, waivers
from tests.support.topology import document

pytestmark = pytest.mark.slow

BROKERS = "0:az1 1:az2 2:az3"
POLICY = """
tiers:
  critical: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, unclean_leader_election: false}
  loose: {replication_factor: 1, min_insync_replicas: 1}
topics:
  - {match: {topic: "relaxed"}, tier: TIER}
  - {tier: critical}
"""
STRICT, LOOSE = (policy(POLICY.replace("TIER", tier)) for tier in ("critical", "loose"))
WAIVERS = waivers("""
waivers:
  - {control: "replication-factor", cluster: ".*", resource: "waived.*", owner: team-a, approved_by: cto, reason: "<b>soon</b>",
     ticket: T-1, expires: 2026-11-21}
  - {control: "replication-factor", cluster: ".*", resource: "lapsed", owner: team-b, approved_by: cto, reason: later,
     ticket: T-2, expires: 2026-11-20}
  - {control: "write-.*", cluster: ".*", resource: "nobody", owner: team-c, approved_by: cto, reason: none, ticket: T-3,
     expires: 2026-11-20}
""")
LATER = "2026-11-22T12:00:00Z"


def fleet(second=False):
    rows = {
        "stays": "0,1",
        "mended": "0,1,2" if second else "0,1",
        "deleted": None if second else "0,1",
        "relaxed": "0,1",
        "waived-now": "0,1",
        "fresh": "0,1" if second else "0,1,2",
    }
    table = "topic replicas isr min\n" + "\n".join(f"{t} {r} {r} 1" for t, r in rows.items() if r)
    sick = (
        "topic leader replicas isr min\nt 0 0,1,2 0,1,2 2"
        if second
        else "topic leader replicas isr min\nt 0 0,1,2 0,1 2"
    )
    options = {"captured_at": LATER} if second else {}
    blind = {} if second else {"unreadable": {"/topics/0/configs": "TIMEOUT"}}
    turned = {"unreadable": {"/topics/0/configs": "TIMEOUT"}} if second else {}
    return [
        document(table, brokers=BROKERS, cluster="c", **options),
        document(sick, brokers=BROKERS if second else "0:az1 1:az2 2:az3!", cluster="healed", **options),
        document("topic replicas min\nt 0,1,2 1", brokers=BROKERS, cluster="blinded", **turned, **options),
        document("topic replicas min\nt 0,1,2 1", brokers=BROKERS, cluster="regained", **blind, **options),
        worsens(second, **options),
        *([] if second else [document("topic replicas min\nt 0,1 1", brokers=BROKERS, cluster="lost")]),
    ]


def worsens(second, **options):
    """One broker is down, then two."""
    isr, down = ("0", "1:az2! 2:az3!") if second else ("0,1", "1:az2 2:az3!")
    return document(
        f"topic leader replicas isr min\nt 0 0,1,2 {isr} 2", brokers=f"0:az1 {down}", cluster="worse", **options
    )


WAIVED = "topic replicas isr min\nwaived-1 0,1 0,1 1\nlapsed 0,1 0,1 1\nplain 0,1 0,1 1"
DISKLESS = "topic leader replicas isr min\nevents - - - -\nodd 1 0 0,1 -\norders 0 0,1 0,1 2"
ON = {"events": {"diskless.enable": "true"}, "odd": {"inkless.enable": "true"}}
SEEN_ONCE = [
    document(
        "topic replicas isr min\nt 0,1,2 0,1,2 2",
        brokers=BROKERS,
        cluster="rp",
        cluster_provider="redpanda",
        quorum=None,
    ),
    document(DISKLESS, brokers=BROKERS, cluster="dl", configs=ON, broker_configs={"min.insync.replicas": "2"}),
    document(WAIVED, brokers=BROKERS, cluster="today"),
    document(WAIVED, brokers=BROKERS, cluster="tomorrow", captured_at="2026-11-22T00:00:00Z"),
]


@pytest.fixture(scope="module")
def judges(spark):
    """The judge after each of three runs, with its findings as `found`."""
    judge, judges = Judge(spark), []

    def run(documents, *arguments, **options):
        judge.found = judge.run(documents, *arguments, **options)
        judges.append(copy.copy(judge))

    run(fleet(), STRICT, result="r1", inventory=compared("c", "worse", "ghost", "dropped"))
    run(
        [*fleet(second=True), *SEEN_ONCE],
        LOOSE,
        WAIVERS,
        result="r2",
        previous=judge.plan,
        failed=[("lost", "no route")],
        providers={"healed": "confluent"},
        inventory=compared("c", "worse", "healed", "ghost", previous=["r1"]),
    )
    run(
        [],
        LOOSE,
        WAIVERS,
        result="r3",
        previous=judge.plan,
        failed=[("lost", "still no route")],
        inventory=compared(previous=["r2"], problem="no route"),
    )
    return judges


@pytest.fixture(scope="module")
def runs(judges):
    return [judge.found for judge in judges]


@pytest.fixture(scope="module")
def judge(judges):
    """Of the second run."""
    return judges[1]


def compared(*names: str, previous: list[str] = (), problem: str | None = None) -> Inventory:
    """What cmdb lists, compared with the fleet."""
    clusters = [Cluster(name, name) for name in ("c", "healed", "worse", "blinded", "lost")]
    listing = Listing(InventorySource("cmdb", "csv"), [Entry((name,)) for name in names], problem)
    return compare([listing], clusters, {}, previous)


def test_everything_is_new_on_the_first_run(runs):
    first, *_ = runs
    listed = [f for f in first if f["outcome"] not in ("PASS", "NOT_APPLICABLE")]
    assert {f["change"] for f in listed} == {"new"}
    assert {f["since"].isoformat() for f in listed} == {"2026-11-21T12:00:00+00:00"}


@pytest.mark.parametrize(
    "resource, outcome, change, why",
    [
        ("stays", "FAIL", "persisting", None),
        ("mended", "PASS", "resolved", "fixed"),
        ("deleted", "NOT_APPLICABLE", "resolved", "resource-deleted"),
        ("relaxed", "PASS", "resolved", "policy-changed"),
        ("fresh", "FAIL", "new", None),
    ],
)
def test_what_changed(runs, resource, outcome, change, why):
    mine = [f for f in pick(runs[1], cluster="c", control="replication-factor", resource=resource) if f["change"]]
    assert [(f["outcome"], f["change"], f["why"]) for f in mine] == [(outcome, change, why)]
    expected = "2026-11-22" if change == "new" else "2026-11-21"
    assert mine[0]["since"].date().isoformat() == expected


def test_ids_are_stable_and_unique(runs):
    first, second, _ = runs
    for found in runs:
        current = [f for f in found if f["change"] != "resolved"]
        assert len({(f["cluster"], f["id"]) for f in current}) == len(current)
    key = {"cluster": "c", "control": "replication-factor", "resource": "stays"}
    assert one(first, **key)["id"] == one(second, **key)["id"]


def fleets(found):
    """By cluster, what inventory-coverage says: outcome, change and why."""
    mine = pick(found, control="inventory-coverage")
    return {(f["cluster"], f["outcome"], f["change"], f["why"]) for f in mine if f["change"]}


def test_clusters_of_the_inventory_are_compared_with_the_last_run_that_had_one(runs):
    first, second, _ = runs
    assert fleets(first) == {(name, "FAIL", "new", None) for name in ("ghost", "dropped", "healed", "blinded", "lost")}
    assert fleets(second) == {
        ("ghost", "FAIL", "persisting", None),
        ("blinded", "FAIL", "persisting", None),
        ("lost", "FAIL", "persisting", None),
        ("dropped", "NOT_APPLICABLE", "resolved", "resource-deleted"),
        ("healed", "PASS", "resolved", "fixed"),
    }
    gone = one(second, control="inventory-coverage", cluster="dropped")
    assert gone["message"].startswith("was: in inventory (cmdb), not audited")
    assert gone["captured_at"].isoformat() == "2026-11-22T12:00:00+00:00"


def test_an_inventory_that_cant_be_read_is_one_unknown_and_resolves_nothing(runs):
    (only,) = pick(runs[2], control="inventory-coverage")
    assert (only["cluster"], only["resource_type"], only["resource"]) == ("inventory", "inventory", "cmdb")
    assert (only["outcome"], only["change"], only["cause"]) == ("UNKNOWN", "new", "source cmdb unreadable")
    assert only["message"].endswith("are audited: no route")


def test_a_cause_that_went_away(runs):
    healed = [f for f in pick(runs[1], cluster="healed", control="partition-health") if f["change"] == "resolved"]
    assert {(f["category"], f["why"]) for f in healed} == {
        ("at-min-isr", "cause-cleared"),
        ("under-replicated", "cause-cleared"),
    }
    # It weighs nothing and asks for nothing any more, and says what was.
    assert {(f["category"], f["severity"], f["previous_severity"], f["remediation"]) for f in healed} == {
        ("at-min-isr", None, "warning", None),
        ("under-replicated", None, "info", None),
    }
    assert all(f["message"].startswith("was: partition") for f in healed)


def test_what_gets_worse_is_not_resolved(runs):
    health = pick(runs[1], cluster="worse", control="partition-health")
    assert {(f["category"], f["change"]) for f in health} == {
        ("under-min-isr", "new"),
        ("under-replicated", "persisting"),
    }


def test_what_turns_unknown_resolves_nothing(runs):
    _, second, _ = runs
    blinded = pick(second, cluster="blinded", control="min-insync-replicas", resource="t")
    assert [(f["outcome"], f["change"]) for f in blinded] == [("UNKNOWN", "persisting")]
    assert {f["change"] for f in pick(second, cluster="lost")} == {"new", "persisting"}  # what failed goes on unmended
    of_others = [f for f in pick(second, cluster="lost") if f["control"] != "inventory-coverage"]
    assert {f["outcome"] for f in of_others} == {"UNKNOWN"}


def test_each_finding_says_what_it_was_in_the_run_before(runs):
    first, second, _ = runs
    was = ("previous_outcome", "previous_severity")
    assert {tuple(f[name] for name in was) for f in first} == {(None, None)}
    key = {"control": "min-insync-replicas", "resource": "t"}
    regained = one(second, cluster="regained", **key)
    assert (regained["outcome"], regained["change"], regained["previous_outcome"]) == ("FAIL", "persisting", "UNKNOWN")
    assert regained["previous_severity"] is None
    severity = one(first, cluster="blinded", **key)["severity"]
    assert one(second, cluster="blinded", **key)["previous_severity"] == severity is not None
    before = {f["id"]: (f["outcome"], f["severity"]) for f in first if f["change"]}
    told = {f["id"]: tuple(f[name] for name in was) for f in second if f["change"] and f["cluster"] != "lost"}
    assert told == {name: before.get(name, (None, None)) for name in told}


def test_a_cluster_that_stays_unreadable_is_unknown_since_it_was(runs):
    *_, second, third = runs
    of_others = [f for f in third if f["control"] != "inventory-coverage"]
    assert {(f["cluster"], f["outcome"], f["change"]) for f in of_others} == {("lost", "UNKNOWN", "persisting")}
    assert {f["since"] for f in third} == {f["since"] for f in pick(second, cluster="lost")}


def test_the_providers_duty_is_not_applicable(runs):
    healed = {f["control"]: f for f in pick(runs[1], cluster="healed", change=None)}
    for control in ("broker-rack", "controller-quorum", "broker-defaults"):
        assert healed[control]["outcome"] == "NOT_APPLICABLE"
        assert healed[control]["message"]


def test_what_a_platform_hides_is_unknown(judge):
    found = {f["control"]: f for f in pick(judge.found, cluster="rp")}
    hidden = found["partition-health"]
    assert (hidden["outcome"], hidden["cause"]) == ("UNKNOWN", "provider:redpanda")
    assert "every replica in sync" in hidden["message"]
    assert "own tools" in hidden["remediation"]
    assert "PASS" not in {found[control]["outcome"] for control in ("write-headroom", "acked-durability")}
    assert found["min-insync-replicas"]["outcome"] == "NOT_APPLICABLE"
    assert found["replication-factor"]["outcome"] in ("PASS", "FAIL")


def test_a_diskless_topic_has_no_replicas_to_judge_and_its_neighbours_have(judge):
    found = pick(judge.found, cluster="dl")
    of = {name: {f["control"]: f for f in found if f["resource"] == name} for name in ("events", "odd", "orders")}
    for name in ("events", "odd"):
        assert {f["outcome"] for f in of[name].values()} == {"NOT_APPLICABLE"}
        assert "diskless" in of[name]["replication-factor"]["message"]
    assert of["orders"]["replication-factor"]["outcome"] == "FAIL"
    # Nothing of it counts as offline, unknown or a topic that a plan, or a cluster's default, has to spare.
    (counted,) = pick(judge.latest["health_counters"].to_pylist(), cluster="dl", topic=None)
    assert (counted["offline"], counted["unknown"], counted["rack_unknown"]) == (0, 0, 0)
    posture = {row["topic"]: row for row in pick(judge.posture(), cluster="dl")}
    assert [posture[name]["reassign"] for name in ("events", "odd", "orders")] == [False, False, True]
    assert not any(c["known"] for c in posture["events"]["checks"])


@pytest.fixture(scope="module")
def waived(judge):
    return [f for f in judge.found if f["cluster"] in ("today", "tomorrow")]


def test_a_waiver_counts_through_its_day_and_not_longer(waived):
    key = {"control": "replication-factor", "resource": "waived-1"}
    exempt = one(waived, cluster="today", **key)
    assert (exempt["outcome"], exempt["waiver"], exempt["severity"]) == ("EXEMPT", 0, "critical")
    assert exempt["observed"] == {"replication_factor": 2}
    late = one(waived, cluster="tomorrow", **key)
    assert (late["outcome"], late["waiver"]) == ("FAIL", None)
    assert one(waived, cluster="today", control="replication-factor", resource="plain")["outcome"] == "FAIL"
    # Another control of the same topic isn't covered
    assert one(waived, cluster="today", control="min-insync-replicas", resource="waived-1")["outcome"] == "FAIL"


def test_an_expired_waiver_that_would_still_match_is_a_finding(waived):
    expired = pick(waived, control="waiver-expired")
    assert {(f["cluster"], f["resource"], f["outcome"]) for f in expired} == {
        ("today", "replication-factor:.*:lapsed", "FAIL"),
        ("tomorrow", "replication-factor:.*:lapsed", "FAIL"),
        ("tomorrow", "replication-factor:.*:waived.*", "FAIL"),
    }
    for finding in expired:
        assert (finding["severity"], finding["cause"]) == ("warning", f"waiver:{finding['resource']}")
        assert "would still match 1 failed finding" in finding["message"]
        assert finding["remediation"].startswith("Fix")
