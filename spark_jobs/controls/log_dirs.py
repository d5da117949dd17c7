"""log-dirs: a broker has an offline log dir (DescribeLogDirs); its replicas there are lost until the disk is mended."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "log-dirs"


def finding() -> Column:
    """Reads `b`, the broker."""
    offline = F.col("b")["offline_log_dirs"]
    outcome = F.when(offline > 0, base.FAIL).when(offline.isNull(), base.UNKNOWN).otherwise(base.PASS)
    return base.finding(
        CONTROL,
        outcome,
        cause=F.when(offline > 0, F.col("b")["lag_cause"]).otherwise(
            F.coalesce(F.col("b")["down"], F.lit("unreadable"))
        ),
        observed=base.as_json(offline_log_dirs=offline),
        required=base.as_json(offline_log_dirs=F.lit(0)),
        message=F.when(outcome == base.FAIL, base.say("log dirs offline: %s; the replicas on them are out of sync", offline))
        .when(outcome == base.UNKNOWN, "its log dirs could not be read"),
        remediation=F.when(
            outcome == base.FAIL,
            base.say(
                'kafka-log-dirs --bootstrap-server "$BOOTSTRAP" --describe --broker-list %s shows which; replace the disk,'
                " then restart the broker",
                F.col("b")["broker"],
            ),
        ).otherwise("Bring the broker back, or give the auditor Describe on the cluster"),
    )  # fmt: skip
