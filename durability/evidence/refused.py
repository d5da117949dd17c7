"""What S3 refused, and what to do about it."""

from __future__ import annotations

from typing import Any

_NEEDED = {
    "PutObject": "s3:PutObject, for Object Lock also s3:PutObjectRetention, and for a key of KMS kms:GenerateDataKey",
    "HeadObject": "s3:GetObject, and s3:ListBucket. Without s3:ListBucket, S3 answers 403 for an object that doesn't exist",
    "GetObject": "s3:GetObject",
    "ListObjectsV2": "s3:ListBucket",
    "GetObjectLockConfiguration": "s3:GetBucketObjectLockConfiguration",
    "GetBucketVersioning": "s3:GetBucketVersioning",
}
"""The rights that a request needs."""
_LOCATION = "set AWS_REGION to the bucket's region, or AWS_ENDPOINT_URL to its store"
_KEYS = "correct the credentials"
_RENEW = "renew the credentials"
_ROOM = "make room in the store"
_DO = {
    "NoSuchBucket": "create the bucket, or correct `evidence` in the policy",
    **dict.fromkeys(
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "301", "IllegalLocationConstraint"), _LOCATION
    ),
    **dict.fromkeys(("InvalidAccessKeyId", "SignatureDoesNotMatch"), _KEYS),
    **dict.fromkeys(("ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"), _RENEW),
    "RequestTimeTooSkewed": "correct this host's clock",
    **dict.fromkeys(("QuotaExceeded", "InsufficientStorage", "507", "XMinioStorageFull"), _ROOM),
}
"""What to do, by S3's error code. Codes without an entry are faults that pass, or are rare."""
_DENIED = ("AccessDenied", "AllAccessDisabled", "403", "Forbidden")


def code(error: Any) -> str:
    """S3's error code, or the HTTP status, of a botocore ClientError."""
    return str(error.response.get("Error", {}).get("Code", ""))


def refusal(error: Any) -> str:
    """What S3 refused, and what to do. S3's text may contain anything, its code is a word."""
    stated = "".join(c for c in code(error) if c.isalnum())[:60] or "no reason"
    needed = _NEEDED.get(error.operation_name) if stated in _DENIED else None
    todo = _DO.get(stated) or (f"grant {needed}" if needed else None)
    return f"S3 refused {error.operation_name}: {stated}" + (f" ({todo})" if todo else "")
