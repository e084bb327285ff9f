"""AWS in this process, for every test here; DynamoDB and SQS also in the parts that run in Java."""

from pathlib import Path

import pytest

from tests.adapters.differences import difference
from tests.fakes.aws import aws, exchange_table, lease_table, live_table, rendezvous_table, split_table, sqs

__all__ = ["aws", "exchange_table", "lease_table", "live_table", "rendezvous_table", "split_table", "sqs"]
HERE = Path(__file__).parent
TABLES_AND_QUEUES = {"exchange_table", "lease_table", "live_table", "rendezvous_table", "split_table", "sqs"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that has a table or SQS on each backend."""
    if TABLES_AND_QUEUES & set(metafunc.fixturenames):
        file = metafunc.definition.path.relative_to(HERE).as_posix()
        reason = difference(file, metafunc.definition.originalname)
        marks = [pytest.mark.java, *([pytest.mark.xfail(reason=reason, strict=True)] if reason else [])]
        metafunc.fixturenames.append("backend")
        metafunc.parametrize("backend", ["moto", pytest.param("java", marks=marks)])
