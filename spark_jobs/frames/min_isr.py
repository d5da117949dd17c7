"""min.insync.replicas of a partition: what its leader enforces, and what acks=all guarantees whichever broker leads.

The functions read the columns of `partitions.facts`.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, possible


def of_leader(field: str) -> Column:
    """A field of the leader's broker. If the leader is unknown, the value that all replicas have, else NULL."""
    distinct = F.array_distinct(F.col("brokers")[field])
    common = F.when(F.size(distinct) == 1, F.element_at(distinct, 1))
    return F.when(F.col("leader").isNotNull(), F.col("leading")[field]).otherwise(common)


def enforced() -> Column:
    """min.insync.replicas as the leader enforces it; NULL if unknown. Reads `acked_min_isr`.

    They differ if the topic's answer came from the settings of a broker that may not be the leader.
    """
    answered = F.col("own_min_isr").isNotNull() & ~_common()
    own = F.when(certain(answered & ~_recorded()) & F.col("min_isr_readable"), F.col("leading")["min_isr"])
    return F.coalesce(own, "acked_min_isr")


def largest(brokers: Column) -> Column:
    """The largest min.insync.replicas that one of these brokers of the partition enforces if it leads; NULL if unknown.

    A broker that is down is ignored, as in `acked`. Reads `min_isr`, the column of `enforced`.
    """
    values = F.filter(brokers, lambda b: possible(b["live"]))["min_isr"]
    of_brokers = F.when(F.forall(values, lambda v: v.isNotNull()), F.array_max(values))
    own = F.col("min_isr_readable") & (F.col("own_min_isr").isNull() | ~_common()) & ~_recorded()
    return F.when(certain(own) & (F.size(values) > 0), of_brokers).otherwise(F.col("min_isr"))


def acked() -> Column:
    """min.insync.replicas that acks=all guarantees for a partition, whichever of its brokers leads; NULL if unknown.

    An override applies as stated, and so does a cluster-wide value, unless a broker has a dynamic value of its own, which wins
    there. Otherwise brokers may have different values of their own:

    - If the topic's answer has no value, the leader's applies; for a partition that certainly has no leader, the smallest.
    - If the answer came from the settings of one broker, which may have no replica, the smallest value of the replicas' brokers
      applies.

    A live broker whose settings could not be read may have a smaller value, so only a value of 1 is certain then. A broker that
    is down is ignored: it doesn't lead now, and its settings can't be read, so all its topics would be UNKNOWN.

    With ELR on, the controllers' value is recorded cluster-wide and overrides the brokers' own (`_recorded`). An answer for the
    topic that differs from it is a contradiction, so the value is unknown.
    """
    values = F.col("brokers")["min_isr"]
    smallest = F.array_min(values)
    smallest_if_all = F.when(F.forall(values, lambda v: v.isNotNull()) | (smallest == 1), smallest)
    leaderless = F.col("leader_known") & F.col("leader").isNull()
    leaders = F.when(leaderless, smallest_if_all).otherwise(of_leader("min_isr"))
    own, source = F.col("own_min_isr"), F.col("own_min_isr_source")
    all_read = F.forall("brokers", lambda b: b["min_isr"].isNotNull() | ~possible(b["live"]))
    answered = F.when(all_read, F.coalesce(smallest, own)).when(F.least(own, smallest) == 1, 1)
    of_brokers = F.when(own.isNotNull(), answered).when(source.isNull(), leaders)
    recorded = F.when(F.size("recorded_min_isr") == 1, F.element_at("recorded_min_isr", 1))
    return F.when(
        F.col("min_isr_readable"),
        F.when(_common(), own)
        .when(~_recorded(), of_brokers)
        .when(_recorded() & own.isNull(), recorded)
        .when(recorded == of_brokers, recorded),
    )


def _common() -> Column:
    """Does the topic's answer apply on each broker? NULL if its source is unknown."""
    own_values = F.exists("brokers", lambda b: certain(b["min_isr_source"] == "broker-dynamic"))
    source = F.col("own_min_isr_source")
    return (source == "topic") | ((source == "cluster-default") & ~own_values)


def _recorded() -> Column:
    """Does the controllers' recorded min.insync.replicas apply to topics without a value? NULL if ELR may be on.

    Brokers that state a cluster-wide value have already read the record.
    """
    read = F.exists("brokers", lambda b: b["min_isr_source"] == "cluster-default")
    return F.when((F.size("recorded_min_isr") == 0) | certain(read), False).otherwise(F.col("elr_on"))


def source() -> Column:
    """Where a partition's min.insync.replicas is set: a source of `config_sources`; NULL if unknown.

    If a broker's own dynamic value is below that of the leader, it is what acks=all guarantees.
    """
    of_topic = certain(_common())
    own = F.col("own_min_isr_source")
    broker = F.coalesce(F.col("leading"), F.try_element_at("brokers", F.lit(1)))
    lower = F.exists(
        "brokers", lambda b: certain((b["min_isr_source"] == "broker-dynamic") & (b["min_isr"] < broker["min_isr"]))
    )
    of_brokers = F.when(lower, "broker-dynamic").otherwise(broker["min_isr_source"])
    answered = F.when(of_topic | ~certain(own == "cluster-default"), own)
    return F.when(
        F.col("min_isr_readable"),
        F.when(~of_topic & _recorded(), "cluster-default").otherwise(F.coalesce(answered, of_brokers, own)),
    )
