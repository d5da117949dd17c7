"""log-dirs: a broker has an offline log dir (DescribeLogDirs). Its replicas there are lost until the disk is repaired."""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base
from spark_jobs.frames.columns import certain

CONTROL = "log-dirs"
PATHS = "^(/brokers(/[^/]+(/(offline_)?log_dirs(/.*)?)?)?)?$"
"""The unreadable paths that have log dirs at them, around them or in them."""


def broker_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `b`, the broker, and its cluster's `source` and `unreadable`.

    NOT_APPLICABLE for a document that states no broker's log dirs and doesn't call any unreadable, such as that of a planned
    cluster. If it states some, those that are missing are unknown.
    """
    broker = F.col("b")
    offline = broker["offline_log_dirs"]
    unread = F.exists("unreadable", lambda u: u["path"].rlike(PATHS))
    stated = F.exists("brokers", lambda b: b["offline_log_dirs"].isNotNull())
    left_out = (F.col("source") != "live") & ~certain(unread) & ~certain(stated)
    yield base.verdict(
        CONTROL,
        F.when(offline > 0, base.FAIL)
        .when(offline.isNotNull(), base.PASS)
        .when(left_out, base.NOT_APPLICABLE)
        .otherwise(base.UNKNOWN),
        cause=F.when(offline > 0, broker["lag_cause"]).otherwise(F.coalesce(broker["down"], F.lit("unreadable"))),
        observed={"offline_log_dirs": offline},
        required={"offline_log_dirs": F.lit(0)},
    )
