"""The cases of each control, tests/cases/<control>.yaml: small clusters drawn as tables, with the expected findings.

Each case is a separate cluster. Its keys:

    name            what it shows
    table           a line per partition; this and brokers, version, configs, broker_configs, features, unreadable, streams
                    and cluster_<member> are arguments of `tests.support.topology.document`
    tier            the requirements on its topics (default: DEFAULT_TIER); tiers: requirements by topic
    quorum          voters as `id:rack`, or `id:rack:lag in ms` (lag `-`: never caught up), or as in a document; none:
                    ZooKeeper mode
    each_broker     further members of brokers by id; their configs are added to broker_configs
    sources         by topic and setting, the source of a value that isn't the topic's own
    application     the policy's line for its Kafka Streams applications
    waivers         as in a waivers file, for this cluster
    earlier         earlier snapshots: `minutes` before this one, with a table and brokers
    inventory       lines of the fleet's inventory `cmdb`: id, owner and environment. A cluster of a case without it isn't
                    compared. inventory_names: as in a clusters file
    expect          a list: `resource` (a topic, broker or group; default: the cluster), outcome, and any of severity, category,
                    cause, change, partitions, message, remediation, and observed, required with some of their members;
                    outcome none: there is no finding. cluster: the finding's, if it isn't the case's

In expected texts {cluster} and {tier} are replaced by these names. A file may also have `words`: hand-made findings, which
need no Spark, each with its message or remediation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from durability.plan.inventory import Inventory, compare
from durability.policy.inventory import Entry, InventorySource, Listing
from durability.policy.model import Cluster, Policy, Waiver
from durability.topology.document import instant
from tests.support import policy as stated
from tests.support.topology import NOON, document

FOLDER = Path(__file__).parents[1] / "cases"
DEFAULT_TIER = {
    **{"replication_factor": 3, "min_insync_replicas": 2, "write_headroom": 1, "replica_racks": 2},
    **{"acked_copies": 2, "unclean_leader_election": False},
}
"""Also the policy's last tier, which broker-defaults compares with."""
DRAWN = ("table", "brokers", "version", "configs", "broker_configs", "each_broker", "sources")
DRAWN += ("features", "unreadable", "streams")
OTHERS = ("name", "tier", "tiers", "quorum", "application", "waivers", "earlier")
OTHERS += ("inventory", "inventory_names", "expect")
SOME = ("observed", "required")
"""Members of an expectation that may be incomplete."""


@dataclass(frozen=True)
class Case:
    """A case of `control`. cluster: the id of its cluster and the name of its tier."""

    control: str
    cluster: str
    said: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.control}: {self.said['name']}"

    @property
    def document(self) -> dict:
        return self._document(self.said, NOON)

    def earlier(self) -> Iterator[dict]:
        for before in self.said.get("earlier", ()):
            for minutes in before["minutes"]:
                moment = instant(NOON) - timedelta(minutes=minutes)
                yield self._document(self.said | before, moment.isoformat().replace("+00:00", "Z"))

    def _document(self, said: dict[str, Any], moment: str) -> dict:
        options = {key: value for key, value in said.items() if key in DRAWN or key.startswith("cluster_")}
        if "quorum" in said:
            options["quorum"] = None if said["quorum"] == "none" else said["quorum"]
        return document(options.pop("table", ""), cluster=self.cluster, captured_at=moment, **options)

    def expected(self, expectation: dict[str, Any]) -> dict[str, Any]:
        return self.replaced({"cluster": self.cluster, "resource": "{cluster}"} | expectation)

    def replaced(self, said: Any) -> Any:
        text = json.dumps(said)
        return json.loads(text.replace("{cluster}", self.cluster).replace("{tier}", self.cluster))


def files() -> dict[str, dict]:
    """The content of each file, by control."""
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.yaml"))}


def cases(controls: Iterable[str] | None = None) -> list[Case]:
    """The cases of these controls (default: all). Raises ValueError for an unknown key."""
    found = []
    for control, content in files().items():
        for number, said in enumerate(content["cases"] if controls is None or control in controls else ()):
            unknown = [k for k in said if k not in (*DRAWN, *OTHERS) and not k.startswith("cluster_")]
            if unknown or not said.get("expect"):
                raise ValueError(f"{control}, case {number}: no {', '.join(unknown) or 'expectation'}")
            found.append(Case(control, f"{control}.{number}", said))
    return found


def policy(of: Iterable[Case]) -> Policy:
    """The policy for these cases."""
    tiers: dict[str, dict] = {}
    selectors, applications = [], []
    for case in of:
        cluster = re.escape(case.cluster)
        for topic, required in case.said.get("tiers", {}).items():
            tiers[f"{case.cluster}.{topic}"] = required
            selectors.append({"match": {"cluster": cluster, "topic": topic}, "tier": f"{case.cluster}.{topic}"})
        tiers[case.cluster] = case.said.get("tier", DEFAULT_TIER)
        selectors.append({"match": {"cluster": cluster}, "tier": case.cluster})
        if "application" in case.said:
            applications.append({"match": {"cluster": cluster}, **case.said["application"]})
    tiers["last"] = DEFAULT_TIER
    return stated.policy(tiers=tiers, topics=[*selectors, {"tier": "last"}], applications=applications)


def waivers(of: Iterable[Case]) -> list[Waiver]:
    found = [{"cluster": c.cluster} | w for c in of for w in c.said.get("waivers", ())]
    return stated.waivers(yaml.safe_dump({"waivers": found}, sort_keys=False))


def inventory(of: Iterable[Case]) -> Inventory:
    """The inventory of these cases, compared with the clusters of those that have one."""
    compared = [case for case in of if "inventory" in case.said]
    entries = [
        Entry((line["id"],), owner=line.get("owner"), environment=line.get("environment"))
        for case in compared
        for line in case.replaced(case.said["inventory"])
    ]
    fleet = [Cluster(c.cluster, c.cluster, inventory_names=tuple(c.said.get("inventory_names", ()))) for c in compared]
    return compare([Listing(InventorySource("cmdb", "csv"), entries)], fleet, {})


def mismatches(case: Case, found: list[dict]) -> list[str]:
    """The differences between the case's expectations and its findings, whose `observed` and `required` are objects."""
    wrong = []
    for expectation in map(case.expected, case.said["expect"]):
        about = {key: str(expectation[key]) for key in ("cluster", "resource")} | {"control": case.control}
        about |= {"category": expectation["category"]} if "category" in expectation else {}
        those = [f for f in found if all(f[key] == value for key, value in about.items())]
        if expectation["outcome"] == "none" and not those:
            continue
        if len(those) != 1:
            wrong.append(f"{about}: {[(f['outcome'], f['category']) for f in those] or 'no finding'}")
            continue
        (finding,) = those
        for key, value in expectation.items():
            seen = {k: finding[key].get(k, "absent") for k in value} if key in SOME else finding[key]
            if key != "resource" and seen != value:
                wrong.append(f"{about['resource']}: {key} is {seen!r}, expected {value!r}")
    return wrong


def by_hand(control: str, said: dict[str, Any]) -> dict[str, Any]:
    """A finding of `control` for `durability.findings.words`, from an entry of `words` in its file."""
    defaults = {"outcome": "FAIL", "resource_type": "topic", "resource": "orders", "category": None, "tier": "critical"}
    more = {"cluster": "eu", "provider": "self", "cause": None, "partitions": [], "observed": {}, "required": {}}
    return {"control": control, **defaults, **more, "evidence": {}, **said}
