"""A plugin of pytest for the suites of kombu and Celery: keeps the tests that open a connection to a broker."""

import os
from pathlib import Path

import kombu
import pytest

CONNECTED = {"connection", "failover_connection", "manager", "celery_session_worker", "beat_node"}
CONNECTED_BY_THEMSELVES = {"test_concurrency_auto_sizes_prefork_pool"}
BROKER, NO_BROKER, LIMIT_SECONDS, UNTIL = "TEST_BROKER", "NO_BROKER", "LIMIT_SECONDS", "UNTIL"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the other tests, and bound each one that runs, if the environment says so."""
    items[:] = [
        item
        for item in items
        if CONNECTED & set(getattr(item, "fixturenames", ())) or item.name in CONNECTED_BY_THEMSELVES
    ]
    if LIMIT_SECONDS in os.environ:
        for item in items:
            item.add_marker(pytest.mark.timeout(float(os.environ[LIMIT_SECONDS])), append=False)
            item.add_marker(pytest.mark.flaky(reruns=0), append=False)


def pytest_runtest_teardown(item: pytest.Item) -> None:
    """End the run with this test if the file that the environment names exists."""
    if UNTIL in os.environ and Path(os.environ[UNTIL]).exists():
        item.session.shouldstop = "the other brokers are done"


def connection_to(*urls: str) -> kombu.Connection:
    """Return a connection of kombu's cases with the options of the broker."""
    options = {"is_secure": False, "region": "us-east-1", "wait_time_seconds": 1, "supports_fanout": True}
    return kombu.Connection(";".join(urls), transport_options=options if urls[-1].startswith("sqs") else {})


@pytest.fixture
def connection() -> kombu.Connection:
    return connection_to(os.environ[BROKER])


@pytest.fixture
def failover_connection() -> kombu.Connection:
    return connection_to(os.environ[NO_BROKER], os.environ[BROKER])


@pytest.fixture
def invalid_connection() -> kombu.Connection:
    return connection_to(os.environ[NO_BROKER])
