"""Builds the commands of Kafka's tools as text that can be pasted into bash.

A remedy is either a script (commands and comments, one per line) or advice without a command. A command contains topic names,
safe folder names and ids, and no other name. Topic names have no shell characters; validation of a document checks this.
"""

from __future__ import annotations

import re

CONFIGS = 'kafka-configs --bootstrap-server "$BOOTSTRAP" --alter'
UNDER_REPLICATED = 'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --under-replicated-partitions'
UNAVAILABLE = 'kafka-topics --bootstrap-server "$BOOTSTRAP" --describe --unavailable-partitions'
ELECT_PREFERRED = 'kafka-leader-election --bootstrap-server "$BOOTSTRAP" --election-type preferred'
REASSIGN = 'kafka-reassign-partitions --bootstrap-server "$BOOTSTRAP"'
RUNNING = f"{REASSIGN} --list"


BREAKS = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
"""Characters that could end a line of shell: control characters (Unicode category Cc) and line separators."""


def comment(text: str) -> str:
    """`text` as one line of shell comment; characters that could end the line become spaces.

    >>> comment("rack:a\\nrm -r / down")
    '# rack:a rm -r / down'
    """
    return "# " + BREAKS.sub(" ", text)


def script(*lines: str | None) -> str:
    """A script of these lines, each a command or a comment. None is left out."""
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
    """Does this remedy start with a comment? Such a remedy is a script."""
    return text.startswith("#")
