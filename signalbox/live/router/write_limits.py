"""The limit of what a publisher writes to the logs of topics, which share a table with the sessions of all realms."""

from collections.abc import Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from signalbox.live.model.state import Session
    from signalbox.live.wamp.authentication import Identity

PERIOD_SECONDS = 10
# 1,500 a second: two units each in a transaction. DynamoDB takes 4,000 a second from a new table, and 1,000 from the
# partition of all retained events of a realm, whose events count six times: a publisher may use half of it.
MAXIMUM_KILOBYTES, RETAINED = 1_500 * PERIOD_SECONDS, 6
# By sessions 750 events a second, of some 1,500 that a realm routes, and 100 of the 150 of a message group: the rest
# waits, and SQS finds no group behind 120,000 waiting messages.
LEAST_OF_SESSION, LEAST_IN_GROUP = 2, 15
# Of what all sessions without a secret publish in a realm: one network may open as many of the connections of a second.
MAXIMUM_OF_NETWORK = MAXIMUM_KILOBYTES // 5
# Of the records of a publisher's sessions. A batch of frames writes one, and twice the outbox with a copy, a third
# larger. With the events, that is what a new table takes. Most records have 2 KB or less, and count nothing.
RECORD_PART, RECORD_WRITES, SMALL_RECORD = 2 / 3, 4, 2
COUNTED_FROM = 50  # KB that a function instance counts together, with one write
KNOWN_SHARES = 10_000
ABOVE_LIMIT = (
    "above the limit of a publisher, in ten seconds 15,000 KB, and by sessions 7,500 events, 1,000 of them in one "
    "order: publish less, or later"
)


class KilobyteCounter(Protocol):
    """The KB that each share has in each period, of all function instances."""

    def add(self, share: str, kilobytes: int, *, period: int) -> int:
        """Add to the KB of a period; return their sum."""


def kilobytes_of(size: int, *, is_retained: bool) -> int:
    """Return the KB that a publication counts, given its size in bytes."""
    return (1 + size // 1_024) * (RETAINED if is_retained else 1)


@dataclass(frozen=True, slots=True)
class Share:
    """What a publisher may publish in a period: `most` KB, where each publication counts `least` or more."""

    name: str
    most: int = MAXIMUM_KILOBYTES
    least: int = 1


def shares_of(session: "Session", group: str | None) -> list[Share]:
    """Return the shares in which a publication of a session to a message group counts.

    A user of the stage has one name in all realms. Users of tokens and sessions without a secret are those of a realm,
    and the latter also those of a network.
    """
    return [
        share
        for one in _shares_of(session)
        for share in (
            Share(one.name, one.most, LEAST_OF_SESSION),
            Share(f"{one.name}#{session.realm}#{group}", one.most, LEAST_IN_GROUP),
        )
    ]


def _shares_of(session: "Session") -> list[Share]:
    if session.is_anonymous:
        every = Share(f"{session.realm}##")
        has_network = session.network is not None  # a local stage's has none
        return [Share(f"{every.name}{session.network}", MAXIMUM_OF_NETWORK), every] if has_network else [every]
    user = cast("Identity", session.identity).authid
    return [Share(user if session.token is None else f"{session.realm}#{user}")]


@dataclass(slots=True)
class PublisherLimits:
    """What publishers may still publish, as far as a function instance knows."""

    counter: KilobyteCounter
    exclusive: AbstractContextManager[object]
    _uncounted: dict[tuple[str, int], int] = field(default_factory=dict)
    _full: set[tuple[str, int]] = field(default_factory=set)

    def admits(self, shares: Collection[Share], kilobytes: int, *, at: datetime) -> bool:
        """Count a publication that was sent at a time in its shares, until one is full; return whether none is.

        Without KB, one is meant that was counted when it was received before. A share that is full stays full: the
        period is that of the sender, whenever the publication is processed.
        """
        period = int(at.timestamp()) // PERIOD_SECONDS
        return all(self._has_room(one, kilobytes and max(kilobytes, one.least), period) for one in shares)

    def admits_record(self, session: "Session", kilobytes: int, *, at: datetime) -> bool:
        """Count the writes of a session's record for a batch of frames; return whether its user may have more."""
        if kilobytes <= SMALL_RECORD:
            return True
        shares = [Share(f"records#{one.name}", int(one.most * RECORD_PART)) for one in _shares_of(session)]
        return self.admits(shares, RECORD_WRITES * kilobytes, at=at)

    def _has_room(self, share: Share, kilobytes: int, period: int) -> bool:
        key = share.name, period
        with self.exclusive:
            if key in self._full:
                return False
            due = self._uncounted.pop(key, 0) + kilobytes
            if kilobytes and due < COUNTED_FROM:
                _make_room(self._uncounted)
                self._uncounted[key] = due
                return True
        if self.counter.add(share.name, due, period=period) <= share.most:
            return True
        with self.exclusive:
            _make_room(self._full)
            self._full.add(key)
        return False


def _make_room(known: dict[tuple[str, int], int] | set[tuple[str, int]]) -> None:
    if len(known) >= KNOWN_SHARES:
        known.clear()
