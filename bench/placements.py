"""Places the replicas of a generated cluster, for all of its partitions at once.

`kafka` places most topics as Kafka's own assignor does (`AdminUtils.assignReplicasToBrokers`, which
`kafka-reassign-partitions --generate` uses), the others by hand. `neighbours` places replicas on neighbours in one list of
brokers, so few placements differ. Both return broker ids of shape (partitions, WIDEST). A partition has as many replicas as its
topic's replication factor. The rest of its row has no meaning.
"""

from __future__ import annotations

import numpy as np

PLACEMENTS = ("kafka", "neighbours")
WIDEST = 5
"""The highest replication factor."""
RACK_AWARE, RACK_UNAWARE, BY_HAND = range(3)
SHARES = {RACK_AWARE: 0.7, RACK_UNAWARE: 0.2, BY_HAND: 0.1}
"""The share of topics that is placed in each way."""


def kafka(rng: np.random.Generator, sizes: np.ndarray, factors: np.ndarray, racks: np.ndarray) -> np.ndarray:
    """Place each topic from a random start and with a random shift, as Kafka does, or by hand.

    sizes, factors: partitions and replication factor of each topic.
    racks: a number for each broker; -1 if no rack is configured. In such a cluster Kafka's assignor ignores racks.
    """
    topics, brokers = len(sizes), len(racks)
    ways = rng.choice(list(SHARES), topics, p=list(SHARES.values()))
    if (racks < 0).any():
        ways[ways == RACK_AWARE] = RACK_UNAWARE
    start, shift = rng.integers(0, brokers, (2, topics))
    topic = np.repeat(np.arange(topics), sizes)
    partition = np.arange(len(topic)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    replicas = by_hand(rng, len(topic), brokers)
    for way, order, of in ((RACK_AWARE, alternating(racks), racks), (RACK_UNAWARE, np.arange(brokers), None)):
        rows = np.flatnonzero(ways[topic] == way)
        at = topic[rows]
        replicas[rows] = assigned(partition[rows], factors[at], start[at], shift[at], order, of)
    return replicas


def alternating(racks: np.ndarray) -> np.ndarray:
    """Broker ids in the order of the rack-aware assignor: one of each rack in turn, lowest id first.

    >>> alternating(np.array([0, 2, 2, 1, 1, 0])).tolist()
    [0, 3, 1, 5, 4, 2]
    """
    earlier_in_rack = [(racks[:broker] == rack).sum() for broker, rack in enumerate(racks)]
    return np.lexsort((racks, earlier_in_rack))


def assigned(
    partition: np.ndarray,
    factor: np.ndarray,
    start: np.ndarray,
    shift: np.ndarray,
    order: np.ndarray,
    racks: np.ndarray | None = None,
) -> np.ndarray:
    """Kafka's assignor. partition, factor, start, shift: one number for each partition.

    A partition's first replica is `start` brokers further in `order` than the partition's number. The distance from there to
    the second one begins with `shift` and grows with each round over the brokers. The others follow one broker apart. With
    `racks` (by broker id) the distance grows by the number of racks. Then a broker is skipped if its rack already has a replica
    and another rack has none. A factor above the number of brokers never ends.
    """
    brokers = len(order)
    first, distance = (partition + start) % brokers, shift + partition // brokers
    # A bit for each rack. Without racks no bit is ever missing, so no broker is skipped.
    bit = np.zeros(brokers, np.int64) if racks is None else 1 << racks
    if racks is not None:
        distance *= len(np.unique(racks))
    all_racks = np.bitwise_or.reduce(bit)
    chosen = np.full((len(partition), WIDEST), -1)
    chosen[:, 0] = order[first]
    count, covered = np.ones(len(partition), np.int64), bit[chosen[:, 0]]
    rows, tried = np.flatnonzero(factor > 1), 0
    while len(rows):
        broker = order[(first[rows] + 1 + (distance[rows] + tried) % (brokers - 1)) % brokers]
        fits = (covered[rows] & bit[broker] == 0) | (covered[rows] == all_racks)
        fits &= (chosen[rows] != broker[:, None]).all(axis=1)
        placed, here = rows[fits], broker[fits]
        chosen[placed, count[placed]] = here
        count[placed] += 1
        covered[placed] |= bit[here]
        rows, tried = rows[count[rows] < factor[rows]], tried + 1
    return np.maximum(chosen, 0)


def by_hand(rng: np.random.Generator, partitions: int, brokers: int) -> np.ndarray:
    """Random brokers for each partition, all different."""
    drawn = np.zeros((partitions, WIDEST), np.int64)
    for slot in range(min(WIDEST, brokers)):
        # Choose the n-th of the brokers that haven't been chosen yet.
        broker = rng.integers(0, brokers - slot, partitions)
        for taken in np.sort(drawn[:, :slot], axis=1).T:
            broker += broker >= taken
        drawn[:, slot] = broker
    return drawn


def neighbours(rng: np.random.Generator, sizes: np.ndarray, factors: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Place 90 % of the topics on neighbours in `order`, the others on brokers some steps apart."""
    count, brokers = int(sizes.sum()), len(order)
    rf = np.repeat(factors, sizes)
    adjacent = np.repeat(rng.random(len(sizes)) < 0.9, sizes)
    first = rng.integers(0, brokers, count)
    slots = np.arange(WIDEST)
    step = np.where(adjacent, 1, np.repeat(rng.integers(1, max(brokers // 2, 2), len(sizes)), sizes))
    position = (first[:, None] + slots * step[:, None]) % brokers
    clash = np.array([len(set(p[:n])) < n for p, n in zip(position.tolist(), rf.tolist(), strict=True)])
    position[clash] = (first[clash, None] + slots) % brokers
    return order[position]
