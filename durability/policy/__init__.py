"""The policy files: what is required of a fleet, which risks are waived, the fleet's clusters, and frameworks."""

from durability.catalogue import CONTROLS, PROVIDERS
from durability.policy.frameworks import Framework, load_frameworks, shipped_frameworks
from durability.policy.inventory import fleet_name, load_inventory
from durability.policy.load import load_clusters, load_policy, load_waivers
from durability.policy.match import match_column, matches
from durability.policy.model import Cluster, Retention, fingerprint

__all__ = [
    "CONTROLS",
    "PROVIDERS",
    "Cluster",
    "Framework",
    "Retention",
    "fingerprint",
    "fleet_name",
    "load_clusters",
    "load_frameworks",
    "load_inventory",
    "load_policy",
    "load_waivers",
    "match_column",
    "matches",
    "shipped_frameworks",
]
