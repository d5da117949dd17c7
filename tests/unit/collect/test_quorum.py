"""What the quorum's leader answers."""

from __future__ import annotations

from types import SimpleNamespace

from durability.collect import quorum
from durability.collect.quorum import Member


def replica(id: int, directory: str, caught_up: int) -> SimpleNamespace:
    return SimpleNamespace(replica_id=id, replica_directory_id=directory, last_caught_up_timestamp=caught_up)


def test_a_node_with_a_new_disk_is_one_node():
    """For five minutes the leader lists it with both directory ids, in any order."""
    for observers in (
        [replica(2, "old", 100), replica(2, "new", 900)],
        [replica(2, "new", 900), replica(2, "old", 100)],
    ):
        partition = SimpleNamespace(leader_id=1, current_voters=[replica(1, "a", 1000)], observers=observers)
        found = quorum._parsed(SimpleNamespace(topics=[SimpleNamespace(partitions=[partition])], nodes=[]))
        assert found.observers == [Member(2, 100)] and found.voters == [Member(1, 0)]
