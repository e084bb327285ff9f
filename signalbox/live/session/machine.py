"""The session machine: what a connection may say in which state, and what comes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from signalbox.live.session import closing, handshake, requests
from signalbox.live.session.state import (
    KEPT_FRAMES,
    Circumstances,
    Elapsed,
    Heard,
    Killed,
    Lost,
    Outcome,
    RightsChanged,
    Session,
    State,
)
from signalbox.live.wamp.messages import (
    Abort,
    Authenticate,
    Call,
    Cancel,
    Goodbye,
    Hello,
    Publish,
    Register,
    Subscribe,
    Unregister,
    Unsubscribe,
)

# What is heard is of the type under which a rule stands in the table.
Decision = Callable[[Session, Any, Circumstances], Outcome]


@dataclass(frozen=True, slots=True)
class Rule:
    """What comes of hearing something in a state, and the states that this can lead to."""

    decide: Decision
    leads_to: frozenset[State]


def _rule(decide: Decision, *states: State) -> Rule:
    return Rule(decide, frozenset(states))


# The specification's chart of a session (basic profile, «Sessions»), from the router's side.
RULES: Mapping[State, Mapping[type, Rule]] = MappingProxyType(
    {
        State.OPEN: {
            Hello: _rule(handshake.greeted, State.JOINED, State.CHALLENGED, State.CLOSED),
            Abort: _rule(closing.closed, State.CLOSED),
            Elapsed: _rule(closing.timed_out, State.OPEN, State.CLOSED),
            Killed: _rule(closing.turned_away, State.CLOSED),
            RightsChanged: _rule(closing.ignored, State.OPEN),
            Lost: _rule(closing.lost, State.CLOSED),
        },
        State.CHALLENGED: {
            Authenticate: _rule(handshake.authenticated, State.JOINED, State.CLOSED),
            Abort: _rule(closing.closed, State.CLOSED),
            Elapsed: _rule(closing.timed_out, State.CHALLENGED, State.CLOSED),
            Killed: _rule(closing.turned_away, State.CLOSED),
            RightsChanged: _rule(closing.ignored, State.CHALLENGED),
            Lost: _rule(closing.lost, State.CLOSED),
        },
        State.JOINED: {
            Subscribe: _rule(requests.subscribed, State.JOINED),
            Unsubscribe: _rule(requests.unsubscribed, State.JOINED),
            Publish: _rule(requests.published, State.JOINED),
            Call: _rule(requests.called, State.JOINED),
            Cancel: _rule(closing.ignored, State.JOINED),  # the call's own reply is on its way
            Register: _rule(requests.not_registered, State.JOINED),
            Unregister: _rule(requests.not_unregistered, State.JOINED),
            Goodbye: _rule(closing.left, State.CLOSED),
            Abort: _rule(closing.closed, State.CLOSED),
            Elapsed: _rule(closing.ignored, State.JOINED),
            Killed: _rule(closing.killed, State.CLOSING),
            RightsChanged: _rule(requests.bereft, State.JOINED),
            Lost: _rule(closing.lost, State.CLOSED),
        },
        State.CLOSING: {
            Goodbye: _rule(closing.closed, State.CLOSED),
            Abort: _rule(closing.closed, State.CLOSED),
            Elapsed: _rule(closing.given_up, State.CLOSING, State.CLOSED),
            Lost: _rule(closing.lost, State.CLOSED),
        },
        State.CLOSED: {},
    }
)
VIOLATION = _rule(closing.violated, State.CLOSED)
# Of all that is not in the table: before the end it is a violation, then it is of no interest.
OTHERWISE: Mapping[State, Rule] = MappingProxyType(
    {
        State.OPEN: VIOLATION,
        State.CHALLENGED: VIOLATION,
        State.JOINED: VIOLATION,
        State.CLOSING: _rule(closing.ignored, State.CLOSING),
        State.CLOSED: _rule(closing.ignored, State.CLOSED),
    }
)
WAITING = frozenset({State.OPEN, State.CHALLENGED, State.CLOSING})


def receive(session: Session, heard: Heard, given: Circumstances, *, is_in_a_row: bool = False) -> Outcome:
    """Return the session after something was heard, and what is to be done.

    A frame that comes again changes nothing: the newest has its effects once more, since nobody knows how many of them
    were carried out, and an older one has none, since all of them were. With `is_in_a_row` those of the frame before
    were not carried out yet, and it is as new.
    """
    if given.frame is not None and given.frame in session.frames:
        return Outcome(session, session.pending.get(given.frame, ()))
    outcome = _decided(session, heard, given)
    if given.frame is None:
        return outcome
    frames = (*session.frames, given.frame)[-KEPT_FRAMES:]
    pending = {**(session.pending if is_in_a_row else {}), given.frame: outcome.effects}
    return replace(outcome, session=replace(outcome.session, frames=frames, pending=pending))


def _decided(session: Session, heard: Heard, given: Circumstances) -> Outcome:
    is_late = session.state in WAITING and given.now >= session.deadline and not isinstance(heard, Lost)
    said: Heard = Elapsed() if is_late else heard
    return rule(session.state, said).decide(session, said, given)


def rule(state: State, heard: Heard) -> Rule:
    """Return what the table says of hearing something in a state."""
    return RULES[state].get(type(heard), OTHERWISE[state])
