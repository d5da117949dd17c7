"""Whose throttles of replication brokers have, as conditions of bash.

kafka-reassign-partitions replaces the throttles of the brokers that its plan names, and deletes them at the end (since 2.6).
"""

from __future__ import annotations

from durability.remedies.cluster import ClusterFacts
from durability.remedies.commands import Show, lines

RATE = 50_000_000
"""Bytes per second of the throttles that scripts set. Without one, a reassignment competes with producers and consumers.

Throttles with this rate are taken for those that an earlier run left.
"""
_ANY = "(replication[.]throttled[.]rate=|log[.]dirs[.]io[.]max)[^[:space:],}]*"
FOREIGN = "The tool would delete these throttles. Delete those that a killed run left, and let the reassignments of others end."
KEPT = "Throttles stay that this script does not delete, because others may need them. Delete those of a run that was killed."
STAYED = "Throttles stay while another reassignment runs. Run this again once it has ended."


def read(facts: ClusterFacts) -> list[str]:
    """Puts the throttles of brokers into a variable, which `none` and `left` read."""
    return [f"throttles=$({shell})" for shell in lines(Show("brokers"), facts)]


def none() -> str:
    """No broker has a throttle."""
    return f"{{ grep -qE '{_ANY}' <<< \"$throttles\"; [[ $? = 1 ]]; }}"


def left() -> str:
    """Brokers have throttles, and each has the rate that scripts set. Others are printed, such as a cluster-wide default."""
    others = f"grep -oE '{_ANY}' <<< \"$throttles\" | grep -vE '[.]rate={RATE}$'"
    of_all = f"{{ grep -E 'DEFAULT_BROKER_CONFIG:[a-z.]*{_ANY}' <<< \"$throttles\"; [[ $? = 1 ]]; }}"
    return f"{{ {others}; [[ ${{PIPESTATUS[*]}} = '0 1' ]] && {of_all}; }}"
