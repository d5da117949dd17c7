"""Kafka clusters as Airflow Connections."""

from __future__ import annotations

from airflow.sdk import BaseHook

from durability.errors import AuditError, BadInput

SERVERS = "bootstrap.servers"


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
        settings: dict[str, object] = dict(connection.extra_dejson)
        if not settings.get(SERVERS) and connection.host:
            settings[SERVERS] = f"{connection.host}:{connection.port or 9092}"
        if not settings.get(SERVERS):
            raise BadInput(f"Connection {self.kafka_conn_id}", SERVERS, "missing; expected host:port in the extra")
        if connection.login:
            settings.setdefault("sasl.username", connection.login)
        if connection.password:
            settings.setdefault("sasl.password", connection.password)
        return settings

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
