"""whatif.html: a prediction as a page in the report's style."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from durability.report import clients
from durability.report.html.page import environment, stylesheet

TOPICS = 300
KINDS = {
    "lost": "critical",
    "at_risk": "critical",
    "offline": "critical",
    "rejects": "warning",
    "accepts": "",
    "unknown": "UNKNOWN",
}


def render(found: Mapping[str, Any], words: Mapping[str, str], sentences: Sequence[str]) -> Iterator[str]:
    """The page in pieces. found: the content of whatif.json. words: each class. sentences: what the terminal says too."""
    now = found["views"]["now"]
    grave = any(now[name] for name in ("lost", "at_risk", "offline")) or (found["quorum"] or {}).get("kept") is False
    tone = "critical" if grave else "warning" if now["rejects"] else "unknown" if now["unknown"] else "good"
    of_clients = clients.sentences(found["clients"])
    css, digest = stylesheet()
    yield from (
        environment()
        .get_template("whatif.html.j2")
        .generate(
            css=css,
            css_hash=digest,
            found=found,
            tone=tone,
            headline=sentences[0],
            sentences=[said for said in sentences[1:] if said not in of_clients],
            clients=of_clients,
            classes=[(name, KINDS[name]) for name in KINDS],
            words=words,
            limit=TOPICS,
        )
    )
