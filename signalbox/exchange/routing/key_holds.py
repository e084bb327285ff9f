"""Locks on routing keys, for exchanges where the messages of a key come in several publishers' groups."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

PATIENCE = timedelta(seconds=3)  # a hold lasts as long as a batch takes, a fraction of a second
PAUSE_SECONDS = 0.03


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

        Returns None if other messages hold it, unless the first of them is among `messages`: then they share the hold.
        """
        ...

    def release(
        self, exchange: ExchangeName, key: RoutingKey, *, held: Sequence[MessageId], left: Sequence[MessageId]
    ) -> None:
        """Reduce the hold of `held` to the messages `left`, or end it without any; no effect if it has changed."""
        ...


@dataclass(slots=True)
class HeldKeys:
    """The held keys, and the messages that are done or have no number yet."""

    keys: Collection[RoutingKey]
    done: set[MessageId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Holds keys for the messages of one batch at a time.

    Redelivered messages, of a batch that failed or whose function was killed, keep their numbers, so no later message
    may overtake them: their key stays held until they are done. `hold_for` exceeds the time until redelivery. A batch
    that waits for a held key gives up after a few seconds and is redelivered.
    """

    holds: KeyHolds
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    hold_for: timedelta

    @contextmanager
    def hold(self, exchange: ExchangeName, messages: Mapping[RoutingKey, Sequence[MessageId]]) -> Iterator[HeldKeys]:
        """Hold the available keys of the messages while the context lasts.

        Keys are acquired in sorted order to avoid deadlocks. At exit, the key of every message that is not done stays
        held.
        """
        deadline = self.now() + PATIENCE
        found = {key: self._acquired(exchange, key, messages[key], deadline) for key in sorted(messages)}
        held = HeldKeys(frozenset(key for key, waiting in found.items() if waiting))
        yield held
        for key, waiting in found.items():
            if waiting:
                left = dict.fromkeys(message for message in waiting if message not in held.done)
                self.holds.release(exchange, key, held=waiting, left=list(left))

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
