"""log-dirs: a broker has an offline log dir (DescribeLogDirs); its replicas there are lost until the disk is mended."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "log-dirs"


def broker_verdicts(plan: Plan) -> list[Column]:
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
    verdict = base.verdict(
        CONTROL,
        outcome,
        cause=F.when(offline > 0, F.col("b")["lag_cause"]).otherwise(
            F.coalesce(F.col("b")["down"], F.lit("unreadable"))
        ),
        observed={"offline_log_dirs": offline},
        required={"offline_log_dirs": F.lit(0)},
    )
    return [verdict]
