"""Fewer waves by tabu search (TabuCol: Hertz and de Werra 1987), also where sets may have a wave more than once.

All nodes are placed into a fixed number of waves. Each step moves the node out of a broken rule whose move leaves the fewest
violations. It may not return for a while, so the search leaves local optima. No violation is left: the waves are valid.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from durability.restart.rules import Rules, bits

Stop = Callable[[], bool]
LOOK = 64
"""Steps between two looks at the time."""


class Tabu:
    """Searches waves by one set of rules. draw: makes equal choices, the same in each run."""

    def __init__(self, rules: Rules, draw: random.Random):
        self.rules, self.draw = rules, draw
        count = len(rules.ids)
        self.nodes = np.arange(count)
        self.apart = np.zeros((count, count), np.int32)
        for n, mask in enumerate(rules.apart):
            self.apart[n, list(bits(mask))] = 1
        members = [list(bits(mask)) for mask, _ in rules.wide]
        width = max(map(len, members), default=1)
        # A place beyond the last node fills short sets up.
        self.members = np.array([row + [count] * (width - len(row)) for row in members], np.int64).reshape(-1, width)
        self.most = np.array([most for _, most in rules.wide], np.int32)
        of: list[list[int]] = [[] for _ in range(count)]
        for number, row in enumerate(members):
            for n in row:
                of[n].append(number)
        self.sets_of = [np.array(numbers, np.int64) for numbers in of]
        self.most_of = [self.most[sets] for sets in self.sets_of]

    def search(self, waves: Sequence[int], number: int, steps: int, stop: Stop) -> list[int] | None:
        """Valid waves, `number` of them, from waves to start with; None if none are found in so many steps."""
        wave_of = self._placed(waves, number)
        violations = self._violations(wave_of, number)
        free_at = np.zeros((len(self.nodes), number), np.int64)
        now = violations[self.nodes, wave_of]
        total = fewest = int(self._total(wave_of, number))
        numbers = np.random.default_rng(self.draw.getrandbits(64))
        step = 0
        while total:
            if step >= steps or (step % LOOK == 0 and stop()):
                return None
            now = violations[self.nodes, wave_of]
            broken = np.flatnonzero(now)
            change = violations[broken] - now[broken, None]
            change = np.where((free_at[broken] <= step) | (change + total < fewest), change, 1 << 20)
            change[np.arange(len(broken)), wave_of[broken]] = 1 << 20
            best = np.flatnonzero(change == change.min())
            choice = int(best[int(numbers.integers(len(best)))])
            node, to = int(broken[choice // number]), choice % number
            gained = int(change.flat[choice])
            if gained >= 1 << 20:  # nothing may move: wait
                step += 1
                continue
            free_at[node, wave_of[node]] = step + 1 + int(numbers.integers(10)) + int(0.6 * len(broken))
            self._move(violations, wave_of, node, to)
            total += gained
            fewest = min(fewest, total)
            step += 1
        return [sum(1 << int(n) for n in np.flatnonzero(wave_of == wave)) for wave in range(number)]

    def _placed(self, waves: Sequence[int], number: int) -> np.ndarray:
        """The wave of each node: the largest waves are kept, nodes of the others are placed where they break least."""
        kept = sorted(waves, key=lambda wave: -wave.bit_count())[:number]
        kept += [0] * (number - len(kept))
        placed = 0
        for wave in kept:
            placed |= wave
        for n in self.nodes.tolist():
            if not placed >> n & 1:
                broken = [(self.rules.apart[n] & wave).bit_count() for wave in kept]
                least = min(broken)
                at = self.draw.choice([w for w, count in enumerate(broken) if count == least])
                kept[at] |= 1 << n
        wave_of = np.zeros(len(self.nodes), np.int64)
        for number_, wave in enumerate(kept):
            wave_of[list(bits(wave))] = number_
        return wave_of

    def _violations(self, wave_of: np.ndarray, number: int) -> np.ndarray:
        """By node and wave, the rules that the node breaks in that wave beside the other nodes."""
        chosen = np.zeros((len(self.nodes) + 1, number), np.int32)
        chosen[self.nodes, wave_of] = 1
        found = self.apart @ chosen[:-1]
        self.taken = np.zeros((number, len(self.most)), np.int32)
        for wave in range(number if len(self.most) else 0):
            own = chosen[self.members, wave]
            self.taken[wave] = own.sum(axis=1)
            full = self.taken[wave][:, None] - own >= self.most[:, None]
            found[:, wave] += self._counted(self.members, full)
        return found

    def _counted(self, members: np.ndarray, by: np.ndarray) -> np.ndarray:
        """The sums of `by` for each node, over the sets that have it."""
        count = len(self.nodes)
        return np.bincount(members.ravel(), by.ravel(), count + 1)[:count].astype(np.int32)

    def _total(self, wave_of: np.ndarray, number: int) -> int:
        same = wave_of[:, None] == wave_of[None, :]
        pairs = int((self.apart * same).sum()) // 2
        return pairs + int(np.maximum(self.taken - self.most, 0).sum())

    def _move(self, violations: np.ndarray, wave_of: np.ndarray, node: int, to: int) -> None:
        """Moves a node and keeps `violations` and `taken` true."""
        source = int(wave_of[node])
        violations[:, source] -= self.apart[node]
        violations[:, to] += self.apart[node]
        wave_of[node] = to
        sets = self.sets_of[node]
        if not len(sets):
            return
        for wave, by in ((source, -1), (to, 1)):
            # Only sets that become full, or no longer are, change something for their members.
            spare = self.most_of[node] - self.taken[wave][sets]
            near = sets[(spare >= min(0, by)) & (spare <= max(0, by))]
            if len(near):
                self._fill(violations, wave_of, node, wave, by, near)
            self.taken[wave][sets] += by

    def _fill(
        self, violations: np.ndarray, wave_of: np.ndarray, node: int, wave: int, by: int, sets: np.ndarray
    ) -> None:
        """Counts the sets that become full, or no longer are, for their other members, as a node joins or leaves a wave."""
        members, most = self.members[sets], self.most[sets][:, None]
        places = np.append(wave_of, -1)[members]
        others = self.taken[wave][sets][:, None] - ((places == wave) & (members != node))
        changed = (others + by >= most).astype(np.int32) - (others >= most)
        changed[members == node] = 0
        violations[:, wave] += self._counted(members, changed)
