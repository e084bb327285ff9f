"""`Sessions` and `RealmSessions`: the implementations in memory and over DynamoDB behave alike."""

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from signalbox.aws.live.sessions import DynamoConnectionRate, DynamoRealmSessions, DynamoSessions
from signalbox.live.model.effects import Attach, Post, PostText
from signalbox.live.model.state import ConnectionId, FrameId, Killed, SessionState, opened
from signalbox.live.ports import Member, RealmSessions, RecordTooLarge, Sessions, Stored
from signalbox.live.wamp.audience import Listener
from signalbox.live.wamp.messages import RequestId, SessionId, Subscribed
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from tests.fakes.aws import STORES
from tests.fakes.live import START, MemoryRealmSessions, MemorySessions

REALM, OTHER = ExchangeName("xs_trial.fifo"), ExchangeName("xs_other.fifo")
C1, C2 = ConnectionId("c1="), ConnectionId("c2=")
ALICE = Listener(SessionId(2**53), "alice", "source")
BOB = Listener(SessionId(7), "bob", "subscriber")
SECOND = timedelta(seconds=1)


def made(memory: Callable[[], object], adapter: Callable[[object], object]) -> object:
    @pytest.fixture(params=STORES)
    def port(request: pytest.FixtureRequest) -> object:
        return memory() if request.param == "memory" else adapter(request.getfixturevalue("live_table"))

    return port


sessions = made(MemorySessions, DynamoSessions)
realm_sessions = made(MemoryRealmSessions, DynamoRealmSessions)


def noise(length: int) -> str:
    """Return a text that hardly compresses, of characters of two bytes."""
    return "".join(chr(0x80 + byte) for byte in secrets.token_bytes(length))


class TestSessions:
    def test_a_session_comes_back_as_it_was_saved(self, sessions: Sessions) -> None:
        assert sessions.open(opened(C1, now=START, user_agent="x/1"))
        first = sessions.find(C1)
        pattern = TopicPattern.parse("trial.", MatchPolicy.PREFIX)
        changed = replace(
            opened(C1, now=START),
            state=SessionState.JOINED,
            realm=REALM,
            session=SessionId(2**53),
            subscriptions={pattern.subscription_id: pattern},
            frames=(FrameId("f1"),),
            pending={
                FrameId("f1"): (
                    Post(Subscribed(RequestId(1), pattern.subscription_id)),
                    Attach(pattern, get_retained=False, history=LastEvents(3)),
                )
            },
        )

        assert first == Stored(opened(C1, now=START, user_agent="x/1"), 1)
        assert sessions.save(changed, replacing=first) == Stored(changed, 2)

        assert sessions.find(C1) == Stored(changed, 2)
        assert sessions.find_all([C1, C2]) == [changed]

    def test_a_record_that_does_not_fit_is_refused(self, sessions: Sessions) -> None:
        sessions.open(opened(C1, now=START))
        first = sessions.find(C1)
        large = replace(first.session, pending={FrameId("f1"): (PostText(noise(500_000)),)})

        with pytest.raises(RecordTooLarge):
            sessions.save(large, replacing=first)

        assert sessions.find(C1) == first

    def test_a_text_takes_its_bytes_and_may_have_a_lone_surrogate(self, sessions: Sessions) -> None:
        sessions.open(opened(C1, now=START))
        first = sessions.find(C1)
        large = replace(first.session, pending={FrameId("f1"): (PostText(noise(230_000)), PostText("\ud800"))})

        assert sessions.save(large, replacing=first) == Stored(large, 2)

        assert sessions.find(C1) == Stored(large, 2)

    def test_a_session_is_found_with_the_size_of_its_record_without_its_last_frame(self, live_table) -> None:
        sessions = DynamoSessions(live_table)
        sessions.open(opened(C1, now=START))
        first = sessions.find(C1)
        said = {FrameId("f1"): (PostText(secrets.token_hex(20_480)),)}
        sessions.save(replace(first.session, user_agent=secrets.token_hex(10_240), pending=said), replacing=first)

        assert first.kilobytes == 0
        assert 10 <= sessions.find(C1).kilobytes < 15  # each byte is two characters of four bits

    def test_a_connection_is_opened_once(self, sessions: Sessions) -> None:
        assert sessions.open(opened(C1, now=START))

        assert not sessions.open(opened(C1, now=START, user_agent="another"))
        assert sessions.find(C1) == Stored(opened(C1, now=START), 1)
        assert sessions.find(C2) is None

    def test_what_somebody_else_saved_is_not_overwritten(self, sessions: Sessions) -> None:
        sessions.open(opened(C1, now=START))
        first = sessions.find(C1)
        theirs = sessions.save(replace(first.session, state=SessionState.CHALLENGED), replacing=first)

        assert sessions.save(replace(first.session, state=SessionState.CLOSED), replacing=first) is None
        assert sessions.find(C1) == theirs

    def test_a_killed_session_is_stored_by_nobody_who_does_not_know_it(self, sessions: Sessions) -> None:
        sessions.open(opened(C1, now=START))
        first = sessions.find(C1)
        ended, killed = replace(first.session, state=SessionState.CLOSED), Killed("trial.bye", "at once")

        for _ in range(2):
            sessions.kill(C1, killed)
        sessions.kill(C2, killed)

        assert sessions.save(ended, replacing=first) is None
        assert sessions.find(C1) == replace(first, killed=killed)
        assert sessions.save(ended, replacing=sessions.find(C1)) == Stored(ended, 2, killed) == sessions.find(C1)
        assert sessions.find(C2) is None

    def test_a_connection_is_overdue_after_two_hours_unless_it_has_ended(self, sessions: Sessions) -> None:
        for connection in (C1, C2):
            sessions.open(opened(connection, now=START))
        sessions.open(opened(ConnectionId("later"), now=START + timedelta(minutes=30)))
        sessions.close(opened(C2, now=START))
        sessions.close(opened(C2, now=START))

        assert list(sessions.overdue(now=START + timedelta(hours=2, minutes=4))) == []
        assert list(sessions.overdue(now=START + timedelta(hours=2, minutes=7))) == [C1]
        assert list(sessions.overdue(now=START + timedelta(hours=2, minutes=14))) == [C1]


class TestRoster:
    def test_members_are_found_by_session_by_realm_and_by_user(self, realm_sessions: RealmSessions) -> None:
        alice, bob = Member(C1, ALICE, START), Member(C2, BOB, START + SECOND)
        for member in (alice, bob, alice):
            realm_sessions.enter(REALM, member, expires_at=START + timedelta(hours=2))

        assert realm_sessions.find(REALM, ALICE.session) == alice
        assert realm_sessions.every(REALM) == [bob, alice]
        assert realm_sessions.of_user(REALM, UserName("bob")) == [C2]
        assert realm_sessions.find(OTHER, ALICE.session) is None
        assert (realm_sessions.every(OTHER), realm_sessions.of_user(OTHER, UserName("bob"))) == ([], [])

    def test_who_leaves_is_gone(self, realm_sessions: RealmSessions) -> None:
        realm_sessions.enter(REALM, Member(C1, ALICE, START), expires_at=START + SECOND)
        realm_sessions.enter(REALM, Member(C2, BOB, START), expires_at=START + SECOND)

        for _ in range(2):
            realm_sessions.leave(REALM, ALICE)

        assert [member.listener for member in realm_sessions.every(REALM)] == [BOB]
        assert realm_sessions.of_user(REALM, UserName("alice")) == []


def test_connections_are_counted_by_the_second_and_the_network(live_table) -> None:
    """A network that has too many takes none from others."""
    rate = DynamoConnectionRate(live_table)

    def count(network: int | None, now: datetime = START) -> bool:
        return rate.count(now=now, most=4, network=network, most_of_network=2)

    assert [count(1) for _ in range(9)] == [True] * 2 + [False] * 7
    assert [count(2), count(None), count(3), count(None)] == [True, True, False, False]
    assert count(1, START + SECOND)
