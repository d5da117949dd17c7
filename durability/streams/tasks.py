"""Task ids as text (org.apache.kafka.streams.processor.TaskId)."""

from __future__ import annotations

import re
from collections.abc import Iterable

NAMED_TOPOLOGIES = 10
"""The first protocol version in which a task id has the name of its topology."""
_TRAILING = re.compile(r"(.*)_(\d{1,10})", re.DOTALL)


def task_id(subtopology: int, partition: int, topology: str = "") -> str:
    """The id of the task for one partition of a subtopology. topology: "" is the application's one unnamed topology.

    >>> task_id(1, 0), task_id(1, 0, "orders")
    ('1_0', 'orders__1_0')
    """
    return f"{topology}__{subtopology}_{partition}" if topology else f"{subtopology}_{partition}"


def subtopology_of(task: str) -> str:
    """The part of a task id before the partition.

    >>> subtopology_of("1_0"), subtopology_of("orders__1_10")
    ('1', 'orders__1')
    """
    return task.rpartition("_")[0]


def in_order(tasks: Iterable[str]) -> list[str]:
    """Distinct task ids, by subtopology, then by partition as a number.

    >>> in_order(["0_10", "0_9", "1_0", "0_9"])
    ['0_9', '0_10', '1_0']
    """
    return sorted(set(tasks), key=_sort_key)


def _sort_key(task: str) -> tuple:
    match = _TRAILING.fullmatch(task)
    if match is None:
        return (task, 0, task)
    name, _, number = match[1].rpartition("__")
    padded = number.zfill(10) if number.isascii() and number.isdigit() else number
    return (f"{name}__{padded}", int(match[2]), task)
