"""As whom the clusters of a period were read, with the ACLs that the brokers listed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from durability.evidence.nights import Period, night
from durability.lake.conditions import captured_from
from durability.lake.tables import CLUSTERS
from durability.plan.plan import ACCEPTED
from durability.report.words import joined
from durability.topology.document import LIVE

EARLIER = "not recorded: an earlier version collected the snapshot"
NAMED = 5
Row = Mapping[str, Any]


def read(lake: Any, period: Period, snapshots: Sequence[Row]) -> list[dict[str, Any]]:
    """The member `principals` of period.json: a row per cluster, and another one whenever principal or ACLs changed.

    snapshots: of the period, as `durability.evidence.nights.count` takes them. Documents have no principal.
    """
    read_ = {row["attempt_id"] for row in snapshots if row["status"] == ACCEPTED and row["source"] == LIVE}
    during = captured_from(period.since, period.until)
    rows = lake.scan(CLUSTERS, during, ("cluster", "captured_at", "attempt_id", "collection")).to_pylist()
    found: list[dict[str, Any]] = []
    for row in sorted(rows, key=lambda row: (row["cluster"], row["captured_at"])):
        if row["attempt_id"] not in read_:
            continue
        stated, day = _stated(row), night(row["captured_at"]).isoformat()
        if found and stated.items() <= found[-1].items():
            found[-1].update(last_night=day, snapshots=found[-1]["snapshots"] + 1)
        else:
            found.append({**stated, "first_night": day, "last_night": day, "snapshots": 1})
    return found


def _stated(row: Row) -> dict[str, Any]:
    collection = json.loads(row["collection"] or "{}")
    principal, acls = collection.get("principal") or {}, collection.get("acls")
    name = principal.get("name")
    return {
        "cluster": row["cluster"],
        "principal": name,
        "principal_reason": None if name else principal.get("reason") or EARLIER,
        "acls": acls,
        "acls_reason": collection.get("acls_reason") or EARLIER if acls is None else None,
    }


def unknown(found: Sequence[Row], clusters: Sequence[Row]) -> Iterator[str]:
    """What isn't known of the principals, as sentences. clusters: as in period.json."""
    recorded = {row["cluster"] for row in found}
    if missing := [
        c["cluster"] for c in clusters if c["done"] > c["done_from_documents"] and c["cluster"] not in recorded
    ]:
        yield f"{joined(missing, NAMED)}: the lake no longer has the record of the principal that read it."
    without: dict[str, list[str]] = {}
    for row in found:
        if row["acls"] is None:
            without.setdefault(row["acls_reason"], []).append(row["cluster"])
    for reason, names in sorted(without.items()):
        yield f"{joined(sorted(set(names)), NAMED)}: the ACLs of the principal aren't known ({reason})."
