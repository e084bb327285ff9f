"""The state machine of sessions: which message or signal is allowed in which state, and its rule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from signalbox.live.arvados.requests import BadRequest, SubscribeRequest, UnsubscribeRequest
from signalbox.live.model.state import (
    KEPT_FRAMES,
    KILLED,
    NOT_ADMITTED,
    Admitted,
    DecisionContext,
    Dialect,
    Elapsed,
    Killed,
    Lost,
    Outcome,
    PastRefused,
    Received,
    RightsChanged,
    Session,
    SessionState,
    whole,
)
from signalbox.live.session import arvados, closing, handshake, renewal, requests
from signalbox.live.wamp import messages

# The second parameter has the type under which the table lists the rule.
Decision = Callable[[Session, Any, DecisionContext], Outcome]


@dataclass(frozen=True, slots=True)
class Rule:
    """The decision for a message or signal in a state, and the states that it can lead to."""

    decide: Decision
    leads_to: frozenset[SessionState]


def _rule(decide: Decision, *states: SessionState) -> Rule:
    return Rule(decide, frozenset(states))


# The specification's chart of a session (basic profile, «Sessions»), from the router's side.
RULES: Mapping[SessionState, Mapping[type, Rule]] = MappingProxyType(
    {
        SessionState.OPEN: {
            messages.Hello: _rule(handshake.greeted, SessionState.JOINED, SessionState.CHALLENGED, SessionState.CLOSED),
            messages.Abort: _rule(closing.closed, SessionState.CLOSED),
            Elapsed: _rule(closing.join_timed_out, SessionState.OPEN, SessionState.CLOSED),
            Killed: _rule(closing.killed_before_join, SessionState.CLOSED),
            RightsChanged: _rule(closing.ignored, SessionState.OPEN),
            Lost: _rule(closing.closed, SessionState.CLOSED),
        },
        SessionState.CHALLENGED: {
            messages.Authenticate: _rule(handshake.authenticated, SessionState.JOINED, SessionState.CLOSED),
            messages.Abort: _rule(closing.closed, SessionState.CLOSED),
            Elapsed: _rule(closing.join_timed_out, SessionState.CHALLENGED, SessionState.CLOSED),
            Killed: _rule(closing.killed_before_join, SessionState.CLOSED),
            RightsChanged: _rule(closing.ignored, SessionState.CHALLENGED),
            Lost: _rule(closing.closed, SessionState.CLOSED),
        },
        SessionState.JOINED: {
            messages.Subscribe: _rule(requests.subscribed, SessionState.JOINED),
            messages.Unsubscribe: _rule(requests.unsubscribed, SessionState.JOINED),
            messages.Publish: _rule(requests.published, SessionState.JOINED),
            messages.Call: _rule(renewal.called, SessionState.JOINED, SessionState.CLOSING),
            messages.Cancel: _rule(closing.ignored, SessionState.JOINED),  # the call is answered soon
            messages.Register: _rule(requests.not_registered, SessionState.JOINED),
            messages.Unregister: _rule(requests.not_unregistered, SessionState.JOINED),
            messages.Goodbye: _rule(closing.left, SessionState.CLOSED),
            messages.Abort: _rule(closing.closed, SessionState.CLOSED),
            Elapsed: _rule(closing.token_elapsed, SessionState.JOINED, SessionState.CLOSING),
            Killed: _rule(closing.killed, SessionState.CLOSING),
            RightsChanged: _rule(requests.rights_revoked, SessionState.JOINED),
            PastRefused: _rule(requests.past_refused, SessionState.JOINED, SessionState.CLOSING),
            Lost: _rule(closing.closed, SessionState.CLOSED),
        },
        SessionState.CLOSING: {
            messages.Goodbye: _rule(closing.closed, SessionState.CLOSED),
            messages.Abort: _rule(closing.closed, SessionState.CLOSED),
            Elapsed: _rule(closing.goodbye_timed_out, SessionState.CLOSING, SessionState.CLOSED),
            Lost: _rule(closing.closed, SessionState.CLOSED),
        },
        SessionState.CLOSED: {},
    }
)
# Of sessions in Arvados' dialect, which has no messages for the start and the end of a session.
ARVADOS_RULES: Mapping[SessionState, Mapping[type, Rule]] = MappingProxyType(
    {
        SessionState.OPEN: {
            Admitted: _rule(arvados.admitted, SessionState.JOINED),
            Killed: _rule(closing.closed, SessionState.CLOSED),
            Lost: _rule(closing.closed, SessionState.CLOSED),
        },
        SessionState.JOINED: {
            SubscribeRequest: _rule(arvados.subscribed, SessionState.JOINED),
            UnsubscribeRequest: _rule(arvados.unsubscribed, SessionState.JOINED),
            BadRequest: _rule(arvados.bad_request, SessionState.JOINED),
            Elapsed: _rule(arvados.kept_alive, SessionState.JOINED, SessionState.CLOSED),
            Killed: _rule(closing.closed, SessionState.CLOSED),
            Lost: _rule(closing.closed, SessionState.CLOSED),
        },
    }
)
VIOLATION = _rule(closing.violated, SessionState.CLOSED)
# The rule for everything else: a protocol violation before the end of the session, ignored after it.
OTHERWISE: Mapping[SessionState, Rule] = MappingProxyType(
    {
        SessionState.OPEN: VIOLATION,
        SessionState.CHALLENGED: VIOLATION,
        SessionState.JOINED: VIOLATION,
        SessionState.CLOSING: _rule(closing.ignored, SessionState.CLOSING),
        SessionState.CLOSED: _rule(closing.ignored, SessionState.CLOSED),
    }
)
WAITING = frozenset({SessionState.OPEN, SessionState.CHALLENGED, SessionState.CLOSING})


def receive(session: Session, received: Received, context: DecisionContext, *, is_in_batch: bool = False) -> Outcome:
    """Return the session after a message or signal, and the effects to execute.

    A frame that is received again changes nothing: the newest frame returns its effects again, since an unknown number
    of them was executed, and an older frame returns none, since all of them were. With `is_in_batch` the effects of the
    frame before were not executed yet and are kept, too. The messages of one frame are decided together.
    """
    if context.frame is not None and whole(context.frame) in session.frames:
        return Outcome(session, session.pending.get(context.frame, ()))
    outcome = _decided(session, received, context)
    if context.frame is None:
        return outcome
    is_complete = context.frame == whole(context.frame)
    frames = (*session.frames, context.frame)[-KEPT_FRAMES:] if is_complete else session.frames
    pending = {**(session.pending if is_in_batch else {}), context.frame: outcome.effects}
    return replace(outcome, session=replace(outcome.session, frames=frames, pending=pending))


def _decided(session: Session, received: Received, context: DecisionContext) -> Outcome:
    is_waiting = session.state in WAITING and session.dialect is Dialect.WAMP
    is_late = _is_token_over(session, received, context) or (
        is_waiting and context.now >= session.deadline and not isinstance(received, Lost)
    )
    is_refused = session.state is SessionState.JOINED and context.is_refused
    effective: Received = Elapsed() if is_late else Killed(KILLED, NOT_ADMITTED) if is_refused else received
    return _rule_of(session, effective).decide(session, effective, context)


def _rule_of(session: Session, received: Received) -> Rule:
    if session.dialect is Dialect.WAMP:
        return rule(session.state, received)
    # Rights are checked for each event, so their change ends nothing.
    return ARVADOS_RULES.get(session.state, {}).get(type(received), _rule(closing.ignored, session.state))


def _is_token_over(session: Session, received: Received, context: DecisionContext) -> bool:
    """Return whether the token of a joined session is over, so that it must end unless the message ends it."""
    if session.state is not SessionState.JOINED or session.token is None:
        return False
    return session.token.is_over(context.now) and not isinstance(
        received, Lost | Killed | messages.Goodbye | messages.Abort
    )


def rule(state: SessionState, received: Received) -> Rule:
    """Return the rule for a message or signal in a state of a WAMP session."""
    return RULES[state].get(type(received), OTHERWISE[state])
