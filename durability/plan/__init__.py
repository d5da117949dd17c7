"""The plan of a run: its snapshots, its policy, and the earlier results to compare with."""

from durability.plan.build import build_plan
from durability.plan.plan import Plan, PolicyPart, SnapshotPart, StaleSnapshot

__all__ = ["Plan", "PolicyPart", "SnapshotPart", "StaleSnapshot", "build_plan"]
