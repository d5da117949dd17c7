"""MSK IAM: the tokens of one Connection, for its own region, role and profile.

A token is the URL of a request `kafka-cluster:Connect`, presigned by AWS Signature Version 4, in base64. MSK accepts it by
OAUTHBEARER on its IAM listeners (aws-msk-iam-auth, `IAMOAuthBearerLoginCallbackHandler`). kafka-python's own AWS_MSK_IAM
supports only one identity and one region per process.
"""

from __future__ import annotations

import base64
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from kafka.net.sasl.oauth import AbstractTokenProvider

from durability.collect.reasons import CannotAuthenticate
from durability.errors import BadInput
from durability.policy.scalars import AWS

REGION, PROFILE, ROLE = "aws.region", "aws.profile", "aws.role.arn"
SESSION_NAME, EXTERNAL_ID, STS_REGION = "aws.role.session.name", "aws.role.external.id", "aws.sts.region"
KEYS = tuple(AWS)
LIFETIME = 900
"""Seconds that a token is valid: MSK's maximum."""
FRESH = 0.8
"""The part of their lifetime after which a token or the role's credentials are renewed."""
_REGION_OF_HOST = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.(?:api\.aws|amazonaws\.com(?:\.cn)?)(?::\d+)?$")

# At DEBUG, botocore logs what it signs and STS's answers, which contain credentials.
logging.getLogger("botocore").setLevel(logging.INFO)


def token_provider(
    settings: Mapping[str, str | None], servers: Iterable[str], wrong: Callable[[str, str], BadInput]
) -> AbstractTokenProvider:
    """The provider for these `aws.*` settings.

    Without `aws.region`, the region is the one in the brokers' host names, else that of the profile or the environment.

    servers: host:port.
    wrong: makes an error from a key and a problem.
    """
    values = {key: value for key, value in settings.items() if value is not None}
    for key in sorted(values):
        if key not in KEYS:
            raise wrong(key, "unknown or unsupported setting")
        if not AWS[key].fits(values[key]):
            raise wrong(key, f"expected {AWS[key].words}")
    for key in (SESSION_NAME, EXTERNAL_ID, STS_REGION):
        if key in values and ROLE not in values:
            raise wrong(key, f"has no use without {ROLE}")
    stated = (_REGION_OF_HOST.search(server) for server in servers)
    return IamTokens(values, next((found[1] for found in stated if found), None))


@contextmanager
def refusals() -> Iterator[None]:
    """Turns botocore's errors into CannotAuthenticate, without secrets."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as exc:
        raise CannotAuthenticate(f"AWS refused {ROLE}: {code_of(exc)}") from None
    except BotoCoreError as exc:
        # Texts of botocore's errors may include a profile or an endpoint. Class names don't.
        raise CannotAuthenticate(f"AWS credentials can't be used: {type(exc).__name__}") from None


def code_of(error: Any) -> str:
    """The code of botocore's ClientError. Its text may contain anything."""
    return re.sub(r"\W", "", str(error.response.get("Error", {}).get("Code", "")))[:60] or "no reason"


class IamTokens(AbstractTokenProvider):
    """Presigns tokens. A token, and the credentials of an assumed role, are renewed before they expire."""

    def __init__(self, values: Mapping[str, str], region: str | None):
        """values: by KEYS. region: from the brokers' host names; `values` overrides it."""
        super().__init__()
        self._values, self._region = values, values.get(REGION) or region
        self._lock = threading.Lock()
        self._session: Any = None
        self._credentials: Any = None
        self._token, self._fresh_until, self._credentials_until = "", 0.0, 0.0

    def token(self) -> str:
        """Raises CannotAuthenticate if AWS gives no credentials. The error has no secrets."""
        with self._lock:
            if time.monotonic() >= self._fresh_until:
                self._token = self._presigned()
                self._fresh_until = time.monotonic() + FRESH * LIFETIME
            return self._token

    def client(self, service: str, config: Any) -> Any:
        """A client of an AWS service, with these credentials and in this region. config: botocore's.

        Raises CannotAuthenticate if AWS gives no credentials, or if no region is stated.
        """
        with self._lock, refusals():
            region = self._stated_region("and the profile states none")
            key = self._current(region)
            return self._session.client(
                service,
                region_name=region,
                aws_access_key_id=key.access_key,
                aws_secret_access_key=key.secret_key,
                aws_session_token=key.token,
                config=config,
            )

    def _presigned(self) -> str:
        with refusals():
            return self._signed()

    def _stated_region(self, otherwise: str) -> str:
        if self._session is None:
            import boto3

            self._session = boto3.Session(profile_name=self._values.get(PROFILE))
        region = self._region or self._session.region_name
        if not region:
            raise CannotAuthenticate(f"{REGION} is missing, {otherwise}")
        return region

    def _signed(self) -> str:
        from botocore.auth import SigV4QueryAuth
        from botocore.awsrequest import AWSRequest

        region = self._stated_region("and the brokers' host names state no region")
        domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
        request = AWSRequest("GET", f"https://kafka.{region}.{domain}/?Action=kafka-cluster%3AConnect")
        SigV4QueryAuth(self._current(region), "kafka-cluster", region, expires=LIFETIME).add_auth(request)
        url = f"{request.url}&User-Agent=kafka-durability-audit"
        return base64.urlsafe_b64encode(url.encode("ascii")).decode("ascii").rstrip("=")

    def _current(self, region: str) -> Any:
        """Frozen credentials: the role's, else the profile's or those of this host."""
        if ROLE in self._values:
            if time.monotonic() >= self._credentials_until:
                self._assume(self._values.get(STS_REGION) or region)
            return self._credentials
        found = self._session.get_credentials()
        if found is None:
            raise CannotAuthenticate("this host has no AWS credentials")
        return found.get_frozen_credentials()

    def _assume(self, region: str) -> None:
        """Assume the role, at STS's regional endpoint."""
        from botocore.config import Config
        from botocore.credentials import ReadOnlyCredentials

        quick = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
        sts = self._session.client("sts", region_name=region, config=quick)
        request = {"RoleArn": self._values[ROLE]}
        request["RoleSessionName"] = self._values.get(SESSION_NAME, "kafka-durability-audit")
        if EXTERNAL_ID in self._values:
            request["ExternalId"] = self._values[EXTERNAL_ID]
        given = sts.assume_role(**request)["Credentials"]
        lifetime = given["Expiration"].timestamp() - time.time()
        self._credentials = ReadOnlyCredentials(given["AccessKeyId"], given["SecretAccessKey"], given["SessionToken"])
        self._credentials_until = time.monotonic() + FRESH * max(lifetime, 0)
