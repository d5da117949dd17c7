"""Streams tasks that a lost rack leaves without a warm copy."""

import pytest

from durability.streams.cold import cold_tasks

RACKS = {"az1", "az2", "az3"}


def client(process, zone, active=(), standby=(), **tags):
    stated = tags | ({} if zone is None else {"zone": zone})
    return {"process": process, "tags": stated, "active": list(active), "standby": list(standby)}


def group(*clients, **changed):
    tasks = sorted({task for c in clients for task in (*c["active"], *c["standby"])})
    row = {"group": "app", "type": "classic", "state": "Stable", "in_transition": False, "unread": None}
    return row | {"clients": list(clients), "stateful_tasks": tasks} | changed


def test_a_task_is_cold_if_its_active_and_all_standbys_run_in_lost_racks():
    found = cold_tasks(
        group(
            client("p1", "az1", active=["0_0", "0_1", "0_2"]),
            client("p2", "az1", standby=["0_1"]),
            client("p3", "az2", active=["0_3"], standby=["0_2"]),
        ),
        RACKS,
        {"az1"},
    )
    assert (found.tags, found.cold, found.unsure, found.untold) == (("zone",), ("0_0", "0_1"), (), None)


def test_two_lost_racks_take_the_copies_in_both():
    app = group(client("p1", "az1", active=["0_0"]), client("p2", "az2", standby=["0_0"]))
    assert cold_tasks(app, RACKS, {"az1"}).cold == ()
    assert cold_tasks(app, RACKS, {"az1", "az2"}).cold == ("0_0",)


def test_a_copy_whose_rack_is_unknown_leaves_it_open():
    app = group(
        client("p1", "az1", active=["0_0", "0_1"]),
        client("p2", None, standby=["0_0"]),
        client("p3", "az3", standby=["0_1"]),
    )
    found = cold_tasks(app, RACKS, {"az1"})
    assert (found.cold, found.unsure) == ((), ("0_0",))


@pytest.mark.parametrize(
    "app, why",
    [
        (group(client("p1", None, active=["0_0"], cell="blue")), "aren't names of racks"),
        (group(client("p1", None, active=["0_0"])), "state no tags"),
        (group(client("p1", "az1", active=["0_0"]), state="Empty"), "Empty"),
        (group(client("p1", "az1", active=["0_0"]), in_transition=True), "in transition"),
    ],
)
def test_what_cannot_be_told_is_said(app, why):
    found = cold_tasks(app, RACKS, {"az1"})
    assert why in found.untold and found.cold == ()


def test_tags_that_name_different_racks_leave_it_open():
    app = group(client("p1", "az1", active=["0_0"], backup="az2"))
    assert cold_tasks(app, RACKS, {"az1"}).unsure == ("0_0",)
