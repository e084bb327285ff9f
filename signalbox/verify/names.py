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


class NameOfRun:
    """The name of a resource as a property of a run's names."""

    def __init__(self, form: str) -> None:
        """Form each run's name from its id, at the braces."""
        self._form = form

    def __get__(self, names: "RunNames", _owner: object = None) -> str:
        """Return the name in the run of `names`."""
        return self._form.format(f"{MARK}{names.run}")


@dataclass(frozen=True, slots=True)
class RunNames:
    """The names of a run's resources."""

    run: RunId

    user = NameOfRun("{}")  # declares, publishes and consumes
    reader = NameOfRun("{}-r")  # a user whose right to read is revoked
    topic_exchange = NameOfRun("xs_{}_topic")
    ordered_exchange = NameOfRun("xs_{}_ordered.fifo")
    realm = NameOfRun("xs_{}_live.fifo")
    all_queue = NameOfRun("q_{}_all")  # bound to all messages of the topic exchange
    some_queue = NameOfRun("q_{}_some")  # bound to some of them
    ordered_queue = NameOfRun("q_{}_ordered.fifo")  # of the ordered exchange
    # The deployed consumer of splitting: function, role, table and queue. Verified stages permit `demo-*`.
    consumer = NameOfRun("demo-{}")
    probe_queue = NameOfRun("demo-{}-probe")  # for questions about SQS
    strange_queue = NameOfRun("demo-{}-strange")  # tries to use a queue of the stage as its dead-letter queue

    @property
    def exchanges(self) -> tuple[str, ...]:
        """All exchanges."""
        return (self.topic_exchange, self.ordered_exchange, self.realm)

    @property
    def queues(self) -> tuple[str, ...]:
        """All queues of the exchange."""
        return (self.all_queue, self.some_queue, self.ordered_queue)

    def client_id(self, random: str) -> str:
        """Return a Snowflake client's id, which begins with the run's."""
        return (self.run + random)[:CLIENT_ID_DIGITS]
