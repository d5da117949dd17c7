"""Fixtures for every test and doctest, one of each expensive thing a test session; see `tests/support/`."""

pytest_plugins = [
    "tests.support.judge",
    "tests.support.kafka",
    "tests.support.kafka_walk",
    "tests.support.spark",
    "tests.support.lake",
    "tests.support.runs",
    "tests.support.stores",
]
