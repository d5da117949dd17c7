"""Fixtures for every test and doctest, one of each expensive thing a worker; see `tests/support/`.

`make test` has three workers, since most tests wait for a JVM or a broker and leave a core idle. What is expensive to set up
stays with one of them: `LONG`.
"""

import signal

import hypothesis
import pytest

# A shell starts programs in the background with SIGINT ignored. Children that tests interrupt would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine takes a second for what takes a millisecond.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")

pytest_plugins = [
    "tests.support.airflow",
    "tests.support.browser",
    "tests.support.joined",
    "tests.support.kafka_walk",
    "tests.support.spark",
    "tests.support.lake",
    "tests.support.runs",
    "tests.support.stores",
    "tests.support.warm_spark",
]

OWN_CLUSTERS = "tests/cluster/own/"
"""The folder of tests that start clusters themselves. They share a worker, so that no more than two clusters run at once."""
TOGETHER = {"kafka_cluster": "tests/cluster/", "judged_once": "tests/unit/spark_jobs/controls/"}
"""Fixtures that take so long that no two workers make one, and the folder whose modules ask for them."""
LONG = (OWN_CLUSTERS, *TOGETHER.values())
"""Folders whose modules go to one worker, the longest first."""


def scope_of(nodeid: str) -> str:
    """The folder in LONG with the test's module, else the module."""
    return next((folder for folder in LONG if nodeid.startswith(folder)), nodeid.partition("::")[0])


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests of real brokers, and starts what takes long first: what is left at the end keeps all workers busy."""
    for item in items:
        if item.nodeid.startswith("tests/cluster/"):
            item.add_marker("cluster")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    place = {folder: number for number, folder in enumerate(LONG)}
    items.sort(key=lambda item: (place.get(scope_of(item.nodeid), len(LONG)), item.path not in slow))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Fails a test that asks for a fixture of TOGETHER in another folder. xdist would hide an error of the collection."""
    for fixture, folder in TOGETHER.items():
        if fixture in getattr(item, "fixturenames", ()) and scope_of(item.nodeid) != folder:
            pytest.fail(f"{item.nodeid} asks for {fixture}: move its module into {folder}", pytrace=False)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log):
    """A module's tests go to one worker, for the fixtures of the module, and so do those of a folder in LONG."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return scope_of(nodeid)

    return Together(config, log)
