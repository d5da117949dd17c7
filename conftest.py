"""Fixtures for every test and doctest, one of each expensive thing a worker; see `tests/support/`.

`make test` has three workers, since most tests wait for a JVM or a broker and leave a core idle. What is expensive to set up
stays with one of them: `TOGETHER`.
"""

import pytest

pytest_plugins = [
    "tests.support.airflow",
    "tests.support.judge",
    "tests.support.kafka_walk",
    "tests.support.spark",
    "tests.support.lake",
    "tests.support.runs",
    "tests.support.stores",
]

TOGETHER = {"kafka_cluster": "tests/cluster/", "judged_once": "tests/unit/spark_jobs/controls/"}
"""Fixtures that take so long that no two workers make one, and the folder whose tests ask for them."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests of real brokers, and starts what takes long first: what is left at the end keeps all workers busy."""
    for item in items:
        for fixture, folder in TOGETHER.items():
            if fixture in getattr(item, "fixturenames", ()) and not item.nodeid.startswith(folder):
                raise pytest.UsageError(f"{item.nodeid} asks for {fixture}: move its module into {folder}")
        if item.nodeid.startswith("tests/cluster/"):
            item.add_marker("cluster")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    long = tuple(TOGETHER.values())
    items.sort(key=lambda item: (not item.nodeid.startswith(long), item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """A module's tests go to one worker, for the fixtures of the module, and so do those of a folder in TOGETHER."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return next((f for f in TOGETHER.values() if nodeid.startswith(f)), nodeid.partition("::")[0])

    return Together(config, log)
