"""The verdict on a topic that must survive the loss of any one broker, or of any one rack.

It fails if a loss breaks something that isn't broken without it, or if something is broken already.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue.causes import CONTROLLER_QUORUM, HOLDS_MAJORITY
from durability.lake.loss_tables import VIEWS
from spark_jobs.frames import base, headroom, target
from spark_jobs.frames.columns import certain, let, possible, struct
from spark_jobs.frames.loss_bits import ALL, BITS, has
from spark_jobs.frames.rack_health import NO_LEADER, NOT_ENOUGH_REPLICAS, TIMED_OUT

SHOWN = 20
"""The most names in a list."""
ORDER = ("harmless", "fewer")
"""Sort losses, the worst first."""
ALREADY = ("now_data", "structural_writes")
WORST_FIRST = ("data", "availability", "writes")
WHEN = {"now": "now", "structural": "structural", "worst": "worst-case"}
LATER = sum(bit for name, bit in BITS.items() if not name.startswith("now_"))
"""The bits of what breaks with another ISR than today's."""


def _of(name: str) -> dict[str, int]:
    """The bits of a class, by view."""
    return {view: BITS[f"{view}_{name}"] for view, classes in VIEWS.items() if name in classes}


def _class_bits(name: str) -> int:
    return sum(_of(name).values())


def _sum(names: Iterable[str]) -> Column:
    return reduce(Column.__add__, map(F.col, names))


def worst_class_bits(breaks: Column) -> Column:
    """The bits of the worst class among `breaks`; 0 if nothing breaks."""
    return _of_worst_class(breaks, {name: F.lit(_class_bits(name)) for name in WORST_FIRST}, F.lit(0))


def _of_worst_class(breaks: Column, values: Mapping[str, Column], nothing: Column) -> Column:
    """The value of the worst class among `breaks`, or `nothing`."""
    found = nothing
    for name in reversed(WORST_FIRST):
        found = F.when(has(breaks, _class_bits(name)), values[name]).otherwise(found)
    return found


def order() -> dict[str, Column]:
    """The columns ORDER of a loss with BITS as counts: the worst class that it breaks, then how much."""
    rank = F.lit(len(WORST_FIRST))
    for place, name in reversed(list(enumerate(WORST_FIRST))):
        broken = _sum(f"{view}_{name}" for view in _of(name))
        rank = F.when(broken > 0, place).otherwise(rank)
    return {"harmless": rank, "fewer": -_sum(BITS)}


def verdict(control: str, kind: str) -> Column:
    """The verdict of broker-loss and rack-loss. kind: `broker` or `rack`.

    Reads a topic's row with its target, joined with `spark_jobs.assemble.failure_costs.Losses.of_topics`.
    """
    breaks, asked = F.coalesce(f"of_{kind}", F.lit(0)), target.survives(kind)
    # What the quorum's loss alone breaks isn't among these. Acknowledged data never is.
    kept = F.coalesce(f"of_{kind}_kept", F.lit(0))
    numbers = (*_already_now().values(), F.col("already_structural_writes"))
    already = certain(reduce(Column.__or__, (number > 0 for number in numbers)))
    unknown = (F.col(f"of_{kind}_unsure") != 0) | (F.col("already_unsure") != 0) | ~F.col("partitions_known")
    outcome = (
        F.when(~asked, base.NOT_APPLICABLE)
        .when((breaks != 0) | already, base.FAIL)
        .when(possible(unknown), base.UNKNOWN)
        .otherwise(base.PASS)
    )
    if kind == "rack":
        # Where no rack is known, the cluster has one UNKNOWN.
        outcome = F.when((F.size("racks") > 0) | ~asked, outcome)
    worst_class = _of_worst_class(breaks, {name: F.lit(name) for name in WORST_FIRST}, F.lit(None).cast("string"))
    losses = F.filter(f"{kind}_losses", lambda one: one["harmless"] < len(WORST_FIRST))
    losing = F.filter(losses, lambda one: one["quorum"] == "lost")
    # A majority that is lost already is lost by no loss.
    taking = F.when(certain(F.col("majority")["lost"]), F.slice(losing, 1, 0)).otherwise(losing)
    found = {
        "outcome": outcome,
        "already": already,
        "worst_class": worst_class,
        "losses": losses,
        "losing": losing["name"],
        "taking": taking["name"],
        "outnumbering": F.filter(taking, lambda one: one["outnumbers"])["name"],
        "reason": _reason(breaks, kept, already),
        "while_kept": _while_kept(kept),
        "by_quorum": has(breaks.bitwiseAND(F.bitwise_not(kept)).bitwiseAND(worst_class_bits(breaks)), ALL),
    }
    return let(struct(found), lambda found: _verdict(control, kind, breaks, found))


def _verdict(control: str, kind: str, breaks: Column, found: Column) -> Column:
    outcome, already, worst_class = found["outcome"], found["already"], found["worst_class"]
    losses, losing, majority = found["losses"], found["losing"], F.col("majority")
    fails, because = outcome == base.FAIL, base.unknown_because()
    # Nothing is unread, but nodes may be in a lost rack.
    nowhere = (F.size("unplaced") > 0) | (F.size("unplaced_voters") > 0)
    read = (F.col("of_broker_unsure") == 0) & (F.col("already_unsure") == 0) & F.col("partitions_known")
    unplaced = F.when(nowhere & read & F.lit(kind == "rack"), "unplaced")
    reason = F.when(fails, found["reason"]).otherwise(F.coalesce(because[base.REASON], unplaced))
    # Reads `partition_health.measures`.
    broken = F.sort_array(F.array_union("offline_ids", "under_min_isr_ids"))
    return base.verdict(
        control,
        outcome,
        category=F.coalesce(worst_class, F.when(already, _already_class())),
        cause=_cause(kind, breaks, worst_class, found["outnumbering"], found["reason"]),
        observed={
            "lost": F.coalesce(F.slice(losses["name"], 1, SHOWN), F.array().cast("array<string>")),
            "lost_count": F.coalesce(F.size(losses), F.lit(0)),
            "breaks": worst_class,
            "when": F.when(fails, _when(breaks, worst_class)),
            "views": F.when(fails, _views(kind, losses)),
            "already": F.when(fails, struct(_already_now())),
            "quorum": F.when(F.size(losing) > 0, "lost")
            .when(possible(f"{kind}_quorum_unsure"), "unknown")
            .otherwise("kept"),
        },
        required={"survive": F.lit(kind)},
        evidence={
            **because,
            base.REASON: reason,
            "while_kept": F.when(fails, found["while_kept"]),
            # Does the worst class break in some view only without the quorum?
            "by_quorum": F.when(fails, found["by_quorum"]),
            "breaking": F.when(fails, _breaking(losses, worst_class)),
            **{name: F.when(fails, column) for name, column in _answers(losses).items()},
            # Reads `acked_durability.measures`.
            "waiting": F.when(fails, F.col("acks_all_error")[TIMED_OUT]),
            "down": F.filter(losses, lambda one: one["down"])["name"],
            "losing_quorum": F.slice(found["taking"], 1, SHOWN),
            "outnumbering": F.slice(found["outnumbering"], 1, SHOWN),
            "majority_lost": certain(majority["lost"]),
            "voters": majority["voters"],
            "voters_missing": majority["missing"],
            "few_racks": few_racks().isNotNull(),
            # Replicas that are missing now may break it even at its target.
            "missing": base.dominant("under_replicated_causes"),
            "leaving": F.col("under_replicated_leaving"),
            "minimum_above_replicas": certain(F.col("already_structural_writes") > 0),
            "racks": F.size("racks"),
            "unplaced": F.slice("unplaced", 1, SHOWN),
            "unplaced_voters": F.slice("unplaced_voters", 1, SHOWN),
            "target": F.col(target.TARGET),
        },
        partitions=F.coalesce(
            F.when(worst_class.isNotNull(), F.sort_array(f"{kind}_partitions")), F.when(already, broken)
        ),
    )


def _already_now() -> dict[str, Column]:
    """By class: the number of partitions that are broken as they are. Reads `acked_durability.measures`.

    Writes that wait for a broker that is down are among them, although a loss is charged from when that broker is fenced.
    """
    answers = F.col("acks_all_error")
    errors = (answers[error] for error in (NO_LEADER, NOT_ENOUGH_REPLICAS, TIMED_OUT))
    return {
        "data": F.col("already_now_data"),
        "availability": answers[NO_LEADER],
        "writes": reduce(Column.__add__, errors),
    }


def _already_class() -> Column:
    now = _already_now()
    return F.when(now["data"] > 0, "data").when(now["availability"] > 0, "availability").otherwise("writes")


def _when(breaks: Column, worst_class: Column) -> Column:
    """The views in which the worst class breaks."""
    views = [
        F.when(
            reduce(Column.__or__, ((worst_class == name) & has(breaks, _of(name)[view]) for name in classes)),
            WHEN[view],
        )
        for view, classes in VIEWS.items()
    ]
    return F.array_compact(F.array(*views))


def _views(kind: str, losses: Column) -> Column:
    """By view and class: the partitions that some loss breaks, and the losses that break most of them."""

    def of_class(view: str, name: str) -> Column:
        bit = f"{view}_{name}"
        partitions = F.coalesce(F.col(f"{kind}_breaks")[bit], F.lit(0)).cast("int")
        ordered = F.array_sort(
            F.transform(_harmful(losses, bit), lambda one: F.struct((-one[bit]).alias("n"), one["name"].alias("name")))
        )
        # Most topics break in few classes.
        lost = F.when(partitions > 0, F.slice(ordered["name"], 1, SHOWN))
        return struct({"partitions": partitions, "lost": F.coalesce(lost, F.array().cast("array<string>"))})

    return struct({WHEN[v]: struct({name: of_class(v, name) for name in classes}) for v, classes in VIEWS.items()})


def _breaking(losses: Column, worst_class: Column) -> Column:
    """By view: the number of losses that break the worst class."""

    def number_of(view: str, classes: Iterable[str]) -> Column:
        harmful = (F.when(worst_class == name, F.size(_harmful(losses, f"{view}_{name}"))) for name in classes)
        return F.coalesce(*harmful, F.lit(0))

    return struct({WHEN[view]: number_of(view, classes) for view, classes in VIEWS.items()})


def _answers(losses: Column) -> dict[str, Column]:
    """By view: the numbers of losses after which acks=all writes that they break are `refused`, and are `timed_out`.

    Without the controllers' majority no ISR shrinks, so leaders wait for its lost members until REQUEST_TIMED_OUT. A loss after
    which the majority is unknown counts in neither.
    """
    # The state of ZooKeeper is unknown, and taken to be unharmed.
    zookeeper = certain(F.col("majority")["zookeeper"])

    def number_of(bit: str, quorum: Callable[[Column], Column]) -> Column:
        return F.size(F.filter(_harmful(losses, bit), lambda one: quorum(one["quorum"])))

    def by_view(quorum: Callable[[Column], Column]) -> Column:
        return struct({WHEN[view]: number_of(f"{view}_writes", quorum) for view in _of("writes")})

    return {
        "refused": by_view(lambda quorum: (quorum == "kept") | zookeeper),
        "timed_out": by_view(lambda quorum: quorum == "lost"),
    }


def _harmful(losses: Column, bit: str) -> Column:
    return F.filter(losses, lambda one: one[bit] > 0)


def _reason(breaks: Column, kept: Column, already: Column) -> Column:
    """A code for the text and the remedy, by the worst class that breaks.

    Codes: broken already, by the quorum's loss, only because of today's ISR, or by the configuration.
    """
    by_quorum = kept.bitwiseAND(worst_class_bits(breaks)) == 0
    return F.when(already & (breaks == 0), "already").when(by_quorum, "quorum").otherwise(_while_kept(kept))


def _while_kept(kept: Column) -> Column:
    """The code for what breaks although the quorum keeps its majority; NULL if that is nothing."""
    return F.when(has(kept, LATER), "configured").when(kept != 0, "today")


def few_racks() -> Column:
    """The cause if the cluster has too few racks to survive the loss of one; else NULL. policy-feasible fails, too."""
    return base.not_feasible(F.lit(target.SURVIVING_RACKS), F.size("racks") + F.col("unknown_racks"))


def _rejected_by_minimum() -> Column:
    """Does the minimum reject acks=all writes even if all replicas are in sync, and is nothing worse broken already?"""
    worse = (_already_now()["data"] > 0) | (_already_now()["availability"] > 0)
    return certain((F.col("already_structural_writes") > 0) & ~worse)


def _rejecting(by_placement: Column) -> Column:
    """The cause if a loss stops writes even with all replicas in sync. No placement helps a topic without headroom."""
    worst = F.col("write_headroom_at_worst")
    return F.when(worst["effective"] >= worst["rf"], headroom.cause()).otherwise(by_placement)


def _missing(worst_class: Column, reason: Column) -> Column:
    """The cause of what replicas that are missing today break; NULL if none are.

    A loss breaks the writes of partitions that accept them now, and takes those offline that have a leader. Where the metadata
    still names a dead leader, both begin when another replica is elected.
    """
    offline, under, at_min, fewer = (
        base.dominant(f"{name}_causes") for name in ("offline", "under_min_isr", "at_min_isr", "under_replicated")
    )
    writes, availability = (certain((reason == "today") & (worst_class == name)) for name in ("writes", "availability"))
    today = writes | availability
    # These columns are long, so each is read as seldom as possible.
    return F.coalesce(
        F.when(writes, at_min), F.when(~today, offline), F.when(~writes, under), fewer, F.when(today, offline)
    )


def _cause(kind: str, breaks: Column, worst_class: Column, outnumbering: Column, reason: Column) -> Column:
    source = F.col("write_headroom_at_worst")["min_isr_source"]
    structural = sum(bit for name, bit in BITS.items() if name.startswith("structural_"))
    copies = structural - BITS["structural_writes"]
    by_placement = F.lit("placement" if kind == "rack" else "configuration:topic")
    missing = F.coalesce(_missing(worst_class, reason), base.min_isr_cause(source))
    majority = F.concat(F.lit(f"{kind}:"), F.try_element_at(outnumbering, F.lit(1)), F.lit(HOLDS_MAJORITY))
    of_rack = F.lit(kind == "rack")
    one_rack = F.when((F.size("racks") == 1) & (F.col("unknown_racks") == 0) & of_rack, "racks:1")
    configured = (
        F.when(has(breaks, copies), by_placement)
        .when(has(breaks, structural), _rejecting(by_placement))
        .otherwise(base.min_isr_cause(source))
    )
    return (
        F.when((reason == "already") & _rejected_by_minimum(), base.min_isr_cause(source))
        .when(reason.isin("already", "today"), missing)
        # Voters that are missing are to blame if all of them together would keep a majority.
        .when(reason == "quorum", F.coalesce(majority, F.lit(CONTROLLER_QUORUM)))
        .otherwise(F.coalesce(target.infeasible(), one_rack, F.when(of_rack, few_racks()), configured))
    )
