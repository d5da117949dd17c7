"""Encrypts the files of a lake on S3 with a key of AWS KMS, and warns of connections without TLS.

pyarrow can't send the headers of SSE-KMS, so boto3 writes the files. pyarrow does everything else. Spark's S3FileIO has
properties for the key.
"""

from __future__ import annotations

import os
import tempfile
from typing import IO, Any
from urllib.parse import urlsplit

import pyarrow as pa
from pyarrow import fs

from durability.addresses import is_loopback

KEY = "DURABILITY_S3_KMS_KEY"
"""The variable with a key of AWS KMS (id, ARN or alias). Without it, the bucket's default encryption applies."""
ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
IO_PROPERTIES = {"py-io-impl": "durability.lake.files.EncryptedFileIO"}
"""pyiceberg's properties for a lake with such a key."""
SPOOLED = 16 << 20
"""Bytes of a file kept in memory before its upload. Larger files use the temporary folder."""


def endpoint() -> tuple[str, str] | None:
    """The variable with the address of another S3 store, and that address."""
    return next(((name, value) for name in ENDPOINTS if (value := os.environ.get(name))), None)


def region() -> str | None:
    return os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or None


def without_tls() -> str | None:
    """A warning if the S3 store uses http and isn't on this host."""
    stated = endpoint()
    if stated is None or urlsplit(stated[1]).scheme != "http" or is_loopback(urlsplit(stated[1]).hostname or ""):
        return None
    return f"{stated[0]} is http: the lake's files cross the network unencrypted. Use an https address"


def spark_properties() -> dict[str, str]:
    """Properties of Iceberg's S3FileIO."""
    key = os.environ.get(KEY)
    return {"s3.sse.type": "kms", "s3.sse.key": key} if key else {}


def encrypting(system: fs.FileSystem) -> fs.FileSystem:
    """The file system, with encrypted writes if it is S3 and `KEY` is set."""
    key = os.environ.get(KEY)
    if not key or system.type_name != "s3":
        return system
    return fs.PyFileSystem(_Encrypting(system, key))


class _Encrypting(fs.FileSystemHandler):
    """pyarrow's S3 file system with writes by boto3. A file is uploaded when it is closed."""

    def __init__(self, system: fs.FileSystem, key: str):
        self.system, self.key = system, key
        self._made: Any = None

    @property
    def _client(self) -> Any:
        if self._made is None:
            import boto3
            from botocore.config import Config

            stated = endpoint()
            style = Config(s3={"addressing_style": "path"}) if stated else None
            self._made = boto3.client(
                "s3", endpoint_url=stated[1] if stated else None, region_name=region(), config=style
            )
        return self._made

    def open_output_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        return pa.PythonFile(_Upload(self._client, path, self.key), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> pa.NativeFile:
        raise NotImplementedError("files of a lake are never changed")

    def copy_file(self, src: str, dest: str) -> None:
        raise NotImplementedError("files of a lake are never copied")

    def move(self, src: str, dest: str) -> None:
        raise NotImplementedError("files of a lake are never moved")

    def open_input_stream(self, path: str) -> pa.NativeFile:
        return self.system.open_input_stream(path)

    def open_input_file(self, path: str) -> pa.NativeFile:
        return self.system.open_input_file(path)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        return self.system.get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        return self.system.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        """Does nothing. S3 has no folders, and objects that represent them would not be encrypted with the key."""

    def delete_dir(self, path: str) -> None:
        self.system.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self.system.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError("a bucket is never emptied")

    def delete_file(self, path: str) -> None:
        self.system.delete_file(path)

    def normalize_path(self, path: str) -> str:
        return self.system.normalize_path(path)

    def get_type_name(self) -> str:
        return "s3+kms"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Encrypting) and (self.system, self.key) == (other.system, other.key)

    __hash__ = None  # type: ignore[assignment]


class _Upload:
    """A file being written; `close` uploads it."""

    def __init__(self, client: Any, path: str, key: str):
        self._client, self._key = client, key
        self._bucket, _, self._name = path.partition("/")
        self._file: IO[bytes] = tempfile.SpooledTemporaryFile(SPOOLED)  # noqa: SIM115
        self.closed = False

    def write(self, data: Any) -> int:
        return self._file.write(data)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        """Does nothing. The upload happens at the end."""

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        from boto3.exceptions import Boto3Error
        from botocore.exceptions import BotoCoreError, ClientError

        encrypted = {"ServerSideEncryption": "aws:kms", "SSEKMSKeyId": self._key}
        with self._file as file:
            file.seek(0)
            try:
                self._client.upload_fileobj(file, self._bucket, self._name, ExtraArgs=encrypted)
            except (Boto3Error, BotoCoreError, ClientError) as error:
                raise OSError(f"encrypted with {KEY}: {error}") from error
