"""Old folders of runs are removed, the oldest first. Their copies on S3 (moto's server) are completed before."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

import boto3
import pytest
from botocore.exceptions import ClientError

from durability.evidence import copy, keep, verify
from durability.policy.model import EvidenceCopy
from durability.steps import upkeep
from durability.steps.settings import Settings
from durability.steps.summary import StepSummary
from tests import ROOT
from tests.support.evidence import rewrite, seal
from tests.support.stores import KEY

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)
WEEK = timedelta(days=7)


def chain(root: Path, *days: datetime) -> list[str]:
    """Small runs that started on these days."""
    names: list[str] = []
    for number, day in enumerate(days, 1):
        folder = root / f"{number:06}-{day:%Y%m%dT%H%M%SZ}-519e8f51"
        (folder / "report").mkdir(parents=True)
        (folder / "report" / "findings.csv").write_text(f"{number}")
        (folder / verify.MANIFEST).touch()
        before = names[-1] if names else None
        previous = before and {"folder": before, "manifest_sha256": verify.check_run(root / before).sha256}
        predicate = {"number": number, "folder": folder.name, "previous": previous}
        seal(folder, {"_type": verify.STATEMENT, "predicateType": verify.PREDICATE, "predicate": predicate})
        names.append(folder.name)
    return names


def left(root: Path) -> list[str]:
    return sorted(path.name for path in root.iterdir())


def november(*days: int) -> list[datetime]:
    return [datetime(2026, 11, day, 2, tzinfo=UTC) for day in days]


def test_old_runs_go_and_the_rest_is_a_chain(tmp_path):
    october = datetime(2026, 10, 5, tzinfo=UTC)
    names = chain(tmp_path, october, *november(18, 19, 20, 26))
    # Of the 20th, at midnight seven days ago: it is seven days old, and not older.
    done = keep.remove_old(tmp_path, WEEK, "week", NOW)
    assert (done.runs, done.problems, left(tmp_path)) == (names[:3], [], names[3:])
    assert verify.verify(tmp_path, after=done.last)[1] == 0 and verify.verify(tmp_path)[1] == 1
    assert keep.remove_old(tmp_path, WEEK, "week", NOW) == keep.Removed()


@pytest.mark.parametrize(
    ("each", "days", "gone"),
    [
        ("month", november(1, 2, 3), 0),  # this month isn't over
        ("week", november(1, 2, 3), 2),  # the newest stays at any age
        ("week", november(24, 1, 2), 0),  # runs after one that stays
    ],
)
def test_what_stays_at_any_age(tmp_path, each, days, gone):
    names = chain(tmp_path, *days)
    assert keep.remove_old(tmp_path, timedelta(days=1), each, NOW).runs == names[:gone]
    assert left(tmp_path) == names[gone:]


def test_a_run_that_is_not_as_attested_stays_with_those_after_it(tmp_path):
    names = chain(tmp_path, *november(1, 2, 3, 4))
    rewrite(tmp_path / names[1], "report/findings.csv", b"forged")
    done = keep.remove_old(tmp_path, WEEK, "week", NOW)
    assert (done.runs, left(tmp_path)) == (names[:1], names[1:])
    (told,) = done.problems
    assert f"{names[1]} is old, and stays because it isn't as attested: report/findings.csv: differs" in told


@pytest.fixture
def settings(tmp_path, s3, monkeypatch) -> tuple[Settings, Path]:
    """The settings of an upkeep whose policy names no bucket and no term, and the file of that policy."""
    for name, value in (KEY | {"AWS_ENDPOINT_URL": s3}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DURABILITY_S3_KMS_KEY", raising=False)
    policy = tmp_path / "policy.yaml"
    policy.write_text((ROOT / "policies" / "policy.yaml").read_text())
    none = tmp_path / "none"
    return Settings(policy, none, none, tmp_path / "out", str(tmp_path / "lake"), None), policy


def evidence(settings: Settings) -> tuple[list[str], StepSummary]:
    summary = StepSummary()
    return upkeep.evidence(settings, summary), summary


def there(store, bucket: str) -> set[str]:
    return {entry["Key"] for entry in store.list_objects_v2(Bucket=bucket).get("Contents", ())}


def test_an_upkeep_completes_copies_and_then_removes(settings, tmp_path):
    settings, policy = settings
    assert evidence(settings)[0] == [] and not settings.out.exists()
    root = settings.out / verify.FOLDER
    names = chain(root, *(datetime(2026, month, 1, tzinfo=UTC) for month in (1, 2, 3)))
    removed, summary = evidence(settings)
    assert removed == [] and summary.text == "no folder is removed, because the policy has no term"

    store, bucket = boto3.client("s3", region_name=KEY["AWS_REGION"]), f"evidence-{uuid.uuid4().hex}"
    terms = policy.read_text().replace("retention:\n", "retention:\n  evidence_folders: 30d\n")
    policy.write_text(f"{terms}\nevidence: {{s3: 's3://{bucket}/prod'}}\n")
    removed, summary = evidence(settings)
    assert removed == [] and left(root) == names, "no copy, so nothing may go"
    assert (
        "NoSuchBucket" in summary.problems[0]
        and "until its copy in the bucket is whole and safe: S3 refused" in summary.problems[1]
    )

    store.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": KEY["AWS_REGION"]})
    removed, summary = evidence(settings)
    assert removed == [] and f"safe: bucket {bucket} is not versioned" in summary.problems[-1], (
        "nothing protects the copy"
    )
    for key in there(store, bucket):
        store.delete_object(Bucket=bucket, Key=key)
    store.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    kept = replace(settings, policy=ROOT / "policies" / "policy.yaml")
    assert evidence(kept)[0] == []
    for file in (root / names[0]).rglob("*"):  # a copy that was interrupted: no manifest yet
        if file.is_file() and file.name != verify.MANIFEST:
            store.put_object(Bucket=bucket, Key=f"prod/{file.relative_to(root)}", Body=file.read_bytes())
    removed, summary = evidence(settings)
    assert (removed, left(root), summary.problems) == (names[:2], names[2:], [])
    assert (
        "3 runs completed at" in summary.text and f"2 folders removed, up to {names[1]}, whose manifest" in summary.text
    )
    assert {f"prod/{name}/{verify.MANIFEST}" for name in names} <= there(store, bucket)

    store.delete_object(Bucket=bucket, Key=f"prod/{names[2]}/report/findings.csv")
    removed, summary = evidence(settings)
    (told,) = summary.problems
    assert told.startswith(f"1 object of {names[2]} disappeared from s3://{bucket}/prod and must be put again")
    assert f"prod/{names[2]}/report/findings.csv" in there(store, bucket) and evidence(settings)[1].problems == []


@pytest.mark.parametrize("lock", [False, True])
def test_a_run_stays_unless_each_object_of_its_copy_is_there_as_attested(settings, tmp_path, lock):
    root = tmp_path / "evidence"
    names = chain(root, *november(1, 2, 3))
    store, bucket = boto3.client("s3", region_name=KEY["AWS_REGION"]), f"evidence-{uuid.uuid4().hex}"
    where = {"LocationConstraint": KEY["AWS_REGION"]}
    store.create_bucket(Bucket=bucket, CreateBucketConfiguration=where, ObjectLockEnabledForBucket=lock)
    store.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    target = EvidenceCopy(bucket, "prod", *(("GOVERNANCE", 9) if lock else ()))
    assert copy.copy(root, target, thorough=True).problems == []

    class Denied:
        """A store that lists no objects and states no object's properties, but those of manifests."""

        def __getattr__(self, name):
            return getattr(store, name)

        def get_paginator(self, name):
            raise ClientError({"Error": {"Code": "SlowDown"}}, "ListObjectsV2")

        def head_object(self, **stated):
            if stated["Key"].endswith(verify.MANIFEST):
                return store.head_object(**stated)
            raise ClientError({"Error": {"Code": "SlowDown"}}, "HeadObject")

    def stays(make_client=lambda: store) -> str:
        unsafe = partial(copy.unsafe, target=target, make_client=make_client)
        done = keep.remove_old(root, WEEK, "week", NOW, unsafe)
        assert (done.runs, left(root)) == ([], names)
        return done.problems[0]

    assert "ListObjectsV2: SlowDown" in copy.copy(root, target, Denied, thorough=True).problems[0]
    assert stays(Denied).endswith("whole and safe: S3 refused HeadObject: SlowDown")
    key = f"prod/{names[0]}/report/findings.csv"
    store.delete_object(Bucket=bucket, Key=key)
    assert stays().endswith(f"object {key} is missing")
    store.put_object(Bucket=bucket, Key=key, Body=b"forged", ChecksumAlgorithm="SHA256")
    assert copy.copy(root, target, thorough=True).problems == []  # all names are there
    assert f"object {key} has other content than {root / names[0]}" in stays()
    store.put_object(Bucket=bucket, Key=key, Body=b"1", ChecksumAlgorithm="SHA256")
    if lock:
        assert f"object {key} has no Object Lock" in stays()
        store.delete_object(Bucket=bucket, Key=key)
        copy.copy(root, target, thorough=True)
    assert keep.remove_old(root, WEEK, "week", NOW, partial(copy.unsafe, target=target)).runs == names[:2]
