"""Which listed cluster is which cluster of the fleet. What is written down here by hand is which clusters nobody audits."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from durability.plan.inventory import Inventory, compare
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.policy.model import Cluster

ARN = "arn:aws:kafka:{}:1:cluster/{}/x".format


def cluster(name: str, *others: str) -> Cluster:
    return Cluster(name, name, inventory_names=others)


def in_msk(name: str, *others: str) -> Cluster:
    return replace(cluster(name, *others), provider="msk")


def cmdb(*names: str, source: str = "cmdb", **more) -> Listing:
    return Listing(InventorySource(source, "csv"), [Entry((name,), **more) for name in names])


def msk(region: str, *names: str) -> Listing:
    return Listing(InventorySource(region, "msk"), [Entry((name, ARN(region, name))) for name in names])


def strimzi(source: str, *found: tuple[str, str | None]) -> Listing:
    entries = [Entry((name, f"kafka/{name}", f"{source}:kafka/{name}"), kafka_id) for name, kafka_id in found]
    return Listing(InventorySource(source, "strimzi"), entries)


def unread(source: str, kind: str) -> Listing:
    return Listing(InventorySource(source, kind), problem="no route")


def audited(inventory: Inventory) -> dict[str, str | None]:
    return {listed.id: listed.cluster for listed in inventory.clusters}


def test_a_cluster_is_found_by_its_id_its_other_names_and_kafkas_id():
    fleet = [cluster("eu"), cluster("us", "CI0042"), cluster("ap"), cluster("retired")]
    found = compare(
        [cmdb("eu", "CI0042", "MkU3OEVBNTcwNTJENDM2Qk", "lab", owner="x")], fleet, {"ap": "MkU3OEVBNTcwNTJENDM2Qk"}
    )
    assert audited(found) == {"eu": "eu", "CI0042": "us", "MkU3OEVBNTcwNTJENDM2Qk": "ap", "lab": None}
    assert found.unlisted == ["retired"]
    assert [(c.id, c.owner, c.sources) for c in found.not_audited] == [("lab", "x", ["cmdb"])]


def test_two_lists_of_one_cluster_are_one_cluster():
    found = compare([msk("eu-west-1", "orders"), cmdb("orders", ARN("eu-west-1", "orders"), owner="team")], [], {})
    (orders,) = found.clusters
    assert (orders.id, orders.sources, orders.owner) == ("orders", ["eu-west-1", "cmdb"], "team")
    # The same account and region twice.
    assert len(compare([msk("a", "x"), msk("a", "x")], [], {}).clusters) == 1


def test_a_name_that_two_regions_have_hides_neither_cluster():
    both = [msk("eu-west-1", "orders"), msk("us-east-1", "orders")]
    found = compare(both, [in_msk("orders")], {})
    assert audited(found) == {ARN("eu-west-1", "orders"): None, ARN("us-east-1", "orders"): None}
    assert found.unlisted == ["orders"]
    found = compare(both, [cluster("orders", ARN("us-east-1", "orders"))], {})
    assert audited(found) == {ARN("eu-west-1", "orders"): None, ARN("us-east-1", "orders"): "orders"}


def test_a_cluster_that_has_the_name_of_another_one_of_the_fleet_is_not_audited():
    lists = [msk("eu-west-1", "eu", "eu-prod"), cmdb("eu")]
    found = compare(lists, [cluster("eu", ARN("eu-west-1", "eu-prod"))], {})
    assert audited(found) == {ARN("eu-west-1", "eu"): None, "eu-prod": "eu", "eu": "eu"}


def test_a_short_name_is_not_certain_while_a_list_is_missing():
    lists = [msk("eu-west-1", "orders", "pay"), unread("us-east-1", "msk")]
    found = compare(lists, [in_msk("orders"), cluster("pay", ARN("eu-west-1", "pay"))], {})
    assert {c.id: (c.cluster, c.certain) for c in found.clusters} == {"orders": ("orders", False), "pay": ("pay", True)}
    assert [source.reason for source in found.unread] == ["no route"]
    # A CSV file that could not be read has no short names.
    assert compare([msk("eu-west-1", "orders"), unread("cmdb", "csv")], [in_msk("orders")], {}).clusters[0].certain


def test_a_cluster_that_is_not_in_msk_hides_none_of_msk_with_its_name():
    lists, arn = [msk("eu-west-1", "orders")], ARN("eu-west-1", "orders")
    own, named = compare(lists, [cluster("orders")], {}), compare(lists, [cluster("orders", "orders")], {})
    assert audited(own) == {arn: None} and own.unlisted == ["orders"]
    assert audited(compare(lists, [in_msk("orders")], {})) == {"orders": "orders"}
    assert audited(compare(lists, [cluster("eu", "orders")], {})) == {"orders": "eu"}  # somebody states it
    assert audited(named) == {"orders": "orders"}
    in_k8s = compare([strimzi("k1", ("orders", None))], [in_msk("orders")], {})
    assert audited(in_k8s) == {"kafka/orders": None}


def test_kafkas_id_decides_over_names():
    lists = [strimzi("k1", ("orders", "id-1")), strimzi("k2", ("events", "id-2"), ("new", None))]
    fleet = [cluster("orders"), cluster("events"), cluster("new")]
    found = compare(lists, fleet, {"orders": "id-2", "events": "id-9"})
    # k1's orders isn't the fleet's, which Kafka calls id-2. That is k2's events.
    assert audited(found) == {"kafka/orders": None, "events": "orders", "new": "new"}
    assert found.unlisted == ["events"]


def test_it_is_the_same_after_a_round_through_json():
    found = compare([cmdb("a", owner="x"), unread("MSK", "msk")], [cluster("b")], {}, ["run:1"])
    assert Inventory.from_dict(json.loads(json.dumps(found.to_dict())) | {"later": 1}) == found
    kept = Inventory.from_dict(json.loads(found.record()))
    assert (audited(kept), kept.unlisted, kept.unread) == (audited(found), found.unlisted, found.unread)
    assert "x" not in {listed.owner for listed in kept.clusters}


NAMES = st.sampled_from(["a", "b", "c"])
PHYSICAL = st.builds(
    lambda region, names: msk(region, *names), st.sampled_from(["r1", "r2"]), st.sets(NAMES, max_size=3)
)
FLEET = st.lists(
    st.tuples(NAMES, st.sets(st.sampled_from([*"abc", *(ARN(r, n) for r in ("r1", "r2") for n in "abc")]), max_size=2)),
    max_size=3,
    unique_by=lambda one: one[0],
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PHYSICAL, max_size=2), st.sets(NAMES), FLEET)
def test_never_more_clusters_are_audited_than_the_fleet_has(lists, names, fleet):
    found = compare([*lists, cmdb(*sorted(names))], [in_msk(name, *sorted(others)) for name, others in fleet], {})
    ids = [listed.id for listed in found.clusters]
    assert len(ids) == len(set(ids)) or fleet
    not_audited = [listed.id for listed in found.not_audited]
    assert len(not_audited) == len(set(not_audited))
    fleet_ids = {name for name, _ in fleet}
    assert not fleet_ids & {listed.id for listed in found.not_audited}
    # Each ARN is a cluster of its own: no cluster of the fleet is two of them.
    physical = {ARN(listing.source.name, entry.names[0]) for listing in lists for entry in listing.entries}
    of_msk = [listed for listed in found.clusters if set(listed.sources) != {"cmdb"}]
    assert len(of_msk) == len(physical)
    matched = [listed.cluster for listed in of_msk if listed.cluster]
    assert len(matched) == len(set(matched)) <= len(fleet_ids)
    assert set(found.unlisted) == fleet_ids - {listed.cluster for listed in found.clusters}


@pytest.mark.parametrize("kind", ["msk", "csv", "strimzi"])
def test_an_inventory_that_could_not_be_read_lists_nothing_and_says_why(kind):
    found = compare([unread("x", kind)], [cluster("eu")], {})
    assert (found.clusters, found.unlisted, found.sources[0].clusters) == ([], ["eu"], None)
