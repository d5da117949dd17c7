"""Policy files: what they say, and what counts in their fingerprint."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest

from durability.errors import BadInput
from durability.plan.plan import policy_part
from durability.policy import Retention, fingerprint, load_clusters, load_policy, load_waivers
from durability.policy.model import Waiver
from durability.policy.terms import last_day, with_limits
from tests.support.policy import shipped
from tests.support.policy_files import POLICY, WAIVER, refused
from tests.support.tiers import tier_of


def test_a_policy_says_what_it_says(load):
    policy = load(load_policy, POLICY)
    assert policy.name == "payments"
    assert policy.last_tier == "critical"
    assert policy.tiers["critical"].to_dict() == {
        "replication_factor": 3,
        "min_insync_replicas": 2,
        "unclean_leader_election": False,
        "survive": ["broker", "rack"],
    }
    assert "min_insync_replicas" not in policy.tiers["scratch"].to_dict()
    assert policy.applications[0].rack_aware_tags == ("zone",)
    assert policy.readings.prolonged_after == timedelta(minutes=45)
    assert policy.readings.bouncing_within == timedelta(days=1)
    assert policy.maintenance[0].end == datetime(2026, 11, 21, 3, tzinfo=UTC)


def test_delays_by_category_and_tier(load):
    told = "{default: 40m, offline: 1m, tiers: {scratch: 1d, critical: {under-min-isr: 2m, default: 10m}}}"
    readings = load(load_policy, POLICY.replace("prolonged_after: 45m", f"prolonged_after: {told}")).readings
    minutes = {
        tier: [readings.delay(c, tier) / timedelta(minutes=1) for c in ("at-min-isr", "under-min-isr", "offline")]
        for tier in (None, "critical", "scratch")
    }
    assert minutes == {None: [40, 40, 1], "critical": [10, 2, 10], "scratch": [1440, 1440, 1440]}
    assert readings.shortest_delay == timedelta(minutes=1)
    assert readings.look_back == timedelta(days=2)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("soon", "expected a duration"),
        ("{offlin: 1m}", "did you mean offline?"),
        ("{offline: 1}", "expected a duration"),
        ("{tiers: {critica: 1m}}", 'tier "critica" is not defined; did you mean critical?'),
        ("{tiers: {critical: {tiers: {}}}}", "tiers"),
    ],
)
def test_delays_that_cant_be_right_are_refused(load, told, words):
    with pytest.raises(BadInput, match=re.escape(words)) as refused:
        load(load_policy, POLICY.replace("prolonged_after: 45m", f"prolonged_after: {told}"))
    assert "line" in str(refused.value)


def test_a_policy_without_such_delays_keeps_the_fingerprint_it_had(load):
    """Computed with the version before there were any."""
    assert fingerprint(load(load_policy, POLICY)) == "96932b32c1e63fa280a62c0a542b4066bf8ef6257cd817612dfd5405e977d126"


RELATIVE = POLICY.replace(
    "replication_factor: 3, min_insync_replicas: 2",
    "replication_factor: {min: 3, max: 5}, min_insync_replicas: rf-1, replica_racks: all, replica_rack_balance: true",
).replace("{internal: true}", "{replication_factor: 1}")


def test_ranges_and_relations_are_kept_as_they_are_stated(load):
    policy = load(load_policy, RELATIVE)
    stated = policy.tiers["critical"].to_dict()
    assert stated == {
        "replication_factor": {"min": 3, "max": 5},
        "min_insync_replicas": "rf-1",
        "replica_racks": "all",
        "replica_rack_balance": True,
        "unclean_leader_election": False,
        "survive": ["broker", "rack"],
    }
    assert policy.topics[0].replication_factor == (1, 1) and not policy.topics[0].unconditional
    plan = policy_part(policy, [])
    assert plan.tiers["critical"] == stated
    assert plan.required["critical"] == {
        "replication_factor": 3,
        "replication_factor_at_most": 5,
        "min_insync_replicas_below_rf": 1,
        "replica_racks_below_rf": 0,
        **{key: stated[key] for key in ("replica_rack_balance", "unclean_leader_election", "survive")},
    }
    assert plan.required["scratch"] == plan.tiers["scratch"]


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("min: 3", "min: 2"),
        (", max: 5", ""),
        ("rf-1", "rf-2"),
        ("replica_racks: all, ", ""),
        ("replica_rack_balance: true", "replica_rack_balance: false"),
        ("{replication_factor: 1}", "{replication_factor: {max: 1}}"),
        ("{replication_factor: 1}", "{topic: a}"),
    ],
)
def test_each_of_them_counts_in_the_fingerprint(load, line, instead):
    assert line in RELATIVE
    changed = RELATIVE.replace(line, instead, 1)
    assert fingerprint(load(load_policy, RELATIVE)) != fingerprint(load(load_policy, changed))


def test_a_number_and_a_range_of_it_alone_select_the_same(load):
    as_range = RELATIVE.replace("{replication_factor: 1}", "{replication_factor: {min: 1, max: 1}}")
    assert fingerprint(load(load_policy, RELATIVE)) == fingerprint(load(load_policy, as_range))


def test_the_longest_durations_reach_back_from_the_earliest_document(load):
    text = POLICY.replace("prolonged_after: 45m", "prolonged_after: 36500d").replace("within: 1d", "within: 999999h")
    readings = load(load_policy, text).readings
    assert (datetime(2000, 1, 1, tzinfo=UTC) - readings.look_back).year > 1677  # pandas' first


def test_the_first_selector_that_matches_decides(load):
    policy = load(load_policy, POLICY)
    assert tier_of(policy, "dev-1", "__consumer_offsets", True) == "critical"
    assert tier_of(policy, "dev-1", "orders", False) == "scratch"
    assert tier_of(policy, "prod-dev-1", "orders", False) == "critical"  # expressions match the whole name
    assert tier_of(policy, "eu", "x-1", False, team="payments") == "scratch"
    assert tier_of(policy, "eu", "x-1", False) == "critical"  # a cluster without team matches no team


def test_whether_a_topic_is_internal_follows_its_name_when_it_could_not_be_read(load):
    policy = load(load_policy, POLICY)
    assert tier_of(policy, "dev-1", "__transaction_state", None) == "critical"
    assert tier_of(policy, "dev-1", "orders", None) == "scratch"


def test_nothing_is_required_of_a_topic_that_no_line_matches(load):
    policy = load(load_policy, POLICY.replace("  - {tier: critical}\n", "").replace("{internal: true}", "{topic: a}"))
    assert tier_of(policy, "eu", "orders", False) is None


OBJECTIVE = POLICY.replace("survive: [rack, broker]", "objective: {writes: 99.9, data: 99}")


def test_an_objective_is_no_requirement(load):
    policy = load(load_policy, OBJECTIVE)
    assert policy.tiers["critical"].objective == {"writes": 99.9, "data": 99}
    plan = policy_part(policy, [])
    assert plan.objectives == {"critical": {"writes": 99.9, "data": 99}}
    assert "objective" not in plan.tiers["critical"] and "objective" not in plan.required["critical"]
    assert plan.tier("critical") == policy.tiers["critical"]


@pytest.mark.parametrize(("stated", "same"), [("99.0", True), ("99.5", False)])
def test_an_objective_counts_in_the_fingerprint_as_a_number(load, stated, same):
    other = OBJECTIVE.replace("data: 99}", f"data: {stated}}}")
    assert (fingerprint(load(load_policy, OBJECTIVE)) == fingerprint(load(load_policy, other))) is same
    assert fingerprint(load(load_policy, OBJECTIVE)) != fingerprint(
        load(load_policy, OBJECTIVE.replace("objective: {writes: 99.9, data: 99}", "survive: []"))
    )


PAGING = POLICY.replace("survive: [rack, broker]", "page_after: 5m")


@pytest.mark.parametrize(
    ("stated", "minutes"),
    [
        ("5m", {"offline": 5, "under-min-isr": 5}),
        ("{offline: 1m, under-min-isr: 1h}", {"offline": 1, "under-min-isr": 60}),
        ("{offline: 2m}", {"offline": 2}),
    ],
)
def test_a_tier_says_when_its_topics_page_and_no_verdict_depends_on_it(load, stated, minutes):
    policy = load(load_policy, PAGING.replace("page_after: 5m", f"page_after: {stated}"))
    tier = policy.tiers["critical"]
    assert {category: after / timedelta(minutes=1) for category, after in tier.page_after.items()} == minutes
    assert "page_after" not in tier.to_dict() and policy.tiers["scratch"].page_after == {}
    assert fingerprint(policy) == fingerprint(load(load_policy, PAGING.replace("page_after: 5m", "survive: []")))


LIMITED = POLICY.replace("survive: [rack, broker]", "waiver_longest: 90d")


def test_the_longest_term_of_a_waiver_counts_in_the_fingerprint_and_ends_waivers(load):
    policy, other = load(load_policy, LIMITED), load(load_policy, LIMITED.replace("90d", "91d"))
    tier = policy.tiers["critical"]
    assert (tier.waiver_longest, policy.tiers["scratch"].waiver_longest) == (timedelta(days=90), None)
    assert "waiver_longest" not in tier.to_dict()
    assert len({fingerprint(p) for p in (policy, other, load(load_policy, POLICY))}) == 3
    stated = {"index": 0, "control": "log-dirs", "controls": ("log-dirs",), "cluster": "a", "resource": "b"}
    stated |= {"owner": "o", "reason": "r", "expires": date(2027, 3, 1)}
    for approved, until in ((date(2026, 12, 1), "2027-03-01"), (date(2026, 11, 1), "2027-01-30"), (None, None)):
        planned = with_limits(Waiver(**stated, approved_at=approved, approved_by="cro"), policy)
        assert (last_day(planned, "critical"), last_day(planned, "scratch")) == (until, "2027-03-01")
        since = approved and approved.isoformat()
        assert planned["limits"] == {"critical": {"days": 90, "since": since, "until": until}}
    nobody = with_limits(Waiver(**stated, approved_at=date(2026, 12, 1)), policy)
    assert last_day(nobody, "critical") is None, "a day of approval, and nobody who approved it"
    assert "limits" not in with_limits(Waiver(**stated), load(load_policy, POLICY))


@pytest.mark.parametrize("percent", [".nan", ".inf", "true", "1e2"])
def test_what_is_no_percentage_is_refused(tmp_path, percent):
    (tmp_path / "file.yaml").write_text(OBJECTIVE.replace("99.9", percent))
    with pytest.raises(BadInput, match=r"line 4: tiers\.critical\.objective\.writes: expected a percentage above 0"):
        load_policy(tmp_path / "file.yaml")


def test_who_approved_what_counts_in_the_fingerprint_where_it_is_stated(load):
    added = """    requested_by: A. Engineer
    approved_at: 2026-11-20
    approved_count: 12
    risk: a lost rack takes both copies
    compensating_control: a daily copy to another region
"""
    policy = load(load_policy, POLICY)
    marks = {fingerprint(policy, load(load_waivers, WAIVER))}
    assert marks == {"8f071306855d89d5ae69952faca02ac24d1a870f0b38ace0efa8410ac4753454"}, (
        "a file that doesn't use the keys keeps the fingerprint that it had"
    )
    for line in added.splitlines(keepends=True):
        marks.add(fingerprint(policy, load(load_waivers, WAIVER + line)))
    assert len(marks) == 6
    (waiver,) = load(load_waivers, WAIVER + added)
    assert (waiver.approved_at, waiver.approved_count) == (date(2026, 11, 20), 12)


def test_a_waiver_names_what_it_covers(load):
    (waiver,) = load(load_waivers, WAIVER)
    assert waiver.controls == ("replica-rack-spread",)
    assert (waiver.index, waiver.expires) == (0, date(2027, 1, 31))
    assert waiver.applies("replica-rack-spread", "eu", "billing.invoices")
    assert not waiver.applies("replica-rack-spread", "eu-2", "billing.invoices")


def test_clusters_have_sensible_defaults(load):
    text = """\
format: durability-clusters/1
clusters:
  - id: eu
  - {id: us, connection: kafka_us, provider: msk, team: events, controllers: {100: az1, 101: az2}, read_within: 5m}
"""
    eu, us = load(load_clusters, text)
    assert (eu.connection, eu.provider, eu.team, eu.controllers) == ("eu", "self", None, {})
    assert (us.connection, us.provider, us.team) == ("kafka_us", "msk", "events")
    assert us.controllers == {100: "az1", 101: "az2"}
    assert (eu.read_within, us.read_within) == (timedelta(minutes=2), timedelta(minutes=5))
    assert load(load_clusters, "format: durability-clusters/1\nclusters: []\n") == []


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("{id: eu, provider: mks}", "did you mean msk?"),
        ("{id: eu}, {id: eu}", "there twice, first in line 2"),
        ("{connection: a}", "`id` is missing"),
        ("{id: eu, controllers: {one: az1}}", "node ids and their racks"),
        ("{id: eu, controllers: [az1]}", "expected keys and values, found a list"),
        ("{id: eu, read_within: 2}", "expected a duration such as 10s"),
        ("{id: eu, read_within: 2h}", "30m at most"),
    ],
)
def test_a_wrong_cluster_is_refused(load, entry, words):
    message = refused(load, load_clusters, f"format: durability-clusters/1\nclusters: [{entry}]\n")
    assert message.startswith(", line 2: ")
    assert words in message


def test_no_cluster_has_the_name_of_what_findings_on_an_inventory_have(load):
    text = "format: durability-clusters/1\nclusters: [{id: inventory}]\n"
    assert [cluster.id for cluster in load(load_clusters, text)] == ["inventory"]
    message = refused(load, load_clusters, f"{text}inventory: [{{name: cmdb, csv: all.csv}}]\n")
    assert "findings on an inventory have cluster inventory; give this cluster another id" in message


def test_how_long_the_lake_keeps_things_is_read_and_no_part_of_the_fingerprint(load):
    stated = "retention: {snapshots: 30d, pulses: 12h, evidence: {each: quarter, for: 3650d}, evidence_folders: 60d}\n"
    policy = load(load_policy, POLICY + stated)
    assert policy.retention == Retention(
        snapshots=timedelta(days=30),
        pulses=timedelta(hours=12),
        evidence_each="quarter",
        evidence_for=timedelta(days=3650),
        evidence_folders=timedelta(days=60),
    )
    assert load(load_policy, POLICY).retention == Retention()
    assert fingerprint(policy) == fingerprint(load(load_policy, POLICY))
    assert shipped().retention == Retention(), "the shipped file states the defaults"


@pytest.mark.parametrize(
    ("stated", "complaint"),
    [
        ("{snapshot: 30d}", 'unknown key "snapshot"; did you mean snapshots?'),
        ("{snapshots: 30}", "expected a duration such as 10s, 30m, 6h or 1d"),
        ("{pulses: 0d}", "expected a duration"),
        ("{evidence_folders: 1m}", "expected whole days such as 90d"),  # a month was meant
        ("{evidence: {each: moon}}", '"moon" is not one of week, month, quarter'),
        ("{evidence: 10d}", "expected keys and values (each, for)"),
    ],
)
def test_a_wrong_retention_is_refused_with_its_line(load, stated, complaint):
    said = refused(load, load_policy, f"{POLICY}retention: {stated}\n")
    assert f"line {POLICY.count(chr(10)) + 1}" in said and complaint in said


def test_the_fingerprint_is_of_what_the_files_mean(load):
    policy, waivers = load(load_policy, POLICY), load(load_waivers, WAIVER)
    mark = fingerprint(policy, waivers)
    lines = POLICY.splitlines(keepends=True)
    reordered = "# a comment\n" + "".join([lines[0], *lines[2:], lines[1]]).replace("[rack, broker]", "[broker, rack]")
    assert fingerprint(load(load_policy, reordered), waivers) == mark
    moved = POLICY.replace(lines[7] + lines[8], lines[8] + lines[7])
    assert fingerprint(load(load_policy, moved), waivers) != mark
    assert fingerprint(load(load_policy, POLICY.replace("45m", "46m")), waivers) != mark
    assert fingerprint(policy, load(load_waivers, WAIVER.replace("2027", "2028"))) != mark
    assert fingerprint(policy, []) != mark


@pytest.mark.parametrize(
    "stated, expected",
    [
        ("{s3: s3://company-audits}", ("s3://company-audits", None, 0)),
        (
            "{s3: s3://company-audits/kafka/prod/, object_lock: {mode: COMPLIANCE, days: 2555}}",
            ("s3://company-audits/kafka/prod", "COMPLIANCE", 2555),
        ),
    ],
)
def test_where_evidence_is_copied_is_no_part_of_the_fingerprint(load, stated, expected):
    policy = load(load_policy, f"{POLICY}evidence: {stated}\n")
    assert (policy.evidence.address, policy.evidence.mode, policy.evidence.days) == expected
    assert fingerprint(policy) == fingerprint(load(load_policy, POLICY))


@pytest.mark.parametrize(
    "stated, complaint",
    [
        ("{s3: company-audits}", "evidence.s3: expected an address such as s3://bucket/prefix"),
        ("{s3: s3://Big/x}", "evidence.s3: expected an address such as"),
        ("{s3: s3://b-b/x, object_lock: {mode: FOREVER, days: 1}}", '"FOREVER" is not one of GOVERNANCE, COMPLIANCE'),
        ("{s3: s3://b-b/x, object_lock: {mode: COMPLIANCE, days: 0}}", "evidence.object_lock.days: expected"),
        ("{s3: s3://b-b/x, object_lock: {mode: COMPLIANCE}}", "evidence.object_lock: `days` is missing"),
    ],
)
def test_a_wrong_place_for_evidence_is_refused(load, stated, complaint):
    assert complaint in refused(load, load_policy, f"{POLICY}evidence: {stated}\n")
