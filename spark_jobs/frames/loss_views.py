"""What partitions answer before a loss and after it, in each view: now, and structural as the worse of two placements.

Every prediction uses these views: of a stated loss (`spark_jobs.assemble.loss_outcomes`), and of each single broker and rack
(`spark_jobs.assemble.failure_costs`).
"""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames import losses, partitions
from spark_jobs.frames.columns import certain, possible
from spark_jobs.frames.rack_health import NO_ERROR, NO_LEADER, NOT_ENOUGH_REPLICAS, TIMED_OUT

BEFORE, NOW = "before", "now"
WITHOUT = ("adding", "removing")
"""The structural view is the worse of two: without the replicas that are being added, and without those being removed."""
BY_SEVERITY = (NO_ERROR, NOT_ENOUGH_REPLICAS, TIMED_OUT, NO_LEADER)
"""Answers to an acks=all write, the worst last."""
CHANGED = ("replicas", "brokers", "isr", "leader", "leader_known", "elr", "adding", "removing", "leading")
"""The columns of a partition that a view or a loss changes."""


def placements() -> Column:
    """The structural views of a partition. Without a reassignment, both placements are the same."""
    moving = possible((F.size("adding") > 0) | (F.size("removing") > 0))
    return F.when(moving, F.array(*map(F.lit, WITHOUT))).otherwise(F.array(F.lit(WITHOUT[0])))


def in_views(with_loss: DataFrame, key: Sequence[str], views: Column | None = None) -> DataFrame:
    """One row per `key`, which identifies a row of `with_loss`.

    with_loss: `losses.before`, with the columns that `losses` reads, and `quorum_kept_if_up`, have the controllers a majority
        after the loss if all brokers were up before it.
    views: an array of a row's views; all by default. The columns of other views are NULL.

    - `before_answer`, `now_answer`, `adding_answer`, `removing_answer`: the answer to an acks=all write; NULL if unknown.
    - `leader_before`, `leader_now`.
    - `min_isr_before`: the effective minimum size of the ISR.
    - `data_worst`: is an ISR of the effective minimum size lost, in any of the views but `now`?
    - `all_lost`: are all replicas lost, of the worse placement?
    """
    # Each view from one plan: a plan for each takes longer to make than to run.
    view = F.col("view")
    views = F.concat(F.array(F.lit(BEFORE), F.lit(NOW)), placements()) if views is None else views
    rows = with_loss.select("*", F.explode(views).alias("view"))
    left_out = F.when(view == WITHOUT[0], F.col("adding")).when(view == WITHOUT[1], F.col("removing"))
    whole = losses.whole(_as_is(rows.withColumn("left_out", left_out)), "left_out")
    kept = F.when(view.isin(*WITHOUT), F.col("quorum_kept_if_up")).otherwise(F.col("quorum_kept"))
    placed = _where(view.isin(*WITHOUT), whole).withColumn("quorum_kept", kept).localCheckpoint()
    after = _where(view != BEFORE, losses.after(_as_is(placed))).localCheckpoint()
    return _per_key(with_answers(after), key)


def _as_is(frame: DataFrame) -> DataFrame:
    return frame.withColumns({f"as_is_{name}": F.col(name) for name in CHANGED})


def _where(condition: Column, changed: DataFrame) -> DataFrame:
    """CHANGED of `changed` in the rows for which the condition holds, else as they were (`_as_is`)."""
    chosen = {name: F.when(condition, F.col(name)).otherwise(F.col(f"as_is_{name}")) for name in CHANGED}
    return changed.withColumns(chosen).drop(*(f"as_is_{name}" for name in CHANGED))


def with_answers(facts: DataFrame) -> DataFrame:
    """Each view's answer to an acks=all write (`acks_all_error`), by the rules for partitions as they are."""
    live = partitions.live_members(facts)
    return partitions.in_racks(partitions.judged(partitions.spans(partitions.shape(live))))


def _per_key(judged: DataFrame, key: Sequence[str]) -> DataFrame:
    def in_view(view: str, column: str) -> Column:
        return F.max(F.when(F.col("view") == view, F.col(column)))

    # An ISR of the effective minimum size may have acknowledged alone, also one of old and new replicas.
    worst = worst_case(F.col("effective_min_isr"))
    possible_isr = F.when(F.col("view") != NOW, worst)
    unsure = (F.col("view") != NOW) & worst.isNull()
    gone = F.when(lost_replicas() == 0, False).otherwise(F.forall("replicas", lambda id: F.array_contains("lost", id)))
    of_placement = F.when(F.col("view").isin(*WITHOUT), gone)
    unsure_placement = F.col("view").isin(*WITHOUT) & gone.isNull()
    one, other = (in_view(view, "acks_all_error") for view in WITHOUT)
    answers = {
        **{f"{view}_answer": in_view(view, "acks_all_error") for view in (BEFORE, NOW)},
        f"{WITHOUT[0]}_answer": one,
        f"{WITHOUT[1]}_answer": F.when(F.bool_or(F.col("view") == WITHOUT[1]), other).otherwise(one),
        **{f"leader_{view}": in_view(view, "leader") for view in (BEFORE, NOW)},
        "min_isr_before": in_view(BEFORE, "effective_min_isr"),
        "data_worst": F.when(F.bool_or(possible_isr), True).when(~F.bool_or(unsure), False),
        "all_lost": F.when(F.bool_or(of_placement), True).when(~F.bool_or(unsure_placement), False),
    }
    return judged.groupBy(*key).agg(*(answer.alias(name) for name, answer in answers.items()))


def lost_replicas() -> Column:
    """The number of lost replicas; NULL if the replicas are unknown."""
    return F.size(F.array_intersect("replicas", "lost"))


def worst_case(min_isr: Column, lost: Column | None = None) -> Column:
    """Is an ISR of this size among the lost replicas? lost: their number, by default that of the row."""
    number = lost_replicas() if lost is None else lost
    return F.when(number == 0, False).otherwise(number >= min_isr)


def structural_answer() -> Column:
    """The worse of the answers of both placements; NULL if one is unknown and the other isn't the worst."""
    one, other = (F.col(f"{w}_answer") for w in WITHOUT)
    answers = F.array(*map(F.lit, BY_SEVERITY))
    place = F.greatest(F.array_position(answers, one), F.array_position(answers, other))
    known = (one.isNotNull() & other.isNotNull()) | certain((one == NO_LEADER) | (other == NO_LEADER))
    return F.when(known, F.element_at(answers, place.cast("int")))
