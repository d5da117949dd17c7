"""ACLs of steps, and those that are missing, by what a cluster says. tests/cluster/test_apply_acls.py asks a real one."""

from __future__ import annotations

import pytest

from durability.apply.permissions import (
    ALTER_CLUSTER,
    CHANGING,
    READING,
    SET_BROKERS,
    SET_TOPICS,
    Acl,
    Authorized,
    Missing,
    On,
    Operation,
    missing,
    needed,
)
from durability.remedies.change.model import KINDS

ALL = frozenset(Operation)
NONE: frozenset[Operation] = frozenset()
DESCRIBE_CLUSTER = Acl(Operation.DESCRIBE, On.CLUSTER)
DESCRIBE_TOPICS = Acl(Operation.DESCRIBE, On.TOPICS)


class Says:
    def __init__(self, cluster, **topics):
        self.answer = Authorized(cluster, topics)

    def authorized(self, topics):
        return self.answer


def test_every_kind_of_step_has_its_acls():
    assert CHANGING.keys() == set(KINDS)
    assert needed([]) == needed(["wait"]) == list(READING)
    assert needed(["reassign", "set-config"]) == [*READING, ALTER_CLUSTER, SET_BROKERS, SET_TOPICS]
    assert needed(["set-config"], cluster_wide=True) == [*READING, SET_BROKERS, SET_TOPICS]


@pytest.mark.parametrize(
    ("says", "lacking", "unknown"),
    [
        (Says(ALL, a=ALL, b=ALL), {}, {}),
        (Says(ALL - {Operation.ALTER}, a=ALL, b=ALL), {ALTER_CLUSTER: ()}, {}),
        (Says(ALL, a=ALL, b=ALL - {Operation.ALTER_CONFIGS}), {SET_TOPICS: ("b",)}, {}),
        # A principal that may not describe isn't told what else it may do.
        (Says(NONE, a=ALL, b=ALL), {DESCRIBE_CLUSTER: ()}, {ALTER_CLUSTER: ()}),
        (Says(ALL, a=NONE, b=ALL), {DESCRIBE_TOPICS: ("a",)}, {SET_TOPICS: ("a",)}),
        # An old or foreign broker doesn't say it at all, and no answer is no permission.
        (Says(None, a=ALL, b=ALL), {}, {DESCRIBE_CLUSTER: (), ALTER_CLUSTER: ()}),
        (Says(ALL, a=None, b=ALL), {}, dict.fromkeys((DESCRIBE_TOPICS, SET_TOPICS), ("a",))),
        (Says(ALL, a=ALL), {}, dict.fromkeys((DESCRIBE_TOPICS, SET_TOPICS), ("b",))),
    ],
)  # fmt: skip
def test_missing_acls_are_known_or_unknown(says, lacking, unknown):
    acls = [DESCRIBE_CLUSTER, DESCRIBE_TOPICS, ALTER_CLUSTER, SET_TOPICS]
    assert missing(says, acls, ["b", "a", "a"]) == Missing(lacking, unknown)
