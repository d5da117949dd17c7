"""What the terminal shows: nothing that a file or NO_COLOR doesn't want, and a fleet's clusters worst first."""

from __future__ import annotations

import io
import logging
from types import SimpleNamespace

import pytest
from rich.console import Console as RichConsole

from durability.cli.audit import logging_to
from durability.cli.console import Console
from durability.cli.fleet_table import SHOWN, fleet_table
from durability.errors import BadInput, Unreachable
from durability.steps.summary import report_step


@pytest.fixture
def out() -> io.StringIO:
    return io.StringIO()


def terminal(monkeypatch, out: io.StringIO, **environ: str) -> Console:
    """A console that takes its output for a terminal of 60 columns."""
    for name, value in {"FORCE_COLOR": "1", "TERM": "xterm", "COLUMNS": "60", **environ}.items():
        monkeypatch.setenv(name, value)
    return Console(out, out)


def test_a_file_gets_whole_lines_and_no_colour(out, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)
    console = Console(out, out)
    with console.running():
        console.started("collect")
        console.progress("collect", 1, 3)
        console.done("collect", 2.134, "x" * 200)
    console.line("[bold]" + "y" * 200)
    console.error("[red]z")
    assert out.getvalue() == f"  collect        2.1 s  {'x' * 200}\n[bold]{'y' * 200}\nerror: [red]z\n"
    assert not console.colour and console.width is None


HOSTILE = "eu\x1b]0;owned\x07\u202e\nerror: forged\ud800"


def test_text_from_clusters_neither_controls_the_terminal_nor_forges_lines(out):
    console = Console(out, out)
    console.error(HOSTILE)
    console.done("gate", 1.0, HOSTILE)
    console.line(HOSTILE)
    tamed = "eu?]0;owned??"
    assert out.getvalue().splitlines() == [
        f"error: {tamed}",
        "  error: forged?",
        f"  gate           1.0 s  {tamed}?error: forged?",
        f"{tamed}?error: forged?",
    ]


def test_the_first_problems_are_shown_once_the_run_goes_on_and_all_of_them_at_its_end(out):
    console = Console(out, out)
    for number in range(5):
        console.problem("collect", f"c{number}: connection refused\nsee the log")
    console.done("collect", 1.0, "0 snapshots")
    console.started("gate")
    console.problem("gate", "c4: connection refused\nsee the log")
    console.problem("gate", HOSTILE.partition("\n")[0])
    console.done("gate", 1.0, "")
    console.started("publish")
    console.problem("publish", "the disk is full")
    console.done("publish", 1.0, "")
    assert out.getvalue().splitlines() == [
        "  collect        1.0 s  0 snapshots",
        *(f"    c{number}: connection refused" for number in range(3)),
        "    and 2 more",
        "  gate           1.0 s",
        "    eu?]0;owned??",
        "  publish        1.0 s",
    ]
    assert len(console.problems) == 7


def test_errors_and_reports_of_steps_are_plain_wherever_they_go():
    told: list[str] = []
    reporter = SimpleNamespace(
        started=told.append,
        problem=lambda step, text: told.append(text),
        done=lambda step, seconds, text: told.append(text),
        progress=print,
    )
    with pytest.raises(Unreachable), report_step("gate", reporter) as summary:
        summary.text = HOSTILE
        summary.problems.append(HOSTILE)
        raise Unreachable(HOSTILE)
    assert len(told) == 4 and not {"\x1b", "\x07", "\u202e", "\ud800"} & {*"".join(told)}
    assert not any("\nerror" in text for text in told)
    assert str(BadInput("a.json", "", "wrong\n  /topics: missing")) == "a.json: wrong\n  /topics: missing"


def test_a_log_has_no_forged_record(tmp_path):
    with logging_to(tmp_path / "log"):
        # Without the half of a surrogate pair: pytest's workers can't hand on a captured log that has one.
        logging.getLogger("spark").info("%s", HOSTILE.rstrip("\ud800") + "\x07")
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 2 and lines[1] == "  error: forged?" and "\x1b" not in lines[0]


def test_a_terminal_shows_the_running_step_and_its_progress(out, monkeypatch):
    console = terminal(monkeypatch, out)
    with console.running():
        console.started("collect")
        console.progress("collect", 12, 100)
        console._out._live_stack[-1].refresh()
    assert "collect … 12 of 100" in out.getvalue()
    assert console.colour and console.width == 60


def test_no_color_is_respected(out, monkeypatch):
    console = terminal(monkeypatch, out, NO_COLOR="1")
    console.error("why")
    assert not console.colour and "\x1b[31" not in out.getvalue() and ";31" not in out.getvalue()


def test_a_problem_is_shown_once():
    console = Console()
    for step in ("collect", "gate"):
        console.problem(step, "a: no answer")
    assert console.problems == ["a: no answer"]


def drawn(document: dict) -> list[list[str]]:
    out = io.StringIO()
    RichConsole(file=out, width=80).print(fleet_table(document))
    return [line.split() for line in out.getvalue().splitlines() if line.strip(" ─")]


def document(**failed: int | None) -> dict:
    """Clusters by name with their number of failures; None: it could not be read."""
    snapshots = [{"cluster": c, "status": "failed" if n is None else "accepted"} for c, n in failed.items()]
    counts = {c: {"FAIL": n or 0, "UNKNOWN": 1, "EXEMPT": 0, "PASS": 2000} for c, n in failed.items()}
    return {"run": {"snapshots": snapshots}, "summary": {"clusters": counts}}


def test_a_fleets_clusters_worst_first():
    assert drawn(document(eu=1, us=3, gone=None)) == [
        ["cluster", "failed", "unknown", "exempt", "passed"],
        ["gone", "not", "read", "1", "0", "2,000"],
        ["us", "3", "1", "0", "2,000"],
        ["eu", "1", "1", "0", "2,000"],
    ]
    assert fleet_table(document(eu=1)) is None


def test_a_large_fleet_is_cut_short():
    rows = drawn(document(**{f"c{n:03}": n for n in range(SHOWN + 5)}))
    assert len(rows) == SHOWN + 2 and rows[-1] == ["and", "5", "more,", "in", "the", "report"]
