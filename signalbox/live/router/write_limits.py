"""The limit of what a publisher writes to the logs of topics, which share a table with the sessions of all realms."""

from datetime import datetime
from typing import TYPE_CHECKING, cast

from signalbox.exchange.routing.limits import PERIOD_SECONDS, Allowance, Share

if TYPE_CHECKING:
    from signalbox.live.model.state import Session
    from signalbox.live.wamp.authentication import Identity

# 1,500 a second: two units each in a transaction. DynamoDB takes 4,000 a second from a new table, and 1,000 from the
# partition of all retained events of a realm, whose events count six times: a publisher may use half of it.
MAXIMUM_KILOBYTES, RETAINED = 1_500 * PERIOD_SECONDS, 6
# By sessions 750 events a second, of some 1,500 that a realm routes, and 100 of the 150 of a message group: the rest
# waits, and SQS finds no group behind 120,000 waiting messages.
LEAST_OF_SESSION, LEAST_IN_GROUP = 2, 15
# Of what all sessions without a secret publish in a realm: one network may open as many of the connections of a second.
PART_OF_NETWORK = 1 / 5
# Of the records of a publisher's sessions. A batch of frames writes one, and twice the outbox with a copy, a third
# larger. With the events, that is what a new table takes. Most records have 2 KB or less, and count nothing.
RECORD_PART, RECORD_WRITES, SMALL_RECORD = 2 / 3, 4, 2
ABOVE_LIMIT = (
    "above the limit of a publisher, in ten seconds 15,000 KB, and by sessions 7,500 events, 1,000 of them in one "
    "order: publish less, or later"
)


def kilobytes_of(size: int, *, is_retained: bool) -> int:
    """Return the KB that a publication counts, given its size in bytes."""
    return (1 + size // 1_024) * (RETAINED if is_retained else 1)


def shares_of(session: "Session", group: str | None) -> list[Share]:
    """Return the shares in which a publication of a session to a message group counts.

    A user of the stage has one name in all realms. Users of tokens and sessions without a secret are those of a realm,
    and the latter also those of a network.
    """
    return [
        share
        for one in _shares_of(session)
        for share in (
            Share(one.name, one.part, LEAST_OF_SESSION),
            Share(f"{one.name}#{session.realm}#{group}", one.part, LEAST_IN_GROUP),
        )
    ]


def _shares_of(session: "Session") -> list[Share]:
    if session.is_anonymous:
        every = Share(f"{session.realm}##")
        has_network = session.network is not None  # a local stage's has none
        return [Share(f"{every.name}{session.network}", PART_OF_NETWORK), every] if has_network else [every]
    user = cast("Identity", session.identity).authid
    return [Share(user if session.token is None else f"{session.realm}#{user}")]


def admits_record(allowance: Allowance, session: "Session", kilobytes: int, *, at: datetime) -> bool:
    """Count the writes of a session's record for a batch of frames; return whether its user may have more."""
    if kilobytes <= SMALL_RECORD:
        return True
    shares = [Share(f"records#{one.name}", one.part * RECORD_PART) for one in _shares_of(session)]
    return allowance.admits(shares, RECORD_WRITES * kilobytes, at=at)
