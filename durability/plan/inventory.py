"""Compares inventories with the fleet: which listed cluster is which cluster of the clusters file.

A cluster of the fleet is found by its id, by its `inventory_names`, and by the id that Kafka gave it. An inventory may be wrong
about a cluster, but never in a way that hides one that isn't audited:

- A short name, such as a name in MSK, counts only if no other entry of MSK and Strimzi has it. If one of these inventories could
  not be read, that isn't certain.
- The id of a cluster is no short name of MSK unless its provider is MSK, and none of Strimzi if it is. `inventory_names` may be.
- Two entries of MSK and Strimzi are never one cluster of the fleet, unless Kafka's id says so. The one with the better name is.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from durability.policy.inventory import CSV, MSK, Entry, Listing
from durability.policy.model import Cluster


@dataclass(frozen=True)
class ReadInventory:
    """An inventory as this run read it.

    clusters: how many it lists; None if it could not be read, for `reason`.
    sha256: see `durability.policy.inventory.Listing`.
    """

    name: str
    kind: str
    clusters: int | None = None
    reason: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class ListedCluster:
    """A cluster that an inventory lists.

    id: its shortest name that no other cluster has. other_names: its other names, which others may have, too.
    sources: the names of the inventories.
    cluster: the cluster of the fleet that it is; None: it isn't audited.
    certain: False if `cluster` may be another one, because an inventory could not be read.
    """

    id: str
    sources: list[str]
    cluster: str | None = None
    certain: bool = True
    owner: str | None = None
    environment: str | None = None
    other_names: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Inventory:
    """What the inventories list, and the fleet.

    unlisted: clusters of the fleet that no inventory lists.
    previous_result_ids: the last nightly run that compared its fleet with inventories. If it could not read one, also the last
        run before it that could read all.
    fleet: what identifies the clusters file (`durability.policy.fleet_name`); None if it isn't known.
    """

    sources: list[ReadInventory] = field(default_factory=list)
    clusters: list[ListedCluster] = field(default_factory=list)
    unlisted: list[str] = field(default_factory=list)
    previous_result_ids: list[str] = field(default_factory=list)
    fleet: str | None = None

    @property
    def unread(self) -> list[ReadInventory]:
        """The inventories that could not be read."""
        return [source for source in self.sources if source.clusters is None]

    @property
    def not_audited(self) -> list[ListedCluster]:
        return [cluster for cluster in self.clusters if cluster.cluster is None]

    @classmethod
    def from_dict(cls, stated: Mapping[str, Any]) -> Inventory:
        """From the JSON of `to_dict`. Unknown members are ignored. Raises KeyError or TypeError for other content."""
        return cls(
            [ReadInventory(**_known(ReadInventory, source)) for source in stated["sources"]],
            [ListedCluster(**_known(ListedCluster, cluster)) for cluster in stated["clusters"]],
            list(stated["unlisted"]),
            list(stated["previous_result_ids"]),
            stated.get("fleet"),
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def record(self) -> str:
        """JSON for `from_dict`, without what only findings need. The lake has one for each nightly run."""
        clusters = [replace(cluster, owner=None, environment=None, other_names=[]) for cluster in self.clusters]
        parts = [{name: value for name, value in asdict(cluster).items() if value} for cluster in clusters]
        certain = [{**part, "certain": cluster.certain} for part, cluster in zip(parts, clusters, strict=True)]
        return json.dumps({**self.to_dict(), "clusters": certain})


def _known(cls: type, stated: Mapping[str, Any]) -> dict[str, Any]:
    return {f.name: stated[f.name] for f in fields(cls) if f.name in stated}


@dataclass
class _Candidate:
    """An entry while it is compared. kind: of its inventory. usable: its names that no other cluster has."""

    entry: Entry
    kind: str
    sources: list[str]
    usable: list[str] = field(default_factory=list)


def compare(
    listings: Sequence[Listing],
    fleet: Sequence[Cluster],
    kafka_ids: Mapping[str, str],
    previous_result_ids: Sequence[str] = (),
    fleet_name: str | None = None,
) -> Inventory:
    """The inventories as this run read them, with the cluster of the fleet that each listed cluster is.

    kafka_ids: the ids that Kafka gave the clusters of the fleet, where known.
    """
    candidates = _physical([listing for listing in listings if listing.source.kind != CSV])
    # Whether another cluster has the same short name isn't known while a list of clusters is missing.
    certain = not any(listing.problem is not None for listing in listings if listing.source.kind != CSV)
    found = _match(candidates, fleet, kafka_ids, certain)
    taken = {*_names(fleet), *kafka_ids.values()}
    named = [_listed(candidate, found.get(id(candidate)), taken) for candidate in candidates]
    clusters = _with_csv(named, [listing for listing in listings if listing.source.kind == CSV], fleet, kafka_ids)
    listed = {cluster.cluster for cluster in clusters}
    return Inventory(
        sources=[_source(listing) for listing in listings],
        clusters=sorted(clusters, key=lambda cluster: cluster.id),
        unlisted=sorted(cluster.id for cluster in fleet if cluster.id not in listed),
        previous_result_ids=list(previous_result_ids),
        fleet=fleet_name,
    )


def _source(listing: Listing) -> ReadInventory:
    read = listing.problem is None
    count = len(listing.entries) if read else None
    return ReadInventory(listing.source.name, listing.source.kind, count, listing.problem, listing.sha256)


def _physical(listings: Iterable[Listing]) -> list[_Candidate]:
    """The clusters of MSK and Strimzi, each once, with the names that only one of them has."""
    found: dict[str, _Candidate] = {}
    for listing in listings:
        for entry in listing.entries:
            same = [entry.kafka_cluster_id, entry.names[-1]]
            known = next((found[key] for key in same if key and key in found), None)
            if known is None:
                known = _Candidate(entry, listing.source.kind, [])
            known.sources = list(dict.fromkeys([*known.sources, listing.source.name]))
            found |= {key: known for key in same if key}
    candidates = list({id(candidate): candidate for candidate in found.values()}.values())
    count = Counter(name for candidate in candidates for name in dict.fromkeys(candidate.entry.names))
    for candidate in candidates:
        candidate.usable = [name for name in candidate.entry.names if count[name] == 1]
    return candidates


def _match(
    candidates: Sequence[_Candidate], fleet: Sequence[Cluster], kafka_ids: Mapping[str, str], certain: bool
) -> dict[int, tuple[str, bool]]:
    """By candidate (`id`), its cluster of the fleet, and whether that is certain."""
    names, of_msk = _names(fleet), {cluster.id: cluster.provider.startswith(MSK) for cluster in fleet}
    stated = {name for cluster in fleet for name in cluster.inventory_names}
    by_kafka_id = {kafka_id: cluster for cluster, kafka_id in kafka_ids.items()}
    offers: list[tuple[int, int, str, _Candidate]] = []
    for order, candidate in enumerate(candidates):
        kafka_id = candidate.entry.kafka_cluster_id
        if kafka_id and kafka_id in by_kafka_id:
            offers.append((0, order, by_kafka_id[kafka_id], candidate))
        for name in candidate.usable:
            cluster = names.get(name)
            if cluster is None or (kafka_id and kafka_ids.get(cluster, kafka_id) != kafka_id):
                continue
            short = name == candidate.entry.names[0] and len(candidate.entry.names) > 1
            if short and name not in stated and of_msk[cluster] != (candidate.kind == MSK):
                continue
            offers.append((2 if short else 1, order, cluster, candidate))
    found: dict[int, tuple[str, bool]] = {}
    taken: set[str] = set()
    for rank, _, cluster, candidate in sorted(offers, key=lambda offer: offer[:3]):
        if id(candidate) not in found and cluster not in taken:
            found[id(candidate)] = cluster, certain or rank < 2
            taken.add(cluster)
    return found


def _names(fleet: Sequence[Cluster]) -> dict[str, str]:
    others = {name: cluster.id for cluster in fleet for name in cluster.inventory_names}
    return others | {cluster.id: cluster.id for cluster in fleet}


def _listed(candidate: _Candidate, match: tuple[str, bool] | None, taken: set[str]) -> ListedCluster:
    """taken: names of the fleet, which a cluster that isn't part of it can't have."""
    entry = candidate.entry
    cluster, certain = match or (None, True)
    free = [name for name in candidate.usable if cluster or name not in taken]
    name = (free or [entry.names[-1]])[0]
    others = [other for other in (*entry.names, entry.kafka_cluster_id) if other and other != name]
    return ListedCluster(name, candidate.sources, cluster, certain, entry.owner, entry.environment, others)


def _with_csv(
    named: list[ListedCluster], listings: Iterable[Listing], fleet: Sequence[Cluster], kafka_ids: Mapping[str, str]
) -> list[ListedCluster]:
    """`named` and the clusters of CSV files. A line names a cluster as MSK, Strimzi or the fleet does, or by Kafka's id."""
    places = {name: place for place, cluster in enumerate(named) for name in (*cluster.other_names, cluster.id)}
    count = Counter(name for cluster in named for name in {*cluster.other_names, cluster.id})
    names = {kafka_id: cluster for cluster, kafka_id in kafka_ids.items()} | _names(fleet)
    clusters = list(named)
    for listing in listings:
        for entry in listing.entries:
            name = entry.names[0]
            place = places.get(name) if count[name] < 2 else None
            if place is None or (name in names and names[name] != clusters[place].cluster):
                places[name], count[name] = len(clusters), 1
                clusters.append(
                    ListedCluster(name, [listing.source.name], names.get(name), True, entry.owner, entry.environment)
                )
                continue
            known = clusters[place]
            clusters[place] = replace(
                known,
                sources=list(dict.fromkeys([*known.sources, listing.source.name])),
                owner=known.owner or entry.owner,
                environment=known.environment or entry.environment,
            )
    return clusters
