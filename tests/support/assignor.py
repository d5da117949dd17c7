"""Kafka's own standby assignor, run from its jar in the JVM of the tests' Spark session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from durability.runtime import jars

LONG = 1 << 40
"""A number that becomes a Java Long. It is half the acceptable lag of the tests, so no task has to warm up."""
ASSIGNMENT = "org.apache.kafka.streams.processor.internals.assignment"


@dataclass
class Client:
    """An instance as the assignor sees it. active: its active tasks, such as "0_1"."""

    tags: Mapping[str, str]
    threads: int = 1
    active: Sequence[str] = field(default_factory=list)


class KafkaAssignor:
    """Runs ClientTagAwareStandbyTaskAssignor, alone or inside HighAvailabilityTaskAssignor.

    Kafka's classes have a separate class loader, because they don't work with the logger in Spark's JVM.
    """

    def __init__(self, spark):
        self.jvm, gateway = spark._jvm, spark._sc._gateway
        paths = sorted(jars.ensure("kafka-4.3.1").glob("*.jar"))
        urls = gateway.new_array(self.jvm.java.net.URL, len(paths))
        for n, path in enumerate(paths):
            urls[n] = self.jvm.java.io.File(str(path)).toURI().toURL()
        platform = self.jvm.java.lang.ClassLoader.getPlatformClassLoader()
        self.gateway, self.loader = gateway, self.jvm.java.net.URLClassLoader(urls, platform)
        load = self._load
        self._new_state = self._constructor(f"{ASSIGNMENT}.ClientState", 2, "ProcessId")
        self._new_process = self._constructor("org.apache.kafka.streams.processor.assignment.ProcessId", 1)
        self._new_task = self._constructor("org.apache.kafka.streams.processor.TaskId", 2)
        self._new_configs = self._constructor(
            "org.apache.kafka.streams.processor.assignment.AssignmentConfigs", 5, "java.lang.Long"
        )
        thread = self.jvm.java.lang.Thread.currentThread()
        before = thread.getContextClassLoader()
        thread.setContextClassLoader(self.loader)  # Kafka's StreamsConfig finds its defaults with it
        self._configs(0, ())
        thread.setContextClassLoader(before)
        self._tag_aware = self._constructor(f"{ASSIGNMENT}.ClientTagAwareStandbyTaskAssignor", 0)()
        self._high_availability = self._constructor(f"{ASSIGNMENT}.HighAvailabilityTaskAssignor", 0)()
        self._new_racks = self._constructor(f"{ASSIGNMENT}.RackAwareTaskAssignor", 8)
        (empty,) = (m for m in load("org.apache.kafka.common.Cluster").getMethods() if m.getName() == "empty")
        self._no_cluster = empty.invoke(None, self._array(()))
        self._time = load("org.apache.kafka.common.utils.Time").getField("SYSTEM").get(None)
        self._assign = self._method(load(f"{ASSIGNMENT}.ClientTagAwareStandbyTaskAssignor"), "assign", 4)
        self._assign_all = self._method(load(f"{ASSIGNMENT}.HighAvailabilityTaskAssignor"), "assign", 5)

    def _load(self, name: str):
        return self.jvm.java.lang.Class.forName(name, True, self.loader)

    def _constructor(self, name: str, parameters: int, first: str = ""):
        found = [c for c in self._load(name).getDeclaredConstructors() if c.getParameterCount() == parameters]
        found = [c for c in found if not first or first in c.getParameterTypes()[0].getName()]
        found = [
            c for c in found if name.endswith("ClientState") is False or "Map" in c.getParameterTypes()[1].getName()
        ]
        (constructor,) = found
        constructor.setAccessible(True)
        return lambda *arguments: constructor.newInstance(self._array(arguments))

    def _method(self, owner, name: str, parameters: int):
        (method,) = [
            m
            for m in owner.getDeclaredMethods()
            if m.getName() == name and m.getParameterCount() == parameters and not m.isBridge()
        ]
        method.setAccessible(True)
        return lambda target, *arguments: method.invoke(target, self._array(arguments))

    def _array(self, arguments):
        array = self.gateway.new_array(self.jvm.java.lang.Object, len(arguments))
        for n, argument in enumerate(arguments):
            array[n] = argument
        return array

    def _task(self, name: str):
        return self._new_task(*map(int, name.split("_")))

    def _states(self, clients: Sequence[Client], with_active: bool = True):
        states, ids = self.jvm.java.util.TreeMap(), []
        for n, client in enumerate(clients):
            tags = self.jvm.java.util.HashMap()
            for key, value in client.tags.items():
                tags.put(key, value)
            process = self._new_process(self.jvm.java.util.UUID(0, n + 1))
            state = self._new_state(process, tags)
            for _ in range(client.threads):
                state.incrementCapacity()
            for task in client.active if with_active else ():
                state.assignActive(self._task(task))
            states.put(process, state)
            ids.append(process)
        return states, ids

    def _configs(self, standbys: int, tags: Iterable[str]):
        keys = self.jvm.java.util.ArrayList()
        for tag in tags:
            keys.add(tag)
        return self._new_configs(2 * LONG, 2, standbys, LONG, keys)

    def standbys(
        self, clients: Sequence[Client], stateful: Iterable[str], standbys: int, tags: Iterable[str]
    ) -> list[set[str]]:
        """The result of ClientTagAwareStandbyTaskAssignor for the `stateful` tasks: a set of tasks per client."""
        states, ids = self._states(clients)
        wanted = self.jvm.java.util.TreeSet()
        for task in stateful:
            wanted.add(self._task(task))
        self._assign(self._tag_aware, states, wanted, wanted, self._configs(standbys, tags))
        return [{str(task.toString()) for task in states.get(process).standbyTasks()} for process in ids]

    def everything(
        self,
        clients: Sequence[Client],
        tasks: Iterable[str],
        stateful: Iterable[str],
        standbys: int,
        tags: Iterable[str],
    ) -> list[tuple[set[str], set[str]]] | None:
        """(active, standby) per client, as HighAvailabilityTaskAssignor places a new application; None if in transition."""
        states, ids = self._states(clients, with_active=False)
        every, wanted, ends = self.jvm.java.util.TreeSet(), self.jvm.java.util.TreeSet(), self.jvm.java.util.HashMap()
        for task in tasks:
            every.add(self._task(task))
        for task in stateful:
            wanted.add(self._task(task))
            ends.put(self._task(task), LONG)
        for process in ids:
            states.get(process).computeTaskLags(process, ends)
        configs = self._configs(standbys, tags)
        nowhere = [self.jvm.java.util.HashMap() for _ in range(4)]
        racks = self._new_racks(self._no_cluster, *nowhere, None, configs, self._time)  # clients without client.rack
        again = self._assign_all(self._high_availability, states, every, wanted, racks, configs)
        if again:
            return None
        return [
            tuple({str(t.toString()) for t in held} for held in (state.activeTasks(), state.standbyTasks()))
            for state in map(states.get, ids)
        ]
