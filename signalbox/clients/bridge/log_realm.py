"""The realm of a bridge that publishes logs of containers: their parts, and how far each is published."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Self

from signalbox.clients.bridge.realm import MARGIN, BridgedRealm
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.live.bridge.log_positions import LogPosition, LogPositions
from signalbox.live.bridge.log_reader import LogPublication
from signalbox.live.procedures.meta_events import ON_CREATE
from signalbox.live.procedures.subscription_meta import FIRST_PLACE
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import AfterTime
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

LIST = "wamp.subscription.list"
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
        request = PublishRequest(publication.topic, publication.body, piece.headers(), deduplication_id=identity)
        self.realm.send(request, is_log=True)

    def save(self, positions: LogPositions) -> None:
        """Publish positions."""
        self.realm.retain(self.topic, positions.document())

    def positions(self) -> LogPositions:
        """Return the saved positions, advanced by what the realm's log has after them.

        Positions are saved every few seconds, and a container's before its first line, so the log has what was
        published after the last save.
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
    """The patterns to which sessions of a realm are subscribed: listed each minute, and announced in between.

    The list comes in pages, one at a time, so that no number of subscriptions keeps the bridge from its other work.
    """

    client: LiveClient
    _patterns: dict[int, TopicPattern] = field(default_factory=dict)
    _listed: dict[int, TopicPattern] = field(default_factory=dict)
    _listed_at: datetime | None = None
    _place: Sequence[int] | None = None

    @classmethod
    def follow(cls, client: LiveClient) -> Self:
        """Return the subscriptions of the realm of a client."""
        client.follow(PatternCursor(TopicPattern.parse(ON_CREATE)))
        return cls(client)

    def patterns(self, now: datetime) -> Iterable[TopicPattern]:
        """Return the present patterns. Raises `RequestRefused` without the right to read them."""
        if self._place is None and (self._listed_at is None or now - self._listed_at >= LISTED_EACH):
            self._listed_at, self._place, self._listed = now, FIRST_PLACE, {}
        if self._place is not None:
            self._read_page(self._place)
        while event := self.client.receive(0.0):
            self._add(event.payload.arguments[1:2])
        return (self._patterns | self._listed).values()

    def _read_page(self, place: Sequence[int]) -> None:
        page: Any = self.client.call(LIST, Payload((), {"after": [*place]}))
        self._add(page.arguments[0])
        self._place = page.keywords["after"]
        if self._place is None:
            self._patterns = self._listed

    def _add(self, details: Sequence[object]) -> None:
        for one in details:
            if isinstance(one, dict):
                self._listed[one["id"]] = TopicPattern(MatchPolicy(one["match"]), one["uri"])
