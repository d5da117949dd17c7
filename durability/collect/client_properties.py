"""Reads a Java client's properties file (--command-config of Kafka's own tools) into the settings of `collect`.

Names that Java and librdkafka share are kept. sasl.jaas.config, PEM stores and trust stores are translated. The file contains
secrets, so errors name the key and never its value.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from durability.errors import BadInput

# Java's own TLS and SASL classes, and clients' settings that reading metadata doesn't depend on.
_JAVA_ONLY = """
default.api.timeout.ms key.deserializer key.serializer receive.buffer.bytes sasl.client.callback.handler.class
sasl.login.callback.handler.class sasl.login.class security.providers send.buffer.bytes ssl.enabled.protocols
ssl.engine.factory.class ssl.keymanager.algorithm ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm value.deserializer value.serializer
"""
_JAAS = {
    "username": "sasl.username",
    "password": "sasl.password",
    "clientId": "sasl.oauthbearer.client.id",
    "clientSecret": "sasl.oauthbearer.client.secret",
    "scope": "sasl.oauthbearer.scope",
    "serviceName": "sasl.kerberos.service.name",
    "awsProfileName": "aws.profile",
    "awsRoleArn": "aws.role.arn",
    "awsRoleSessionName": "aws.role.session.name",
    "awsRoleExternalId": "aws.role.external.id",
    "awsStsRegion": "aws.sts.region",
}
_BY_HANDLER = "IAMOAuthBearerLoginCallbackHandler"
"""The class of aws-msk-iam-auth. With it, OAUTHBEARER means MSK's IAM."""
_OPTION = re.compile(r"""(\w+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read(path: Path) -> dict[str, object]:
    """The settings in a properties file.

    Raises BadInput, which names the file and the key, for a missing file, an unsupported JAAS configuration, and a key store
    that isn't PEM.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(path, "", f"can't be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from None
    return translated(parse(text), path)


def parse(text: str) -> dict[str, str]:
    r"""The keys and values of a Java properties file (java.util.Properties.load): comments, continued lines, escapes.

    >>> parse("# no\n a.b = c\\\n   d\nkey: v\\=1\nempty\n")
    {'a.b': 'cd', 'key': 'v=1', 'empty': ''}
    """
    values: dict[str, str] = {}
    lines = iter(re.split(r"\r\n|\r|\n", text))
    for line in lines:
        logical = line.lstrip(" \t\f")
        if not logical or logical[0] in "#!":
            continue
        parts = [logical]
        while (len(parts[-1]) - len(parts[-1].rstrip("\\"))) % 2:
            parts[-1] = parts[-1][:-1]
            parts.append(next(lines, "").lstrip(" \t\f"))
        logical = "".join(parts)
        matched = re.match(r"((?:\\.|[^\\\s=:])*)[ \t\f]*[=:]?[ \t\f]*(.*)", logical, re.DOTALL)
        if matched:
            values[_unescaped(matched[1])] = _unescaped(matched[2])
    return values


def _unescaped(text: str) -> str:
    def plain(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])

    return re.sub(r"\\(?:u([0-9A-Fa-f]{4})|(.))", plain, text, flags=re.DOTALL)


def translated(properties: Mapping[str, str], where: object) -> dict[str, object]:
    """Java's properties as librdkafka's settings. Other keys are kept, and `durability.collect.settings` refuses them by name."""
    given = {key: value.strip() for key, value in properties.items()}
    settings: dict[str, object] = {}
    for key in sorted(given):
        value = given[key]
        if key == "sasl.jaas.config":
            for name, stated in _jaas(value, where).items():
                settings.setdefault(name, stated)
        elif key == "ssl.endpoint.identification.algorithm":
            settings[key] = value or "none"  # Java uses an empty value
        elif not key.startswith(("ssl.truststore.", "ssl.keystore.")) and key not in _JAVA_ONLY.split():
            settings[key] = value
    if given.get("sasl.login.callback.handler.class", "").endswith(_BY_HANDLER):
        settings["sasl.mechanism"] = "AWS_MSK_IAM"
    return settings | _trust_store(given, where) | _key_store(given, where)


def _jaas(value: str, where: object) -> dict[str, str]:
    """Options of the one login module in a `sasl.jaas.config`."""
    module, *rest = value.strip().rstrip(";").split(None, 1) or [""]
    options = "".join(rest)
    if not module.endswith("LoginModule") or ";" in re.sub(r'"(?:[^"\\]|\\.)*"', "", options):
        raise BadInput(
            where, "sasl.jaas.config", 'expected one login module: "<class>LoginModule required name=\\"value\\";"'
        )
    stated = {}
    for found in _OPTION.finditer(options):
        quoted = found[2] if found[2] is not None else found[3]
        if found[1] in _JAAS:
            stated[_JAAS[found[1]]] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else found[4]
    return stated


def _trust_store(given: Mapping[str, str], where: object) -> dict[str, object]:
    if pem := given.get("ssl.truststore.certificates"):
        return {"ssl.ca.pem": pem}
    location = given.get("ssl.truststore.location")
    if not location:
        return {}
    if given.get("ssl.truststore.type", "JKS").upper() == "PEM":
        return {"ssl.ca.location": location}
    return {"ssl.ca.pem": _listed_certificates(location, given.get("ssl.truststore.password"), where)}


def _listed_certificates(location: str, password: str | None, where: object) -> str:
    """The certificates of a JKS or PKCS12 store as PEM, listed by keytool."""
    key = "ssl.truststore.location"
    home = os.environ.get("JAVA_HOME")
    keytool = shutil.which("keytool", path=str(Path(home, "bin")) if home else None)
    if keytool is None:
        raise BadInput(where, key, "a JKS or PKCS12 store needs Java's keytool to be read; expected PEM otherwise")
    variable = "DURABILITY_STORE_PASSWORD"  # only in the child's environment, because every user can read arguments
    command = [keytool, "-J-XX:TieredStopAtLevel=1", "-list", "-rfc", "-keystore", location]
    command += ["-storepass:env", variable] if password else []
    environment = {**os.environ, **({variable: password} if password else {})}
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    found = re.findall(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", done.stdout, re.DOTALL)
    if done.returncode or not found:
        raise BadInput(where, key, "keytool can't read certificates from that store; check the path and the password")
    return "\n".join(found) + "\n"


def _key_store(given: Mapping[str, str], where: object) -> dict[str, object]:
    if given.get("ssl.keystore.key") or given.get("ssl.keystore.certificate.chain"):
        raise BadInput(
            where, "ssl.keystore.key", "expected the key and its certificates in a PEM file: ssl.keystore.location"
        )
    location = given.get("ssl.keystore.location")
    if not location:
        return {}
    if given.get("ssl.keystore.type", "JKS").upper() != "PEM":
        raise BadInput(
            where,
            "ssl.keystore.location",
            "expected PEM (ssl.keystore.type=PEM). Convert a PKCS12 store with `openssl pkcs12 -in store.p12 -out store.pem`",
        )
    return {"ssl.certificate.location": location}
