"""What a batch of an ordered exchange asks of AWS, counted on a stage, and what that makes there: a calculation."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.counting import Tap, tapped
from benchmarks.live_order import TOPICS, WARM_UP, Trial
from benchmarks.stage import Stage
from signalbox.errors import UnavailableError
from signalbox.exchange.model.records import OrderBy

EVENTS = 100
HANDLER = "lambdas.exchange.route.handler"
DYNAMODB, SQS, FIREHOSE = "DynamoDB", "AmazonSQS", "Firehose"
SETTLED_SECONDS, END_SECONDS = 1.0, 60.0


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of the function `route` in the mean: its events, of so many topics in turn, and its calls by service."""

    order_by: OrderBy
    topics: int
    events: float
    calls: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds on AWS: all assumed, none measured."""

    calls: Mapping[str, float]
    around: float = 30.0  # Lambda deletes a batch, and only then receives and hands over the next of the same group


ASSUMED = Times({DYNAMODB: 5.0, SQS: 10.0, FIREHOSE: 20.0})
AT_ONCE = 10  # setting `route_concurrency`, unless a stage says otherwise: batches of one exchange
# SQS in high throughput mode, in which these queues are: of a partition, and a group is in one of them.
CALLS_PER_GROUP = 300


@dataclass(frozen=True, slots=True)
class Rate:
    """Events a second that an exchange takes on AWS, if such batches come one after the other, or side by side."""

    batch: Batch
    milliseconds: float
    one_by_one: float
    side_by_side: float | None
    """None where there is one group, and nothing can be."""


def count(stage: Stage, trial: Trial, say: Callable[[str], None]) -> list[Batch]:
    """Count in each order with one topic and with many; from here on the stage is slower by the counting."""
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
    trial.run(order_by, topics=topics, events=WARM_UP)  # a function that is new reads more
    before = _settled(tap)
    trial.run(order_by, topics=topics, events=EVENTS)
    calls = _settled(tap) - before
    batches = sum(number for name, number in calls.items() if name.startswith(FIREHOSE))  # history is written by batch
    if not batches:
        raise UnavailableError("the calls of the function `route` did not pass by where they are counted")
    by_service: Counter[str] = Counter()
    for name, number in calls.items():
        by_service[name.partition(".")[0]] += number
    return Batch(order_by, topics, EVENTS / batches, {service: n / batches for service, n in by_service.items()})


def _settled(tap: Tap) -> Counter[str]:
    """Return the calls so far, when there have been no others for a while: a batch ends after its events came."""
    calls, since, deadline = Counter(tap.calls), time.monotonic(), time.monotonic() + END_SECONDS
    while time.monotonic() < min(since + SETTLED_SECONDS, deadline):
        time.sleep(0.1)
        if calls != tap.calls:
            calls, since = Counter(tap.calls), time.monotonic()
    return calls


def rates(batches: Sequence[Batch], times: Times = ASSUMED) -> Iterator[Rate]:
    """Yield what batches make: what is in them and how many run at a time is all that sets the pace."""
    for batch in batches:
        milliseconds = times.around + sum(times.calls[service] * number for service, number in batch.calls.items())
        one_by_one = batch.events * 1000 / milliseconds
        is_one_group = batch.order_by is OrderBy.EXCHANGE
        yield Rate(batch, milliseconds, one_by_one, None if is_one_group else one_by_one * AT_ONCE)
