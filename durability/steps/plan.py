"""Step plan: validates the run's files, creates the lake's tables, and lists the sources to read."""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from durability.plain import plural
from durability.steps import sources
from durability.steps.settings import NIGHTLY, SIZES_SINCE, SNAPSHOT_KINDS, Settings
from durability.steps.sources import Source
from durability.steps.summary import StepSummary

log = logging.getLogger(__name__)


def plan(
    settings: Settings, kind: str, summary: StepSummary, groups: int = sources.GROUPS, *, scheduled: bool = False
) -> list[list[Source]]:
    """The sources in at most `groups` groups (`durability.steps.sources`). Empty if the clusters file lists no cluster.

    scheduled: no user waits for this run. Then a wrong inventory file is a warning, and later a finding: other programs write
    these files, and no cluster should miss its audit for one of them.

    Tables are created here, once, because tasks that create them concurrently would fail.
    A nightly run also removes staged files of killed runs and pulses.
    Raises BadInput for a wrong policy, waivers, clusters, inventory or frameworks file. Raises Refused for an unknown
    framework. Raises Refused or Unreachable if the lake can't be used.
    """
    from durability.policy import load_policy, load_waivers, shipped_frameworks
    from durability.policy.frameworks import named

    # It is refused here, not by the report after everything else was done.
    frameworks = shipped_frameworks()
    if settings.framework:
        named(frameworks, settings.framework)
    policy = load_policy(settings.policy)
    load_waivers(settings.waivers)
    documents = settings.topology
    warnings = _check_inventories(settings, scheduled) if kind == NIGHTLY and not documents else []
    listed = sources.from_documents(documents) if documents else sources.from_clusters(settings.clusters)
    lake = settings.open_lake()
    lake.ensure()
    since = datetime.now(UTC) - SIZES_SINCE[kind]
    before = [] if documents else lake.snapshots(kind=SNAPSHOT_KINDS[kind], since=since)
    if kind == NIGHTLY:
        log.info("%s of killed runs removed", plural(lake.discard_orphans(), "staged file"))
        log.info("%s of old snapshots removed", plural(lake.documents.discard(), "document"))
    what = str(listed[0]["name"]) if documents else plural(len(listed), "cluster")
    summary.text = f"{what}, policy {policy.name}"
    if warning := lake.without_tls():
        warnings.append(warning)
    for warning in warnings:
        log.warning("%s", warning)
        summary.text += f". Warning: {warning}"
    return sources.partition_into_groups(listed, before, groups)


def _check_inventories(settings: Settings, scheduled: bool) -> list[str]:
    """The problems of the fleet's inventory files, if the run is scheduled. Else raises BadInput for the first one."""
    from durability.collect import inventory
    from durability.policy import load_inventory
    from durability.policy.inventory import MSK

    sources = load_inventory(settings.clusters)
    if not scheduled:
        inventory.check(sources)
        return []
    read = inventory.read([source for source in sources if source.kind != MSK])
    return [f"inventory {listing.source.name} can't be used: {listing.problem}" for listing in read if listing.problem]
