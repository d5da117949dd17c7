"""eligible-leader-replicas: available since Kafka 4.0 but off (KIP-966). Advice: it keeps what an empty ISR would lose."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.effective_min_isr import release_number

CONTROL = "eligible-leader-replicas"
FEATURE = "eligible.leader.replicas.version"


def cluster_verdicts(plan: Plan) -> list[Column]:
    """Reads `elr_on`, `kafka_version`, `quorum_mode`, `brokers` and `degraded` of a cluster.

    `least`, of the evidence: what min.insync.replicas has to be cluster-wide before the upgrade, which takes it from a
    controller's static value and makes it cluster-wide, where it beats brokers' own (seen on 4.3.1).
    """
    release = release_number(F.col("kafka_version"))
    outcome = (
        F.when(F.col("quorum_mode") == "zookeeper", base.NOT_APPLICABLE)
        .when(release < 4000, base.NOT_APPLICABLE)
        .when(F.col("elr_on"), base.PASS)
        .when(F.col("elr_on").isNull() | release.isNull(), base.UNKNOWN)
        .otherwise(base.FAIL)
    )
    live = F.filter("brokers", lambda b: F.coalesce(b["live"], F.lit(True)))
    held = F.array_max(F.transform(live, lambda b: b["min_isr"]))
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause="feature:" + FEATURE,
        observed={"enabled": F.col("elr_on"), "kafka_version": F.col("kafka_version")},
        required={"enabled": F.lit(True)},
        evidence={
            "degraded": F.coalesce("degraded", ~F.col("topics_known"), F.lit(True)),
            "least": F.greatest(held, F.lit(target.default_min_isr(plan)).cast("int")),
        },
    )
    return [verdict]
