"""Evaluates one run: from facts to the rows of each result table, written once under the plan's run_id and result_id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, reduce

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from durability.lake import tables
from durability.plan.inventory import Inventory
from durability.plan.plan import LookBack, Plan, SnapshotPart
from spark_jobs import session
from spark_jobs.assemble import changes, outcomes, topics, verdicts
from spark_jobs.assemble import past as history
from spark_jobs.assemble.failure_costs import Losses
from spark_jobs.controls import (
    at_min_isr_over_time,
    having,
    inventory_coverage,
    isr_rack_spread,
    partition_health,
    reassignment_leftovers,
    waiver_expired,
)
from spark_jobs.frames import facts, partitions, target
from spark_jobs.frames.literals import literal, requirements
from spark_jobs.history import rack_outage, readings
from spark_jobs.lake_tables import Reader
from spark_jobs.scale import groups, loss_groups
from spark_jobs.scale.compiled import compiled
from spark_jobs.scale.planned import planned


class Evaluation:
    """One run's frames. A frame that several tables or plans read is checkpointed."""

    def __init__(
        self,
        spark: SparkSession,
        plan: Plan,
        read: Reader,
        background: ThreadPoolExecutor,
        expressions: topics.Expressions | None = None,
    ):
        """background: at least four threads, which read partitions and build expressions at the same time.

        expressions: the result of `topic_expressions`, if it was built earlier.
        """
        self.spark, self.plan, self._read = spark, plan, read
        # Serialized storage needs a fifth less memory for many rows, and half the garbage collection.
        level = None if plan.small else StorageLevel.MEMORY_AND_DISK
        self._checkpointed = partial(session.checkpointed, level=level)
        self._planned = partial(planned, small=plan.small)
        self._background = background
        # About two thousand expressions. They are built while Spark opens and reads tables.
        self._topic_expressions = background.submit(lambda: expressions or topic_expressions(plan.pulse))
        self._outcome_expressions = (
            None
            if plan.pulse
            else background.submit(lambda: [outcomes.expressions(kind, plan) for kind in ("topic", "cluster")])
        )
        self._loss_expressions = background.submit(lambda: outcomes.expressions("loss", plan))
        self.tiers = literal(plan.policy.required, f"map<string,{requirements()}>")
        # Partition health needs no tier, so a pulse has no resolved policy.
        of_result = F.lit(False) if plan.pulse else F.col("result_id") == plan.result_id
        self.resolved = read("resolved_policy").where(of_result)
        self._grouped = bool(plan.grouped) and not plan.small
        # The scan takes as long as preparing the frames to join it with.
        rows = groups.representatives(read, plan.attempts, plan.grouped)
        self._scan = background.submit(self._scanned, groups.numbered(rows) if self._grouped else rows)
        # Counters of previous runs need nothing from this run.
        self._counted = background.submit(self._counted_before, plan.look_back) if plan.look_back else None
        self.base_clusters = self._checkpointed(facts.clusters(self._facts))
        self.topics = self._checkpointed(facts.topics(self._facts, self.resolved, self.base_clusters, self.tiers))
        # Outcomes without partitions are computed while topics are measured.
        self._other_outcomes = (
            None if plan.pulse else background.submit(lambda: self._checkpointed(self._outcomes_without_partitions()))
        )
        # Planning the losses takes as long as measuring the topics, so both happen concurrently.
        self._losses = background.submit(self._found_losses)
        # A row represents one topic or several equal topics.
        self._measured_once = self._checkpointed(self._measured(self._scan))
        self.measured = groups.expand(self._measured_once)
        self.past = self.earlier = None
        if plan.look_back and plan.look_back.uncounted:
            self.past = history.Past(plan, plan.look_back.uncounted, read, self.resolved, self.tiers)
            # Read twice: for writing, and for the readings over time.
            self.earlier = self._checkpointed(self.keyed(self.past.counters(), tables.HEALTH_COUNTERS))
        if plan.pulse:
            return
        joined = self.base_clusters.join(topics.by_cluster(self.measured, plan), "cluster", "left")
        guarded = {"elr_cluster_at_risk": topics.elr_cluster_at_risk(), "inherited_least": topics.inherited_least()}
        self.clusters = self._checkpointed(joined.withColumns(guarded))

    def _facts(self, name: str) -> DataFrame:
        """A fact table's rows of the evaluated snapshots."""
        return self._read(name).where(F.col("attempt_id").isin(self.plan.attempts))

    def _scanned(self, rows: DataFrame) -> DataFrame:
        """Partitions to evaluate, checkpointed if they are read twice. A large fleet without groups reads them once."""
        return self._checkpointed(rows) if self._grouped or self.plan.small else rows

    def _measured(self, scanned: Future[DataFrame]) -> DataFrame:
        """Topics with all measures over their partitions. scanned: the partitions to evaluate."""
        expressions = self._topic_expressions.result()

        def judge(rows: DataFrame, keep: Sequence[str] = ()) -> DataFrame:
            rows = self._with_previous_reassignments(rows)
            built = partitions.build(rows, self.topics, self.base_clusters, keep)
            return topics.prepared(built, expressions, self._planned)

        if not self._grouped:
            return topics.measured(judge(scanned.result()), self.topics, expressions, self._planned)
        # In a pulse, finding equal topics takes longer than evaluating them.
        healthy = None if self.plan.pulse else "healthy"
        grouped = groups.group(scanned.result(), self.topics, judge, self._checkpointed, healthy)
        return topics.measured(*grouped, expressions, self._planned)

    def _found_losses(self) -> Losses:
        rows, by_name = self._facts("partitions"), not self.plan.pulse
        grouped = set(self.plan.grouped)
        without = [attempt for attempt in self.plan.attempts if attempt not in grouped]
        equal = loss_groups.Groups(self._scan.result(), without) if self._grouped else None
        large = not self.plan.small
        return Losses(rows, self.topics, self.base_clusters, self._checkpointed, by_name, large=large, groups=equal)

    @property
    def losses(self) -> Losses:
        """What single losses break. A pulse has their distances alone."""
        return self._losses.result()

    def health(self) -> DataFrame:
        """The rows of `partition_health`."""
        return topics.health_rows(self.measured)

    def counters(self) -> DataFrame:
        """The rows of `health_counters` for the evaluated snapshots and for earlier snapshots that no run has counted."""
        now = self._counted_now(self._checkpointed(self.losses.distances()))
        return now if self.earlier is None else now.unionByName(self.earlier)

    def _counted_now(self, distances: DataFrame | None = None) -> DataFrame:
        tiers = self._last_tiers() if self.plan.pulse and distances is not None else None
        rows = topics.counters(self.measured, self.base_clusters, distances, tiers)
        return self.keyed(rows, tables.HEALTH_COUNTERS)

    def _last_tiers(self) -> DataFrame:
        """cluster, topic and tier of all topics, as the last nightly run that evaluated the cluster resolved them."""
        pairs = {(s.resolved_result_id, s.cluster) for s in self.plan.judged if s.resolved_result_id}
        resolved = self._read("resolved_policy").where(F.col("resource_type") == "topic")
        mine = F.concat_ws(" ", "result_id", "cluster").isin(sorted(" ".join(pair) for pair in pairs))
        of_runs = F.col("result_id").isin(sorted({result for result, _ in pairs}))
        return resolved.where(of_runs & mine).select("cluster", F.col("resource").alias("topic"), "tier")

    def _over_time(self, clusters: DataFrame, of_topics: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Both frames with their readings over time, if the lake has earlier snapshots."""
        if self._counted is None:
            return clusters, of_topics
        over_time = history.over_time(self.plan, self._counted.result(), self._counted_now(), self.earlier)
        policy = self.plan.policy.readings
        return (
            at_min_isr_over_time.judged(clusters, clusters, *over_time, F.lit(readings.WHOLE), policy),
            at_min_isr_over_time.judged(of_topics, clusters, *over_time, F.col("topic"), policy),
        )

    def _with_previous_reassignments(self, rows: DataFrame) -> DataFrame:
        """Adds `unchanged_reassignment`: a previous accepted snapshot, an hour old or more, has the same reassignment and ISR."""
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

    def posture(self) -> DataFrame:
        """The rows of `topic_posture`: one per topic, with what Great Expectations checks again."""
        columns = rack_outage.posture(F.col("before"))
        return (
            self._with_remembered_outages()
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

    def _previous(self, table: str, snapshots: Iterable[SnapshotPart]) -> DataFrame | None:
        """The rows of a result table from the previous run of each snapshot's cluster; None if there was none."""
        pairs = {(s.previous_result_id, s.cluster) for s in snapshots if s.previous_result_id}
        if not pairs:
            return None
        return (
            self._read(table)
            .where(F.col("result_id").isin(sorted({result for result, _ in pairs})))
            .where(F.concat_ws(" ", "result_id", "cluster").isin(sorted(" ".join(pair) for pair in pairs)))
        )

    def _with_remembered_outages(self) -> DataFrame:
        """`measured` with `before`: each topic's thresholds and rack outages as remembered (`rack_outage.BEFORE`).

        They come from the last run that evaluated the cluster, and from later snapshots that no run has evaluated.
        """
        previous = self._previous("topic_posture", self.plan.judged)
        if previous is None:
            rows = self.measured.withColumns(
                {"before": F.lit(None).cast(rack_outage.BEFORE), "before_at": F.lit(None).cast("timestamp")}
            )
        else:
            before = previous.select(
                "cluster",
                "topic",
                F.struct(*rack_outage.CONFIGURED, "rack_outage").alias("before"),
                F.col("captured_at").alias("before_at"),
            )
            rows = self.measured.join(before, ["cluster", "topic"], "left")
        if self.past is None:
            return rows
        since = F.filter("past", lambda state: F.coalesce(state["captured_at"] > F.col("before_at"), F.lit(True)))
        with_past = rows.join(self.past.outages(), ["cluster", "topic"], "left").withColumn("past", since)
        return with_past.withColumn("before", rack_outage.remembered(F.col("before"), F.col("past")))

    def _with_targets(self, measured: DataFrame) -> DataFrame:
        """`measured` with each topic's target, checkpointed, because each verdict reads the target."""
        rack_of = F.transform_values("broker", lambda _, broker: broker["rack"]).alias("rack_of")
        # A reassignment that could not be read may be running.
        reassigning = F.when(F.col("reassignments_known"), F.col("reassigning")).alias("cluster_reassigning")
        of_clusters = self.clusters.select("cluster", "elr_cluster_at_risk", "inherited_least", reassigning, rack_of)
        joined = measured.join(F.broadcast(of_clusters), "cluster")
        rows = joined.withColumn(isr_rack_spread.NAMES, isr_rack_spread.names())
        # Otherwise each topic's row would have a map of all brokers.
        return self._checkpointed(target.with_target(rows, self.plan).drop("rack_of"))

    def outcomes(self) -> DataFrame:
        """Every control's outcome on every resource, before waivers and comparison.

        The frames don't depend on each other, so Spark can plan one while it runs another. A pulse has no outcomes.
        """
        assert self._outcome_expressions is not None and self._other_outcomes is not None
        # Equal topics can have different readings over time.
        targets = self._with_targets(self.measured if self.plan.look_back else self._measured_once)
        clusters, of_topics = self._over_time(self.clusters, targets)
        topic_expressions, cluster_expressions = self._outcome_expressions.result()
        of_clusters = self._background.submit(
            lambda: self._checkpointed(outcomes.of_clusters(clusters, cluster_expressions))
        )
        rows = self._planned(outcomes.of_topics(of_topics, topic_expressions))
        # Losses name brokers, which differ between equal topics.
        of_losses = self._loss_outcomes(groups.expand(targets))
        others = reduce(DataFrame.unionByName, (*of_losses, of_clusters.result(), self._other_outcomes.result()))
        if self.plan.small:
            return verdicts.row_per_outcome(rows.unionByName(others))
        per_outcome = groups.expand(verdicts.row_per_outcome(compiled(self._checkpointed(rows))), "resource")
        return per_outcome.unionByName(verdicts.row_per_outcome(others))

    def _loss_outcomes(self, topics: DataFrame) -> list[DataFrame]:
        """Outcomes of the controls on losses. topics: with their targets, a row each."""
        joined = topics.join(self.losses.of_topics(), ["cluster", "topic"], "left")
        rows = outcomes.of_topics(joined, self._loss_expressions.result())
        # In the compiled plan of all verdicts, these long expressions take twice as long.
        return [self._planned(rows) if self.plan.small else self._checkpointed(rows)]

    def _outcomes_without_partitions(self) -> DataFrame:
        """Outcomes of brokers, tiers, applications, and clusters without an accepted snapshot."""
        clusters = facts.with_wants(self.base_clusters, self.topics)
        frames = [
            outcomes.of_brokers(clusters, self.plan),
            outcomes.of_tiers(clusters, self.tiers, self.plan),
            *([outcomes.of_applications(self.resolved, clusters, self.plan)] if self.plan.applications else []),
            *outcomes.of_missing(self.spark, self.plan),
        ]
        return reduce(DataFrame.unionByName, frames)

    def _counted_before(self, look_back: LookBack) -> DataFrame:
        """Counters from previous runs. A small run reads them here, because planning them with the rest takes longer."""
        capture_times = literal({s.cluster: s.captured_at for s in self.plan.judged}, "map<string,string>")
        captured = F.try_element_at(capture_times, F.col("cluster")).cast("timestamp")
        counted = history.counted(self.plan, look_back, self._read, captured)
        return self._checkpointed(counted) if self.plan.small else counted

    def verdicts(self) -> DataFrame:
        """All verdicts of the run, including PASS and NOT_APPLICABLE."""
        waived = verdicts.with_waivers(self.outcomes(), self.resolved, self.plan.waivers)
        inventory = self.plan.inventory
        fleet = None if inventory is None else self._of_fleet(inventory)
        if self.plan.waivers:
            waived = self._checkpointed(waived)
            all_ = waived if fleet is None else waived.unionByName(fleet, allowMissingColumns=True)
            expired = waiver_expired.verdicts(all_.where(F.size("expired") > 0), self.plan.waivers)
            in_fleet = F.col("cluster").isin([part.cluster for part in self.plan.snapshots])
            waived = waived.unionByName(expired.where(in_fleet), allowMissingColumns=True)
            fleet = fleet and fleet.unionByName(expired.where(~in_fleet), allowMissingColumns=True)
        compared = self._compared(verdicts.with_ids(waived.drop("expired")))
        if inventory is None or fleet is None:
            return compared
        of_fleet = self._compared_fleet(verdicts.with_ids(fleet.drop("expired")), inventory)
        return compared.unionByName(of_fleet, allowMissingColumns=True)

    def _of_fleet(self, inventory: Inventory) -> DataFrame:
        """Verdicts on inventories, and on the clusters in them or in the fleet, with waivers."""
        found = verdicts.row_per_outcome(outcomes.of_inventory(self.spark, self.plan, inventory))
        return verdicts.with_waivers(found, self.resolved, self.plan.waivers)

    def _compared_fleet(self, named: DataFrame, inventory: Inventory) -> DataFrame:
        """`changes.compared_fleet` with the last run that compared inventories.

        What the last run could not know is taken from the last one that could read all inventories.
        """
        if not inventory.previous_result_ids:
            return changes.first_run(named)
        not_audited = F.col("cluster").isin([listed.id for listed in inventory.not_audited])
        control = F.col("control")
        mine = (control == inventory_coverage.CONTROL) | ((control == waiver_expired.CONTROL) & not_audited)
        findings = self._read("findings").where(mine)
        last, *whole = (findings.where(F.col("result_id") == result) for result in inventory.previous_result_ids)
        for older in whole:
            last = last.unionByName(older.join(last.select("cluster", "id"), ["cluster", "id"], "left_anti"))
        now = F.lit(self.plan.latest).cast("timestamp")
        return changes.compared_fleet(named, last, now, unread=bool(inventory.unread), dropped=not inventory.sources)

    def _compared(self, named: DataFrame) -> DataFrame:
        """The verdicts on clusters, compared with the last run that evaluated each cluster."""
        previous = self._previous("findings", self.plan.snapshots)
        if previous is None:
            return changes.first_run(named)
        previous = previous.where(F.col("control") != inventory_coverage.CONTROL)
        policies = {s.previous_result_id: s.previous_policy_sha256 for s in self.plan.snapshots if s.previous_result_id}
        same_policy = [result for result, sha256 in policies.items() if sha256 == self.plan.policy.sha256]
        previous = previous.withColumn("policy_changed", ~F.col("result_id").isin(same_policy))
        return changes.compared(self._checkpointed(named), previous, self.resolved, self.clusters)

    def keyed(self, frame: DataFrame, table: tables.Table) -> DataFrame:
        """`keyed` with this run's keys."""
        return keyed(frame, self.plan, table)


def keyed(frame: DataFrame, plan: Plan, table: tables.Table) -> DataFrame:
    """`frame` as rows of `table`, with the keys of the plan's run. Columns that `frame` doesn't have are NULL."""
    values = {name: F.col(name) for name in frame.columns}
    values |= {"run_id": F.lit(plan.run_id), "result_id": F.lit(plan.result_id)}
    return frame.select(*(values.get(name, F.lit(None)).alias(name) for name, _ in table.columns))


def topic_expressions(pulse: bool) -> topics.Expressions:
    """The expressions over partitions and topics. A pulse needs partition health only."""
    if pulse:
        return topics.expressions([partition_health], outages=False)
    return topics.expressions(having("outcome"), outages=True, targets=True)


def run(
    spark: SparkSession,
    plan: Plan,
    read: Reader,
    write: Callable[[DataFrame, tables.Table], None],
    expressions: topics.Expressions | None = None,
) -> None:
    """Evaluate `plan` and write each result table once. expressions: see `Evaluation`."""
    with ThreadPoolExecutor(4) as background:
        evaluation = Evaluation(spark, plan, read, background, expressions)
        # Planning the verdicts takes as long as writing the other tables, so both happen concurrently.
        written = background.submit(write_measures, evaluation, write)
        if not plan.pulse:
            write(evaluation.keyed(evaluation.verdicts(), tables.VERDICTS), tables.VERDICTS)
        written.result()


def write_measures(evaluation: Evaluation, write: Callable[[DataFrame, tables.Table], None]) -> None:
    """Write the tables of measures over topics: all but `verdicts`."""
    frames = {tables.HEALTH_COUNTERS: evaluation.counters}
    if not evaluation.plan.pulse:
        frames[tables.TOPIC_POSTURE] = evaluation.posture
        frames |= {tables.FAILURE_COSTS: evaluation.losses.costs, tables.LOSS_SETS: evaluation.losses.sets}
    frames[tables.PARTITION_HEALTH] = evaluation.health
    for table, frame in frames.items():
        write(evaluation.keyed(frame(), table), table)
