"""oscal/: what the audit checks, and what it found, in NIST's OSCAL 1.2.1, for GRC tools.

A component definition (what supports which requirement), an assessment plan, assessment results, and a plan of action and
milestones. UUIDs are made of ids that stay the same from run to run, so the same finding keeps its UUID.

OSCAL's texts are Markdown, so text from clusters is escaped. OSCAL calls a requirement satisfied or not. The audit only shows
that one is not: without a failure it states observations, and no finding.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

import pyarrow as pa

from durability import __version__
from durability.plain import plural
from durability.policy.frameworks import Framework, FrameworkRequirement
from durability.report.data import results
from durability.report.data.causes import Cause, Causes
from durability.report.formats.markdown import block, escaped
from durability.report.words import cause_title, is_resolved, is_script, visible, waived
from durability.resources import NAME

FOLDER = "oscal"
COMPONENT, PLAN, RESULTS, POAM = (
    f"{FOLDER}/{name}.json" for name in ("component-definition", "assessment-plan", "assessment-results", "poam")
)
FILES = (COMPONENT, PLAN, RESULTS)
"""The files of every run. POAM is written if something fails: the format doesn't allow an empty one."""
VERSION = "1.2.1"
OBSERVATIONS, ITEMS = 10_000, 1_000
"""The most findings that are observations of their own, and the most items of the plan of action."""
TEXT, FIXES = 4_000, 3
OPEN = ("FAIL", "UNKNOWN", "EXEMPT")
COVERS = ("control", "cluster", "resource")
"""The expressions of a waiver that say what it covers."""
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, f"urn:{NAME}")

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


class Oscal:
    """Collects findings, the worst first, and writes the documents at the end.

    run: as in findings.json. frameworks: whose requirements the controls support.
    """

    def __init__(self, run: Mapping[str, Any], frameworks: Sequence[Framework]):
        self.run, self.frameworks = run, frameworks
        self.collected = {s["cluster"]: s["captured_at"] or run["started_at"] for s in run["snapshots"]}
        self.observations: list[dict[str, Any]] = []
        self.of_control: defaultdict[str, list[str]] = defaultdict(list)
        self.outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self.left: Counter[tuple[str, str, str]] = Counter()
        self.others: dict[str, None] = {}

    def add(self, finding: Mapping[str, Any]) -> None:
        """Collect a finding, an entry of findings.json."""
        cluster, control, outcome = finding["cluster"], finding["control"], finding["outcome"]
        if is_resolved(finding) or outcome not in OPEN:
            return
        self.outcomes[control][outcome] += 1
        if len(self.observations) >= OBSERVATIONS:
            self.left[cluster, control, outcome] += 1
            return
        resource = finding["resource"] or cluster
        told = escaped(finding["message"] or "no message", TEXT)
        if outcome == "EXEMPT" and finding["waiver"]:
            told += f" {escaped(waived(finding['waiver']), TEXT)}"
        stated = {
            "severity": finding["severity"],
            "resource-type": finding["resource_type"],
            "resource": resource,
            "cause": finding["cause"],
            "finding-id": finding["id"],
            "since": finding["since"],
        }
        title = f"{control}: {finding['resource_type']} {resource}"
        self._observe(("finding", finding["id"]), title, told, (cluster, control, outcome), stated)

    def _observe(
        self,
        identity: tuple[str, ...],
        title: str,
        told: str,
        about: tuple[str, str, str],
        stated: Mapping[str, str | None],
    ) -> None:
        """Add an observation. about: cluster, control and outcome. stated: further properties."""
        cluster, control, outcome = about
        if cluster not in self.collected:
            self.others[cluster] = None
        identifier = uid("observation", *identity)
        self.of_control[control].append(identifier)
        subject = {"subject-uuid": uid("cluster", cluster), "type": "inventory-item", "title": _title(cluster)}
        self.observations.append(
            {
                "uuid": identifier,
                "title": _title(title),
                "description": told,
                "props": _props({"control": control, "outcome": outcome, **stated}),
                "methods": ["TEST"],
                "types": ["control-objective"],
                "origins": [{"actors": [{"type": "tool", "actor-uuid": TOOL["uuid"]}]}],
                "subjects": [subject],
                "relevant-evidence": [{"href": "../findings.json", "description": "All findings of the run"}],
                "collected": self.collected.get(cluster, self.run["started_at"]),
            }
        )

    def write(
        self, files: Mapping[str, TextIO], counted: pa.Table, causes: Causes, waivers: Iterable[Mapping[str, Any]]
    ) -> None:
        """Write the documents.

        files: by name, of FILES, and of POAM if anything fails or is exempt. counted: every finding (columns `results.COUNTED`).
        waivers: the run's.
        """
        for (cluster, control, outcome), number in sorted(self.left.items()):
            text = f"{plural(number, 'more finding')} with outcome {outcome} in findings.json"
            self._observe(
                ("more", cluster, control, outcome), f"{control}: {text}", text, (cluster, control, outcome), {}
            )
        for cluster, control, number in results.passed(counted):
            text = f"{plural(number, 'verdict')} passed"
            self._observe(("passed", cluster, control), f"{control}: {text}", text, (cluster, control, "PASS"), {})
        documents = {COMPONENT: self._definition, PLAN: self._plan, RESULTS: self._results}
        for name, document in documents.items():
            files[name].write(_compact(document()) + "\n")
        if POAM in files:
            files[POAM].write(_compact(_plan_of_action(self.run, causes, waivers)) + "\n")

    def _definition(self) -> dict[str, Any]:
        implementations = [_implementation(framework) for framework in self.frameworks]
        component = {**{k: v for k, v in TOOL.items() if k != "status"}, "control-implementations": implementations}
        content = {"components": [component], "back-matter": {"resources": [_source(f) for f in self.frameworks]}}
        return {
            "component-definition": {**_head("component-definition", self.run, "What the audit supports"), **content}
        }

    def _plan(self) -> dict[str, Any]:
        tasks = [
            {
                "uuid": uid("task", "audit"),
                "type": "action",
                "title": "Read each cluster, and compare it with the policy",
                "description": escaped(
                    f"Policy {self.run['policy']['name']}, SHA-256 {self.run['policy']['sha256']}", TEXT
                ),
            }
        ]
        platform = {
            "uuid": uid("platform"),
            "title": TOOL["title"],
            "uses-components": [{"component-uuid": TOOL["uuid"]}],
        }
        resource = {
            "uuid": uid("ssp"),
            "title": "System security plan",
            "description": "The plan of the assessed organization. The audit doesn't read it.",
        }
        return {
            "assessment-plan": {
                **_head("assessment-plan", self.run, "Plan of the Kafka durability audit"),
                "import-ssp": {"href": f"#{resource['uuid']}"},
                "local-definitions": {"components": [TOOL], "inventory-items": self._clusters()},
                "reviewed-controls": self._reviewed(),
                "assessment-subjects": [{"type": "inventory-item", "include-all": {}}],
                "assessment-assets": {"assessment-platforms": [platform]},
                "tasks": tasks,
                "back-matter": {"resources": [resource]},
            }
        }

    def _results(self) -> dict[str, Any]:
        result = {
            "uuid": uid("result", self.run["id"]),
            "title": _title(f"Run {self.run['id']}"),
            "description": "Verified: Great Expectations computed the scalar controls again, and agrees."
            if self.run["verified"]
            else "Not verified: the engines disagree.",
            "start": self.run["started_at"],
            "props": _props({"policy": self.run["policy"]["name"], "policy-sha256": self.run["policy"]["sha256"]}),
            "local-definitions": {"components": [TOOL], "inventory-items": self._clusters()},
            "reviewed-controls": self._reviewed(),
            **_some("observations", self.observations),
            **_some("findings", list(self._findings())),
        }
        return {
            "assessment-results": {
                **_head("assessment-results", self.run, "Results of the Kafka durability audit"),
                "import-ap": {"href": PLAN.removeprefix(f"{FOLDER}/")},
                "results": [result],
            }
        }

    def _findings(self) -> Iterator[dict[str, Any]]:
        """The requirements that something speaks against."""
        for framework in self.frameworks:
            for requirement in framework.requirements:
                outcomes = sum((self.outcomes[control] for control in requirement.controls), Counter[str]())
                if not outcomes:
                    continue
                counts = ", ".join(f"{outcomes[name]:,} {name}" for name in OPEN if outcomes[name])
                related = [one for control in requirement.controls for one in self.of_control[control]]
                yield {
                    "uuid": uid("requirement", framework.id, requirement.id),
                    "title": _title(f"{framework.title} {requirement.id}: {requirement.title}"),
                    "description": f"{counts}. {_limits(requirement)}",
                    "target": {
                        "type": "statement-id",
                        "target-id": f"{token(framework, requirement)}_smt",
                        "status": {"state": "not-satisfied", "reason": "fail" if outcomes["FAIL"] else "other"},
                    },
                    "related-observations": [{"observation-uuid": one} for one in related],
                }

    def _clusters(self) -> list[dict[str, Any]]:
        return [
            {
                "uuid": uid("cluster", s["cluster"]),
                "description": escaped(f"Kafka cluster {s['cluster']}", TEXT),
                "props": _props({"status": s["status"], "snapshot": s["snapshot_id"], "snapshot-sha256": s["sha256"]}),
            }
            for s in [*self.run["snapshots"], *map(_not_audited, self.others)]
        ] or [{"uuid": uid("cluster"), "description": "No cluster was evaluated"}]

    def _reviewed(self) -> dict[str, Any]:
        return {
            "control-selections": [
                {
                    "description": escaped(framework.title, TEXT),
                    "include-controls": [
                        {"control-id": token(framework, r)} for r in framework.requirements if r.controls
                    ],
                }
                for framework in self.frameworks
                if framework.controls
            ]
        }


def _not_audited(cluster: str) -> dict[str, Any]:
    """An inventory, or a cluster in one, which has no snapshot."""
    return {"cluster": cluster, "status": "not audited", "snapshot_id": None, "sha256": None}


def _plan_of_action(run: Mapping[str, Any], causes: Causes, waivers: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The plan of action and milestones: an item per cause, with its fixes."""
    found = [(outcome, cause) for outcome in ("FAIL", "EXEMPT") for cause in causes.ranked(outcome)]
    covered = {waiver["index"]: tuple(waiver.get(name) or "" for name in COVERS) for waiver in waivers}
    same: Counter[tuple[str, ...]] = Counter()
    risks = []
    for outcome, cause in found[:ITEMS]:
        # What a waiver covers stays the same when its line in the file moves. Waivers that cover the same are numbered.
        covers = covered[cause.waiver["index"]] if cause.waiver else ("",)
        identity = (outcome, cause.cluster, cause.cause or "", *covers)
        same[identity] += 1
        risks.append(_risk(cause, outcome, identity if same[identity] == 1 else (*identity, str(same[identity]))))
    items = [
        {
            "uuid": uid("item", risk["uuid"]),
            "title": risk["title"],
            "description": risk["description"],
            "links": [{"href": RESULTS.removeprefix(f"{FOLDER}/"), "rel": "reference"}],
            "related-risks": [{"risk-uuid": risk["uuid"]}],
        }
        for risk in risks
    ]
    left = f"{plural(len(found) - len(items), 'more cause')} in report.html. " if len(found) > len(items) else ""
    head = _head(
        "poam", run, "Causes of failures, and what fixes them", f"{left}Milestones and dates are the owner's to add."
    )
    system = {"identifier-type": "https://ietf.org/rfc/rfc4122", "id": uid("system")}
    return {"plan-of-action-and-milestones": {**head, "system-id": system, "risks": risks, "poam-items": items}}


def _risk(cause: Cause, outcome: str, identity: Sequence[str]) -> dict[str, Any]:
    waiver = cause.waiver
    severities = f" ({cause.severity_counts})" if cause.severity_counts else ""
    risk: dict[str, Any] = {
        "uuid": uid("risk", *identity),
        "title": _title(f"{cause_title(cause.cause)} in {cause.cluster}"),
        "description": f"{cause.extent}{severities}",
        "statement": escaped(cause.example[1], TEXT) if cause.example else "no message",
        "props": _props(
            {"cluster": cause.cluster, "cause": cause.cause, "severity": cause.severity, "since": cause.since}
        ),
        "status": "deviation-approved" if outcome == "EXEMPT" else "open",
    }
    if waiver:
        risk["description"] += f". {escaped(waived(waiver), TEXT)}"
        risk["deadline"] = f"{waiver['expires']}T23:59:59Z"
    fixes = [
        {
            "uuid": uid("fix", *identity, text),
            "lifecycle": "recommendation",
            "title": f"Fixes {plural(fixed, 'finding')}",
            "description": block(text, "bash") if is_script(text) else escaped(text, TEXT),
        }
        for text, fixed in cause.first_remediations(FIXES)
    ]
    return risk | _some("remediations", fixes)


def _implementation(framework: Framework) -> dict[str, Any]:
    return {
        "uuid": uid("implementation", framework.id),
        "source": f"#{uid('source', framework.id)}",
        "description": escaped(
            f"Requirements of {framework.title} that findings support. Support is no compliance.", TEXT
        ),
        "implemented-requirements": [
            {
                "uuid": uid("implemented", framework.id, requirement.id),
                "control-id": token(framework, requirement),
                "description": f"{escaped(requirement.shows, TEXT)} {_limits(requirement)}",
                "props": [*_props({"strength": requirement.strength}), *_several("control", requirement.controls)],
            }
            for requirement in framework.requirements
        ],
    }


def _source(framework: Framework) -> dict[str, Any]:
    title = _title(framework.title)
    return {"uuid": uid("source", framework.id), "title": title, "citation": {"text": escaped(framework.title, TEXT)}}


def _limits(requirement: FrameworkRequirement) -> str:
    return f"Strength: {requirement.strength}. Not shown: {escaped(requirement.not_shown, TEXT)}"


def token(framework: Framework, requirement: FrameworkRequirement) -> str:
    """The id of a requirement as OSCAL's catalogs write them: SC-36(2) is sc-36.2.

    >>> of = lambda id: token(Framework("dora", "DORA", ()), FrameworkRequirement(id, "", (), "direct", "", ""))
    >>> of("SC-36(2)"), of("A1.2"), of("9(3)(c)")
    ('sc-36.2', 'a1.2', 'dora-9.3.c')
    """
    name = re.sub(r"[^a-z0-9.-]+", "-", re.sub(r"\((\w+)\)", r".\1", requirement.id.lower())).strip("-")
    name = name if re.match("[a-z]", name) else f"{framework.id}-{name}"
    return name if re.match("[a-z]", name) else f"_{name}"


def uid(*identity: str) -> str:
    """The UUID (version 5) of what these words identify."""
    return str(uuid.uuid5(NAMESPACE, _compact(identity)))


TOOL = {
    "uuid": uid("tool"),
    "type": "software",
    "title": "Kafka Durability Audit",
    "description": "Compares the durability of Kafka clusters with a policy. It only reads.",
    "props": [{"name": "version", "value": __version__}],
    "status": {"state": "operational"},
}


def _head(kind: str, run: Mapping[str, Any], title: str, remarks: str = "") -> dict[str, Any]:
    """The UUID and the metadata of a document. Each run has documents of its own."""
    metadata = {"title": title, "last-modified": run["started_at"], "version": __version__, "oscal-version": VERSION}
    return {"uuid": uid(kind, run["id"]), "metadata": metadata | ({"remarks": remarks} if remarks else {})}


def _props(stated: Mapping[str, str | None]) -> list[dict[str, str]]:
    """Properties of our own. Those without a value are left out."""
    return [prop for name, value in stated.items() for prop in _several(name, [value or ""])]


def _several(name: str, values: Iterable[str]) -> list[dict[str, str]]:
    lines = (" ".join(str(visible(value)).split()) for value in values)
    return [{"name": name, "ns": f"urn:{NAME}", "value": line} for line in lines if line]


def _title(text: str) -> str:
    return escaped(text, TEXT) or "-"


def _some(name: str, values: list[Any]) -> dict[str, list[Any]]:
    """A member of a list that must not be empty."""
    return {name: values} if values else {}
