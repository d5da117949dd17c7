"""Kafka's commands as text that bash takes as it is.

A remedy is either a script, newline-separated commands and comments, or a sentence of advice without a command. Topic names
hold nothing that a shell reads (checked when a document is read); no other name stands in a command.
"""

from __future__ import annotations

import re

CONFIGS = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter'
UNDER_REPLICATED = 'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --under-replicated-partitions'
REASSIGN = 'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP"'
RUNNING = f"{REASSIGN} --list"


BREAKS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
"""Control characters (Unicode's category Cc) and its line separators: what could end a line of shell."""


def comment(text: str) -> str:
    """`text` as one line of shell comment, whatever stands in it.

    >>> comment("rack:a\\nrm -r / down")
    '# rack:a rm -r / down'
    """
    return "# " + BREAKS.sub(" ", text)


def script(*lines: str | None) -> str:
    """Lines of shell, each a command or a comment; None is left out."""
    return "\n".join(line for line in lines if line is not None)


def topic_config(topic: str, setting: str, value: object) -> str:
    """The command that sets a topic override."""
    return f"{CONFIGS} --entity-type topics --entity-name {topic} --add-config {setting}={value}"


def broker_config(broker: str, setting: str, value: object) -> str:
    """The command that sets one broker's dynamic value."""
    return f"{CONFIGS} --entity-type brokers --entity-name {broker} --add-config {setting}={value}"


def cluster_config(setting: str, value: object) -> str:
    """The command that sets a cluster-wide dynamic default."""
    return f"{CONFIGS} --entity-type brokers --entity-default --add-config {setting}={value}"


def is_script(text: str) -> bool:
    """Does a remedy start with a comment or a command?"""
    return text.startswith("#")
