"""In-memory implementations of the ports of live's sessions and outboxes, for tests.

The suites in tests/adapters/live hold these and the AWS adapters to the same behaviour.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from signalbox.errors import SignalboxError
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.model.records import ExchangeRecord, LiveSettings, User
from signalbox.exchange.model.topics import RoutingKey
from signalbox.exchange.routing.limits import Allowance
from signalbox.history.event import HistoryEvent
from signalbox.live.arvados.rows import row_of
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.log.documents import json_text
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.selection import is_logged
from signalbox.live.model.state import JOIN_TIMEOUT, Account, ConnectionId, Killed, Session, Signal
from signalbox.live.outbox.items import ItemId, OutboxItem
from signalbox.live.outbox.overview_calls import OverviewCall
from signalbox.live.outbox.ports import PostResult, Subscriber
from signalbox.live.ports import (
    Attached,
    LiveStore,
    LiveSubscribers,
    Member,
    RealmAccess,
    RecordTooLarge,
    SessionPorts,
    Stored,
)
from signalbox.live.rights.grants import Grant, GrantSet, GroupGrants, Rights
from signalbox.live.rights.principals import GroupName
from signalbox.live.session.inbox import signal_body
from signalbox.live.session.inbox_processor import InboxProcessor
from signalbox.live.session.records import session_document, session_of
from signalbox.live.wamp.audience import UNRESTRICTED, Listener
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role
from tests.fakes.allowances import MemoryAllowanceCounter
from tests.fakes.exchange import MemoryExchanges, MemorySender, MemoryUsers

START = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
REALM = ExchangeName("xs_trial.fifo")
PEPPER = "pepper"
OVERDUE = timedelta(hours=2, minutes=5)
ROWS_KEPT_FOR = timedelta(minutes=30)


@dataclass
class MemorySessions:
    records: dict[ConnectionId, Stored] = field(default_factory=dict)
    closed: set[ConnectionId] = field(default_factory=set)
    maximum_characters: int = 400_000

    def open(self, session: Session) -> bool:
        if session.connection in self.records:
            return False
        self.records[session.connection] = Stored(session, 1)
        return True

    def find(self, connection: ConnectionId) -> Stored | None:
        return self.records.get(connection)

    def find_all(self, connections: Iterable[ConnectionId]) -> Sequence[Session]:
        return [self.records[one].session for one in connections if one in self.records]

    def save(self, session: Session, *, replacing: Stored) -> Stored | None:
        found = self.records.get(session.connection)
        if found is None or (found.version, bool(found.killed)) != (replacing.version, bool(replacing.killed)):
            return None
        document = session_document(session)
        if len(json_text(document)) > self.maximum_characters:
            raise RecordTooLarge(session.connection)
        # What is stored is a document: nothing may get lost on its way.
        saved = replace(replacing, session=session_of(document), version=replacing.version + 1)
        self.records[session.connection] = saved
        return saved

    def kill(self, connection: ConnectionId, killed: Killed) -> None:
        if connection in self.records:
            self.records[connection] = replace(self.records[connection], killed=killed)

    def close(self, session: Session) -> None:
        self.closed.add(session.connection)

    def overdue(self, *, now: datetime) -> Iterable[ConnectionId]:
        for connection, stored in self.records.items():
            if connection not in self.closed and now - stored.session.opened_at > OVERDUE:
                yield connection


@dataclass
class MemoryRealmSessions:
    members: dict[ExchangeName, dict[SessionId, Member]] = field(default_factory=lambda: defaultdict(dict))

    def enter(self, realm: ExchangeName, member: Member, *, expires_at: datetime) -> None:
        self.members[realm].setdefault(member.listener.session, member)

    def leave(self, realm: ExchangeName, listener: Listener) -> None:
        self.members[realm].pop(listener.session, None)

    def find(self, realm: ExchangeName, session: SessionId) -> Member | None:
        return self.members[realm].get(session)

    def every(self, realm: ExchangeName) -> Sequence[Member]:
        return [member for _, member in sorted(self.members[realm].items())]

    def of_user(self, realm: ExchangeName, user: UserName) -> Sequence[ConnectionId]:
        return [member.connection for member in self.every(realm) if member.listener.authid == user]


@dataclass
class MemoryAccounts:
    """`Accounts` over the exchanges and users in memory, with grants and secrets."""

    exchanges: MemoryExchanges
    users: MemoryUsers
    grants: dict[tuple[ExchangeName, UserName], list[Grant]] = field(default_factory=lambda: defaultdict(list))
    secrets: dict[UserName, StoredSecret] = field(default_factory=dict)
    denies: dict[tuple[ExchangeName, UserName], list[Grant]] = field(default_factory=lambda: defaultdict(list))
    groups: dict[tuple[ExchangeName, UserName], set[GroupName]] = field(default_factory=lambda: defaultdict(set))
    group_grants: dict[ExchangeName, GroupGrants] = field(default_factory=lambda: defaultdict(GroupGrants))
    failures: Counter[UserName] = field(default_factory=Counter)
    ended: dict[tuple[ExchangeName, UserName], datetime] = field(default_factory=dict)

    def access(
        self,
        realm: ExchangeName,
        user: UserName | None,
        *,
        now: datetime,
        token: TokenIdentity | None = None,
        is_anonymous: bool = False,
    ) -> RealmAccess:
        exchange, found = self.exchanges.find(realm), None if user is None else self.users.find(user)
        live = None if exchange is None or exchange.is_deleting else exchange.live
        if token is not None:
            account = None if user is None or found else self._token_account(realm, user, token)
            return RealmAccess(live, account)
        failures = 0 if user is None else self.failures[user]
        account = None if found is None else self._account(realm, found, is_anonymous=is_anonymous)
        return RealmAccess(live, account, failures)

    def end_tokens(self, realm: ExchangeName, user: UserName, *, now: datetime) -> None:
        self.ended[realm, user] = now.replace(microsecond=0)

    def tokens_ended_at(self, realm: ExchangeName, user: UserName) -> datetime | None:
        return self.ended.get((realm, user))

    def _token_account(self, realm: ExchangeName, user: UserName, token: TokenIdentity) -> Account:
        rights = Rights.of_token(
            realm,
            user=user,
            role=token.role,
            grants=GrantSet(tuple(self.grants[realm, user]), tuple(self.denies[realm, user])),
            groups=self.groups[realm, user].union(map(GroupName, token.groups)),
            group_grants=self.group_grants[realm],
        )
        return Account(user, token.role, StoredSecret.decoy(user, pepper=PEPPER), rights)

    def count_failure(self, user: UserName, *, now: datetime) -> None:
        self.failures[user] += 1

    def _account(self, realm: ExchangeName, user: User, *, is_anonymous: bool) -> Account:
        rights = Rights.in_realm(
            realm,
            user=user.name,
            role=user.role,
            ownership=user.ownership,
            grants=GrantSet(tuple(self.grants[realm, user.name]), tuple(self.denies[realm, user.name])),
            groups=self.groups[realm, user.name],
            group_grants=self.group_grants[realm],
            is_anonymous=is_anonymous,
        )
        credentials = self.secrets.get(user.name) or StoredSecret.decoy(user.name, pepper=PEPPER)
        return Account(user.name, user.role, credentials, rights)


@dataclass
class MemoryInbox:
    """The bodies in each connection's inbox."""

    bodies: dict[ConnectionId, list[str]] = field(default_factory=lambda: defaultdict(list))
    requests: set[str] = field(default_factory=set)

    def notify(self, connection: ConnectionId, signal: Signal, *, request: str) -> None:
        if request not in self.requests:
            self.requests.add(request)
            self.bodies[connection].append(signal_body(signal))


@dataclass
class MemoryTimers:
    started: list[ConnectionId] = field(default_factory=list)
    delays: list[timedelta] = field(default_factory=list)

    def start(self, connection: ConnectionId, *, after: timedelta = JOIN_TIMEOUT) -> None:
        self.started.append(connection)
        self.delays.append(after)


@dataclass
class MemorySubscribers:
    """`Subscribers` and `RealmSubscribers`; each decision on a pattern takes from the room that is `left`."""

    rows: dict[ExchangeName, dict[tuple[TopicPattern, ConnectionId], tuple[Subscriber, datetime]]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    left: int = 1_000_000
    announcements: int = 1_000_000
    asked: list[tuple[str, bool]] = field(default_factory=list)

    def attach(self, realm: ExchangeName, subscriber: Subscriber, *, at: datetime, expires_at: datetime) -> None:
        self.rows[realm].setdefault((subscriber.pattern, subscriber.connection), (subscriber, at))

    def detach(self, realm: ExchangeName, patterns: Collection[TopicPattern], connection: ConnectionId) -> None:
        for pattern in patterns:
            self.rows[realm].pop((pattern, connection), None)

    def of_topic(self, realm: ExchangeName, topic: RoutingKey) -> list[Subscriber]:
        return [one for (pattern, _), (one, _) in self.rows[realm].items() if pattern.matches(topic)]

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        return [topic for topic in topics if self.of_topic(realm, topic)]

    def shared(
        self, realm: ExchangeName, patterns: Collection[TopicPattern], *, without: SessionId | None = None
    ) -> Collection[TopicPattern]:
        return [one for one in patterns if any(it.session != without for it in self.attached(realm, one))]

    def room(self, realm: ExchangeName, user: str, *, is_anonymous: bool) -> int:
        self.asked.append((user, is_anonymous))
        return self.left

    def reserve(self, realm: ExchangeName, subscriber: Subscriber) -> None:
        self.left -= subscriber.pattern.weight

    def may_announce(self, realm: ExchangeName, user: str) -> bool:
        self.announcements -= 1
        return self.announcements >= 0

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        rows = [row for (one, _), row in self.rows[realm].items() if one == pattern]
        return [Attached(subscriber.listener.session, at) for subscriber, at in rows]


@dataclass
class MemoryTopicLog:
    """A log without retention; `append` is the routers' method. A `problem` is raised to requests.

    `taken` counts the events that backfills have read, `reading` the requests that hold what they have read.
    """

    logged: dict[ExchangeName, dict[RoutingKey, list[LoggedEvent]]] = field(default_factory=lambda: defaultdict(dict))
    problem: SignalboxError | None = None
    taken: int = 0
    reading: int = 0
    posts: int = 0
    spent: int = 0
    small: int = 1_000  # rows of a request
    readers: list[Hashable] = field(default_factory=list)
    rows: int = 0
    listed: list[datetime] = field(default_factory=list)
    parallel_map: ParallelMap = serial_map

    def spend(self, cost: int) -> None:
        self.spent += cost

    def count_post(self, size: int) -> None:
        assert self.reading
        self.posts += 1

    @contextmanager
    def request(self, reader: Hashable) -> "Iterator[MemoryTopicLog]":
        self.reading += 1
        self.readers.append(reader)
        self.rows = 0
        try:
            yield self
        finally:
            self.reading -= 1

    def append(self, realm: ExchangeName, *events: LoggedEvent) -> None:
        for event in events:
            self.logged[realm].setdefault(event.topic, []).append(event)

    def events(self, realm: ExchangeName, topic: RoutingKey, *, live: LiveSettings, now: datetime) -> list[LoggedEvent]:
        return [event for event in self.logged[realm].get(topic, ()) if is_logged(event)]

    def newest_first(
        self,
        realm: ExchangeName,
        topic: RoutingKey,
        is_kept: Callable[[LoggedEvent], bool],
        *,
        live: LiveSettings,
        now: datetime,
        page: int | None = None,
    ) -> Iterator[LoggedEvent]:
        for one in self.logged[realm].get(topic, ())[::-1]:
            if is_logged(one) or is_kept(one):
                self.taken += 1
                yield one

    def topics(
        self, realm: ExchangeName, pattern: TopicPattern, *, since: datetime, named: Collection[RoutingKey] = ()
    ) -> Mapping[RoutingKey, datetime]:
        if self.problem is not None:
            raise self.problem
        self.listed.append(since)
        logs = {topic: log for topic, log in self.logged[realm].items() if pattern.matches(topic)}
        newest = {topic: max(event.logged_at for event in log) for topic, log in logs.items()}
        return {topic: at for topic, at in newest.items() if at >= since or topic in named}

    def rows_after(self, realm: ExchangeName, number: int, *, now: datetime) -> Iterator[LoggedEvent]:
        events = (event for log in self.logged[realm].values() for event in log if is_logged(event))
        rows = {row.id: event for event in events if (row := row_of(event)) and now - event.at <= ROWS_KEPT_FOR}
        assert self.reading
        for found in (one for one in sorted(rows) if one > number):
            if self.problem is not None:
                raise self.problem
            self.rows += 1
            yield rows[found]

    @property
    def is_large(self) -> bool:
        return self.rows > self.small

    def retained(
        self, realm: ExchangeName, pattern: TopicPattern, *, after: RoutingKey | None = None
    ) -> Iterator[LoggedEvent]:
        is_wildcard = pattern.match is MatchPolicy.WILDCARD
        begin = TopicPattern(MatchPolicy.PREFIX, pattern.literal_prefix) if is_wildcard else pattern
        found = self.topics(realm, begin, since=datetime.min.replace(tzinfo=UTC))
        return self.retained_of(realm, sorted(topic for topic in found if after is None or topic > after))

    def retained_of(self, realm: ExchangeName, topics: Iterable[RoutingKey]) -> Iterator[LoggedEvent]:
        for topic in topics:
            kept = [one for one in self.logged[realm].get(topic, ()) if one.is_retained]
            for event in {one.audience == UNRESTRICTED: one for one in kept}.values():
                self.rows += 1
                yield event


@dataclass
class MemoryOutboxes:
    """The items in each connection's outbox; an item that is put twice is there once."""

    items: dict[ConnectionId, list[OutboxItem]] = field(default_factory=lambda: defaultdict(list))
    known: set[tuple[ConnectionId, ItemId]] = field(default_factory=set)

    def put(self, connection: ConnectionId, items: Sequence[OutboxItem]) -> None:
        for item in items:
            if (connection, item.item_id) not in self.known:
                self.known.add((connection, item.item_id))
                self.items[connection].append(item)


@dataclass
class MemoryConnections:
    """The messages posted to each connection; `results` are the results of the next posts, later ones succeed."""

    posted: dict[ConnectionId, list[str]] = field(default_factory=lambda: defaultdict(list))
    closed: set[ConnectionId] = field(default_factory=set)
    results: list[PostResult] = field(default_factory=list)

    def post(self, connection: ConnectionId, text: str, *, is_repeatable: bool = False) -> PostResult:
        if connection in self.closed:
            return PostResult.GONE
        result = self.results.pop(0) if self.results else PostResult.POSTED
        if result is PostResult.POSTED:
            self.posted[connection].append(text)
        return result

    def close(self, connection: ConnectionId) -> None:
        self.closed.add(connection)


@dataclass
class MemoryOverviewCalls:
    """The calls that were passed on; a call that is sent twice is there once, by its connection and item id."""

    calls: dict[tuple[ConnectionId, ItemId], OverviewCall] = field(default_factory=dict)

    def send(self, call: OverviewCall) -> None:
        # What is sent is a document: nothing may get lost on its way.
        self.calls.setdefault((call.connection, call.item_id), OverviewCall.parse(call.body()))


@dataclass
class MemoryTokens:
    """`TokenVerifier`: the results for known tokens; `asked` are the tokens in the order of their verification."""

    results: dict[str, VerifiedToken | TokenRefusal] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def verify(self, token: str, issuers: Sequence[Issuer]) -> VerifiedToken | TokenRefusal:
        self.asked.append(token)
        return self.results.get(token) or TokenRefusal(TokenProblem.SIGNATURE)


@dataclass
class MemoryLive:
    """A realm with users: `admin`, `source` and `subscriber`, each with the secret that is its name and `-secret`."""

    moment: datetime = START
    exchanges: MemoryExchanges = field(default_factory=MemoryExchanges)
    users: MemoryUsers = field(default_factory=MemoryUsers)
    sessions: MemorySessions = field(default_factory=MemorySessions)
    realm_sessions: MemoryRealmSessions = field(default_factory=MemoryRealmSessions)
    inbox: MemoryInbox = field(default_factory=MemoryInbox)
    timers: MemoryTimers = field(default_factory=MemoryTimers)
    subscribers: MemorySubscribers = field(default_factory=MemorySubscribers)
    log: MemoryTopicLog = field(default_factory=MemoryTopicLog)
    outboxes: MemoryOutboxes = field(default_factory=MemoryOutboxes)
    connections: MemoryConnections = field(default_factory=MemoryConnections)
    sender: MemorySender = field(default_factory=MemorySender)
    overview_calls: MemoryOverviewCalls = field(default_factory=MemoryOverviewCalls)
    tokens: MemoryTokens = field(default_factory=MemoryTokens)
    kilobytes: MemoryAllowanceCounter = field(default_factory=MemoryAllowanceCounter)
    allowance: Allowance = field(init=False)
    recorded: list[HistoryEvent] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1_000))
    accounts: MemoryAccounts = field(init=False)

    def __post_init__(self) -> None:
        self.accounts = MemoryAccounts(self.exchanges, self.users)
        self.allowance = self.kilobytes.instance()
        self.declare(LiveSettings())
        for role in (Role.ADMIN, Role.SOURCE, Role.SUBSCRIBER):
            self.add_user(role.value, role)
            if role is not Role.ADMIN:
                self.grant(role.value, Right.READ, Right.WRITE)

    def now(self) -> datetime:
        return self.moment

    def ports(self) -> SessionPorts:
        return SessionPorts(
            store=LiveStore(self.sessions, self.realm_sessions, self.accounts, self.log),
            subscribers=LiveSubscribers(self.subscribers, self.subscribers),
            inbox=self.inbox,
            outboxes=self.outboxes,
            timers=self.timers,
            sender=self.sender,
            overview_calls=self.overview_calls,
            allowance=self.allowance,
            names=StageNames("signalbox", "stage-"),
            pepper=PEPPER,
            now=self.now,
            random_id=lambda: next(self.numbers),
            nonce=lambda: f"nonce-{next(self.numbers)}",
            record=self.recorded.extend,
        )

    def processor(self, connection: ConnectionId, ports: SessionPorts | None = None) -> InboxProcessor:
        return InboxProcessor(ports or self.ports(), self.tokens, connection)

    def declare(self, live: LiveSettings | None, realm: ExchangeName = REALM) -> None:
        self.exchanges.records[realm] = ExchangeRecord(realm, None, START, live=live)

    def add_user(self, name: str, role: Role) -> None:
        user = UserName(name)
        self.users.put(User(user, role, Ownership.STRICT, START, f"AIDA{name}"))
        self.accounts.secrets[user] = StoredSecret.of(f"{name}-secret", salt="salt", with_key=True)

    def grant(self, name: str, *rights: Right, pattern: str = "trial", match: str = "prefix") -> None:
        grants = [Grant(right, TopicPattern.parse(pattern, MatchPolicy(match))) for right in rights]
        self.accounts.grants[REALM, UserName(name)] += grants
