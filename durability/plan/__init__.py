"""What one run is: which snapshots it judges, by which policy, and what it compares them with."""

from durability.plan.build import build_plan
from durability.plan.plan import Plan, PolicyPart, SnapshotPart, StaleSnapshot

__all__ = ["Plan", "PolicyPart", "SnapshotPart", "StaleSnapshot", "build_plan"]
