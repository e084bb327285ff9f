"""What calls of WAMP's own procedures are answered, and of ours."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

from signalbox.errors import RejectedError, SignalboxError, UnavailableError
from signalbox.exchange.model.records import LiveSettings
from signalbox.live.admin.grants import Rights
from signalbox.live.log.backfill import in_order
from signalbox.live.log.events import LoggedEvent
from signalbox.live.log.get_events import get_events_result
from signalbox.live.log.history_request import HistoryRequest, InvalidArgument
from signalbox.live.log.selection import history_page
from signalbox.live.outbox.ports import TopicLog
from signalbox.live.procedures import overview, session_meta, subscription_meta
from signalbox.live.procedures.overview import Asking
from signalbox.live.procedures.session_meta import Members, NoSuchSession, subscriptions_for
from signalbox.live.procedures.subscription_meta import NoSuchSubscription
from signalbox.live.session.effects import Answer
from signalbox.live.session.events import Cause
from signalbox.live.session.ports import Member, SessionPorts, Standing
from signalbox.live.session.state import Killed, Session
from signalbox.live.wamp import error_uris
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, TYPE_CODES, serialize, size_bytes
from signalbox.live.wamp.messages import Call, Error, Payload, Result
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.live.wamp.uris import InvalidUri
from signalbox.sarracenia.rights.names import ExchangeName

GET_EVENTS = "wamp.subscription.get_events"
MAXIMUM_TOPICS = 500  # whose logs are read for one answer, while the client's next frames wait
NO_RIGHTS = Rights(frozenset(), ())


class NotSubscribed(RejectedError):
    """Raised when past events are asked for of a subscription that the session does not have, or nobody has."""


class NotAnswered(UnavailableError):
    """Raised when something that a call asks for is not to be had right now; nobody waits until it is."""


class AnswerTooLarge(RejectedError):
    """Raised when an answer does not fit through a connection."""


ERRORS: Mapping[type[SignalboxError], str] = {
    InvalidArgument: error_uris.INVALID_ARGUMENT,
    InvalidUri: error_uris.INVALID_URI,
    NotSubscribed: error_uris.NO_SUCH_SUBSCRIPTION,
    NoSuchSession: error_uris.NO_SUCH_SESSION,
    AnswerTooLarge: error_uris.PAYLOAD_SIZE_EXCEEDED,
    NotAnswered: error_uris.UNAVAILABLE,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A call, the session that makes it, which has joined, and how its user stands now."""

    call: Answer
    session: Session
    standing: Standing
    cause: Cause

    @property
    def rights(self) -> Rights:
        """Return what the user may do now."""
        return self.standing.account.rights if self.standing.account else NO_RIGHTS


def answered(asked: Asked, ports: SessionPorts) -> Result | Error:
    """Return the reply to a call, which is a result or says what is wrong."""
    try:
        return _fitting(Result(asked.call.request, {}, _payload(asked, ports)))
    except tuple(ERRORS) as problem:
        error = next(uri for kind, uri in ERRORS.items() if isinstance(problem, kind))
        return Error(TYPE_CODES[Call], asked.call.request, {}, error, Payload((str(problem),)))


def _fitting(result: Result) -> Result:
    size = size_bytes(serialize(result))
    if size > MAXIMUM_MESSAGE_BYTES:
        raise AnswerTooLarge(f"the answer has {size} bytes; at most {MAXIMUM_MESSAGE_BYTES} fit through a connection")
    return result


def _payload(asked: Asked, ports: SessionPorts) -> Payload:
    procedure, payload = asked.call.procedure, asked.call.payload
    if procedure == GET_EVENTS:
        return _events(asked, ports)
    if procedure in overview.PROCEDURES:
        return _glance(asked, ports)
    of_realm = Members(ports.store, _realm(asked), asked.session, _killer(asked, ports))
    if procedure in session_meta.PROCEDURES:
        return session_meta.PROCEDURES[procedure](of_realm, payload)
    reply = subscription_meta.answer(
        procedure, payload, subscriptions_for(procedure, payload, of_realm, now=asked.cause.at)
    )
    if isinstance(reply, NoSuchSubscription):
        raise NotSubscribed("there is no such subscription")
    return reply


def _glance(asked: Asked, ports: SessionPorts) -> Payload:
    asking = Asking(_realm(asked), asked.rights, asked.cause.at)
    try:
        return ports.glances.answer(asked.call.procedure, asked.call.payload, asking)
    except UnavailableError as error:
        raise NotAnswered(str(error)) from error


def _killer(asked: Asked, ports: SessionPorts) -> Callable[[Member, Killed], None]:
    def kill(member: Member, killed: Killed) -> None:
        ports.inbox.tell(member.connection, killed, request=f"{asked.cause.frame}:{asked.call.request}")

    return kill


def _realm(asked: Asked) -> ExchangeName:
    return cast("ExchangeName", asked.session.realm)  # only sessions that have joined one may call


def _events(asked: Asked, ports: SessionPorts) -> Payload:
    """Return past events of a subscription of the session, of those topics that it may see now."""
    query = HistoryRequest.parse(asked.call.payload)
    pattern = asked.session.subscriptions.get(query.subscription)
    listener = asked.session.listener
    if pattern is None or listener is None:
        raise NotSubscribed("this session has no such subscription: subscribe first")
    visible = [
        event for event in _logged(asked, ports.store.log, pattern, query) if asked.rights.may_receive(event.topic)
    ]
    return get_events_result(history_page(visible, query, listener), pattern)


def _logged(asked: Asked, log: TopicLog, pattern: TopicPattern, query: HistoryRequest) -> list[LoggedEvent]:
    """Return what is kept of the topics that a pattern matches, or of the one that is asked for."""
    topics = log.topics(_realm(asked), pattern)
    if query.topic is not None:
        topics = [topic for topic in topics if topic == query.topic]
    if len(topics) > MAXIMUM_TOPICS:
        raise InvalidArgument(f"topic: {len(topics)} match, and at most {MAXIMUM_TOPICS} are read: name one")
    live = asked.standing.live or LiveSettings()
    return in_order(log.events(_realm(asked), topic, live=live, now=asked.cause.at) for topic in topics)
