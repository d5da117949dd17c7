"""Kafka clusters as Airflow Connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.sdk import BaseHook

from durability.collect.connections import connection_settings
from durability.errors import AuditError, Refused
from kafka_durability.connections import find

if TYPE_CHECKING:
    from airflow.sdk import Connection

CHANGES = "allow_changes"


class KafkaHook(BaseHook):
    """Settings for reading a cluster, from a Connection of type `kafka`.

    The Connection has the form of Airflow's Kafka provider: librdkafka-style keys in the extra, including `bootstrap.servers`.
    If the extra has no servers or SASL credentials, host and port, or login and password, of the Connection are used.
    """

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka"

    def __init__(self, kafka_conn_id: str = default_conn_name):
        super().__init__()
        self.kafka_conn_id = kafka_conn_id

    def settings(self) -> dict[str, object]:
        """Settings for `durability.collect.collect`. They contain secrets and are never logged or passed to another task.

        Raises Refused if there is no such Connection, and BadInput if it has no address.
        """
        connection = self._stated()
        return connection_settings(
            self.kafka_conn_id,
            connection.extra_dejson,
            host=connection.host,
            port=connection.port,
            login=connection.login,
            password=connection.password,
        )

    def allows_changes(self) -> bool:
        """Has the Connection's extra `allow_changes: true`? In a Connection in URI form it is text. Refused without one."""
        return str(self._stated().extra_dejson.get(CHANGES)).lower() == "true"

    def _stated(self) -> Connection:
        if (connection := find(self.kafka_conn_id)) is None:
            raise Refused(
                f"there is no Connection {self.kafka_conn_id}, which the clusters file names: add it to Airflow"
            )
        return connection

    def get_conn(self) -> dict[str, object]:
        """The settings. The collector opens and closes its own clients."""
        return self.settings()

    def test_connection(self) -> tuple[bool, str]:
        """The result of Airflow's Test button: whether the cluster answers within ten seconds. Reads Metadata only.

        Of the settings, the text shows addresses only, because others may be secrets.
        """
        from durability.collect.probe import probe

        try:
            answer = probe("of this Connection", self.settings())
        except AuditError as error:
            return False, str(error)
        except Exception as error:
            return (
                False,
                f"The test failed with {type(error).__name__}; its text isn't shown, since secrets may be in it.",
            )
        brokers = f"{answer.brokers} broker{'' if answer.brokers == 1 else 's'}"
        return True, f"Cluster {answer.cluster_id or 'without an id'} answered: {brokers} up. Only Metadata was read."
