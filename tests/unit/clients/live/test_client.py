"""The live client: login, reconnects, subscriptions and requests."""

import base64
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest

from signalbox.clients.identity.provider import ProviderUnavailable
from signalbox.clients.live.client import REPLY_SECONDS, ClientClock, LiveClient, RequestUnconfirmed
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.clients.live.renewal import RENEW, RenewalRefused
from signalbox.clients.live.session import (
    LOOKUP,
    ConnectionLost,
    JoinRefused,
    Login,
    PastOmitted,
    RequestRefused,
    SessionClosed,
    SubscriptionRevoked,
)
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.cases import catch_up

LOGS = TopicPattern.parse("logs.", MatchPolicy.PREFIX)
SUBSCRIPTION = 17
WELCOME = [2, 1, {"roles": {"broker": {}}, "_at": "2026-11-21T20:00:00Z"}]
SUBSCRIBED, CAUGHT_UP = [33, 1, SUBSCRIPTION], [50, 2, {}]
CUT, NOTHING = "cut", "nothing"


def event(sequence: int, topic: str = "logs.a") -> list[object]:
    return [36, SUBSCRIPTION, sequence, {"topic": topic, "_seq": sequence, "_at": "2026-11-21T20:00:01Z"}, [sequence]]


@dataclass(slots=True)
class Line:
    """A connection with scripted messages, which is lost after the last one."""

    coming: list[object]
    world: "World"
    sent: list[list[object]] = field(default_factory=list)
    is_closed: bool = False
    is_dead: bool = False

    def send(self, text: str) -> None:
        if self.is_dead:
            raise ConnectionLost("cut")
        self.sent.append(json.loads(text))

    def receive(self, timeout_seconds: float | None) -> str | None:
        said = self.coming.pop(0) if self.coming else CUT
        if said == CUT:
            raise ConnectionLost("cut")
        if said == NOTHING:
            self.world.now += timeout_seconds or 0
            return None
        return said if isinstance(said, str) else json.dumps(said)

    def close(self) -> None:
        self.is_closed = True


@dataclass(slots=True)
class World:
    """The scripted connections and the clock of a client."""

    lines: list[Line] = field(default_factory=list)
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    _next: Iterator[Line] = field(default_factory=lambda: iter(()))

    def client(
        self, *scripts: list[object] | None, ticket: str | None = "secret", token: Callable[[], str] | None = None
    ) -> LiveClient:
        """Return a client with these connections; None is one that cannot be opened."""
        left = list(scripts)

        def connect() -> Line:
            script = left.pop(0)
            if script is None:
                raise ConnectionLost("connection refused")
            self.lines.append(Line(script, self))
            return self.lines[-1]

        clock = ClientClock(lambda: self.now, self._sleep, lambda: 1.0, lambda: self.now)
        login = Login("trial.fifo", "alice", ticket) if token is None else Login("trial.fifo", token=token)
        return LiveClient(connect, login, clock)

    def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def world() -> World:
    return World()


def numbers(client: LiveClient, count: int) -> list[int | None]:
    return [received.sequence for _, received in zip(range(count), client, strict=False)]


# --- login


def test_a_client_joins_with_its_ticket_and_subscribes(world: World) -> None:
    client = world.client([[4, "ticket", {}], WELCOME, SUBSCRIBED, event(1)])
    client.follow(PatternCursor(LOGS, LastEvents(5)))

    received = client.receive()

    hello, authenticate, subscribe, lookup = world.lines[0].sent
    assert hello[:2] == [1, "trial.fifo"]
    assert isinstance(hello[2], dict)
    assert (hello[2]["authmethods"], hello[2]["authid"]) == (["ticket"], "alice")
    assert authenticate == [5, "secret", {}]
    assert subscribe == [32, 1, {"match": "prefix", "_history": {"last": 5}}, "logs."]
    assert lookup == [48, 2, {}, LOOKUP, ["logs.", {"match": "prefix"}]]
    assert received is not None
    assert received.payload == Payload((1,))


def test_a_client_without_a_ticket_joins_anonymously(world: World) -> None:
    client = world.client([WELCOME, SUBSCRIBED, event(1)], ticket=None)
    client.follow(PatternCursor(LOGS))

    client.receive()

    assert world.lines[0].sent[0][2]["authmethods"] == ["anonymous"]  # type: ignore[index]
    assert "secret" not in repr(Login("trial.fifo", "alice", "secret"))


def test_a_refused_login_is_raised_with_its_reason(world: World) -> None:
    client = world.client([[3, {"message": "there is no such realm"}, "wamp.error.no_such_realm"]])

    with pytest.raises(JoinRefused, match=r"there is no such realm \(wamp.error.no_such_realm\)"):
        client.receive()

    assert world.lines[0].is_closed


def test_the_first_session_is_tried_three_times(world: World) -> None:
    with pytest.raises(ConnectionLost, match="connection refused"):
        world.client([[3, {}, "wamp.error.timeout"]], None, None).receive()

    assert world.pauses == [0.5, 1]


def test_a_router_that_does_not_answer_is_a_lost_connection(world: World) -> None:
    with pytest.raises(ConnectionLost, match="did not answer within 30 s"):
        world.client(*[[[6, {}, "ignored"], NOTHING] for _ in range(3)]).receive()


# --- reconnecting


def test_a_client_reconnects_and_continues_at_its_position(world: World) -> None:
    client = world.client(
        [WELCOME, SUBSCRIBED, CAUGHT_UP, event(1), event(2)], [WELCOME, SUBSCRIBED, event(2), event(3), NOTHING]
    )
    client.follow(PatternCursor(LOGS))

    assert numbers(client, 3) == [1, 2, 3]
    after = {"since": "2026-11-21T20:00:00+00:00", "topics": {"logs.a": 2}}
    assert world.lines[1].sent[1] == [32, 1, {"match": "prefix", "_history": {"after": after}}, "logs."]
    assert world.lines[0].is_closed
    assert client.connections == 2


def test_pauses_grow_until_the_router_answers(world: World) -> None:
    client = world.client(
        [WELCOME, SUBSCRIBED],
        *([None] * 8),
        [WELCOME],
        [WELCOME, [3, {}, "wamp.error.timeout"]],
        [WELCOME, SUBSCRIBED],
        [WELCOME, SUBSCRIBED, event(1)],
    )
    client.follow(PatternCursor(LOGS))

    client.receive()

    assert world.pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, 30, 0.5]


def test_receive_times_out_without_a_connection(world: World) -> None:
    client = world.client([WELCOME, SUBSCRIBED], None, None, [WELCOME, SUBSCRIBED, event(1)])
    client.follow(PatternCursor(LOGS))

    assert client.receive(0.75) is None
    assert world.now == 0.75
    assert client.receive(3) is not None


def test_receive_times_out_without_an_event(world: World) -> None:
    client = world.client([WELCOME, NOTHING, NOTHING])

    assert client.receive(0) is None
    assert client.receive(2) is None
    assert world.now == 2


def test_an_abort_for_a_temporary_reason_is_a_lost_connection(world: World) -> None:
    client = world.client(
        [WELCOME, SUBSCRIBED, [3, {"message": "oh"}, "wamp.error.protocol_violation"]],
        [WELCOME, SUBSCRIBED, event(1)],
    )
    client.follow(PatternCursor(LOGS))

    assert client.receive() is not None


# --- subscriptions


def test_a_backfill_ends_with_the_reply_to_the_call_after_it(world: World) -> None:
    client = world.client([WELCOME, SUBSCRIBED, event(1), event(2), CAUGHT_UP, event(3)])
    client.follow(PatternCursor(LOGS, LastEvents(2)))

    assert [received.sequence for received in client.backfill()] == [1, 2]
    assert numbers(client, 1) == [3]


def test_a_subscription_may_be_added_to_a_session(world: World) -> None:
    client = world.client([WELCOME, NOTHING, SUBSCRIBED, CAUGHT_UP, event(1)], [WELCOME, SUBSCRIBED, event(2)])
    client.receive(1)

    client.follow(PatternCursor(LOGS))
    assert client.receive() is not None
    world.lines[0].is_dead = True
    client.follow(PatternCursor(TopicPattern.parse("other")))

    assert client.receive() is not None
    assert [sent[3] for sent in world.lines[1].sent if sent[0] == 32] == ["logs.", "other"]


def test_a_refused_subscription_is_raised_and_not_repeated(world: World) -> None:
    refused = [8, 32, 1, {}, "wamp.error.not_authorized", ["not for you"]]
    client = world.client([WELCOME, refused], [WELCOME, NOTHING])
    client.follow(PatternCursor(LOGS))

    with pytest.raises(RequestRefused, match=r"not for you \(wamp.error.not_authorized\)") as refusal:
        client.receive()

    assert refusal.value.error == "wamp.error.not_authorized"
    assert client.receive(5) is None
    assert [sent[0] for sent in world.lines[1].sent] == [1]
    assert list(client.backfill()) == []


def test_a_revoked_right_ends_the_subscription(world: World) -> None:
    withdrawn = [35, 0, {"subscription": SUBSCRIPTION, "reason": "wamp.error.not_authorized"}]
    of_others = [35, 0, {"subscription": 5}]
    client = world.client([WELCOME, SUBSCRIBED, of_others, [35, 0], withdrawn, event(1), NOTHING])
    client.follow(PatternCursor(LOGS))

    with pytest.raises(SubscriptionRevoked, match=r"'logs\.' is not open to this user any more"):
        client.receive()

    assert client.receive(1) is None


def test_too_many_past_events_are_reported_and_new_ones_follow_also_in_later_sessions(world: World) -> None:
    too_much = [35, 0, {"subscription": SUBSCRIPTION, "reason": "wamp.error.payload_size_exceeded", "message": "much"}]
    again = [[33, 3, SUBSCRIPTION], event(7), [50, 4, {}]]
    client = world.client([WELCOME, SUBSCRIBED, CAUGHT_UP, too_much, *again, CUT], [WELCOME, NOTHING])
    client.follow(PatternCursor(LOGS, LastEvents(3), get_retained=True))

    with pytest.raises(PastOmitted, match=r"'logs\.' goes on without past events: much"):
        client.receive()

    assert [one and one.sequence for one in (client.receive(), client.receive(1))] == [7, None]
    options = [sent[2] for line in world.lines for sent in line.sent if sent[0] == 32]
    later = {"after": {"since": "2026-11-21T20:00:00+00:00", "topics": {"logs.a": 7}}}
    assert [one.get("_history") for one in options] == [{"last": 3}, None, later]
    assert "get_retained" not in options[1]


@pytest.mark.parametrize("goodbye", catch_up.goodbyes(), ids=lambda one: one["reason"])
def test_a_client_answers_goodbye_and_raises_its_reason(world: World, goodbye: dict[str, str]) -> None:
    client = world.client([WELCOME, [6, {"message": goodbye["message"]}, goodbye["reason"]]])

    with pytest.raises(SessionClosed, match=goodbye["message"]):
        client.receive()

    assert world.lines[0].sent[-1] == [6, {}, "wamp.close.goodbye_and_out"]


# --- requests


def test_a_publication_is_confirmed_and_events_received_before_are_kept(world: World) -> None:
    client = world.client([WELCOME, SUBSCRIBED, CAUGHT_UP, event(1), [17, 3, 4711]])
    client.follow(PatternCursor(LOGS))

    publication = client.publish("logs.b", Payload((1,)), options={"retain": True})

    assert publication == 4711
    assert world.lines[0].sent[-1] == [16, 3, {"retain": True, "acknowledge": True}, "logs.b", [1]]
    assert client.receive() is not None


def test_a_call_has_its_result(world: World) -> None:
    client = world.client([WELCOME, [50, 1, {}, [5]]])

    assert client.call("wamp.session.count") == Payload((5,))


def test_an_error_reply_is_raised(world: World) -> None:
    client = world.client([WELCOME, [8, 48, 1, {}, "wamp.error.no_such_procedure"]])

    with pytest.raises(RequestRefused, match=r"^wamp.error.no_such_procedure$"):
        client.call("no.such")


def test_a_request_is_unconfirmed_if_the_connection_is_lost(world: World) -> None:
    client = world.client([WELCOME, NOTHING, CUT], [WELCOME, NOTHING], [WELCOME, NOTHING])

    with pytest.raises(RequestUnconfirmed, match="may have been executed"):
        client.publish("logs.a")
    client.receive(1)
    world.lines[1].is_dead = True
    with pytest.raises(RequestUnconfirmed, match="lost before the reply"):
        client.publish("logs.a")


def test_a_request_waits_for_a_connection_for_a_limited_time(world: World) -> None:
    client = world.client([WELCOME], *([None] * 9))
    assert client.receive(0.1) is None

    with pytest.raises(ConnectionLost, match=f"no connection for {REPLY_SECONDS:.0f} s"):
        client.call("x")


def test_leaving_the_with_block_closes_the_connection(world: World) -> None:
    with world.client([WELCOME, NOTHING]) as client:
        client.receive(1)

    assert world.lines[0].is_closed


def test_events_of_unknown_subscriptions_are_ignored(world: World) -> None:
    client = world.client([WELCOME, event(1), SUBSCRIBED, event(2)])
    client.follow(PatternCursor(LOGS))

    assert numbers(client, 1) == [2]


def test_replies_of_an_unexpected_type_are_ignored(world: World) -> None:
    client = world.client([WELCOME, [17, 1, 5], SUBSCRIBED, NOTHING])
    client.follow(PatternCursor(LOGS))

    assert client.receive(1) is None


def test_received_events_have_their_publication_time(world: World) -> None:
    client = world.client([WELCOME, SUBSCRIBED, event(1)])
    client.follow(PatternCursor(LOGS))

    received = client.receive()

    assert isinstance(received, ReceivedEvent)
    assert received.at == datetime(2026, 11, 21, 20, 0, 1, tzinfo=UTC)


# --- tokens of an identity provider


def jwt(number: int, *, issued_at: float, life: float = 600.0) -> str:
    claims = json.dumps({"n": number, "iat": issued_at, "exp": issued_at + life}).encode()
    return f"header.{base64.urlsafe_b64encode(claims).decode().rstrip('=')}.signature"


@dataclass(slots=True)
class Tokens:
    """A source of tokens, each valid for ten minutes of the world's clock; it fails as many times as `failures`."""

    world: World
    given: list[str] = field(default_factory=list)
    failures: int = 0

    def __call__(self) -> str:
        if self.failures:
            self.failures -= 1
            raise ProviderUnavailable("the provider does not answer")
        self.given.append(jwt(len(self.given), issued_at=self.world.now))
        return self.given[-1]


RENEWED = [50, 3, {}, [], {"expires_at": "2026-11-21T21:00:00Z"}]


def calls(line: Line) -> list[list[object]]:
    return [message for message in line.sent if message[0] == 48 and message[3] == RENEW]


def test_a_token_is_the_ticket_and_names_the_user(world: World) -> None:
    tokens = Tokens(world)
    client = world.client([[4, "ticket", {}], WELCOME, SUBSCRIBED, event(1)], token=tokens)
    client.follow(PatternCursor(LOGS))

    client.receive()

    hello, authenticate, *_ = world.lines[0].sent
    assert isinstance(hello[2], dict)
    assert (hello[2]["authmethods"], "authid" in hello[2]) == (["ticket"], False)
    assert authenticate == [5, tokens.given[0], {}]
    assert "given" not in repr(client.login)


def test_a_token_is_renewed_on_the_open_session_before_it_ends(world: World) -> None:
    tokens = Tokens(world)
    client = world.client([WELCOME, SUBSCRIBED, CAUGHT_UP, NOTHING, RENEWED, event(1), NOTHING, event(2)], token=tokens)
    client.follow(PatternCursor(LOGS))

    assert numbers(client, 2) == [1, 2]

    assert calls(world.lines[0]) == [
        [48, 3, {}, RENEW, [tokens.given[1]]],
        [48, 4, {}, RENEW, [tokens.given[2]]],
    ]
    assert client.connections == 1


def test_an_unavailable_provider_or_router_is_tried_again_while_the_session_goes_on(world: World) -> None:
    tokens = Tokens(world)
    unavailable = [8, 48, 3, {}, "wamp.error.unavailable", ["later"]]
    script = [WELCOME, SUBSCRIBED, CAUGHT_UP, NOTHING, NOTHING, NOTHING, unavailable, NOTHING, event(1)]
    client = world.client(script, token=tokens)
    client.follow(PatternCursor(LOGS))
    assert client.receive(1) is None

    tokens.failures = 1

    assert numbers(client, 1) == [1]
    assert [call[1] for call in calls(world.lines[0])] == [3, 4]
    assert client.connections == 1


def test_a_refused_renewal_is_raised_with_its_reason(world: World) -> None:
    refused = [8, 48, 3, {}, "wamp.error.authentication_failed", ["the token is for another user"]]
    client = world.client([WELCOME, SUBSCRIBED, CAUGHT_UP, NOTHING, refused], token=Tokens(world))
    client.follow(PatternCursor(LOGS))

    with pytest.raises(RenewalRefused, match=r"the token is for another user .*; sign in again"):
        client.receive()


def test_a_session_whose_token_has_ended_is_joined_again_with_a_new_one(world: World) -> None:
    tokens = Tokens(world)
    ended = [6, {"message": "the token has expired"}, "signalbox.close.token_expired"]
    client = world.client(
        [WELCOME, SUBSCRIBED, CAUGHT_UP, ended], [[4, "ticket", {}], WELCOME, SUBSCRIBED, event(1)], token=tokens
    )
    client.follow(PatternCursor(LOGS))

    assert numbers(client, 1) == [1]
    assert world.lines[1].sent[1] == [5, tokens.given[1], {}]


def test_a_token_of_another_format_is_not_renewed(world: World) -> None:
    client = world.client([WELCOME, SUBSCRIBED, CAUGHT_UP, NOTHING, event(1)], token=lambda: "opaque")
    client.follow(PatternCursor(LOGS))

    assert numbers(client, 1) == [1]
    assert calls(world.lines[0]) == []


def test_without_a_provider_no_session_is_opened(world: World) -> None:
    client = world.client(token=Tokens(world, failures=9))

    with pytest.raises(ProviderUnavailable, match="does not answer"):
        client.receive()

    assert world.lines == []
