"""The `wamp.subscription.*` procedures (WAMP advanced profile, «Subscription Meta API»)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter

from signalbox.documents import shown
from signalbox.exchange.model.topics import RoutingKey, short_string_problem
from signalbox.live.log.documents import json_text
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.log.read_limits import PATTERN
from signalbox.live.procedures.calls import AnswerTooLarge, CallContext, NoSuchSubscription
from signalbox.live.procedures.meta_events import subscription_details
from signalbox.live.wamp.codec import ID, MAXIMUM_ID, size_bytes
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.options import InvalidOptions, SubscribeOptions
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

# Of all sessions of a realm, which one call reads: the frames of other connections need memory and time, too.
MAXIMUM_SUBSCRIPTIONS = 30_000
RECORDS_AT_ONCE = 50  # each has 1,000 subscriptions and 400 KB at most
RECORDS_OF_PAGE = 10
PAGE_BYTES, RECORD_BYTES = 100_000, 500  # of the details in a page, and of each session whose record is read
FIRST_PLACE = (0, 0)  # the ids of a session and of one of its subscriptions


@dataclass(frozen=True, slots=True)
class RealmSubscription:
    """A subscription of a realm: its pattern, its creation time, and the sessions that have it."""

    pattern: TopicPattern
    created_at: datetime
    sessions: frozenset[SessionId]


def every_subscription(context: CallContext, payload: Payload) -> list[RealmSubscription]:
    """Return all subscriptions of the caller's realm; their creation times are not read and are the call's time."""
    del payload
    sessions = dict[TopicPattern, set[SessionId]]()
    count = 0
    for session, patterns in _records(context):
        count += len(patterns)
        if count > MAXIMUM_SUBSCRIPTIONS:
            raise AnswerTooLarge(
                f"the sessions of the realm have more than {MAXIMUM_SUBSCRIPTIONS} subscriptions; name one pattern"
            )
        for pattern in patterns:
            sessions.setdefault(pattern, set()).add(session)
    return [RealmSubscription(pattern, context.cause.at, frozenset(ids)) for pattern, ids in sessions.items()]


def _records(
    context: CallContext, first: int = 0, at_once: int = RECORDS_AT_ONCE
) -> Iterator[tuple[SessionId, Sequence[TopicPattern]]]:
    """Yield the sessions of the realm from the id `first` on, sorted, each with its patterns, sorted by id."""
    store = context.ports.store
    members = sorted((one.listener.session, one.connection) for one in context.members())
    connections = [connection for session, connection in members if session >= first]
    for start in range(0, len(connections), at_once):
        records = store.sessions.find_all(connections[start : start + at_once])
        context.spend(PATTERN * sum(len(one.subscriptions) for one in records))
        joined = [(one.listener.session, one.subscriptions) for one in records if one.listener]
        for session, patterns in sorted(joined, key=itemgetter(0)):
            yield session, [patterns[number] for number in sorted(patterns)]


def one_by_pattern(context: CallContext, payload: Payload) -> list[RealmSubscription]:
    """Return the subscription to the pattern in the arguments, if a session has it, without its sessions."""
    shared = context.ports.subscribers.known.shared(context.realm, [_pattern(payload)])
    return [RealmSubscription(pattern, context.cause.at, frozenset()) for pattern in shared]


def one_by_id(context: CallContext, payload: Payload) -> list[RealmSubscription]:
    """Return the subscription whose id is the first argument, with its creation time, if a session has it."""
    subscription = payload.arguments[:1]
    found = [one for one in every_subscription(context, payload) if (one.pattern.subscription_id,) == subscription]
    return [precise for one in found for precise in _with_times(context, one.pattern)]


def _with_times(context: CallContext, pattern: TopicPattern) -> list[RealmSubscription]:
    attached = context.ports.subscribers.known.attached(context.realm, pattern)
    if not attached:
        return []
    created_at = min(one.created_at for one in attached)
    return [RealmSubscription(pattern, created_at, frozenset(one.session for one in attached))]


def list_all(context: CallContext, payload: Payload) -> Payload:
    """Return the ids of subscriptions by their matching policies, or with the keyword `after` a page of details.

    `after` is the place behind which the page begins, first `FIRST_PLACE`. The result has the place of the next page,
    or None. A subscription is in it once for each session that has it. Raises `InvalidArgument`.
    """
    if "after" in payload.keywords:
        return _page(context, _place(payload.keywords["after"]))
    ids: dict[str, list[int]] = {match.value: [] for match in MatchPolicy}
    for one in every_subscription(context, payload):
        ids[one.pattern.match.value].append(one.pattern.subscription_id)
    return Payload((ids,))


def _page(context: CallContext, after: Sequence[int]) -> Payload:
    page, size = list[Mapping[str, object]](), 0
    place = after
    for session, patterns in _records(context, after[0], RECORDS_OF_PAGE):
        size += RECORD_BYTES
        for pattern in patterns:
            if [session, pattern.subscription_id] > [*after]:
                details = subscription_details(pattern, created_at=context.cause.at)
                size += size_bytes(json_text(details))
                if size > PAGE_BYTES:
                    return Payload((page,), {"after": place})
                page.append(details)
                place = [session, pattern.subscription_id]
        place = [session, MAXIMUM_ID]
        if size > PAGE_BYTES:
            return Payload((page,), {"after": place})
    return Payload((page,), {"after": None})


def _place(given: object) -> Sequence[int]:
    if isinstance(given, list) and len(given) == len(FIRST_PLACE) and all(map(ID.accepts, given)):
        return given
    raise InvalidArgument(f"after: expected the ids of a session and of a subscription, not {shown(given)}")


def lookup(payload: Payload, subscriptions: Sequence[RealmSubscription]) -> Payload:
    """Return the id of the subscription to a pattern, or None."""
    pattern = _pattern(payload)
    exists = any(one.pattern == pattern for one in subscriptions)
    return Payload((pattern.subscription_id if exists else None,))


def match(payload: Payload, subscriptions: Sequence[RealmSubscription]) -> Payload:
    """Return the ids of the subscriptions that match a topic, or None."""
    topic = RoutingKey(_topic(payload))
    ids = [one.pattern.subscription_id for one in subscriptions if one.pattern.matches(topic)]
    return Payload((ids or None,))


def get(payload: Payload, subscriptions: Sequence[RealmSubscription]) -> Payload:
    """Return the details of a subscription. Raises `NoSuchSubscription`."""
    found = _found(payload, subscriptions)
    return Payload((subscription_details(found.pattern, created_at=found.created_at),))


def list_subscribers(payload: Payload, subscriptions: Sequence[RealmSubscription]) -> Payload:
    """Return the ids of the sessions that have a subscription. Raises `NoSuchSubscription`."""
    return Payload((sorted(_found(payload, subscriptions).sessions),))


def count_subscribers(payload: Payload, subscriptions: Sequence[RealmSubscription]) -> Payload:
    """Return the number of sessions that have a subscription. Raises `NoSuchSubscription`."""
    return Payload((len(_found(payload, subscriptions).sessions),))


def _pattern(payload: Payload) -> TopicPattern:
    topic, options = _topic(payload), (payload.arguments[1:2] or (None,))[0]
    if not isinstance(options, Mapping | None):
        raise InvalidArgument(f"arguments[1]: expected the options of SUBSCRIBE, not {shown(options)}")
    try:
        policy = SubscribeOptions.parse(options or {}).match
    except InvalidOptions as problem:
        raise InvalidArgument(str(problem)) from problem
    return TopicPattern(policy, topic)


def _topic(payload: Payload) -> str:
    first = payload.arguments[0] if payload.arguments else None
    if not isinstance(first, str):
        raise InvalidArgument(f"arguments[0]: expected a topic, not {shown(first)}")
    if problem := short_string_problem(first):  # no table has such a key
        raise InvalidArgument(f"arguments[0]: {problem}")
    return first


def _found(payload: Payload, subscriptions: Sequence[RealmSubscription]) -> RealmSubscription:
    given = payload.arguments[0] if payload.arguments else None
    if not isinstance(given, int) or isinstance(given, bool):
        raise InvalidArgument(f"arguments[0]: expected the id of a subscription, not {shown(given)}")
    found = next((one for one in subscriptions if one.pattern.subscription_id == given), None)
    if found is None:
        raise NoSuchSubscription("there is no such subscription")
    return found
