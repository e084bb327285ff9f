"""The router of copies: makes those of publications, keeps and sends them, and dead-letters rejected messages."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from signalbox.exchange.messages.copies import Copy, copies
from signalbox.exchange.messages.publications import Publication, Rejection
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.routing.batch_reader import Entry
from signalbox.exchange.routing.copy_dispatcher import CopyDispatcher, DispatchResult
from signalbox.exchange.routing.copy_keeper import NOTHING_KEPT, CopyKeeper
from signalbox.exchange.routing.copy_settings import CopySettingsCache
from signalbox.exchange.routing.detours import Detours
from signalbox.history.event import HistoryEvent
from signalbox.messages import MessageId, size_bytes
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName

# Sent between two looks at the clock: a second or two of a function. A batch rarely has more.
PART_BYTES = 16 * 1024 * 1024
MAXIMUM_UNFINISHED = 100  # messages whose accepted copies an instance remembers


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

    `keeper` stores the copies of kept queues before they are sent; a stage without history keeps none. No copies are
    sent when the invocation `is_late`: their messages are received again, and go on where this instance stopped.
    """

    dispatcher: CopyDispatcher
    keeper: CopyKeeper | None
    copy_settings: CopySettingsCache
    names: StageNames
    now: Callable[[], datetime]
    is_late: Callable[[], bool] = lambda: False
    _accepted: dict[MessageId, set[QueueName]] = field(default_factory=dict)

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
        handled: list[Entry] = []
        made: list[Copy] = []
        failed: set[MessageId] = set()
        for entry in entries:
            if isinstance(entry, Publication):
                made += self._copies(entry, exchange, sequence=sequences.get(entry.message.message_id), at=at)
            elif not self._dead_letter(entry, exchange):
                failed.add(entry.message.message_id)
                continue
            handled.append(entry)
        to_keep = [one for one in made if self.copy_settings.is_kept(one.queue)]
        kept = self.keeper.keep(to_keep, now=self.now()) if self.keeper else NOTHING_KEPT
        # A publication of which a copy is not kept is received again as a whole: none of its copies is sent now.
        outcome = self._send([one for one in made if one.message_id not in kept.failed], detours)
        failed |= kept.failed | {copy.message_id for copy in outcome.stuck}
        self._remember(handled, failed, outcome)
        return RoutedEntries(handled, kept.events, outcome, failed)

    def _remember(self, entries: Sequence[Entry], failed: Collection[MessageId], outcome: DispatchResult) -> None:
        """Keep which queues have their copies of the messages that are received again."""
        accepted = [*outcome.delivered, *outcome.retried, *(dead.copy for dead in outcome.dead)]
        for message_id in (entry.message.message_id for entry in entries):
            before = self._accepted.pop(message_id, set())
            if message_id in failed:
                self._accepted[message_id] = before | {
                    one.destination for one in accepted if one.message_id == message_id
                }
        for message_id in list(self._accepted)[:-MAXIMUM_UNFINISHED]:
            del self._accepted[message_id]

    def _dead_letter(self, rejection: Rejection, exchange: ExchangeName) -> bool:
        return self.dispatcher.dead_letter(
            rejection.message, next_to=self.names.queue(exchange), reason=rejection.reason
        )

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
            sequence=sequence,
            now=at,
        )

    def _send(self, made: Sequence[Copy], detours: Detours) -> DispatchResult:
        """Deliver copies; send those that failed, or that must stay behind a failed one, to the retry queues."""
        outcome = DispatchResult()
        new = (copy for copy in made if copy.destination not in self._accepted.get(copy.message_id, ()))
        for part in _parts(new):
            if self.is_late():
                outcome.stuck += part
            else:
                outcome.add(self._send_part(part, detours))
        return outcome

    def _send_part(self, made: Sequence[Copy], detours: Detours) -> DispatchResult:
        direct: list[Copy] = []
        behind: list[Copy] = []
        for copy in made:
            (behind if detours.extend(copy) else direct).append(copy)
        outcome = self.dispatcher.deliver(direct)
        for copy in outcome.failed:
            detours.start(copy)
        self.dispatcher.retry_later([*outcome.failed, *behind], outcome)
        return outcome


def _parts(copies: Iterable[Copy]) -> Iterator[list[Copy]]:
    """Yield copies in parts of about `PART_BYTES`."""
    part: list[Copy] = []
    size = 0
    for copy in copies:
        part.append(copy)
        size += size_bytes(copy.message)
        if size >= PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part
