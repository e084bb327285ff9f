"""The id of a run, and the names of all resources that a run makes."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NewType

from signalbox.errors import RejectedError

RunId = NewType("RunId", str)

TIME_DIGITS, RANDOM_DIGITS = 8, 2
CLIENT_ID_DIGITS = 16  # as upstream's clients choose
MARK = "verify-"
# A run lasts some minutes, at most a quarter of an hour: what is older was left behind.
LONGEST_RUN = timedelta(hours=1)


class InvalidRunId(RejectedError):
    """Raised when a text is not the id of a run of `signalbox verify`."""


def new_run_id(now: datetime, *, random: str) -> RunId:
    """Return the id of a run that begins now: its time and two random digits, all hexadecimal."""
    return parse_run_id(f"{int(now.timestamp()):0{TIME_DIGITS}x}{random[:RANDOM_DIGITS]}")


def parse_run_id(text: str) -> RunId:
    """Return `text` as a run's id. Raises `InvalidRunId`."""
    if len(text) != TIME_DIGITS + RANDOM_DIGITS or not set(text) <= set("0123456789abcdef"):
        raise InvalidRunId(f"{text!r} is not the id of a run: {TIME_DIGITS + RANDOM_DIGITS} hexadecimal digits")
    return RunId(text)


def began_at(run: RunId) -> datetime:
    """Return the time at which a run began."""
    return datetime.fromtimestamp(int(run[:TIME_DIGITS], 16), UTC)


def is_left_over(run: RunId, *, now: datetime) -> bool:
    """Return whether a run cannot be in progress any more."""
    return now - began_at(run) > LONGEST_RUN


def run_of(name: str) -> RunId | None:
    """Return the run whose id follows `verify-` in a resource's name, or None."""
    _, mark, rest = name.partition(MARK)
    try:
        return parse_run_id(rest[: TIME_DIGITS + RANDOM_DIGITS]) if mark else None
    except InvalidRunId:
        return None


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names of a run's resources."""

    run: RunId

    @property
    def user(self) -> str:
        """The user who declares, publishes and consumes."""
        return f"{MARK}{self.run}"

    @property
    def reader(self) -> str:
        """The user whose right to read is revoked."""
        return f"{MARK}{self.run}-r"

    @property
    def topic_exchange(self) -> str:
        """A topic exchange."""
        return f"xs_{self.user}_topic"

    @property
    def ordered_exchange(self) -> str:
        """An ordered exchange."""
        return f"xs_{self.user}_ordered.fifo"

    @property
    def realm(self) -> str:
        """A live exchange."""
        return f"xs_{self.user}_live.fifo"

    @property
    def all_queue(self) -> str:
        """A queue that is bound to all messages of the topic exchange."""
        return f"q_{self.user}_all"

    @property
    def some_queue(self) -> str:
        """A queue that is bound to some messages of the topic exchange."""
        return f"q_{self.user}_some"

    @property
    def ordered_queue(self) -> str:
        """A queue of the ordered exchange."""
        return f"q_{self.user}_ordered.fifo"

    @property
    def exchanges(self) -> tuple[str, ...]:
        """All exchanges."""
        return (self.topic_exchange, self.ordered_exchange, self.realm)

    @property
    def queues(self) -> tuple[str, ...]:
        """All queues of the exchange."""
        return (self.all_queue, self.some_queue, self.ordered_queue)

    @property
    def consumer(self) -> str:
        """The deployed consumer of splitting: function, role, table and queue. Verified stages permit `demo-*`."""
        return f"demo-{MARK}{self.run}"

    @property
    def probe_queue(self) -> str:
        """A queue for questions about SQS."""
        return f"{self.consumer}-probe"

    @property
    def strange_queue(self) -> str:
        """A queue that tries to use one of the stage as its dead-letter queue."""
        return f"{self.consumer}-strange"

    def client_id(self, random: str) -> str:
        """Return a Snowflake client's id, which begins with the run's."""
        return (self.run + random)[:CLIENT_ID_DIGITS]
