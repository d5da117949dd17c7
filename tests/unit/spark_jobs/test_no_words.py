"""Spark computes; Python words: no sentence stands in the jobs."""

from __future__ import annotations

import ast
import re

import pytest

from tests import ROOT

JOBS = ROOT / "spark_jobs"
WORD = re.compile(r"[A-Za-z][A-Za-z']+")
ALLOWED = re.compile(
    r"(struct|array|map)<|_sort_order|^(ALTER|DELETE|CALL|SELECT|AND|TBLPROPERTIES|TIMESTAMP|WRITE)\b|is (not )?null|NULLS"
    r"|-XX:|captured_at|=>|IS NOT NULL|^ (WRITE|string, )"
)
"""Types, SQL and options of the JVM."""


def strings(tree: ast.Module):
    """String constants that are neither docstrings nor what an error or the command line says."""
    apart: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) or (
            isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "add_argument"
        ):
            apart |= {id(n) for n in ast.walk(node)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            apart.add(id(node.value))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in apart:
            yield node


@pytest.mark.parametrize("path", sorted(JOBS.rglob("*.py")), ids=lambda p: str(p.relative_to(JOBS)))
def test_no_string_of_three_or_more_words(path):
    found = [
        f"{path.name}:{node.lineno}: {node.value!r}"
        for node in strings(ast.parse(path.read_text(encoding="utf-8")))
        if len(WORD.findall(re.sub(r"\S*[_=:./<>*-]\S*", " ", node.value))) >= 3 and not ALLOWED.search(node.value)
    ]
    assert not found
