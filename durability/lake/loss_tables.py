"""The lake's tables of losses and restarts."""

from __future__ import annotations

import pyarrow as pa

from durability.lake.table import INTS, RESULT_KEYS, STRINGS, Table

VIEWS = {
    "now": ("data", "availability", "writes"),
    "structural": ("data", "availability", "writes"),
    "worst": ("data", "availability"),
}
"""The classes of harm that a loss does, by view.

Classes: all copies that certainly have every acknowledged record are lost (data), no leader is left (availability), an acks=all
write is refused (writes). Views: from the ISR as it is (now), if all replicas were in sync (structural), from the ISR that
min.insync.replicas allows (worst).
"""

WHOLE_SETS = 8
"""The most replicas of a partition of which `loss_sets` has all sets that break it. Of more it has those of up to three."""

# What a loss of brokers and controllers does to partitions of one cluster; equal partitions of a topic are one row.
LOSS_OUTCOMES = Table(
    "loss_outcomes",
    (
        *RESULT_KEYS,
        ("topic", pa.string()),
        ("tier", pa.string()),
        ("internal", pa.bool_()),
        ("partitions", INTS),
        # What brokers answer acks=all, as `partition_health.acks_all_error` has it; NULL: unknown.
        ("before", pa.string()),  # without the loss, once brokers that are down are fenced
        ("now", pa.string()),  # after the loss, from the ISR as it is
        ("structural", pa.string()),  # after the loss, if all replicas were in sync before
        ("leader_before", pa.int32()),
        ("leader_after", pa.int32()),
        ("at_risk", pa.bool_()),  # all copies that certainly have all acknowledged records are lost
        ("deleted", pa.bool_()),  # an unclean leader deletes acknowledged records
        ("at_risk_structural", pa.bool_()),
        ("data_worst", pa.bool_()),  # with the ISR that min.insync.replicas allows
        ("availability_worst", pa.bool_()),
        ("stalls", pa.bool_()),  # writes wait until the lost brokers are fenced
        ("leader_lost", pa.bool_()),
        ("back_with", INTS),  # the brokers that bring an offline partition back without loss
        ("back_with_any", pa.bool_()),  # True: any of them (ELR); False: the one that was fenced last
        (
            "quorum",
            pa.struct([("voters", pa.int32()), ("left", pa.int32()), ("needed", pa.int32()), ("kept", pa.bool_())]),
        ),
    ),
    sort=("cluster", "topic"),
)

# What the loss of any one broker and of any one rack newly breaks, a row per broker and rack of a cluster. A row of kind
# `already` counts what is broken without a loss, which no loss can newly break.
FAILURE_COSTS = Table(
    "failure_costs",
    (
        *RESULT_KEYS,
        ("kind", pa.string()),  # broker, rack, already
        ("name", pa.string()),  # the broker's id or the rack; NULL: already
        ("held", pa.int64()),  # partitions with a replica there
        ("led", pa.int64()),
        ("quorum", pa.string()),  # after the loss: kept, lost, unknown
        ("unknown", pa.int64()),  # partitions for which some class is unknown
        *(
            (f"{view}_{name}", pa.struct([("partitions", pa.int64()), ("topics", pa.int64())]))
            for view, classes in VIEWS.items()
            for name in classes
        ),
    ),
    sort=("cluster", "kind"),
)

# The smallest sets of brokers, and of racks, whose loss newly breaks partitions, if the quorum keeps its majority. No part of
# a set breaks the partitions that the set counts. Partitions that are broken already count in no set.
LOSS_SETS = Table(
    "loss_sets",
    (
        *RESULT_KEYS,
        ("kind", pa.string()),  # broker, rack
        ("members", STRINGS),  # ids of brokers in numeric order, or racks in order
        # The number of partitions for which this is a smallest set.
        *((f"{view}_{name}", pa.int64()) for view in ("now", "structural") for name in VIEWS[view]),
    ),
    sort=("cluster", "kind"),
)

# What partitions can spare while brokers restart; those with the same replicas, ISR and minimum are one row.
RESTART_CAPACITY = Table(
    "restart_capacity",
    (
        *RESULT_KEYS,
        ("replicas", INTS),  # sorted; NULL: unknown
        ("isr", INTS),  # without brokers that are down
        ("minimum", pa.int32()),  # the effective min.insync.replicas
        ("partitions", pa.int64()),
        ("topic", pa.string()),  # of one of them
        ("partition", pa.int32()),
    ),
)
