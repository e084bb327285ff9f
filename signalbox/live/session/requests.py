"""What a session that has joined may ask for: to subscribe, to publish and to call; each request has one reply."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from signalbox.live.admin.grants import Rights, revoked
from signalbox.live.procedures.names import PROCEDURES, Access
from signalbox.live.session.effects import Answer, Attach, Detach, Distribute, Drop, Effect, Post
from signalbox.live.session.state import Circumstances, Outcome, RightsChanged, Session
from signalbox.live.wamp import error_uris
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, TYPE_CODES
from signalbox.live.wamp.messages import (
    Call,
    Error,
    Payload,
    Publish,
    Register,
    RequestId,
    Subscribe,
    Subscribed,
    SubscriptionId,
    Unregister,
    Unsubscribe,
    Unsubscribed,
)
from signalbox.live.wamp.options import InvalidOptions, PublishOptions, SubscribeOptions, is_acknowledged
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.live.wamp.uris import InvalidUri, parse_procedure, parse_topic

# An event says more than its publication did: its topic, which may have 255 bytes, its time, its publisher.
ROOM_BYTES = 2_048
MAXIMUM_PUBLISH_BYTES = MAXIMUM_MESSAGE_BYTES - ROOM_BYTES
MAXIMUM_SUBSCRIPTIONS = 1_000  # of a session: its record has room for them in DynamoDB
AUTOBAHN_PYTHON = "AutobahnPython/"  # its User-Agent

_NO_RIGHTS = Rights(frozenset(), ())
Request = Subscribe | Unsubscribe | Publish | Call | Register | Unregister


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a request is not fulfilled."""

    error: str
    message: str


def subscribed(session: Session, heard: Subscribe, given: Circumstances) -> Outcome:
    """Subscribe a session, or say why not. What is subscribed to already has the same subscription."""
    wish = _subscription(session, heard, given)
    if isinstance(wish, _Refusal):
        return Outcome(session, (_error(heard, wish),))
    pattern, options = wish
    subscription = pattern.subscription_id
    attach = Attach(pattern, options.get_retained, options.history)
    subscriptions = {**session.subscriptions, subscription: pattern}
    return Outcome(
        replace(session, subscriptions=subscriptions), (Post(Subscribed(heard.request, subscription)), attach)
    )


def unsubscribed(session: Session, heard: Unsubscribe, given: Circumstances) -> Outcome:
    """Unsubscribe a session from what it is subscribed to."""
    del given
    if heard.subscription not in session.subscriptions:
        refusal = _Refusal(error_uris.NO_SUCH_SUBSCRIPTION, "this session has no such subscription")
        return Outcome(session, (_error(heard, refusal),))
    left = {one: pattern for one, pattern in session.subscriptions.items() if one != heard.subscription}
    detach = Detach(session.subscriptions[heard.subscription])
    effects = detach, Post(Unsubscribed(heard.request), ends=heard.subscription)
    return Outcome(replace(session, subscriptions=left), effects)


def published(session: Session, heard: Publish, given: Circumstances) -> Outcome:
    """Publish an event, or say why not: to those who wait for a reply."""
    wish = _publication(session, heard, given)
    if not isinstance(wish, _Refusal):
        return Outcome(session, (wish,))
    return Outcome(session, (_error(heard, wish) if is_acknowledged(heard.options) else Drop(wish.error),))


def called(session: Session, heard: Call, given: Circumstances) -> Outcome:
    """Pass a call on to the procedure that is called, or say why not."""
    refusal = _call_refusal(heard.procedure, given)
    if refusal:
        return Outcome(session, (_error(heard, refusal),))
    return Outcome(session, (Answer(heard.request, heard.procedure, heard.payload),))


def not_registered(session: Session, heard: Register, given: Circumstances) -> Outcome:
    """Say that clients can offer no procedures here."""
    del given
    return Outcome(
        session, (_error(heard, _Refusal(error_uris.NOT_AUTHORIZED, "procedures cannot be registered here")),)
    )


def not_unregistered(session: Session, heard: Unregister, given: Circumstances) -> Outcome:
    """Say that there is no such procedure, since there is none."""
    del given
    refusal = _Refusal(error_uris.NO_SUCH_REGISTRATION, "procedures cannot be registered here")
    return Outcome(session, (_error(heard, refusal),))


def bereft(session: Session, heard: RightsChanged, given: Circumstances) -> Outcome:
    """End the subscriptions that nothing carries any more, first their events; and tell the client if it bears that."""
    del heard
    ended = set(revoked(session.subscriptions.values(), _rights(given)))
    kept = {one: pattern for one, pattern in session.subscriptions.items() if pattern not in ended}
    return Outcome(
        replace(session, subscriptions=kept), tuple(_revocations(session, session.subscriptions.keys() - kept))
    )


def bears_revocation(session: Session) -> bool:
    """Say whether a client may be told that a subscription was taken away.

    The specification allows it to those who announced it; Autobahn for Python does, and then drops the connection.
    """
    return "subscription_revocation" in session.features and not session.user_agent.startswith(AUTOBAHN_PYTHON)


def _revocations(session: Session, ended: Collection[SubscriptionId]) -> Iterator[Effect]:
    for subscription in sorted(ended):
        yield Detach(session.subscriptions[subscription])
        if bears_revocation(session):
            details = {"subscription": subscription, "reason": error_uris.NOT_AUTHORIZED}
            yield Post(Unsubscribed(RequestId(0), details), ends=subscription)


def _subscription(
    session: Session, heard: Subscribe, given: Circumstances
) -> tuple[TopicPattern, SubscribeOptions] | _Refusal:
    try:
        options = SubscribeOptions.parse(heard.options)
        pattern = TopicPattern.parse(heard.topic, options.match)
    except (InvalidOptions, InvalidUri) as problem:
        return _refusal(problem)
    if not _rights(given).may_subscribe(pattern):
        return _Refusal(error_uris.NOT_AUTHORIZED, "this user may not subscribe to all that this matches")
    is_new = pattern.subscription_id not in session.subscriptions
    if is_new and len(session.subscriptions) >= MAXIMUM_SUBSCRIPTIONS:
        problem_text = f"a session has {MAXIMUM_SUBSCRIPTIONS} subscriptions at most: subscribe to patterns"
        return _Refusal(error_uris.TOO_MANY_SUBSCRIPTIONS, problem_text)
    return pattern, options


def _publication(session: Session, heard: Publish, given: Circumstances) -> Distribute | _Refusal:
    if given.size_bytes > MAXIMUM_PUBLISH_BYTES:
        size = f"{given.size_bytes} bytes; at most {MAXIMUM_PUBLISH_BYTES} fit through a connection"
        return _Refusal(error_uris.PAYLOAD_SIZE_EXCEEDED, f"{size}; publish what is larger by SQS")
    try:
        topic = parse_topic(heard.topic)
        options = PublishOptions.parse(heard.options, publisher=session.session)
    except (InvalidOptions, InvalidUri) as problem:
        return _refusal(problem)
    if not _rights(given).may_publish(topic):
        return _Refusal(error_uris.NOT_AUTHORIZED, "this user may not publish to this topic")
    return Distribute(
        publication=given.publication,
        topic=topic,
        payload=heard.payload,
        audience=options.audience,
        disclosed=session.listener if options.disclose_me else None,
        is_retained=options.retain,
        request=heard.request if options.acknowledge else None,
    )


def _call_refusal(procedure: str, given: Circumstances) -> _Refusal | None:
    try:
        access = PROCEDURES.get(parse_procedure(procedure))
    except InvalidUri as problem:
        return _refusal(problem)
    if access is None:
        return _Refusal(error_uris.NO_SUCH_PROCEDURE, "there is no such procedure")
    if access is Access.GRANTED and not _rights(given).may_administer(procedure):
        return _Refusal(error_uris.NOT_AUTHORIZED, "this user may not call this procedure")
    return None


def _rights(given: Circumstances) -> Rights:
    return given.account.rights if given.account else _NO_RIGHTS


def _refusal(problem: InvalidOptions | InvalidUri) -> _Refusal:
    error = error_uris.INVALID_URI if isinstance(problem, InvalidUri) else error_uris.INVALID_ARGUMENT
    return _Refusal(error, str(problem))


def _error(request: Request, refusal: _Refusal) -> Post:
    payload = Payload((refusal.message,))
    return Post(Error(TYPE_CODES[type(request)], request.request, {}, refusal.error, payload))
