"""partition-health: offline, under-min-isr, at-min-isr and under-replicated partitions (KIP-427), one finding a category.

All but offline need a live leader. A partition can be at-min-isr and under-replicated at once. At-min-isr with the ISR
whole is what the configuration leaves, and no sign of trouble: info, not warning.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from spark_jobs import target
from spark_jobs.controls import base, elr_guard
from spark_jobs.flagged import Flagged, each

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


WORDS = {
    "offline": "no live leader: neither reads nor writes",
    "under-min-isr": "acks=all writes are refused (NOT_ENOUGH_REPLICAS)",
    "at-min-isr": "one more replica out of sync refuses acks=all writes",
    "under-replicated": "fewer copies than meant",
}


SINGLE = WORDS | {"at-min-isr": "its broker holds the only copy, and while it is away nobody reads or writes"}
"""The same of a partition with one replica."""
NO_HEADROOM_WANTED = (
    "Nothing to mend while the topic's tier asks for no headroom; if writes shall go on without one of its brokers, give it"
    " a tier with write_headroom"
)


def outcome() -> Column:
    """Of the topic as a whole: PASS, or UNKNOWN where a partition's health is; NULL where categories say it all."""
    unread = F.coalesce(F.size("health_unknown") > 0, F.lit(True)) | ~F.col("partitions_known")
    failing = [F.size(f"{base.column(c)}_ids") for c in CATEGORIES]
    none = (failing[0] + failing[1] + failing[2] + failing[3]) == 0
    return F.when(unread, base.UNKNOWN).when(none, base.PASS)


def _remediation(category: str, shrunk: Column, causes: Column) -> Column:
    back = base.bring_back(causes)
    if category == "under-min-isr":
        # Raising the replication factor did it: finishing or cancelling that undoes it (seen on 4.3.1).
        cancel = "Or take back what adds replicas, they count already: --cancel, with the file it was started from."
        growing = F.col("reassigning_partitions") > 0

        def grows(back: Column) -> Column:
            as_script = F.when(back.startswith("#"), back).otherwise(base.comment(back))
            return F.when(growing, base.script(as_script, base.comment(cancel), base.RUNNING)).otherwise(back)

        back = base.bound(grows, back)
    unsafe = elr_guard.unsafe("elr_partitions_at_risk")

    def wait(back: Column) -> Column:
        return (
            F.when(unsafe & back.startswith("#"), base.script(base.comment(elr_guard.WAIT), back))
            .when(unsafe, F.concat(back, F.lit(". " + elr_guard.WAIT)))
            .otherwise(back)
        )

    return F.when(shrunk, base.bound(wait, back)).when(target.differs(), target.remedy()).otherwise(NO_HEADROOM_WANTED)


def _finding(category: str) -> Column:
    causes = F.coalesce(base.dominant(f"{base.column(category)}_causes"), F.lit("replicas lagging"))
    return base.bound(lambda causes: _of_causes(category, causes), causes)


def _of_causes(category: str, causes: Column) -> Column:
    name = base.column(category)
    seen, ids = F.col(f"{name}_worst"), F.col(f"{name}_ids")
    shrunk = F.lit(True) if category == "offline" else F.col(f"{name}_shrunk")
    whole = F.col(f"{name}_isr_whole")
    # Below what either release enforces, while it is unknown which one leads.
    either = base.say("%s or %s", seen["replica_count"], seen["min_isr"])
    by_config = base.min_isr_cause(seen["min_isr_source"])
    severity = F.lit(base.severity_of(CONTROL, category))
    if category == "at-min-isr":
        severity = F.when(shrunk, severity).otherwise(base.severity_of(CONTROL, "at-min-isr/configuration"))
    return base.finding(
        CONTROL,
        F.when(F.size(ids) > 0, base.FAIL),
        category=F.lit(category),
        severity=severity,
        cause=F.when(shrunk, causes).otherwise(by_config),
        observed=base.as_json(
            category=F.lit(category),
            cause=F.lit("shrunk") if category == "offline" else F.when(whole, "configuration").otherwise("shrunk"),
            isr=seen["isr"],
            replication_factor=seen["rf"],
            min_insync_replicas=seen["min_isr"],
            effective_min_insync_replicas=seen["effective"],
        ),
        required=F.lit("{}"),
        partitions=ids,
        message=F.concat(
            base.say(
                "%s: isr %s of %s replicas, effective min.insync.replicas %s; %s",
                base.partitions_listed(ids),
                seen["isr"],
                seen["rf"],
                F.coalesce(seen["effective"].cast("string"), either),
                F.when(seen["rf"] == 1, SINGLE[category]).otherwise(WORDS[category]),
            ),
            F.when(F.size(f"{name}_cli") > 0, F.concat(F.lit("; "), F.array_join(f"{name}_cli", "; "))).otherwise(""),
        ),
        remediation=_remediation(category, shrunk, causes),
    )


def findings() -> list[Column]:
    """One per category that applies, and one PASS or UNKNOWN for the topic."""
    rest = base.finding(
        CONTROL,
        base.outcome_of(CONTROL),
        cause="unreadable",
        observed=F.lit('{"category": null, "cause": null}'),
        required=F.lit("{}"),
        partitions=F.col("health_unknown"),
        message=F.lit(None).cast("string"),
        remediation="Let the auditor read what is listed as unreadable",
    )
    return [*(_finding(c) for c in CATEGORIES), rest]


def cluster_finding() -> Column:
    """UNKNOWN, once, where it can't be known whether topics are hidden from the auditor.

    Metadata leaves out what the principal may not see, without a word; DescribeLogDirs lists every partition. Reads
    `hidden_partitions`, NULL where log dirs could not be read. Where the provider keeps them closed, that is its duty.
    Nor can it where topics or brokers as such could not be read.
    """
    unlisted = ~F.col("topics_known") | ~F.col("brokers_known")
    return base.finding(
        CONTROL,
        F.when(unlisted | (F.col("hidden_partitions").isNull() & ~base.providers_duty("log-dirs")), base.UNKNOWN),
        cause=F.when(unlisted, "unreadable").otherwise("topics may be hidden"),
        observed=F.lit('{"hidden_partitions": null}'),
        required=F.lit('{"hidden_partitions": 0}'),
        message=F.when(unlisted, "topics or brokers could not be listed: what isn't shown isn't judged").otherwise(
            "topics that the auditor may not see can't be excluded: no log dirs could be read to hold metadata against"
        ),
        remediation="Give the auditor Describe on the cluster and on all topics",
    )
