"""Describes this package to Airflow as a provider: its operators, its hook, and the form of a Connection of type `kafka`."""

from __future__ import annotations

from durability.collect.settings import MECHANISMS, PROTOCOLS

PACKAGE = "kafka-durability-audit"
INTEGRATION = "Kafka Durability Audit"
OPERATORS = ("operators", "evaluate", "upkeep", "remediate", "outage")


def _text(label: str, description: str, **schema: object) -> dict[str, object]:
    return {"label": label, "description": description, "schema": {"type": ["string", "null"], **schema}}


# Keys of the Connection's extra, named as in librdkafka and Airflow's own Kafka provider. Other keys go into the extra field.
FIELDS = {
    "bootstrap.servers": _text("Bootstrap servers", "host:port, several separated by commas; or Host and Port above"),
    "security.protocol": _text("Security protocol", "PLAINTEXT unless chosen", enum=list(PROTOCOLS)),
    "sasl.mechanism": _text("SASL mechanism", "Needed with SASL; Login and Password above", enum=list(MECHANISMS)),
    "aws.region": _text("AWS region", "With AWS_MSK_IAM; the one in the brokers' host names unless given"),
    "aws.role.arn": _text("AWS role", "With AWS_MSK_IAM: the ARN of a role to assume, also in another account"),
    "aws.profile": _text("AWS profile", "With AWS_MSK_IAM: of this host's AWS files; its own credentials unless given"),
    "ssl.ca.location": _text("CA certificates", "File or folder (PEM); the system's unless given"),
    "ssl.certificate.location": _text("Client certificate", "File (PEM), where brokers ask for one"),
    "ssl.key.location": _text("Client key", "File (PEM)"),
    "ssl.key.password": _text("Password of the client key", "Where it has one", format="password"),
    "allow_changes": {
        "label": "Allow changes",
        "description": "Whether approved plans may change this cluster; audits only read",
        "schema": {"type": "boolean", "default": False},
    },
}


def get_provider_info() -> dict[str, object]:
    """The entry point `apache_airflow_provider`, in the form of Airflow's provider_info.schema.json.

    The plugin isn't listed here. It has its own entry point, and Airflow would load it twice.
    """
    modules = [f"kafka_durability.{name}" for name in OPERATORS]
    return {
        "package-name": PACKAGE,
        "name": INTEGRATION,
        "description": "Audits the durability of a fleet of Apache Kafka clusters, nightly, with evidence.",
        "integrations": [{"integration-name": INTEGRATION, "tags": ["apache"]}],
        "operators": [{"integration-name": INTEGRATION, "python-modules": modules}],
        "hooks": [{"integration-name": INTEGRATION, "python-modules": ["kafka_durability.hook"]}],
        "connection-types": [
            {
                "connection-type": "kafka",
                "hook-name": "Apache Kafka",
                "hook-class-name": "kafka_durability.hook.KafkaHook",
                "conn-fields": FIELDS,
                "ui-field-behaviour": {
                    "hidden-fields": ["schema"],
                    "relabeling": {"login": "SASL user name", "password": "SASL password"},
                    "placeholders": {
                        "host": "broker-1.example.org",
                        "port": "9092",
                        "bootstrap.servers": "broker-1:9092,broker-2:9092",
                    },
                },
            }
        ],
    }
