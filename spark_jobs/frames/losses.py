"""What partitions become when brokers are lost.

A loss is applied to the facts of partitions: the lost brokers are down, the controller elects leaders and shrinks ISRs. The rules
that judge partitions as they are (`spark_jobs.frames.partitions`) then judge the result. Source: ReplicationControlManager and
PartitionChangeBuilder of Kafka 4.0, KIP-966.

The functions read the columns of `partitions.facts`, and four more: `lost`, the ids of the lost brokers;
`elects_unclean`, may a replica that isn't in sync become leader; `quorum_before` and `quorum_kept`, do the controllers have a
majority before the loss and after it, NULL if that is unknown.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.frames.columns import certain, possible, struct


def before(facts: DataFrame) -> DataFrame:
    """`facts` once the brokers that are down before the loss are fenced, with `listed_isr`, the ISR as the facts have it.

    A loss starts from there: a leader waits for such a broker only until it is fenced. Without a quorum it waits on. A leader
    that could not be read may be any live member of the ISR, so it is unknown on.
    """
    may_stay = certain(~F.col("leader_known") & F.arrays_overlap("isr", "maybe"))
    states = _with_states(facts.withColumn("listed_isr", F.col("isr"))).withColumn("may_stay", may_stay)
    fenced = _fenced(states, F.col("quorum_before"))
    columns = {
        "leader": F.when(~F.col("may_stay"), F.col("leader")),
        "leader_known": F.col("leader_known") & ~F.col("may_stay"),
    }
    return _with_leading(fenced.withColumns(columns)).drop("may_stay")


def after(facts: DataFrame) -> DataFrame:
    """`facts` once all lost brokers are fenced.

    With a quorum, the leader stays if it survives. Else `_elected` leads. The order in which brokers are fenced doesn't change
    the leader. Without a quorum nobody elects a leader or shrinks an ISR. A partition that had no leader gets none.
    `leader_known` is False where an unknown fact decides.
    """
    return _fenced(_with_states(_with_lost_down(facts)), F.col("quorum_kept"))


def _fenced(facts: DataFrame, quorum: Column) -> DataFrame:
    """`facts` once brokers that are down are fenced, if the controllers have a majority. facts: with `_with_states`."""
    frame = facts.withColumn("elected", _elected())
    elected, stays = F.col("elected"), certain(F.array_contains("alive", F.col("leader")))
    had_none = F.col("leader_known") & F.col("leader").isNull()
    leader = F.when(stays, F.col("leader")).when(~had_none, elected["leader"])
    # Without a leader, the last members stay in the ISR.
    isr = F.when(leader.isNull(), F.col("isr")).when(elected["alone"] & ~stays, F.array(leader)).otherwise(_live_isr())
    unchanged = certain(~F.col("affected") | had_none | ~quorum)
    # A partition whose leader is down goes offline without a quorum too.
    nobody = F.col("leader_down") & elected["known"] & elected["leader"].isNull()
    changed = certain(F.col("affected") & (quorum | nobody))
    # A leader that is up stays, whatever the ISR is.
    columns = {
        "leader": F.when(unchanged, F.col("leader")).when(changed | stays, leader),
        "leader_known": F.when(unchanged, F.col("leader_known")).otherwise(stays | (changed & elected["known"])),
        "isr": F.when(unchanged, F.col("isr")).when(changed, isr),
    }
    return _with_leading(frame.withColumns(columns)).drop(
        "alive", "online", "maybe", "affected", "leader_down", "elected"
    )


def whole(facts: DataFrame, without: str) -> DataFrame:
    """Facts of `before` as the placement has them: all brokers are up, all replicas are in sync, the first replica leads.

    without: `adding` or `removing`, the replicas of a running reassignment that are left out. Facts are NULL where a
    reassignment can't be ruled out, and where observers are among the replicas.
    """
    none = F.array().cast("array<int>")
    at_rest = F.size("listed_isr") >= F.size("replicas")
    left_out = F.coalesce(without, F.when(at_rest, none))
    kept = F.when(
        ~F.col("has_observers") & left_out.isNotNull(), F.filter("replicas", lambda id: ~F.array_contains(left_out, id))
    )
    frame = facts.withColumn("replicas", kept)
    mine = F.filter("brokers", lambda b: F.array_contains("replicas", b["broker"]))
    columns = {
        "brokers": F.transform(mine, lambda b: b.withField("live", F.lit(True))),
        "isr": F.col("replicas"),
        "leader": F.try_element_at("replicas", F.lit(1)),
        "leader_known": F.col("replicas").isNotNull(),
        "elr": none,
        "adding": none,
        "removing": none,
    }
    return _with_leading(frame.withColumns(columns))


def data() -> dict[str, Column]:
    """What happens to acknowledged records, of facts before the loss. Reads `before`.

    `at_risk`: all copies that certainly have every record acknowledged with acks=all are lost. `deleted`: an unclean leader
    that lacks records is elected, and deletes them from copies that come back. NULL if unknown.
    """
    survives = F.when(F.exists("listed_isr", lambda id: ~_is_lost(id)), False)
    # A leader has all acknowledged records, so an ISR that could not be read doesn't matter.
    leads_on = F.when(~_is_lost(F.col("leader")), False)
    at_risk = F.coalesce(
        _spared(), survives, leads_on, (F.size(_sure_or_null()) > 0) & F.forall(_sure_or_null(), _is_lost)
    )
    return {"at_risk": at_risk, "deleted": deletable() & F.col("quorum_kept")}


def deletable() -> Column:
    """`deleted` of `data`, if the controllers have a majority after the loss. Without one, they elect no leader."""
    live = F.when(
        F.forall("brokers", lambda b: b["live"].isNotNull()), F.filter("brokers", lambda b: b["live"])["broker"]
    )
    live_sure = F.array_intersect(_sure_or_null(), live)
    may_lead = F.array_union(F.coalesce("listed_isr", F.array().cast("array<int>")), F.array("leader"))
    leads_on = F.when(F.exists(F.array_intersect(may_lead, live), lambda id: ~_is_lost(id)), False)
    behind = _any(F.array_except(_online(), _sure_or_null()), F.array_except(live, _sure_or_null()))
    elected = F.col("elects_unclean") & (F.size(live_sure) > 0) & F.forall(live_sure, _is_lost) & behind
    return F.coalesce(_spared(), leads_on, elected)


def _any(certain_ones: Column, possible_ones: Column) -> Column:
    """Are there any? NULL if there are none for certain, but possibly."""
    return F.when(F.size(certain_ones) > 0, True).when(F.size(possible_ones) == 0, False)


def _is_lost(id: Column) -> Column:
    return F.array_contains("lost", id)


def _spared() -> Column:
    """False if no replica is lost, else NULL."""
    return F.when(~F.arrays_overlap("replicas", "lost"), False)


def _sure_or_null() -> Column:
    """`sure`; NULL if the ELR may count and is unknown or has members."""
    none = F.array().cast("array<int>")
    elr = F.when(F.col("elr_on"), F.col("elr")).when(~F.col("elr_on") | (F.size("elr") == 0), none)
    return F.array_union("listed_isr", elr)


def sure(isr: str = "isr") -> Column:
    """The copies that certainly have every record acknowledged with acks=all. isr: the column of the ISR as it is listed."""
    return F.when(F.col("elr_on"), F.array_union(isr, "elr")).otherwise(F.col(isr))


def _with_lost_down(facts: DataFrame) -> DataFrame:
    """`facts` with the lost brokers down."""
    down = F.transform(
        "brokers",
        lambda b: b.withField("live", F.when(F.array_contains("lost", b["broker"]), False).otherwise(b["live"])),
    )
    return facts.withColumn("brokers", down)


def _with_states(facts: DataFrame) -> DataFrame:
    """`facts` with `alive`, the ids of replicas that are certainly up, and `maybe`, of those that may be up.

    `online`: those of `alive` that are certainly in a log dir that is online. Members of the ISR are, whatever it says.
    `leader_down`: is the leader certainly down? `affected`: is it, or is a member of the ISR? The controller removes both.
    """
    leader_down = certain(~F.array_contains("maybe", F.col("leader")))
    return facts.withColumns(
        {
            "alive": F.filter("brokers", lambda b: certain(b["live"]))["broker"],
            "online": _online(),
            "maybe": F.filter("brokers", lambda b: possible(b["live"]))["broker"],
        }
    ).withColumns(
        {
            "leader_down": leader_down,
            "affected": leader_down | F.exists("isr", lambda id: ~F.array_contains("maybe", id)),
        }
    )


def _online() -> Column:
    """The ids of replicas that can certainly lead: their brokers are up with all log dirs."""
    return F.filter("brokers", lambda b: certain(b["live"] & b["disks_online"]))["broker"]


def _live_isr() -> Column:
    """The members of the ISR that are up; NULL if that is unknown."""
    live = F.filter("isr", lambda id: F.array_contains("alive", id))
    maybe = F.filter("isr", lambda id: F.array_contains("maybe", id))
    return F.when(F.size(live) == F.size(maybe), live)


def _elected() -> Column:
    """The leader that the controller elects, as struct<leader, alone, known>. alone: it is the ISR's only member.

    In the order of the replicas: the first live member of the ISR, else a live member of the ELR, else with unclean leader
    election any live replica. Kafka elects the last known leader only where ISR and ELR were empty before, so it is down.
    A replica that may be in a log dir that is offline may not lead, so who leads is unknown if it is the first.
    """

    def first(members: Column, up: str) -> Column:
        both = F.array_intersect(members, up)
        return F.try_element_at(F.filter("replicas", lambda id: F.array_contains(both, id)), F.lit(1))

    def choice(leader: Column, alone: bool) -> Column:
        return struct({"leader": leader, "alone": F.lit(alone), "known": F.lit(True)})

    isr, elr, replicas = F.col("isr"), F.col("elr"), F.col("replicas")
    unknown = struct({"leader": F.lit(None).cast("int"), "alone": F.lit(False), "known": F.lit(False)})
    nobody = struct({"leader": F.lit(None).cast("int"), "alone": F.lit(False), "known": F.lit(True)})
    eligible, unclean = F.col("elr_on"), F.col("elects_unclean")
    return (
        F.when(first(isr, "alive").isNotNull(), choice(first(isr, "alive"), alone=False))
        .when(isr.isNull() | first(isr, "maybe").isNotNull(), unknown)
        .when(eligible & (first(elr, "online") == first(elr, "maybe")), choice(first(elr, "online"), alone=True))
        .when(possible(eligible) & (elr.isNull() | first(elr, "maybe").isNotNull()), unknown)
        .when(
            unclean & (first(replicas, "online") == first(replicas, "maybe")),
            choice(first(replicas, "online"), alone=True),
        )
        .when(possible(unclean) & first(replicas, "maybe").isNotNull(), unknown)
        .otherwise(nobody)
    )


def _with_leading(facts: DataFrame) -> DataFrame:
    mine = F.filter("brokers", lambda b: b["broker"] == F.col("leader"))
    return facts.withColumn("leading", F.try_element_at(mine, F.lit(1)))
