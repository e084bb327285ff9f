"""The AWS quotas and costs of many live connections: a calculation with its inputs."""

from collections.abc import Iterator
from dataclasses import dataclass

MINUTES_PER_MONTH = 30 * 24 * 60
MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a stage. A delivery is one event to one connection."""

    connections: int = 100_000
    deliveries_per_minute: int = 1_000_000
    subscribers_per_event: int = 100
    connection_minutes: int = 120
    """The duration after which API Gateway closes a connection."""

    @property
    def deliveries_per_second(self) -> float:
        """Return the number of events posted to connections per second."""
        return self.deliveries_per_minute / 60


@dataclass(frozen=True, slots=True)
class Work:
    """The work of the functions. Units and calls are those that tests count (tests/handlers/*/test_billed_calls.py).

    `events_per_item` is the number of events that reach a connection in one item of its outbox: 1 if each comes alone,
    up to ten if a publisher sends a burst of them, which the function `route` then processes as one batch. With
    `is_batched` the client receives them in one WebSocket message, which tests/unit/live/outbox/test_writer.py counts.
    """

    events_per_item: float = 1.0
    is_batched: bool = False
    batch: float = 10.0  # items of an SQS call, and of an invocation of `deliver`
    around_seconds: float = 0.020  # assumed: of an invocation of `deliver`, for its read and for what it records
    post_seconds: float = 0.015  # assumed: API Gateway takes 10 to 20 ms for a post
    posts_at_once: float = 5.0  # assumed, of ten threads: their processor time is limited
    deliver_gigabytes: float = 0.5
    outbox_reads: float = 1.0  # counted: for each item, the record of the outbox with its copy of the session
    # Counted: user, grants and groups, unless the instance has read them within the last minute. The version of the
    # grants of groups is one item for all users of a realm.
    rights_reads: float = 3.0
    rights_kept_seconds: float = 60.0
    version_reads: float = 1.0  # counted: for each instance once a second, the version of all rights
    users: int = 500  # assumed; they decide how often an instance has read a user's rights within the last minute
    event_writes: float = 5.0  # counted, for an event alone: its row and the head, twice in a transaction; the counter
    burst_writes: float = 2.0  # counted: for each further event of the same topic in the batch
    frames_per_connection: float = 4.0  # HELLO, AUTHENTICATE, SUBSCRIBE and the call that follows it
    writes_per_frame: float = 3.0

    @property
    def posts_per_item(self) -> float:
        """Return the number of WebSocket messages with which the events of an item are posted."""
        return 1.0 if self.is_batched else self.events_per_item

    @property
    def deliver_seconds(self) -> float:
        """Return the seconds of an invocation of `deliver`, which posts the events of several items."""
        return self.around_seconds + self.batch * self.posts_per_item * self.post_seconds / self.posts_at_once

    def instances(self, load: Load) -> float:
        """Return the number of instances of `deliver` at a time."""
        return load.deliveries_per_second / self.events_per_item / self.batch * self.deliver_seconds

    def reads(self, load: Load) -> float:
        """Return the read units of an item.

        A user's items reach all instances alike, at a rate r each. An instance reads the user's rights, uses them for k
        seconds, and then waits 1/r for the next item: of kr + 1 items, one is read for.
        """
        of_instance = load.deliveries_per_second / self.events_per_item / self.instances(load)
        of_user = of_instance / self.users
        rights = self.rights_reads / (self.rights_kept_seconds * of_user + 1)
        return self.outbox_reads + rights + self.version_reads / (of_instance + 1)

    def change_reads(self, load: Load) -> float:
        """Return the read units with which all instances read the rights of all users again, after a change."""
        return self.instances(load) * self.users * self.rights_reads

    def writes(self) -> float:
        """Return the write units of an event."""
        return (self.event_writes + (self.events_per_item - 1) * self.burst_writes) / self.events_per_item


ALONE, IN_BURSTS = Work(), Work(events_per_item=10.0)
IN_BATCHES = Work(events_per_item=10.0, is_batched=True)


@dataclass(frozen=True, slots=True)
class Prices:
    """On-demand prices of us-east-1 in US dollars; AWS's pages are authoritative."""

    messages: float = 1.00 / MILLION  # API Gateway, the first billion of a month
    further_messages: float = 0.80 / MILLION
    first_messages: float = 1e9
    connection_minutes: float = 0.25 / MILLION
    fifo_requests: float = 0.50 / MILLION
    invocations: float = 0.20 / MILLION
    gigabyte_seconds: float = 0.0000133334  # arm64
    read_units: float = 0.125 / MILLION
    write_units: float = 0.625 / MILLION


@dataclass(frozen=True, slots=True)
class Need:
    """The need for a quota, and the quota's value in a new account."""

    what: str
    needed: float
    quota: float | None

    @property
    def is_enough(self) -> bool:
        """Return whether the quota suffices without an increase."""
        return self.quota is None or self.needed <= self.quota


def needs(load: Load, work: Work) -> Iterator[Need]:
    """Yield the need for each relevant quota."""
    per_second = load.deliveries_per_second
    items = per_second / work.events_per_item
    joins = load.connections / (load.connection_minutes * 60)
    posts = items * work.posts_per_item
    yield Need("API Gateway requests a second, shared by all APIs", posts, 10_000)
    yield Need("new connections a second, in the steady state", joins, 500)
    yield Need("seconds until all have reconnected after an outage, at 500 a second", load.connections / 500, None)
    yield Need("calls a second to the outbox, SQS FIFO with high throughput", items / work.batch, 70_000)
    yield Need("concurrent executions of `deliver`", work.instances(load), 1_000)
    yield Need("DynamoDB read units a second, of a table", items * work.reads(load), 40_000)


def costs(load: Load, work: Work, prices: Prices) -> Iterator[tuple[str, float]]:
    """Yield the dollars per month of each service."""
    deliveries = load.deliveries_per_minute * MINUTES_PER_MONTH
    events = deliveries / load.subscribers_per_event
    frames = load.connections * MINUTES_PER_MONTH / load.connection_minutes * work.frames_per_connection
    items = deliveries / work.events_per_item
    messages = items * work.posts_per_item + 2 * frames  # each frame is answered
    first = min(messages, prices.first_messages)
    invocations = (items + 2 * frames) / work.batch
    yield "API Gateway: messages", first * prices.messages + (messages - first) * prices.further_messages
    yield "API Gateway: connection minutes", load.connections * MINUTES_PER_MONTH * prices.connection_minutes
    # Messages are sent, received and deleted in batches of ten, in the outbox and in the exchange's queue.
    requests = (items + events + 2 * frames) / work.batch
    yield "SQS", 3 * requests * prices.fifo_requests
    seconds = invocations * work.deliver_seconds * work.deliver_gigabytes
    yield "Lambda", invocations * prices.invocations + seconds * prices.gigabyte_seconds
    yield "DynamoDB: reads", items * work.reads(load) * prices.read_units
    writes = events * work.writes() + frames * work.writes_per_frame
    yield "DynamoDB: writes", writes * prices.write_units
