"""Applies a plan to a cluster step by step, and takes back what a run left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from durability.apply.cluster import Cluster
from durability.apply.plan_files import PlanFiles
from durability.apply.record import Changes


@dataclass(frozen=True)
class Options:
    """throttle: bytes per second. stall_seconds: without progress. batch_seconds: longest duration of a step."""

    throttle: int
    stall_seconds: int = 600
    batch_seconds: int = 6 * 3600
    poll_seconds: float = 30.0


@dataclass(frozen=True)
class Outcome:
    """done: ids of complete steps. stopped: the step at which it stopped, and why; None if all are complete.

    left: sentences about what was left: values that others changed, and what could not be taken back.
    """

    done: list[str] = field(default_factory=list)
    stopped: str | None = None
    why: str | None = None
    left: list[str] = field(default_factory=list)


def apply(
    plan: PlanFiles, cluster: Cluster, changes: Changes, options: Options, report: Callable[[str], None]
) -> Outcome:
    """Applies the plan, or what is left of it. It claims the cluster, and releases it at the end."""
    raise NotImplementedError


def restore(cluster: Cluster, changes: Changes) -> list[str]:
    """Takes back what is left of a run: moves in flight, values on the way, throttles. Returns sentences about what stays."""
    raise NotImplementedError
