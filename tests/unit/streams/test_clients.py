"""Rows of one process are one client."""

from __future__ import annotations

from durability.streams.judgement import clients_of


def row(process: str, tags: list | None, active: list[str], standby: list[str]) -> dict:
    return {"process": process, "tags": tags, "active": active, "standby": standby}


def test_rows_of_one_process_are_one_client():
    rows = [
        row("b", None, ["0_0"], []),
        row("a", [("zone", "1")], ["0_1"], ["0_2"]),
        row("b", [("zone", "2")], [], ["0_3"]),
    ]
    a, b = clients_of(rows)
    assert (a.process, a.tags, a.active, a.standby) == ("a", {"zone": "1"}, {"0_1"}, {"0_2"})
    assert (b.process, b.tags, b.active, b.standby) == ("b", {"zone": "2"}, {"0_0"}, {"0_3"})


def test_many_rows_of_one_process_take_linear_work():
    """With a union per row, this takes more than a minute."""
    rows = [row("a", [], [f"{n}_{task}" for task in range(30)], []) for n in range(6_000)]
    (client,) = clients_of(rows)
    assert len(client.active) == 180_000
