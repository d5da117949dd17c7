"""Why a partition's ISR is short or its leader missing, and where Kafka's tools count differently."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain


def causes() -> Column:
    """Why the ISR is short or the leader missing.

    The cause is brokers that are down or have a failed disk, else replicas that lag, else a reassignment.

    A partition without a leader needs a replica of its ISR or ELR (KIP-966). If such a replica is up, an election is missing,
    and other dead brokers don't matter. If the metadata still names a dead leader, live brokers in the ISR aren't the cause. If
    only replicas that are being added are out of sync, they are the cause, because the effective min ISR counts them already.
    A live replica that is being removed doesn't have to catch up, so its lag is no cause: the reassignment ends without it.
    Observers are out of sync by design, and any live replica out of sync may be one.
    """
    missing = F.when(F.col("offline") | (F.size("out_of_sync") == 0), F.col("brokers")).otherwise(F.col("out_of_sync"))
    leaderless = F.col("offline") & F.col("leader").isNull()
    absent = F.filter(missing, lambda b: leaderless | certain(~b["live"]) | ~F.array_contains("live_isr", b["broker"]))
    faults = F.array_compact(F.transform(absent, _fault))
    lagging = F.filter("out_of_sync", lambda b: ~certain(F.array_contains("removing", b["broker"])))["lag_cause"]
    electable = F.exists(
        "brokers",
        lambda b: (
            certain(F.array_contains("isr", b["broker"]) | F.array_contains("elr", b["broker"]))
            & certain(b["live"])
            & _fault(b).isNull()
        ),
    )
    return (
        F.when(leaderless & electable, F.array(F.lit("no-leader")))
        .when(F.size(faults) > 0, F.array_distinct(faults))
        .when(F.col("offline"), F.array(F.lit("no-leader")))
        # An observer is out of the ISR by design. Which of the replicas are observers is unknown.
        .when((F.size(lagging) > 0) & F.col("has_observers"), F.array(F.lit("observers")))
        .when(F.size(lagging) > 0, lagging)
        .when(F.col("reassigning"), F.array(F.lit("reassignment")))
        .otherwise(F.array())
    )


def electable() -> Column:
    """Is a broker up that a clean election makes the leader: one of the ISR or, if that is empty, one of the ELR (KIP-966)?

    A preferred election takes the first such replica (`PartitionChangeBuilder.electPreferredLeader`).
    """
    return F.col("leader").isNull() & F.col("leader_known") & _may_lead()


def only_electable() -> Column:
    """The one broker that `electable` finds; NULL if it finds several or none.

    Since 3.7 KRaft doesn't elect it by itself while its log dir isn't the one that the controller knows: after a start with an
    empty disk. But it does on request (seen on 4.3.1).
    """
    up = F.filter("brokers", _can_lead)["broker"]
    return F.when(certain(electable()) & (F.size(up) == 1), F.try_element_at(up, F.lit(1)))


def overtaken() -> Column:
    """Does an unclean election take a replica that is up, while no broker is up that a clean election may take?

    KRaft's controller looks for such partitions at intervals, since 3.9.
    """
    others = F.filter("brokers", lambda b: certain(b["live"]) & _fault(b).isNull())
    return F.col("offline") & ~_may_lead() & certain(F.size(others) > 0)


def led_last() -> Column:
    """Has the partition no replica in its ISR or ELR, so that its last known leader leads as soon as it is up (KIP-966)?"""
    return F.col("leader").isNull() & certain(
        (F.size("isr") == 0) & (F.size("elr") == 0) & (F.size("last_known_elr") > 0)
    )


def outdated_leader() -> Column:
    """Does the metadata still name a leader that is down, although another replica in sync is up?

    The controller elects that one when the broker's session ends. If it doesn't, the controller is at fault.
    """
    return F.col("leader").isNotNull() & _may_lead()


def _may_lead() -> Column:
    """Is a broker up that a clean election may take?"""
    return certain(F.exists("brokers", _can_lead))


def _can_lead(broker: Column) -> Column:
    """Is the broker up, and one of the ISR or, if that is empty, of the ELR?"""
    copies = F.when(F.size("isr") > 0, F.col("isr")).otherwise(F.col("elr"))
    return certain(F.array_contains(copies, broker["broker"]) & broker["live"]) & _fault(broker).isNull()


def _fault(broker: Column) -> Column:
    """Why a broker can't serve its replicas: it is down, or one of its log dirs is offline; else NULL."""
    disk = F.when(broker["lag_cause"].endswith(" disk-offline"), broker["lag_cause"])
    return F.coalesce(broker["down"], disk)


def cli_differs() -> Column:
    """How kafka-topics and KIP-427's categories differ for a partition, as codes joined by ";"; NULL if they agree.

    `TopicCommand` compares with min.insync.replicas as configured, and includes leaderless partitions. `leaderless`: listed
    without a leader. `under:<configured>:<effective>`: listed as under min ISR. `not-at`: not listed as at min ISR.
    """
    configured, isr, effective = F.col("min_isr"), F.col("isr_count"), F.col("effective_min_isr")
    led = ~F.col("offline")
    under = F.concat_ws(":", F.lit("under"), configured.cast("string"), effective.cast("string"))
    codes = F.array_compact(
        F.array(
            F.when(F.col("offline"), "leaderless"),
            F.when(led & (configured > effective) & (isr >= effective) & (isr < configured), under),
            F.when(led & (configured != effective) & (isr == effective), "not-at"),
        )
    )
    return F.when(F.size(codes) > 0, F.array_join(codes, ";"))
