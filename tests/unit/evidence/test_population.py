"""A period whose clusters are compared with an inventory: what was expected, and what nobody audits."""

from __future__ import annotations

import json

import pytest

from durability.evidence import period as evidence
from durability.plan.inventory import Inventory
from tests.support.nights import NOW, OCTOBER, Nights, at, of
from tests.support.schemas import unnamed


def inventory(*clusters: tuple[str, str | None], unlisted=(), problem: str | None = None, fleet="prod") -> str:
    """A run's `inventory`. clusters: what cmdb lists, and the cluster of the fleet that it is."""
    read = None if problem else len(clusters)
    source = {"name": "cmdb", "kind": "csv", "clusters": read, "reason": problem, "sha256": None}
    listed = [{"id": name, "cluster": audited, "sources": ["cmdb"]} for name, audited in clusters]
    stated = {"sources": [source], "clusters": listed, "unlisted": list(unlisted), "previous_result_ids": []}
    return json.dumps({**stated, "fleet": fleet})


def no_inventory(fleet: str) -> str:
    return Inventory(fleet=fleet).record()


@pytest.fixture
def population(lake):
    """eu: always there. us: removed from the inventory on the 5th, and audited until the 6th. lab: listed from the 3rd on, never
    audited. old: retired before the period. new: first audited on the 8th, listed under another name before."""
    made = Nights(lake)
    made.run(-5, [made.snapshot("eu", -5), made.snapshot("old", -5)])
    for day in range(-3, 11):
        if day == 7:  # no run
            continue
        names = ["eu", *(["us"] if day < 7 else []), *(["new"] if day >= 8 else [])]
        listed = [("eu", "eu"), *([("us", "us")] if day < 5 else []), *([("lab", None)] if day >= 3 else [])]
        listed.append(("CI0042", "new" if day >= 8 else None))
        told = inventory(*listed, unlisted=["us"] if 5 <= day < 7 else [], problem=None if day != 9 else "no route")
        if day == 9:  # the inventory is out of reach: nothing changes
            told = inventory(problem="no route", unlisted=["eu", "new"])
        made.run(day, [made.snapshot(name, day) for name in names], inventory=told)
    return made.write()


def test_a_cluster_in_the_inventory_without_an_audit_misses_its_nights(population):
    found = evidence.document(population, OCTOBER, None, NOW)
    lab = of(found, "lab")
    # From the 3rd to the 10th. No run of the 7th could have audited it either.
    assert (lab["expected_from"], lab["expected"], lab["done"]) == ("2026-10-03", 8, 0)
    assert [(g["first"][-2:], g["nights"], g["reason"]) for g in lab["gaps"]] == [
        ("03", 8, "in the inventory, not audited")
    ]
    assert "CI0042 and lab: in the inventory, and not audited on some nights." in found["unknown"]
    assert "Inventory cmdb could not be read in 1 run: no route" in found["unknown"]
    assert found["inventories"] == [
        {"name": "cmdb", "kind": "csv", "read": 8, "unread": 1, "clusters": 3, "last_problem": "no route"}
    ]


def test_a_cluster_removed_from_the_inventory_is_named_and_not_expected_from_then_on(population):
    found = evidence.document(population, OCTOBER, None, NOW)
    us, eu = of(found, "us"), of(found, "eu")
    assert (us["expected"], us["done"], us["evaluated"], us["gaps"]) == (4, 4, 4, [])
    assert us["not_expected"] == [
        {"first": "2026-10-05", "last": "2026-10-10", "nights": 6, "reason": "removed from the inventory"}
    ]
    told = "us: removed from the inventory on 2026-10-05. 6 nights are not expected. It was still audited on 2 nights."
    assert told in found["unknown"]
    assert (eu["expected"], eu["done"]) == (10, 9)
    assert "old" not in {cluster["cluster"] for cluster in found["clusters"]}
    # eu 10, us 4, lab 8, CI0042 until the 7th, new from the 8th.
    assert found["nights"] == {"expected": 10 + 4 + 8 + 7 + 3, "done": 9 + 4 + 3, "evaluated": 9 + 4 + 3}


def test_a_cluster_that_is_audited_under_another_name_is_counted_once(population):
    found = evidence.document(population, OCTOBER, None, NOW)
    other, new = of(found, "CI0042"), of(found, "new")
    assert (other["expected"], other["done"], other["not_expected"][0]["reason"]) == (7, 0, "audited as new")
    assert (new["expected_from"], new["expected"], new["done"]) == ("2026-10-08", 3, 3)
    assert {gap["reason"] for gap in other["gaps"]} == {"in the inventory, not audited"}


def test_an_inventory_that_is_no_longer_stated_leaves_the_fleet_expected(lake):
    made = Nights(lake)
    made.run(1, [made.snapshot("eu", 1)], inventory=inventory(("eu", "eu"), ("lab", None)))
    made.run(2, [made.snapshot("eu", 2)], inventory=no_inventory("prod"))
    found = evidence.document(made.write(), OCTOBER, None, NOW)
    assert (of(found, "eu")["expected"], of(found, "lab")["expected"]) == (10, 1)
    assert of(found, "lab")["not_expected"][0]["reason"].startswith("not in clusters.yaml")


def test_runs_of_documents_and_of_other_fleets_leave_the_nights_of_a_fleet(lake):
    made = Nights(lake)
    for day in range(1, 11):
        made.run(day, [made.snapshot("eu", day)], inventory=inventory(("eu", "eu"), ("lab", None)))
        if day == 3:  # documents, and two other clusters files: one has no inventory, and one has eu, too
            made.run(day, [made.snapshot("paper", day)], run_id="documents", result_id="documents:1")
            for name, told in (("tests", no_inventory("tests")), ("old", inventory(("old", "old"), fleet="old"))):
                made.run(day, [made.snapshot(name, day)], run_id=name, result_id=f"{name}:1", inventory=told)
            twice = inventory(("other", "other"), fleet="other")
            made.run(day, [made.snapshot("other", day)], run_id="o", result_id="o:1", inventory=twice)
    found = evidence.document(made.write(), OCTOBER, None, NOW)
    lab = of(found, "lab")
    assert (lab["expected"], lab["done"], lab["not_expected"]) == (10, 0, [])
    assert (of(found, "eu")["expected"], of(found, "eu")["done"]) == (10, 10)
    # Fleets that are audited once miss the nights after it: they aren't retired by prod, which doesn't know them.
    assert [of(found, name)["expected"] for name in ("tests", "old", "other")] == [8, 8, 8]
    assert sorted(source["read"] for source in found["inventories"]) == [1, 1, 10]


def test_clusters_that_are_not_audited_are_exceptions(lake):
    made = Nights(lake)
    of_lab = {"id": "lab", "cluster": "lab", "control": "inventory-coverage", "severity": "critical"}
    of_new = {**of_lab, "id": "new", "cluster": "new"}
    told = {
        "id": "cmdb",
        "cluster": "inventory",
        "control": "inventory-coverage",
        "outcome": "UNKNOWN",
        "severity": None,
    }
    still, gone = {"change": "persisting", "since": at(-1)}, {"change": "resolved", "outcome": "NOT_APPLICABLE"}
    gone |= {"previous_severity": "critical", "severity": None, "why": "resource-deleted"}
    unread = inventory(problem="no route", unlisted=["eu"])
    both, lab, new = (
        (("eu", "eu"), *((name, None) for name in names)) for names in (("lab", "new"), ("lab",), ("new",))
    )
    for day, listed, findings in (
        (-1, inventory(*lab), [of_lab]),
        (1, inventory(*both), [{**of_lab, **still}, of_new]),
        (2, unread, [told]),  # nothing is resolved
        (3, None, []),  # documents: no finding on lab or new, and both stay open
    ):
        made.run(day, [made.snapshot("eu", day)], findings, inventory=listed)
    found = evidence.document(made.write(), OCTOBER, None, NOW)["exceptions"]
    assert [found[name] for name in ("open_at_start", "opened", "closed", "other", "open_at_end")] == [1, 1, {}, 0, 2]
    assert [(row["cluster"], row["as_of"][8:10]) for row in found["by_cluster"]] == [
        ("eu", "03"),
        ("inventory", "02"),
        ("lab", "01"),
        ("new", "01"),
    ]
    assert [(row["cluster"], row["open_at_end"]) for row in found["unknown"]] == [("inventory", 1)]
    later = Nights(lake)
    fixed = [{**of_lab, **gone}, {**of_new, **still}]
    later.run(4, [later.snapshot("eu", 4)], fixed, inventory=inventory(*new))
    found = evidence.document(later.write(), OCTOBER, None, NOW)
    assert [found["exceptions"][name] for name in ("open_at_start", "opened", "other", "open_at_end")] == [1, 1, 0, 1]
    assert of(found, "lab")["not_expected"] and unnamed("period", found) == []
    assert not any("not evaluated in the period" in said for said in found["unknown"])


def test_the_page_has_the_clusters_that_are_not_expected(population, tmp_path):
    folder, _ = evidence.write(population, OCTOBER, tmp_path, None, NOW)
    page = (folder / "period.html").read_text()
    section = page.partition("<h3>Not expected</h3>")[2].partition("</section>")[0]
    assert section.count("<tr>") == 3 and "removed from the inventory" in section and "audited as new" in section
