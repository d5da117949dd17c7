"""A damaged file among what Spark reads is named."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from durability.errors import AuditError
from durability.plan import inputs
from tests.support.lake import accepted, stage
from tests.support.topology import document


def plan_of(attempt):
    judged = SimpleNamespace(attempt_id=attempt.attempt_id, previous_attempt_id=None, previous_result_id=None)
    return SimpleNamespace(judged=[judged], snapshots=[judged], pulse=False, look_back=None)


def test_a_truncated_file_is_named_and_whole_ones_are_not(lake):
    whole, broken = (stage(lake, document("topic replicas\nt 1", cluster=name)) for name in "ab")
    lake.publish([whole, broken], accepted(whole, broken))
    path = Path(broken.files["partitions"][0].removeprefix("file://"))
    path.write_bytes(path.read_bytes()[:100])
    inputs.check(lake, plan_of(whole))
    with pytest.raises(AuditError, match=path.name):
        inputs.check(lake, plan_of(broken))
