"""partition-health: offline, under-min-isr, at-min-isr and under-replicated partitions (KIP-427), one finding a category.

All but offline need a live leader. A partition can be at-min-isr and under-replicated at once. At-min-isr with the ISR
whole is what the configuration leaves, and no sign of trouble: info, not warning.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.plan.plan import Plan
from spark_jobs.frames import base, target
from spark_jobs.frames.flagged import Flagged, each

CONTROL = "partition-health"
CATEGORIES = ("offline", "under-min-isr", "at-min-isr", "under-replicated")


def flag(category: str) -> Column:
    """The partition's column of a category."""
    return F.col(base.column(category))


def known() -> Column:
    """Is every category of a partition decided?"""
    rest = flag("under-min-isr").isNotNull() & flag("at-min-isr").isNotNull() & flag("under-replicated").isNotNull()
    return F.coalesce(F.col("offline") | (F.col("offline").isNotNull() & rest), F.lit(False))


def measures() -> dict[str, Flagged]:
    """Per category its partitions, whether an ISR shrank, the causes, one of those with the smallest ISR, and where
    kafka-topics differs."""
    columns = {"health_unknown": base.partition_ids(~known())}
    for category in CATEGORIES:
        name, on = base.column(category), flag(category)
        # A whole ISR can be too small for a leader that caps only while replicas are being added: they count already.
        growing = F.col("reassigning") & F.lit(category == "under-min-isr")
        columns |= {
            f"{name}_ids": base.partition_ids(on),
            f"{name}_shrunk": Flagged(on & (~F.col("isr_whole") | growing), lambda those: F.size(those) > 0),
            f"{name}_isr_whole": Flagged(
                on, lambda those: (F.size(those) > 0) & F.forall(those, lambda p: p["isr_whole"])
            ),
            f"{name}_causes": base.causes_where(on),
            f"{name}_worst": Flagged(on, lambda those: F.array_min(F.transform(those, _numbers))),
            f"{name}_cli": Flagged(on, lambda those: F.array_sort(F.array_distinct(each(those, "cli_differs")))),
        }
    return columns


def _numbers(partition: Column) -> Column:
    """What a finding says of one partition, so that its numbers belong together; ordered by ISR, unread ones last."""
    names = {"rf": "rf", "min_isr": "min_isr", "effective": "effective_min_isr"}
    names |= {name: name for name in ("min_isr_source", "replica_count")}
    isr = partition["isr_count"]
    return F.struct(isr.isNull().alias("unread"), isr.alias("isr"), *(partition[n].alias(k) for k, n in names.items()))


def outcome() -> Column:
    """Of the topic as a whole: PASS, or UNKNOWN where a partition's health is; NULL where categories say it all."""
    unread = F.coalesce(F.size("health_unknown") > 0, F.lit(True)) | ~F.col("partitions_known")
    failing = [F.size(f"{base.column(c)}_ids") for c in CATEGORIES]
    none = (failing[0] + failing[1] + failing[2] + failing[3]) == 0
    return F.when(unread, base.UNKNOWN).when(none, base.PASS)


def _of_category(category: str) -> Column:
    name = base.column(category)
    causes = F.coalesce(base.dominant(f"{name}_causes"), F.lit("replicas lagging"))
    seen, ids = F.col(f"{name}_worst"), F.col(f"{name}_ids")
    shrunk = F.lit(True) if category == "offline" else F.col(f"{name}_shrunk")
    whole = F.col(f"{name}_isr_whole")
    severity = F.lit(base.severity_of(CONTROL, category))
    if category == "at-min-isr":
        severity = F.when(shrunk, severity).otherwise(base.severity_of(CONTROL, "at-min-isr/configuration"))
    return base.verdict(
        CONTROL,
        F.when(F.size(ids) > 0, base.FAIL),
        category=F.lit(category),
        severity=severity,
        cause=F.when(shrunk, causes).otherwise(base.min_isr_cause(seen["min_isr_source"])),
        observed={
            "category": F.lit(category),
            "cause": F.lit("shrunk") if category == "offline" else F.when(whole, "configuration").otherwise("shrunk"),
            "isr": seen["isr"],
            "replication_factor": seen["rf"],
            "min_insync_replicas": seen["min_isr"],
            "effective_min_insync_replicas": seen["effective"],
        },
        evidence={
            "replicas": seen["replica_count"],
            "cli_differs": F.col(f"{name}_cli"),
            "shrunk": shrunk,
            "growing": F.col("reassigning_partitions") > 0,
            "target": target.evidence(),
        },
        partitions=ids,
    )


def topic_verdicts(plan: Plan) -> list[Column]:
    """One per category that applies, and one PASS or UNKNOWN for the topic."""
    none = F.lit(None).cast("string")
    rest = base.verdict(
        CONTROL,
        base.outcome_of(CONTROL),
        cause="unreadable",
        observed={"category": none, "cause": none},
        partitions=F.col("health_unknown"),
    )
    return [*(_of_category(c) for c in CATEGORIES), rest]


def cluster_verdicts(plan: Plan) -> list[Column]:
    """UNKNOWN, once, where it can't be known whether topics are hidden from the auditor.

    Metadata leaves out what the principal may not see, without a word; DescribeLogDirs lists every partition. Reads
    `hidden_partitions`, NULL where log dirs could not be read. Where the provider keeps them closed, that is its duty.
    Nor can it where topics or brokers as such could not be read.
    """
    unlisted = ~F.col("topics_known") | ~F.col("brokers_known")
    verdict = base.verdict(
        CONTROL,
        F.when(unlisted | (F.col("hidden_partitions").isNull() & ~base.providers_duty("log-dirs")), base.UNKNOWN),
        cause=F.when(unlisted, "unreadable").otherwise("topics-hidden"),
        observed={"hidden_partitions": F.lit(None).cast("int")},
        required={"hidden_partitions": F.lit(0)},
        evidence={base.REASON: F.when(unlisted, "unlisted").otherwise("topics-hidden")},
    )
    return [verdict]
