"""Which brokers should lead no more partitions, because their loss also costs the controllers' majority."""

from __future__ import annotations

from collections.abc import Collection

from durability.remedies.change.model import Document


def takes_majority(document: Document, survives: Collection[str]) -> tuple[frozenset[int], ...]:
    """By loss that a tier says its topics survive, a broker's or a rack's: the brokers that are lost together with the majority.

    No leader is elected then: each partition that they lead goes offline. Empty without KRaft, or without a majority now.
    """
    voters = (document["cluster"].get("quorum") or {}).get("voters") or ()
    racks = {broker["id"]: broker.get("rack") for broker in document["brokers"]}
    places = {voter["id"]: voter.get("rack") or racks.get(voter["id"]) for voter in voters}
    up = {voter["id"] for voter in voters if voter.get("live") is not False}

    def costs(lost: Collection[int]) -> bool:
        return len(up - {*lost}) < len(places) // 2 + 1

    if not places or costs(()):
        return ()
    found: list[frozenset[int]] = []
    if "broker" in survives:
        found.append(frozenset(broker for broker in racks if costs({broker})))
    if "rack" in survives:
        of_racks = {rack: {id for id, place in places.items() if place == rack} for rack in {*racks.values()} - {None}}
        lost = {rack for rack, of_rack in of_racks.items() if costs(of_rack)}
        found.append(frozenset(broker for broker, rack in racks.items() if rack in lost))
    return tuple(barred for barred in found if barred)
