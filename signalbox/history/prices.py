"""AWS list prices, the billed units of each action in the history, and the price of each action.

The prices are list prices of us-east-1 for arm64 as of `PRICES_DATE`, without volume discounts and free tiers. They are
not looked up: edit them here when they change.
"""

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import NamedTuple

MILLION = 1_000_000
PRICES_DATE = date(2026, 11, 21)
REGION = "us-east-1"
STANDARD, ORDERED = "SQS standard request", "SQS FIFO request"
# USD for a million units.
PRICES = {
    STANDARD: 0.40,
    ORDERED: 0.50,
    "SQS fair queue request": 0.10,  # in addition, for messages with a group in a standard queue
    "Lambda request": 0.20,
    "Lambda GB-millisecond": 0.0133334,
    "DynamoDB write unit": 0.625,
    "DynamoDB read unit": 0.125,
    "HTTP API request": 1.00,
    "WebSocket message": 1.00,  # up to 32 KB, in either direction
    "Firehose kilobyte": 0.047,  # 0.029 for a GB of input, 0.018 for its conversion to Parquet
    "WebSocket connection minute": 0.25,
    "CloudWatch Logs kilobyte": 0.477,  # 0.50 for a GB
    # Not in the history, so not in the report; docs/operations.md lists them all.
    "Scheduler invocation": 1.00,
    "X-Ray trace": 5.00,
    "KMS request": 3.00,
    "Config configuration item": 3_000.00,
}
# SQS bills a request for each 64 KiB; a request has up to ten messages.
REQUEST_BYTES = 65_536
REQUEST_MESSAGES = 10
# API Gateway ends a connection after two hours
# (https://docs.aws.amazon.com/apigateway/latest/developerguide/apigateway-execution-service-websocket-limits-table.html).
LONGEST_CONNECTION_MINUTES = 120
CONNECTION_MINUTE = "connection minute"
# For a batch of events: the outbox; and the version of all rights and four items about the user's rights, which an
# instance keeps for a second and for a minute.
EVENT_READS = (1, 6)
REPLY_READS = 2  # session and outbox
LOGS = "CloudWatch Logs kilobyte"
# What Lambda and a function's metrics write for a run; for runs of strangers the metrics alone, and the API's line.
RUN_LOG, METRIC_LOG, ACCESS_LOG = 1.2, 0.24, 0.33
SQS = "SQS request"  # standard or FIFO, depending on the queue
FAIR = "SQS fair queue request"  # of standard queues alone


class Usage(NamedTuple):
    """The units of a billed item that one action (`what`) of a capability uses, as lower and upper bound.

    `least` assumes full calls of ten messages; `most` assumes one message in each call.
    """

    capability: str
    what: str
    item: str
    least: float
    most: float


def _batched(capability: str, what: str, **units: float) -> list[Usage]:
    items = {"requests": SQS, "runs": "Lambda request", "gb_ms": "Lambda GB-millisecond"}
    items |= {"reads": "DynamoDB read unit", "writes": "DynamoDB write unit", "logs": LOGS}
    units |= {"logs": RUN_LOG * units["runs"]} if "runs" in units else {}
    return [Usage(capability, what, items[name], number / REQUEST_MESSAGES, number) for name, number in units.items()]


def _frames(
    what: str, *, frames: int, replies: int, reads: float, writes: float, cached: int = 0, runs: int = 0
) -> list[Usage]:
    """Return the usage of frames that clients of live send, with their replies; `runs` are those of other functions.

    API Gateway sends each frame to the inbox by itself. A reply is an item of the outbox, whose delivery reads that
    and the session. Of the `reads`, a function that has just read the exchange saves those `cached`.
    """
    messages, delivered = frames + replies, REPLY_READS * replies
    received = runs + messages
    return [
        Usage("live", what, "WebSocket message", messages, messages),
        Usage("live", what, SQS, frames * 1.2 + replies * 0.3, 3 * messages),
        Usage("live", what, "Lambda request", received / REQUEST_MESSAGES, received),
        Usage("live", what, "Lambda GB-millisecond", 60 * received / REQUEST_MESSAGES, 60 * received),
        Usage("live", what, LOGS, RUN_LOG * received / REQUEST_MESSAGES, RUN_LOG * received),
        Usage("live", what, "DynamoDB read unit", delivered + reads - cached, delivered + reads),
        Usage("live", what, "DynamoDB write unit", writes, writes),
    ]


# Counted from the code, with the consumers' calls of their queues. docs/operations.md has the cost of an idle stage,
# which is not included.
USAGES = (
    # send, receive, delete; a run of 40 ms with 1 GB; a read of the bindings and at most two counters for each batch
    *_batched("exchange", "publication", requests=3, runs=1, gb_ms=40, reads=1, writes=2),
    # the same, and the number of the key: a read and a write of its head, once for the messages of a key in a batch
    *_batched("exchange", "ordered publication", requests=3, runs=1, gb_ms=40, reads=2, writes=3),
    # the event in the log of its topic, one item of up to 1 KB, written in a transaction with the head, which both cost
    # twice; the end of the hold of a topic; the versions of two lists of subscribers for each batch
    Usage("exchange", "logged event", "DynamoDB write unit", 2.2, 4),
    *_batched("exchange", "logged event", reads=2),
    # send; the consumer's receive and delete
    *_batched("exchange", "copy", requests=3),
    Usage("exchange", "copy", FAIR, 3 / REQUEST_MESSAGES, 3),
    # send to the retry queue, receive, delete; the record of the queue
    *_batched("exchange", "retry", requests=3, runs=1, gb_ms=40, reads=1, writes=2),
    *_batched("exchange", "dead letter", requests=1),
    # receive, send, delete; the consumer's receive and delete
    *_batched("splitting", "message", requests=5, runs=1, gb_ms=20, reads=1),
    *_batched("splitting", "copy", requests=3),
    *_batched("splitting", "dead letter", requests=1),
    # The calls of broker and client, counted in docs/rendezvous.md. `most` is without collected counters.
    Usage("rendezvous", "answer", "DynamoDB write unit", 3, 6),
    Usage("rendezvous", "answer", "DynamoDB read unit", 2, 7),
    # `most` of requests is by the HTTP API; those to function URLs are in the price of the runs.
    Usage("rendezvous", "answer", "HTTP API request", 0, 2),
    Usage("rendezvous", "answer", LOGS, 2 * METRIC_LOG, 2 * METRIC_LOG + 2 * ACCESS_LOG),
    Usage("rendezvous", "answer", "Lambda request", 3, 3),
    Usage("rendezvous", "answer", "Lambda GB-millisecond", 45, 45),
    Usage("rendezvous", "refusal", "DynamoDB write unit", 1, 5),
    Usage("rendezvous", "refusal", LOGS, METRIC_LOG, METRIC_LOG),
    Usage("rendezvous", "refusal", "Lambda request", 1, 2),
    Usage("rendezvous", "refusal", "Lambda GB-millisecond", 15, 45),
    Usage("rendezvous", "client by SQS", SQS, 6.2, 8),
    Usage("rendezvous", "client by HTTP", LOGS, 0, ACCESS_LOG),
    Usage("rendezvous", "client by HTTP", "HTTP API request", 0, 1),
    Usage("rendezvous", "poll", "HTTP API request", 0, 1),
    Usage("rendezvous", "poll", LOGS, 0, ACCESS_LOG),
    Usage("rendezvous", "poll", "Lambda request", 1, 1),
    Usage("rendezvous", "poll", "Lambda GB-millisecond", 5, 5),
    Usage("rendezvous", "poll", "DynamoDB write unit", 0, 1),
    # One pool or both, with up to eight records in a unit.
    Usage("rendezvous", "poll", "DynamoDB read unit", 0.5, 4),
    # The batch of one connection: send to the outbox, receive, delete; the snapshot of the connection.
    *_batched("live", "delivery", requests=3, runs=1, gb_ms=60),
    Usage("live", "delivery", "DynamoDB read unit", *EVENT_READS),
    Usage("live", "posted event", "WebSocket message", 1, 1),
    Usage("live", CONNECTION_MINUTE, "WebSocket connection minute", 1, 1),
    # $connect stores the session and counts it, and sends its timer, which the function `session` receives.
    Usage("live", "session start", STANDARD, 1.2, 3),
    *_frames("session start", frames=2, replies=2, reads=23, cached=4, writes=11, runs=2),
    # The reply, and the item that closes the connection.
    *_frames("session end", frames=1, replies=1, reads=8, writes=6),
    Usage("live", "session end", SQS, 0.3, 3),
    *_frames("refused login", frames=1, replies=1, reads=8, cached=2, writes=4),
    Usage("live", "refused login", SQS, 0.3, 3),
    *_frames("subscription", frames=1, replies=1, reads=15, cached=2, writes=3),
    *_frames("dropped publication", frames=1, replies=0, reads=8, cached=2, writes=1),
    # Each record is billed as at least 5 KB; an event has about half a kilobyte.
    Usage("history", "event", "Firehose kilobyte", 0.5, 5),
)


class PriceRange(NamedTuple):
    """USD for a million actions: with full calls of ten messages, and with one message in each call."""

    least: float
    most: float


def _price(usage: Usage) -> PriceRange:
    """Return the price of a usage; queues of unknown kind are standard ones at least, and FIFO ones at most."""
    if usage.item == FAIR:
        return PriceRange(usage.least * PRICES[FAIR], 0)  # FIFO queues have none
    lower, upper = _queues(usage) if usage.item == SQS else (usage.item, usage.item)
    return PriceRange(usage.least * PRICES[lower], usage.most * PRICES[upper])


def _queues(usage: Usage) -> tuple[str, str]:
    own = {"live": ORDERED, "rendezvous": STANDARD}.get(usage.capability)
    own = own or {"publication": STANDARD, "ordered publication": ORDERED}.get(usage.what)
    return (own, own) if own else (STANDARD, ORDERED)


def _prices_of_actions() -> Mapping[tuple[str, str], PriceRange]:
    found: dict[tuple[str, str], PriceRange] = {}
    for usage in USAGES:
        action, price = (usage.capability, usage.what), _price(usage)
        before = found.get(action, PriceRange(0, 0))
        found[action] = PriceRange(before.least + price.least, before.most + price.most)
    return MappingProxyType(found)


# By capability and action, as in the table `cost_daily`, for messages of up to 64 KiB.
ACTION_PRICES = _prices_of_actions()
