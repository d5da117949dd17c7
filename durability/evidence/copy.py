"""Copies runs' evidence to a bucket on S3. An object is put once, with its checksum, and never overwritten.

A run's manifest is put last. So a run without a manifest there is incomplete, and the next copy completes it. An object that
exists with the same SHA-256 is done; with another one it is a problem, and the run stays incomplete. A run whose folder isn't as
its manifest attests is not put at all: it could not be removed for years.
"""

from __future__ import annotations

import base64
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from durability.errors import AuditError, Refused, Unreachable
from durability.evidence import verify
from durability.evidence.refused import code, refusal
from durability.evidence.verify import MANIFEST, RUN, Run
from durability.lake import encryption
from durability.plain import plural
from durability.policy.model import EvidenceCopy

LARGEST = 5 << 30
"""Bytes of the largest object that S3 takes in one request. Larger files aren't copied."""
THREADS = 8
EXISTS = ("PreconditionFailed", "412")
CHANGED = "BadDigest"
BUSY = ("ConditionalRequestConflict", "409")
LATER = "The first run that succeeds completes the copy"
WITHIN = 300
"""Seconds after which no further file is put: the report waits for the copy."""
THOROUGH = 3600
"""The same for a thorough copy, for which nothing waits."""
READ = 1 << 20
SLACK = timedelta(days=1)
"""By how much clocks may differ where retention is checked."""


@dataclass
class Copied:
    """What a copy did.

    runs: the runs that are complete there now and weren't before. objects: how many were put.
    problems: what a user has to look at. The evidence in the folder is whole in any case.
    """

    runs: list[str] = field(default_factory=list)
    objects: int = 0
    problems: list[str] = field(default_factory=list)


def copy(
    root: Path, target: EvidenceCopy, make_client: Callable[[], Any] | None = None, *, thorough: bool = False
) -> Copied:
    """Copy the runs in `root` (OUT/evidence) that aren't complete at `target`, the oldest first.

    thorough: put objects again that are missing in complete runs, too, and take an hour if need be.
    make_client: makes boto3's S3 client; by default as for a lake, from the environment.
    Raises nothing that concerns the store: `problems` has it.
    """
    done = Copied()
    failure = _attempt(lambda: _copy(root, _Bucket((make_client or client)(), target, thorough), done, thorough))
    if failure:
        done.problems.append(f"evidence is not copied to {target.address}: {failure}. {LATER}")
    return done


def _copy(root: Path, bucket: _Bucket, done: Copied, thorough: bool) -> None:
    runs = sorted((name for name in os.listdir(root) if RUN.fullmatch(name)), key=lambda name: int(name.split("-")[0]))
    try:
        done.problems += bucket.warnings()
        incomplete, complete = bucket.compare(root, runs, done)
        if thorough:
            incomplete += bucket.lacking(root, complete, done)
        for name in incomplete:
            try:
                for was_put in _put(bucket, root / name):
                    done.objects += was_put
                done.runs.append(name)
            except (_Differs, OSError) as error:  # of this run alone
                done.problems.append(f"evidence of {name} is not whole at {bucket.target.address}: {error}")
    finally:
        done.problems += bucket.not_kept()


def unsafe(run: Run, target: EvidenceCopy, make_client: Callable[[], Any] | None = None) -> str | None:
    """Why the folder of a run must not be removed. None: each of its files is at `target`, as attested, and safe there.

    An object is safe if the policy's Object Lock keeps it, or if the bucket keeps versions.
    Asks for each object again: that a run was copied once doesn't show that its objects still exist, or what they have.
    run: as `durability.evidence.verify.check_run` found the folder, without problems.
    """
    found: list[str | None] = []
    failure = _attempt(lambda: found.append(_Bucket((make_client or client)(), target, True).unsafe(run)))
    return failure or found[0]


def _attempt(work: Callable[[], None]) -> str | None:
    """Do something with the store. Returns why it failed, without secrets; None if it didn't."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        work()
    except AuditError as error:
        return str(error)
    except ClientError as error:
        return refusal(error)
    except (Boto3Error, BotoCoreError) as error:
        # Texts of botocore's errors may include an endpoint. Class names don't.
        check = "Check the store's address (AWS_ENDPOINT_URL, AWS_REGION), the credentials and the network"
        return f"{type(error).__name__}. {check}"
    return None


def client() -> Any:
    """An S3 client with the settings of a lake on S3: AWS_ENDPOINT_URL, AWS_REGION and the credentials of the environment."""
    import boto3
    from botocore.config import Config

    stated = encryption.endpoint()
    config = Config(
        connect_timeout=5,
        read_timeout=60,
        retries={"total_max_attempts": 3},
        s3={"addressing_style": "path"} if stated else {},
    )
    address = stated[1] if stated else None
    return boto3.client("s3", endpoint_url=address, region_name=encryption.region(), config=config)


class _Differs(Exception):
    """An object or a file that can't be part of the copy. The text names it."""


def _put(bucket: _Bucket, folder: Path) -> Iterator[bool]:
    """Put a run's files, its manifest last. Yields for each whether it was put. Raises _Differs."""
    run = verify.check_run(folder)
    if run.problems:
        more = f", and {len(run.problems) - 1:,} more" if len(run.problems) > 1 else ""
        raise _Differs(
            f"the folder isn't as attested, so nothing of it is put: {run.problems[0]}{more}; verify {folder}"
        )

    def put(name: str) -> bool:
        return bucket.put(folder / name, f"{folder.name}/{name}", run.digests[name])

    pool = ThreadPoolExecutor(THREADS)
    try:
        yield from pool.map(put, sorted(name for name in run.digests if name != MANIFEST))
    finally:
        pool.shutdown(cancel_futures=True)
    yield put(MANIFEST)
    bucket.check_kept(f"{folder.name}/{MANIFEST}")


class _Bucket:
    """The store's bucket. weak: by run, an object that isn't kept as the policy requires, and why."""

    def __init__(self, store: Any, target: EvidenceCopy, thorough: bool):
        self.store, self.target, self.within = store, target, THOROUGH if thorough else WITHIN
        self.until = time.monotonic() + self.within
        self.weak: dict[str, str] = {}
        prefix = target.prefix.strip("/")
        self.prefix = f"{prefix}/" if prefix else ""

    def warnings(self) -> list[str]:
        """What weakens the copy. Raises Refused if the bucket can't keep objects as the policy requires."""
        from botocore.exceptions import ClientError

        bucket = self.target.bucket
        if self.target.mode:
            try:
                lock = self.store.get_object_lock_configuration(Bucket=bucket)["ObjectLockConfiguration"]
                enabled = lock.get("ObjectLockEnabled") == "Enabled"
            except ClientError as error:
                if code(error) not in ("ObjectLockConfigurationNotFoundError", "NotImplemented", "404"):
                    raise
                enabled = False
            if not enabled:
                raise Refused(
                    f"bucket {bucket} has no Object Lock, which the policy requires: "
                    "enable it, or remove `object_lock` from the policy's `evidence`"
                )
        try:
            versioning = self.store.get_bucket_versioning(Bucket=bucket).get("Status")
        except ClientError as error:
            if code(error) not in ("AccessDenied", "NotImplemented", "403"):
                raise
            return [f"it is unknown whether bucket {bucket} is versioned: {refusal(error)}"]
        if versioning == "Enabled":
            return []
        return [
            f"bucket {bucket} is not versioned: who may delete objects can remove evidence without a trace. Enable versioning"
        ]

    def compare(self, root: Path, runs: list[str], done: Copied) -> tuple[list[str], list[str]]:
        """The runs without a manifest there, and those with the same one, in the order of `runs`.

        A manifest of other content there is a problem. The same one doesn't show that the other objects still exist.
        """
        if not runs:
            return [], []
        with ThreadPoolExecutor(min(THREADS, len(runs))) as pool:
            there = list(pool.map(lambda run: self._there(root / run / MANIFEST, f"{run}/{MANIFEST}"), runs))
        for run, same in zip(runs, there, strict=True):
            if same is False:
                differs = f"object {self.prefix}{run}/{MANIFEST} exists with other content than {root / run / MANIFEST}"
                done.problems.append(f"evidence of {run} is not whole at {self.target.address}: {differs}")
        missing = [run for run, same in zip(runs, there, strict=True) if same is None]
        return missing, [run for run, same in zip(runs, there, strict=True) if same]

    def lacking(self, root: Path, runs: list[str], done: Copied) -> list[str]:
        """Those of the runs of which objects are missing, which is a problem."""
        with ThreadPoolExecutor(THREADS) as pool:
            there = dict(zip(runs, pool.map(self._names, runs), strict=True))
        found = []
        for run, names in there.items():
            files = {path.relative_to(root).as_posix() for path in (root / run).rglob("*") if path.is_file()}
            if missing := sorted(files - names):
                lost = f"{plural(len(missing), 'object')} of {run} disappeared from {self.target.address}"
                done.problems.append(f"{lost} and must be put again, such as {self.prefix}{missing[0]}")
                found.append(run)
        return found

    def unsafe(self, run: Run) -> str | None:
        """As the function of this name."""
        warnings = self.warnings()
        if warnings and not self.target.mode:  # who may delete objects could remove the last copy
            return warnings[0]

        def differs(name: str) -> str | None:
            self._check_time()
            key = f"{run.name}/{name}"
            if (head := self._head(key)) is None:
                return f"object {self.prefix}{key} is missing"
            if self._checksum(key, head) != _in_base64(run.digests[name]):
                return f"object {self.prefix}{key} has other content than {run.folder / name}"
            self._check_kept(key, head)
            return None

        with ThreadPoolExecutor(THREADS) as pool:
            found = [problem for problem in pool.map(differs, sorted(run.digests)) if problem]
        return next(iter(found + self.not_kept()), None)

    def _names(self, run: str) -> set[str]:
        """The names of a run's objects, without the prefix."""
        self._check_time()
        pages = self.store.get_paginator("list_objects_v2")
        where = {"Bucket": self.target.bucket, "Prefix": f"{self.prefix}{run}/"}
        found = (entry["Key"] for page in pages.paginate(**where) for entry in page.get("Contents", ()))
        return {name.removeprefix(self.prefix) for name in found}

    def _there(self, path: Path, name: str) -> bool | None:
        """Is the object the same as the file? None: it doesn't exist."""
        self._check_time()
        if (head := self._head(name)) is None:
            return None
        same = path.is_file() and self._checksum(name, head) == _sha256(path)
        if same:
            self._check_kept(name, head)
        return same

    def put(self, path: Path, name: str, sha256: str) -> bool:
        """Put a file, unless the object exists with the same content. Returns whether it was put. Raises _Differs.

        sha256: what the file must have, in hex.
        """
        from botocore.exceptions import ClientError

        self._check_time()
        size = path.stat().st_size
        if size > LARGEST:
            raise _Differs(f"{name} has {size:,} bytes, and S3 takes {LARGEST:,} in one request")
        checksum = _in_base64(sha256)
        for last in (False, True):
            with path.open("rb") as file:
                try:
                    self.store.put_object(
                        Bucket=self.target.bucket,
                        Key=self.prefix + name,
                        Body=file,
                        ChecksumAlgorithm="SHA256",  # some stores require it for Object Lock
                        ChecksumSHA256=checksum,
                        IfNoneMatch="*",
                        **self._stated(),
                    )
                    return True
                except ClientError as error:
                    if code(error) in BUSY and not last:  # another request for this object, which may have failed
                        continue
                    if code(error) == CHANGED:
                        raise _Differs(f"{name} was changed while it was put, and S3 refused it") from None
                    if code(error) not in EXISTS:
                        raise Unreachable(f"{name}: {refusal(error)}") from None
            break
        head = self._head(name) or {}
        if self._checksum(name, head) != checksum:
            raise _Differs(f"object {self.prefix}{name} exists with other content, and is not overwritten")
        self._check_kept(name, head)
        return False

    def _check_time(self) -> None:
        if time.monotonic() > self.until:
            raise Unreachable(f"it takes longer than {self.within // 60} minutes")

    def _stated(self) -> dict[str, Any]:
        """Encryption, as for a lake on S3, and retention."""
        key = os.environ.get(encryption.KEY)
        encrypted = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": key} if key else {}
        if not self.target.mode:
            return encrypted
        until = datetime.now(UTC).replace(microsecond=0) + timedelta(days=self.target.days)
        return {**encrypted, "ObjectLockMode": self.target.mode, "ObjectLockRetainUntilDate": until}

    def _checksum(self, name: str, head: dict[str, Any]) -> str | None:
        """The SHA-256 of an object, in base64. One that was put without a checksum is read."""
        if head.get("ChecksumSHA256") and head.get("ChecksumType", "FULL_OBJECT") == "FULL_OBJECT":
            return head["ChecksumSHA256"]
        body = self.store.get_object(Bucket=self.target.bucket, Key=self.prefix + name)["Body"]
        digest = hashlib.sha256()
        for part in body.iter_chunks(READ):
            digest.update(part)
        return base64.b64encode(digest.digest()).decode()

    def check_kept(self, name: str) -> None:
        """Check that the store took an object's retention, too."""
        if self.target.mode:
            self._check_kept(name, self._head(name) or {})

    def _check_kept(self, name: str, head: dict[str, Any]) -> None:
        """Compare an object's retention with the policy's, from when the object was put."""
        if not self.target.mode:
            return
        mode, until, put = (head.get(key) for key in ("ObjectLockMode", "ObjectLockRetainUntilDate", "LastModified"))
        if mode not in (self.target.mode, "COMPLIANCE"):
            found = (
                f"has Object Lock mode {mode}" if mode else "has no Object Lock, or s3:GetObjectRetention is missing"
            )
        elif not until or not put or until - put < timedelta(days=self.target.days) - SLACK:
            found = f"is kept until {until:%Y-%m-%d}" if until else "is kept for no time"
        else:
            return
        self.weak.setdefault(name.split("/")[0], f"object {self.prefix}{name} {found}")

    def not_kept(self) -> list[str]:
        """A problem if objects that exist aren't kept as the policy requires. A changed policy doesn't change them."""
        if not self.weak:
            return []
        run = min(self.weak)
        more = f", and of {len(self.weak) - 1:,} more runs" if len(self.weak) > 1 else ""
        required = f"{self.target.mode} for {self.target.days:,} days"
        return [
            f"evidence of {run}{more} is at {self.target.address} without the policy's retention ({required}): "
            f"{self.weak[run]}"
        ]

    def _head(self, name: str) -> dict[str, Any] | None:
        """An object's properties; None if it doesn't exist."""
        from botocore.exceptions import ClientError

        try:
            return self.store.head_object(Bucket=self.target.bucket, Key=self.prefix + name, ChecksumMode="ENABLED")
        except ClientError as error:
            if code(error) in ("404", "NoSuchKey", "NotFound"):
                return None
            raise


def _sha256(path: Path) -> str:
    """In base64, as S3 states it."""
    with path.open("rb") as file:
        return _in_base64(hashlib.file_digest(file, "sha256").hexdigest())


def _in_base64(sha256: str) -> str:
    """A SHA-256 in hex as S3 states it."""
    return base64.b64encode(bytes.fromhex(sha256)).decode()
