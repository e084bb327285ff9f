"""Thousands of live-only users: made, given secrets, and joined from many connections."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock

from benchmarks.shared.counting import Tap, tapped
from benchmarks.shared.figures import Summary, summary
from benchmarks.shared.stage import Stage
from signalbox.aws.exchange.exchanges import DynamoUsers
from signalbox.aws.exchange.users import ExchangeUsers
from signalbox.cli.exchange.live_only import DEFAULT_ROLE, LiveOnlyUsers
from signalbox.cli.exchange.stage import client_of
from signalbox.cli.exchange.user_files import NamedUser
from signalbox.cli.live.user_secrets import replaced_secrets
from signalbox.cli.shared.deployment import Deployment
from signalbox.clients.live.session import ConnectionLost, Login, Socket, join
from signalbox.clients.web_socket import connector
from signalbox.errors import UnavailableError
from signalbox.local.identity import provider
from signalbox.sarracenia.rights.names import UserName
from signalbox.sarracenia.rights.permissions import Ownership
from tests.identity_provider import access_token

REALM = "xpublic.fifo"  # every subscriber may read it, without a grant
AT_ONCE = 16  # joins under way: a client that waits longer than 10 s for its turn is refused
TRIES, PAUSE_SECONDS = 10, 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """A step with all users: its duration, and the calls of AWS that the administrator's program makes."""

    what: str
    users: int
    seconds: float
    calls: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Joins:
    """The joins of all users, one after another on each connection."""

    users: int
    by_token: int
    """Users of an identity provider, without a record, among them."""
    connections: int
    seconds: float
    join_seconds: Summary
    retries: int
    """Joins that took longer than a client may take, and were repeated."""
    most_at_once: int
    """Of joined sessions."""


@dataclass(frozen=True, slots=True)
class UsersResult:
    """The results of the part."""

    steps: Sequence[Step]
    joins: Joins


@dataclass(frozen=True, slots=True)
class Counts:
    """The numbers of users to make, of joins, of those by a token, and of connections at the same time."""

    users: int = 10_000
    joins: int = 10_000
    tokens: int = 500
    connections: int = 200


def measure(stage: Stage, say: Callable[[str], None], counts: Counts) -> UsersResult:
    """Make users, give them secrets, and join users once, the last ones by a token."""
    users = counts.users
    names = [UserName(f"lab-{number:05}") for number in range(users)]
    with tapped(str(stage.deployment.endpoint_url)) as counted:
        deployment = replace(stage.deployment, endpoint_url=counted.endpoint_url)
        say(f"adding {users:,} users")
        added = _step("add", users, counted, lambda: _add(deployment, names))
        tickets: dict[str, str] = {}
        say("creating their secrets")
        created = _step("secret", users, counted, lambda: tickets.update(_secrets(deployment, names)))
        listed = _step("list", users, counted, lambda: _list(deployment, users))
    with provider.running() as identities:
        _declare(stage, identities)
        say(f"signing {counts.tokens} people in")
        by_token = list(_signed_in(identities, counts.tokens))
        by_ticket = [Login(REALM, name, ticket) for name, ticket in tickets.items()][: counts.joins - counts.tokens]
        joiner = _Joiner(str(stage.local["websocket_url"]))
        joined = _joins(joiner, [*by_ticket, *by_token], say, connections=counts.connections)
    return UsersResult([added, created, listed], replace(joined, by_token=len(by_token)))


def _declare(stage: Stage, identities: provider.IdentityProvider) -> None:
    issuer = {"url": identities.url, "audience": identities.audience}
    with client_of(stage.deployment) as administrator:
        administrator.declare_exchange(REALM, live={"live": True, "issuers": [issuer]})


def _signed_in(identities: provider.IdentityProvider, count: int) -> Iterator[Login]:
    """Yield logins of the provider's users, each with a token that is issued before."""
    for number in range(count):
        identities.set_user(f"person-{number:05}", groups=["lab"])
        token = access_token(identities, f"person-{number:05}")
        yield Login(REALM, token=partial(str, token))


def _step(what: str, users: int, counted: Tap, work: Callable[[], object]) -> Step:
    before, began = Counter(counted.calls), time.perf_counter()
    work()
    return Step(what, users, round(time.perf_counter() - began, 1), dict(counted.calls - before))


def _add(deployment: Deployment, names: Sequence[UserName]) -> None:
    session = deployment.session()
    live_only = LiveOnlyUsers(deployment, ExchangeUsers.of(session, deployment.outputs), _records(deployment))
    live_only.add(
        [NamedUser(name) for name in names], role=DEFAULT_ROLE, ownership=Ownership.STRICT, yes=True, as_json=True
    )


def _secrets(deployment: Deployment, names: Sequence[str]) -> Mapping[str, str]:
    with client_of(deployment) as client:
        return {one.user: one.secret for page in replaced_secrets(client, names) for one in page}


def _list(deployment: Deployment, users: int) -> None:
    found = sum(1 for _ in _records(deployment).live_only())
    if found < users:
        raise UnavailableError(f"the list has {found} of {users} users")


def _records(deployment: Deployment) -> DynamoUsers:
    return DynamoUsers(deployment.session().resource("dynamodb").Table(deployment.outputs["ExchangeTable"]))


def _joins(joiner: "_Joiner", logins: Sequence[Login], say: Callable[[str], None], *, connections: int) -> Joins:
    """Join users, in waves of as many open connections."""
    began = time.perf_counter()
    most = 0
    for start in range(0, len(logins), connections):
        wave = logins[start : start + connections]
        say(f"joined {start:,} of {len(logins):,} users")
        with ExitStack() as stack, ThreadPoolExecutor(AT_ONCE) as threads:
            sockets = list(threads.map(joiner.join, wave))
            for socket in sockets:
                stack.callback(socket.close)
            most = max(most, len(sockets))
    seconds = time.perf_counter() - began
    times = summary(joiner.seconds)
    assert times is not None
    return Joins(len(logins), 0, connections, round(seconds, 1), times, joiner.retries, most)


class _Joiner:
    """Joins users, and notes the time of each. Thread-safe."""

    def __init__(self, url: str) -> None:
        self.connect = connector(url)
        self.seconds: list[float] = []
        self.retries = 0
        self._lock = Lock()

    def join(self, login: Login) -> Socket:
        """Return the connection of a joined session. Raises `UnavailableError`."""
        for _ in range(TRIES):
            began = time.perf_counter()
            try:
                socket = self._joined(login)
            except ConnectionLost:
                with self._lock:
                    self.retries += 1
                time.sleep(PAUSE_SECONDS)
                continue
            with self._lock:
                self.seconds.append(time.perf_counter() - began)
            return socket
        raise UnavailableError(f"user {login.authid} did not join in {TRIES} tries")

    def _joined(self, login: Login) -> Socket:
        socket = self.connect()
        try:
            join(socket, login, login.token() if login.token else None)
        except BaseException:
            socket.close()
            raise
        return socket
