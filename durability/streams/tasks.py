"""Task ids (org.apache.kafka.streams.processor.TaskId)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from durability.streams.reader import Reader

NAMED_TOPOLOGIES = 10
"""The first protocol version in which a task id has the name of its topology."""
_TRAILING = re.compile(r"(.*)_(\d{1,10})", re.DOTALL)


class TaskId(NamedTuple):
    """A task: partition of a subtopology, of the application's one unnamed topology or of a named one.

    >>> str(TaskId(1, 0)), str(TaskId(1, 0, "orders"))
    ('1_0', 'orders__1_0')
    """

    subtopology: int
    partition: int
    topology: str = ""

    def __str__(self) -> str:
        name = f"{self.topology}__" if self.topology else ""
        return f"{name}{self.subtopology}_{self.partition}"


def read_task(reader: Reader, version: int) -> TaskId:
    """A task id of an AssignmentInfo: two i32, from version 10 an i32 count and as many UTF-16BE units (the name)."""
    subtopology, partition = reader.natural("a task's subtopology"), reader.natural("a task's partition")
    if version < NAMED_TOPOLOGIES:
        return TaskId(subtopology, partition)
    units = reader.take(2 * reader.count(2, "characters of a topology's name"), "a topology's name")
    try:
        return TaskId(subtopology, partition, units.decode("utf-16-be"))
    except UnicodeDecodeError as error:
        raise reader.malformed("a topology's name is no UTF-16") from error


def task_size(version: int) -> int:
    """The fewest bytes that a task id takes."""
    return 12 if version >= NAMED_TOPOLOGIES else 8


def subtopology_of(task: str) -> str:
    """What stands before the partition in a task id's text.

    >>> subtopology_of("1_0"), subtopology_of("orders__1_10")
    ('1', 'orders__1')
    """
    return task.rpartition("_")[0]


def in_order(tasks: Iterable[str]) -> list[str]:
    """Task ids once each, by subtopology, then by partition as a number.

    >>> in_order(["0_10", "0_9", "1_0", "0_9"])
    ['0_9', '0_10', '1_0']
    """
    return sorted(set(tasks), key=_place)


def _place(task: str) -> tuple:
    def padded(text: str) -> str:
        return text.zfill(10) if text.isascii() and text.isdigit() else text

    match = _TRAILING.fullmatch(task)
    if match is None:
        return (task, 0, task)
    name, _, number = match[1].rpartition("__")
    return (f"{name}__{padded(number)}", int(match[2]), task)
