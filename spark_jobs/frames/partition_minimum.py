"""A rule for topics that compares a number of each partition with the tier's minimum."""

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue.model import requirements
from durability.policy.numbers import BELOW_RF
from spark_jobs.frames import base
from spark_jobs.frames.columns import possible, struct
from spark_jobs.frames.flagged import Flagged


@dataclass(frozen=True)
class PartitionMinimum:
    """A rule for topics that compares a number of each partition with the tier's minimum.

    control: its id.
    value: the partition's column.
    key: the tier's key for the minimum. A minimum may be relative to the replication factor. Then each partition has its own, in
        the column `required_<key>`.
    """

    control: str
    value: str
    key: str

    @property
    def relative(self) -> bool:
        return self.key in requirements() and bool(requirements()[self.key].relative)

    @property
    def stated(self) -> Column:
        """Does the tier set a minimum?"""
        if not self.relative:
            return self.required.isNotNull()
        return F.col("required")[self.key].isNotNull() | F.col("required")[self.key + BELOW_RF].isNotNull()

    @property
    def of_partition(self) -> Column:
        """The minimum for a partition; NULL if there is none or it is unknown."""
        return F.col(f"required_{self.key}") if self.relative else self.required

    @property
    def required(self) -> Column:
        """The minimum for the topic's worst partition; NULL if there is none or it is unknown."""
        if not self.relative:
            return F.col("required")[self.key]
        name = base.column(self.control)
        return F.coalesce(F.col(f"{name}_short")["required"], F.col(f"{name}_required"), F.col("required")[self.key])

    @property
    def worst(self) -> Column:
        """The value of the topic's worst partition; NULL if none is known."""
        worst = F.col(f"{base.column(self.control)}_worst")
        return F.coalesce(F.col(f"{base.column(self.control)}_short")["value"], worst) if self.relative else worst

    @property
    def unknown(self) -> Column:
        """Is the value or the minimum of a partition unknown?"""
        return possible(f"{base.column(self.control)}_unknown") | self.worst.isNull() | ~F.col("partitions_known")

    @property
    def failing(self) -> Column:
        """The ids of the topic's partitions that are below the minimum."""
        return F.col(f"{base.column(self.control)}_failing")

    def measures(self) -> dict[str, Column | Flagged]:
        name, value = base.column(self.control), F.col(self.value)
        unknown, short = value.isNull(), value < self.of_partition
        more: dict[str, Column | Flagged] = {}
        if self.relative:
            unknown = unknown | (self.stated & self.of_partition.isNull())
            more = {f"{name}_required": F.min(self.of_partition), f"{name}_short": Flagged(short, self._shortest)}
        return {
            f"{name}_worst": F.min(value),
            f"{name}_unknown": possible(F.bool_or(unknown)),
            f"{name}_failing": base.partition_ids(short),
            **more,
        }

    def _shortest(self, flagged: Column) -> Column:
        """Value and minimum of the partition furthest below its minimum; NULL if none is below."""

        def entry(p: Column) -> Column:
            value, required = p[self.value], p[f"required_{self.key}"]
            return struct({"missing": value - required, "value": value, "required": required})

        return F.array_min(F.transform(flagged, entry))

    def outcome(self) -> Column:
        """One failing partition fails the topic, even if others are unknown. One unknown partition prevents PASS."""
        return (
            F.when(~self.stated, base.NOT_APPLICABLE)
            .when(self.worst < self.required, base.FAIL)
            .when(self.unknown, base.UNKNOWN)
            .otherwise(base.PASS)
        )

    def check(self) -> Column:
        return base.check(self.control, self.worst, self.required)
