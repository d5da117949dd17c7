"""MSK IAM: each Connection has tokens of its own region and role, whatever the others of the fleet have."""

from __future__ import annotations

import base64
import logging
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from moto import mock_aws

from durability.collect import msk_iam
from durability.collect.reasons import CannotAuthenticate
from durability.collect.settings import client_config
from durability.errors import BadInput

ROLE = "arn:aws:iam::{}:role/audit"
SECRET = "hunter2-very-secret"
MSK = {"security.protocol": "SASL_SSL", "sasl.mechanism": "AWS_MSK_IAM"}


@pytest.fixture
def aws(monkeypatch, tmp_path):
    """A host with credentials of its own and two profiles, and AWS on paper."""
    for name in ("AWS_PROFILE", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "credentials").write_text(
        f"[dev]\naws_access_key_id = AKIADEV\naws_secret_access_key = {SECRET}\n"
        f"[ops]\naws_access_key_id = AKIAOPS\naws_secret_access_key = {SECRET}\n"
    )
    (tmp_path / "config").write_text("[profile ops]\nregion = ap-south-1\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with mock_aws():
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIAHOST")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        yield


def provider(host: str = "kafka-1.example.com", **aws: str):
    stated = {f"aws.{key.replace('_', '.')}": value for key, value in aws.items()}
    config = client_config({"bootstrap.servers": f"{host}:9098", **MSK, **stated}, "the connection of cluster eu")
    assert config["sasl_mechanism"] == "OAUTHBEARER"
    return config["sasl_oauth_token_provider"]


def signed(token: str) -> tuple[str, dict[str, str]]:
    """The host of a token's URL and its query."""
    url = urlsplit(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode())
    return url.hostname, {name: values[0] for name, values in parse_qs(url.query).items()}


def scope(token: str) -> tuple[str, str]:
    """Access key and region that a token is signed with."""
    key, _, region, service, _ = signed(token)[1]["X-Amz-Credential"].split("/")
    assert service == "kafka-cluster"
    return key, region


def assumed(token: str) -> str:
    """The role that a token's credentials are of, as AWS knows them by their access key."""
    key, token_of_session = scope(token)[0], signed(token)[1]["X-Amz-Security-Token"]
    named = {"aws_access_key_id": key, "aws_secret_access_key": "x", "aws_session_token": token_of_session}
    return boto3.client("sts", region_name="us-east-1", **named).get_caller_identity()["Arn"]


def test_two_connections_have_tokens_of_their_own_region_and_role(aws):
    accounts = {"111111111111": "eu-west-1", "222222222222": "us-east-2"}
    tokens = [provider(region=r, role_arn=ROLE.format(a)).token() for a, r in accounts.items()]
    for token, (account, region) in zip(tokens, accounts.items(), strict=True):
        assert signed(token)[0] == f"kafka.{region}.amazonaws.com"
        assert scope(token)[1] == region
        assert assumed(token) == f"arn:aws:sts::{account}:assumed-role/audit/kafka-durability-audit"
        assert signed(token)[1]["Action"] == "kafka-cluster:Connect"
        assert signed(token)[1]["X-Amz-Expires"] == "900"


def test_the_region_is_stated_or_of_the_host_name_or_of_the_profile(aws):
    host = "b-1.demo.x1.c2.kafka.eu-central-1.amazonaws.com"
    assert scope(provider(host).token()) == ("AKIAHOST", "eu-central-1")
    assert scope(provider(host, region="eu-west-1").token()) == ("AKIAHOST", "eu-west-1")
    assert scope(provider("boot-x.c1.kafka-serverless.us-west-2.amazonaws.com").token())[1] == "us-west-2"
    assert scope(provider(profile="ops").token()) == ("AKIAOPS", "ap-south-1")
    assert scope(provider(host, profile="dev").token()) == ("AKIADEV", "eu-central-1")
    with pytest.raises(CannotAuthenticate, match=r"aws\.region is missing"):
        provider().token()


def test_a_token_is_kept_while_it_is_fresh_and_the_role_is_assumed_once(aws, monkeypatch):
    tokens, now, roles = provider(region="eu-west-1", role_arn=ROLE.format("1" * 12)), [0.0], []
    assume = tokens._assume
    monkeypatch.setattr(msk_iam.time, "monotonic", lambda: now[0])
    tokens._fresh_until = tokens._credentials_until = -1.0
    monkeypatch.setattr(tokens, "_assume", lambda region: (roles.append(region), assume(region)))
    first = tokens.token()
    now[0] = 700
    assert tokens.token() == first
    now[0] = 721
    assert tokens.token() and roles == ["eu-west-1"]
    now[0] = 2881
    assert tokens.token() and roles == ["eu-west-1"] * 2


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"aws.region": SECRET}, "aws.region"),
        ({"aws.role.arn": SECRET}, "aws.role.arn"),
        ({"aws.role.session.name": "a b"}, "aws.role.session.name"),
        ({"aws.role.external.id": SECRET}, "aws.role.external.id"),
        ({"aws.profil": SECRET}, "aws.profil"),
        (
            {"aws.region": "eu-west-1", "sasl.mechanism": "PLAIN", "sasl.username": "u", "sasl.password": "p"},
            "aws.region",
        ),
        ({"security.protocol": "SASL_PLAINTEXT"}, "security.protocol"),
    ],
)
def test_a_wrong_setting_is_named_and_its_value_is_not_shown(change, key):
    with pytest.raises(BadInput) as error:
        client_config({"bootstrap.servers": "a:1", **MSK, **change}, "the connection of cluster eu")
    assert str(error.value).startswith(f"the connection of cluster eu, {key}: ")
    assert "hunter2" not in str(error.value)


def test_what_aws_refuses_is_said_without_a_secret_and_nothing_of_it_is_logged(aws, monkeypatch, caplog):
    from botocore.exceptions import ClientError

    caplog.set_level(logging.DEBUG)
    role = {"region": "eu-west-1", "role_arn": ROLE.format("1" * 12), "role_external_id": SECRET}
    granted = provider(**role)
    token = granted.token()
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": SECRET}}, "AssumeRole")

    def refuse(region):
        raise refused

    denied = provider(**role)
    monkeypatch.setattr(denied, "_assume", refuse)
    with pytest.raises(CannotAuthenticate) as error:
        denied.token()
    assert str(error.value).endswith("AWS refused aws.role.arn: AccessDenied")
    with pytest.raises(CannotAuthenticate, match=r"ProfileNotFound$"):
        provider(region="eu-west-1", profile="none").token()
    written = caplog.text
    assert SECRET not in written
    assert token not in written and signed(token)[1]["X-Amz-Security-Token"] not in written
    assert granted._credentials.secret_key not in written


def test_a_host_without_credentials_says_so(aws, monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", "/nonexistent")
    with pytest.raises(CannotAuthenticate, match="this host has no AWS credentials"):
        provider(region="eu-west-1").token()
