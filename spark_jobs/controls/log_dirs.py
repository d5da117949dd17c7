"""log-dirs: a broker has an offline log dir (DescribeLogDirs); its replicas there are lost until the disk is mended."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs.controls import base

CONTROL = "log-dirs"


def finding() -> Column:
    """Reads `b`, the broker, and its cluster's `source` and `unreadable`.

    A document may leave log dirs out, as one of a planned cluster must: then there is nothing to judge.
    """
    offline = F.col("b")["offline_log_dirs"]
    unread = F.exists("unreadable", lambda u: u["path"].startswith("/brokers") | (u["path"] == ""))
    left_out = (F.col("source") != "live") & ~F.coalesce(unread, F.lit(False))
    outcome = (
        F.when(offline > 0, base.FAIL)
        .when(offline.isNull(), F.when(left_out, base.NOT_APPLICABLE).otherwise(base.UNKNOWN))
        .otherwise(base.PASS)
    )
    return base.finding(
        CONTROL,
        outcome,
        cause=F.when(offline > 0, F.col("b")["lag_cause"]).otherwise(
            F.coalesce(F.col("b")["down"], F.lit("unreadable"))
        ),
        observed=base.as_json(offline_log_dirs=offline),
        required=base.as_json(offline_log_dirs=F.lit(0)),
        message=F.when(outcome == base.FAIL, base.say("log dirs offline: %s; the replicas on them are out of sync", offline))
        .when(outcome == base.NOT_APPLICABLE, "the document says nothing of log dirs")
        .when(outcome == base.UNKNOWN, "its log dirs could not be read"),
        remediation=F.when(
            outcome == base.FAIL,
            base.script(
                base.comment("This shows which; replace that disk, then restart the broker."),
                base.say(
                    'kafka-log-dirs --bootstrap-server "$BOOTSTRAP" --describe --broker-list %s', F.col("b")["broker"]
                ),
            ),
        ).otherwise("Bring the broker back, or give the auditor Describe on the cluster"),
    )  # fmt: skip
