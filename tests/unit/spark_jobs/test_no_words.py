"""Spark computes, Python words: the jobs contain no sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests import ROOT

JOBS = ROOT / "spark_jobs"
WORD = re.compile(r"[A-Za-z][A-Za-z']+")
ALLOWED = re.compile(
    r"(struct|array|map)<|_sort_order|^(ALTER|DELETE|CALL|SELECT|AND|TBLPROPERTIES|TIMESTAMP|WRITE)\b|is (not )?null|NULLS"
    r"|-XX:|captured_at|=>|IS NOT NULL|^ WRITE|string, named boolean"
)
"""Types, SQL and options of the JVM."""


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines and strings that are neither docstrings nor texts of errors. A formatted string is one, with `=` for its values."""
    apart: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            apart |= {id(n) for n in ast.walk(node)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            apart.add(id(node.value))
        if isinstance(node, ast.JoinedStr) and id(node) not in apart:
            apart |= {id(part) for part in node.values}
            yield (
                node.lineno,
                "".join(str(part.value) if isinstance(part, ast.Constant) else "=" for part in node.values),
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node.lineno, node.value


def sentences(source: str) -> list[str]:
    """The strings of three or more words."""
    return [
        f"{line}: {text!r}"
        for line, text in strings(ast.parse(source))
        if len(WORD.findall(re.sub(r"\S*[_=:./<>*-]\S*", " ", text))) >= 3 and not ALLOWED.search(text)
    ]


@pytest.mark.parametrize("path", sorted(JOBS.rglob("*.py")), ids=lambda p: str(p.relative_to(JOBS)))
def test_no_string_of_three_or_more_words(path):
    assert not sentences(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    [
        'F.lit("the leader is down")',
        'f"{topic} is offline since {day}, start broker"',
        'parser.add_argument("--plan", help="the plan of a run")',
    ],
)
def test_a_sentence_is_found(source):
    assert len(sentences(source)) == 1
