"""plan.html: a plan of change as a page in the report's style, with the cluster before and after it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from durability.plain import plural
from durability.remedies.change.model import Step
from durability.report.html.page import environment, stylesheet

STEPS, FINDINGS, BROKERS, TOPICS, MOVES = 200, 300, 300, 100, 50


def render(
    content: Mapping[str, Any], steps: Sequence[Step], found: Sequence[Mapping[str, Any]], sentences: Sequence[str]
) -> Iterator[str]:
    """The page in pieces.

    content: of plan.json. steps: its steps. found: its targeted findings, each with `message`. sentences: how README.txt begins.
    """
    proof = content["proof"]
    remains = {entry["id"]: entry["why"] for entry in proof["remains"]}
    mends = set(proof["mends"])
    css, digest = stylesheet()
    yield from (
        environment()
        .get_template("change.html.j2")
        .generate(
            css=css,
            css_hash=digest,
            plan=content,
            tone="good" if proof["offered"] and not remains else "warning" if proof["offered"] else "critical",
            headline=headline(content),
            sentences=sentences,
            fixed=[finding for finding in found if finding["id"] in mends],
            remaining=[(finding, remains[finding["id"]]) for finding in found if finding["id"] in remains],
            brokers=brokers(content),
            moves={
                step.id: [(f"{m.topic}-{m.partition}", m.before, m.after) for m in step.moves[:MOVES]] for step in steps
            },
            limits={"steps": STEPS, "findings": FINDINGS, "moves": MOVES, "topics": TOPICS},
        )
    )


def headline(content: Mapping[str, Any]) -> str:
    if content["undoes"] is not None:
        return f"Takes plan {content['undoes']} back"
    return f"Fixes {len(content['proof']['mends']):,} of {plural(len(content['targets']), 'finding')} of {content['cluster']}"


def brokers(content: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Replicas, preferred leaders and bytes before and after of the brokers with the largest changes of replicas, by id.

    >>> load = {"before": {"1": 5, "2": 1}, "after": {"1": 3, "2": 2}}
    >>> [(row["broker"], row["load"]) for row in brokers({"load": load, "leaders": None, "load_bytes": None})]
    [('1', (5, 3)), ('2', (1, 2))]
    """
    if content["load"] is None:
        return []
    names = ("load", "leaders", "load_bytes")

    def change(name: str, broker: str) -> tuple[int, int] | None:
        if content[name] is None:
            return None
        return content[name]["before"].get(broker, 0), content[name]["after"].get(broker, 0)

    ids = {**content["load"]["before"], **content["load"]["after"]}
    rows = [{"broker": broker, **{name: change(name, broker) for name in names}} for broker in ids]
    rows.sort(key=lambda row: -abs(row["load"][1] - row["load"][0]))
    return sorted(rows[:BROKERS], key=lambda row: int(row["broker"]))
