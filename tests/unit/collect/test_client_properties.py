"""A Java client's properties file is read as Kafka's own tools read it, and shows no secret in an error."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from durability.collect import client_properties
from durability.collect.settings import client_config
from durability.errors import BadInput

SCRAM = r"""
# as kafka-topics takes it
security.protocol = SASL_SSL
sasl.mechanism: SCRAM-SHA-512
sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
    username="audit\\"or" \
    password="p\\w;=1";
ssl.endpoint.identification.algorithm=
ssl.enabled.protocols=TLSv1.3
"""


def read(folder: Path, text: str) -> dict[str, object]:
    path = folder / "client.properties"
    path.write_text(text)
    return client_properties.read(path)


def test_scram_with_options_in_quotes(tmp_path):
    settings = read(tmp_path, SCRAM)
    assert settings == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": 'audit"or',
        # The file's own escapes go first, then those of the JAAS string.
        "sasl.password": "pw;=1",
        "ssl.endpoint.identification.algorithm": "none",
    }
    config = client_config({"bootstrap.servers": "a:9093", **settings})
    assert (config["sasl_plain_username"], config["sasl_mechanism"]) == ('audit"or', "SCRAM-SHA-512")
    assert config["ssl_context"].check_hostname is False


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "sasl.jaas.config=x.OAuthBearerLoginModule required clientId='c' clientSecret=s scope=\"a b\" ;\n"
            "sasl.oauthbearer.token.endpoint.url=https://idp/token",
            {
                "sasl.oauthbearer.client.id": "c",
                "sasl.oauthbearer.client.secret": "s",
                "sasl.oauthbearer.scope": "a b",
                "sasl.oauthbearer.token.endpoint.url": "https://idp/token",
            },
        ),
        (
            "sasl.mechanism=AWS_MSK_IAM\nsasl.jaas.config=software.amazon.msk.auth.iam.IAMLoginModule required;\n"
            "sasl.client.callback.handler.class=software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            {"sasl.mechanism": "AWS_MSK_IAM"},
        ),
        (
            "sasl.mechanism=OAUTHBEARER\naws.region=eu-west-1\n"
            "sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
            'awsRoleArn="arn:aws:iam::123456789012:role/audit" awsRoleSessionName=a awsStsRegion="us-east-1" awsDebug=true;\n'
            "sasl.login.callback.handler.class=software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "aws.region": "eu-west-1",
                "aws.role.arn": "arn:aws:iam::123456789012:role/audit",
                "aws.role.session.name": "a",
                "aws.sts.region": "us-east-1",
            },
        ),
        (
            "ssl.truststore.type=PEM\nssl.truststore.location=/ca.pem\n"
            "ssl.keystore.type=PEM\nssl.keystore.location=/me.pem\nssl.key.password=k",
            {"ssl.ca.location": "/ca.pem", "ssl.certificate.location": "/me.pem", "ssl.key.password": "k"},
        ),
    ],
)
def test_other_mechanisms_and_pem_stores(tmp_path, text, expected):
    assert read(tmp_path, text) == expected


def test_a_trust_store_is_read_by_keytool_and_its_password_is_no_argument(tmp_path, monkeypatch):
    store = tmp_path / "trust.p12"
    made = [
        "-alias",
        "ca",
        "-dname",
        "CN=test",
        "-keyalg",
        "EC",
        "-ext",
        "bc=ca:true",
        "-keystore",
        str(store),
        "-storepass",
        "hunter2",
    ]
    subprocess.run(["keytool", "-genkeypair", *made], check=True, capture_output=True)
    asked = []
    run = subprocess.run
    monkeypatch.setattr(subprocess, "run", lambda command, **more: (asked.append(command), run(command, **more))[1])
    settings = read(tmp_path, f"ssl.truststore.location={store}\nssl.truststore.password=hunter2\n")
    context = client_config({"bootstrap.servers": "a:1", "security.protocol": "SSL", **settings})["ssl_context"]
    assert any(ca["subject"] == ((("commonName", "test"),),) for ca in context.get_ca_certs())
    assert "hunter2" not in " ".join(asked[0])


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ssl.truststore.location=/nowhere.jks\nssl.truststore.password=hunter2", "ssl.truststore.location"),
        ("ssl.keystore.location=/me.jks\nssl.keystore.password=hunter2", "ssl.keystore.location"),
        ("sasl.jaas.config=hunter2", "sasl.jaas.config"),
    ],
)
def test_what_cannot_be_used_is_named_without_its_value(tmp_path, text, key):
    with pytest.raises(BadInput, match=key) as refused:
        read(tmp_path, text)
    assert "hunter2" not in str(refused.value)


def test_a_mistyped_key_is_refused_by_name(tmp_path):
    settings = read(tmp_path, "security.protocl=SASL_SSL")
    with pytest.raises(BadInput, match=r"security\.protocl"):
        client_config({"bootstrap.servers": "a:1", **settings})


def test_a_missing_file(tmp_path):
    with pytest.raises(BadInput, match="can't be read: No such file"):
        client_properties.read(tmp_path / "none")
