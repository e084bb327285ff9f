"""Counts of message groups, batches and calls of AWS for publications in each order, without times."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from multiprocessing import get_context
from typing import Any

from moto import mock_aws

from benchmarks.parts.live.calls import REGION, Realm, publication_record
from lambdas.exchange import route
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey

PUBLICATIONS, BATCH = 1_000, 10
SIZES = (1, 10, 100)
ORDERS = (OrderBy.TOPIC, OrderBy.PUBLISHER)


@dataclass(frozen=True, slots=True)
class Order:
    """The counts for 1,000 publications of sessions that take turns, each going through all topics."""

    order_by: OrderBy
    publishers: int
    topics: int
    groups: int
    """How many message groups can be routed side by side."""
    batches: int
    calls: Counter[str]
    """The calls of the function `route`, by service."""


def measure(say: Callable[[str], None]) -> list[Order]:
    """Return the counts of each order, for each number of publishers and topics."""
    found = []
    for publishers in SIZES:
        for topics in SIZES:
            say(f"{publishers} publishers, {topics} topics")
            with ProcessPoolExecutor(1, get_context("spawn")) as process:  # with its own environment variables and moto
                found += [process.submit(_counted, order_by, publishers, topics).result() for order_by in ORDERS]
    return found


def _counted(order_by: OrderBy, publishers: int, topics: int) -> Order:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    os.environ.update(AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x", AWS_DEFAULT_REGION=REGION)
    with mock_aws():
        realm = Realm(order_by)
        realm.begin()
        realm.services.clear()
        records = list(_records(order_by, publishers, topics))
        groups = {record["attributes"]["MessageGroupId"] for record in records}
        left, batches = iter(records), 0
        while batch := list(islice(left, BATCH)):
            assert route.handler({"Records": batch}, None) == {"batchItemFailures": []}
            batches += 1
        return Order(order_by, publishers, topics, len(groups), batches, realm.services)


def _records(order_by: OrderBy, publishers: int, topics: int) -> Iterator[Any]:
    for number in range(PUBLICATIONS):
        publisher, topic = number % publishers, number // publishers % topics
        yield publication_record(
            number, topic=RoutingKey(f"trial.t{topic}"), publisher=f"p{publisher}", order_by=order_by
        )
