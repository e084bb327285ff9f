"""The realm of a bridge that publishes logs of containers: their parts, and how far each is published."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Self

from signalbox.clients.bridge.realm import MARGIN, BridgedRealm
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import RequestRefused
from signalbox.live.bridge.log_positions import LogPosition, LogPositions
from signalbox.live.bridge.log_reader import LogPublication
from signalbox.live.procedures.meta_events import ON_CREATE
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import AfterTime
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import NO_SUCH_SUBSCRIPTION, PAYLOAD_SIZE_EXCEEDED

if TYPE_CHECKING:
    from signalbox.clients.live.client import LiveClient

LIST, GET = "wamp.subscription.list", "wamp.subscription.get"
# New subscriptions are announced; the list removes those that have ended.
LISTED_EACH = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class LogRealm:
    """Implementation of `LogSink` for the realm of a bridge."""

    realm: BridgedRealm

    @property
    def topic(self) -> str:
        """Return the topic of the positions."""
        return f"{self.realm.topic}.logs"

    def publish_log(self, publication: LogPublication) -> None:
        """Publish a part of a log. SQS accepts it once in five minutes."""
        piece = publication.piece
        part = f"{publication.topic} {piece.begin} {piece.end} {piece.cut_back_from}"
        identity = hashlib.sha256(part.encode()).hexdigest()
        self.realm.send(PublishRequest(publication.topic, publication.body, piece.headers(), deduplication_id=identity))

    def save(self, positions: LogPositions) -> None:
        """Publish positions."""
        self.realm.retain(self.topic, positions.document())

    def positions(self) -> LogPositions:
        """Return the positions with what the realm's log has of them.

        Positions are saved each few seconds, and a container's before its first line, so what was published after the
        last save is in the log.
        """
        stored, saved_at = LogPositions(), None
        for document, at in self.realm.retained(self.topic):
            stored, saved_at = LogPositions.parse(document), at
        if saved_at is not None and stored.followed:
            self._apply_log(stored.followed, since=saved_at)
        return stored

    def _apply_log(self, positions: Sequence[LogPosition], *, since: datetime) -> None:
        by_prefix = {prefix: one for one in positions for prefix in one.prefixes()}
        with self.realm.live() as client:
            for prefix in by_prefix:
                client.follow(PatternCursor(TopicPattern.parse(prefix, MatchPolicy.PREFIX), AfterTime(since - MARGIN)))
            for event in client.backfill():
                position = by_prefix.get(f"{event.topic.rpartition('.')[0]}.")
                end = event.headers.get("end", "")
                if position is not None and end.isdecimal():
                    position.offsets[event.topic] = int(end)


@dataclass(slots=True)
class Subscriptions:
    """The patterns to which sessions of a realm are subscribed: listed each minute, and announced in between."""

    client: "LiveClient"
    _patterns: dict[int, TopicPattern] = field(default_factory=dict)
    _listed_at: datetime | None = None

    @classmethod
    def follow(cls, client: "LiveClient") -> Self:
        """Return the subscriptions of the realm of a client."""
        client.follow(PatternCursor(TopicPattern.parse(ON_CREATE)))
        return cls(client)

    def patterns(self, now: datetime) -> Iterable[TopicPattern]:
        """Return the present patterns. Raises `RequestRefused` without the right to read them."""
        if self._listed_at is None or now - self._listed_at >= LISTED_EACH:
            self._listed_at = now
            self._list()
        while event := self.client.receive(0.0):
            self._add(event.payload.arguments[1:2])
        return self._patterns.values()

    def _list(self) -> None:
        try:
            ids: Any = self.client.call(LIST).arguments[0]
        except RequestRefused as refused:
            if refused.error != PAYLOAD_SIZE_EXCEEDED:
                raise
            return  # there are more than fit into an answer: the announced ones are known
        present = {number for numbers in ids.values() for number in numbers}
        self._patterns = {number: one for number, one in self._patterns.items() if number in present}
        for number in present - self._patterns.keys():
            try:
                self._add(self.client.call(GET, Payload((number,))).arguments)
            except RequestRefused as refused:
                if refused.error != NO_SUCH_SUBSCRIPTION:  # it has ended since the list was made
                    raise

    def _add(self, details: Sequence[object]) -> None:
        for one in details:
            if isinstance(one, dict):
                self._patterns[one["id"]] = TopicPattern(MatchPolicy(one["match"]), one["uri"])
