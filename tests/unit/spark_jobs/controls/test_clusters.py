"""Controls on brokers, clusters and tiers, and what can't be read, each a small cluster, judged as one fleet."""

import pytest

from durability.catalogue import CONTROLS as CATALOGUE
from durability.catalogue import SCALAR_CONTROLS
from spark_jobs.controls import inventory_coverage, rules, waiver_expired
from tests.support.joined import Part
from tests.support.judge import one, pick
from tests.support.policy import policy
from tests.support.topology import document

THREE = "0:az1 1:az2 2:az3"
TABLE = "topic replicas min\nt 0,1,2 2"
STRONG = {"default.replication.factor": "3", "min.insync.replicas": "2", "auto.create.topics.enable": "false"}
POLICY = policy("""
tiers:
  wide: {replication_factor: 3, replica_racks: 4}
  critical: {replication_factor: 3, min_insync_replicas: 2, write_headroom: 1, replica_racks: 2, min_insync_racks: 2,
             acked_copies: 2, acked_racks: 2, unclean_leader_election: false}
topics:
  - {match: {topic: "wide"}, tier: wide}
  - {tier: critical}
applications: [{match: {group: counts}, rack_aware_tags: [zone], standby_replicas: 1}]
""")
COUNTS = {
    **{"group": "counts", "type": "classic", "state": "Stable", "in_transition": False, "stateful_tasks": ["0_0"]},
    "clients": [
        {"process": "p1", "tags": {"zone": "az1"}, "active": ["0_0"], "standby": []},
        {"process": "p2", "tags": {"zone": "az2"}, "active": [], "standby": ["0_0"]},
    ],
}


def cluster(name, table=TABLE, brokers=THREE, **options):
    return document(table, brokers=brokers, cluster=name, **{"broker_configs": STRONG, **options})


def controllers(*configs):
    return [{"id": 101 + i, "configs": c} for i, c in enumerate(configs)]


UNCLEAN = "unclean.leader.election.enable"


def inherited(name, value="2", **options):
    """The topic's min.insync.replicas is what one broker answered from its own settings."""
    answered = {"t": {"min.insync.replicas": "broker"}}
    return cluster(name, table=f"topic replicas min\nt 0,1,2 {value}", sources=answered, **options)


def with_elr(name, **options):
    """Its topic inherits a min.insync.replicas that is too low."""
    weak = {**STRONG, "min.insync.replicas": "1"}
    on = {"eligible.leader.replicas.version": 1}
    return cluster(name, table="topic replicas\nt 0,1,2", broker_configs=weak, features=on, **options)


THROTTLED = {0: {"configs": {"leader.replication.throttled.rate": "1000"}}}
BROKER_2_UNREAD = {"/brokers/2/configs": "CLUSTER_AUTHORIZATION_FAILED"}
FLEET = [
    cluster("good", features={"eligible.leader.replicas.version": 1}, streams=[COUNTS]),
    # controller-quorum
    cluster("one-voter", quorum="101:az1"),
    cluster("two-in-a-rack", quorum="101:az1 102:az1 103:az2"),
    cluster(
        "two-racks", brokers="0:az1 1:az2 2:az1", quorum="101:az1 102:az1 103:az2"
    ),
    cluster("lagging", quorum="101:az1 102:az2:10001 103:az3:10000"),
    cluster("even", quorum="101:az1 102:az2 103:az3 104:az4"),
    cluster("rackless-voters", quorum="101 102 103:az2"),
    cluster("combined", quorum="0 1 2"),
    cluster("zookeeper", quorum=None, version="3.6"),
    cluster("quorum-unread", unreadable={"/cluster/quorum": "CLUSTER_AUTHORIZATION_FAILED"}),
    # eligible-leader-replicas
    cluster("before-4.0", version="3.9"),
    cluster("features-unread", unreadable={"/cluster/features": "TIMEOUT"}),
    # log-dirs
    cluster("disk-lost", each_broker={1: {"offline_log_dirs": 1}}),
    cluster(
        "disk-unread",
        each_broker={n: {"offline_log_dirs": 0} for n in range(3)},
        unreadable={"/brokers/1/offline_log_dirs": "TIMEOUT"},
    ),
    # broker-defaults
    cluster("weak", broker_configs={**STRONG, "default.replication.factor": "2"}),
    cluster("weak-auto", broker_configs={}),
    cluster("differ", each_broker={1: {"configs": {"min.insync.replicas": "3"}}}),
    cluster("configs-unread", unreadable={"/brokers/1/configs": "CLUSTER_AUTHORIZATION_FAILED"}),
    cluster("dead-configs", brokers="0:az1 1:az2 2:az3!", unreadable={"/brokers/2/configs": "down"}),
    # unclean-leader-election
    cluster("controllers-say-yes", cluster_controllers=controllers({}, {UNCLEAN: "true"})),
    cluster(
        "controllers-say-no", broker_configs={**STRONG, UNCLEAN: "true"}, cluster_controllers=controllers({}, {})
    ),
    cluster(
        "controllers-unread",
        table="topic replicas min\nt 0,1,2 2\nsays-so 0,1,2 2",
        configs={"says-so": {UNCLEAN: "true"}},
        unreadable={"/cluster/controllers": "TIMEOUT"},
    ),
    # policy-feasible
    cluster("few-racks", table="topic replicas min\nt 0,1,2 2\nwide 0,1,2 2"),
    cluster("few-brokers", table="topic replicas min\nt 0,1 2", brokers="0:az1 1:az2"),
    # reassignment-leftovers
    cluster("throttled", each_broker=THROTTLED),
    cluster(
        "topic-throttled", configs={"t": {"follower.replication.throttled.replicas": "0:1,0:2"}}
    ),
    cluster(
        "throttled-at-work", table="topic replicas isr min adding\nt 0,1,2,3 0,1,2 2 3", brokers=THREE + " 3:az1",
        each_broker=THROTTLED,
    ),
    cluster(
        "stuck", table="topic replicas isr min adding\nt 0,1,2,3 0,1,2 2 3", brokers=THREE + " 3:az1!"
    ),
    # what can't be read
    cluster("topic-configs-unread", unreadable={"/topics/0/configs": "TOPIC_AUTHORIZATION_FAILED"}),
    cluster("isr-unread", unreadable={"/topics/0/partitions/0/isr": "TIMEOUT"}),
    cluster("leader-unread", unreadable={"/topics/0/partitions/0/leader": "TIMEOUT"}),
    cluster("partitions-unread", unreadable={"/topics/0/partitions": "TIMEOUT"}),
    cluster("brokers-unread", brokers="", unreadable={"/brokers": "CLUSTER_AUTHORIZATION_FAILED"}),
    inherited("inherited"),
    inherited("inherited-unread", unreadable=BROKER_2_UNREAD),
    inherited("inherited-unread-1", value="1", unreadable=BROKER_2_UNREAD),
    inherited("inherited-down", brokers="0:az1 1:az2 2:az3!", unreadable=BROKER_2_UNREAD),
    with_elr("elr-all-seen", cluster_hidden_partitions=0),
    with_elr("elr-hidden", cluster_hidden_partitions=3),
    with_elr("elr-may-hide", cluster_hidden_partitions=None),
    # partitions of one topic that differ
    cluster("two-factors", table="topic replicas min\nt 0,1,2 2\nt 1 2"),
    cluster("a-topic-unread", unreadable={"/topics/payments": "TOPIC_AUTHORIZATION_FAILED"}),
    cluster("liveness-unread", unreadable={"/brokers/0/live": "TIMEOUT"}),
]  # fmt: skip

CONTROLS = list(rules())
# Of a setting that a later control reads nothing is said here.
EARLIER = [name for name in CONTROLS if not CATALOGUE[name].carried]
TOPIC_CONTROLS = {"acked-durability", "min-insync-racks-valid", "partition-health"}
TOPIC_CONTROLS |= {name for name in SCALAR_CONTROLS if name in EARLIER}
FROM_CONFIGS = {
    "acked-durability",
    "min-insync-replicas",
    "min-isr-within-replication-factor",
    "write-headroom",
    "unclean-leader-election",
    "partition-health",
    "isr-rack-spread",
    "min-insync-racks-valid",
}


@pytest.fixture(scope="module")
def found(judged_once):
    return judged_once(PARTS[0])[1]


def test_a_good_cluster_has_nothing_to_say(found):
    mine = pick(found, cluster="good")
    assert {f["control"] for f in mine} == set(CONTROLS)
    mine = [f for f in mine if f["control"] in EARLIER]
    # A document that doesn't state log dirs says nothing of them, and one alone nothing of what was before.
    silent = {("log-dirs", "NOT_APPLICABLE"), ("at-min-isr-over-time", "NOT_APPLICABLE")}
    # The tiers require no topic to survive a loss.
    silent |= {("broker-loss", "NOT_APPLICABLE"), ("rack-loss", "NOT_APPLICABLE")}
    assert {(f["control"], f["outcome"]) for f in mine if f["outcome"] != "PASS"} <= silent


@pytest.mark.parametrize(
    "name, outcome, severity, problems",
    [
        ("one-voter", "FAIL", "critical", ["too-few-voters"]),
        ("two-in-a-rack", "FAIL", "critical", ["rack-majority"]),
        ("two-racks", "FAIL", "critical", ["rack-majority"]),
        ("lagging", "FAIL", "warning", ["lagging-voter"]),
        ("even", "FAIL", "info", ["even-number"]),
        ("rackless-voters", "UNKNOWN", None, None),
        ("combined", "PASS", None, []),
        ("zookeeper", "NOT_APPLICABLE", None, None),
        ("quorum-unread", "UNKNOWN", None, None),
    ],
)
def test_controller_quorum(found, name, outcome, severity, problems):
    finding = one(found, cluster=name, control="controller-quorum")
    assert finding["outcome"] == outcome, finding
    assert severity is None or finding["severity"] == severity
    assert problems is None or finding["observed"]["problems"] == problems


@pytest.mark.parametrize(
    "control, outcomes",
    [
        (
            "eligible-leader-replicas",
            {"good": "PASS", "weak": "FAIL", "before-4.0": "NOT_APPLICABLE", "features-unread": "UNKNOWN"},
        ),
        (
            "broker-defaults",
            {
                "good": "PASS",
                "weak": "FAIL",
                "weak-auto": "FAIL",
                "differ": "FAIL",
                "configs-unread": "UNKNOWN",
                "dead-configs": "PASS",
                "controllers-say-yes": "FAIL",
            },
        ),
        (
            "reassignment-leftovers",
            {
                "good": "PASS",
                "throttled": "FAIL",
                "topic-throttled": "FAIL",
                "throttled-at-work": "PASS",
                "stuck": "FAIL",
                "configs-unread": "UNKNOWN",
            },
        ),
    ],
)
def test_cluster_controls(found, control, outcomes):
    assert {name: one(found, cluster=name, control=control)["outcome"] for name in outcomes} == outcomes


def test_broker_defaults_name_their_problems(found):
    problems = {
        name: one(found, cluster=name, control="broker-defaults")["observed"]["problems"]
        for name in ("weak", "weak-auto", "differ")
    }
    assert problems == {
        "weak": ["default.replication.factor"],
        "weak-auto": ["default.replication.factor", "min.insync.replicas", "auto.create.topics.enable"],
        "differ": ["brokers-disagree"],
    }


def test_log_dirs(found):
    assert one(found, cluster="disk-lost", control="log-dirs", resource="1")["outcome"] == "FAIL"
    assert one(found, cluster="disk-unread", control="log-dirs", resource="1")["outcome"] == "UNKNOWN"


def test_controllers_decide_on_unclean_election_and_brokers_dont(found):
    control = "unclean-leader-election"
    assert one(found, cluster="controllers-say-yes", control=control, resource="t")["outcome"] == "FAIL"
    assert one(found, cluster="controllers-say-no", control=control, resource="t")["outcome"] == "PASS"
    unread = pick(found, cluster="controllers-unread", control=control)
    assert {(f["resource_type"], f["resource"], f["outcome"]) for f in unread} == {
        ("topic", "says-so", "FAIL"),
        ("cluster", "controllers-unread", "UNKNOWN"),
    }


def test_a_tier_that_cant_be_met_is_one_cause(found):
    racks = one(found, cluster="few-racks", control="policy-feasible", resource="wide")
    assert (racks["outcome"], racks["observed"], racks["required"]["racks"]) == ("FAIL", {"brokers": 3, "racks": 3}, 4)
    assert one(found, cluster="few-racks", control="policy-feasible", resource="critical")["outcome"] == "PASS"
    explained = one(found, cluster="few-racks", control="replica-rack-spread", resource="wide")
    assert explained["cause"] == racks["cause"]
    brokers = one(found, cluster="few-brokers", control="policy-feasible", resource="critical")
    assert brokers["observed"]["brokers"] == 2
    assert one(found, cluster="few-brokers", control="replication-factor")["cause"] == brokers["cause"]


MET = policy("""
tiers:
  survives-a-rack: {acked_racks: 2, survive: [rack]}
  survives-a-broker: {acked_copies: 3, survive: [broker]}
  headroom: {acked_copies: 3, write_headroom: 1}
  two-racks: {acked_racks: 2, write_headroom: 1}
  plain: {acked_copies: 3, acked_racks: 2}
topics:
  - {match: {topic: a}, tier: survives-a-rack}
  - {match: {topic: b}, tier: survives-a-broker}
  - {match: {topic: c}, tier: headroom}
  - {match: {topic: d}, tier: two-racks}
  - {tier: plain}
""")
# By cluster: its brokers, and the tiers that it can't meet.
UNMET = {
    "limited-three": ("0:az1 1:az2 2:az3", {"survives-a-broker", "headroom"}),
    "limited-two": ("0:az1 1:az1 2:az2 3:az2", {"survives-a-rack"}),
    # m = 4 is needed to leave az1, and all five have it then
    "limited-lopsided": ("0:az1 1:az1 2:az1 3:az1 4:az2", {"survives-a-rack", "two-racks"}),
    "limited-enough": ("0:az1 1:az2 2:az3 3:az1", set()),
}
EACH_TIER = "topic replicas min\n" + "\n".join(f"{name} 0,1,2 2" for name in "abcde")
LIMITED = [document(EACH_TIER, brokers=brokers, cluster=name) for name, (brokers, _) in UNMET.items()]
PARTS = [Part("critical", POLICY, FLEET, (("gone", "connection refused"),)), Part("critical", MET, LIMITED)]


def test_what_is_acknowledged_and_what_may_be_lost_are_wanted_together(judged_once):
    """By hand: with min.insync.replicas m every ISR of size m must reach the racks, and what is lost comes on top."""
    found = judged_once(PARTS[1])[1]
    for name, (_, tiers) in UNMET.items():
        mine = pick(found, control="policy-feasible", cluster=name)
        assert {f["outcome"] for f in mine} <= {"PASS", "FAIL"} and len(mine) == 5
        assert {f["resource"] for f in mine if f["outcome"] == "FAIL"} == tiers, name


@pytest.mark.parametrize(
    "name, unknown",
    [
        ("topic-configs-unread", FROM_CONFIGS),
        ("isr-unread", {"isr-rack-spread", "partition-health"}),
        ("leader-unread", {"partition-health"}),
        ("liveness-unread", {"partition-health"}),
        ("partitions-unread", TOPIC_CONTROLS - {"unclean-leader-election"}),
    ],
)
def test_what_cant_be_read_never_passes(found, name, unknown):
    mine = {
        f["control"]: f["outcome"] for f in pick(found, cluster=name, resource_type="topic") if f["control"] in EARLIER
    }
    assert {c for c, outcome in mine.items() if outcome == "UNKNOWN"} == unknown, mine


def test_a_cluster_that_cant_be_read_is_unknown_in_every_control(found):
    mine = pick(found, cluster="gone")
    assert {f["control"] for f in mine} == set(CONTROLS)
    assert {f["outcome"] for f in mine} == {"UNKNOWN"}
    assert {f["message"] for f in mine} == {"snapshot failed: connection refused"}


def test_the_catalogue_says_which_controls_are_judged():
    judged = {c.id for c in CATALOGUE.values() if not c.planned}
    assert {*CONTROLS, waiver_expired.CONTROL, inventory_coverage.CONTROL} == judged


def test_unlisted_brokers_leave_nothing_that_needs_them_passing_or_failing(found):
    mine = pick(found, cluster="brokers-unread")
    needs_none = {
        "replication-factor",
        "eligible-leader-replicas",
        "controller-quorum",
        "min-isr-within-replication-factor",
    }
    decided = {f["control"] for f in mine if f["outcome"] in ("PASS", "FAIL") and f["control"] in EARLIER}
    assert decided <= needs_none | {"min-insync-replicas", "write-headroom"}, decided
    assert one(mine, control="policy-feasible", resource="critical")["outcome"] == "UNKNOWN"


def test_a_topic_that_could_not_be_read_makes_its_cluster_unknown(found):
    unlisted = one(found, cluster="a-topic-unread", control="partition-health", resource_type="cluster")
    assert (unlisted["outcome"], unlisted["severity"]) == ("UNKNOWN", None)


def test_an_unknown_verdict_advises_no_change(found):
    unknown = [f for f in pick(found, outcome="UNKNOWN") if f["resource_type"] == "topic"]
    assert {f["remediation"] for f in unknown} == {
        "Let the auditor read what is listed as unreadable, or do what its reason says. Then audit again"
    }
    assert {f["severity"] for f in unknown} == {None}


@pytest.mark.parametrize(
    "name, outcome",
    [
        ("inherited", "PASS"),
        ("inherited-unread", "UNKNOWN"),
        ("inherited-unread-1", "FAIL"),
        ("inherited-down", "PASS"),
    ],
)
def test_an_inherited_value_is_any_live_brokers(found, name, outcome):
    assert one(found, cluster=name, control="min-insync-replicas")["outcome"] == outcome


@pytest.mark.parametrize("name, shown", [("elr-all-seen", True), ("elr-hidden", False), ("elr-may-hide", False)])
def test_what_cant_be_seen_may_have_an_elr_or_few_replicas_so_only_the_topics_own_value_is_changed(found, name, shown):
    remediation = one(found, cluster=name, control="min-insync-replicas", resource="t")["remediation"]
    assert ("--entity-default" in remediation, "--entity-name t" in remediation) == (shown, not shown)
    defaults = one(found, cluster=name, control="broker-defaults")["remediation"]
    assert ("--entity-default --add-config min.insync.replicas" in defaults) == shown


@pytest.mark.parametrize(
    "name, says", [("elr-hidden", "3 partitions are on log dirs"), ("elr-may-hide", "could not be")]
)
def test_nothing_that_is_said_of_all_topics_passes_where_some_are_or_may_be_hidden(found, name, says):
    whole = one(found, cluster=name, control="partition-health", resource=name)
    assert (whole["outcome"], whole["cause"]) == ("UNKNOWN", "topics may be hidden")
    assert says in whole["message"] and "The topics that it sees are evaluated" in whole["message"]
    leftovers = one(found, cluster=name, control="reassignment-leftovers")
    assert (leftovers["outcome"], leftovers["cause"]) == ("UNKNOWN", "topics may be hidden")
    # Those that are shown are judged as where all are.
    outcomes = [
        {(f["control"], f["outcome"]) for f in found if f["cluster"] == c and f["resource_type"] == "topic"}
        for c in (name, "elr-all-seen")
    ]
    assert outcomes[0] == outcomes[1]
    assert one(found, cluster="elr-all-seen", control="reassignment-leftovers")["outcome"] == "PASS"


def test_the_numbers_of_a_finding_are_one_partitions(found):
    finding = one(found, cluster="two-factors", control="partition-health", category="at-min-isr")
    seen = finding["observed"]
    assert (seen["isr"], seen["replication_factor"], seen["effective_min_insync_replicas"]) == (1, 1, 1)
    assert finding["message"].startswith("partition 1: isr 1 of 1 replicas, effective min.insync.replicas 1;")
