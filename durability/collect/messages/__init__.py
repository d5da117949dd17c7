"""Messages that kafka-python doesn't define. Their fields are in Kafka's own JSON notation, beside these classes."""

from kafka.protocol.api_message import ApiMessage


class StreamsGroupDescribeRequest(ApiMessage, load_json=__name__):  # type: ignore[call-arg]
    """KIP-1071, API key 89: describe groups of type streams, by id."""


class StreamsGroupDescribeResponse(ApiMessage, load_json=__name__):  # type: ignore[call-arg]
    """Each group's topology, and its members with their tags, tasks and target tasks."""
