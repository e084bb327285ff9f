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

    @property
    def events_per_second(self) -> float:
        """Return the number of events published per second."""
        return self.deliveries_per_second / self.subscribers_per_event


@dataclass(frozen=True, slots=True)
class Work:
    """The work of the functions for one delivery. At worst, each delivery has an item of its own in an outbox."""

    batch: float = 10.0  # items of an SQS call, and of an invocation of `deliver`
    deliver_seconds: float = 0.060  # per batch: posts to five connections at a time, 10 to 20 ms each
    deliver_gigabytes: float = 0.5
    read_units: float = 4.0  # session, outbox, user and grants, in one consistent BatchGetItem for a connection
    log_write_units: float = 2.0  # per event: its row in the log, and its share of a head's update
    frames_per_connection: float = 4.0  # HELLO, AUTHENTICATE, SUBSCRIBE and the call that follows it
    writes_per_frame: float = 3.0


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
    joins = load.connections / (load.connection_minutes * 60)
    yield Need("API Gateway requests a second, shared by all APIs", per_second, 10_000)
    yield Need("new connections a second, in the steady state", joins, 500)
    yield Need("seconds until all have reconnected after an outage, at 500 a second", load.connections / 500, None)
    yield Need("calls a second to the outbox, SQS FIFO with high throughput", per_second / work.batch, 70_000)
    yield Need("concurrent executions of `deliver`", per_second / work.batch * work.deliver_seconds, 1_000)
    yield Need("DynamoDB read units a second, of a table", per_second * work.read_units, 40_000)


def costs(load: Load, work: Work, prices: Prices) -> Iterator[tuple[str, float]]:
    """Yield the dollars per month of each service."""
    deliveries = load.deliveries_per_minute * MINUTES_PER_MONTH
    events = deliveries / load.subscribers_per_event
    frames = load.connections * MINUTES_PER_MONTH / load.connection_minutes * work.frames_per_connection
    messages = deliveries + 2 * frames  # each frame is answered
    first = min(messages, prices.first_messages)
    invocations = (deliveries + 2 * frames) / work.batch
    yield "API Gateway: messages", first * prices.messages + (messages - first) * prices.further_messages
    yield "API Gateway: connection minutes", load.connections * MINUTES_PER_MONTH * prices.connection_minutes
    # Messages are sent, received and deleted in batches of ten, in the outbox and in the exchange's queue.
    yield "SQS", 3 * (deliveries + events + 2 * frames) / work.batch * prices.fifo_requests
    seconds = invocations * work.deliver_seconds * work.deliver_gigabytes
    yield "Lambda", invocations * prices.invocations + seconds * prices.gigabyte_seconds
    reads = deliveries * work.read_units * prices.read_units
    yield "DynamoDB: reads", reads
    writes = events * work.log_write_units + frames * work.writes_per_frame
    yield "DynamoDB: writes", writes * prices.write_units
