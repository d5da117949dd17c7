"""Constants of the schedules: time limits and retries of each step, with the reasons."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import Asset, Param

from durability.resources import checkout, shipped, state_folder
from durability.steps.sources import GROUPS

POOL = "kafka_durability"
SNAPSHOTS = Asset(name="kafka_durability_snapshots", uri="kafka-durability://lake/snapshots")

# `make audit` sets this to 0, because a waiting user needs the error at once.
RETRIES = int(os.environ.get("DURABILITY_RETRIES", "2"))

DEFAULTS = {
    "owner": "kafka-platform",
    # During a night, a worker or an object store can come back. An error that a user must fix isn't retried.
    "retries": RETRIES,
    "retry_delay": timedelta(minutes=2),
    "retry_exponential_backoff": True,
    "max_retry_delay": timedelta(minutes=15),
    "execution_timeout": timedelta(minutes=30),
    # Nightly runs and pulses share the pool, so that together they never read more groups at once than it has slots.
    "pool": POOL,
}

# All groups at once with eight threads each: at most 32 clusters. `read_within` limits each cluster, and most of this timeout
# limits a group; see `durability.steps.sources` and `durability.collect.fleet`.
COLLECT = {"execution_timeout": timedelta(hours=1), "max_active_tis_per_dagrun": GROUPS}

# Seven million partitions take minutes. Twice the time of a bad night is still less than an hour.
EVALUATE: dict[str, Any] = {"execution_timeout": timedelta(hours=2), "conn_id": "spark"}

# A pulse has five minutes. The next pulse does what this one can't.
PULSE_DEFAULTS = {
    **DEFAULTS,
    "retries": min(RETRIES, 1),
    "retry_delay": timedelta(seconds=20),
    "execution_timeout": timedelta(minutes=5),
}
COLLECT_PULSE = {"max_active_tis_per_dagrun": GROUPS}
EVALUATE_PULSE: dict[str, Any] = {"execution_timeout": timedelta(minutes=10), "conn_id": "spark"}

# The first upkeep of an old lake compacts years. If it is cut short, the next one continues.
UPKEEP = {"execution_timeout": timedelta(hours=6), "conn_id": "spark"}

# Terabytes take days. It takes no slot of the pool, which audits and pulses need meanwhile.
APPLY: dict[str, Any] = {"execution_timeout": timedelta(days=5), "pool": "default_pool"}

# The client itself retries the digest. It isn't worth delaying a night.
NOTIFY = {"execution_timeout": timedelta(minutes=5), "retries": 0}


def out_folder() -> Path:
    """The deployment's folder of reports: DURABILITY_OUT, else `out`."""
    return Path(os.environ.get("DURABILITY_OUT") or (checkout() or state_folder()) / "out")


def params() -> dict[str, Param]:
    """The params of a run. The deployment's variables (docs/airflow.md) are the defaults, else the shipped files."""
    policies = shipped("policies")
    lake = os.environ.get("DURABILITY_LAKE") or str(state_folder() / "lake")
    clusters = os.environ.get("DURABILITY_CLUSTERS") or str(policies / "clusters.yaml")
    policy = os.environ.get("DURABILITY_POLICY") or str(policies / "policy.yaml")
    waivers = os.environ.get("DURABILITY_WAIVERS") or str(policies / "waivers.yaml")
    return {
        "topology": Param(
            None, type=["null", "string"], description="A topology document or a folder of them, instead of clusters"
        ),
        "policy": Param(policy, type="string", description="Tiers and selectors"),
        "waivers": Param(waivers, type="string", description="Accepted risks"),
        "clusters": Param(clusters, type="string", description="The fleet"),
        "out": Param(str(out_folder()), type="string", description="Folder of the reports"),
        "lake": Param(lake, type="string", description="Folder or s3:// address of the lake"),
    }


GIVE_UP = Param(
    None,
    type=["null", "string"],
    description="A cluster that is gone for good: closes the changes of remediate and rack_outage that weren't finished on it",
)
"""The further param of `lake_upkeep`."""


def report_params() -> dict[str, Param]:
    """The further params of a run that writes reports."""
    about = "Report only the controls that support it: soc2, iso27001, nist800-53 or dora; empty: all controls"
    return {"framework": Param(None, type=["null", "string"], description=about)}


def loss_params() -> dict[str, Param]:
    """The form of `failure_drill`: what is lost, with the pattern that the form checks, and whether to wait for it."""
    item = {"type": "string", "pattern": r"^\s*((broker|controller):[0-9]{1,10}|rack:.+)\s*$"}
    return {
        "cluster": Param(
            None, type=["null", "string"], description="The cluster; may be empty if the lake has only one"
        ),
        "snapshot": Param(
            None, type=["null", "string"], description="A snapshot's id in the lake; empty: the newest accepted one"
        ),
        "lose": Param(
            ["broker:1"],
            type="array",
            items=item,
            minItems=1,
            description="What fails, one item per line: broker:3, rack:az2, controller:101",
        ),
        "compare": Param(False, type="boolean", description="Wait for the loss, read the cluster again and compare"),
        "within": Param(
            30, type="integer", minimum=1, maximum=240, description="With compare: minutes to wait until it is lost"
        ),
    }


def change_params(what: str) -> dict[str, Param]:
    """What the forms of DAGs that change a cluster have in common. what: is rejected without an answer."""
    return {
        "cluster": Param(
            None,
            type=["null", "string"],
            description="The cluster; may be empty if the lake has only one, and nothing is changed",
        ),
        "approve_within": Param(
            12, type="integer", minimum=1, maximum=72, description=f"With apply: hours, then the {what} is rejected"
        ),
    }


def remediate_params() -> dict[str, Param]:
    """The form of `remediate`: what is planned, and whether and how it is applied."""

    def text(about: str, **more: Any) -> Param:
        return Param(None, type=["null", "string"], description=about, **more)

    common, plan_id = change_params("plan"), {"pattern": "^[0-9A-Za-z-]{1,60}$"}
    return {
        "cluster": common["cluster"],
        "plan": text("The id of a plan in the out folder; empty: make one", **plan_id),
        "undo": text("The id of a plan to take back, by a new plan", **plan_id),
        "findings": text("Ids of findings, separated by commas; empty: all open ones"),
        "control": text("Only findings of these controls, separated by commas"),
        "topic": text("Only findings of topics whose whole name matches this expression (RE2)"),
        "avoid": text("These get no new replica: broker:3,rack:az2"),
        "batch": Param(200, type="integer", minimum=1, maximum=999_999, description="Partitions per batch at most"),
        "batch_bytes": Param("500GB", type="string", description="Bytes that arrive at one broker in a batch"),
        "margin_disk": Param(
            20, type="integer", minimum=0, maximum=100, description="Percent of each broker's disks that stays free"
        ),
        "apply": Param(False, type="boolean", description="Apply the plan, after an approval"),
        "throttle": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            description="With apply: bytes per second and broker that are copied; above the write rate of what moves",
        ),
        "batch_minutes": Param(
            360,
            type="integer",
            minimum=1,
            maximum=7_200,
            description="With apply: a batch that takes longer is stopped",
        ),
        "approve_within": common["approve_within"],
    }


def approve_params() -> dict[str, Param]:
    """The form of an approval."""
    about = "Is kept in the lake with each change"
    return {"comment": Param(None, type=["null", "string"], maxLength=500, description=about)}


def outage_params() -> dict[str, Param]:
    """The form of `rack_outage`: which rack is lost, and whether topics are changed."""
    common = change_params("change")
    return {
        "cluster": common["cluster"],
        "rack": Param(
            None, type=["null", "string"], description="The lost rack; empty: look twice which ones are lost"
        ),
        "apply": Param(False, type="boolean", description="Change topics that reject writes, after an approval"),
        "give_up_elr": Param(False, type="boolean", description="The approval's form has give_up_elr ticked at first"),
        "throttle": Param(
            None,
            type=["null", "integer"],
            minimum=1,
            description="Bytes per second and broker for replicas that are added or moved back; empty: no throttle",
        ),
        "approve_within": common["approve_within"],
    }


def approve_outage_params() -> dict[str, Param]:
    """The form of the approval of `rack_outage`."""
    about = (
        "Lower min.insync.replicas although Kafka then forgets eligible leader replicas; "
        "only of topics all of whose partitions have a live leader"
    )
    return {"give_up_elr": Param(False, type="boolean", description=about), **approve_params()}
