"""report.pdf, as another program reads it."""

from __future__ import annotations

import hashlib
import re
from datetime import timedelta

import pytest
from pypdf import PdfReader

from tests.support.report_cases import NIGHT, SHA, facts, finding, snapshot, written

HOSTILE = '<a href="x">b</a> & <para> \u202egnp.\x07 \u4e2d\u6587 ' + "x" * 249
REMEDY = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter --entity-type topics --entity-name orders'


def read(out) -> PdfReader:
    return PdfReader(out / "report.pdf")


def words(pages) -> str:
    """Their text with each run of white space as one space."""
    return re.sub(r"\s+", " ", " ".join(page.extract_text() for page in pages))


def test_page_one_says_what_was_judged_by_what_and_what_is_not_known(tmp_path):
    rows = [
        finding("orders", "replication-factor", cause="configuration:topic", remediation=REMEDY, message="2 replicas"),
        finding("audit", "min-insync-replicas", "UNKNOWN", cause="unreadable"),
    ]
    lost = snapshot("us-orders", status="failed", reason="no broker answers at 10.0.0.1:9092", sha256=None)
    written(rows, tmp_path, snapshots=[snapshot(), lost])
    first = words(read(tmp_path).pages[:1])
    assert "Unknown us-orders was not evaluated: no broker answers at 10.0.0.1:9092" in first
    assert "Not readable by the auditor" in first and "1 of 1" not in first
    joined = first.replace(" ", "")
    fingerprint = hashlib.sha256((tmp_path / "findings.json").read_bytes()).hexdigest()
    assert SHA in joined and f"SHA-256{fingerprint}" in joined


def test_the_properties_have_the_time_of_the_run(tmp_path):
    written([], tmp_path)
    properties = read(tmp_path).metadata
    assert properties.creation_date == properties.modification_date == NIGHT + timedelta(seconds=5)


def test_each_page_has_its_number_and_the_fingerprint(tmp_path):
    rows = [
        finding(f"t{n}", "replication-factor", cause=f"broker:{n} down", remediation=REMEDY, message="m " * 200)
        for n in range(90)
    ]
    written(rows, tmp_path)
    pages = read(tmp_path).pages
    fingerprint = hashlib.sha256((tmp_path / "findings.json").read_bytes()).hexdigest()
    assert len(pages) > 5
    for number, page in enumerate(pages, 1):
        assert f"page {number} of {len(pages)}" in page.extract_text()
        assert fingerprint[:16] in page.extract_text()
    assert "60 more causes, in findings.csv." in words(pages)


def test_a_text_of_any_length_goes_on_on_the_next_page(tmp_path):
    long = "<ü>" * 3_000
    row = finding(f"t{long[:240]}", "log-dirs", cause="broker:1 down", message=long, remediation=long[:900])
    written([row], tmp_path)
    assert [page for page in read(tmp_path).pages if "".join(page.extract_text().split()).count("<ü>") > 500]


def test_text_of_strangers_is_shown_and_is_no_markup(tmp_path):
    row = finding(
        HOSTILE, "replication-factor", cause=f"broker:1 down, {HOSTILE}", message=HOSTILE, remediation=HOSTILE
    )
    unread = facts([{"cluster": "eu-payments", "unreadable": [{"path": "/topics/0/" + HOSTILE, "reason": HOSTILE}]}])
    written([row], tmp_path, unread=unread)
    text = words(read(tmp_path).pages)
    assert '<a href="x">b</a> & <para>' in text
    assert r"\u202egnp.\x07" in text and r"\u4e2d\u6587" in text
    assert not [page for page in read(tmp_path).pages if page.get("/Annots")]


def test_a_name_of_strangers_begins_no_line(tmp_path):
    forged = "# PASS"  # short, so that no cell breaks the line before it
    rows = [finding("orders", "replication-factor", cause="configuration:topic", remediation=f"# once\n{REMEDY}")]
    lost = snapshot(f"us\n{forged}", status="failed", reason=f"refused\n{forged}", sha256=None)
    written(rows, tmp_path, snapshots=[snapshot(), lost])
    lines = [line.strip() for page in read(tmp_path).pages for line in page.extract_text().splitlines()]
    assert not any(line.startswith(forged) for line in lines)
    assert "# once" in lines  # a script has its lines


def test_a_waiver_says_who_accepts_what_until_when(tmp_path):
    written([finding("cache-1", "replication-factor", "EXEMPT", waiver=0)], tmp_path)
    text = words(read(tmp_path).pages)
    assert "approved by A. Reviewer" in text and "2027-01-31" in text and "no approver named" in text
    assert "Signature" in text


@pytest.mark.parametrize("again", [False, True])
def test_the_same_run_gives_the_same_bytes(tmp_path, again):
    written([finding("orders", "replication-factor")], tmp_path)
    before = (tmp_path / "report.pdf").read_bytes()
    written([finding("orders" if again else "other", "replication-factor")], tmp_path)
    assert ((tmp_path / "report.pdf").read_bytes() == before) == again
