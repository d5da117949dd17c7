"""controller-quorum: does the KRaft quorum have a majority, and does it keep one if a controller or a rack is lost?

It has lost its majority if there is no leader, or if too many voters are missing. Lag alone takes no vote, but no change is
committed while a majority lags. The quorum can't lose a voter if it has fewer than 3. A voter is missing if it never caught up
with the leader, if it is known to be down, or if its combined broker is. The quorum can't lose a rack if half of the voters or
more are in it. This counts in clusters of two racks or more. In a cluster of one rack it is advice, and so is an even number of
voters. A cluster in ZooKeeper mode has no such quorum.

A leader that is no voter has removed itself from the quorum and leads until that is committed (KIP-853), or answers contradict
each other. Then the voters are not what they will be, so the quorum can't pass.
"""

from collections.abc import Iterable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue.causes import CONTROLLER_QUORUM
from durability.plan.plan import Plan
from spark_jobs.frames import base, quorum
from spark_jobs.frames.columns import certain, let, struct

CONTROL = "controller-quorum"
ADVICE = ("one-rack", "even-number")
UNREAD = {
    "denied": "AUTHORIZATION",
    "unsupported": "UNSUPPORTED_VERSION",
    "no-answer": "TIMED_OUT|TIMEOUT|NETWORK_EXCEPTION|NOT_CONTROLLER|NOT_AVAILABLE",
}
"""Why the voters, or when they caught up, could not be read, by what the reasons in `unreadable` contain."""


def _blocking_possible(voters: Column, names: Column, largest: Column) -> Column:
    """Can one of two or more racks have half of the voters, depending on unknown racks?

    Voters of unknown racks may all be in the largest known rack. The other voters of unknown racks, and brokers of unknown
    racks, may each add a rack. If only controllers have named or unknown racks, the cluster has no racks.
    """
    count = F.size(voters)
    unknown_voters = F.size(F.filter(voters, lambda v: v["rack"].isNull()))
    ids = voters["controller"]
    unknown_brokers = F.size(
        F.filter("brokers", lambda b: (b["rack_state"] == "unknown") & ~F.array_contains(ids, b["broker"]))
    )
    combined_unknown = F.exists(
        "brokers", lambda b: (b["rack_state"] == "unknown") & F.array_contains(ids, b["broker"])
    )
    largest_known = F.coalesce(largest, F.lit(0))
    joining = F.greatest(_blocking(count) - largest_known, F.lit(0))
    new_names = unknown_voters - joining + unknown_brokers + F.when(largest_known == 0, 1).otherwise(0)
    has_racks = (F.size(names) > 0) | (unknown_brokers > 0) | combined_unknown
    any_unknown = unknown_voters + unknown_brokers > 0
    return has_racks & (count >= 3) & any_unknown & (joining <= unknown_voters) & (F.size(names) + new_names >= 2)


def _blocking(count: Column) -> Column:
    """The number of voters without which the others are no majority."""
    return count - quorum.majority(count) + 1


class _Voters:
    """The columns about a cluster's voters that the rule reads."""

    def __init__(self) -> None:
        self.all = F.col("voters")
        self.count = F.size(self.all)
        self.racks, self.missing, self.present, self.lagging, self.no_leader = (
            F.col("voting")[name] for name in ("racks", "missing", "present", "lagging", "no_leader")
        )
        self.unread = F.col("quorum_mode").isNull() | ((self.count == 0) & ~self.no_leader)
        self.outsider = certain(~F.array_contains(self.all["controller"], F.col("quorum_leader")))

        # Since KIP-853 voters can be added and removed while the quorum runs.
        self.dynamic = certain(F.try_element_at("features", F.lit("kraft.version")) >= 1)
        unvoted = F.filter("controllers", lambda c: (c["role"] == "observer") & ~certain(c["leader"]))["controller"]
        self.observing = F.sort_array(F.array_except(unvoted, F.col("brokers")["broker"]))

    def by_rack(self) -> Column:
        """For each rack of the cluster struct<n, rack>: the number of voters in it."""

        def counted(name: Column) -> Column:
            return F.struct(F.size(F.filter(self.all, lambda v: v["rack"] == name)).alias("n"), name.alias("rack"))

        return F.transform(self.racks, counted)

    def blocking(self) -> Column:
        """The racks without which the others are no majority. Empty in a cluster of one rack."""
        several = (F.size(self.racks) >= 2) & (self.count >= 3)
        return F.sort_array(F.filter(self.by_rack(), lambda r: several & (r["n"] >= _blocking(self.count)))["rack"])

    def in_one_rack(self) -> Column:
        """Are all voters in the cluster's only rack?"""
        elsewhere = F.exists(self.all, lambda v: v["rack"].isNull())
        return (F.size(self.racks) == 1) & (self.count >= 3) & ~elsewhere

    def short(self) -> Column:
        """Is a voter missing, and one more lost voter or rack would take the majority?"""
        present, needed = F.size(self.present), quorum.majority(self.count)
        outside = F.transform(
            self.racks, lambda name: F.size(F.filter(self.present, lambda v: ~certain(v["rack"] == name)))
        )
        left = F.array_min(outside)
        without_rack = certain((F.size(self.racks) >= 2) & (left < needed))
        return (F.size(self.missing) > 0) & ((present - 1 < needed) | without_rack)

    def caught_up(self) -> Column:
        """The number of voters that are neither missing nor behind. A change is committed once a majority has it."""
        return F.size(self.present) - F.size(self.lagging)

    def lag_unknown(self) -> Column:
        """The voters for which it is unknown whether they ever caught up with the leader."""
        unknown = F.filter(self.all, lambda v: v["caught_up"].isNull() & ~certain(v["leader"]))
        return F.sort_array(unknown["controller"])

    def why_unread(self) -> Column:
        """The first key of UNREAD that applies; NULL if none does."""
        of_voters = F.filter(
            "unreadable", lambda entry: entry["path"].rlike(r"^/cluster/quorum($|/voters(?!.*/rack$))")
        )
        reasons = F.array_join(of_voters["reason"], " ")
        return F.coalesce(*(F.when(reasons.rlike(pattern), why) for why, pattern in UNREAD.items()))

    def unreached(self) -> Column:
        """The voters for which it is unknown whether they are up, while there is no leader."""
        up = F.filter("brokers", lambda b: b["live"])["broker"]
        unknown = F.filter(self.present, lambda v: v["live"].isNull() & ~certain(F.array_contains(up, v["controller"])))
        return F.when(self.no_leader, F.sort_array(unknown["controller"]))

    def problems(self) -> Column:
        """The categories that apply, worst first. None applies to a quorum that could not be read."""
        missing, short = F.size(self.missing) > 0, self.short()
        needed = quorum.majority(self.count)
        there, behind = F.size(self.present) >= needed, self.caught_up() < needed
        found = F.array_compact(
            F.array(
                F.when(self.no_leader | ~there, "majority-lost"),
                F.when(~self.no_leader & there & (F.size(self.lagging) > 0) & behind, "majority-behind"),
                F.when((self.count > 0) & (self.count < 3), "too-few-voters"),
                F.when(F.size(self.blocking()) > 0, "rack-majority"),
                F.when(short, "no-spare-voter"),
                F.when(missing & ~short, "missing-voter"),
                F.when(F.size(self.lagging) > 0, "lagging-voter"),
                F.when(self.in_one_rack(), "one-rack"),
                F.when((self.count >= 3) & (self.count % 2 == 0), "even-number"),
            )
        )
        return F.when(~self.unread, found).otherwise(F.array().cast("array<string>"))


def cluster_verdicts(plan: Plan) -> Iterable[Column]:
    """Reads `voters`, `voting`, `brokers`, `unreadable`, `quorum_mode` and `quorum_leader` of a cluster."""
    voters = _Voters()
    found = {
        "largest": F.array_max(voters.by_rack())["n"],
        "problems": voters.problems(),
        "blocking": voters.blocking(),
        "lag_unknown": voters.lag_unknown(),
        "unreached": voters.unreached(),
    }
    yield let(struct(found), lambda found: _verdict(voters, found))


def _verdict(voters: _Voters, found: Column) -> Column:
    largest, lag_unknown = found["largest"], found["lag_unknown"]
    worst = F.try_element_at(found["problems"], F.lit(1))
    lag_unread = F.size(F.array_except(lag_unknown, voters.missing)) > 0
    return base.verdict(
        CONTROL,
        F.when(F.col("quorum_mode") == "zookeeper", base.NOT_APPLICABLE)
        .when(voters.unread, base.UNKNOWN)
        .when(~worst.isin(*ADVICE), base.FAIL)
        .when(_blocking_possible(voters.all, voters.racks, largest) | lag_unread | voters.outsider, base.UNKNOWN)
        .when(worst.isNotNull(), base.FAIL)
        .otherwise(base.PASS),
        category=worst,
        cause=CONTROLLER_QUORUM,
        observed={
            "voters": F.when(~voters.unread & (voters.count > 0), voters.count),
            "problems": found["problems"],
            "largest_rack": largest,
            "blocking_racks": found["blocking"],
            "missing": voters.missing,
            "lagging": voters.lagging,
            "leader": F.col("quorum_leader"),
            "problem": worst,
        },
        required={"voters": F.lit(3), "max_lag_ms": F.lit(quorum.MAX_LAG_MS)},
        evidence={
            "majority": quorum.majority(voters.count),
            "present": F.size(voters.present),
            "caught_up": voters.caught_up(),
            "no_leader": voters.no_leader,
            "rack_unknown": F.exists(voters.all, lambda v: v["rack"].isNull()),
            "lag_unknown": lag_unknown,
            "why_unread": voters.why_unread(),
            "unreached": found["unreached"],
            "leader_is_voter": ~voters.outsider,
            "dynamic": voters.dynamic,
            "observing": voters.observing,
            "racks": voters.racks,
        },
    )
