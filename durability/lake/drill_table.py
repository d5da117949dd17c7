"""The table of drills. A row is a predicted loss that was compared with what happened. Upkeep removes none."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import INTS, RESULT_KEYS, STRINGS, TIMESTAMP, Table

# captured_at, snapshot_id: of the snapshot that was taken after the loss. A repeated task writes another result of its run.
DRILLS = Table(
    "drills",
    (
        *RESULT_KEYS,
        ("kind", pa.string()),  # drill: on the cluster itself
        ("predicted_from", pa.string()),  # id of the snapshot that the prediction is made from
        ("predicted_at", TIMESTAMP),  # its captured_at
        ("asked", STRINGS),  # what was to fail: broker:3, rack:az2
        ("brokers", INTS),  # that were lost
        ("controllers", INTS),
        ("compared", pa.int64()),  # partitions
        ("agreed", pa.int64()),
        ("started_by", pa.string()),  # NULL: not known, for example of a scheduled run
        ("recorded_at", TIMESTAMP),
    ),
    sort=("cluster",),
)
