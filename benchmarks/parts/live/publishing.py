"""The time of an acknowledged publication with many subscriptions that do not match, compared with crossbar."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial

from benchmarks.parts.live import crossbar_side
from benchmarks.parts.live import rules as live_rules
from signalbox.clients.live.cursor import PatternCursor
from signalbox.clients.live.session import ClientSession, Login, join
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.live.wamp.codec import SUBPROTOCOL
from signalbox.live.wamp.messages import Message, Payload, Publish, Published, RequestId, Subscribe, Subscribed
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from tests.fakes import live_router

SIZES = (10, 100, 1_000, 10_000)
MATCHES = (MatchPolicy.PREFIX, MatchPolicy.WILDCARD)
SESSIONS = 100  # a session of Signalbox may hold 100 prefixes and wildcards
PUBLICATIONS = 50  # sequential, in a round: rounds are short, so that noise affects all routers equally
ROUNDS = 30
OURS, CROSSBAR = "Signalbox's rules in one process", "crossbar"
UNSEEN = "trial.other.log.without.subscribers"
PIPELINED = 50
REPLY_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Publishing:
    """Microseconds from PUBLISH to PUBLISHED by the number of subscriptions, as the median of all rounds."""

    router: str
    match: str
    microseconds: Mapping[int, float]

    @property
    def growth(self) -> float:
        """Return the ratio of the time with the most subscriptions to the time with the fewest."""
        return self.microseconds[SIZES[-1]] / self.microseconds[SIZES[0]]


@dataclass(frozen=True, slots=True)
class _Measured:
    """A realm with `size` subscriptions, and a session that publishes there."""

    router: str
    size: int
    publisher: ClientSession


def measure(say: Callable[[str], None]) -> list[Publishing]:
    """Measure both routers alternately, each with one realm for each number of subscriptions."""
    with ExitStack() as stack:
        logins = {OURS: _ours(stack)}
        try:
            crossbar_side.install()
            logins[CROSSBAR] = _crossbar(stack)
        except crossbar_side.NoCrossbar as reason:
            say(f"without crossbar: {reason}")
        return [one for match in MATCHES for one in _measured(match, logins, say)]


_Logins = Mapping[int, tuple[str, Login]]  # by the number of subscriptions


def _ours(stack: ExitStack) -> _Logins:
    urls = stack.enter_context(live_rules.running(len(SIZES))).urls
    login = Login(live_router.REALM, live_rules.USER, live_router.TICKET)
    return {size: (url, login) for size, url in zip(SIZES, urls, strict=True)}


def _crossbar(stack: ExitStack) -> _Logins:
    realms = {size: f"{crossbar_side.REALM}-{size}" for size in SIZES}
    url = stack.enter_context(crossbar_side.running(list(realms.values()))).url
    return {size: (url, Login(realm)) for size, realm in realms.items()}


def _measured(match: MatchPolicy, logins: Mapping[str, _Logins], say: Callable[[str], None]) -> Iterator[Publishing]:
    with ExitStack() as stack:
        realms = []
        for router, by_size in logins.items():
            for size, (url, login) in by_size.items():
                say(f"{router}, {size:,} {match} subscriptions")
                realms.append(_Measured(router, size, stack.enter_context(_held(url, login, match, size))))
        times: dict[tuple[str, int], list[float]] = {(one.router, one.size): [] for one in realms}
        for number in range(ROUNDS + 1):
            say(f"{match}, round {number} of {ROUNDS}")
            for realm in realms[:: 1 if number % 2 else -1]:
                taken = _round(realm.publisher)
                times[realm.router, realm.size] += [taken] if number else []  # the first round warms up
    for router, by_size in logins.items():
        yield Publishing(router, match, {size: statistics.median(times[router, size]) * 1e6 for size in by_size})


@contextmanager
def _held(url: str, login: Login, match: MatchPolicy, size: int) -> Iterator[ClientSession]:
    """Provide a publisher while sessions hold subscriptions, and check that the last of them receives its event."""
    with ExitStack() as stack:
        publisher, *holders = (
            join(stack.enter_context(closing(connector(url, subprotocols=[SUBPROTOCOL])())), login)
            for _ in range(SESSIONS + 1)
        )
        for index, holder in enumerate(holders):
            _subscribe(holder, [_pattern(match, number) for number in range(index, size - 1, SESSIONS)])
        follower = holders[-1]
        follower.subscribe(PatternCursor(_pattern(match, size - 1)))
        _check_delivery(
            publisher, follower, f"trial.n{size - 1}.log" if match is MatchPolicy.PREFIX else f"trial.log.n{size - 1}"
        )
        yield publisher


def _pattern(match: MatchPolicy, number: int) -> TopicPattern:
    return TopicPattern.parse(f"trial.n{number}." if match is MatchPolicy.PREFIX else f"trial..n{number}", match)


def _subscribe(holder: ClientSession, patterns: Sequence[TopicPattern]) -> None:
    for start in range(0, len(patterns), PIPELINED):
        batch = patterns[start : start + PIPELINED]
        requests = [
            holder.send_request(partial(Subscribe, options={"match": one.match.value}, topic=one.uri)) for one in batch
        ]
        for request in requests:
            assert isinstance(_reply(holder, request), Subscribed)


def _check_delivery(publisher: ClientSession, follower: ClientSession, topic: str) -> None:
    """Check that a realm has all of its subscriptions: an event reaches the last one."""
    for _ in range(2):  # SUBSCRIBED, and the reply to the call that follows it
        follower.read(REPLY_SECONDS)
    _publish(publisher, topic)
    event = follower.read(REPLY_SECONDS)
    assert event is not None
    assert event.topic == topic


def _round(publisher: ClientSession) -> float:
    """Return the median seconds of a publication, since other processes may disturb some of them."""
    return statistics.median(_seconds(publisher) for _ in range(PUBLICATIONS))


def _seconds(publisher: ClientSession) -> float:
    begun = time.perf_counter()
    _publish(publisher, UNSEEN)
    return time.perf_counter() - begun


def _publish(publisher: ClientSession, topic: str) -> None:
    options = {"acknowledge": True}
    request = publisher.send_request(partial(Publish, options=options, topic=topic, payload=Payload(("x" * 100,))))
    assert isinstance(_reply(publisher, request), Published)


def _reply(session: ClientSession, request: RequestId) -> Message:
    deadline = time.monotonic() + REPLY_SECONDS
    while (reply := session.replies.pop(request, None)) is None:
        session.read(REPLY_SECONDS)
        if time.monotonic() > deadline:
            raise UnavailableError(f"no reply within {REPLY_SECONDS:.0f} s")
    return reply
