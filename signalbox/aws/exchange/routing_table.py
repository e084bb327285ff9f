"""The table `Exchanges` as the router reads and writes it: records, bindings, heads of keys and counters.

The cost of routing in DynamoDB, on demand and in request units (a write costs five times a read): each batch makes one
BatchGetItem with a read for each exchange on the way, usually one, and half a read a minute for each queue's
settings. An ordered exchange reads and writes one item for each key in the batch; detours cost nothing while there are
none. Counters cost one write for the exchange and one for each queue with new copies: more than everything else, and
therefore collected. Batches of more than ten messages share these costs.
"""

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import dropwhile, islice
from uuid import UUID

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.exchange.items import (
    BINDING,
    EXCHANGE_RECORD,
    HEAD_KEY,
    IS_DELETING,
    KEEP_SECONDS,
    QUEUE_RECORD,
    binding_of,
    first_word_key,
    first_word_place,
    head_key,
    minute_key,
    partition,
    record_key,
    sender_key,
    waiting_key,
)
from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, ttl
from signalbox.aws.shared.errors import is_retryable
from signalbox.aws.shared.expressions import Expression, Item, Update, attr
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.patterns import FIRST_PLACE, LAST_PLACE
from signalbox.exchange.model.records import Binding, GroupBy, ResourceKind, ResourceRef
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import (
    CopySettings,
    Counts,
    HeadChange,
    KeysOfExchange,
    RoutingSnapshot,
    WaitingChanges,
)
from signalbox.exchange.routing.sequences import Head
from signalbox.messages import MessageId
from signalbox.parallel import ParallelMap, serial_map
from signalbox.queues import QueueName
from signalbox.sarracenia.rights.names import ExchangeName, UserName

SENDER, DETOUR = "sender#", "detour:"
FIRST_WORDS_READ = 25  # bindings, of 200 bytes and more: one or two units
COUNTERS_KEPT_FOR = timedelta(hours=2)
WAITING_KEPT_FOR = timedelta(days=15)  # longer than SQS keeps a copy that waits behind others
SHARE = "share"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DynamoRoutingTable:
    """`RoutingTable` and `DeclaredQueues` over the table `Exchanges`."""

    table: DynamoTable

    def snapshot(
        self, exchanges: Iterable[ExchangeName], *, senders: Iterable[str], heads: KeysOfExchange | None = None
    ) -> RoutingSnapshot:
        """Return the records of exchanges, the users of SenderIds and heads, in one read for any number of them."""
        keys = [record_key(ResourceRef(ResourceKind.EXCHANGE, name)) for name in exchanges]
        keys += [sender_key(sender) for sender in senders]
        if heads is not None:
            keys += [head_key(heads[0], key) for key in heads[1]]
        items = list(self.table.get_all(keys))
        found = [EXCHANGE_RECORD.read(item) for item in items if item["sk"] == ResourceKind.EXCHANGE]
        users = {item["pk"].removeprefix(SENDER): UserName(item["name"]) for item in items if item["sk"] == "sender"}
        stored = [item for item in items if item["sk"].startswith(HEAD_KEY)]
        return RoutingSnapshot(
            {exchange.name: exchange for exchange in found}, users, None if heads is None else _heads(stored)
        )

    def bindings(self, exchange: ExchangeName, *, first_word: str | None = None) -> Iterator[Binding]:
        """Return the bindings from an exchange, at least as new as the last snapshot, read page by page.

        With a first word, return the bindings whose patterns begin with it, and possibly others.
        """
        beginning = BINDING if first_word is None else first_word_key([first_word])
        of_exchange = attr("pk").eq(partition(ResourceRef(ResourceKind.EXCHANGE, exchange)))
        return map(binding_of, self.table.query(of_exchange & attr("sk").begins_with(beginning)))

    def first_words(self, exchange: ExchangeName, *, around: str) -> Sequence[str]:
        """Return places of first words of bindings, sorted: the last before the place `around`, and from `around` on.

        `FIRST_PLACE` is before, and `LAST_PLACE` behind all. The result is at least as new as the last snapshot.
        """
        before = self._first_words(exchange, BINDING, BINDING + around, most=1, ScanIndexForward=False)
        places = self._first_words(exchange, BINDING + around, BINDING + LAST_PLACE, most=FIRST_WORDS_READ)
        is_last = len(places) < FIRST_WORDS_READ
        return [*(before or [FIRST_PLACE]), *dict.fromkeys(places), *([LAST_PLACE] if is_last else [])]

    def _first_words(self, exchange: ExchangeName, low: str, high: str, *, most: int, **options: bool) -> Sequence[str]:
        """Return the places of the first words of bindings between sort keys."""
        of_exchange = attr("pk").eq(partition(ResourceRef(ResourceKind.EXCHANGE, exchange)))
        found = self.table.query(of_exchange & attr("sk").between(low, high), only=["sk"], Limit=most, **options)
        return [first_word_place(item["sk"]) for item in islice(found, most)]

    def copy_settings(self, queues: Iterable[DeclaredName]) -> Mapping[DeclaredName, CopySettings]:
        """Return the settings of existing queues; the values may be slightly stale."""
        keys = [record_key(ResourceRef(ResourceKind.QUEUE, queue)) for queue in queues]
        items = self.table.get_all(keys, is_consistent=False)
        return {DeclaredName(item["name"]): _copy_settings(item) for item in items}

    def created_at(self, queue: DeclaredName) -> datetime | None:
        """Return the time of a queue's first declaration, or None if it is not declared or being deleted."""
        item = self.table.get(record_key(ResourceRef(ResourceKind.QUEUE, queue)))
        if item is None or item.get(IS_DELETING):
            return None
        return QUEUE_RECORD.read(item).created_at


@dataclass(frozen=True, slots=True)
class DynamoHeads:
    """`Heads` over the table `Exchanges`: an item for each key, with an attribute for each detour.

    The newest messages have consecutive numbers up to the head's, so their ids are stored as a list; with it, the item
    fits into one write unit. `once` is the table with a client of one attempt, which saves heads.
    """

    table: DynamoTable
    once: DynamoTable

    def read(self, exchange: ExchangeName, keys: Iterable[RoutingKey]) -> Mapping[RoutingKey, Head]:
        """Return the stored heads of keys; a new key has none."""
        return _heads(self.table.get_all([head_key(exchange, key) for key in keys]))

    def save(self, exchange: ExchangeName, change: HeadChange) -> bool:
        """Store a head's numbers, not its detours, and a hold of its key; return whether the change applied.

        The write has one attempt, and may have applied if it fails without an answer.
        """
        try:
            return self.once.write_unless_busy(head_update(exchange, change))
        except (ClientError, BotoCoreError) as error:
            if isinstance(error, ClientError) and not is_retryable(error):
                raise
            logger.warning("a head of exchange %r is not stored: %s", exchange, error)
            return False

    def start_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """Record that the messages of a key up to the number `last` reach a queue by the retry queue."""
        self.table.write(Update(head_key(exchange, key), sets={DETOUR + queue: last}))

    def extend_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> bool:
        """Set the last message of an existing detour; return False if it has ended."""
        detour = DETOUR + queue
        return self.table.write(Update(head_key(exchange, key), sets={detour: last}, condition=attr(detour).exists()))

    def end_detour(self, exchange: ExchangeName, key: RoutingKey, queue: QueueName, *, last: int) -> None:
        """End a detour if `last` is its last message."""
        detour = attr(DETOUR + queue)
        self.table.write(Update(head_key(exchange, key), removes=[detour], condition=detour.eq(last)))


@dataclass(frozen=True, slots=True)
class DynamoCounterWriter:
    """`CounterWriter` over the table `Exchanges`: an item for each minute of an exchange or a queue.

    Function instances share it, and write to it a few times in a minute. A sort key with a fraction after the minute,
    of an earlier version, is read as a time in that minute.
    """

    table: DynamoTable
    parallel_map: ParallelMap = serial_map

    def add(self, counts: Counts, *, at: datetime) -> None:
        """Add to the counters of exchanges and queues; log failures, since the data lake has the same facts."""
        errors = self.parallel_map(lambda resource: self._add(resource, counts[resource], at), counts)
        if failed := [error for error in errors if error is not None]:
            logger.error("%d of %d counters were not increased; the first: %s", len(failed), len(counts), failed[0])

    def _add(self, resource: ResourceRef, counts: Mapping[str, int], at: datetime) -> str | None:
        sets = {"last_at": milliseconds(at)} | ttl(at + COUNTERS_KEPT_FOR)
        try:
            self.table.write(Update({"pk": partition(resource), "sk": minute_key(at)}, sets=sets, adds=counts))
        except (ClientError, BotoCoreError) as error:
            return f"{resource}: {error}"
        return None


@dataclass(frozen=True, slots=True)
class DynamoWaitingCopies:
    """`WaitingCopies` over the table `Exchanges`: an item for each owner and day, with an attribute for each share.

    A copy that waits, or one before it, is tried at least once in the time `tried_within`.
    """

    table: DynamoTable
    tried_within: timedelta

    def add_waiting(self, owner: DeclaredName, changes: WaitingChanges, *, now: datetime) -> Mapping[int, int] | None:
        """Add to an owner's numbers of waiting copies; return the sum of each share, or None after a logged failure."""
        sets = {"seen_at": milliseconds(now)} | ttl(now + WAITING_KEPT_FOR)
        days = {
            day: {share: number for (other, share), number in changes.items() if other == day} for day, _ in changes
        }
        try:
            for day, numbers in days.items():
                adds = {f"{SHARE}{share}": number for share, number in numbers.items()}
                self.table.write(Update(waiting_key(owner, day.isoformat()), sets=sets, adds=adds))
            key = waiting_key(owner)
            items = list(self.table.query(attr("pk").eq(key["pk"]) & attr("sk").begins_with(key["sk"])))
        except (ClientError, BotoCoreError) as error:
            logger.warning("the numbers of waiting copies of %s are not known: %s", owner, error)
            return None
        found = Counter[int]()
        for item in dropwhile(lambda one: one["seen_at"] < milliseconds(now - self.tried_within), items):
            found.update({int(name[len(SHARE) :]): int(item[name]) for name in item if name.startswith(SHARE)})
        return found


def head_update(exchange: ExchangeName, change: HeadChange) -> Update:
    """Return the update that stores a head's numbers, on the condition that it still equals the replaced one.

    The same condition applies to the hold.
    """
    recent = change.head.recent
    sets: Item = {
        "sequence": change.head.sequence,
        "recent": [_stored_id(one) for one in sorted(recent, key=lambda message: recent[message])],
    }
    sequence, held_until = attr("sequence"), attr("held_until")
    is_as_read: Expression = (
        sequence.eq(change.replacing.sequence) if change.replacing.sequence else sequence.not_exists()
    )
    if (hold := change.hold) is not None:
        sets |= {"held_for": list(hold.messages), "held_until": milliseconds(hold.until)}
        is_free = held_until.not_exists() | held_until.lte(milliseconds(hold.now))
        is_as_read &= attr("held_for").eq(list(hold.replacing)) if hold.replacing else is_free
    if change.expires_at is not None:
        sets |= ttl(change.expires_at)
    # An exchange may have become live since the head was stored.
    removes = [] if change.expires_at else [attr("expires_at")]
    return Update(head_key(exchange, change.key), sets=sets, removes=removes, condition=is_as_read)


def _copy_settings(item: Item) -> CopySettings:
    seconds = item.get("message_ttl_seconds")
    message_ttl = None if seconds is None else timedelta(seconds=float(seconds))
    owner = item.get("owner")
    declared_by = None if owner is None else UserName(owner)
    group_by = GroupBy(item.get("group_by", GroupBy.PUBLISHER))
    return CopySettings(message_ttl, KEEP_SECONDS in item, declared_by, group_by)


def _heads(items: Iterable[Item]) -> dict[RoutingKey, Head]:
    return {RoutingKey(item["sk"].removeprefix(HEAD_KEY)): _head(item) for item in items}


def _head(item: Item) -> Head:
    sequence, recent = int(item.get("sequence", 0)), item.get("recent", [])
    first = sequence - len(recent) + 1
    return Head(
        sequence=sequence,
        recent={_message_id(stored): number for number, stored in enumerate(recent, start=first)},
        detours={
            QueueName(name.removeprefix(DETOUR)): int(last) for name, last in item.items() if name.startswith(DETOUR)
        },
    )


def _stored_id(message_id: MessageId) -> str | bytes:
    """Return the 16 bytes of an id of SQS, which is a UUID: forty ids and the rest of a head are one write unit."""
    try:
        uuid = UUID(message_id)
    except ValueError:
        return message_id
    return uuid.bytes if str(uuid) == message_id else message_id


def _message_id(stored: str | bytes) -> MessageId:
    return MessageId(stored if isinstance(stored, str) else str(UUID(bytes=stored)))
