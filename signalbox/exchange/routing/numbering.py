"""The numbering of ordered exchanges: the plan of numbers for each key, and the numbers that are stored."""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from datetime import datetime

from signalbox.exchange.messages.publications import Publication
from signalbox.exchange.model.records import OrderBy
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.batch_reader import Entry, ReadBatch
from signalbox.exchange.routing.key_holds import HeldKeys, KeyHolder
from signalbox.exchange.routing.ports import HeadChange, Heads
from signalbox.exchange.routing.sequences import KEPT, KEPT_OF_MANY, Head, head_end, number_before, numbered
from signalbox.fifo import FifoBatch
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName


@dataclass(frozen=True, slots=True)
class KeyNumbers:
    """The numbers of a key's messages, which are valid as soon as the changed head is stored."""

    messages: Sequence[MessageId]
    change: HeadChange

    @property
    def is_stored(self) -> bool:
        """Return whether the messages had their numbers already, since they were received again."""
        return self.change.head is self.change.replacing

    @property
    def is_known(self) -> bool:
        """Return whether a message had its number already."""
        return any(one in self.change.replacing.recent for one in self.messages)

    @property
    def sequences(self) -> dict[MessageId, int]:
        """Return the number of each message."""
        return {one: self.change.head.recent[one] for one in self.messages}


@dataclass(frozen=True, slots=True)
class BatchNumbers:
    """The stored numbers of a batch's messages, and the detours of their keys.

    `held` are the keys that no other router may work on, and `known` the messages that hold them and had a number
    before. `idle` are the keys whose messages need none.
    """

    sequences: Mapping[MessageId, int] = field(default_factory=dict)
    detours: Mapping[RoutingKey, Mapping[QueueName, int]] = field(default_factory=dict)
    held: HeldKeys = field(default_factory=dict)
    known: frozenset[MessageId] = frozenset()
    idle: AbstractSet[RoutingKey] = frozenset()

    @property
    def numbered(self) -> frozenset[MessageId]:
        """Return the messages that have a number; only messages without one may be overtaken by other publishers'."""
        return self.known | self.sequences.keys()

    def fifo_batch(self, entries: Sequence[Entry]) -> FifoBatch[Entry]:
        """Return a batch in the order of its keys, in which the publications that lack a number have failed."""
        batch = FifoBatch([(entry.message, entry) for entry in entries], is_fifo=True, key_of=self._key_of)
        for message_id in self.lacking(entries):
            batch.fail(message_id)
        return batch

    def lacking(self, entries: Iterable[Entry]) -> list[MessageId]:
        """Return the messages that need a number and have none."""
        found = (one for one in entries if isinstance(one, Publication) and one.properties.key not in self.idle)
        return [one.message.message_id for one in found if one.message.message_id not in self.sequences]

    def _key_of(self, entry: Entry) -> str:
        """Return the key in whose order a message is processed; without a number, it is in no order."""
        message_id = entry.message.message_id
        return entry.properties.key if isinstance(entry, Publication) and message_id in self.sequences else message_id


@dataclass(frozen=True, slots=True)
class PlannedNumbers:
    """The numbers of a batch, which are valid as soon as the changes of heads are stored."""

    numbers: BatchNumbers
    changes: Sequence[HeadChange]


@dataclass(frozen=True, slots=True)
class Numberer:
    """Numbers the messages of each key. `holder` holds the keys that other routers may work on at the same time."""

    heads: Heads
    holder: KeyHolder

    def plan(self, batch: ReadBatch) -> PlannedNumbers | None:
        """Return the numbers of a batch by the heads that were read with it; None if they are stored before the log.

        Heads with detours are not stored with the log: the transaction would make the writes of the retrier fail. Where
        the keys of a batch may be in other batches, they are held by the same transaction.
        """
        planned = self._planned(batch)
        changes = [one.change for one in planned if not one.is_stored]
        if _is_shared(batch):
            if any(one.is_known for one in planned):
                return None  # its key may be held
            changes = [replace(one.change, hold=self.holder.new_hold(one.messages)) for one in planned]
        if not changes or any(one.change.replacing.detours for one in planned):
            return None
        numbers = BatchNumbers(
            {message: number for one in planned for message, number in one.sequences.items()},
            {one.change.key: {} for one in planned},
            held={one.change.key: one.messages for one in planned} if _is_shared(batch) else {},
        )
        return PlannedNumbers(numbers, changes)

    def number(self, batch: ReadBatch) -> BatchNumbers:
        """Hold the keys of a batch if other routers may work on them, and store the numbers of its publications."""
        if _is_shared(batch):
            return self._number_held(batch)
        idle = batch.idle_keys
        planned = [one for one in self._planned(batch) if one.change.key not in idle]
        return replace(self._saved(batch.exchange.name, planned), idle=idle)

    def _planned(self, batch: ReadBatch) -> list[KeyNumbers]:
        kept = KEPT_OF_MANY if _is_shared(batch) else KEPT
        if batch.exchange.live is not None:  # clients of its log expect numbers without gaps, however late they return
            return _numbers(batch.entries, batch.heads, kept=kept)
        before = number_before(batch.read_at, created_at=batch.exchange.created_at)
        end = head_end(batch.read_at, retention=self.holder.retention)
        return _numbers(batch.entries, batch.heads, kept=kept, before=before, expires_at=end)

    def _number_held(self, batch: ReadBatch) -> BatchNumbers:
        """Hold keys, and store the numbers of their messages that follow no unfinished message of the key."""
        messages, name = _by_key(batch.entries), batch.exchange.name
        held = self.holder.hold(name, messages)
        heads = self.heads.read(name, messages)  # another router may have changed them until now
        known = {one for key, waiting in held.items() for one in waiting if one in heads.get(key, Head()).recent}
        order = FifoBatch([(entry.message, entry) for entry in batch.entries], is_fifo=True)
        for key in messages.keys() - held.keys():
            for message_id in messages[key]:
                order.fail(message_id)
        while late := _late(order.unblocked(), held, heads):
            for message_id in late:
                order.fail(message_id)
        planned = [self._holding(one, held) for one in _numbers(order.unblocked(), heads, kept=KEPT_OF_MANY)]
        numbers = self._saved(name, planned)
        # A head that is not saved may be stored nevertheless, by a call whose response was lost: its key stays held.
        lost = {one.change.key for one in planned} - numbers.detours.keys()
        holds = {one.change.key: one.change.hold.messages for one in planned if one.change.hold is not None}
        held = {key: holds.get(key, waiting) for key, waiting in held.items() if key not in lost}
        return replace(numbers, held=held, known=frozenset(known))

    def _holding(self, planned: KeyNumbers, held: HeldKeys) -> KeyNumbers:
        """Return the plan of a key with a hold for all messages that have a number then."""
        if planned.is_stored:
            return planned
        waiting, numbers = held[planned.change.key], planned.change.head.recent
        messages = sorted(set(waiting) & numbers.keys(), key=lambda one: numbers[one])
        return replace(planned, change=replace(planned.change, hold=self.holder.new_hold(messages, replacing=waiting)))

    def _saved(self, exchange: ExchangeName, planned: Iterable[KeyNumbers]) -> BatchNumbers:
        """Store the heads; the messages of one that another router has changed keep no number."""
        saved = [one for one in planned if one.is_stored or self.heads.save(exchange, one.change)]
        return BatchNumbers(
            {message: number for one in saved for message, number in one.sequences.items()},
            {one.change.key: one.change.replacing.detours for one in saved},
        )


def _is_shared(batch: ReadBatch) -> bool:
    """Return whether other routers may work on keys of the batch at the same time."""
    return batch.exchange.order_by is OrderBy.PUBLISHER


def _numbers(
    entries: Iterable[Entry],
    heads: Mapping[RoutingKey, Head],
    *,
    kept: int,
    before: int = 0,
    expires_at: datetime | None = None,
) -> list[KeyNumbers]:
    numbers = []
    for key, messages in _by_key(entries).items():
        head = heads.get(key, Head())
        base = head if head.sequence else replace(head, sequence=before)
        change = HeadChange(key, numbered(base, messages, kept=kept), head, expires_at=expires_at)
        numbers.append(KeyNumbers(messages, change))
    return numbers


def _by_key(entries: Iterable[Entry]) -> dict[RoutingKey, list[MessageId]]:
    messages: dict[RoutingKey, list[MessageId]] = {}
    for entry in entries:
        if isinstance(entry, Publication):
            messages.setdefault(entry.properties.key, []).append(entry.message.message_id)
    return messages


def _late(unblocked: Iterable[Entry], held: HeldKeys, heads: Mapping[RoutingKey, Head]) -> set[MessageId]:
    """Return the messages that would overtake one with a number that this batch does not process."""
    ready = {entry.message.message_id for entry in unblocked}
    late: set[MessageId] = set()
    for key, waiting in held.items():
        numbers = heads.get(key, Head()).recent
        left = [numbers[one] for one in waiting if one in numbers and one not in ready]
        if left:
            late |= {one for one in waiting if one in ready and numbers.get(one, min(left)) >= min(left)}
    return late
