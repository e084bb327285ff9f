"""Live: a session, events with acknowledgement, the past, the order of frames, a revocation and refused connections."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import TypeVar

from signalbox.cli.live.sign_in import page_config, page_url_of
from signalbox.cli.verify.trial import NamedTrial
from signalbox.clients.exchange.client import ExchangeClient
from signalbox.clients.live.client import LiveClient
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import (
    LOOKUP,
    ClientSession,
    Login,
    RequestRefused,
    Socket,
    SubscriptionRevoked,
    join,
)
from signalbox.clients.web_socket import CONNECT_SECONDS, connector
from signalbox.errors import SignalboxError
from signalbox.flows.live import (
    AFTER,
    BEFORE,
    CAPABILITY,
    confirmed,
    distinct,
    follow_log,
    line_number,
    live_client,
    next_event,
)
from signalbox.flows.trial import Trial, WrongResult, expect
from signalbox.live.admin.commands import secret_fields
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.live.wamp.messages import Payload, Publish
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.live.wamp.uris import NOT_AUTHORIZED
from signalbox.verify.names import RunNames
from signalbox.verify.patience import RECEIVE_SECONDS, START_SECONDS
from signalbox.verify.questions import CONNECTIONS, FRAME_ORDER, PAGE, ROUTE
from signalbox.verify.report import Answer, inversions

T = TypeVar("T")
GET_EVENTS = "wamp.subscription.get_events"
SECRET_BYTES, SALT_BYTES = 24, 16
FRAMES = 100
TOPIC, FRAME_TOPIC = "verify.events", "verify.frames"
# Without a right that is left, a reader that loses its connection during the revocation could not join again.
GRANTED = REVOKED, LASTING = "verify.", "lasting."


def verify_live(trial: NamedTrial, client: ExchangeClient, administrator: ExchangeClient) -> None:
    """Run all steps; `client` is the user's, whose realm it is."""
    names, journal = trial.names, trial.journal
    with journal.step(CAPABILITY, "a realm with two users"):
        client.declare_exchange(names.realm, live={"live": True})
        writer, reader = (_login(administrator, names.realm, name) for name in (names.user, names.reader))
        for pattern in GRANTED:
            administrator.ask("grant", reading_grant(names, pattern))
    with journal.step(CAPABILITY, "the live page answers"):
        check_page(trial)
    with journal.step(CAPABILITY, "a session joins"):
        _await_functions(trial, writer)
    with live_client(trial, reader) as subscriber:
        follow_log(trial, TOPIC, pattern=TopicPattern.parse(TOPIC), writer=writer, reader=subscriber)
        with journal.step(CAPABILITY, "the procedure for past events"):
            _check_past(trial, reader)
        with journal.step(CAPABILITY, "the order of a connection's frames") as timing:
            timing.detail = _order_of_frames(trial, writer, reader)
        with journal.step(CAPABILITY, "a revoked right ends a subscription") as timing, timing.measured():
            administrator.ask("ungrant", reading_grant(names, REVOKED))
            await_revocation(trial, subscriber)
    with journal.step(CAPABILITY, "wrong connections are refused"):
        refused = _refusals(trial)
        journal.answer(CONNECTIONS, refused, is_expected=None not in refused.values())
        expect(None not in refused.values(), f"a wrong connection was accepted: {refused}")
    trial.meter.note("exchange", "publication", FRAMES)
    trial.meter.note("history", "event", 2 * FRAMES)
    trial.meter.count("websocket", "message", 3 * FRAMES)


def reading_grant(names: RunNames, pattern: str) -> dict[str, object]:
    """Return the fields of the commands `grant` and `ungrant` for the reader's right to topics with a prefix."""
    return {"user": names.reader, "exchange": names.realm, "right": "read", "match": "prefix", "uri": pattern}


def _login(administrator: ExchangeClient, realm: str, user: str) -> Login:
    """Give a user a secret and return the login with it."""
    ticket = secrets.token_urlsafe(SECRET_BYTES)
    credentials = StoredSecret.of(ticket, salt=secrets.token_hex(SALT_BYTES), with_key=False)
    administrator.ask("secret", {"user": user, **secret_fields(credentials)})
    return Login(realm, user, ticket)


def check_page(trial: NamedTrial) -> None:
    """Request the page from the stage's HTTP API. Raises `WrongResult`."""
    try:
        page_config(page_url_of(trial.deployment))
    except SignalboxError as error:
        trial.journal.answer(PAGE, {"answered": False}, is_expected=False)
        raise WrongResult(f"{error}. {PAGE.otherwise}") from error
    trial.journal.answer(PAGE, {"answered": True}, is_expected=True)


def _await_functions(trial: NamedTrial, login: Login) -> None:
    """Join once: functions that start for the first time take longer than a client has to join."""
    try:
        with _session(trial, login):
            trial.journal.answer(ROUTE, {"joined": True}, is_expected=True)
    except WrongResult as wrong:
        trial.journal.answer(ROUTE, {"joined": False}, is_expected=False)
        raise WrongResult(f"{wrong}. If the inbox queue gets no frame: {ROUTE.otherwise}") from wrong


@contextmanager
def _session(trial: NamedTrial, login: Login) -> Iterator[ClientSession]:
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


def _check_past(trial: NamedTrial, login: Login) -> None:
    """Compare the answer of the procedure for past events with what was published."""
    with live_client(trial, login) as client:
        client.follow(PatternCursor(TopicPattern.parse(TOPIC)))
        list(client.backfill())
        subscription = confirmed(trial, lambda: client.call(LOOKUP, Payload((TOPIC, {"match": "exact"})))).arguments[0]
        asked = Payload((subscription,), {"limit": 2 * (BEFORE + AFTER)})
        found = confirmed(trial, lambda: client.call(GET_EVENTS, asked)).arguments
        lines = [str(event["args"][0]) for event in found if isinstance(event, Mapping)]
        numbers = distinct([line_number(line) for line in lines])
        expect(numbers == list(range(BEFORE + AFTER)), f"{GET_EVENTS} returns {numbers}")


def _order_of_frames(trial: NamedTrial, writer: Login, reader: Login) -> str:
    """Send frames on one connection without waiting, and compare the order in the topic's log with it."""
    received: list[int] = []
    with live_client(trial, reader) as subscriber:
        subscriber.follow(PatternCursor(TopicPattern.parse(FRAME_TOPIC)))
        list(subscriber.backfill())
        with _session(trial, writer) as session:
            for number in range(FRAMES):
                session.send_request(partial(Publish, options={}, topic=FRAME_TOPIC, payload=Payload((number,))))
            received += [int(str(next_event(subscriber).payload.arguments[0])) for _ in range(FRAMES)]
    late = inversions(received)
    answer = {"frames": FRAMES, "arrived": len(set(received)), "out_of_order": late}
    trial.journal.answer(FRAME_ORDER, answer, is_expected=late == 0)
    expect(set(received) == set(range(FRAMES)), f"{FRAMES - len(set(received))} frames are missing")
    expect(late == 0, f"{late} of {FRAMES} frames came after a later one")
    return f"{FRAMES} frames in order"


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

    trial.wait_until(is_revoked, "the subscription ends", seconds=RECEIVE_SECONDS, pause=0)


def _refusals(trial: NamedTrial) -> dict[str, Answer]:
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
