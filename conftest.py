"""Fixtures for every test and doctest, one of each expensive thing a worker; see `tests/support/`.

`make test` has two workers, since most tests wait for one JVM or another and leave a core idle. What is expensive to set up
stays with one of them: `TOGETHER`.
"""

import re

import pytest

pytest_plugins = [
    "tests.support.judge",
    "tests.support.kafka",
    "tests.support.kafka_walk",
    "tests.support.spark",
    "tests.support.lake",
    "tests.support.runs",
    "tests.support.stores",
]

TOGETHER = {
    "kafka_session": re.compile(
        r"tests/(cluster/test_(?!racks)|unit/(bench/test_bench|collect/test_fleet|streams/test_assignor)\.py)"
    ),
    "judged_once": re.compile(
        r"tests/unit/spark_jobs/controls/test_(acks|acks_unread|clusters|kips|oracle|remedies)\.py"
    ),
}
"""Fixtures of the session that take so long that no two workers make one, and the modules whose tests ask for them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first: what is left at the end keeps both workers busy."""
    for item in items:
        for fixture, modules in TOGETHER.items():
            if fixture in getattr(item, "fixturenames", ()) and not modules.match(item.nodeid):
                raise pytest.UsageError(f"{item.nodeid} asks for {fixture}: name its module in TOGETHER of conftest.py")
    kafka = TOGETHER["kafka_session"]
    slow = {i.path for i in items if i.get_closest_marker("slow") or i.get_closest_marker("cluster")}
    items.sort(key=lambda item: (not kafka.match(item.nodeid), item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """A module's tests go to one worker, for the fixtures of the module, and so do those TOGETHER."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            for fixture, modules in TOGETHER.items():
                if modules.match(nodeid):
                    return fixture
            return nodeid.partition("::")[0]

    return Together(config, log)
