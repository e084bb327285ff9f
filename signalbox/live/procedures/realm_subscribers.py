"""The subscribers of realms, as the sessions of a function instance look them up."""

from collections import Counter
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.outbox.ports import Subscriber
from signalbox.live.ports import Attached
from signalbox.live.router.directory import KNOWN_FOR, CachedSubscriberDirectory
from signalbox.live.wamp.messages import SessionId
from signalbox.live.wamp.patterns import GREATEST_WEIGHT, MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName

# In components of prefixes and wildcards, at least four for each. A cold router reads all of a realm before its first
# event: 25,000 patterns are 46 MB and 7 pages, 0.7 s of Lambda's processor of 15 s. A user has a part of it, as do all
# sessions without a secret together, so that others can subscribe.
MAXIMUM_OF_REALM, MAXIMUM_OF_USER, MAXIMUM_OF_ANONYMOUS = 100_000, 5_000, 20_000
COUNTED_FOR = timedelta(seconds=10)  # while there is room
RESERVED_FOR = timedelta(seconds=90)  # longer than the invocation that attaches a subscriber
# Meta events need no right to publish, and ten changes fit into a frame: of a user, in each function instance, a number
# at once, and then one each so often.
ANNOUNCED_AT_ONCE, ANNOUNCED_EACH = 100, timedelta(seconds=0.5)


@dataclass(slots=True)
class _Count:
    """The weights of the patterns of a realm by user, at a time; `left` is what the realm has room for."""

    at: datetime
    weights: Counter[str]
    reserved: dict[Subscriber, datetime]
    left: int = 0

    def __post_init__(self) -> None:
        for one in self.reserved:
            self.weights[one.listener.authid] += one.pattern.weight
        # Instances that count at the same time let a user exceed its part. It is not to be at the cost of others.
        counted = sum(min(weight, MAXIMUM_OF_ANONYMOUS) for weight in self.weights.values())
        self.left = min(MAXIMUM_OF_REALM - counted, 2 * MAXIMUM_OF_REALM - self.weights.total())

    def reserve(self, subscriber: Subscriber) -> None:
        self.reserved[subscriber] = self.at + RESERVED_FOR
        self.weights[subscriber.listener.authid] += subscriber.pattern.weight
        self.left -= subscriber.pattern.weight


@dataclass(slots=True)
class CachedRealmSubscribers:
    """`RealmSubscribers` from a router's directory.

    The directory is for one thread at a time: a function with several threads passes a lock as `exclusive`. What a user
    has is counted from the stored subscribers, so that nothing has to be freed when sessions or functions end.
    """

    directory: CachedSubscriberDirectory
    exclusive: AbstractContextManager[object] = field(default_factory=nullcontext)
    _counts: dict[ExchangeName, _Count] = field(default_factory=dict)
    _announced: dict[tuple[ExchangeName, str], datetime] = field(default_factory=dict)  # when they are paid

    def watched(self, realm: ExchangeName, topics: Collection[RoutingKey]) -> Collection[RoutingKey]:
        """Return the given topics that have subscribers."""
        with self.exclusive:
            matching = self.directory.lookup(realm, topics)
            return [topic for topic in topics if matching(topic)]

    def shared(
        self, realm: ExchangeName, patterns: Collection[TopicPattern], *, without: SessionId | None = None
    ) -> Collection[TopicPattern]:
        """Return the given patterns to which any session is subscribed, not counting the session `without`."""
        with self.exclusive:
            self.directory.lookup(realm, _topics(patterns))
            return [
                pattern
                for pattern in patterns
                if any(row.subscriber.listener.session != without for row in self.directory.attached(realm, pattern))
            ]

    def attached(self, realm: ExchangeName, pattern: TopicPattern) -> Sequence[Attached]:
        """Return the sessions that are subscribed to a pattern."""
        with self.exclusive:
            self.directory.lookup(realm, _topics([pattern]))
            rows = self.directory.attached(realm, pattern)
            return [Attached(row.subscriber.listener.session, row.created_at) for row in rows]

    def room(self, realm: ExchangeName, user: str, *, is_anonymous: bool) -> int:
        """Return the weight of the prefixes and wildcards that a user may still subscribe to, by those that are stored.

        While there is room for any pattern, the count is up to ten seconds old, and otherwise up to one second.
        """
        part = MAXIMUM_OF_ANONYMOUS if is_anonymous else MAXIMUM_OF_USER
        room = 0
        with self.exclusive:
            for age in (COUNTED_FOR, KNOWN_FOR):
                count = self._count(realm, age)
                room = min(part - count.weights[user], count.left)
                if room >= GREATEST_WEIGHT:
                    break
        return room

    def reserve(self, realm: ExchangeName, subscriber: Subscriber) -> None:
        """Count a subscriber as stored until its subscription is stored."""
        with self.exclusive:
            count = self._counts.get(realm)
            is_pattern = subscriber.pattern.match is not MatchPolicy.EXACT
            if is_pattern and count and subscriber not in count.reserved and not self.directory.has(realm, subscriber):
                count.reserve(subscriber)

    def may_announce(self, realm: ExchangeName, user: str) -> bool:
        """Count a change of a user's subscriptions that has meta events; return False if the user has too many."""
        with self.exclusive:
            now = self.directory.now()
            self._announced = {one: at for one, at in self._announced.items() if at > now}
            paid_at = self._announced.get((realm, user), now) + ANNOUNCED_EACH
            if paid_at - now > ANNOUNCED_AT_ONCE * ANNOUNCED_EACH:
                return False
            self._announced[realm, user] = paid_at
            return True

    def _count(self, realm: ExchangeName, age: timedelta) -> _Count:
        now, count = self.directory.now(), self._counts.get(realm)
        if count is not None and now - count.at <= age:
            return count
        read_at = self.directory.read_at(realm)
        if read_at is None or now - read_at > age:
            self.directory.lookup(realm, ())
        weights = Counter[str]()
        for row in self.directory.with_patterns(realm):
            weights[row.subscriber.listener.authid] += row.subscriber.pattern.weight
        reserved = {} if count is None else count.reserved
        left = {one: until for one, until in reserved.items() if until > now and not self.directory.has(realm, one)}
        found = self._counts[realm] = _Count(self.directory.read_at(realm) or now, weights, left)
        return found


def _topics(patterns: Collection[TopicPattern]) -> Collection[RoutingKey]:
    return [RoutingKey(pattern.uri) for pattern in patterns if pattern.match is MatchPolicy.EXACT]
