"""The end of sessions: by GOODBYE, by ABORT, by a signal, or with the connection."""

from collections.abc import Iterator
from dataclasses import replace

from signalbox.live.model.effects import Close, Effect, Leave, Post
from signalbox.live.model.state import (
    JOIN_TIMEOUT,
    DecisionContext,
    Elapsed,
    Killed,
    Lost,
    Outcome,
    Session,
    SessionState,
    moved,
    token_deadline,
)
from signalbox.live.wamp import uris
from signalbox.live.wamp.codec import MalformedFrame
from signalbox.live.wamp.messages import Abort, Goodbye, Message


def aborted(session: Session, reason: str, message: str) -> Outcome:
    """End a session at once with ABORT, and close its connection."""
    return _ended(session, Post(Abort({"message": message}, reason)), Close())


def violated(session: Session, received: Message | MalformedFrame, context: DecisionContext) -> Outcome:
    """Abort a session whose client violates the protocol (basic profile, «Protocol Errors»)."""
    del context
    problem = (
        received.problem
        if isinstance(received, MalformedFrame)
        else f"received {type(received).__name__.upper()} message in state {session.state}"
    )
    return aborted(session, uris.PROTOCOL_VIOLATION, problem)


def left(session: Session, received: Goodbye, context: DecisionContext) -> Outcome:
    """Answer a client's GOODBYE and close the connection, since a connection has one session."""
    del received, context
    return _ended(session, Post(Goodbye({}, uris.GOODBYE_AND_OUT)), Close())


def closed(session: Session, received: Abort | Goodbye | Lost, context: DecisionContext) -> Outcome:
    """Close the connection, without a reply, of a client that has sent ABORT or answered our GOODBYE, or that is gone.

    The outbox of a lost connection ends after a last attempt to post its items.
    """
    del received, context
    return _ended(session, Close())


def killed(session: Session, received: Killed, context: DecisionContext) -> Outcome:
    """Send GOODBYE to a killed session. Clients do not reconnect by themselves after that."""
    return ended_with_goodbye(session, received.reason, received.message, context)


def ended_with_goodbye(session: Session, reason: str, message: str, context: DecisionContext) -> Outcome:
    """End a joined session with GOODBYE, and wait for the client's."""
    goodbye = Post(Goodbye({"message": message}, reason))
    ending = replace(_without_subscriptions(session), state=SessionState.CLOSING, deadline=context.now + JOIN_TIMEOUT)
    return Outcome(ending, (*_leaving(session), goodbye))


def token_elapsed(session: Session, received: Elapsed, context: DecisionContext) -> Outcome:
    """End the session of a token that is over; before, set the deadline of the next timer."""
    del received
    token = session.token
    if token is None:
        return Outcome(session)
    if token.is_over(context.now):
        return ended_with_goodbye(session, uris.TOKEN_EXPIRED, "the token has expired: join again", context)
    if context.now < session.deadline:
        return Outcome(session)  # the timer of the join, or one of an older token
    return Outcome(replace(session, deadline=token_deadline(token, now=context.now)))


def killed_before_join(session: Session, received: Killed, context: DecisionContext) -> Outcome:
    """Abort a session that is killed before it has joined."""
    del context
    return aborted(session, received.reason, received.message)


def join_timed_out(session: Session, received: Elapsed, context: DecisionContext) -> Outcome:
    """Abort a session that has not joined before its deadline."""
    del received
    if context.now < session.deadline:
        return Outcome(session)
    return aborted(session, uris.TIMEOUT, f"not joined within {JOIN_TIMEOUT.total_seconds():g} s")


def goodbye_timed_out(session: Session, received: Elapsed, context: DecisionContext) -> Outcome:
    """Close the connection of a client that has not answered our GOODBYE before the deadline."""
    del received
    return Outcome(session) if context.now < session.deadline else _ended(session, Close())


def ignored(session: Session, received: object, context: DecisionContext) -> Outcome:
    """Return the session unchanged, without effects."""
    del received, context
    return Outcome(session)


def _ended(session: Session, *effects: Effect) -> Outcome:
    return moved(_without_subscriptions(session), SessionState.CLOSED, *_leaving(session), *effects)


def _without_subscriptions(session: Session) -> Session:
    return replace(session, subscriptions={})


def _leaving(session: Session) -> Iterator[Leave]:
    if session.listener is not None:
        yield Leave(session.listener, frozenset(session.subscriptions.values()))
