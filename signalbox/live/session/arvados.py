"""The rules of sessions in Arvados' dialect: requests for log rows, and the message that keeps a connection open.

A session gets every event of its realm that its user may receive and that passes the filters of any subscription, so
it has one subscription to all topics, and the writer applies the filters.
"""

from dataclasses import replace
from datetime import datetime, timedelta

from signalbox.live.arvados.filters import LogSubscription
from signalbox.live.arvados.requests import BadRequest, SubscribeRequest, UnsubscribeRequest, status
from signalbox.live.model.effects import Attach, CatchUp, Detach, Enter, PostText, RefuseFrame
from signalbox.live.model.state import Admitted, DecisionContext, Elapsed, Lost, Outcome, Session, SessionState
from signalbox.live.session import closing
from signalbox.live.wamp.codec import size_bytes
from signalbox.live.wamp.messages import SubscriptionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern

EVERY_TOPIC = TopicPattern(MatchPolicy.PREFIX, "")
OK, BAD_REQUEST = 200, 400
MAXIMUM_SUBSCRIPTIONS = 100
MAXIMUM_FILTER_BYTES = 65_536  # of all subscriptions of a session: its item has room for them
# API Gateway closes a connection after 10 minutes without a message. arvados-ws sends the same message every minute.
KEEP_ALIVE, KEEP_ALIVE_AFTER = "{}", timedelta(minutes=9)


def admitted(session: Session, received: Admitted, context: DecisionContext) -> Outcome:
    """Join a session whose token was verified when its connection was opened."""
    del received
    joined = replace(session, state=SessionState.JOINED, deadline=_deadline(session, context))
    entering = [Enter(joined.listener)] if joined.listener else []
    return Outcome(joined, tuple(entering))


def subscribed(session: Session, received: SubscribeRequest, context: DecisionContext) -> Outcome:
    """Add a subscription, and request its past rows.

    Filters that do not fit into the session's record, and subscriptions that do not fit into the realm, are refused.
    """
    after = received.last_log_id or None
    added = LogSubscription(SubscriptionId(context.publication), received.filters, after)
    subscriptions = (*session.log_subscriptions, added)
    if len(subscriptions) > MAXIMUM_SUBSCRIPTIONS or sum(map(_size, subscriptions)) > MAXIMUM_FILTER_BYTES:
        return _refused(session)
    if not session.log_subscriptions and EVERY_TOPIC.weight > context.room:
        return _refused(session)
    answer = PostText(status(OK), begins=added.subscription, expects_catch_up=after is not None)
    attaching = () if session.log_subscriptions else (Attach(EVERY_TOPIC, get_retained=False, history=None),)
    catching_up = () if after is None else (CatchUp(added.subscription),)
    topics = {EVERY_TOPIC.subscription_id: EVERY_TOPIC}
    return Outcome(
        replace(session, log_subscriptions=subscriptions, subscriptions=topics), (answer, *attaching, *catching_up)
    )


def unsubscribed(session: Session, received: UnsubscribeRequest, context: DecisionContext) -> Outcome:
    """Remove the first subscription with equal filters."""
    del context
    removed = next((one for one in session.log_subscriptions if one.filters == received.filters), None)
    if removed is None:
        return _refused(session)
    left = tuple(one for one in session.log_subscriptions if one is not removed)
    answer = PostText(status(OK), ends=removed.subscription)
    if left:
        return Outcome(replace(session, log_subscriptions=left), (answer,))
    return Outcome(replace(session, log_subscriptions=(), subscriptions={}), (Detach(EVERY_TOPIC), answer))


def bad_request(session: Session, received: BadRequest, context: DecisionContext) -> Outcome:
    """Answer a frame that is no request; the connection stays open."""
    del received, context
    return _refused(session)


def kept_alive(session: Session, received: Elapsed, context: DecisionContext) -> Outcome:
    """Post the message that keeps the connection open, once for each deadline; end the session of a token that is over.

    The protocol has no message for the end of a session.
    """
    if session.token is not None and session.token.is_over(context.now):
        return closing.closed(session, Lost(), context)
    del received
    if context.now < session.deadline:
        return Outcome(session)
    return Outcome(replace(session, deadline=_deadline(session, context)), (PostText(KEEP_ALIVE),))


def _deadline(session: Session, context: DecisionContext) -> datetime:
    """Return when the next timer runs out, which the change of the deadline starts."""
    keeping = context.now + KEEP_ALIVE_AFTER
    return keeping if session.token is None else min(keeping, session.token.ends_at)


def _refused(session: Session) -> Outcome:
    return Outcome(session, (PostText(status(BAD_REQUEST)), RefuseFrame()))


def _size(subscription: LogSubscription) -> int:
    return size_bytes(subscription.filters or "")
