"""Small topologies drawn as tables, so that tests show the case they cover.

>>> doc = document('''
...     topic   leader  replicas  isr  min
...     orders  1       1,2,3     1,2  2
...     orders  -       2,3       -    2
... ''', brokers="1:az1 2:az2 3:az3!", version="4.3")
>>> [(b["id"], b["rack"], b["live"]) for b in doc["brokers"]]
[(1, 'az1', True), (2, 'az2', True), (3, 'az3', False)]
>>> [(p["partition"], p["leader"], p["isr"]) for p in doc["topics"][0]["partitions"]]
[(0, 1, [1, 2]), (1, None, [])]
"""

from __future__ import annotations

import copy
import json
from pathlib import Path

NOON = "2026-11-21T12:00:00Z"
LISTS = ("replicas", "isr", "elr", "last_known_elr", "adding", "removing")
COLUMNS = {"topic", "partition", "leader", "min", "internal", "bytes", *LISTS}
EXAMPLE = {
    "format": "kafka-topology/1",
    "cluster": {
        "id": "eu-payments",
        "kafka_version": "4.3",
        "captured_at": "2026-11-21T02:00:00Z",
        "consistent": True,
        "features": {"eligible.leader.replicas.version": 1},
        "quorum": {"leader": 100, "voters": [{"id": 100, "rack": "az1", "lag_ms": 0}], "observers": []},
        "controllers": [{"id": 100, "configs": {"default.replication.factor": "3"}}],
    },
    "brokers": [
        {
            "id": number,
            "rack": "az1",
            "live": True,
            "kafka_version": "4.3",
            "offline_log_dirs": 0,
            "configs": {"min.insync.replicas": "2"},
        }
        for number in range(4)
    ],
    "topics": [
        {
            "name": "orders",
            "internal": False,
            "configs": {"min.insync.replicas": "2"},
            "config_sources": {"min.insync.replicas": "topic"},
            "partitions": [
                {
                    "partition": 0,
                    "leader": 1,
                    "replicas": [1, 2, 3],
                    "isr": [1, 2],
                    "elr": [3],
                    "last_known_elr": [],
                    "adding": [],
                    "removing": [],
                    "bytes": 1048576,
                }
            ],
        }
    ],
    "streams": [
        {
            "group": "enrich",
            "type": "classic",
            "state": "Stable",
            "in_transition": False,
            "stateful_tasks": ["0_0", "0_1"],
            "clients": [{"process": "p1", "tags": {"zone": "az1"}, "active": ["0_0"], "standby": ["0_1"]}],
        }
    ],
    "unreadable": [{"path": "/brokers/0/configs", "reason": "CLUSTER_AUTHORIZATION_FAILED"}],
}
"""The document in the format's description. Details that it omits are added to the brokers."""


def unread(document: dict) -> dict[str, str]:
    """The reason by path of what could not be read."""
    return {entry["path"]: entry["reason"] for entry in document["unreadable"]}


def document(
    table: str = "",
    *,
    brokers: str | None = None,
    cluster: str = "test",
    version: str = "4.3",
    captured_at: str = NOON,
    configs: dict[str, dict[str, str]] | None = None,
    broker_configs: dict[str, str] | None = None,
    features: dict[str, int] | None = None,
    quorum: dict | str | None = "101:az1 102:az2 103:az3",
    unreadable: dict[str, str] | None = None,
    each_broker: dict[int, dict] | None = None,
    sources: dict[str, dict[str, str]] | None = None,
    **parts,
) -> dict:
    """A `kafka-topology/1` document with one partition per line of `table`.

    table: a header with column names, then one line per partition, with cells separated by blanks. Columns: `topic` (required),
        `replicas` (required, ids joined by commas), `partition` (default: counted per topic), `leader` (default: the first of the
        ISR), `isr` (default: the replicas), `elr`, `last_known_elr`, `adding`, `removing` (default: empty), `bytes` (default:
        absent), `min` (the topic's min.insync.replicas override, from its first line) and `internal` (true or false).
        A cell `-` means none: no leader, an empty list, no override.
    brokers: `id:rack` separated by blanks. An `id` alone has no rack, and a `!` at the end marks a dead broker.
        Default: every id in the table, live, on az1, az2, az3 in turn (broker 1 on az1).
    configs: further topic overrides by topic name. Their source is `topic`.
    broker_configs: the static configs of every broker.
    quorum: as in the document, or voters as `id:rack:lag in ms` separated by blanks. The first voter leads. Rack and lag are
        optional. Lag `-`: never caught up. None: ZooKeeper mode.
    unreadable: reasons by path.
    each_broker: by id, further or other members of one broker. Its `configs` are added to those of every broker.
    sources: by topic, the source of values that aren't the topic's own.
    parts: further top-level members (`streams`, `groups`), or members of `cluster` as `cluster_<name>`.
    """
    lines = [line.split() for line in table.splitlines() if line.strip()]
    topics: dict[str, dict] = {}
    for cells in lines[1:]:
        _add_partition(topics, dict(zip(lines[0], cells, strict=True)))
    for name, extra in (configs or {}).items():
        topics[name]["configs"].update(extra)
        topics[name]["config_sources"].update(dict.fromkeys(extra, "topic"))
    for name, stated in (sources or {}).items():
        topics[name]["config_sources"].update(stated)
    doc = {
        "format": "kafka-topology/1",
        "cluster": {
            "id": cluster,
            "kafka_version": version,
            "captured_at": captured_at,
            "features": {} if features is None else features,
            "quorum": _voters(quorum) if isinstance(quorum, str) else quorum,
        },
        "brokers": _brokers(_named(topics) if brokers is None else brokers, broker_configs or {}, each_broker or {}),
        "topics": list(topics.values()),
    }
    if unreadable:
        doc["unreadable"] = [{"path": path, "reason": reason} for path, reason in unreadable.items()]
    for name, value in parts.items():
        if name.startswith("cluster_"):
            doc["cluster"][name.removeprefix("cluster_")] = value
        else:
            doc[name] = value
    return copy.deepcopy(doc)


def healthy(topics: int = 2, partitions: int = 3, **kwargs) -> dict:
    """A document of `topics` topics, each of RF 3 over three racks, min.insync.replicas 2, all in sync."""
    rows = [
        f"topic-{t} {p % 3 + 1},{(p + 1) % 3 + 1},{(p + 2) % 3 + 1} 2" for t in range(topics) for p in range(partitions)
    ]
    return document("\n".join(["topic replicas min", *rows]), **kwargs)


def write(folder: Path, *documents: dict) -> Path:
    """Write each document as `<cluster>-<number>.json` into `folder`; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, doc in enumerate(documents):
        name = str(doc["cluster"]["id"]).replace("/", "_")
        (folder / f"{name}-{number:03d}.json").write_text(json.dumps(doc), encoding="utf-8")
    return folder


def _add_partition(topics: dict[str, dict], row: dict[str, str]) -> None:
    if unknown := set(row) - COLUMNS:
        raise ValueError(f"no such column: {sorted(unknown)}; there are {sorted(COLUMNS)}")
    name = row["topic"]
    topic = topics.get(name)
    if topic is None:
        least = row.get("min", "-")
        configs = {} if least == "-" else {"min.insync.replicas": least}
        topic = topics[name] = {
            "name": name,
            "internal": row.get("internal") == "true",
            "configs": configs,
            "config_sources": dict.fromkeys(configs, "topic"),
            "partitions": [],
        }
    lists = {column: _ids(row.get(column, "-")) for column in LISTS}
    if "isr" not in row:
        lists["isr"] = list(lists["replicas"])
    first = str(lists["isr"][0]) if lists["isr"] else "-"
    leader = row.get("leader", first)
    leading = None if leader == "-" else int(leader)
    number = int(row.get("partition", len(topic["partitions"])))
    partition = {"partition": number, "leader": leading, **lists}
    if row.get("bytes", "-") != "-":
        partition["bytes"] = int(row["bytes"])
    topic["partitions"].append(partition)


def _ids(cell: str) -> list[int]:
    return [] if cell == "-" else [int(i) for i in cell.split(",")]


def _named(topics: dict[str, dict]) -> str:
    ids = {i for t in topics.values() for p in t["partitions"] for column in LISTS for i in p[column]}
    return " ".join(f"{i}:az{(i - 1) % 3 + 1}" for i in sorted(ids or {1, 2, 3}))


def _brokers(drawn: str, configs: dict[str, str], each: dict[int, dict]) -> list[dict]:
    rows = []
    for cell in drawn.split():
        number, _, rack = cell.rstrip("!").partition(":")
        live = not cell.endswith("!")
        own = each.get(int(number), {})
        row = {"id": int(number), "rack": rack or None, "live": live, **own}
        rows.append(row | {"configs": configs | own.get("configs", {})})
    return rows


def _voters(drawn: str) -> dict:
    voters = []
    for cell in drawn.split():
        number, rack, lag = [*cell.split(":"), "", "0"][:3]
        behind = None if lag == "-" else int(lag or 0)
        voters.append({"id": int(number), "rack": rack or None, "lag_ms": behind})
    return {"leader": voters[0]["id"], "voters": voters, "observers": []}
