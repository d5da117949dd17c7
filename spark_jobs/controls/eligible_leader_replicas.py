"""eligible-leader-replicas: available since Kafka 4.0 but off (KIP-966). Advice: it keeps what an empty ISR would lose."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base
from spark_jobs.effective_min_isr import release_number

CONTROL = "eligible-leader-replicas"
FEATURE = "eligible.leader.replicas.version"


def _switch_on(default_min_isr: int | None) -> Column:
    """The upgrade takes min.insync.replicas from a controller's static value and makes it cluster-wide, where it beats
    brokers' own (seen on 4.3.1); a value that is cluster-wide already stays. Not while replicas are missing."""
    live = F.filter("brokers", lambda b: F.coalesce(b["live"], F.lit(True)))
    held = F.array_max(F.transform(live, lambda b: b["min_isr"]))
    least = F.greatest(held, F.lit(default_min_isr).cast("int"))
    later = "Not now: replicas are out of sync or that is unknown. Bring them back first, then audit again."
    return F.when(F.coalesce("degraded", ~F.col("topics_known"), F.lit(True)) | least.isNull(), later).otherwise(
        base.script(
            base.comment(
                "First: the upgrade makes min.insync.replicas cluster-wide, by a controller's static value unless it is so"
                " already, and that beats the brokers' own."
            ),
            base.cluster_config("min.insync.replicas", least),
            f'kafka-features --bootstrap-server "$BOOTSTRAP" upgrade --feature {FEATURE}=1',
        )
    )


def finding(default_min_isr: int | None) -> Column:
    """Reads `elr_on`, `kafka_version`, `quorum_mode`, `brokers` and `degraded` of a cluster.

    default_min_isr: what the policy wants as the clusters' default min.insync.replicas, if anything.
    """
    return base.bound(lambda release: _of_release(release, default_min_isr), release_number(F.col("kafka_version")))


def _of_release(release: Column, default_min_isr: int | None) -> Column:
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
        remediation=F.when(outcome == base.FAIL, _switch_on(default_min_isr)).otherwise(
            "Give the auditor Describe on the cluster"
        ),
    )
