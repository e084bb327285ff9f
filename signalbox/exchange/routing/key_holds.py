"""Locks on routing keys, for exchanges where the messages of a key come in several publishers' groups."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.ports import NewHold
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

PATIENCE = timedelta(seconds=3)  # a hold lasts as long as a batch takes, a fraction of a second
PAUSE_SECONDS = 0.03

HeldKeys = Mapping[RoutingKey, Sequence[MessageId]]
"""The messages that hold each key, in the order of their numbers."""


class KeyHolds(Protocol):
    """The stored holds: routing keys of an exchange, and the messages that hold them."""

    def hold(
        self,
        exchange: ExchangeName,
        key: RoutingKey,
        *,
        messages: Sequence[MessageId],
        now: datetime,
        until: datetime,
    ) -> Sequence[MessageId] | None:
        """Hold a key for messages until a time; return all messages that hold it, in order.

        Returns None if other messages hold it, unless the first of them is among `messages`: then they share the hold,
        with the time that it has.
        """

    def release(self, exchange: ExchangeName, holds: Sequence["EndingHold"]) -> None:
        """Reduce holds to the messages that are left, or end holds without messages, in one call.

        A hold that has changed is left as it is.
        """


@dataclass(frozen=True, slots=True)
class EndingHold:
    """A hold of a key for the messages `held`, of which those in `left` are not done."""

    key: RoutingKey
    held: Sequence[MessageId]
    left: Sequence[MessageId]


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Holds keys for the messages of one batch at a time.

    Redelivered messages, of a batch that failed or whose function was killed, keep their numbers, so no later message
    may overtake them: their key stays held until they are done, however often their functions are killed, or until
    they cannot be in a queue any more. Messages without a number may be overtaken, so that they hold a key for
    `hold_for` only, the longest time of a batch. A batch that waits for a held key gives up after a few seconds and is
    redelivered. `retention` is that of the exchanges' queues, after which SQS deletes a message.
    """

    holds: KeyHolds
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    hold_for: timedelta
    retention: timedelta

    def new_hold(self, messages: Sequence[MessageId], *, replacing: Sequence[MessageId] = ()) -> NewHold:
        """Return a hold of a key for messages, to be stored together with the head that has their numbers."""
        now = self.now()
        return NewHold(messages, replacing, now, now + self.retention)

    def hold(self, exchange: ExchangeName, messages: Mapping[RoutingKey, Sequence[MessageId]]) -> HeldKeys:
        """Hold the available keys of messages; return for each all messages that hold it, in order.

        Keys are acquired in sorted order to avoid deadlocks.
        """
        deadline = self.now() + PATIENCE
        found = {key: self._acquired(exchange, key, messages[key], deadline) for key in sorted(messages)}
        return {key: waiting for key, waiting in found.items() if waiting}

    def release(self, exchange: ExchangeName, held: HeldKeys, *, left: Collection[MessageId]) -> None:
        """End holds; the key of every message that is left stays held for it."""
        ending = [
            EndingHold(key, waiting, [one for one in dict.fromkeys(waiting) if one in left])
            for key, waiting in held.items()
        ]
        self.holds.release(exchange, ending)

    def _acquired(
        self, exchange: ExchangeName, key: RoutingKey, messages: Sequence[MessageId], deadline: datetime
    ) -> Sequence[MessageId]:
        while True:
            now = self.now()
            waiting = self.holds.hold(exchange, key, messages=messages, now=now, until=now + self.hold_for)
            if waiting is not None:
                return waiting
            if now >= deadline:
                return ()
            self.sleep(PAUSE_SECONDS)
