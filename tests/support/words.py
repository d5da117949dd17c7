"""Hand-made verdicts for tests of texts and remedies, without Spark."""

from __future__ import annotations

import json

NOWHERE = {
    **{"replication_factor": 3, "min_insync_replicas": 2, "racks": 1, "acked_racks": None, "reassign": False},
    **{"replication_factor_now": 3, "min_insync_replicas_now": 2, "min_insync_replicas_source": "topic"},
    **{"min_insync_replicas_enforced": 2, "default_min_insync_replicas": None, "smallest_led_isr": 3, "brokers": 3},
    **{"racks_there": 3, "unracked_brokers": None, "too_few_brokers": False, "too_few_racks": False, "leans": False},
    **{"replicas_down": [], "highest_min_insync_replicas": 2, "its_replication_factor": 3, "elr_at_risk": False},
    **{"elr_at_risk_in_cluster": False, "offline": 0, "inherited_least": 3, "minimum_unknown": False},
}
"""`evidence.target` of a topic that is at its target, on three brokers of three racks."""
TARGET = json.dumps({"target": NOWHERE})
"""Evidence, as the table `verdicts` has it."""
