"""A Streams application's internal topics have the tier of its line in `applications`."""

from __future__ import annotations

import pyarrow as pa
import pytest

from durability.lake.tables import RESOLVED_POLICY
from durability.plan import build_plan
from durability.policy.resolve import resolve
from durability.streams.internal_topics import application_of, by_application
from tests.support.lake import publish
from tests.support.policy import policy
from tests.support.streams import recorded
from tests.support.topology import document

POLICY = policy("""
tiers: {critical: {replication_factor: 3}, standard: {replication_factor: 2}, scratch: {replication_factor: 1}}
topics:
  - {match: {topic: 'scratch-.*'}, tier: scratch}
  - {tier: standard}
applications:
  - {match: {group: 'pay-eu', cluster: 'us'}, tier: scratch}
  - {match: {group: 'pay.*'}, tier: critical, standby_replicas: 1}
  - {match: {group: 'scratch-app'}, standby_replicas: 1}
  - {match: {group: 'classic-app'}, tier: scratch}
""")
COUNT = "KSTREAM-AGGREGATE-STATE-STORE-0000000003"


def tiers(topics: str, **groups: str) -> list[str | None]:
    """Tiers of these topics of cluster eu (or of `cluster:topic`) where these groups exist."""
    rows = [name.split(":") if ":" in name else ["eu", name] for name in topics.split()]
    columns = {"cluster": [r[0] for r in rows], "topic": [r[1] for r in rows], "internal": [False] * len(rows)}
    return resolve(POLICY, pa.table(columns), {}, {c: g.split() for c, g in groups.items()}).tier.to_pylist()


@pytest.mark.parametrize(
    ("topic", "groups", "tier"),
    [
        (f"pay-{COUNT}-changelog", "pay", "critical"),
        (f"pay-{COUNT}-repartition", "pay", "critical"),
        ("pay-KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000009-topic", "pay", "critical"),
        ("pay-join-subscription-response-topic", "pay", "critical"),
        ("pay-orders-topic", "pay", "standard"),
        ("pay-store-changelog", "", "standard"),  # no such group exists
        ("pay-store-changelog", "pa payx other", "standard"),
        ("pay-changelog", "pay", "standard"),  # no store's name
        ("pay-store-changelog-2", "pay", "standard"),
        ("other-store-changelog", "other", "standard"),  # no line matches: the selectors decide
        ("scratch-app-x-changelog", "scratch-app", "scratch"),  # its line has no tier: so do they
        ("scratch-app-x-changelog", "pay scratch-app", "scratch"),
        ("pay-other-x-changelog", "pay pay-other", "critical"),
        ("classic-app-pay-x-changelog", "classic-app classic-app-pay", "standard"),  # the longest id wins, line or not
    ],
)
def test_whose_tier_a_topic_has(topic, groups, tier):
    assert tiers(topic, eu=groups) == [tier]


def test_lines_and_groups_are_of_the_topics_cluster():
    topics = "eu:pay-eu-s-changelog us:pay-eu-s-changelog ap:pay-eu-s-changelog eu:orders"
    assert tiers(topics, eu="pay pay-eu", us="pay-eu") == ["critical", "scratch", "standard", "standard"]


def test_without_applications_nothing_changes():
    assert tiers("pay-s-changelog orders scratch-1") == ["standard", "standard", "scratch"]


@pytest.mark.parametrize(
    ("topic", "groups", "group"),
    [
        ("a-b-c-changelog", {"a", "a-b", "a-b-c"}, "a-b"),
        ("a-b-c-changelog", {"b", "a-"}, None),
        ("a-changelog-repartition", {"a"}, "a"),
        ("-x-changelog", {"", "-x"}, None),
        ("a-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-x-topic", {"a"}, None),
    ],
)
def test_the_application_of_a_topic(topic, groups, group):
    assert application_of(topic, groups) == group
    assert by_application([topic, "orders"], groups) == ({group: [topic]} if group else {})


def test_a_run_resolves_them(lake):
    """A classic group by its bytes, one of type streams, one that a document states; a consumer group owns no topics."""
    plain = {"type": "classic", "state": "Stable", "protocol_type": "consumer", "members": []}
    groups = [
        recorded(),
        {"group": "pay-new", "type": "streams", "state": "Stable", "protocol_type": "streams", "members": []},
        {"group": "pay-stopped", **plain, "state": "Empty", "protocol": None},
        {"group": "pay-readers", **plain, "protocol": "range"},
        {"group": "pay-kip848", **plain, "type": "consumer", "protocol": None},
        {"group": "pay-connect", **plain, "protocol_type": "connect", "protocol": "sessioned"},
    ]
    streams = [{"group": "pay-stated", "type": "classic", "state": "Stable", "in_transition": False}]
    streams[0] |= {"stateful_tasks": [], "clients": []}
    expected = {
        "classic-app-s-changelog": "scratch",
        "pay-new-s-repartition": "critical",
        "pay-stopped-s-changelog": "critical",
        "pay-stated-s-changelog": "critical",
        "pay-readers-s-changelog": "standard",
        "pay-kip848-s-changelog": "standard",
        "pay-connect-s-changelog": "standard",
        "orders": "standard",
    }
    table = "topic replicas\n" + "".join(f"{topic} 1,2\n" for topic in expected)
    published = publish(lake, document(table, cluster="eu", groups=groups, streams=streams))
    build_plan(lake, run_id="r", result_id="r", kind="nightly", policy=POLICY, waivers=[], snapshots=published)
    found = {r["resource"]: r["tier"] for r in lake.scan(RESOLVED_POLICY).to_pylist() if r["resource_type"] == "topic"}
    assert found == expected
