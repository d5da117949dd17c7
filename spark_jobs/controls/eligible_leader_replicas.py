"""eligible-leader-replicas: available since Kafka 4.0 but off (KIP-966). Advice: it keeps what an empty ISR would lose."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base
from spark_jobs.effective_min_isr import release_number

CONTROL = "eligible-leader-replicas"
FEATURE = "eligible.leader.replicas.version"


def finding() -> Column:
    """Reads `elr_on`, `kafka_version` and `quorum_mode` of a cluster."""
    release = release_number(F.col("kafka_version"))
    outcome = (
        F.when(F.col("quorum_mode") == "zookeeper", base.NOT_APPLICABLE)
        .when(release < 4000, base.NOT_APPLICABLE)
        .when(F.col("elr_on"), base.PASS)
        .when(F.col("elr_on").isNull() | release.isNull(), base.UNKNOWN)
        .otherwise(base.FAIL)
    )
    return base.finding(
        CONTROL,
        outcome,
        cause="feature:" + FEATURE,
        observed=base.as_json(enabled=F.col("elr_on"), kafka_version=F.col("kafka_version")),
        required=base.as_json(enabled=F.lit(True)),
        message=F.when(outcome == base.FAIL, "eligible leader replicas are available but off")
        .when(outcome == base.UNKNOWN, "the cluster's features or its release are unknown")
        .when(outcome == base.NOT_APPLICABLE, "eligible leader replicas came with Kafka 4.0, on KRaft"),
        remediation=F.when(
            outcome == base.FAIL,
            f'kafka-features --bootstrap-server "$BOOTSTRAP" upgrade --feature {FEATURE}=1',
        ).otherwise("Give the auditor Describe on the cluster"),
    )
