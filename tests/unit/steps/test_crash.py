"""A step that stops before its end says so: which step, the cause, the last lines. A full disk is named, wherever it was met."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from durability.cli import airflow_run
from durability.errors import Refused
from durability.steps import crash, journal
from durability.steps.evaluate import JobFailed, SparkEvaluation, job_failed
from durability.steps.journal import JournalReporter, Reader
from durability.steps.summary import report_step

STEPS = ["plan", "collect", "gate", "publish", "evaluate", "cross-check", "findings", "report", "notify", "conclude"]
LOG = [
    "26/11/25 WARN TaskSetManager: Lost task 0.0",
    "org.apache.spark.SparkException: Job aborted due to stage failure",
    "\tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:1)",
    "Caused by: java.io.IOException: No space left on device",
]


class Reporter(list):
    """The problems that were reported."""

    def started(self, step): ...

    def progress(self, step, done, total): ...

    def done(self, step, seconds, text): ...

    def problem(self, step, text):
        self.append((step, text))


def reported(step: str, error: Exception, expected=()) -> list[tuple[str, str]]:
    reporter = Reporter()
    with pytest.raises(type(error)), report_step(step, reporter, expected):
        raise error
    return reporter


@pytest.mark.parametrize("step", STEPS)
def test_a_full_disk_is_named_for_every_step(step):
    (problem,) = reported(step, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/data/out/report.html"))
    assert problem == (
        step,
        f"{step} stopped before its end: no space left on the disk of /data/out/report.html; free some, then run the audit again",
    )


def test_a_full_disk_behind_another_error_is_named():
    try:
        try:
            raise OSError(errno.EDQUOT, "Disk quota exceeded", "/usr/logo.png", None, "/out/logo.png")
        except OSError as error:
            raise RuntimeError("not stored: No space left on device") from error
    except RuntimeError as error:
        assert "no space left on the disk of /out/logo.png" in crash.text_of("cross-check", error)


def test_a_full_disk_that_only_spark_met_is_named_with_its_last_lines():
    ((_, text),) = reported("evaluate", JobFailed("Spark's job failed, exit status 1", LOG))
    first, *lines = text.splitlines()
    assert first.startswith("evaluate stopped before its end: no space left on")
    assert lines == [f"  {LOG[1]}", f"  {LOG[3]}"]


def test_another_crash_is_named_with_its_type_and_without_the_frames():
    ((_, text),) = reported("gate", KeyError("topics"))
    assert text == "gate stopped before its end: KeyError: 'topics'"


def test_the_last_lines_of_a_submitted_job_are_in_its_exception():
    error = RuntimeError("Cannot execute: spark-submit. Error code is: 1.\nLast output:\nCaused by: no such table")
    ((_, text),) = reported("evaluate", error)
    assert text.splitlines()[1:] == ["  Caused by: no such table"]


def test_what_a_user_can_fix_and_what_ends_a_step_on_purpose_are_no_crashes():
    assert reported("plan", Refused("policy.yaml is missing")) == [("plan", "policy.yaml is missing")]
    assert reported("conclude", ValueError("the run is incomplete"), (ValueError,)) == []


@pytest.mark.parametrize(
    "line",
    [
        "Caused by: software.amazon.awssdk.services.s3.model.S3Exception: Storage backend has reached its minimum free drive "
        "threshold. (Service: S3, Status Code: 507, Request ID: 1)",
        "OSError: AWS Error UNKNOWN (HTTP status 507) during PutObject operation: Unable to parse ExceptionName",
        "Caused by: S3Exception: null (Service: S3, Status Code: 403, Request ID: 1) QuotaExceeded",
    ],
)
def test_a_full_object_store_is_named(line):
    """Seen with a store that answered as MinIO does."""
    full = "no space left on the object store (S3), or its quota is used up; free some, then run the audit again"
    assert crash.full_disk(JobFailed("Spark's job failed"), [line]) == full
    busy = "Caused by: S3Exception: Reduce your request rate. (Service: S3, Status Code: 503, Request ID: 507)"
    assert crash.full_disk(JobFailed("Spark's job failed"), [busy]) is None


def test_the_full_disk_of_a_lake_is_named_although_spark_names_none(tmp_path, monkeypatch):
    lake = str(tmp_path / "lake")
    monkeypatch.setattr(crash, "full_places", lambda places: [str(place) for place in places if str(place) == lake])
    ((_, text),) = reported("evaluate", job_failed(1, LOG, lake))
    assert text.startswith(f"evaluate stopped before its end: no space left on the disk of {lake}; free some")


@pytest.mark.parametrize("status", [None, -9, 137])
def test_a_killed_job_is_not_said_to_have_failed(status):
    ((_, text),) = reported("evaluate", job_failed(status, [], "lake"))
    assert text.endswith("Spark's job was killed, by a signal or for lack of memory; its log is above")


def test_spark_s_last_lines_come_with_its_failure(monkeypatch):
    class Session:
        def give(self, plan):
            return True

        def wait(self, log):
            for line in LOG:
                log(line)
            return 1

    logged = []
    monkeypatch.setattr("durability.runtime.prestarted.take", lambda lake, partitions: Session())
    monkeypatch.setattr("durability.plan.inputs.check", lambda lake, plan: None)
    plan = SimpleNamespace(partitions=1, to_json=lambda: "{}")
    with pytest.raises(JobFailed) as caught:
        SparkEvaluation(None, logged.append).run(SimpleNamespace(location="lake"), plan, None)
    assert caught.value.lines == logged == LOG


def test_a_disk_without_space_is_found(monkeypatch, tmp_path):
    full = SimpleNamespace(f_bavail=1, f_frsize=4096, f_files=10, f_favail=5)
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert crash.full_places([tmp_path / "not" / "yet"]) == [str(tmp_path / "not" / "yet")]
    full.f_bavail = 10_000
    assert crash.full_places([tmp_path]) == []
    full.f_favail = 0
    assert crash.full_places([tmp_path]) == [str(tmp_path)]


def test_a_full_disk_outside_of_the_steps_is_refused():
    with pytest.raises(Refused, match="no space left on the disk of /tmp/x"), crash.full_disk_refused():
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")
    with pytest.raises(PermissionError), crash.full_disk_refused():
        raise PermissionError(13, "Permission denied")


def test_a_journal_on_a_full_disk_fails_no_step_and_is_read_as_far_as_it_goes(monkeypatch, tmp_path):
    events = tmp_path / "journal.jsonl"
    monkeypatch.setenv(journal.VARIABLE, str(events))
    JournalReporter().started("plan")
    with events.open("a") as file:
        file.write('\n{"event": "st')
    JournalReporter().problem("plan", "told")
    assert [event["event"] for event in Reader(events).new()] == ["step", "problem"]
    monkeypatch.setenv(journal.VARIABLE, "/dev/full")
    with report_step("gate", JournalReporter()):
        pass


def test_a_step_whose_process_was_killed_is_named(monkeypatch, tmp_path):
    events = tmp_path / "journal.jsonl"
    monkeypatch.setenv(journal.VARIABLE, str(events))
    JournalReporter().started("collect")
    JournalReporter().done("collect", 1.0, "")
    script = (
        "import os\nfrom durability.steps.journal import JournalReporter\nfrom durability.steps.summary import report_step\n"
        "with report_step('cross_check', JournalReporter()):\n    os.kill(os.getpid(), 9)\n"
    )
    root = Path(journal.__file__).parents[2]
    child = subprocess.Popen([sys.executable, "-c", script], cwd=root)
    console = Reporter()
    airflow_run._follow(child, Reader(events), console)
    ((step, text),) = console
    assert step == "cross_check" and text.startswith("cross_check stopped before its end: its process was killed")
