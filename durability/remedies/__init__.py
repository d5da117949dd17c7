"""What fixes a finding: a topic's target, and the commands that lead there safely.

A planner takes a finding (`durability.remedies.finding`) and gives a remedy: a sentence of advice, or a script.
"""

from __future__ import annotations

from collections.abc import Callable

from durability.remedies import elr, min_racks, racks, replicas, settings, target
from durability.remedies.finding import Finding

PLANNERS: dict[str, Callable[[Finding], str]] = {
    "acked": target.acked,
    "bring-back": replicas.of_cause,
    "broker-defaults": settings.defaults,
    "eligible-leader-replicas": elr.switch_on,
    "health": replicas.health,
    "isr-racks": replicas.isr_racks,
    "log-dirs": settings.log_dirs,
    "place": target.place,
    "policy-feasible": racks.feasible,
    "racks-valid": min_racks.valid,
    "reassignment-leftovers": settings.leftovers,
    "set-racks": racks.of_brokers,
    "target": target.remedy,
    "unclean-election-off": settings.unclean_off,
    "unclean-election-stated": settings.unclean_stated,
}
"""By the name that a control's YAML file has."""

__all__ = ["PLANNERS", "Finding"]
