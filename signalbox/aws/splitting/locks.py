"""The table `Splits`: locks of targets, heartbeats, unfinished calls, and uses of temporary queues."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signalbox.aws.shared.dynamodb import DynamoTable, milliseconds, moment, ttl
from signalbox.aws.shared.expressions import EXISTS, IS_NEW, Delete, Expression, Item, Put, Update, attr
from signalbox.aws.splitting.splits import split_key
from signalbox.messages import MessageId
from signalbox.queues import QueueName
from signalbox.splitting.model.claims import SessionId
from signalbox.splitting.model.observed_state import QueueUse
from signalbox.splitting.model.split import Split
from signalbox.splitting.model.target import Target
from signalbox.splitting.ports import OpenCall

# Longer than the closing of any queue takes, so that no record of an unfinished call expires before its end.
LEDGER_KEPT_FOR = timedelta(days=7)
# Longer than SQS keeps a message (14 days): a use that is forgotten earlier would let a queue count as never used.
USE_KEPT_FOR = timedelta(days=30)
LOCK_KEPT_FOR = timedelta(days=1)
# Longer than any `split_heartbeat_seconds`.
HEARTBEAT_KEPT_FOR = timedelta(days=2)


@dataclass(frozen=True, slots=True)
class DynamoLocks:
    """`Locks` over the table `Splits`."""

    table: DynamoTable

    def acquire(self, target: Target, *, holder: str, now: datetime, until: datetime) -> bool:
        """Acquire or extend the lock of a target; return whether `holder` has it."""
        lock = {"holder": holder, "until": milliseconds(until)} | ttl(until + LOCK_KEPT_FOR)
        is_free = IS_NEW | attr("until").lte(milliseconds(now)) | attr("holder").eq(holder)
        return self.table.write(Put(split_key(target, "lock") | lock, is_free))

    def release(self, target: Target, *, holder: str) -> None:
        """Release the lock if `holder` has it."""
        self.table.write(Delete(split_key(target, "lock"), attr("holder").eq(holder)))


@dataclass(frozen=True, slots=True)
class DynamoHeartbeats:
    """`Heartbeats` over the table `Splits`: an item for each session, in another partition than the record."""

    table: DynamoTable

    def record(self, target: Target, session_id: SessionId, *, now: datetime) -> None:
        """Record a heartbeat of a session."""
        beat = {"at": milliseconds(now)} | ttl(now + HEARTBEAT_KEPT_FOR)
        self.table.write(Put(_heartbeat_key(target, session_id) | beat))

    def of(self, split: Split) -> Mapping[SessionId, datetime]:
        """Return the recorded heartbeats under the names of a split's sessions."""
        keys = [_heartbeat_key(split.target, one.session_id) for one in split.sessions]
        return {SessionId(item["sk"]): moment(item["at"]) for item in self.table.get_all(keys)}


@dataclass(frozen=True, slots=True)
class DynamoLedger:
    """`Ledger` over the table `Splits`: an item for each unfinished call."""

    table: DynamoTable

    def begin(self, original: QueueName, messages: Sequence[MessageId], *, now: datetime) -> OpenCall:
        """Record that a call begins to forward messages, one at least; return its record."""
        call = OpenCall(original, f"{messages[0]}:{milliseconds(now)}", now, frozenset(messages))
        item = {"messages": set(messages), "began_at": milliseconds(now)} | ttl(now + LEDGER_KEPT_FOR)
        self.table.write(Put(_ledger_key(original, call.name) | item))
        return call

    def finish(self, call: OpenCall, done: Collection[MessageId], *, redelivered: bool) -> None:
        """Remove messages that cannot be redelivered any more from the record, which ends with its last message."""
        for one in self._open(call.original) if redelivered else [call]:
            key, finished = _ledger_key(one.original, one.name), one.messages.intersection(done)
            if finished == one.messages:
                self.table.write(Delete(key))
            elif finished:
                self.table.write(Update(key, takes={"messages": set(finished)}, condition=EXISTS))

    def unfinished(self, original: QueueName) -> Sequence[datetime]:
        """Return the begin of each call with unfinished messages."""
        return [one.began_at for one in self._open(original) if one.messages]

    def _open(self, original: QueueName) -> list[OpenCall]:
        """Return the calls of a queue; two that finish the last messages of a third one leave it without messages."""
        items = self.table.query(attr("pk").eq(_ledger_key(original, "")["pk"]))
        return [
            OpenCall(original, item["sk"], moment(item["began_at"]), frozenset(item.get("messages", ())))
            for item in items
        ]


@dataclass(frozen=True, slots=True)
class DynamoQueueUses:
    """`QueueUses` over the table `Splits`: an item for each temporary queue that was used or closed."""

    table: DynamoTable

    def extend(self, name: QueueName, *, until: datetime) -> bool:
        """Record that calls which begin before `until` may send messages to a queue; return False if it is closed."""
        is_earlier = attr("is_closed").eq(value=False) & attr("until").lt(milliseconds(until))
        if self._put(name, QueueUse(until), condition=IS_NEW | is_earlier, kept_from=until):
            return True
        return not self._of(name).is_closed

    def close(self, name: QueueName, *, seen: QueueUse, now: datetime) -> bool:
        """Close a queue if its recorded use is still `seen`; return whether it is closed."""
        known = attr("until").eq(milliseconds(seen.until)) if seen.until else attr("until").not_exists()
        return self._put(name, QueueUse(seen.until, is_closed=True), condition=known, kept_from=now)

    def of(self, names: Iterable[QueueName]) -> Mapping[QueueName, QueueUse]:
        """Return the recorded use of each queue."""
        return {name: self._of(name) for name in names}

    def _of(self, name: QueueName) -> QueueUse:
        item = self.table.get(_use_key(name))
        if item is None:
            return QueueUse()
        return QueueUse(moment(item["until"]) if "until" in item else None, is_closed=item["is_closed"])

    def _put(self, name: QueueName, use: QueueUse, *, condition: Expression, kept_from: datetime) -> bool:
        item = _use_key(name) | {"is_closed": use.is_closed} | ttl(kept_from + USE_KEPT_FOR)
        if use.until is not None:
            item["until"] = milliseconds(use.until)
        return self.table.write(Put(item, condition))


def _heartbeat_key(target: Target, session_id: SessionId) -> Item:
    return {"pk": f"heartbeats#{target}", "sk": session_id}


def _use_key(name: QueueName) -> Item:
    return {"pk": f"use#{name}", "sk": "use"}


def _ledger_key(original: QueueName, call: str) -> Item:
    return {"pk": f"ledger#{original}", "sk": call}
