"""A damaged file among what Spark reads is named."""

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from durability.errors import AuditError
from durability.lake.tables import RESOLVED_POLICY
from durability.plan import inputs
from tests.support.lake import accepted, stage
from tests.support.topology import document


def plan_of(attempt):
    before = dict.fromkeys(("previous_attempt_id", "previous_result_id", "resolved_result_id"))
    judged = SimpleNamespace(attempt_id=attempt.attempt_id, **before)
    return SimpleNamespace(
        judged=[judged], attempts=[judged.attempt_id], snapshots=[judged], pulse=False, look_back=None
    )


def test_a_truncated_file_is_named_and_whole_ones_are_not(lake):
    whole, broken = (stage(lake, document("topic replicas\nt 1", cluster=name)) for name in "ab")
    lake.publish([whole, broken], accepted(whole, broken))
    path = Path(broken.files["partitions"][0].removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:100])
    inputs.check(lake, plan_of(whole))
    with pytest.raises(AuditError, match=path.name):
        inputs.check(lake, plan_of(broken))


def test_the_tiers_that_a_pulse_reads_are_among_them(lake):
    row = {"cluster": "a", "captured_at": datetime(2026, 11, 21, tzinfo=UTC), "result_id": "night"}
    lake.append(RESOLVED_POLICY, pa.Table.from_pylist([row], RESOLVED_POLICY.arrow))
    (path,) = Path(lake.location).rglob("resolved_policy/data/**/*.parquet")
    path.write_bytes(path.read_bytes()[:100])
    judged = SimpleNamespace(attempt_id="p", previous_attempt_id=None, previous_result_id=None, resolved_result_id=None)
    plan = SimpleNamespace(
        judged=[judged], attempts=[judged.attempt_id], snapshots=[judged], pulse=True, look_back=None
    )
    inputs.check(lake, plan)
    judged.resolved_result_id = "night"
    with pytest.raises(AuditError, match=path.name):
        inputs.check(lake, plan)
