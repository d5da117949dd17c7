"""Kafka Streams groups: clients, tags and task placement from members' bytes, and their evaluation."""
