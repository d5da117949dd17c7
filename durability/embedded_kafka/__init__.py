"""The embedded cluster: real brokers from Kafka's own jars, for the demo and for tests."""
