"""The settings that controls declare under `reads` in their YAML files, as they apply to a topic, a broker or a cluster.

A topic's override applies; else the value of each broker, which is its own dynamic value, the cluster-wide one or that of its
file; else Kafka's default. Brokers may differ, and each may come to lead the topic's partitions. So a setting has a least and a
greatest value, and a rule uses the worse one.

A value is NULL (unknown) in four cases:

- It could not be read.
- It isn't of the kind that the rule reads.
- It isn't stated, and the control declares no default.
- An answer of DescribeConfigs doesn't have it, although such answers state defaults. An earlier version of the collector didn't
  read it, or the release doesn't have it.

Brokers that are down don't count.
"""

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue import settings as declared
from spark_jobs.frames.columns import certain, live_brokers, struct

KINDS = {"int": "int", "long": "bigint", "double": "double", "boolean": "boolean", "string": "string"}
GREATEST = {"int": "2147483647", "long": "9223372036854775807", "double": "1.7976931348623157e308"}
COLUMN = "settings"
"""The column of topics, and the field of brokers, with a field per declared setting. Rules don't read it directly."""
OWN, INHERITED = "own_settings", "inherited_settings"
"""The columns that make COLUMN of a topic: its own settings, and those that apply without an override."""


class Setting(NamedTuple):
    """A setting as it applies.

    least, most: of the values that may apply and could be read; NULL if there are none.
    source: topic, cluster-default, broker-dynamic, broker or default; NULL if unknown.
    known: could all values that may apply be read? Never NULL.
    """

    name: str
    least: Column
    most: Column
    source: Column
    known: Column

    @property
    def value(self) -> Column:
        """The one value that applies; NULL if it is unknown or brokers differ."""
        return F.when(self.known & (self.least == self.most), self.least)

    @property
    def unstated(self) -> Column:
        """Is the value unknown because it isn't stated and no default is declared? Never NULL."""
        return ~self.known & self.least.isNull() & certain(self.source == "default")


def topic_setting(name: str, kind: str, *, unlimited: str | None = None) -> Setting:
    """A setting of the topic in a row, by its name for topics.

    kind: a key of KINDS.
    unlimited: the text of the value that means no limit. It counts as the greatest value.
    Raises ValueError for a setting that no control on topics declares, and for another kind.
    """
    _must_be_declared(name, declared.of_topics(), "topics")
    entry = F.col(COLUMN)[name]
    return _of_values(name, entry["values"], entry["known"], entry["source"], kind, unlimited)


def broker_setting(name: str, kind: str, *, unlimited: str | None = None) -> Setting:
    """A setting of `b`, the broker in a row. See `topic_setting`."""
    _must_be_declared(name, declared.of_brokers(), "brokers")
    entry = F.col("b")[COLUMN][name]
    return _of_values(name, F.array(entry["value"]), F.lit(True), entry["source"], kind, unlimited)


def cluster_setting(name: str, kind: str, *, unlimited: str | None = None) -> Setting:
    """A setting of all live brokers of the cluster in a row. Reads `brokers`. See `topic_setting`."""
    _must_be_declared(name, declared.of_brokers(), "brokers")
    entry = _of_all_brokers(name)
    return _of_values(name, entry["values"], entry["known"], entry["source"], kind, unlimited)


def columns() -> tuple[str, ...]:
    """COLUMN, if a control on topics declares a setting. Partitions get it from their topics."""
    return (COLUMN,) if declared.of_topics() else ()


def _must_be_declared(name: str, there: Mapping[str, str | None], of: str) -> None:
    if name not in there:
        raise ValueError(
            f"no control on {of} declares {name} with Kafka's default; its YAML file should say `reads: {{{name}: <default>}}`"
        )


def typed(text: Column, kind: str, unlimited: str | None = None) -> Column:
    """A stated value as one of KINDS; NULL if it isn't of that kind.

    >>> df = spark.createDataFrame([("7",), ("-1",), ("0.5",), ("x",), (None,)], "text string")
    >>> df.select("text", typed(F.col("text"), "int").alias("int"), typed(F.col("text"), "double").alias("double"),
    ...           typed(F.col("text"), "long", "-1").alias("long, -1 unlimited")).show()
    +----+----+------+-------------------+
    |text| int|double| long, -1 unlimited|
    +----+----+------+-------------------+
    |   7|   7|   7.0|                  7|
    |  -1|  -1|  -1.0|9223372036854775807|
    | 0.5|NULL|   0.5|               NULL|
    |   x|NULL|  NULL|               NULL|
    |NULL|NULL|  NULL|               NULL|
    +----+----+------+-------------------+
    """
    stated = F.trim(text)
    if kind in ("int", "long"):
        stated = F.when(stated.rlike(r"^[+-]?\d+$"), stated)
    if unlimited is not None:
        stated = F.when(stated == unlimited, GREATEST[kind]).otherwise(stated)
    value = stated.try_cast(KINDS[kind])
    return F.when(F.abs(value) <= float(GREATEST[kind]), value) if kind == "double" else value


def _of_values(name: str, texts: Column, known: Column, source: Column, kind: str, unlimited: str | None) -> Setting:
    if kind not in KINDS:
        raise ValueError(f"{kind!r} is no kind of setting; {name} needs one of {', '.join(KINDS)}")
    values = F.transform(texts, lambda text: typed(text, kind, unlimited))
    all_known = certain(known & (F.size(values) > 0) & F.forall(values, lambda v: v.isNotNull()))
    return Setting(name, F.array_min(values), F.array_max(values), source, all_known)


# What frames carry, made of `configs`, `config_sources` and `unreadable_configs`.


def _stated(names: declared.Names, otherwise: str) -> tuple[Column, Column]:
    """The first of `names` that is stated, as text, and its source, `otherwise` if no source is given. NULL if none is stated."""

    def value(name: str, factor: int) -> Column:
        text = F.try_element_at("configs", F.lit(name))
        return text if factor == 1 else (text.try_cast("bigint") * factor).cast("string")

    def source(name: str) -> Column:
        given = F.coalesce(F.try_element_at("config_sources", F.lit(name)), F.lit(otherwise))
        return F.when(F.try_element_at("configs", F.lit(name)).isNotNull(), given)

    values = [value(name, factor) for name, factor in names]
    sources = [source(name) for name, _ in names]
    return F.coalesce(*values), F.coalesce(*sources)


def _readable(names: declared.Names) -> Column:
    unread = [F.array_contains("unreadable_configs", name) for name, _ in names]
    return F.col("configs").isNotNull() & ~certain(reduce(Column.__or__, unread))


def answered() -> Column:
    """Are these configs an answer of DescribeConfigs? It states defaults too."""
    return certain(F.array_contains(F.map_values("config_sources"), "default"))


def of_broker() -> dict[str, Column]:
    """COLUMN of a broker, by setting: its `value` as text (NULL if unknown), `source`, and `read`: could it be read?

    It includes settings of topics that brokers have, by their names for topics.
    """
    defaults = {**declared.of_topics(), **declared.of_brokers()}
    names = {name: declared.broker_names(name) for name in declared.of_brokers()}
    names |= {name: there for name in declared.of_topics() if (there := declared.names_on_brokers(name))}
    entries = {name: _of_one_broker(on_broker, defaults[name]) for name, on_broker in names.items()}
    return {COLUMN: struct(entries)} if entries else {}


def _of_one_broker(names: declared.Names, default: str | None) -> Column:
    read = _readable(names)
    value, source = _stated(names, otherwise="broker")
    left_out = F.when(~answered(), F.lit(default).cast("string"))
    return struct(
        {
            "value": F.when(read, F.coalesce(value, left_out)),
            "source": F.when(read, F.coalesce(source, F.lit("default"))),
            "read": read,
        }
    )


def _of_all_brokers(name: str) -> Column:
    """A setting over the live `brokers`: the known `values`, the `source`, and whether all are `known` and could be `read`.

    own: does a broker have a dynamic value of its own, which overrides the cluster-wide one?
    """
    entries = live_brokers()[COLUMN][name]
    some = F.col("brokers_known") & (F.size(entries) > 0)
    source = F.when(F.forall(entries, lambda e: e["source"] == "default"), "default")
    source = source.when(F.forall(entries, lambda e: e["source"] == "cluster-default"), "cluster-default")
    return struct(
        {
            "values": F.array_distinct(F.array_compact(entries["value"])),
            "known": some & F.forall(entries, lambda e: e["value"].isNotNull()),
            "read": some & F.forall(entries, lambda e: e["read"]),
            "source": source.otherwise("broker"),
            "own": F.exists(entries, lambda e: certain(e["source"] == "broker-dynamic")),
        }
    )


def inherited() -> list[Column]:
    """INHERITED of a cluster: the values for topics without an override. Empty if no setting is declared."""
    entries = {
        name: _of_all_brokers(name) if declared.names_on_brokers(name) else _of_default(default)
        for name, default in declared.of_topics().items()
    }
    return [struct(entries).alias(INHERITED)] if entries else []


def _of_default(default: str | None) -> Column:
    """The same as `_of_all_brokers` for a setting that brokers don't have."""
    return struct(
        {
            "values": F.array(*([] if default is None else [F.lit(default)])).cast("array<string>"),
            "known": F.lit(default is not None),
            "read": F.lit(True),
            "source": F.lit("default"),
            "own": F.lit(False),
        }
    )


def own() -> list[Column]:
    """OWN of a topic: the values that it states itself. Empty if no setting is declared."""
    entries = {}
    for name in declared.of_topics():
        value, source = _stated(((name, 1),), otherwise="topic")
        fields = {"value": value, "source": source, "read": _readable(((name, 1),)), "answered": answered()}
        entries[name] = struct(fields)
    return [struct(entries).alias(OWN)] if entries else []


def of_topic() -> dict[str, Column]:
    """COLUMN of a topic from OWN and INHERITED, by setting: `values`, `known` and `source`."""
    entries = {name: _applies(F.col(OWN)[name], F.col(INHERITED)[name]) for name in declared.of_topics()}
    return {COLUMN: struct(entries)} if entries else {}


def _applies(own: Column, inherited: Column) -> Column:
    """The values that apply to a topic. An override is the only one, and so is a cluster-wide value that no broker overrides.

    A value that one broker answered for the topic is that broker's, and others may have other values.
    """
    stated = own["value"].isNotNull()
    common = (own["source"] == "cluster-default") & ~certain(inherited["own"])
    override = stated & ((own["source"] == "topic") | common)
    left_out = ~own["answered"]
    its_own = F.array(own["value"])
    return struct(
        {
            "values": F.when(
                own["read"],
                F.when(override, its_own)
                .when(stated, F.array_union(inherited["values"], its_own))
                .when(left_out, inherited["values"]),
            ),
            "known": certain(
                own["read"] & F.when(override, True).when(stated, inherited["read"]).when(left_out, inherited["known"])
            ),
            "source": F.when(
                own["read"],
                F.when(override, own["source"]).when(stated | left_out, inherited["source"]),
            ),
        }
    )
