"""AWS calls per batch of an ordered exchange, counted on a stage, and the event rate calculated from them."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.parts.live.order import TOPICS, WARM_UP, Trial
from benchmarks.shared.counting import Tap, tapped
from benchmarks.shared.stage import Stage
from signalbox.errors import UnavailableError
from signalbox.exchange.model.records import OrderBy

EVENTS = 100
HANDLER = "lambdas.exchange.route.handler"
DYNAMODB, SQS, FIREHOSE = "DynamoDB", "AmazonSQS", "Firehose"
SETTLED_SECONDS, END_SECONDS = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Batch:
    """The mean batch of the function `route`: its events, spread over topics, and its calls by service."""

    order_by: OrderBy
    topics: int
    events: float
    calls: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Times:
    """Assumed, not measured, milliseconds on AWS."""

    calls: Mapping[str, float]
    around: float = 30.0  # Lambda deletes a batch before it receives the next one of the same group and invokes


ASSUMED = Times({DYNAMODB: 5.0, SQS: 10.0, FIREHOSE: 20.0})
AT_ONCE = 10  # default of the setting `route_concurrency`: concurrent batches of one exchange
# SQS FIFO in high throughput mode: the limit is per partition, and a message group is in one partition.
CALLS_PER_GROUP = 300


@dataclass(frozen=True, slots=True)
class Rate:
    """The calculated events per second of an exchange on AWS, with sequential and with concurrent batches."""

    batch: Batch
    milliseconds: float
    one_by_one: float
    side_by_side: float | None
    """None if there is only one message group, whose batches are sequential."""


def count(stage: Stage, trial: Trial, say: Callable[[str], None]) -> list[Batch]:
    """Count the calls of each ordering mode with one topic and with many; counting slows the stage from then on."""
    with tapped(stage.local["endpoint_url"]) as tap:
        stage.redirect(_route(stage), tap.endpoint_url)
        found = []
        for order_by in OrderBy:
            for topics in (1, TOPICS):
                say(f"counting calls: by {order_by}, {topics} topics")
                found.append(_counted(trial, tap, order_by, topics))
        return found


def _route(stage: Stage) -> str:
    pages = stage.deployment.session().client("lambda").get_paginator("list_functions").paginate()
    (name,) = (f["FunctionName"] for page in pages for f in page["Functions"] if f["Handler"] == HANDLER)
    return str(name)


def _counted(trial: Trial, tap: Tap, order_by: OrderBy, topics: int) -> Batch:
    trial.run(order_by, topics=topics, events=WARM_UP)  # a new function instance reads more
    before = _settled(tap)
    trial.run(order_by, topics=topics, events=EVENTS)
    calls = _settled(tap) - before
    batches = sum(
        number for name, number in calls.items() if name.startswith(FIREHOSE)
    )  # history is written once per batch
    if not batches:
        raise UnavailableError("the calls of the function `route` bypassed the counting proxy")
    by_service: Counter[str] = Counter()
    for name, number in calls.items():
        by_service[name.partition(".")[0]] += number
    return Batch(order_by, topics, EVENTS / batches, {service: n / batches for service, n in by_service.items()})


def _settled(tap: Tap) -> Counter[str]:
    """Return the calls so far once there have been no others for a while: a batch ends after its events arrive."""
    calls, since, deadline = Counter(tap.calls), time.monotonic(), time.monotonic() + END_SECONDS
    while time.monotonic() < min(since + SETTLED_SECONDS, deadline):
        time.sleep(0.1)
        if calls != tap.calls:
            calls, since = Counter(tap.calls), time.monotonic()
    return calls


def rates(batches: Sequence[Batch], times: Times = ASSUMED) -> Iterator[Rate]:
    """Yield the calculated rate of each batch, from its size, its calls and the number of concurrent batches."""
    for batch in batches:
        milliseconds = times.around + _milliseconds(batch, times)
        one_by_one = batch.events * 1000 / milliseconds
        is_one_group = batch.order_by is OrderBy.EXCHANGE
        yield Rate(batch, milliseconds, one_by_one, None if is_one_group else one_by_one * AT_ONCE)


def _milliseconds(batch: Batch, times: Times) -> float:
    """Return the time of a batch's calls: the history is sent while subscribers are read and events are sent."""
    by_service = {service: times.calls[service] * number for service, number in batch.calls.items()}
    history = by_service.get(FIREHOSE, 0.0)
    delivery = times.calls[DYNAMODB] + by_service.get(SQS, 0.0)
    return sum(by_service.values()) - min(history, delivery)
