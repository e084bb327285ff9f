"""Follows topics of a live exchange with Autobahn: delivers each event once, in order, across lost connections."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from autobahn.asyncio.component import Component, run
from autobahn.wamp.exception import ApplicationError, TransportLost
from autobahn.wamp.types import EventDetails, SubscribeOptions

NAMES = ("authentication_failed", "authorization_failed", "no_such_realm", "payload_size_exceeded")
REFUSALS = {"wamp.close.killed", *(f"wamp.error.{name}" for name in NAMES)}
ENDED = "wamp.error.no_such_subscription"
CHECK_SECONDS = 60.0  # Autobahn for Python gets no notice of a revoked right, so each subscription is checked
KEPT_PUBLICATIONS = 100_000  # per subscription, to recognize duplicates
GRACE = timedelta(minutes=2)  # events of different topics may overtake one another, and clocks differ


@dataclass
class Event:
    """An event. `retained` marks the latest state of its topic, which is sent on subscribing."""

    topic: str
    publication: int
    args: list[Any]
    kwargs: dict[str, Any]
    retained: bool = False


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Subscription:
    """A topic or pattern, and how far it has been received. Live events wait while the history is fetched."""

    topic: str
    callback: Callable[[Event], None]
    match: str = "exact"
    last: int = 0
    latest: bool = False
    now: Callable[[], datetime] = _now
    publications: dict[int, None] = field(default_factory=dict)
    newest: int | None = None
    received_until: datetime | None = None
    waiting: list[Event] | None = None

    def begin(self) -> None:
        """Begin a session: keep live events back until `catch_up` has delivered the history."""
        self.waiting = []

    def received(self, *args: Any, details: EventDetails, **kwargs: Any) -> None:
        """Handle a live event or a retained one."""
        topic = details.topic or self.topic
        event = Event(topic, details.publication, list(args), kwargs, bool(details.retained))
        if self.waiting is None:
            self.deliver(event)
        else:
            self.waiting.append(event)

    def deliver(self, event: Event) -> None:
        """Call back, unless the event was delivered before."""
        self.received_until = self.now()
        if event.publication in self.publications:
            return
        self.publications[event.publication] = None
        if len(self.publications) > KEPT_PUBLICATIONS:
            del self.publications[next(iter(self.publications))]
        if not event.retained:
            self.newest = event.publication
        self.callback(event)

    async def catch_up(self, call: Callable[..., Awaitable[Any]], subscription: int) -> None:
        """Fetch all pages of the history and deliver them, then the events that wait."""
        request = self._request()
        newest_first = "reverse" in request
        events: list[Event] = []
        while request:
            page = await call("wamp.subscription.get_events", subscription, **request)
            found = [self._event(one) for one in page.results]
            events += found
            has_more = page.kwresults.get("more") and found and not newest_first
            request = {"after_publication": found[-1].publication} if has_more else {}
        for event in reversed(events) if newest_first else events:
            self.deliver(event)
        self.go_on()
        self.received_until = self.now()

    def go_on(self) -> None:
        """Deliver the live events that wait for the history, and later ones at once."""
        waiting, self.waiting = self.waiting or [], None
        for event in waiting:
            self.deliver(event)

    def _request(self) -> dict[str, Any]:
        if self.match == "exact" and self.newest is not None:
            return {"after_publication": self.newest}
        if self.received_until is not None:
            return {"from_time": (self.received_until - GRACE).isoformat()}
        return {"limit": self.last, "reverse": True} if self.last else {}

    def _event(self, logged: dict[str, Any]) -> Event:
        topic = logged["details"].get("topic", self.topic)
        return Event(topic, logged["publication"], logged.get("args", []), logged.get("kwargs", {}))


class Live:
    """A connection that is opened again when it is lost.

    `failed` is called with errors that another attempt would meet again.
    """

    def __init__(self, *, url: str, realm: str, user: str, ticket: str, failed: Callable[[str], None] = print) -> None:
        self.subscriptions: list[Subscription] = []
        self.failed = failed
        self.checks: set[asyncio.Task[None]] = set()
        transport = {"type": "websocket", "url": url, "max_retries": -1, "initial_retry_delay": 0.5}
        self.component = Component(
            transports=[{**transport, "max_retry_delay": 30.0, "serializers": ["json"]}],
            realm=realm,
            authentication={"ticket": {"authid": user, "ticket": ticket}},
            is_fatal=self._is_refused,
        )
        self.component.on_join(self._joined)

    def follow(self, topic: str, callback: Callable[[Event], None], **options: Any) -> "Live":
        """Call a function for each event.

        The `last` past events come first; with `latest`, a topic's retained event does. `match` is exact, prefix or
        wildcard.
        """
        self.subscriptions.append(Subscription(topic, callback, **options))
        return self

    def run(self) -> None:
        """Follow until interrupted or refused."""
        run([self.component], log_level="error")

    def _is_refused(self, error: Exception) -> bool:
        """Report an error that another attempt would meet again, such as a wrong ticket; it ends `run`."""
        if not isinstance(error, ApplicationError) or error.error not in REFUSALS:
            return False
        self.failed(error.error_message())
        return True

    async def _joined(self, session: Any, _details: Any) -> None:
        await asyncio.gather(*(self._subscribe(session, one) for one in self.subscriptions))

    async def _subscribe(self, session: Any, one: Subscription) -> None:
        one.begin()
        options = SubscribeOptions(match=one.match, get_retained=one.latest or None, details_arg="details")
        try:
            subscription = await session.subscribe(one.received, one.topic, options)
        except ApplicationError as error:
            self.failed(f"{one.topic}: {error.error_message()}")
            return
        try:
            await one.catch_up(session.call, subscription.id)
        except ApplicationError as error:
            self.failed(f"{one.topic}: {error.error_message()}")
            one.go_on()
        check = asyncio.get_running_loop().create_task(self.check(session, one.topic, subscription.id))
        self.checks.add(check)
        check.add_done_callback(self.checks.discard)

    async def check(self, session: Any, topic: str, subscription: int) -> None:
        """Report when the router has ended a subscription, because the right to it was revoked."""
        while session.is_attached():
            await asyncio.sleep(CHECK_SECONDS)
            try:
                await session.call("wamp.subscription.get_events", subscription, limit=1)
            except ApplicationError as error:
                if error.error == ENDED:
                    self.failed(f"{topic}: the right to it was revoked")
                    return
            except TransportLost:
                return  # the next session subscribes again
