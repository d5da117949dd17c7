"""Planners: functions that turn a finding into its remedy, an ordered list of steps (`durability.remedies.steps`)."""

from __future__ import annotations

from collections.abc import Callable

from durability.remedies import elr, losses, min_racks, racks, replicas, settings, target
from durability.remedies.finding import Finding
from durability.remedies.steps import Remedy

PLANNERS: dict[str, Callable[[Finding], Remedy]] = {
    "acked": target.acked,
    "bring-back": replicas.of_cause,
    "broker-defaults": settings.defaults,
    "configs-unread": settings.configs_unread,
    "eligible-leader-replicas": elr.switch_on,
    "features-unread": settings.features_unread,
    "health": replicas.health,
    "isr-racks": replicas.isr_racks,
    "log-dirs": settings.log_dirs,
    "losses": losses.remedy,
    "losses-unplaced": losses.unplaced,
    "place": target.place,
    "policy-feasible": racks.feasible,
    "racks-valid": min_racks.valid,
    "reassignment-leftovers": settings.leftovers,
    "reassignments-unread": settings.reassignments_unread,
    "set-racks": racks.of_brokers,
    "target": target.remedy,
    "too-many": target.too_many,
    "unclean-election-off": settings.unclean_off,
    "unclean-election-stated": settings.unclean_stated,
}
"""Planners by their name in a control's YAML file."""

__all__ = ["PLANNERS", "Finding"]
