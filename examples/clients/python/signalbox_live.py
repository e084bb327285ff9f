"""Follows topics of a live exchange over Autobahn: each event once, in order, through lost connections."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from autobahn.asyncio.component import Component, run
from autobahn.wamp.exception import ApplicationError
from autobahn.wamp.types import EventDetails, SubscribeOptions

KEPT = 100_000  # publications of a subscription that are known as duplicates
GRACE = timedelta(minutes=2)  # events of a pattern overtake one another, and clocks differ


@dataclass
class Event:
    """What was published."""

    topic: str
    publication: int
    args: list[Any]
    kwargs: dict[str, Any]
    retained: bool = False


@dataclass
class Followed:
    """A subscription, and what was seen of it; while the past is fetched, live events wait."""

    topic: str
    callback: Callable[[Event], None]
    match: str = "exact"
    last: int = 0
    latest: bool = False
    seen: dict[int, None] = field(default_factory=dict)
    newest: int | None = None
    alive: datetime | None = None
    waiting: list[Event] | None = None

    def received(self, *args: Any, details: EventDetails, **kwargs: Any) -> None:
        """Take a live event."""
        topic = details.topic or self.topic
        event = Event(topic, details.publication, list(args), kwargs, bool(details.retained))
        if self.waiting is None:
            self.give(event)
        else:
            self.waiting.append(event)

    def give(self, event: Event) -> None:
        """Call back, unless it is a duplicate."""
        self.alive = datetime.now(UTC)
        if event.publication in self.seen:
            return
        self.seen[event.publication] = None
        if len(self.seen) > KEPT:
            del self.seen[next(iter(self.seen))]
        if not event.retained:
            self.newest = event.publication
        self.callback(event)

    async def catch_up(self, call: Callable[..., Awaitable[Any]], subscription: int) -> None:
        """Give what was published before the live events that wait, then those."""
        wanted = self._wanted()
        events: list[Event] = []
        while wanted:
            page = await call("wamp.subscription.get_events", subscription, **wanted)
            found = [self._event(one) for one in page.results]
            events += found
            further = page.kwresults.get("more") and found and "reverse" not in wanted
            wanted = {"after_publication": found[-1].publication} if further else {}
        events = events[::-1] if self.alive is None else events
        waiting, self.waiting = self.waiting or [], None
        for event in [*events, *waiting]:
            self.give(event)
        self.alive = self.alive or datetime.now(UTC)

    def _wanted(self) -> dict[str, Any]:
        if self.match == "exact" and self.newest is not None:
            return {"after_publication": self.newest}
        if self.alive is not None:
            return {"from_time": (self.alive - GRACE).isoformat()}
        return {"limit": self.last, "reverse": True} if self.last else {}

    def _event(self, told: dict[str, Any]) -> Event:
        topic = told["details"].get("topic", self.topic)
        return Event(topic, told["publication"], told.get("args", []), told.get("kwargs", {}))


class Live:
    """A connection that comes back by itself. `failed` gets what cannot be repaired by another try."""

    def __init__(self, *, url: str, realm: str, user: str, ticket: str, failed: Callable[[str], None] = print) -> None:
        self.followed: list[Followed] = []
        self.failed = failed
        transport = {"type": "websocket", "url": url, "max_retries": -1, "initial_retry_delay": 0.5}
        self.component = Component(
            transports=[{**transport, "max_retry_delay": 30.0, "serializers": ["json"]}],
            realm=realm,
            authentication={"ticket": {"authid": user, "ticket": ticket}},
        )
        self.component.on_join(self._joined)

    def follow(self, topic: str, callback: Callable[[Event], None], **options: Any) -> "Live":
        """Have each event given. `last` events of the past come first; with `latest`, a topic's retained state does."""
        self.followed.append(Followed(topic, callback, **options))
        return self

    def run(self) -> None:
        """Follow until interrupted."""
        run([self.component], log_level="error")

    async def _joined(self, session: Any, _details: Any) -> None:
        await asyncio.gather(*(self._subscribe(session, one) for one in self.followed))

    async def _subscribe(self, session: Any, one: Followed) -> None:
        one.waiting = []
        options = SubscribeOptions(match=one.match, get_retained=one.latest or None, details_arg="details")
        try:
            subscription = await session.subscribe(one.received, one.topic, options)
            await one.catch_up(session.call, subscription.id)
        except ApplicationError as error:
            self.failed(f"{one.topic}: {error.error_message()}")
