"""Unreadable paths of a document: what each points at and covers, however many there are."""

from __future__ import annotations

from durability.topology.unreadable import DEEPEST, Unreadable, resolve

MANY = 60_000
"""A walk over all for each of so many would take minutes."""


def unreadable(document: dict, *paths: str) -> Unreadable:
    return Unreadable({**document, "unreadable": [{"path": path, "reason": f"R{i}"} for i, path in enumerate(paths)]})


def test_a_topic_is_found_by_the_first_of_its_name():
    topics = [{"name": "a"}, {"name": "b"}, {"name": "b"}, {"other": 1}, None]
    found = unreadable({"topics": topics}, "/topics/b/configs", "/topics/c/configs", "/topics/4/configs")
    assert found.places == {
        "/topics/b/configs": ("topics", 1, "configs"),
        "/topics/c/configs": None,
        "/topics/4/configs": ("topics", 4, "configs"),
    }
    assert found.unresolved == ["/topics/c/configs"]


def test_paths_by_name_are_resolved_in_linear_time():
    document = {"topics": [{"name": f"t{number}"} for number in range(MANY)]}
    found = unreadable(document, *(f"/topics/t{number}/configs" for number in range(MANY)))
    assert found.places[f"/topics/t{MANY - 1}/configs"] == ("topics", MANY - 1, "configs")


def test_reasons_of_a_place_are_those_around_it_and_in_it_in_the_documents_order():
    document = {"groups": [{"group": "a"}, {"group": "b"}]}
    paths = ("/groups/b/members/0", "/groups/a/state", "/groups/b", "/groups", "/groups/b/state", "/groups/b/state")
    found = unreadable(document, *paths)
    assert found.reasons("groups", 1) == ["R0", "R2", "R3", "R4"]
    assert found.reasons("groups", 0, "type") == ["R3"]
    assert found.reasons("groups", 0, "state") == ["R1", "R3"]
    assert found.reasons() == ["R0", "R1", "R2", "R3", "R4"]
    assert found.reasons("topics") == []


def test_reasons_are_looked_up_and_not_searched_for():
    document = {"groups": [{"group": f"g{number}"} for number in range(MANY)]}
    found = unreadable(document, *(f"/groups/{number}/members" for number in range(MANY)))
    assert [found.reasons("groups", number) for number in (0, MANY - 1)] == [["R0"], [f"R{MANY - 1}"]]
    assert sum(len(found.reasons("groups", number)) for number in range(MANY)) == MANY


def test_only_the_first_segments_of_a_path_count():
    path = "/x" * 1_000_000
    assert resolve({}, path) == ("x",) * DEEPEST
    assert unreadable({}, path).covers(*["x"] * 40)
