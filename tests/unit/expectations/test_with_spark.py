"""Gate, plan, Spark's rules and the cross-check in a row, on one lake: they agree, and tampering shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from durability.catalogue import CONTROLS
from durability.lake import Lake
from durability.lake.tables import TABLES
from durability.plan import build_plan
from durability.topology import validate
from expectations import gate, posture
from tests.support.judge import pick
from tests.support.policy import shipped, waivers
from tests.support.topology import document

WAIVERS = waivers("""
waivers:
  - {control: .*, cluster: eu, resource: accepted, owner: a, reason: r, expires: 2027-01-31}
""")
# Racks: az1 1,4; az2 2,5; az3 3.
EU = """
    topic       leader  replicas  isr    elr  adding  removing  min
    good        1       1,2,3     1,2,3  -    -       -         2
    thin        1       1         1      -    -       -         1
    accepted    1       1         1      -    -       -         1
    wide        1       1,2       1,2    -    -       -         3
    tight       1       1,2,3     1,2,3  -    -       -         3
    one-rack    1       1,4       1,4    -    -       -         2
    __own       2       2,5,1     2,5    -    -       -         2
    offline     -       1,2,3     -      1    -       -         2
    moving      1       1,2,3,5   1,2,3  -    5       3         2
    unclean     1       1,2,3     1,2,3  -    -       -         2
    unread      1       1,2,3     1,2,3  -    -       -         2
    unconfigured 1      1,2,3     1,2,3  -    -       -         -
"""


def eu(**parts) -> dict:
    return document(
        EU,
        cluster="eu",
        brokers="1:az1 2:az2 3:az3 4:az1 5:az2",
        configs={"unclean": {"unclean.leader.election.enable": "true"}},
        unreadable={"/topics/unread/partitions/0/isr": "TIMEOUT", "/topics/unconfigured/configs": "DENIED"},
        **parts,
    )


@pytest.fixture(scope="module")
def evaluated(spark, tmp_path_factory):
    """A lake on which three clusters were judged once, the plan, and by table the rows that Spark wrote."""
    from spark_jobs import evaluate

    no_racks = document(EU, cluster="serverless", brokers="1 2 3 4 5")
    moving = document("topic replicas\n a 1,2", cluster="odd", brokers="1:a 2:b", cluster_consistent=False)
    providers = {"serverless": "msk-serverless"}
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DURABILITY_CATALOG", raising=False)
        lake = Lake.open(str(tmp_path_factory.mktemp("evaluated") / "lake"))
        lake.ensure()
        attempts = [
            lake.stage(validate(d, "x.json"), provider=providers.get(d["cluster"]["id"], "self"))
            for d in (eu(), no_racks, moving)
        ]
        plan = build_plan(
            lake,
            run_id="run",
            result_id="result",
            kind="nightly",
            policy=shipped(),
            waivers=WAIVERS,
            snapshots=lake.publish(attempts, gate.check(lake, attempts)),
            started_at=datetime(2026, 11, 21, 12, 5, tzinfo=UTC),
        )
        written: dict[str, pa.Table] = {}

        def write(frame, table) -> None:
            written[table.name] = frame.toArrow()
            lake.append(table, written[table.name])

        evaluate.run(spark, plan, lambda name: spark.createDataFrame(lake.scan(TABLES[name])), write)
        yield lake, plan, written


@pytest.mark.slow
def test_spark_and_great_expectations_agree(evaluated, tmp_path):
    lake, plan, _ = evaluated
    assert [(s.cluster, s.status) for s in plan.snapshots] == [
        ("eu", "accepted"),
        ("odd", "rejected"),
        ("serverless", "accepted"),
    ]
    flagged = posture.flag(lake, plan, tmp_path / "out")
    assert (flagged.problems, flagged.disagreements, flagged.verified) == ([], 0, True)
    # What the default policy requires; a control that came later may be required of nothing.
    assert all(checked for control, checked in flagged.checked.items() if not CONTROLS[control].carried)
    assert (tmp_path / "out" / "data_docs" / "index.html").exists()


@pytest.mark.slow
def test_a_tampered_posture_and_tampered_findings_show(evaluated, tmp_path):
    lake, plan, written = evaluated
    listed = written["topic_posture"].to_pylist()
    for row in pick(listed, cluster="eu", topic="thin"):
        row["checks"] = [c | ({"observed": 3} if c["control"] == "replication-factor" else {}) for c in row["checks"]]
    verdicts = written["verdicts"].to_pylist()
    (left_out,) = pick(verdicts, cluster="eu", resource="tight", control="write-headroom")
    verdicts.remove(left_out)
    # As if Spark had written these, under a result's name of their own.
    tampered = replace(plan, result_id="tampered")
    for name, rows in (("topic_posture", listed), ("verdicts", verdicts)):
        renamed = [row | {"result_id": "tampered"} for row in rows]
        lake.append(TABLES[name], pa.Table.from_pylist(renamed, TABLES[name].arrow))
    flagged = posture.flag(lake, tampered, tmp_path / "out")
    assert not flagged.verified
    rows = lake.scan(TABLES["disagreements"], "result_id = 'tampered'").to_pylist()
    assert sorted((r["control"], r["resource"], r["spark"], r["expectations"]) for r in rows) == [
        ("replication-factor", "thin", "FAIL", "PASS"),
        ("write-headroom", "tight", "no failure", "FAIL"),
    ]
