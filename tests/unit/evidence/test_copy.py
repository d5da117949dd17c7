"""Copies of evidence on S3 (moto's server): whole or completed later, locked, and never overwritten."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock

import boto3
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from durability.evidence import copy, verify
from durability.evidence import keys as signing
from durability.evidence.refused import refusal
from durability.policy.model import EvidenceCopy
from tests.support.evidence import new_key, seal, signed_chain
from tests.support.stores import KEY

SECRET = "hunter2"


@pytest.fixture
def store(s3, monkeypatch):
    """An S3 client of the store that the environment names."""
    for name, value in (KEY | {"AWS_ENDPOINT_URL": s3}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("DURABILITY_S3_KMS_KEY", raising=False)
    return boto3.client("s3", region_name=KEY["AWS_REGION"])


@pytest.fixture
def locked(store) -> EvidenceCopy:
    """A bucket with Object Lock, which is versioned."""
    return EvidenceCopy(bucket(store, lock=True), "audits/prod", "COMPLIANCE", 30)


def bucket(store, lock: bool = False) -> str:
    name = f"evidence-{uuid.uuid4().hex}"
    where = {"LocationConstraint": KEY["AWS_REGION"]}
    store.create_bucket(Bucket=name, CreateBucketConfiguration=where, ObjectLockEnabledForBucket=lock)
    return name


@pytest.fixture(scope="module")
def chain(tmp_path_factory) -> tuple[Path, Path]:
    """OUT/evidence with two signed runs, and the public key."""
    folder = tmp_path_factory.mktemp("chain")
    key = new_key(folder / "key.pem")
    signed_chain(folder / "out", signing.from_file(key))
    return folder / "out" / verify.FOLDER, key.with_suffix(".pub")


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Path:
    """Two runs of few files, which are quickly put."""
    root = tmp_path_factory.mktemp("small")
    for run in ("000001-20261121T020005Z-519e8f51", "000002-20261122T020005Z-9aedd635"):
        (root / run / "report").mkdir(parents=True)
        for name in (verify.MANIFEST, "report/findings.json", "verify.py"):
            (root / run / name).write_text(f"{run} {name}")
        stated = {"_type": verify.STATEMENT, "predicateType": verify.PREDICATE, "predicate": {"number": int(run[:6])}}
        seal(root / run, stated)
    (root / ".unfinished").mkdir()
    return root


def names(store, target: EvidenceCopy) -> list[str]:
    """The names of all versions of all objects."""
    return [version["Key"] for version in store.list_object_versions(Bucket=target.bucket).get("Versions", [])]


def files(root: Path) -> dict[str, Path]:
    return {p.relative_to(root).as_posix(): p for p in root.rglob("*") if p.is_file()}


def downloaded(store, target: EvidenceCopy, folder: Path) -> Path:
    for name in names(store, target):
        path = folder / name.removeprefix(f"{target.prefix}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        store.download_file(target.bucket, name, str(path))
    return folder


class Failing:
    """A store that fails at the nth put: before the object is there, or after it (the answer is lost)."""

    def __init__(self, store, at: int, after: bool, error: Exception):
        self.store, self.left, self.after, self.error, self.tried = store, at, after, error, []
        self.lock = Lock()

    def __getattr__(self, name):
        return getattr(self.store, name)

    def put_object(self, **stated):
        with self.lock:
            self.left -= 1
            self.tried.append(stated["Key"])
            fails = self.left < 0
        if fails and not self.after:
            raise self.error
        self.store.put_object(**stated)
        if fails:
            raise self.error


def test_a_downloaded_copy_is_verified_and_each_object_is_locked(store, locked, chain, tmp_path):
    root, public = chain
    done = copy.copy(root, locked)
    local = files(root)
    assert (done.problems, done.objects, len(done.runs)) == ([], len(local), 2)
    there = names(store, locked)
    assert sorted(there) == sorted(f"audits/prod/{name}" for name in local)
    for name, path in local.items():
        head = store.head_object(Bucket=locked.bucket, Key=f"audits/prod/{name}", ChecksumMode="ENABLED")
        assert base64.b64decode(head["ChecksumSHA256"]) == hashlib.sha256(path.read_bytes()).digest()
        assert head["ObjectLockMode"] == "COMPLIANCE"
        assert head["ObjectLockRetainUntilDate"] > datetime.now(UTC) + timedelta(days=29)
    version = store.list_object_versions(Bucket=locked.bucket, Prefix=there[0])["Versions"][0]["VersionId"]
    with pytest.raises(ClientError, match="AccessDenied"):
        store.delete_object(Bucket=locked.bucket, Key=there[0], VersionId=version)
    fetched = downloaded(store, locked, tmp_path / "fetched")
    command = ["python3", "-I", fetched / done.runs[0] / "verify.py", fetched, "--public-key", public]
    assert subprocess.run(command, capture_output=True).returncode == 0
    assert verify.verify(fetched, public)[1] == 0


def test_a_second_copy_puts_nothing(store, locked, small):
    copy.copy(small, locked)
    before = names(store, locked)
    done = copy.copy(small, locked)
    assert (done.runs, done.objects, done.problems) == ([], 0, [])
    assert names(store, locked) == before


@pytest.mark.parametrize("after", [False, True], ids=["before the object is there", "after it, the answer is lost"])
def test_a_copy_that_was_interrupted_at_any_object_is_completed_by_the_next(store, small, after):
    root = small
    count = len(files(root))
    for at in range(count):
        target = EvidenceCopy(bucket(store, lock=True), "x", "GOVERNANCE", 1)
        error = EndpointConnectionError(endpoint_url=f"https://{SECRET}")
        failing = Failing(store, at, after, error)
        first = copy.copy(root, target, lambda failing=failing: failing)
        (told,) = first.problems
        assert told == (
            f"evidence is not copied to {target.address}: EndpointConnectionError. Check the store's address "
            "(AWS_ENDPOINT_URL, AWS_REGION), the credentials and the network. The first run that succeeds completes the copy"
        )
        there = names(store, target)
        for run in sorted(path.name for path in root.glob("0*")):
            # A run with a manifest there is whole there.
            if f"x/{run}/{verify.MANIFEST}" in there:
                assert {f"x/{run}/{name}" for name in files(root / run)} <= set(there)
        second = copy.copy(root, target)
        assert second.problems == []
        assert sorted(names(store, target)) == sorted(f"x/{name}" for name in files(root))  # each one once
    assert [name for name in failing.tried if name.endswith(verify.MANIFEST)] == [failing.tried[3], failing.tried[7]]


def test_an_object_with_other_content_is_named_and_kept(store, locked, small):
    root = small
    first, second = sorted(path.name for path in root.glob("0*"))
    key = f"audits/prod/{first}/report/findings.json"
    store.put_object(Bucket=locked.bucket, Key=key, Body=b"forged")
    done = copy.copy(root, locked)
    assert done.runs == [second]
    (told,) = done.problems
    assert (
        f"evidence of {first} is not whole at s3://{locked.bucket}/audits/prod: object {key} exists with other" in told
    )
    assert store.get_object(Bucket=locked.bucket, Key=key)["Body"].read() == b"forged"
    assert f"audits/prod/{first}/{verify.MANIFEST}" not in names(store, locked)


def test_a_manifest_of_other_content_is_named(store, locked, small):
    root = small
    first = min(path.name for path in root.glob("0*"))
    store.put_object(Bucket=locked.bucket, Key=f"audits/prod/{first}/{verify.MANIFEST}", Body=b"{}")
    (told,) = copy.copy(root, locked).problems
    assert f"object audits/prod/{first}/{verify.MANIFEST} exists with other content than" in told


def test_an_object_that_was_put_without_a_checksum_is_compared_by_its_content(store, locked, small):
    root = small
    run = min(path.name for path in root.glob("0*"))
    name = f"{run}/report/findings.json"
    kept = {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": datetime.now(UTC) + timedelta(days=30)}
    store.put_object(Bucket=locked.bucket, Key=f"audits/prod/{name}", Body=(root / name).read_bytes(), **kept)
    assert copy.copy(root, locked).problems == []


def test_a_bucket_without_object_lock_is_refused_if_the_policy_requires_it(store, small):
    plain = EvidenceCopy(bucket(store), mode="GOVERNANCE", days=1)
    (told,) = copy.copy(small, plain).problems
    assert f"bucket {plain.bucket} has no Object Lock, which the policy requires: enable it, or remove" in told
    assert names(store, plain) == []


def test_a_bucket_without_versions_is_a_warning_and_is_used(store, small):
    plain = EvidenceCopy(bucket(store))
    done = copy.copy(small, plain)
    (told,) = done.problems
    assert told.startswith(f"bucket {plain.bucket} is not versioned: who may delete")
    assert len(done.runs) == 2 and sorted(names(store, plain)) == sorted(files(small))


@pytest.mark.parametrize(
    ("operation", "stated", "todo"),
    [
        ("HeadBucket", "NoSuchBucket", "create the bucket"),
        ("PutObject", "AccessDenied", "grant s3:PutObject,"),
        ("HeadObject", "403", "grant s3:GetObject, and s3:ListBucket"),
        ("GetBucketVersioning", "AccessDenied", "grant s3:GetBucketVersioning"),
        ("PutObject", "ExpiredToken", "renew the credentials"),
        ("PutObject", "PermanentRedirect", "set AWS_REGION"),
        ("PutObject", "SlowDown", None),
        ("DeleteObject", "AccessDenied", None),
    ],
)
def test_a_refusal_says_what_to_do(operation, stated, todo):
    told = refusal(ClientError({"Error": {"Code": stated, "Message": SECRET}}, operation))
    assert told.startswith(f"S3 refused {operation}: {stated}") and SECRET not in told
    assert f"({todo}" in told if todo else told.endswith(stated)


def test_a_missing_or_full_bucket_is_told_without_secrets(store, locked, small, monkeypatch, free_tcp_port):
    (told,) = copy.copy(small, EvidenceCopy("no-such-bucket-x")).problems
    assert told.startswith("evidence is not copied to s3://no-such-bucket-x: S3 refused") and "NoSuchBucket" in told
    full = ClientError({"Error": {"Code": "InsufficientStorage", "Message": SECRET}}, "PutObject")
    (told,) = copy.copy(small, locked, lambda: Failing(store, 3, False, full)).problems
    assert "PutObject: InsufficientStorage (make room in the store). The first run that succeeds completes" in told
    assert SECRET not in told
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://{SECRET}.localhost:{free_tcp_port}")
    (told,) = copy.copy(small, locked).problems
    assert SECRET not in told and told.startswith(f"evidence is not copied to {locked.address}: ")


def test_a_file_that_is_too_large_for_one_request_leaves_its_run_incomplete(
    store, locked, small, tmp_path, monkeypatch
):
    root = tmp_path / "evidence"
    shutil.copytree(small, root)
    run = min(path.name for path in root.glob("0*"))
    monkeypatch.setattr(copy, "LARGEST", 1 << 20)
    with (root / run / "report" / "large").open("wb") as file:
        file.truncate(copy.LARGEST + 1)
    seal(root / run)
    done = copy.copy(root, locked)
    assert len(done.runs) == 1 and f"{run}/report/large has 1,048,577 bytes" in done.problems[0]


def test_a_copy_without_time_left_ends_and_is_completed_by_the_next(store, locked, small, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(copy, "WITHIN", -1)
        first = copy.copy(small, locked)
    assert (
        first.problems[0].endswith("minutes. The first run that succeeds completes the copy")
        and names(store, locked) == []
    )
    assert len(copy.copy(small, locked).runs) == 2


@pytest.mark.parametrize("change", ["changed", "added", "removed"])
def test_a_folder_that_is_not_as_attested_is_not_locked(store, locked, small, tmp_path, change):
    root = tmp_path / "evidence"
    shutil.copytree(small, root)
    first, second = sorted(path.name for path in root.glob("0*"))
    name = {"added": "report/other.json", "changed": "report/findings.json", "removed": "verify.py"}[change]
    if change == "removed":
        (root / first / name).unlink()
    else:
        (root / first / name).write_text("forged")
    done = copy.copy(root, locked)
    assert done.runs == [second] and not any(f"/{first}/" in key for key in names(store, locked))
    (told,) = done.problems
    assert f"evidence of {first} is not whole" in told and f"nothing of it is put: {name}: " in told


def test_a_file_that_changes_while_it_is_put_leaves_its_run_incomplete(store, locked, small):
    # S3 compares the checksum of the folder's check with what it received. moto doesn't, so the answer is made up.
    refused = ClientError({"Error": {"Code": "BadDigest", "Message": SECRET}}, "PutObject")
    done = copy.copy(small, locked, lambda: Failing(store, 5, False, refused))
    first, second = sorted(path.name for path in small.glob("0*"))
    assert done.runs == [first] and f"audits/prod/{second}/{verify.MANIFEST}" not in names(store, locked)
    (told,) = done.problems
    assert f"evidence of {second} is not whole" in told and "was changed while it was put" in told


@pytest.mark.parametrize("name", ["report/findings.json", verify.MANIFEST])
@pytest.mark.parametrize(
    ("stated", "told"),
    [
        ({}, "has no Object Lock, or s3:GetObjectRetention is missing"),
        ({"ObjectLockMode": "GOVERNANCE", "days": 30}, "has Object Lock mode GOVERNANCE"),
        ({"ObjectLockMode": "COMPLIANCE", "days": 3}, "is kept until 20"),
    ],
)
def test_an_object_that_exists_and_is_not_kept_long_enough_is_named(store, locked, small, name, stated, told):
    run = min(path.name for path in small.glob("0*"))
    key, until = f"audits/prod/{run}/{name}", {}
    if days := stated.get("days"):
        until["ObjectLockRetainUntilDate"] = datetime.now(UTC) + timedelta(days=days)
    lock = {**until, **{key: value for key, value in stated.items() if key != "days"}}
    store.put_object(Bucket=locked.bucket, Key=key, Body=(small / run / name).read_bytes(), **lock)
    (problem,) = copy.copy(small, locked).problems
    assert f"evidence of {run} is at {locked.address} without the policy's retention" in problem
    assert f"object {key} {told}" in problem
