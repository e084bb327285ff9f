"""How sessions end: by GOODBYE, by ABORT, or because the connection is gone."""

from collections.abc import Iterator
from dataclasses import replace

from signalbox.live.session.effects import Close, Effect, Leave, Post
from signalbox.live.session.state import (
    JOIN_TIMEOUT,
    Circumstances,
    Elapsed,
    Killed,
    Lost,
    Outcome,
    Session,
    State,
    moved,
)
from signalbox.live.wamp import error_uris
from signalbox.live.wamp.codec import MalformedFrame
from signalbox.live.wamp.messages import Abort, Goodbye, Message


def aborted(session: Session, reason: str, message: str) -> Outcome:
    """End a session at once, and the connection with it."""
    return _ended(session, Post(Abort({"message": message}, reason)), Close())


def violated(session: Session, heard: Message | MalformedFrame, given: Circumstances) -> Outcome:
    """End a session whose client says what it must not (basic profile, «Protocol Errors»)."""
    del given
    said = (
        heard.problem
        if isinstance(heard, MalformedFrame)
        else f"received {_name(heard)} message in state {session.state}"
    )
    return aborted(session, error_uris.PROTOCOL_VIOLATION, said)


def left(session: Session, heard: Goodbye, given: Circumstances) -> Outcome:
    """Let a client go that said GOODBYE: say so, too, and close, since a connection has one session."""
    del heard, given
    return _ended(session, Post(Goodbye({}, error_uris.GOODBYE_AND_OUT)), Close())


def closed(session: Session, heard: Abort | Goodbye, given: Circumstances) -> Outcome:
    """Close the connection of a client that has aborted, or answered our GOODBYE; it gets no reply."""
    del heard, given
    return _ended(session, Close())


def lost(session: Session, heard: Lost, given: Circumstances) -> Outcome:
    """End a session whose connection is gone; its outbox is, too, when all that is in it was tried."""
    del heard, given
    return _ended(session, Close())


def killed(session: Session, heard: Killed, given: Circumstances) -> Outcome:
    """Say GOODBYE to a session that somebody wants to end. Clients do not come back after that by themselves."""
    goodbye = Post(Goodbye({"message": heard.message}, heard.reason))
    ending = replace(_without_subscriptions(session), state=State.CLOSING, deadline=given.now + JOIN_TIMEOUT)
    return Outcome(ending, (*_leaving(session), goodbye))


def turned_away(session: Session, heard: Killed, given: Circumstances) -> Outcome:
    """Abort a session that somebody wants to end before it has begun."""
    del given
    return aborted(session, heard.reason, heard.message)


def timed_out(session: Session, heard: Elapsed, given: Circumstances) -> Outcome:
    """End a session that has not joined in time."""
    del heard
    if given.now < session.deadline:
        return Outcome(session)
    return aborted(session, error_uris.TIMEOUT, f"not joined within {JOIN_TIMEOUT.total_seconds():g} s")


def given_up(session: Session, heard: Elapsed, given: Circumstances) -> Outcome:
    """Close the connection of a client that does not answer our GOODBYE."""
    del heard
    return Outcome(session) if given.now < session.deadline else _ended(session, Close())


def ignored(session: Session, heard: object, given: Circumstances) -> Outcome:
    """Do nothing."""
    del heard, given
    return Outcome(session)


def _ended(session: Session, *effects: Effect) -> Outcome:
    return moved(_without_subscriptions(session), State.CLOSED, *_leaving(session), *effects)


def _without_subscriptions(session: Session) -> Session:
    return replace(session, subscriptions={})


def _leaving(session: Session) -> Iterator[Leave]:
    if session.listener is not None:
        yield Leave(session.listener, frozenset(session.subscriptions.values()))


def _name(message: Message) -> str:
    return type(message).__name__.upper()
