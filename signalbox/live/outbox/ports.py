"""Ports of live: topic logs, subscribers, outboxes and connections, as Protocols named for their roles.

Every method lets service errors propagate: the caller's message is redelivered, so every call may be made twice.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.items import OutboxItem
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from signalbox.parallel import ParallelMap


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A connection that is subscribed to a pattern, with the identity of its session."""

    connection: ConnectionId
    pattern: TopicPattern
    listener: Listener


Reader = tuple[ExchangeName, str]  # a realm and a name in it: another realm's user of that name is another one


class TopicLog(Protocol):
    """The logs of topics, as backfills and history requests read them, several of them with `parallel_map`."""

    @property
    def parallel_map(self) -> "ParallelMap":
        """Return how several topics are read."""

    def request(self, reader: Reader) -> "AbstractContextManager[TopicLog]":
        """Return the log for one request, which keeps what it has read until the request ends.

        It and its methods raise `PastTooLarge` and `ReadsBusy`. The requests of one reader
        follow one another, and what it reads in some seconds is limited.
        """

    @property
    def is_large(self) -> bool:
        """Return whether the request has read more than `SMALL`, above which requests wait for one another."""

    def spend(self, cost: int) -> None:
        """Add the cost of what the request reads elsewhere."""

    def count_post(self, size: int) -> None:
        """Count a post that follows the request, with its size in bytes, as a part of what its reader may read."""

    def events(self, realm: ExchangeName, topic: RoutingKey, *, live: LiveSettings, now: datetime) -> list[LoggedEvent]:
        """Return the unexpired events of a topic in their order, with strong read-after-write consistency."""

    def newest_first(
        self,
        realm: ExchangeName,
        topic: RoutingKey,
        is_kept: Callable[[LoggedEvent], bool],
        *,
        live: LiveSettings,
        now: datetime,
        page: int | None = None,
    ) -> Iterator[LoggedEvent]:
        """Yield the events of `events`, newest first, and also expired ones that are kept.

        Events are read as they are taken: `page` in one read, or all kept ones. Raises `PastTooLarge` if the log does
        not have all that are kept any more.
        """

    def topics(
        self, realm: ExchangeName, pattern: TopicPattern, *, since: datetime, named: Collection[RoutingKey] = ()
    ) -> Mapping[RoutingKey, datetime]:
        """Return the topics with events that match a pattern, each with a time after which none was logged.

        All with events that were logged since a time are among them, and those of `named`.
        """

    def retained(
        self, realm: ExchangeName, pattern: TopicPattern, *, after: RoutingKey | None = None
    ) -> Iterator[LoggedEvent]:
        """Yield the latest unrestricted and the latest restricted retained event of each topic, in the topics' order.

        The topics are those that match a pattern, and for a wildcard all that begin as it does. Those up to `after` are
        left out. Events are read as they are taken.
        """

    def retained_of(self, realm: ExchangeName, topics: Iterable[RoutingKey]) -> Iterator[LoggedEvent]:
        """Yield the same events of some topics, in any order."""

    def rows_after(self, realm: ExchangeName, number: int, *, now: datetime) -> Iterator[LoggedEvent]:
        """Yield the events of the last 30 minutes that carry a log row with a greater id, in the order of the ids.

        Only for a realm for Arvados' clients, with strong read-after-write consistency for each part that is read.
        """


class Outboxes(Protocol):
    """The outboxes of connections, as sessions write them."""

    def put(self, connection: ConnectionId, items: Sequence[OutboxItem]) -> None:
        """Append items to an outbox; an item that is put twice within minutes is stored once.

        Raises `EffectFailed`.
        """


class PostResult(Enum):
    """The result of posting to a connection."""

    POSTED = auto()
    GONE = auto()  # the connection is closed
    BUSY = auto()  # not posted; a retry may succeed
    TOO_LARGE = auto()  # not posted; a retry cannot succeed
    UNKNOWN = auto()  # posted or not


class Connections(Protocol):
    """The WebSocket connections of clients."""

    def post(self, connection: ConnectionId, text: str, *, is_repeatable: bool) -> PostResult:
        """Post a message. A repeatable one may be retried, so the client may receive it twice."""

    def close(self, connection: ConnectionId) -> None:
        """Close a connection. Idempotent."""
