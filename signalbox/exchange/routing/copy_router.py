"""The router of copies: makes the copies of publications, keeps and sends them, and dead-letters rejected messages."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import compress
from operator import not_
from typing import Protocol, TypeVar

from signalbox.exchange.messages.copies import Copy, copies
from signalbox.exchange.messages.publications import Publication, Rejection
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.batch_reader import Entry
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, DispatchResult, NewDeadLetter
from signalbox.exchange.routing.copy_keeper import NOTHING_KEPT, CopyKeeper
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.limits import Allowance, copies_above
from signalbox.exchange.routing.ports import Heads, SentCopies, SentCopy
from signalbox.exchange.routing.refusals import Refusals
from signalbox.history.event import HistoryEvent
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName

# The copies that are sent between two looks at the time, in half a second.
PART_COPIES, PART_BYTES = 2_000, 16 * 2**20
TOO_MANY_A_SECOND = (
    "more than 10,000 copies a second from its publisher for the queues of one user: none of these queues gets it"
)
TOO_MANY_WAIT = "too many copies of the queue's owner wait for a retry"


class Sized(Protocol):
    """A value with a size in bytes."""

    @property
    def size_bytes(self) -> int:
        """Return the size."""


Part = TypeVar("Part", bound=Sized)


@dataclass(slots=True)
class Detours:
    """The detours of a batch: which copies must follow earlier ones of an ordered exchange through the retry queue.

    It has the last number of each detour of the batch's keys, stored in their heads, at first as `read`.
    """

    heads: Heads
    read: Mapping[RoutingKey, Mapping[QueueName, int]]
    _last: dict[tuple[RoutingKey, QueueName], int] = field(init=False)

    def __post_init__(self) -> None:
        self._last = {(key, queue): last for key, detours in self.read.items() for queue, last in detours.items()}

    def start(self, copy: Copy) -> None:
        """Start a detour with a copy that keeps the order, and that its queue did not take."""
        last = copy.sequence or 0
        self.heads.start_detour(copy.exchange, copy.key, copy.destination, last=last)
        self._last[copy.key, copy.destination] = last

    def has(self, copy: Copy) -> bool:
        """Return whether a copy would take a detour that existed when it was read."""
        return copy.sequence is not None and (copy.key, copy.destination) in self._last

    def extend(self, copy: Copy) -> bool:
        """Extend the detour that a copy has to this copy; return False if it ended."""
        detour = copy.key, copy.destination
        last = max(copy.sequence or 0, self._last[detour])
        if not self.heads.extend_detour(copy.exchange, copy.key, copy.destination, last=last):
            del self._last[detour]  # the detour ended: all of its messages were delivered
            return False
        self._last[detour] = last
        return True


@dataclass(frozen=True, slots=True)
class RoutedEntries:
    """The outcome of entries: those that were handled, the events of kept copies, and the outcomes of copies.

    `failed` are the messages to redeliver.
    """

    handled: Sequence[Entry]
    kept: Sequence[HistoryEvent]
    outcome: DispatchResult
    failed: Collection[MessageId]


@dataclass(frozen=True, slots=True)
class CopyRouter:
    """Routes publications to their queues.

    `keeper` stores the copies of kept queues before they are sent; a stage without history keeps none. When it
    `is_late`, the rest of the copies stays for the next attempt, which sends none of those in `sent` again.
    """

    dispatcher: CopyDispatcher
    refusals: Refusals
    allowance: Allowance
    keeper: CopyKeeper | None
    copy_settings: CopySettingsCache
    names: StageNames
    now: Callable[[], datetime]
    sent: SentCopies
    is_late: Callable[[], bool]
    parallel_map: ParallelMap = serial_map
    part_copies: int = PART_COPIES

    def route(
        self,
        entries: Sequence[Entry],
        exchange: ExchangeName,
        *,
        sequences: Mapping[MessageId, int],
        detours: Detours,
        at: datetime,
    ) -> RoutedEntries:
        """Send the copies of publications, which have the time `at`, and dead-letter rejected messages."""
        made = [
            copy
            for one in entries
            if isinstance(one, Publication)
            for copy in self._copies(one, exchange, sequence=sequences.get(one.message.message_id), at=at)
        ]
        outcome, kept = DispatchResult(), list[HistoryEvent]()
        # Copies for one queue follow one another, since a call carries several.
        left = sorted(self.sent.left(made), key=lambda one: one.destination)
        waiting = parts(self._within_limits(left, outcome), most=self.part_copies)
        rejected = (entry for entry in entries if isinstance(entry, Rejection))
        place = self.names.queue(exchange)
        letters = {one.message.message_id: NewDeadLetter(one.message, one.reason, place) for one in rejected}
        failed = set(self.dispatcher.dead_letter(letters))
        handled = [entry for entry in entries if entry.message.message_id not in failed]
        for part in waiting:
            kept += self._keep_and_send(part, outcome, failed, detours)
            if self.is_late():
                break
        outcome.stuck += [copy for part in waiting for copy in part]
        failed |= {copy.message_id for copy in outcome.stuck}
        return RoutedEntries(handled, kept, outcome, failed)

    def remember(self, sent: Sequence[SentCopy], *, left: Collection[MessageId]) -> None:
        """Record the copies that were sent of messages that are received again."""
        self.sent.add([copy for copy in sent if copy.message_id in left], now=self.now())

    def _within_limits(self, copies: Sequence[Copy], outcome: DispatchResult) -> Sequence[Copy]:
        """Return the copies that may be sent. Of the others, one of each publication for a user is a dead letter."""
        above = copies_above(self.allowance, copies, at=self.now())
        if not above:
            return copies
        self.dispatcher.give_up((first for first, *_ in above), outcome, reason=TOO_MANY_A_SECOND)
        outcome.omitted += [copy for _, *others in above for copy in others]
        ended = {copy.waiting_id for group in above for copy in group}
        return [copy for copy in copies if copy.waiting_id not in ended]

    def _keep_and_send(
        self, copies: Sequence[Copy], outcome: DispatchResult, failed: set[MessageId], detours: Detours
    ) -> Sequence[HistoryEvent]:
        """Store copies of kept queues; send all copies but those of publications of which one is not stored."""
        to_keep = [one for one in copies if self.copy_settings.is_kept(one.queue)]
        kept = self.keeper.keep(to_keep, now=self.now()) if self.keeper else NOTHING_KEPT
        failed |= kept.failed
        outcome.add(self._send([one for one in copies if one.message_id not in failed], detours))
        return kept.events

    def _copies(
        self, publication: Publication, exchange: ExchangeName, *, sequence: int | None, at: datetime
    ) -> Iterator[Copy]:
        queues = publication.routes.queues
        return copies(
            publication,
            exchange=exchange,
            names=self.names,
            message_ttls=self.copy_settings.message_ttls(queues, now=at),
            groups=self.copy_settings.groups(queues),
            declarers=self.copy_settings.declarers(queues),
            sequence=sequence,
            now=at,
        )

    def _send(self, made: Sequence[Copy], detours: Detours) -> DispatchResult:
        """Deliver copies; send those that failed, or that must stay behind a failed one, to the retry queues."""
        following = [copy for copy in made if detours.has(copy)]
        ended = {copy.waiting_id: copy for copy in self.refusals.reserve(following)}
        placed = [copy for copy in following if copy.waiting_id not in ended]
        is_extended = list(self.parallel_map(detours.extend, placed))
        behind = list(compress(placed, is_extended))
        self.refusals.count(compress(placed, map(not_, is_extended)), -1)
        waiting = {copy.waiting_id for copy in behind}
        outcome = self.dispatcher.deliver(copy for copy in made if copy.waiting_id not in ended.keys() | waiting)
        self.dispatcher.give_up(ended.values(), outcome, reason=TOO_MANY_WAIT)
        for _ in self.parallel_map(detours.start, [copy for copy in outcome.failed if copy.keeps_order]):
            pass
        self.dispatcher.retry_later([*outcome.failed, *behind], outcome)
        return outcome


def parts(copies: Iterable[Part], *, most: int = PART_COPIES) -> Iterator[list[Part]]:
    """Yield copies in parts; the sender looks at the time after each part."""
    part: list[Part] = []
    size = 0
    for copy in copies:
        part.append(copy)
        size += copy.size_bytes
        if len(part) == most or size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
