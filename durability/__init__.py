"""The domain: what is known of Kafka clusters, what is wanted of them, and what was found. No Airflow, no Spark."""

__version__ = "0.1.0"
