"""The realm of a bridge: publishes by SQS, and reads back with a live session what the realm has."""

import json
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from signalbox.clients.bridge.pace import PublicationPace
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.exchange.publisher import PublishRequest
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.errors import RejectedError, UnavailableError
from signalbox.exchange.messages.properties import MessageProperties
from signalbox.exchange.model.records import OrderBy
from signalbox.live.bridge.checkpoints import Checkpoint, Intent, StoredCheckpoint
from signalbox.live.bridge.publications import LOG_ID, RowPublication
from signalbox.live.log.payloads import RETAIN_HEADER, RETAINED
from signalbox.live.router.write_limits import kilobytes_of
from signalbox.live.wamp.options import AfterTime
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.messages import size_bytes

MARKER = "marker"
MARKER_SECONDS = 60.0
# The clocks of SQS's servers may differ, and rows of a window are published after their checkpoint.
MARGIN = timedelta(minutes=1)
# Rows of a window and their checkpoint are younger than this in a log that is still complete.
SHORTEST_AGE = timedelta(minutes=10)


class RealmBehind(UnavailableError):
    """Raised when a realm has not routed the bridge's messages after a minute."""


@dataclass(slots=True)
class BridgedRealm:
    """Implementation of `Realm` for one exchange. `aws_errors` are the errors of calls that AWS did not answer.

    `live` opens a live session, which reads the topic of the checkpoint and those of the rows.
    """

    client: ExchangeClient
    exchange: str
    topic: str
    order_by: OrderBy
    age: timedelta | None
    live: Callable[[], AbstractContextManager[LiveClient]]
    aws_errors: tuple[type[Exception], ...] = ()
    marker_seconds: float = MARKER_SECONDS
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))
    monotonic: Callable[[], float] = time.monotonic
    pace: PublicationPace = field(default_factory=PublicationPace)

    def checkpoint(self) -> StoredCheckpoint | None:
        """Return the latest checkpoint once everything that the realm accepted from the bridge is in its log."""
        latest: StoredCheckpoint | None = None
        for document, at in self.retained(self.topic):
            latest = StoredCheckpoint(Checkpoint.parse(document), at)
        return latest

    def retained(self, topic: str) -> Iterator[tuple[Mapping[str, object], datetime]]:
        """Yield the retained event of a topic, and those that the realm has accepted but not yet routed.

        The realm routes the bridge's messages in their order. So when a marker arrives, everything before it has been
        routed.
        """
        with self.live() as client:
            client.follow(PatternCursor(TopicPattern.parse(topic), get_retained=True))
            yield from filter(None, map(_document_and_time, client.backfill()))
            token = secrets.token_hex(8)
            self.send(PublishRequest(topic, json.dumps({MARKER: token}), deduplication_id=token))
            deadline = self.monotonic() + self.marker_seconds
            while True:
                received = client.receive(max(deadline - self.monotonic(), 0.0))
                if received is None:
                    raise RealmBehind(f"realm {self.exchange!r} has not routed a message of the bridge yet")
                if _document(received).get(MARKER) == token:
                    return
                if found := _document_and_time(received):
                    yield found

    def logged(self, window: Sequence[Intent], *, since: datetime) -> Collection[Intent]:
        """Return the publications of a window that are in the realm's log; the checkpoint is of `since`."""
        if self.age is not None and self.now() - since > self.age - MARGIN:
            first, last = min(one.id for one in window), max(one.id for one in window)
            raise RejectedError(
                f"realm {self.exchange!r} keeps events for {self.age}, and the bridge was killed earlier, at "
                f"{since:%Y-%m-%d %H:%M:%S} UTC: whether the rows {first} to {last} are published is unknown. "
                f"Give --from-log-id with --ignore-checkpoint: {last} leaves them out, {first - 1} publishes them"
            )
        found = set[Intent]()
        with self.live() as client:
            for topic in dict.fromkeys(one.topic for one in window):
                client.follow(PatternCursor(TopicPattern.parse(topic), AfterTime(since - MARGIN)))
            for event in client.backfill():
                text = event.headers.get(LOG_ID, "")
                found |= {Intent(int(text), event.topic)} if text.isascii() and text.isdigit() else set()
        return found

    def save(self, checkpoint: Checkpoint) -> None:
        """Publish a checkpoint."""
        self.retain(self.topic, checkpoint.document())

    def retain(self, topic: str, document: Mapping[str, object]) -> None:
        """Publish the state of a topic of the bridge."""
        self.send(PublishRequest(topic, json.dumps(document, separators=(",", ":")), {RETAIN_HEADER: RETAINED}))

    def publish(self, publication: RowPublication) -> None:
        """Publish a part of a row. SQS accepts it once in five minutes."""
        identity = publication.deduplication_id
        self.send(PublishRequest(publication.topic, publication.body, publication.headers, deduplication_id=identity))

    def send(self, request: PublishRequest, *, is_log: bool = False) -> None:
        """Publish a message. Raises `InvalidPublication`, and `UnavailableError` if its outcome is unknown."""
        properties = MessageProperties.of_publication(request.routing_key, request.body, request.headers)
        is_retained = request.headers.get(RETAIN_HEADER) == RETAINED
        kilobytes = kilobytes_of(size_bytes(properties.published()), is_retained=is_retained)
        self.pace.wait(kilobytes, is_log=is_log)
        with self._translated_errors():
            (result,) = self.client.publish_all(self.exchange, [request], order_by=self.order_by)
        if result.message_id is None:
            raise UnavailableError(f"SQS did not confirm a message to exchange {self.exchange!r}")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except self.aws_errors as error:
            raise UnavailableError(f"AWS: {error}") from error


def check_realm(document: Mapping[str, Any], topics: Sequence[str]) -> tuple[OrderBy, timedelta | None]:
    """Return the order of a realm, and how long its log keeps the events of topics.

    Raises `RejectedError` for an exchange that cannot be a bridge's realm.
    """
    name, live = document["exchange"], document.get("live")
    if live is None:
        raise RejectedError(f"exchange {name!r} is not live: declare it with --live --order-by exchange")
    order_by = OrderBy(live["order_by"])
    if order_by is OrderBy.TOPIC:
        raise RejectedError(
            f"exchange {name!r} keeps the order of each topic, and log rows have one order: "
            "declare it with --order-by exchange"
        )
    rules: Mapping[str, Mapping[str, int | None]] = live.get("rules") or {}
    kept = [live["retention"], *(rule for prefix, rule in rules.items() if _overlaps(prefix, topics))]
    ages = [timedelta(seconds=one["age_seconds"]) for one in kept if one.get("age_seconds")]
    if min(ages, default=SHORTEST_AGE) < SHORTEST_AGE:
        raise RejectedError(f"exchange {name!r} keeps events for less than {SHORTEST_AGE}: declare it with --keep-for")
    return order_by, min(ages, default=None)


def _overlaps(prefix: str, topics: Sequence[str]) -> bool:
    return any(prefix.startswith(topic) or topic.startswith(prefix) for topic in topics)


def _document_and_time(event: ReceivedEvent) -> tuple[Mapping[str, object], datetime] | None:
    """Return the document of an event and its time; None for a marker."""
    document = _document(event)
    return None if MARKER in document or event.at is None else (document, event.at)


def _document(event: ReceivedEvent) -> Mapping[str, object]:
    first = event.payload.arguments[0] if event.payload.arguments else None
    return first if isinstance(first, dict) else {}
