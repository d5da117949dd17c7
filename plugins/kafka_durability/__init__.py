"""The Airflow provider: a hook for Kafka Connections, and one thin operator per step of an audit."""
