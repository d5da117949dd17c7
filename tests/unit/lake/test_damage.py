"""A damaged file is named; what else is in the lake is still there."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from durability.errors import AuditError
from durability.lake import tables
from tests.support.lake import accepted, counts, publish, stage
from tests.support.topology import healthy

FIRST, SECOND = "2026-11-21T02:00:00Z", "2026-11-22T02:00:00Z"


def path_of(address):
    return Path(address.removeprefix("file://"))


def truncate(address):
    path = path_of(address)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    return path.name


def test_a_truncated_file_of_an_attempt_is_named_and_nothing_is_committed(lake):
    publish(lake, healthy(captured_at=FIRST))
    attempt = stage(lake, healthy(captured_at=SECOND))
    name = truncate(attempt.files["partitions"][0])
    with pytest.raises(AuditError, match=f"{name} is damaged"):
        lake.publish([attempt], accepted(attempt))
    with pytest.raises(AuditError, match=f"{name} is damaged"):
        lake.read_staged(attempt, tables.PARTITIONS)
    assert lake.scan(tables.CLUSTERS).num_rows == 1 and counts(lake)["partitions"] == 6


@pytest.mark.parametrize(("damage", "says"), [(truncate, "is damaged"), (lambda a: path_of(a).unlink(), "is missing")])
def test_a_damaged_file_of_the_lake_is_named_and_the_rest_is_still_there(lake, damage, says):
    attempts = [stage(lake, healthy(cluster=name)) for name in ("a", "b")]
    lake.publish(attempts, accepted(*attempts))
    damage(attempts[0].files["partitions"][0])
    with pytest.raises(AuditError, match=f"{path_of(attempts[0].files['partitions'][0]).name} {says}"):
        counts(lake, "a")
    assert counts(lake, "b")["partitions"] == 6


def test_zeroed_pages_are_damage_too(lake):
    attempt = stage(lake, healthy(topics=50, partitions=20))
    path = path_of(attempt.files["partitions"][0])
    lake.publish([attempt], accepted(attempt))
    raw = bytearray(path.read_bytes())
    middle = pq.read_metadata(path).row_group(0).column(4).data_page_offset
    raw[middle : middle + 40] = bytes(40)
    path.write_bytes(raw)
    with pytest.raises(AuditError, match=path.name):
        counts(lake)
