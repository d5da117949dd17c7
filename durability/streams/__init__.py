"""Kafka Streams groups: what their members' bytes say of clients, tags and task placement."""
