"""What planners read: a finding's fields with `observed`, `required` and `evidence` as objects."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Finding = Mapping[str, Any]
"""Keys: cluster, resource_type, resource, control, tier, category, cause, partitions, observed, required, evidence."""
