"""The number of SQS calls for forwarding, counted with the real rules and a counting sender."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from signalbox.filters.languages import Languages
from signalbox.messages import Message
from signalbox.queues import QueueName
from signalbox.sending import Batch, SentBatch
from signalbox.splitting.forwarding.batch_sender import BatchSender
from signalbox.splitting.forwarding.decider import Decider, FilterLimits
from signalbox.splitting.forwarding.filter_budget import FilterBudget
from signalbox.splitting.forwarding.route import Route
from signalbox.splitting.forwarding.splitter import Splitter
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import QueueUse
from signalbox.splitting.model.session_config import QueueId
from signalbox.splitting.model.split import Phase, Split, SplitQueue, SplitSession, Stage
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import StoredSplit

MESSAGES = 1_000
BATCH = 10  # the maximum that Lambda receives and deletes in one call
FLOOR = 3 * MESSAGES // BATCH
"""Receive, send and delete in batches of ten: fewer calls are not possible."""
STANDARD, FIFO = QueueName("memes"), QueueName("memes.fifo")
NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
LANGUAGES = Languages()


@dataclass(frozen=True, slots=True)
class Case:
    """A split queue and its load: `sharing` sessions and the deployed consumer each claim an equal share."""

    sessions: int
    sharing: int
    groups: int | None = None

    @property
    def queue(self) -> QueueName:
        """Return the queue: a FIFO queue if its messages have groups."""
        return FIFO if self.groups else STANDARD


CASES = (
    *(Case(sessions, sharing=0) for sessions in (0, 1, 3, 10)),
    *(Case(sessions, sharing=sessions) for sessions in (1, 3, 10)),
    *(Case(1, sharing=0, groups=groups) for groups in (1_000, 10, 1)),
)


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls for one case: Lambda's own and those of the function."""

    case: Case
    received: int
    sent: int
    deleted: int

    @property
    def total(self) -> int:
        """Return the sum of all calls."""
        return self.received + self.sent + self.deleted

    @property
    def times_floor(self) -> float:
        """Return the sum as a multiple of the floor."""
        return self.total / FLOOR


@dataclass(slots=True)
class CountingSender:
    """A `QueueSender` that accepts and counts everything."""

    calls: int = 0
    messages: int = 0

    def send(self, batch: Batch) -> SentBatch:
        """Count a call."""
        self.calls += 1
        self.messages += len(batch.deliveries)
        return SentBatch()


@dataclass(slots=True)
class _OneSplit:
    """`Splits` with one record that never changes."""

    stored: StoredSplit

    def of_queue(self, _original: QueueName, **_known: object) -> StoredSplit:
        return self.stored


class _AllOpen:
    """`QueueUses` in which every queue is open; its writes are not SQS's."""

    def extend(self, name: QueueName, *, until: datetime) -> bool:  # noqa: ARG002 - the port's parameters
        return True

    def close(self, name: QueueName, *, seen: QueueUse, now: datetime) -> bool:  # noqa: ARG002
        return False

    def of(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueUse]:
        return dict.fromkeys(names, QueueUse())


def count() -> Iterator[Calls]:
    """Yield the calls of each case."""
    for case in CASES:
        yield _counted(case)


def _counted(case: Case) -> Calls:
    sender = CountingSender()
    uses = UseRecorder(_AllOpen(), lambda: NOW)
    limits = FilterLimits(LANGUAGES, total=timedelta(seconds=10), settle=timedelta(seconds=22))
    splits = _OneSplit(StoredSplit(split_of(case.sessions), 1, ()))
    splitter = Splitter(
        Decider(splits, uses, limits, lambda: NOW),  # type: ignore[arg-type] # all that is asked of splits
        None,  # no queue is kept
        BatchSender(sender, uses, None, None, None, lambda: NOW),  # type: ignore[arg-type] # nothing closes or fails
        lambda _events: None,
        lambda: NOW,
    )
    batches = [messages(case, start) for start in range(0, MESSAGES, BATCH)]
    for batch in batches:
        done = splitter.forward(batch, case.queue)
        assert not done.not_done
    return Calls(case, len(batches), sender.calls, len(batches))


def messages(case: Case, start: int) -> list[Message]:
    """Return a batch whose messages belong to the sharing sessions in rotation."""
    return [_message(number, case) for number in range(start, start + BATCH)]


def _message(number: int, case: Case) -> Message:
    owner = number % (case.sharing + 1)  # the last share is the deployed consumer's
    color = f"color-{owner}" if owner < case.sharing else "nobody"
    return message(number, color, group=f"group-{number % case.groups}" if case.groups else None)


def message(number: int, color: str, *, group: str | None = None) -> Message:
    """Return a message in the form that Lambda passes it."""
    sent_at = str(round(NOW.timestamp() * 1000))
    attributes = {"SentTimestamp": sent_at, "ApproximateFirstReceiveTimestamp": sent_at, "ApproximateReceiveCount": "1"}
    if group:
        attributes |= {"MessageGroupId": group, "MessageDeduplicationId": str(number)}
    document = {
        "MessageId": str(number),
        "ReceiptHandle": f"handle-{number}",
        "Body": json.dumps({"number": number, "text": "x" * 200}),
        "Attributes": attributes,
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value}
            for name, value in (("color", color), ("tenant", "acme"), ("trace", f"{number:032x}"))
        },
    }
    return Message.parse(document)


def pattern_of(number: int) -> str:
    """Return the pattern of a session's filter for `color`."""
    return f"^color-{number}$"


def split_of(sessions: int) -> Split:
    """Return the record of a split with this number of ready sessions."""
    queues = tuple(
        SplitQueue(QueueId(name), name, QueueName(f"mirrord-deployed-{name}"), timedelta(seconds=30))
        for name in (STANDARD, FIFO)
    )
    found = tuple(_session(number) for number in range(sessions))
    target = Target.parse("lambda/meme-app")
    return Split(target, queues, found, Stage.SPLIT, LONG_AGO, timedelta(seconds=120), was_split=True)


def route_of(sessions: int) -> Route:
    """Return the route of the standard queue with compiled filters."""
    split = split_of(sessions)
    stored = StoredSplit(split, 1, ())
    settle = timedelta(seconds=22)
    return Route.of(stored, split.queues[0], budget=budget(), read_at=NOW, settle=settle, known={})


def budget() -> FilterBudget:
    """Return the time of all filters in one call."""
    return FilterBudget.of(LANGUAGES, timedelta(seconds=10))


def _session(number: int) -> SplitSession:
    entry = {"queue_type": "SQS", "message_filter": {"color": pattern_of(number)}}
    return SplitSession(
        session_id=SessionId(f"session-{number}"),
        owner="benchmark",
        config=json.dumps({"feature": {"split_queues": {"*": entry}}}),
        started_at=LONG_AGO,
        heartbeat_at=LONG_AGO,
        phase=Phase.READY,
        since=LONG_AGO,
        queues={name: QueueName(f"mirrord-{number}-{name}") for name in (STANDARD, FIFO)},
        stolen=frozenset({STANDARD, FIFO}),
        effective_at=LONG_AGO,
    )
