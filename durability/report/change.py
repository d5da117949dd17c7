"""A plan's folder, OUT/plan/<cluster>: plan.json, its steps, their undo, and the topologies before and after."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from durability.atomic import unfinished
from durability.errors import Refused
from durability.plain import plain, plural
from durability.remedies.change import scripts
from durability.remedies.change.model import Change
from durability.remedies.change.proof import Proof
from durability.remedies.cluster import ClusterFacts
from durability.remedies.plans import folder
from durability.report.html import change as html
from durability.report.words import readable

FORMAT, BEFORE = "durability-plan-of-change/1", "durability-plan-before/1"
FOLDER, EARLIER = "plan", "earlier+plans"
"""In OUT: the folder of plans, and in it the one of replaced plans. No folder of a cluster has a plus."""
PLAN, BEFORE_PLAN, README, PAGE = "plan.json", "before.json", "README.txt", "plan.html"
SHOWN = 12


@dataclass(frozen=True)
class Made:
    """A plan. head: members of plan.json that state what it was made from, and for what. before: content of before.json.
    found: the first targeted findings, each with `message`, for the page."""

    head: Mapping[str, Any]
    change: Change
    proof: Proof
    before: Mapping[str, Any]
    left_out: tuple[tuple[str | None, str], ...] = ()
    found: tuple[Mapping[str, Any], ...] = ()


def write(made: Made, facts: ClusterFacts, out: Path) -> Path:
    """Writes the plan's folder and returns it. It appears whole, or not at all. An earlier plan is moved aside, unchanged.

    A plan that isn't offered has no scripts.
    """
    texts = dict(scripts.data_files(made.change.steps))
    if made.proof.offered:
        texts |= dict(scripts.script_files(made.change.steps, facts, made.before["topic_ids"]))
    texts[BEFORE_PLAN] = _json(made.before)
    texts["planned.json"] = _json(made.change.planned)
    content = document(made)
    texts[README] = readme(content, facts)
    texts[PAGE] = "".join(html.render(content, made.change.steps, made.found, introduction(content)))
    content["files"] = {path: _sha256(text) for path, text in sorted(texts.items())}
    content["sha256"] = _own_sha256(content)
    texts[PLAN] = _json(content)
    place = out / FOLDER / folder(made.head["cluster"])
    with unfinished(out) as temporary:
        for path, text in texts.items():
            file = temporary / "plan" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        place.parent.mkdir(exist_ok=True)
        if place.exists():
            _move_aside(place)
        (temporary / "plan").rename(place)
    return place


def _move_aside(place: Path) -> None:
    try:
        name = str(json.loads((place / PLAN).read_text(encoding="utf-8"))["id"])
    except (OSError, ValueError, KeyError, TypeError):
        name = "unknown"
    earlier = place.parent / EARLIER / place.name
    earlier.mkdir(parents=True, exist_ok=True)
    aside, number = earlier / folder(name), 1
    while aside.exists():
        aside, number = earlier / f"{folder(name)}.{number}", number + 1
    place.rename(aside)


def document(made: Made) -> dict[str, Any]:
    """The content of plan.json, without the hashes of its files."""
    proof = made.proof
    return {
        "format": FORMAT,
        **made.head,
        "steps": [scripts.as_dict(step, proof.offered) for step in made.change.steps],
        "proof": {
            "offered": proof.offered,
            "cross_checked": proof.cross_checked,
            "mends": list(proof.mends),
            "improves": list(proof.improves),
            "remains": [{"id": id, "why": plain(why)} for id, why in proof.remains],
            "new": [
                {name: finding[name] for name in ("id", "control", "resource", "outcome", "severity")}
                for finding in proof.new
            ],
            "harms": list(proof.harms),
        },
        "left_out": [{"topic": topic, "why": plain(why)} for topic, why in made.left_out],
    }


def read(place: Path) -> dict[str, Any]:
    """The content of the plan in a folder. Refused if it is none, or if a file was edited after the plan was made."""
    try:
        content = json.loads((place / PLAN).read_text(encoding="utf-8"))
        if content["format"] != FORMAT:
            raise Refused(f"{place / PLAN}: expected a plan with format {FORMAT}")
        listed, own = dict(content["files"]), content["sha256"]
    except OSError as error:
        raise Refused(f"{place / PLAN}: {error.strerror}; name the folder of a plan") from error
    except (ValueError, KeyError, TypeError) as error:
        raise Refused(f"{place / PLAN}: not a plan of change; make one with kafka-durability plan") from error
    if _own_sha256(content) != own:
        raise Refused(f"{place / PLAN}: it was edited after the plan was made; make a new plan")
    for path, sha256 in listed.items():
        try:
            same = _sha256((place / path).read_text(encoding="utf-8")) == sha256
        except (OSError, UnicodeDecodeError):
            same = False
        if not same:
            raise Refused(f"{place / path}: it was edited or removed after the plan was made; make a new plan")
    more = sorted(str(file.relative_to(place)) for file in place.rglob("*") if file.is_file())
    if added := [path for path in more if path not in listed and path != PLAN]:
        raise Refused(f"{place / added[0]}: it isn't of the plan; remove it, or make a new plan")
    return dict(content)


def _own_sha256(content: Mapping[str, Any]) -> str:
    """Of plan.json without this hash, as canonical JSON."""
    stated = {name: value for name, value in content.items() if name != "sha256"}
    return _sha256(json.dumps(stated, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _json(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def introduction(content: Mapping[str, Any]) -> list[str]:
    """What the plan is, in a few sentences."""
    said = [
        f"Plan {content['id']} for cluster {content['cluster']}, by the snapshot of {readable(content['captured_at'])}.",
        *_old(content),
        _aim(content),
        *([_copied(content["moved"])] if content["steps"] else []),
    ]
    if not content["proof"]["offered"]:
        said.append(f"It is not offered, so it has no scripts: {_refusal(content)}.")
    return said


FREE_BYTES_UNKNOWN = (
    "Before Kafka 3.3, brokers don't state the free bytes of their disks: see first, with df on each broker that gets"
    " replicas, that they have room. The DAG remediate applies no such plan."
)
"""KIP-827. The planner then counts any number of bytes as room."""


def readme(content: Mapping[str, Any], facts: ClusterFacts) -> str:
    """What the plan does, in about ten lines."""
    lines = introduction(content)
    if not content["proof"]["offered"]:
        return _lines(lines)
    server = (
        "ZOOKEEPER or BOOTSTRAP (the cluster's address)" if facts.before(2, 6) else "BOOTSTRAP (the cluster's address)"
    )
    lines += [
        f"Export {server}, and run the scripts of steps/ with bash, in their order, in this folder:",
        f"  {plural(len(content['steps']), 'step')}, from {content['steps'][0]['id']} to {content['steps'][-1]['id']}.",
        "Edit no script: an edited plan is refused. For TLS, SASL or tools named .sh, define functions first (docs/plan.md).",
        "Each script ends with status 0 when its step is complete. Otherwise see what it printed, and run it again: it goes on.",
        "A script changes nothing if an earlier step isn't complete, replicas are out of sync, others moved a partition or set"
        " one of its settings, a topic was deleted and created again, or brokers or topics have throttles of others.",
        "To take steps back, run their scripts of undo/, the last step first.",
        "before.json has what the plan rests on: make a new plan if the cluster has changed since.",
        "Audit the cluster at the end. What it should be then: kafka-durability audit --topology planned.json --out FOLDER",
    ]
    if facts.before(3, 3) and content["moved"]["replicas"]:
        lines.insert(-4, FREE_BYTES_UNKNOWN)
    return _lines(lines)


def _aim(content: Mapping[str, Any]) -> str:
    if content["undoes"] is not None:
        return f"It takes plan {content['undoes']} back: placements and settings become those before it."
    proof = content["proof"]
    remaining = len(proof["remains"])
    verb = "remains" if remaining == 1 else "remain"
    return f"It fixes {len(proof['mends'])} of {plural(len(content['targets']), 'finding')}." + (
        f" {remaining:,} {verb}: plan.json says why." if remaining else ""
    )


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{plain(line)}\n" for line in lines)


def _refusal(content: Mapping[str, Any]) -> str:
    proof = content["proof"]
    if proof["new"]:
        first = proof["new"][0]
        return f"{first['control']} of {first['resource']} would be new or worse (finding {first['id']})"
    if proof["harms"]:
        return str(proof["harms"][0])
    if not content["targets"] and content["undoes"] is None:
        return "there is no finding to fix"
    left_out = sorted(content["left_out"], key=lambda entry: entry["topic"] is not None) or content["notes"]
    if not left_out:
        return "no step of a plan fixes any of these findings now"
    first = left_out[0]
    return str(first["why"]) if first["topic"] is None else f"topic {first['topic']} is left out: {first['why']}"


def _old(content: Mapping[str, Any]) -> list[str]:
    """A warning if the snapshot was taken more than a day before the plan was made."""
    made, taken = (datetime.fromisoformat(content[name]) for name in ("made_at", "captured_at"))
    days = (made - taken).days
    when = "1 day" if days == 1 else f"{days:,} days"
    return (
        [f"This snapshot is {when} old. Make a plan from the cluster as it is now before you change it."]
        if days
        else []
    )


def _copied(moved: Mapping[str, Any]) -> str:
    """How much the plan copies, and the least that reaches the targets.

    >>> moved = {"replicas": 4, "bytes": 0, "bound_replicas": 4, "bound_bytes": 0, "unknown_bytes": 4}
    >>> _copied(moved)
    'It copies 4 replicas of unknown size. The least possible is 4.'
    >>> _copied(moved | {"bytes": 7_000, "bound_bytes": 7_000, "unknown_bytes": 1})
    'It copies 4 replicas, 7,000 bytes and 1 of unknown size. The least possible is 4, 7,000 bytes.'
    """
    replicas, unknown = plural(moved["replicas"], "replica"), moved["unknown_bytes"]
    if unknown and unknown >= moved["replicas"]:
        return f"It copies {replicas} of unknown size. The least possible is {moved['bound_replicas']:,}."
    size = f"{moved['bytes']:,} bytes" + (f" and {unknown:,} of unknown size" if unknown else "")
    return f"It copies {replicas}, {size}. The least possible is {moved['bound_replicas']:,}, {moved['bound_bytes']:,} bytes."


def summary(content: Mapping[str, Any], place: Path) -> list[str]:
    """The plan in about twenty lines for a terminal, from plan.json."""
    proof, refusal = content["proof"], None if content["proof"]["offered"] else _refusal(content)
    lines = [
        f"{content['cluster']}: plan {content['id']}, by the snapshot of {readable(content['captured_at'])}",
        *_old(content),
        "",
        f"  {_aim(content)}",
    ]
    steps = content["steps"]
    if steps:
        lines += [f"  {_copied(content['moved'])}", ""]
    for step in steps[:SHOWN]:
        what = [plural(step["partitions"], "partition")] if step["partitions"] else []
        what += [plural(len(step["topics"]), "topic")] if step["topics"] else []
        lines.append(f"  {step['id']:<20} {', '.join(what)}")
    if len(steps) > SHOWN:
        lines.append(f"  and {len(steps) - SHOWN} more steps")
    left = [
        f"{entry['topic'] or 'the cluster'}: {entry['why']}" for entry in content["left_out"] if entry["why"] != refusal
    ]
    if left:
        lines += ["", "Left out:", *(f"  {text}" for text in left[:SHOWN])]
        lines += [f"  and {len(left) - SHOWN} more in plan.json"] if len(left) > SHOWN else []
    if noted := [f"{entry['topic']}: {entry['why']}" for entry in content["notes"]]:
        lines += ["", "Moved to a part of the target only:", *(f"  {text}" for text in noted[:SHOWN])]
        lines += [f"  and {len(noted) - SHOWN} more in plan.json"] if len(noted) > SHOWN else []
    lines.append("")
    if refusal is None:
        lines.append("Proven: the planned topology has no new finding and no worse one.")
        if not proof["cross_checked"]:
            lines.append("The findings are not cross-checked: audit the cluster into a lake first for that.")
    else:
        lines.append(f"Not offered: {refusal}.")
    return [plain(line) for line in [*lines, "", f"  {place / README}", f"  {place / PAGE}", f"  {place / PLAN}"]]
