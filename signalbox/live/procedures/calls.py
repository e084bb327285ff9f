"""Calls of WAMP procedures: their context, the replies to them, and `wamp.subscription.get_events`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from signalbox.errors import RejectedError, SignalboxError, UnavailableError
from signalbox.exchange.model.records import LiveSettings
from signalbox.exchange.model.topics import RoutingKey
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.get_events import get_events_result
from signalbox.live.log.history_request import HistoryRequest, InvalidArgument
from signalbox.live.log.read_limits import MEMBER, PastTooLarge, ReadsBusy
from signalbox.live.log.retention import may_have_events, oldest_kept
from signalbox.live.log.selection import history_page, in_order
from signalbox.live.model.effects import AnswerCall
from signalbox.live.model.events import Cause
from signalbox.live.model.state import Session
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.ports import Member, RealmAccess, SessionPorts
from signalbox.live.rights.grants import Rights
from signalbox.live.wamp import uris
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, TYPE_CODES, serialize, size_bytes
from signalbox.live.wamp.messages import Call, Error, Payload, RequestId, Result
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.live.wamp.uris import InvalidUri
from signalbox.sarracenia.rights.names import ExchangeName

MAXIMUM_TOPICS = 500  # whose logs one call reads: the client's next frames wait for it


class NoSuchSubscription(RejectedError):
    """Raised when a call names a subscription that its session, or every session of the realm, lacks."""


class NoSuchSession(RejectedError):
    """Raised when a call names a session that is not in the realm, or asks to kill the caller's own session."""


class ProcedureUnavailable(UnavailableError):
    """Raised when a call cannot be answered now; its caller gets `wamp.error.unavailable` instead of a retry."""


class RightEnded(RejectedError):
    """Raised when the caller has lost the right to a procedure before its call is answered."""


class AnswerTooLarge(RejectedError):
    """Raised when a result is larger than one WebSocket message may be."""


ERRORS: Mapping[type[SignalboxError], str] = {
    InvalidArgument: uris.INVALID_ARGUMENT,
    InvalidUri: uris.INVALID_URI,
    NoSuchSubscription: uris.NO_SUCH_SUBSCRIPTION,
    NoSuchSession: uris.NO_SUCH_SESSION,
    RightEnded: uris.NOT_AUTHORIZED,
    AnswerTooLarge: uris.PAYLOAD_SIZE_EXCEEDED,
    PastTooLarge: uris.PAYLOAD_SIZE_EXCEEDED,
    ProcedureUnavailable: uris.UNAVAILABLE,
    ReadsBusy: uris.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class CallContext:
    """A call of a joined session, with the ports to answer it; `access` returns the current access of its user.

    `spend` adds a cost of reading to what the user may read. It raises `PastTooLarge` and `ReadsBusy`.
    """

    call: AnswerCall
    session: Session
    access: Callable[[], RealmAccess]
    cause: Cause
    ports: SessionPorts
    spend: Callable[[int], object] = lambda _: None

    @property
    def rights(self) -> Rights:
        """Return the caller's current rights in the realm."""
        return self.access().rights

    @property
    def realm(self) -> ExchangeName:
        """Return the caller's realm."""
        return cast("ExchangeName", self.session.realm)  # only joined sessions may call

    def members(self) -> Sequence[Member]:
        """Return the sessions of the caller's realm. Raises `ReadsBusy`."""
        members = self.ports.store.realm_sessions.every(self.realm)
        self.spend(MEMBER * len(members))
        return members


def reply(request: RequestId, answer: Callable[[], Payload]) -> Result | Error:
    """Return the RESULT of a call, or the ERROR for an exception in `ERRORS`; other exceptions propagate."""
    try:
        return _fitting(Result(request, {}, answer()))
    except tuple(ERRORS) as problem:
        error = next(uri for kind, uri in ERRORS.items() if isinstance(problem, kind))
        return Error(TYPE_CODES[Call], request, {}, error, Payload((str(problem),)))


def _fitting(result: Result) -> Result:
    size = size_bytes(serialize(result))
    if size > MAXIMUM_MESSAGE_BYTES:
        raise AnswerTooLarge(f"the result has {size} bytes; a message may have at most {MAXIMUM_MESSAGE_BYTES}")
    return result


def get_events(context: CallContext, payload: Payload) -> Payload:
    """Return past events of a subscription of the caller, of the topics that it may receive now."""
    query = HistoryRequest.parse(payload)
    pattern = context.session.subscriptions.get(query.subscription)
    listener = context.session.listener
    if pattern is None or listener is None:
        raise NoSuchSubscription("this session has no such subscription: subscribe first")
    with context.ports.store.log.request((context.realm, listener.authid)) as log:
        logged = _logged(log, context, pattern, query)
        rights = context.rights  # after the logs were read: events published since may not be the caller's any more
        visible = [event for event in logged if rights.may_receive(event.topic)]
        return get_events_result(history_page(visible, query, listener), pattern)


def _logged(log: TopicLog, context: CallContext, pattern: TopicPattern, query: HistoryRequest) -> list[LoggedEvent]:
    """Return the kept events of the topics that a pattern matches, or of the topic that the query names."""
    live = context.access().live or LiveSettings()
    realm, now = context.realm, context.cause.at
    # A publication that bounds the events must be among them, whatever its time.
    times = [] if any(query.publications) else [query.from_time, query.after_time]
    since = max(filter(None, [*times, oldest_kept(live, now=now)]))
    if query.topic is not None:
        topics = [RoutingKey(query.topic)] if pattern.matches(RoutingKey(query.topic)) else []
    else:
        found = log.topics(realm, pattern, since=since).items()
        topics = [one for one, until in found if may_have_events(one, until, live, now=now)]
    if len(topics) > MAXIMUM_TOPICS:
        raise InvalidArgument(f"topic: {len(topics)} match, and one call reads at most {MAXIMUM_TOPICS}: name one")
    return in_order(log.parallel_map(lambda topic: log.events(realm, topic, live=live, now=now), topics))
