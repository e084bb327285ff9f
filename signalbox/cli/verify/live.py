"""Live: a session, events with acknowledgement, the past, the order of frames, a revocation and refused connections."""

import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

from signalbox.cli.verify.trial import Trial, WrongResult, expect
from signalbox.clients.live.client import LiveClient, RequestUnconfirmed
from signalbox.clients.live.cursor import Cursor, ReceivedEvent
from signalbox.clients.live.session import (
    LOOKUP,
    ClientSession,
    ConnectionLost,
    Login,
    RequestRefused,
    Socket,
    SubscriptionRevoked,
    join,
)
from signalbox.clients.web_socket import CONNECT_SECONDS, connector
from signalbox.errors import SignalboxError
from signalbox.live.admin.commands import secret_fields
from signalbox.live.wamp.authentication import Credentials
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.live.wamp.error_uris import NOT_AUTHORIZED
from signalbox.live.wamp.messages import Payload, Publish
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.verify.names import RunNames
from signalbox.verify.report import Answer, inversions

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

T = TypeVar("T")
CAPABILITY = "live"
GET_EVENTS = "wamp.subscription.get_events"
SECRET_BYTES, SALT_BYTES = 24, 16
START_SECONDS = 120.0  # five functions start, and a client has 10 s to join
EVENT_SECONDS = 150.0  # a frame whose function failed comes again after a minute, the visibility timeout of the inbox
EVENTS, FRAMES = 10, 100
TOPIC, FRAME_TOPIC = "verify.events", "verify.frames"
# Without a right that is left, a reader that loses its connection during the revocation could not join again.
GRANTED = REVOKED, LASTING = "verify.", "lasting."


def verify_live(trial: Trial, client: "ExchangeClient", administrator: "ExchangeClient") -> None:
    """Run all steps; `client` is the user's, whose realm it is."""
    names, journal = trial.names, trial.journal
    with journal.step(CAPABILITY, "a realm with two users"):
        client.declare_exchange(names.realm, live={"live": True})
        writer, reader = (_login(administrator, names.realm, name) for name in (names.user, names.reader))
        for pattern in GRANTED:
            administrator.ask("grant", reading_grant(names, pattern))
    with journal.step(CAPABILITY, "a session joins"):
        _await_functions(trial, writer)
    with _client(trial, writer) as publisher, _client(trial, reader) as subscriber:
        cursor = Cursor(TopicPattern.parse(TOPIC))
        with journal.step(CAPABILITY, "events are published and received") as timing:
            subscriber.follow(cursor)
            list(subscriber.backfill())
            for number in range(EVENTS):
                started = time.monotonic()
                _repeated(trial, lambda number=number: publisher.publish(TOPIC, Payload((number,))))  # type: ignore[misc]
                found = _next(subscriber, after=number - 1)
                timing.latencies.append(time.monotonic() - started)
                expect(found == number, f"event {number} arrived as {found}")
        with journal.step(CAPABILITY, "a later client gets the past"):
            _check_past(trial, reader)
        with journal.step(CAPABILITY, "the order of a connection's frames") as timing:
            timing.detail = _order_of_frames(trial, writer, reader)
        with journal.step(CAPABILITY, "a revoked right ends a subscription") as timing, timing.measured():
            administrator.ask("ungrant", reading_grant(names, REVOKED))
            await_revocation(trial, subscriber)
    with journal.step(CAPABILITY, "wrong connections are refused"):
        refused = _refusals(trial)
        journal.answer("refused WebSocket connections", refused)
        expect(None not in refused.values(), f"a wrong connection was accepted: {refused}")
    trial.meter.note("exchange", "publication", EVENTS + FRAMES)
    trial.meter.note("history", "event", 2 * (EVENTS + FRAMES))
    trial.meter.count("websocket", "message", 4 * EVENTS + 3 * FRAMES)


def reading_grant(names: RunNames, pattern: str) -> dict[str, object]:
    """Return the fields of the commands `grant` and `ungrant` for the reader's right to topics with a prefix."""
    return {"user": names.reader, "exchange": names.realm, "right": "read", "match": "prefix", "uri": pattern}


def _login(administrator: "ExchangeClient", realm: str, user: str) -> Login:
    """Give a user a secret and return the login with it."""
    ticket = secrets.token_urlsafe(SECRET_BYTES)
    credentials = Credentials.of(ticket, salt=secrets.token_hex(SALT_BYTES), with_key=False)
    administrator.ask("secret", {"user": user, **secret_fields(credentials)})
    return Login(realm, user, ticket)


@contextmanager
def _client(trial: Trial, login: Login) -> Iterator[LiveClient]:
    with LiveClient(connector(trial.deployment.websocket_url), login) as client:
        yield client


def _await_functions(trial: Trial, login: Login) -> None:
    """Join once: functions that start for the first time take longer than a client has to join."""
    with _session(trial, login):
        pass


@contextmanager
def _session(trial: Trial, login: Login) -> Iterator[ClientSession]:
    """Provide a session that does not reconnect; joining is tried until it succeeds."""
    joined: list[tuple[Socket, ClientSession]] = []

    def joins() -> bool:
        with suppress(SignalboxError):
            socket = connector(trial.deployment.websocket_url)()
            try:
                joined.append((socket, join(socket, login)))
            except SignalboxError:
                socket.close()
        return bool(joined)

    trial.wait_until(joins, "a session joins the realm", seconds=START_SECONDS)
    ((socket, session),) = joined
    try:
        yield session
    finally:
        socket.close()


def _repeated(trial: Trial, request: Callable[[], T]) -> T:
    """Return the result of a request that is repeated when its reply is lost: connections end now and then."""
    done: list[T] = []

    def is_confirmed() -> bool:
        with suppress(RequestUnconfirmed, ConnectionLost):
            done.append(request())
        return bool(done)

    trial.wait_until(is_confirmed, "a request has a reply", seconds=EVENT_SECONDS)
    return done[0]


def _next(client: LiveClient, *, after: int) -> int:
    """Return the number of the next event, without repetitions of the last one whose reply was lost."""
    while (number := _number(_event(client))) == after:
        pass
    return number


def _event(client: LiveClient) -> ReceivedEvent:
    event = client.receive(EVENT_SECONDS)
    if event is None:
        raise WrongResult(f"no event arrived within {EVENT_SECONDS:g} s")
    return event


def _check_past(trial: Trial, login: Login) -> None:
    expected = list(range(EVENTS))
    with _client(trial, login) as late:
        late.follow(Cursor(TopicPattern.parse(TOPIC), LastEvents(2 * EVENTS)))
        past = [_number(event) for event in late.backfill()]
        expect(_distinct(past) == expected, f"the backfill has {past}")
        subscription = _repeated(trial, lambda: late.call(LOOKUP, Payload((TOPIC, {"match": "exact"})))).arguments[0]
        asked = Payload((subscription,), {"limit": 2 * EVENTS})
        found = _repeated(trial, lambda: late.call(GET_EVENTS, asked)).arguments
        numbers = [event["args"][0] for event in found if isinstance(event, Mapping)]
        expect(_distinct(numbers) == expected, f"{GET_EVENTS} returns {numbers}")


def _distinct(numbers: Sequence[int]) -> list[int]:
    """Return the numbers without repetitions of the one before: a publication is repeated when its reply is lost."""
    return [number for number, _ in groupby(numbers)]


def _order_of_frames(trial: Trial, writer: Login, reader: Login) -> str:
    """Send frames on one connection without waiting, and compare the order in the topic's log with it."""
    received: list[int] = []
    with _client(trial, reader) as subscriber:
        subscriber.follow(Cursor(TopicPattern.parse(FRAME_TOPIC)))
        list(subscriber.backfill())
        with _session(trial, writer) as session:
            for number in range(FRAMES):
                session.send_request(partial(Publish, options={}, topic=FRAME_TOPIC, payload=Payload((number,))))
            received += [_number(_event(subscriber)) for _ in range(FRAMES)]
    late = inversions(received)
    answer = {"frames": FRAMES, "arrived": len(set(received)), "out_of_order": late}
    trial.journal.answer("order of frames on their way into FIFO", answer)
    expect(set(received) == set(range(FRAMES)), f"{FRAMES - len(set(received))} frames are missing")
    expect(late == 0, f"{late} of {FRAMES} frames came after a later one")
    return f"{FRAMES} frames in order"


def _number(event: ReceivedEvent) -> int:
    (number,) = event.payload.arguments
    return int(str(number))


def await_revocation(trial: Trial, subscriber: LiveClient) -> None:
    """Wait until a subscription ends, or is refused to a client that lost its connection. Raises `WrongResult`."""

    def is_revoked() -> bool:
        try:
            subscriber.receive(1.0)
        except SubscriptionRevoked:
            return True
        except RequestRefused as refused:  # the connection was lost, and the client subscribes again
            if refused.error != NOT_AUTHORIZED:
                raise
            return True
        return False

    trial.wait_until(is_revoked, "the subscription ends", seconds=EVENT_SECONDS, pause=0)


def _refusals(trial: Trial) -> dict[str, Answer]:
    """Return the HTTP status of wrong connections, or None for one that was accepted."""
    url = trial.deployment.websocket_url
    tries: dict[str, tuple[str, Sequence[str]]] = {
        "without a subprotocol": (url, ()),
        "with another subprotocol": (url, ("wamp.2.msgpack",)),
        "of another stage of the API": (f"{url.rpartition('/')[0]}/nothing", (SUBPROTOCOL,)),
    }
    return {name: _status(target, offered) for name, (target, offered) in tries.items()}


def _status(url: str, offered: Sequence[str]) -> int | None:
    from websockets.exceptions import InvalidHandshake, InvalidStatus
    from websockets.sync.client import connect
    from websockets.typing import Subprotocol

    try:
        subprotocols = [Subprotocol(one) for one in offered] or None
        connect(url, subprotocols=subprotocols, open_timeout=CONNECT_SECONDS, compression=None).close()
    except InvalidStatus as refused:
        return int(refused.response.status_code)
    except (InvalidHandshake, OSError):
        return 0
    return None
