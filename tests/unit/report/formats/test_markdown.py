"""summary.md, as two programs that render Markdown show it."""

from __future__ import annotations

from html.parser import HTMLParser

import markdown as python_markdown
import pytest
from markdown_it import MarkdownIt

from durability.report.formats import markdown
from tests.support.report_cases import finding, report, snapshot

MESSAGE = {"message": "partition 0: replication factor 1, 3 required", "cause": "configuration:topic"}
SCRIPT = "kafka-topics --bootstrap-server $BOOTSTRAP --list\n# then\nkafka-topics --version"
HOSTILE = (
    "# x\n\n</code></pre><script>alert(1)</script> [a](javascript:b) ![i](http://evil/i.png) <http://evil> www.evil.com "
    "https://evil.com me@evil.com @all #12 !3 **bold** _it_ | cell ``` `tick` ~~~ &lt; $x$ \\ \u202eevil\x1b[2J - [ ] x"
)
RENDERERS = {
    "GitHub's": MarkdownIt("gfm-like", {"html": True}).render,
    "Python's": lambda text: python_markdown.markdown(text, extensions=["tables", "fenced_code"]),
}
TAGS = {"h1", "h2", "h3", "p", "strong", "code", "pre", "ul", "li", "table", "thead", "tbody", "tr", "th", "td"}


class Shown(HTMLParser):
    """A page: its tags and attributes, its text, its text outside code, and the texts of each kind of tag."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = self.prose = ""
        self.by_tag: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.by_tag.setdefault(tag, []).append("")
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        self.prose += "" if "code" in self.open else data
        for tag in set(self.open):
            self.by_tag[tag][-1] += data


def page(folder, rows, **more) -> str:
    report(rows, folder, **more)
    return (folder / "summary.md").read_text(encoding="utf-8")


ROWS = [
    finding("orders", "replication-factor", remediation=SCRIPT, **MESSAGE),
    finding(
        "logs", "write-headroom", severity="warning", cause="broker:3 down", message="m", remediation="Start broker 3"
    ),
    finding("hidden", "log-dirs", "UNKNOWN", cause="unreadable", message="not readable"),
    finding("cache-1", "replication-factor", "EXEMPT", waiver=0, **MESSAGE),
    finding("fine", "replication-factor", "PASS"),
]


def test_a_run_is_one_page(tmp_path):
    nowhere = snapshot("us", "failed", captured_at=None, snapshot_id=None, reason="no broker answers")
    text = page(tmp_path, ROWS, snapshots=[snapshot(), nowhere])
    shown = Shown(RENDERERS["GitHub's"](text))
    assert shown.tags == TAGS
    assert "1 of 5 topics" in shown.by_tag["strong"][0]
    assert "Topics' own configuration in eu-payments" in shown.text
    assert SCRIPT in shown.text and "Fix: Start broker 3" in shown.text
    assert "us could not be evaluated (failed): no broker answers" in shown.text
    assert "not readable" in shown.text
    assert "payments accepts this until 2027-01-31: rebuilt from the database every hour" in shown.text
    assert "Verdicts that passed" in shown.text
    rows = [row.split() for row in shown.by_tag["tr"]]
    assert ["eu-payments", "2", "1", "1", "1", "0", "2026-11-21", "02:00", "UTC"] in rows
    assert ["us", "0", "0", "0", "0", "0", "not", "evaluated"] in rows


@pytest.mark.parametrize("renderer", RENDERERS)
def test_text_of_strangers_is_no_markup(tmp_path, renderer):
    more = {"cluster": HOSTILE, "message": HOSTILE, "cause": HOSTILE}
    rows = [
        finding(HOSTILE, "replication-factor", remediation=HOSTILE, **more),
        finding(HOSTILE, "log-dirs", remediation=f"kafka-topics --list\n# {HOSTILE}", **{**more, "cause": "x"}),
        finding(HOSTILE, "write-headroom", "UNKNOWN", **more),
        finding(HOSTILE, "write-headroom", "EXEMPT", waiver=0, **more),
    ]
    gone = snapshot("us", "failed", captured_at=None, snapshot_id=None, reason=HOSTILE)
    text = page(tmp_path, rows, snapshots=[snapshot(HOSTILE), gone])
    shown = Shown(RENDERERS[renderer](text))
    assert shown.tags <= TAGS
    assert shown.attributes <= {"class"}
    visible = " ".join(shown.text.replace(markdown.JOINER, "").split())
    assert visible.count("<script>alert(1)</script> [a](javascript:b) ![i](http://evil/i.png)") > 5
    assert "\u202e" not in text and "\x1b" not in text
    assert (
        "@all" not in Shown(RENDERERS[renderer]("\n".join(line for line in text.splitlines() if "`" not in line))).text
    )


def test_names_stay_in_their_cells(tmp_path):
    text = page(tmp_path, [finding("a", "log-dirs", cluster="x|y`|z\\|")], snapshots=[snapshot("x|y`|z\\|")])
    shown = Shown(RENDERERS["GitHub's"](text))
    (row,) = [row for row in shown.by_tag["tr"] if "x|y" in row]
    assert row.split() == ["x|y`|z\\|", "1", "0", "0", "0", "0", "2026-11-21", "02:00", "UTC"]


def test_a_page_of_any_run_is_short(tmp_path):
    long = "<ü>" * 400
    rows = [
        finding(
            f"{long}{number}", "log-dirs", outcome, cluster=f"{number}{long}", cause=f"{number}{long}", message=long
        )
        | {"remediation": long, "waiver": 0 if outcome == "EXEMPT" else None}
        for number in range(60)
        for outcome in ("FAIL", "UNKNOWN", "EXEMPT")
    ]
    snapshots = [snapshot(f"{number}{long}") for number in range(60)]
    text = page(tmp_path, rows, snapshots=snapshots, paper=False)
    assert 40_000 < len(text.encode()) <= markdown.LIMIT
    shown = Shown(RENDERERS["GitHub's"](text)).text
    causes = shown.count("Fix: ")
    assert 0 < causes <= markdown.FAILURES
    assert f"{60 - causes} causes of failures" in shown
    assert "40 clusters" in shown


def test_an_empty_run_has_a_page(tmp_path):
    shown = Shown(RENDERERS["GitHub's"](page(tmp_path, [], snapshots=[])))
    assert "Nothing was evaluated: the run has no cluster." in shown.text
