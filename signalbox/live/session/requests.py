"""The requests of joined sessions: subscribe, unsubscribe, publish and call; each gets one reply."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from signalbox.live.model.effects import AnswerCall, Attach, Detach, Distribute, Drop, Effect, Post
from signalbox.live.model.state import DecisionContext, Outcome, PastRefused, RightsChanged, Session
from signalbox.live.procedures.table import PROCEDURES
from signalbox.live.rights.grants import NO_RIGHTS, Rights, revoked
from signalbox.live.router.write_limits import ABOVE_LIMIT
from signalbox.live.session.closing import ended_with_goodbye
from signalbox.live.wamp import uris
from signalbox.live.wamp.codec import MAXIMUM_MESSAGE_BYTES, TYPE_CODES, size_bytes
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
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.live.wamp.uris import InvalidUri, parse_procedure, parse_topic

# An event is larger than its publication by its topic (up to 255 bytes), its time and its publisher.
ROOM_BYTES = 2_048
MAXIMUM_PUBLISH_BYTES = MAXIMUM_MESSAGE_BYTES - ROOM_BYTES
# Of a session: its record, which each of its frames and replies writes, has all of them.
MAXIMUM_SUBSCRIPTIONS, MAXIMUM_TOPIC_BYTES = 1_000, 40_000
# Of a session: every router has all prefixes and wildcards of a realm in memory, 33 KB for one of 128 words, and the
# writer posts an event once for each that matches.
MAXIMUM_PATTERNS, MAXIMUM_PATTERN_WORDS = 100, 1_000
NO_ROOM = (
    "the sessions of this user, or of this realm, have as many prefixes and wildcards as they may: unsubscribe from "
    "others, or use exact topics"
)
SHOWN_TOPIC = 100  # characters in errors
PAST_REFUSAL = "_past_refusal"  # the feature of subscribers that subscribe again without past events
AUTOBAHN_PYTHON = "AutobahnPython/"  # its User-Agent

Request = Subscribe | Unsubscribe | Publish | Call | Register | Unregister


@dataclass(frozen=True, slots=True)
class _Refusal:
    """The error URI and the text of a refused request."""

    error: str
    message: str


def subscribed(session: Session, received: Subscribe, context: DecisionContext) -> Outcome:
    """Subscribe a session, or refuse with a reason. A pattern subscribed to before keeps its subscription."""
    permitted = _subscription(session, received, context)
    if isinstance(permitted, _Refusal):
        return Outcome(session, (_error(received, permitted),))
    pattern, options = permitted
    subscription = pattern.subscription_id
    attach = Attach(pattern, options.get_retained, options.history)
    subscriptions = {**session.subscriptions, subscription: pattern}
    return Outcome(
        replace(session, subscriptions=subscriptions), (Post(Subscribed(received.request, subscription)), attach)
    )


def unsubscribed(session: Session, received: Unsubscribe, context: DecisionContext) -> Outcome:
    """End a subscription of a session."""
    del context
    if received.subscription not in session.subscriptions:
        refusal = _Refusal(uris.NO_SUCH_SUBSCRIPTION, "this session has no such subscription")
        return Outcome(session, (_error(received, refusal),))
    left = {one: pattern for one, pattern in session.subscriptions.items() if one != received.subscription}
    detach = Detach(session.subscriptions[received.subscription])
    effects = detach, Post(Unsubscribed(received.request), ends=received.subscription)
    return Outcome(replace(session, subscriptions=left), effects)


def published(session: Session, received: Publish, context: DecisionContext) -> Outcome:
    """Publish an event, or refuse it; a refusal is only sent if the publisher requested an acknowledgement."""
    publication = _publication(session, received, context)
    if not isinstance(publication, _Refusal):
        return Outcome(session, (publication,))
    is_answered = is_acknowledged(received.options)
    return Outcome(session, (_error(received, publication) if is_answered else Drop(publication.error),))


def called(session: Session, received: Call, context: DecisionContext) -> Outcome:
    """Answer a call by the table of procedures, or refuse it with a reason."""
    refusal = _call_refusal(received.procedure, context)
    if refusal:
        return Outcome(session, (_error(received, refusal),))
    return Outcome(session, (AnswerCall(received.request, received.procedure, received.payload),))


def not_registered(session: Session, received: Register, context: DecisionContext) -> Outcome:
    """Refuse REGISTER: clients cannot offer procedures."""
    del context
    return Outcome(session, (_error(received, _Refusal(uris.NOT_AUTHORIZED, "procedures cannot be registered here")),))


def not_unregistered(session: Session, received: Unregister, context: DecisionContext) -> Outcome:
    """Refuse UNREGISTER: no procedure is ever registered."""
    del context
    refusal = _Refusal(uris.NO_SUCH_REGISTRATION, "procedures cannot be registered here")
    return Outcome(session, (_error(received, refusal),))


def rights_revoked(session: Session, received: RightsChanged, context: DecisionContext) -> Outcome:
    """End the subscriptions that the user's rights no longer cover, and notify a client that accepts revocations."""
    ended = revoked(session.subscriptions.values(), _rights(context))[: received.at_once]
    return _revoked(session, ended, uris.NOT_AUTHORIZED)


def past_refused(session: Session, received: PastRefused, context: DecisionContext) -> Outcome:
    """End the subscription with too many past events, or the session of a client that does not go on by itself.

    Other clients that accept revocations, such as Autobahn for JavaScript, would wait for events without an error, and
    connect again at once after an ABORT.
    """
    ended = session.subscriptions.get(received.subscription)
    if ended is not None and not (PAST_REFUSAL in session.features and accepts_revocation(session)):
        return ended_with_goodbye(session, uris.PAYLOAD_SIZE_EXCEEDED, received.message, context)
    return _revoked(session, [ended] if ended else [], uris.PAYLOAD_SIZE_EXCEEDED, received.message)


def accepts_revocation(session: Session) -> bool:
    """Return whether a client may be sent UNSUBSCRIBED for a revoked subscription.

    The specification permits it for clients that announce the feature. Autobahn for Python announces it, and then drops
    the connection on such a message.
    """
    return "subscription_revocation" in session.features and not session.user_agent.startswith(AUTOBAHN_PYTHON)


def _revoked(session: Session, patterns: Iterable[TopicPattern], reason: str, message: str = "") -> Outcome:
    ended = {pattern.subscription_id: pattern for pattern in patterns}
    kept = {one: pattern for one, pattern in session.subscriptions.items() if one not in ended}
    effects = _revocations(session, ended, {"reason": reason, **({"message": message} if message else {})})
    return Outcome(replace(session, subscriptions=kept), tuple(effects))


def _revocations(
    session: Session, ended: Mapping[SubscriptionId, TopicPattern], why: Mapping[str, str]
) -> Iterator[Effect]:
    for subscription in sorted(ended):
        yield Detach(ended[subscription])
        if accepts_revocation(session):
            yield Post(Unsubscribed(RequestId(0), {"subscription": subscription, **why}), ends=subscription)


def _subscription(
    session: Session, received: Subscribe, context: DecisionContext
) -> tuple[TopicPattern, SubscribeOptions] | _Refusal:
    try:
        options = SubscribeOptions.parse(received.options)
        pattern = TopicPattern.parse(received.topic, options.match)
    except (InvalidOptions, InvalidUri) as problem:
        return _refusal(problem)
    if not _rights(context).may_subscribe(pattern):
        return _Refusal(uris.NOT_AUTHORIZED, _no_grant(received.topic))
    is_new = pattern.subscription_id not in session.subscriptions
    if is_new and (problem_text := _excess(session, pattern, context.room)):
        return _Refusal(uris.TOO_MANY_SUBSCRIPTIONS, problem_text)
    return pattern, options


def _excess(session: Session, new: TopicPattern, room: int) -> str:
    """Return which limit a session, its user or its realm would exceed by a new subscription, or an empty text."""
    if len(session.subscriptions) >= MAXIMUM_SUBSCRIPTIONS:
        return f"a session has {MAXIMUM_SUBSCRIPTIONS} subscriptions at most: subscribe to patterns"
    if sum(size_bytes(one.uri) for one in (new, *session.subscriptions.values())) > MAXIMUM_TOPIC_BYTES:
        return (
            f"the topics of a session's subscriptions have {MAXIMUM_TOPIC_BYTES} bytes at most: subscribe to patterns"
        )
    if new.match is MatchPolicy.EXACT:
        return ""
    patterns = [new, *(one for one in session.subscriptions.values() if one.match is not MatchPolicy.EXACT)]
    if len(patterns) > MAXIMUM_PATTERNS:
        return f"a session has {MAXIMUM_PATTERNS} prefixes and wildcards at most: use shorter ones, or exact topics"
    if sum(one.uri.count(".") + 1 for one in patterns) > MAXIMUM_PATTERN_WORDS:
        return f"the prefixes and wildcards of a session have {MAXIMUM_PATTERN_WORDS} components at most: use prefixes"
    return NO_ROOM if new.weight > room else ""


def _no_grant(topic: str) -> str:
    remedy = "an administrator may add the right with `signalbox grant add`"
    return f"this user may not subscribe to every topic that {topic[:SHOWN_TOPIC]!r} matches; {remedy}"


def _publication(session: Session, received: Publish, context: DecisionContext) -> Distribute | _Refusal:
    if context.size_bytes > MAXIMUM_PUBLISH_BYTES:
        size = f"{context.size_bytes} bytes; at most {MAXIMUM_PUBLISH_BYTES} are allowed in a message"
        return _Refusal(uris.PAYLOAD_SIZE_EXCEEDED, f"{size}; publish what is larger by SQS")
    try:
        topic = parse_topic(received.topic)
        options = PublishOptions.parse(received.options, publisher=session.session)
    except (InvalidOptions, InvalidUri) as problem:
        return _refusal(problem)
    if not _rights(context).may_publish(topic):
        return _Refusal(uris.NOT_AUTHORIZED, "this user may not publish to this topic")
    if context.is_above_limit:
        return _Refusal(uris.UNAVAILABLE, ABOVE_LIMIT)
    return Distribute(
        publication=context.publication,
        topic=topic,
        payload=received.payload,
        audience=options.audience,
        disclosed=session.listener if options.disclose_me else None,
        is_retained=options.retain,
        request=received.request if options.acknowledge else None,
    )


def _call_refusal(procedure: str, context: DecisionContext) -> _Refusal | None:
    try:
        found = PROCEDURES.get(parse_procedure(procedure))
    except InvalidUri as problem:
        return _refusal(problem)
    if found is None:
        return _Refusal(uris.NO_SUCH_PROCEDURE, "there is no such procedure")
    if not found.is_permitted(_rights(context)):
        return _Refusal(uris.NOT_AUTHORIZED, "this user may not call this procedure")
    return None


def _rights(context: DecisionContext) -> Rights:
    return context.account.rights if context.account else NO_RIGHTS


def _refusal(problem: InvalidOptions | InvalidUri) -> _Refusal:
    error = uris.INVALID_URI if isinstance(problem, InvalidUri) else uris.INVALID_ARGUMENT
    return _Refusal(error, str(problem))


def _error(request: Request, refusal: _Refusal) -> Post:
    payload = Payload((refusal.message,))
    return Post(Error(TYPE_CODES[type(request)], request.request, {}, refusal.error, payload))
