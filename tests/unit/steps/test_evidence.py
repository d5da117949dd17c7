"""The evidence of a run: a key or a disk that fails changes no verdict, and is told."""

from __future__ import annotations

import errno
import json
import logging
from types import SimpleNamespace

import boto3
import pytest

from durability.errors import Unreachable
from durability.evidence import keys, verify
from durability.steps import evidence
from durability.steps.summary import StepSummary
from expectations.posture import Flagged
from tests.support.evidence import CLUSTER, POLICY, lake_of, new_key
from tests.support.report_cases import finding, plan, report
from tests.support.stores import KEY

SECRET = "hunter2"
FLAGGED = Flagged(True, 0, {})


@pytest.fixture
def attest(tmp_path):
    """Attests a report; takes what gives the key, returns the folder and the step's summary."""
    out, summary = tmp_path / "out", StepSummary()
    files = report([finding("orders", "replication-factor")], out)
    settings = SimpleNamespace(**POLICY, topology=None, out=out, open_lake=lambda: lake_of(CLUSTER))

    def run(key, **changed):
        of = SimpleNamespace(**{**vars(settings), **changed})
        return evidence.attest(of, plan(), FLAGGED, files, key, logging.getLogger("test"), summary), summary

    return run


def attested(folder) -> int:
    """The number of files in a run's folder that its manifest names."""
    return len(json.loads((folder / verify.MANIFEST).read_text())["subject"])


def test_a_run_is_signed_with_the_configured_key(attest, tmp_path):
    key = new_key(tmp_path / "key.pem")
    folder, summary = attest(lambda: keys.from_file(key))
    assert verify.verify(folder, key.with_suffix(".pub"))[1] == 0
    assert summary.text == f"{attested(folder)} files attested, signed"


def test_without_a_key_the_manifest_says_that_it_is_unsigned(attest):
    folder, summary = attest(lambda: evidence.key_from_environment({}))
    signing = json.loads((folder / verify.MANIFEST).read_text())["predicate"]["signing"]
    assert signing == {"signed": False, "key": None, "reason": "no signing key is configured"}
    lines, status = verify.verify(folder)
    assert status == 0 and "not signed" in lines[0] and summary.text == f"{attested(folder)} files attested, unsigned"


def test_a_key_that_cannot_be_used_leaves_the_manifest_unsigned_and_is_told(attest, tmp_path, caplog):
    loose = new_key(tmp_path / "key.pem")
    loose.chmod(0o644)
    stated = json.dumps({"conn_type": "generic", "extra": {"file": str(loose)}})

    def broken():
        raise RuntimeError(SECRET)

    for key, says in (
        (lambda: evidence.key_from_environment({"AIRFLOW_CONN_KAFKA_DURABILITY_SIGNING": stated}), "has mode 0644"),
        (broken, "the key can't be used: RuntimeError"),
    ):
        folder, summary = attest(key)
        signing = json.loads((folder / verify.MANIFEST).read_text())["predicate"]["signing"]
        assert signing["signed"] is False and says in signing["reason"]
        assert any(says in problem for problem in summary.problems)
    assert SECRET not in caplog.text + json.dumps(summary.problems)


def test_evidence_that_cannot_be_written_is_told(attest, tmp_path):
    def away():
        raise Unreachable("the catalog doesn't answer")

    def full():
        raise OSError(errno.ENOSPC, "No space left on device", "report.html", None, "/full/report.html")

    for changed, says in (
        ({"open_lake": away}, "the catalog doesn't answer"),
        ({"open_lake": full}, "no space left on the disk of /full/report.html; free some, then run the audit again"),
        ({"out": tmp_path / "out/losses.json"}, ""),
    ):
        folder, summary = attest(lambda: None, **changed)
        assert folder is None and says in summary.problems[-1]
        assert summary.problems[-1].startswith("the report is written, but its evidence could not be: ")


def test_evidence_is_copied_where_the_policy_says_and_a_store_that_fails_costs_nothing(
    attest, tmp_path, monkeypatch, s3, free_tcp_port
):
    for name, value in KEY.items():
        monkeypatch.setenv(name, value)
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY["policy"].read_text() + "evidence: {s3: s3://copies-of-a-run/kafka}\n")
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{free_tcp_port}")
    folder, summary = attest(lambda: None, policy=policy)
    assert verify.verify(folder)[1] == 0
    assert summary.problems[-1] == (
        "evidence is not copied to s3://copies-of-a-run/kafka: EndpointConnectionError. Check the store's address "
        "(AWS_ENDPOINT_URL, AWS_REGION), the credentials and the network. The first run that succeeds completes the copy"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3)
    store = boto3.client("s3", region_name=KEY["AWS_REGION"])
    where = {"LocationConstraint": KEY["AWS_REGION"]}
    store.create_bucket(Bucket="copies-of-a-run", CreateBucketConfiguration=where)
    second, summary = attest(lambda: None, policy=policy)
    assert summary.text.endswith("attested, unsigned, 2 runs copied to s3://copies-of-a-run/kafka")
    names = {entry["Key"] for entry in store.list_objects_v2(Bucket="copies-of-a-run")["Contents"]}
    assert {f"kafka/{run.name}/{verify.MANIFEST}" for run in (folder, second)} <= names
