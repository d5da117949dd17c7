"""What a document is after a command, as proofs of remedies and plans take it."""

from __future__ import annotations

from durability.remedies import effects
from durability.remedies.commands import broker_setting, cluster_setting
from durability.remedies.steps import Step
from tests.support.topology import document

UNCLEAN = "unclean.leader.election.enable"


def test_a_cluster_wide_value_leaves_a_brokers_own_one_in_force():
    own = {"configs": {UNCLEAN: "true"}, "config_sources": {UNCLEAN: "broker-dynamic"}}
    before = document(
        "topic replicas\nanswered 1,2\ninherits 1,2\nstrict 1,2",
        broker_configs={UNCLEAN: "true"},
        each_broker={1: own, 2: {"config_sources": {UNCLEAN: "broker"}}},
        configs={name: {UNCLEAN: "true"} for name in ("answered", "inherits", "strict")},
        sources={
            "answered": {UNCLEAN: "broker-dynamic"},
            "inherits": {UNCLEAN: "broker"},
            "strict": {UNCLEAN: "topic"},
        },
    )

    def values(*commands) -> tuple[dict, dict]:
        after = before
        for command in commands:
            [after] = effects.apply(after, Step(command))
        brokers = {b["id"]: (b["configs"][UNCLEAN], b["config_sources"][UNCLEAN]) for b in after["brokers"]}
        return brokers, {t["name"]: t["configs"][UNCLEAN] for t in after["topics"]}

    brokers, topics = values(cluster_setting(UNCLEAN, "false"))
    assert brokers == {1: ("true", "broker-dynamic"), 2: ("false", "cluster-default")}
    assert topics == {"answered": "true", "inherits": "false", "strict": "true"}
    brokers, topics = values(broker_setting(1, UNCLEAN, "false"), cluster_setting(UNCLEAN, "false"))
    assert brokers == {1: ("false", "broker-dynamic"), 2: ("false", "cluster-default")}
    assert topics == {"answered": "false", "inherits": "false", "strict": "true"}
