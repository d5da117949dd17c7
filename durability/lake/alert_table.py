"""The table of alerts. A row is an alert's state after a pulse, or after something was sent. The newest row of a key counts."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import RESULT_KEYS, STRINGS, TIMESTAMP, Table, structs

# captured_at: when the row was written. Each pulse writes the rows of all alerts that aren't over, so that upkeep may remove
# the rows of earlier pulses.
ALERTS = Table(
    "alerts",
    (
        *RESULT_KEYS,
        ("key", pa.string()),
        ("category", pa.string()),  # offline, under-min-isr, unreadable
        ("team", pa.string()),
        ("state", pa.string()),  # pending, open, closed, dropped: over before it was paged
        ("cause", pa.string()),  # as first paged; before that, as first seen
        ("now", STRINGS),  # the causes of the last sight
        ("subjects", STRINGS),  # what the causes of the whole alert are about: broker:3, rack:az2
        ("tier", pa.string()),  # the one that paged
        ("after_seconds", pa.int64()),  # its delay
        ("tiers", structs(tier=pa.string(), since=TIMESTAMP, pulses=pa.int32(), missed=pa.int32())),
        ("partitions", pa.int64()),  # at the last sight
        ("topics", pa.int64()),
        ("examples", STRINGS),
        ("first_seen", TIMESTAMP),
        ("opened", TIMESTAMP),  # when it was decided to page
        ("last_seen", TIMESTAMP),
        ("closed", TIMESTAMP),
        ("why", pa.string()),  # why it is closed, unless by an all-clear
        ("pulsed", TIMESTAMP),  # captured_at of the newest pulse of the cluster that it took into account
        ("clean", pa.int32()),  # pulses in a row without it
        ("unknown", pa.int64()),  # partitions and topics that were unknown at first sight
        ("revision", pa.int32()),  # how often its cause moved on
        # error: NULL if it was sent
        (
            "sent",
            structs(channel=pa.string(), event=pa.string(), revision=pa.int32(), at=TIMESTAMP, error=pa.string()),
        ),
        ("reason", pa.string()),  # why the cluster could not be read, at the last sight
        # Of the fleet, whose `cluster` is *: clusters that could not be read at the last sight, and all of the pulse.
        ("clusters", pa.int64()),
        ("listed", pa.int64()),
        ("fleet", pa.string()),  # whose pulses saw it. NULL: those of documents, or of an earlier version
    ),
    sort=("cluster", "key"),
)
