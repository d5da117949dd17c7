"""findings.ocsf.jsonl: the findings as events of OCSF's class Compliance Finding, for SIEMs and security lakes.

One event per line, in ASCII: readers that split lines at U+2028 keep them whole. An event is a string of parts, because most of
its members are those of its control or its run: they are encoded once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, TextIO

from durability import __version__
from durability.catalogue import CONTROLS
from durability.plan.plan import from_text
from durability.policy.frameworks import Framework
from durability.report.json_text import compact_ascii
from durability.report.words import is_resolved, waived
from durability.resources import NAME

FILE = "findings.ocsf.jsonl"
VERSION = "1.8.0"
CLASS = 2003
STATUS = {
    "PASS": (1, "Pass"),
    "FAIL": (3, "Fail"),
    "EXEMPT": (3, "Fail"),  # a waiver accepts a failure, it doesn't undo it
    "UNKNOWN": (0, "Unknown"),
    "NOT_APPLICABLE": (99, "Not applicable"),
}
"""`status_id` and `status` of the compliance check by outcome."""
SEVERITY = {"critical": (5, "Critical"), "warning": (3, "Medium"), "info": (1, "Informational")}
ACTIVITY = {"new": (1, "Create"), "persisting": (2, "Update"), "resolved": (3, "Close")}
SUPPRESSED, RESOLVED = {"status_id": 3, "status": "Suppressed"}, {"status_id": 4, "status": "Resolved"}
"""Statuses of the finding itself. Others are the consumer's to set."""


class OcsfWriter:
    """Writes findings as events, one at a time.

    run: as in findings.json.
    frameworks: whose requirements the events name.
    """

    def __init__(self, file: TextIO, run: Mapping[str, Any], frameworks: Sequence[Framework] = ()):
        self.file, self.run_id = file, run["id"]
        self.snapshots = {snapshot["cluster"]: snapshot for snapshot in run["snapshots"]}
        self.started = _milliseconds(run["started_at"])
        self.head = _opened(_class(run))
        self.parts = cache(lambda control: _parts(control, frameworks))

    def add(self, finding: Mapping[str, Any]) -> None:
        """Write a finding, an entry of findings.json."""
        compliance, info = self.parts(finding["control"])
        snapshot = self.snapshots.get(finding["cluster"], {})
        captured = snapshot.get("captured_at")
        moment = _milliseconds(captured) if captured else self.started
        state = _state(finding["outcome"], finding["change"], _severity(finding))
        uid = compact_ascii(f"{self.run_id}/{finding['id']}")
        self.file.write(
            f'{self.head}"uid":{uid}}},{state}'
            f'"compliance":{compliance}{_rest(_compliance(finding))},'
            f'"finding_info":{info}{_info(finding, moment)}}},'
            f"{_rest(self._event(finding, snapshot, moment))}\n"
        )

    def _event(self, finding: Mapping[str, Any], snapshot: Mapping[str, Any], moment: int) -> dict[str, Any]:
        """The members of an event that are its own."""
        stated = {
            "cause": finding["cause"],
            "category": finding["category"],
            "why": finding["why"],
            "snapshot_id": snapshot.get("snapshot_id"),
            "snapshot_sha256": snapshot.get("sha256"),
        }
        event = {
            "time": moment,
            "resources": [self._resource(finding)],
            "evidences": [{"name": "observed", "data": finding["observed"]}],
            "unmapped": {name: value for name, value in stated.items() if value is not None},
        }
        if finding["message"]:
            event["message"] = finding["message"]
        if finding["remediation"]:
            event["remediation"] = {"desc": finding["remediation"]}
        if finding["outcome"] == "EXEMPT" and finding["waiver"]:
            event["comment"] = _waiver(finding["waiver"])
        return event

    def _resource(self, finding: Mapping[str, Any]) -> dict[str, Any]:
        cluster, kind, name = finding["cluster"], finding["resource_type"], finding["resource"] or finding["cluster"]
        resource = {"uid": f"{cluster}/{kind}/{name}", "name": name, "type": kind, "namespace": cluster}
        if team := finding["team"]:
            resource["owner"] = {"name": team, "type_id": 99, "type": "Team"}
        if finding["tier"]:
            resource["criticality"] = finding["tier"]
        if finding["partitions"]:
            resource["data"] = {"partitions": finding["partitions"]}
        return resource


def _class(run: Mapping[str, Any]) -> dict[str, Any]:
    """The members that are the same in all events of a run. `metadata` is the last one, and each event adds to it."""
    product = {"name": "Kafka Durability Audit", "uid": NAME, "vendor_name": "Kafka Durability Audit"}
    tags = {"policy": run["policy"]["name"], "policy_sha256": run["policy"]["sha256"], "verified": run["verified"]}
    metadata = {
        "version": VERSION,
        "product": {**product, "version": __version__},
        "correlation_uid": run["id"],
        "tags": [{"name": name, "value": _as_text(value)} for name, value in tags.items()],
    }
    return {
        "class_uid": CLASS,
        "class_name": "Compliance Finding",
        "category_uid": 2,
        "category_name": "Findings",
        "metadata": metadata,
    }


def _parts(control_id: str, frameworks: Sequence[Framework]) -> tuple[str, str]:
    """The members of `compliance` and of `finding_info` that a control decides, as open JSON objects."""
    control = CONTROLS.get(control_id)
    title = control.title if control else control_id
    supported = [(framework, r) for framework in frameworks for r in framework.supported_by(control_id)]
    compliance: dict[str, Any] = {"control": control_id, "desc": control.means if control else control_id}
    if supported:
        compliance["standards"] = list(dict.fromkeys(framework.title for framework, _ in supported))
        compliance["requirements"] = [f"{framework.title} {r.id}" for framework, r in supported]
        # No status: a finding supports a requirement, and never decides it.
        compliance["checks"] = [
            {
                "uid": r.id,
                "name": r.title,
                "standards": [framework.title],
                "desc": f"strength: {r.strength}",
            }
            for framework, r in supported
        ]
    analytic = {"uid": control_id, "name": title, "type_id": 1, "type": "Rule"}
    return _opened(compliance, 1), _opened({"analytic": analytic}, 1)


@lru_cache(maxsize=256)
def _state(outcome: str, change: str | None, severity: str) -> str:
    """The members that say what became of a finding and how severe it is, as a part of a JSON object."""
    activity, activity_name = ACTIVITY.get(change or "", (0, "Unknown"))
    resolved = is_resolved({"outcome": outcome, "change": change})
    if change == "resolved" and not resolved:  # a waived failure persists, as EXEMPT
        activity, activity_name = ACTIVITY["persisting"]
    severity_id, severity_name = SEVERITY.get(severity, (0, "Unknown"))
    members = {
        "activity_id": activity,
        "activity_name": activity_name,
        "type_uid": CLASS * 100 + activity,
        "type_name": f"Compliance Finding: {activity_name}",
        "severity_id": severity_id,
        "severity": severity_name,
        **(SUPPRESSED if outcome == "EXEMPT" else RESOLVED if resolved else {}),
    }
    return _opened(members, 1)[1:]


def _compliance(finding: Mapping[str, Any]) -> dict[str, Any]:
    outcome = finding["outcome"]
    status, name = STATUS[outcome]
    details = [finding["message"] or f"{outcome}: no reason is recorded"]
    if outcome == "EXEMPT" and finding["waiver"]:
        details.append(_waiver(finding["waiver"]))
    elif is_resolved(finding) and finding["why"]:
        details.insert(0, finding["why"])
    said: dict[str, Any] = {"status_id": status, "status": name, "status_code": outcome, "status_details": details}
    if finding["required"]:
        said["control_parameters"] = [
            {"name": key, "value": _as_text(value)} for key, value in finding["required"].items()
        ]
    return said


def _info(finding: Mapping[str, Any], moment: int) -> str:
    """Members of `finding_info`. Strings are encoded one by one: an encoder for an object costs more than all of them."""
    control = CONTROLS.get(finding["control"])
    resource = finding["resource"] or finding["cluster"]
    title = f"{control.title if control else finding['control']}: {finding['resource_type']} {resource}"
    seen = "" if is_resolved(finding) else f',"last_seen_time":{moment}'
    if finding["since"]:
        seen += f',"first_seen_time":{_milliseconds(finding["since"])}'
    return f'"uid":{compact_ascii(finding["id"])},"title":{compact_ascii(title)}{seen}'


def _severity(finding: Mapping[str, Any]) -> str:
    """The severity of the failure: the present, the former or the possible one. The outcome doesn't decide it."""
    control = CONTROLS.get(finding["control"])
    possible = control.severity_of(finding["category"]) if control else ""
    former = finding["previous_severity"] if is_resolved(finding) else None
    return finding["severity"] or former or possible


def _waiver(waiver: Mapping[str, Any]) -> str:
    stated = {"approved by": waiver["approved_by"], "ticket": waiver["ticket"]}
    more = ", ".join(f"{name} {value}" for name, value in stated.items() if value)
    return f"{waived(waiver)} ({more})" if more else waived(waiver)


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else compact_ascii(value)


def _opened(value: Mapping[str, Any], levels: int = 2) -> str:
    """JSON without its last `levels` brackets, and with a comma: further members can follow.

    >>> _opened({"a": {"b": 1}}), _opened({"b": 1}, 1)
    ('{"a":{"b":1,', '{"b":1,')
    """
    return compact_ascii(value)[:-levels] + ","


def _rest(members: Mapping[str, Any]) -> str:
    """The members and the end of an object that `_opened` began."""
    return compact_ascii(members)[1:]


@lru_cache(maxsize=4096)
def _milliseconds(moment: str) -> int:
    """Since 1970. Findings share a few moments.

    >>> _milliseconds("2026-11-21T02:00:00Z")
    1795226400000
    """
    return round(from_text(moment).timestamp() * 1000)
