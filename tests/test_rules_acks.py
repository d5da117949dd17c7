"""acked-durability in the proposals' own cases (KIP-926, KIP-1290, KIP-579): each a small cluster, judged as one fleet."""

import json

import pytest

from durability.policy.load import load_policy
from tests.support.judge import Judge, one
from tests.support.topology import document

POLICY = """
format: durability-policy/1
name: tests
tiers:
  wanted: {acked_copies: 2, acked_racks: 2, unclean_leader_election: false}
topics: [{tier: wanted}]
"""
THREE = "0:az1 1:az2 2:az3"
CLUSTERS = {
    "rf3": document("topic replicas min\nt 0,1,2 2", brokers=THREE, cluster="rf3"),
    "kip-1290": document("topic replicas min\nt 0,1,2,3,4 2", brokers="0:az1 1:az1 2:az2 3:az2 4:az3", cluster="kip-1290"),
}


@pytest.fixture(scope="module")
def found(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    path.write_text(POLICY)
    return Judge(spark).run(list(CLUSTERS.values()), load_policy(path))

def test_x(found):
    for c in CLUSTERS:
        f = one(found, cluster=c, control="acked-durability")
        print(json.dumps(f, indent=1, default=str))
    assert 0
