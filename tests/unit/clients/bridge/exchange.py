"""A realm of a bridge before the in-memory live router: SQS, which knows de-duplication ids, and live sessions."""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from signalbox.clients.bridge.realm import BridgedRealm
from signalbox.clients.exchange.publisher import PublishRequest, PublishResult
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.session import Login
from signalbox.clients.web_socket import connector
from signalbox.exchange.model.records import OrderBy
from signalbox.messages import MessageId
from tests.fakes.live_router import REALM, TICKET, Router

TOPIC = "bridge.arvados"
DAY = timedelta(days=1)


class AwsAway(Exception):
    """Raised as botocore's errors are."""


@dataclass(slots=True)
class Exchange:
    """The client of the realm's exchange, which knows de-duplication ids. `waiting` are messages not yet routed.

    Of the next calls, `lost_before` fail before their message is accepted, and `lost` afterwards.
    """

    router: Router
    is_routing: bool = True
    waiting: list[PublishRequest] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    outcomes: list[Any] = field(default_factory=list)
    lost_before: int = 0
    lost: int = 0
    lock: threading.RLock = field(default_factory=threading.RLock)

    def publish_all(
        self, exchange: str, requests: Iterable[PublishRequest], *, order_by: OrderBy
    ) -> Iterator[PublishResult]:
        assert (exchange, order_by) == (REALM, OrderBy.EXCHANGE)
        with self.lock:
            yield from list(self._published(requests))

    def _published(self, requests: Iterable[PublishRequest]) -> Iterator[PublishResult]:
        for request in requests:
            if self.lost_before:
                self.lost_before -= 1
                raise AwsAway("no answer, not accepted")
            outcome = self.outcomes.pop(0) if self.outcomes else None
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is not None:
                yield PublishResult(request, **outcome)
                continue
            if request.deduplication_id not in self.known:
                self.waiting.append(request)
            self.known |= {request.deduplication_id or "", ""} - {""}
            if self.is_routing:
                self.route()
            if self.lost:
                self.lost -= 1
                raise AwsAway("no answer")
            yield PublishResult(request, MessageId("1"))

    def route(self) -> None:
        for one in self.waiting:
            self.router.publish_message(one.routing_key, one.body, one.headers)
        self.waiting.clear()


@contextmanager
def session(router: Router) -> Iterator[LiveClient]:
    with LiveClient(connector(router.url), Login(REALM, "cluster", TICKET)) as client:
        yield client


def realm(exchange: Exchange, **settings: Any) -> BridgedRealm:
    known: dict[str, Any] = {"age": DAY, "aws_errors": (AwsAway,)}
    live = partial(session, exchange.router)
    return BridgedRealm(exchange, REALM, TOPIC, OrderBy.EXCHANGE, live=live, **{**known, **settings})  # type: ignore[arg-type]
