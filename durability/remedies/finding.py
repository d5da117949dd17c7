"""The finding that planners read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Finding = Mapping[str, Any]
"""The fields cluster, resource_type, resource, control, tier, category, cause and partitions of a finding, and its objects
observed, required and evidence."""
