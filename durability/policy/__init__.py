"""What is wanted of a fleet: policy, waivers, clusters, and the catalogue of controls."""

from durability.catalogue import CONTROLS, PROVIDERS, Control
from durability.policy.load import load_clusters, load_policy, load_waivers
from durability.policy.match import match_column, matches
from durability.policy.model import (
    Application,
    Cluster,
    Maintenance,
    Policy,
    Readings,
    Retention,
    Selector,
    Tier,
    Waiver,
    fingerprint,
)

__all__ = [
    "CONTROLS",
    "PROVIDERS",
    "Application",
    "Cluster",
    "Control",
    "Maintenance",
    "Policy",
    "Readings",
    "Retention",
    "Selector",
    "Tier",
    "Waiver",
    "fingerprint",
    "load_clusters",
    "load_policy",
    "load_waivers",
    "match_column",
    "matches",
]
