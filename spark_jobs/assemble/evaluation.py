"""One run, from facts to rows: each result table is written once, under the plan's run_id and result_id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial, reduce

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from durability import catalogue
from durability.lake import tables
from durability.plan.plan import Plan
from spark_jobs import session
from spark_jobs.assemble import changes, outcomes, topics, verdicts
from spark_jobs.assemble import past as history
from spark_jobs.controls import (
    at_min_isr_over_time,
    having,
    isr_rack_spread,
    partition_health,
    reassignment_leftovers,
    waiver_expired,
)
from spark_jobs.frames import facts, partitions, target
from spark_jobs.frames.literals import literal, spark_type
from spark_jobs.history import rack_outage, readings
from spark_jobs.lake_tables import Reader
from spark_jobs.scale import groups
from spark_jobs.scale.compiled import compiled


class Evaluation:
    """One run's frames, each derived once. `measured` is checkpointed, because four tables are made from it."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        read: Reader,
        background: ThreadPoolExecutor,
        of_topics: topics.Asked | None = None,
    ):
        """background: three threads or more. They read partitions and build expressions at the same time. of_topics: the result
        of `asked_of_topics`, if it was built earlier."""
        self.spark, self.plan, self._read = spark, plan, read
        # Many rows are kept as bytes, not as objects: a fifth less memory and half the garbage collection.
        level = None if plan.small else StorageLevel.MEMORY_AND_DISK
        self._checkpointed = partial(session.checkpointed, level=level)
        self._background = background
        # Some two thousand expressions, built while Spark opens and reads tables.
        self._of_topics = background.submit(lambda: of_topics or asked_of_topics(plan.pulse))
        self._of_verdicts = None if plan.pulse else background.submit(outcomes.asked, plan)
        self.tiers = literal(plan.policy.tiers, f"map<string,{requirements()}>")
        # Partition health needs no tier, so a pulse resolves none.
        mine = F.lit(False) if plan.pulse else F.col("result_id") == plan.result_id
        self.resolved = read("resolved_policy").where(mine)
        self._grouped = bool(plan.grouped) and not plan.small
        # The scan takes as long as preparing the frames that it is joined with.
        judge = groups.representatives(read, [s.attempt_id for s in plan.judged], plan.grouped)
        scanned = background.submit(self._scanned, groups.numbered(judge) if self._grouped else judge)
        # Earlier counters need nothing of this run.
        self._counted = background.submit(self._before) if plan.look_back else None
        of_clusters = facts.clusters(self._judged)
        self.base_clusters = self._checkpointed(of_clusters)
        self.topics = self._checkpointed(facts.topics(self._judged, self.resolved, self.base_clusters, self.tiers))
        # Verdicts that depend on settings alone, while partitions are counted.
        self._of_settings = (
            None if plan.pulse else background.submit(lambda: self._checkpointed(self._judged_by_settings()))
        )
        # A row for each topic, or for several equal ones.
        self._measured_once = self._checkpointed(self._measured(scanned.result, self._checkpointed))
        self.measured = groups.expand(self._measured_once)
        self.past = self.earlier = None
        if plan.look_back and plan.look_back.uncounted:
            self.past = history.Past(plan, read, self.resolved, self.tiers)
            # Written, and read over time.
            self.earlier = self._checkpointed(self.keyed(self.past.counters(), tables.HEALTH_COUNTERS))
        if plan.pulse:
            return
        of_topics = topics.by_cluster(self.measured)
        joined = self.base_clusters.join(of_topics, "cluster", "left")
        self.clusters = self._checkpointed(joined.withColumn("elr_cluster_at_risk", topics.elr_cluster_at_risk()))

    def _judged(self, name: str) -> DataFrame:
        """A fact table's rows of the snapshots that are judged."""
        return self._read(name).where(F.col("attempt_id").isin([s.attempt_id for s in self.plan.judged]))

    def _scanned(self, rows: DataFrame) -> DataFrame:
        """Partitions to evaluate, checkpointed if they are read twice; those of a large fleet without groups are read once."""
        return self._checkpointed(rows) if self._grouped or self.plan.small else rows

    def _measured(self, scanned: Callable[[], DataFrame], keep: Callable[[DataFrame], DataFrame]) -> DataFrame:
        """Topics with all that is measured over their partitions.

        scanned: gives the partitions to be judged. keep: computes.
        """
        asked = self._of_topics.result()

        def judge(rows: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
            rows = self._with_previous_reassignments(rows)
            return topics.prepared(partitions.build(rows, self.topics, self.base_clusters, keep), asked)

        if not self._grouped:
            return topics.measured(judge(scanned()), self.topics, asked)
        # For a pulse, finding equal topics takes longer than evaluating them.
        grouped = groups.group(scanned(), self.topics, judge, keep, None if self.plan.pulse else "healthy")
        return topics.measured(grouped.partitions, grouped.topics, asked)

    def health(self) -> DataFrame:
        """The rows of `partition_health`."""
        listed = topics.health_rows(self.measured)
        if not self.plan.grouped:
            return listed
        members = self._judged("partitions")
        return topics.each(listed, members if self.plan.small else compiled(members))

    def counters(self) -> DataFrame:
        """The rows of `health_counters`: of the evaluated snapshots, and of earlier ones that no run has counted."""
        now = self._counted_now()
        return now if self.earlier is None else now.unionByName(self.earlier)

    def _counted_now(self) -> DataFrame:
        return self.keyed(topics.counters(self.measured, self.base_clusters), tables.HEALTH_COUNTERS)

    def _over_time(self, clusters: DataFrame, of_topic: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Both frames with their readings over time, if the lake has earlier snapshots."""
        if not self.plan.look_back:
            return clusters, of_topic
        of_clusters, found = history.over_time(self.plan, self._counted.result(), self._counted_now(), self.earlier)
        policy = self.plan.policy.readings
        return (
            at_min_isr_over_time.judged(clusters, clusters, of_clusters, found, F.lit(readings.WHOLE), policy),
            at_min_isr_over_time.judged(of_topic, clusters, of_clusters, found, F.col("topic"), policy),
        )

    def _with_previous_reassignments(self, rows: DataFrame) -> DataFrame:
        """`unchanged_reassignment`: the last accepted snapshot, an hour or more ago, showed it just the same."""
        before = [s.previous_attempt_id for s in self.plan.judged if s.previous_attempt_id]
        if not before:
            return rows.withColumn("unchanged_reassignment", F.lit(False))
        old = (
            groups.representatives(self._read, before, self.plan.grouped)
            .where(F.size("adding") > 0)
            .select(
                "cluster",
                "topic",
                "partition",
                F.struct("replicas", "isr", "adding", "removing").alias("old"),
                F.col("captured_at").alias("old_captured_at"),
            )
        )
        patience = F.expr(f"interval {reassignment_leftovers.PATIENCE}")
        same = (F.struct("replicas", "isr", "adding", "removing") == F.col("old")) & (
            F.col("captured_at") - F.col("old_captured_at") >= patience
        )
        return (
            rows.join(F.broadcast(old), ["cluster", "topic", "partition"], "left")
            .withColumn("unchanged_reassignment", F.coalesce(same, F.lit(False)))
            .drop("old", "old_captured_at")
        )

    def _captured(self) -> Column:
        """When the row's cluster was captured; NULL for one that isn't judged."""
        moments = {s.cluster: s.captured_at for s in self.plan.judged}
        return F.try_element_at(literal(moments, "map<string,string>"), F.col("cluster")).cast("timestamp")

    def posture(self) -> DataFrame:
        """One row a topic, with what Great Expectations checks again."""
        columns = rack_outage.posture(F.col("before"))
        return (
            self._beside_what_was()
            .select(
                *verdicts.SNAPSHOT,
                "topic",
                "internal",
                "tier",
                F.coalesce("partition_count", F.lit(0)).cast("int").alias("partitions"),
                *(c.alias(n) for n, c in columns.items()),
                *target.COLUMNS,
                "checks",
            )
            .withColumn("rack_outage_step", rack_outage.most_urgent(F.col("rack_outage")))
        )

    def _beside_what_was(self) -> DataFrame:
        """`measured` with `before`: what is remembered of the topic's thresholds, by the last run that judged the cluster and
        by snapshots that no run has judged since."""
        pairs = [f"{s.previous_result_id} {s.cluster}" for s in self.plan.judged if s.previous_result_id]
        rows = self.measured.withColumns(
            {"before": F.lit(None).cast(rack_outage.BEFORE), "before_at": F.lit(None).cast("timestamp")}
        )
        if pairs:
            before = (
                self._read("topic_posture")
                .where(F.col("result_id").isin(sorted({p.partition(" ")[0] for p in pairs})))
                .where(F.concat_ws(" ", "result_id", "cluster").isin(pairs))
                .select(
                    "cluster",
                    "topic",
                    F.struct(*rack_outage.CONFIGURED, "rack_outage").alias("before"),
                    F.col("captured_at").alias("before_at"),
                )
            )
            rows = self.measured.join(before, ["cluster", "topic"], "left")
        if self.past is None:
            return rows
        since = F.filter("past", lambda seen: F.coalesce(seen["captured_at"] > F.col("before_at"), F.lit(True)))
        with_past = rows.join(self.past.outages(), ["cluster", "topic"], "left").withColumn("past", since)
        return with_past.withColumn("before", rack_outage.remembered(F.col("before"), F.col("past")))

    def _with_targets(self) -> DataFrame:
        """`measured` with each topic's target; kept where topics are few, since each verdict has it."""
        rack_of = F.transform_values("broker", lambda _, broker: broker["rack"]).alias("rack_of")
        of_clusters = self.clusters.select("cluster", "elr_cluster_at_risk", rack_of)
        # Readings over time are a topic's own.
        measured = self.measured if self.plan.look_back else self._measured_once
        joined = measured.join(F.broadcast(of_clusters), "cluster")
        rows = joined.withColumn(isr_rack_spread.NAMES, isr_rack_spread.names())
        # A map of all brokers isn't for each topic to keep.
        rows = target.with_target(rows, self.plan).drop("rack_of")
        return self._checkpointed(rows) if self.plan.small else rows

    def outcomes(self) -> DataFrame:
        """Every control's outcome on every resource, before waivers and comparison.

        Nothing depends on the order, and Spark prepares one of these while it runs another.
        """
        clusters, of_topics = self._over_time(self.clusters, self._with_targets())
        asked = self._of_verdicts.result()
        of_clusters = self._background.submit(
            lambda: self._checkpointed(outcomes.of_clusters(clusters, asked.clusters))
        )
        gathered = outcomes.of_topics(of_topics, asked.topics)
        if self.plan.small:
            each = self._checkpointed(verdicts.each(gathered))
        else:
            each = groups.expand(verdicts.each(compiled(self._checkpointed(gathered))), "resource")
        return each.unionByName(of_clusters.result()).unionByName(self._of_settings.result())

    def _judged_by_settings(self) -> DataFrame:
        """Outcomes that ask nothing of partitions."""
        clusters = facts.with_wants(self.base_clusters, self.topics)
        frames = [
            outcomes.of_brokers(clusters, self.plan),
            outcomes.of_tiers(clusters, self.tiers, self.plan),
            *([outcomes.of_applications(self.resolved, clusters, self.plan)] if self.plan.applications else []),
            *outcomes.of_missing(self.spark, self.plan),
        ]
        return reduce(DataFrame.unionByName, frames)

    def _before(self) -> DataFrame:
        """What runs have counted before; of a small run read at once, which takes less than planning it with all else."""
        counted = history.counted(self.plan, self._read, self._captured())
        return self._checkpointed(counted) if self.plan.small else counted

    def verdicts(self) -> DataFrame:
        """All verdicts of the run, PASS and NOT_APPLICABLE ones too."""
        waived = verdicts.with_waivers(self.outcomes(), self.resolved, self.plan.waivers)
        if self.plan.waivers:
            waived = self._checkpointed(waived)
            failed = waived.where(F.size("expired") > 0)
            expired = waiver_expired.verdicts(failed, self.plan.waivers)
            waived = waived.unionByName(expired, allowMissingColumns=True)
        named = verdicts.with_ids(waived.drop("expired"))
        before = {s.previous_result_id: s.previous_policy_sha256 for s in self.plan.snapshots if s.previous_result_id}
        if not before:
            return changes.first_run(named)
        named = self._checkpointed(named)
        clusters = {s.previous_result_id + " " + s.cluster for s in self.plan.snapshots if s.previous_result_id}
        same_policy = [r for r, sha in before.items() if sha == self.plan.policy.sha256]
        previous = (
            self._read("findings")
            .where(F.col("result_id").isin(list(before)))
            .where(F.concat_ws(" ", "result_id", "cluster").isin(list(clusters)))
            .withColumn("policy_changed", ~F.col("result_id").isin(same_policy))
        )
        return changes.compared(named, previous, self.resolved, self.clusters)

    def keyed(self, frame: DataFrame, table: tables.Table) -> DataFrame:
        """`frame` as rows of `table`, under this run and result."""
        keys = {"run_id": F.lit(self.plan.run_id), "result_id": F.lit(self.plan.result_id)}
        present = set(frame.columns)
        return frame.select(
            *((keys[n] if n in keys else F.col(n) if n in present else F.lit(None)).alias(n) for n, _ in table.columns)
        )


def requirements() -> str:
    """The type of what a tier requires (DDL), by the catalogue's keys."""
    return f"struct<{','.join(f'{key}:{spark_type(r)}' for key, r in catalogue.requirements().items())}>"


def asked_of_topics(pulse: bool) -> topics.Asked:
    """What is asked of topics: of a pulse partition health alone."""
    if pulse:
        return topics.asked([partition_health], outages=False)
    return topics.asked(having("outcome"), outages=True, targets=True)


def run(
    spark: SparkSession,
    plan: Plan,
    read: Reader,
    write: Callable[[DataFrame, tables.Table], None],
    of_topics: topics.Asked | None = None,
) -> None:
    """Evaluates `plan`, writing each result table once. of_topics: see `Evaluation`."""
    with ThreadPoolExecutor(3) as background:
        evaluation = Evaluation(spark, plan, read, background, of_topics)
        # The verdicts take as long to plan as the rest takes to write: side by side.
        written = background.submit(write_measures, evaluation, write)
        if not plan.pulse:
            write(evaluation.keyed(evaluation.verdicts(), tables.VERDICTS), tables.VERDICTS)
        written.result()


def write_measures(evaluation: Evaluation, write: Callable[[DataFrame, tables.Table], None]) -> None:
    """What comes of the topics' measures alone."""
    frames = {tables.HEALTH_COUNTERS: evaluation.counters}
    if not evaluation.plan.pulse:
        frames[tables.TOPIC_POSTURE] = evaluation.posture
    # The largest last: its many tasks keep all cores busy to the end.
    frames[tables.PARTITION_HEALTH] = evaluation.health
    for table, frame in frames.items():
        write(evaluation.keyed(frame(), table), table)
