"""Working on a routing key alone, where its messages come in the groups of several publishers."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Protocol

from signalbox.exchange.model.topics import RoutingKey
from signalbox.messages import MessageId
from signalbox.sarracenia.rights.names import ExchangeName

PATIENCE = timedelta(seconds=3)  # others hold a key for as long as a batch takes, a fraction of a second
PAUSE_SECONDS = 0.03


class KeyHolds(Protocol):
    """For which messages routing keys of an exchange are held."""

    def hold(
        self,
        exchange: ExchangeName,
        key: RoutingKey,
        *,
        messages: Sequence[MessageId],
        now: datetime,
        until: datetime,
    ) -> Sequence[MessageId] | None:
        """Hold a key for messages until a moment; return all for which it is held now, in order.

        None if it is held for others, unless these messages have the first of them among them: then for both.
        """
        ...

    def release(
        self, exchange: ExchangeName, key: RoutingKey, *, held: Sequence[MessageId], left: Sequence[MessageId]
    ) -> None:
        """Hold a key for those that are left, or if there are none for nobody, if it is still held for `held`."""
        ...


@dataclass(slots=True)
class HeldKeys:
    """The keys that are held, and which of their messages are done by now, or have had no number."""

    keys: Collection[RoutingKey]
    done: set[MessageId] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class KeyHolder:
    """Holds keys for the messages of one batch at a time.

    Messages that come again, because the batch failed or its function was killed, had their numbers, so nobody's later
    message may go before them: their key stays held for them until they are done. `hold_for` is longer than they come
    again; whoever waits for others' messages gives up after some seconds, and comes again, too.
    """

    holds: KeyHolds
    now: Callable[[], datetime]
    sleep: Callable[[float], None]
    hold_for: timedelta

    @contextmanager
    def hold(self, exchange: ExchangeName, messages: Mapping[RoutingKey, Sequence[MessageId]]) -> Iterator[HeldKeys]:
        """Hold those of the messages' keys that are to be had for as long as the context lasts.

        They are reached for in their order, so that no two wait for each other. Of what is not done when it ends the
        key stays held.
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
