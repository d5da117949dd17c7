"""Settings of one row with `configs` and `config_sources`, maps by the setting's name: as text, with Kafka's defaults."""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.topology import versions
from spark_jobs.frames import settings
from spark_jobs.frames.columns import certain
from spark_jobs.frames.effective_min_isr import release_number

FIRST_RELEASE_WITHOUT_UNCLEAN = 11
"""0.11: unclean leader election is off by default since then."""


def stated(key: str) -> Column:
    """A setting's value as text; NULL if it isn't stated or configs could not be read."""
    return F.try_element_at("configs", F.lit(key))


def source(key: str) -> Column:
    """Where a setting's value is stated; NULL if it isn't."""
    return F.try_element_at("config_sources", F.lit(key))


def readable(*keys: str) -> Column:
    """Could all of these settings be read, stated or not? Reads `unreadable_configs`, too."""
    unread = F.arrays_overlap("unreadable_configs", F.array(*map(F.lit, keys)))
    return F.col("configs").isNotNull() & ~certain(unread)


def applies(key: str, default: str | Column) -> Column:
    """A setting's value as text: stated, else Kafka's default; NULL where it could not be read, or an answer leaves it out."""
    return F.when(readable(key), F.coalesce(stated(key), F.when(~settings.answered(), F.lit(default))))


def proposed(key: str, default: str) -> Column:
    """`applies` for a setting that no broker has yet, so that no answer states it."""
    return F.when(readable(key), F.coalesce(stated(key), F.lit(default)))


def left_out(key: str) -> Column:
    """Does an answer of DescribeConfigs leave the setting out? It states defaults too, so the value is unknown then."""
    return settings.answered() & stated(key).isNull()


def minimum(value: Column) -> Column:
    """A min.insync.replicas that Kafka accepts, 1 or more; else NULL."""
    number = value.try_cast("int")
    return F.when(number >= 1, number)


def integer(value: Column) -> Column:
    """The value as a number; NULL if it is none."""
    return value.try_cast("int")


def boolean(value: Column) -> Column:
    """The value as true or false; NULL if it is neither."""
    return value.try_cast("boolean")


def wrong(key: str, meaning: Callable[[Column], Column]) -> Column:
    """A stated value without a `meaning`; else NULL. Only a document can contain one."""
    value = stated(key)
    return F.when(value.isNotNull() & meaning(value).isNull(), F.substring(value, 1, 60))


def in_file(key: Column) -> Column:
    """Is the setting stated in the broker's file? Never NULL."""
    return certain(F.try_element_at("config_sources", key) == "broker")


def throttles(keys: tuple[str, ...], of_default: bool = False) -> Column:
    """The throttles that are set.

    A removed rate reads as Long.MAX, and an empty list of replicas throttles none.

    of_default: read those of all brokers (`--entity-default`) instead of those of the broker or topic.
    """

    def set_(key: str) -> Column:
        inherited = certain(source(key) == "cluster-default")
        return ~stated(key).isin("", "9223372036854775807") & (inherited if of_default else ~inherited)

    return F.array_compact(F.array(*(F.when(set_(key), F.lit(key)) for key in keys)))


def unclean_by_release() -> Column:
    """Kafka's default of unclean.leader.election.enable, as text: "true" before 0.11 (KIP-106). NULL if that is unknown."""
    release, version = release_number(F.col("kafka_version")), F.col("kafka_version")
    later = release.isNotNull() | version.rlike(rf"(?s)\A{versions.NUMBERED_1_OR_LATER}\z")
    return F.when(release < FIRST_RELEASE_WITHOUT_UNCLEAN, "true").when(later, "false")
