"""The table of changes to clusters. A row is a step of a change; rows are only ever added. Upkeep removes none.

The newest row of a `change` of a `plan` states how far it is. A rerun reads it first: it is the record of what was meant.
"""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import STRINGS, TIMESTAMP, Table

REMEDIATE, RACK_OUTAGE = "remediate", "rack-outage"
"""Values of `purpose`."""
INTENDED, DONE, UNDONE, LEFT = "intended", "done", "undone", "left"
"""Values of `state`. left: somebody else changed the value since, or the cluster is gone, so it was left as it is."""
# captured_at: when the row was written.
CHANGES = Table(
    "changes",
    (
        ("cluster", pa.string()),
        ("captured_at", TIMESTAMP),
        ("run_id", pa.string()),
        ("purpose", pa.string()),
        ("plan", pa.string()),  # id of the plan, or of the outage
        ("step", pa.string()),  # id of the plan's step
        ("change", pa.string()),  # unique in the plan
        ("kind", pa.string()),  # claim, reassign, set-config, throttle, elect-leaders
        ("state", pa.string()),
        ("topics", STRINGS),
        ("was", pa.string()),  # JSON: what it was before; its form depends on kind
        ("becomes", pa.string()),  # JSON: what it is to be
        ("said", pa.string()),  # why it stopped, or what differs; NULL if there is nothing to say
        ("approved_by", pa.string()),
        ("approved_at", TIMESTAMP),
        ("comment", pa.string()),  # the approver's
    ),
    sort=("cluster",),
)
