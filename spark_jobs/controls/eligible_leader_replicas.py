"""eligible-leader-replicas: the feature is available (since Kafka 4.0) but off (KIP-966). This is advice.

With the feature, replicas that leave an ISR below min.insync.replicas can still be elected without losing records.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.columns import certain, live_brokers, possible
from spark_jobs.frames.effective_min_isr import FIRST_ELR_RELEASE, NEEDED_BY_ELR

CONTROL = "eligible-leader-replicas"


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `elr_on`, `kafka_version`, `release`, `finalized`, `quorum_mode`, `brokers`, `degraded` and `inherited_least`
    of a cluster.

    The upgrade makes the controllers' static min.insync.replicas the cluster-wide value, which then overrides the brokers' own
    (seen on 4.3.1). So the evidence has `least`, the cluster-wide value to set first. It is no lower than the brokers' own. It
    is the policy's value if topics that inherit it stay writable after the next loss.
    """
    release = F.col("release")
    no_feature = (F.col("quorum_mode") == "zookeeper") | (release < FIRST_ELR_RELEASE)
    highest = F.array_max(live_brokers()["min_isr"])
    # Topics that inherit the value must have more replicas in sync than it says, as in `broker_defaults`.
    wanted = F.lit(target.default_min_isr(plan)).cast("int")
    raised = F.when(F.coalesce(F.col("inherited_least") > wanted, F.lit(True)), wanted)
    yield base.verdict(
        CONTROL,
        F.when(no_feature, base.NOT_APPLICABLE)
        .when(F.col("elr_on"), base.PASS)
        .when(F.col("elr_on").isNull() | release.isNull(), base.UNKNOWN)
        .otherwise(base.FAIL),
        cause="feature:eligible.leader.replicas.version",
        observed={"enabled": F.col("elr_on"), "kafka_version": F.col("kafka_version")},
        required={"enabled": F.lit(True)},
        evidence={
            base.REASON: F.when(F.col("elr_on").isNotNull() & release.isNull(), "release-unknown"),
            "degraded": possible(F.coalesce("degraded", ~F.col("topics_known"))),
            "metadata_first": certain(F.col("finalized") < NEEDED_BY_ELR),
            "least": F.greatest(highest, raised),
            "inherited_least": F.col("inherited_least"),
        },
    )
