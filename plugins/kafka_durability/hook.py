"""Kafka clusters as Airflow Connections."""

from __future__ import annotations

from airflow.sdk import BaseHook

from durability.collect.connections import connection_settings
from durability.errors import AuditError


class KafkaHook(BaseHook):
    """Settings for reading a cluster, from a Connection of type `kafka`.

    The Connection is written as for Airflow's Kafka provider: librdkafka-style keys in the extra, `bootstrap.servers`
    among them. Where the extra leaves the servers or the SASL credentials out, host and port, login and password of the
    Connection stand in.
    """

    conn_name_attr = "kafka_conn_id"
    default_conn_name = "kafka_default"
    conn_type = "kafka"
    hook_name = "Apache Kafka (durability audit)"

    def __init__(self, kafka_conn_id: str = default_conn_name):
        super().__init__()
        self.kafka_conn_id = kafka_conn_id

    def settings(self) -> dict[str, object]:
        """What `durability.collect.collect` takes; it holds secrets, so it is never logged nor handed to another task.

        BadInput when the Connection says no address.
        """
        connection = self.get_connection(self.kafka_conn_id)
        return connection_settings(
            self.kafka_conn_id,
            connection.extra_dejson,
            host=connection.host,
            port=connection.port,
            login=connection.login,
            password=connection.password,
        )

    def get_conn(self) -> dict[str, object]:
        """The settings; the collector opens and closes its own clients."""
        return self.settings()

    def test_connection(self) -> tuple[bool, str]:
        """What Airflow's "Test" button shows: whether the cluster answered, and as what."""
        from durability.collect import collect

        try:
            topology = collect(self.kafka_conn_id, self.settings())
        except AuditError as error:
            return False, str(error)
        document = topology.document
        return True, f"{len(document['brokers'])} brokers, {len(document['topics'])} topics"
