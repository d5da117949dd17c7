"""Settings as they apply, for rules: what a control's YAML file declares under `reads` with Kafka's default.

A rule asks `topic_setting`, `broker_setting` or `cluster_setting`, each for a row of another kind. An override of a topic
applies; without one a cluster-wide dynamic value, else what each broker states itself, else Kafka's default. Brokers may
differ, and any of them may come to lead a topic's partitions: so a topic's setting has a least and a greatest value, and it is
for the rule to judge by the worse one.

NULL is unknown. A value is unknown that could not be read; that means nothing as the kind of value asked for; that isn't
stated where no default is declared; and that isn't in what a cluster answered, since DescribeConfigs gives defaults too: it
was never asked, by an earlier version, or that release doesn't have it. A broker that is down answers nothing and decides
nothing, as everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as F

from durability.catalogue import settings as declared

KINDS = {"int": "int", "long": "bigint", "double": "double", "boolean": "boolean", "string": "string"}
GREATEST = {"int": "2147483647", "long": "9223372036854775807", "double": "1.7976931348623157e308"}
COLUMN = "settings"
"""The column of rows of topics, and the field of brokers, that holds them: a struct with a field for each declared setting. No
rule names it."""
TEXT, TEXTS = "string", "array<string>"


class Setting(NamedTuple):
    """name: the setting's. least, most: the least and the greatest value that may apply, NULL where none is known; of what
    could be read, where not `known`. source: topic, cluster-default, broker-dynamic, broker or default; NULL: unknown. known:
    could all values be read that may apply? Never NULL."""

    name: str
    least: Column
    most: Column
    source: Column
    known: Column

    @property
    def value(self) -> Column:
        """The one value that applies; NULL where it is unknown or brokers differ."""
        return F.when(self.known & (self.least == self.most), self.least)


def topic_setting(name: str, kind: str, *, unlimited: str | None = None) -> Setting:
    """A setting of the topic that a row is of, by the name that topics have it under.

    kind: one of KINDS. unlimited: the value, as text, that stands for no limit: it counts as the greatest of its kind.
    Raises ValueError for a setting that no control on topics declares.
    """
    _must_be_declared(name, declared.of_topics(), "topics")
    entry = F.col(COLUMN)[name]
    return _of_values(name, entry["values"], entry["known"], entry["source"], kind, unlimited)


def broker_setting(name: str, kind: str, *, unlimited: str | None = None) -> Setting:
    """A setting of `b`, the broker that a row is of. Otherwise as `topic_setting`."""
    _must_be_declared(name, declared.of_brokers(), "brokers")
    entry = F.col("b")[COLUMN][name]
    return _of_values(name, F.array(entry["value"]), F.lit(True), entry["source"], kind, unlimited)


def cluster_setting(name: str, kind: str, *, unlimited: str | None = None) -> Setting:
    """A setting of all brokers that are up, for a row of a cluster: reads `brokers`. Otherwise as `topic_setting`."""
    _must_be_declared(name, declared.of_brokers(), "brokers")
    found = _of_all_brokers(name)
    return _of_values(name, found["values"], found["known"], found["source"], kind, unlimited)


def columns() -> tuple[str, ...]:
    """COLUMN, where a control on topics declares a setting: what rows of topics, and of their partitions, carry."""
    return (COLUMN,) if declared.of_topics() else ()


def _must_be_declared(name: str, there: Mapping[str, str | None], of: str) -> None:
    if name not in there:
        raise ValueError(
            f"no control on {of} declares {name} with Kafka's default; its YAML file should say `reads: {{{name}: <default>}}`"
        )


def typed(text: Column, kind: str, unlimited: str | None = None) -> Column:
    """A stated value as one of KINDS; NULL where it is none.

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


def _of_values(name: str, values: Column, known: Column, source: Column, kind: str, unlimited: str | None) -> Setting:
    found = F.transform(values, lambda text: typed(text, kind, unlimited))
    all_of_them = F.coalesce(known & (F.size(found) > 0) & F.forall(found, lambda v: v.isNotNull()), F.lit(False))
    return Setting(name, F.array_min(found), F.array_max(found), source, all_of_them)


# What frames carry.


def _stated(names: declared.Names, config: Column, sources: Column) -> tuple[Column, Column]:
    """The first of `names` that is stated, as text, and where; NULL where none is."""

    def value(name: str, factor: int) -> Column:
        text = F.try_element_at(config, F.lit(name))
        return text if factor == 1 else (text.try_cast("bigint") * factor).cast("string")

    def source(name: str) -> Column:
        said = F.coalesce(F.try_element_at(sources, F.lit(name)), F.lit("broker"))
        return F.when(F.try_element_at(config, F.lit(name)).isNotNull(), said)

    return F.coalesce(*(value(*n) for n in names)), F.coalesce(*(source(name) for name, _ in names))


def _readable(names: declared.Names) -> Column:
    unread = [F.array_contains("unreadable_configs", name) for name, _ in names]
    return F.col("configs").isNotNull() & ~F.coalesce(reduce(Column.__or__, unread), F.lit(False))


def _answered() -> Column:
    """Are these configs what DescribeConfigs answered? It states defaults too."""
    return F.coalesce(F.array_contains(F.map_values("config_sources"), "default"), F.lit(False))


def of_broker() -> dict[str, Column]:
    """COLUMN of a row of `brokers`: by setting its `value` as text (NULL: unknown), `source`, and `read`: could it be read?

    A topic's settings are there too, by the topic's names, as far as brokers have them.
    """
    defaults = {**declared.of_topics(), **declared.of_brokers()}
    names = {name: declared.broker_names(name) for name in declared.of_brokers()}
    names |= {name: there for name in declared.of_topics() if (there := declared.names_on_brokers(name))}
    entries = [_entry(of, defaults[name]).alias(name) for name, of in names.items()]
    return {COLUMN: F.struct(*entries)} if entries else {}


def _entry(names: declared.Names, default: str | None) -> Column:
    readable = _readable(names)
    value, source = _stated(names, F.col("configs"), F.col("config_sources"))
    left_out = F.when(~_answered(), F.lit(default).cast(TEXT))
    return F.struct(
        F.when(readable, F.coalesce(value, left_out)).alias("value"),
        F.when(readable, F.coalesce(source, F.lit("default"))).alias("source"),
        readable.alias("read"),
    )


def _of_all_brokers(name: str) -> Column:
    """What the brokers that are up have, from `brokers`: `values` that are known, `known`: are all, `read`, and `source`."""
    live = F.transform(
        F.filter("brokers", lambda b: F.coalesce(b["live"], F.lit(True))),
        lambda b: b[COLUMN][name],
    )
    some = F.col("brokers_known") & (F.size(live) > 0)
    source = F.when(F.forall(live, lambda s: s["source"] == "default"), "default")
    source = source.when(F.forall(live, lambda s: s["source"] == "cluster-default"), "cluster-default")
    return F.struct(
        F.array_distinct(F.array_compact(F.transform(live, lambda s: s["value"]))).alias("values"),
        (some & F.forall(live, lambda s: s["value"].isNotNull())).alias("known"),
        (some & F.forall(live, lambda s: s["read"])).alias("read"),
        source.otherwise("broker").alias("source"),
    )


INHERITED, OWN = "inherited_settings", "own_settings"


def inherited() -> list[Column]:
    """INHERITED of a row of a cluster: what its topics have without an override. None where nothing is declared."""
    entries = []
    for name, default in declared.of_topics().items():
        if declared.names_on_brokers(name):
            entry = _of_all_brokers(name)
        else:
            there = F.array(*([F.lit(default)] if default is not None else [])).cast(TEXTS)
            known, read = F.lit(default is not None).alias("known"), F.lit(True).alias("read")
            entry = F.struct(there.alias("values"), known, read, F.lit("default").alias("source"))
        entries.append(entry.alias(name))
    return [F.struct(*entries).alias(INHERITED)] if entries else []


def own() -> list[Column]:
    """OWN of a row of `topics`: what it says itself. None where nothing is declared."""
    entries = []
    for name in declared.of_topics():
        value, source = _stated(((name, 1),), F.col("configs"), F.col("config_sources"))
        source = F.when(value.isNotNull(), F.coalesce(F.try_element_at("config_sources", F.lit(name)), F.lit("topic")))
        fields = {"value": value, "source": source, "read": _readable(((name, 1),)), "answered": _answered()}
        entries.append(F.struct(*(column.alias(field) for field, column in fields.items())).alias(name))
    return [F.struct(*entries).alias(OWN)] if entries else []


def of_topic() -> dict[str, Column]:
    """COLUMN of a row that has INHERITED and OWN: by setting `values`, `known` and `source`."""
    entries = [_applies(F.col(OWN)[name], F.col(INHERITED)[name]).alias(name) for name in declared.of_topics()]
    return {COLUMN: F.struct(*entries)} if entries else {}


def _applies(mine: Column, theirs: Column) -> Column:
    """A value of the topic's or the cluster's counts alone; one that a broker answered for the topic is that broker's, and
    others may have others."""
    override = mine["value"].isNotNull() & mine["source"].isin("topic", "cluster-default")
    told = mine["value"].isNotNull()
    values = F.when(override, F.array(mine["value"])).when(
        told, F.array_union(theirs["values"], F.array(mine["value"]))
    )
    known = F.when(override, True).when(told, theirs["read"]).when(~mine["answered"], theirs["known"])
    source = F.when(override, mine["source"]).when(told | ~mine["answered"], theirs["source"])
    return F.struct(
        F.when(mine["read"], values.when(~mine["answered"], theirs["values"])).alias("values"),
        F.coalesce(mine["read"] & known, F.lit(False)).alias("known"),
        F.when(mine["read"], source).alias("source"),
    )
