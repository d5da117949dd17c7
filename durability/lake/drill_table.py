"""The table of drills. A row is a predicted loss that was compared with what happened. Upkeep removes none."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import INTS, RESULT_KEYS, STRINGS, TIMESTAMP, Table

DRILL, REHEARSAL = "drill", "rehearsal"
"""Values of `kind`: on the cluster itself, and on an embedded cluster in its place."""
# captured_at, snapshot_id: of the snapshot that was taken after the loss. A repeated task writes another result of its run.
# A rehearsal has no such snapshot: snapshot_id is NULL, and captured_at is when the embedded cluster was read.
DRILLS = Table(
    "drills",
    (
        *RESULT_KEYS,
        ("kind", pa.string()),
        (
            "predicted_from",
            pa.string(),
        ),  # id of the snapshot, or hash of the document, that the prediction is made from
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
