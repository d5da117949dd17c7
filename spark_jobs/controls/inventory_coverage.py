"""inventory-coverage: every cluster that an inventory lists is audited, and every audited cluster is in an inventory.

An inventory that could not be read is one UNKNOWN. It isn't known then whether a cluster is in no inventory, so there is no
verdict about that.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base

CONTROL = "inventory-coverage"


def inventory_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `name`, and `clusters` and `reason` of an inventory. `clusters` is NULL if it could not be read."""
    yield base.verdict(
        CONTROL,
        F.when(F.col("clusters").isNull(), base.UNKNOWN).otherwise(base.PASS),
        cause=F.concat(F.lit("source "), F.col("name"), F.lit(" unreadable")),
        observed={"clusters": F.col("clusters")},
        evidence={base.REASON: F.lit("source-unread"), "why": F.col("reason")},
    )


def listed_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `audited`, `listed`, `certain`, `sources`, `owner`, `environment` and `other_names` of a cluster, and `unread`, the
    number of inventories that could not be read.
    """
    unlisted = ~F.col("listed") & (F.col("unread") == 0)
    yield base.verdict(
        CONTROL,
        F.when(~F.col("audited") | unlisted, base.FAIL).when(F.col("listed") & F.col("certain"), base.PASS),
        category=F.when(~F.col("audited"), "not-audited").otherwise("not-listed"),
        cause=F.when(~F.col("audited"), "not audited").otherwise("not listed"),
        observed={"audited": F.col("audited"), "listed": F.col("listed")},
        required={"audited": F.lit(True), "listed": F.lit(True)},
        evidence={name: F.col(name) for name in ("sources", "owner", "environment", "other_names")},
    )
