"""AWS in this process, for every test here; DynamoDB and SQS also in the parts that run in Java."""

from pathlib import Path

import pytest

from tests.adapters.differences import difference
from tests.fakes.aws import BACKENDS, aws, exchange_table, lease_table, live_table, rendezvous_table, split_table, sqs
from tests.postgres import cluster_database, postgres_server

__all__ = ["aws", "exchange_table", "lease_table", "live_table", "rendezvous_table", "split_table", "sqs"]
__all__ += ["cluster_database", "postgres_server"]
HERE = Path(__file__).parent
TABLES_AND_QUEUES = {"exchange_table", "lease_table", "live_table", "rendezvous_table", "split_table", "sqs"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that has a table or SQS on each backend."""
    if TABLES_AND_QUEUES & set(metafunc.fixturenames):
        metafunc.fixturenames.append("backend")
        metafunc.parametrize("backend", BACKENDS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests of the table of differences to fail on ElasticMQ."""
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("java") and HERE in item.path.parents:
            reason = difference(item.path.relative_to(HERE).as_posix(), item.name)
            if reason:
                item.add_marker(pytest.mark.xfail(reason=reason, strict=True))
