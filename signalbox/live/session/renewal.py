"""The renewal of a session's token in place, by a call of `signalbox.session.renew`."""

from dataclasses import replace

from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.model.effects import Post
from signalbox.live.model.state import DecisionContext, Outcome, RightsChanged, Session, token_deadline
from signalbox.live.procedures.session_meta import RENEW
from signalbox.live.procedures.table import RENEWAL
from signalbox.live.session import requests
from signalbox.live.session.closing import ended_with_goodbye
from signalbox.live.session.handshake import refused_token, token_error
from signalbox.live.wamp import uris
from signalbox.live.wamp.codec import TYPE_CODES
from signalbox.live.wamp.messages import Call, Error, Payload, Result


def called(session: Session, received: Call, context: DecisionContext) -> Outcome:
    """Answer a call by the table of procedures; the renewal of a token is decided here: it changes the session."""
    decide = renewed if received.procedure == RENEW else requests.called
    return decide(session, received, context)


def renewed(session: Session, received: Call, context: DecisionContext) -> Outcome:
    """Continue a session with a new token of its user, or refuse it: the session then lasts until its old one ends.

    Groups of the new token apply at once: subscriptions without rights end. A new role ends the session, since others
    know it by its role.
    """
    token = session.token
    if token is None:
        return _refused(session, received, uris.NOT_AUTHORIZED, "this session has not joined with a token")
    if context.token is None:
        return _refused(session, received, uris.INVALID_ARGUMENT, "arguments[0]: expected the new token, a text")
    new = _accepted(session, token, context.token, context)
    if isinstance(new, TokenProblem):
        refused = _refused(session, received, token_error(new), new.text)
        return replace(refused, effects=(refused_token(new), *refused.effects))
    if new.role is not token.role:
        message = "the role of the user has changed: join again"
        return ended_with_goodbye(session, uris.ROLE_CHANGED, message, context)
    deadline = min(session.deadline, token_deadline(new, now=context.now))
    continued = requests.rights_revoked(replace(session, token=new, deadline=deadline), RightsChanged(), context)
    result = Result(received.request, {}, RENEWAL.answer(new, received.payload))
    return replace(continued, effects=(*continued.effects, Post(result)))


def _accepted(
    session: Session, token: TokenIdentity, verified: VerifiedToken | TokenRefusal, context: DecisionContext
) -> TokenIdentity | TokenProblem:
    """Return the identity of a new token, which must be the same user's of the same issuer, or why it is refused."""
    if isinstance(verified, TokenRefusal):
        return verified.problem
    is_same = session.identity is not None and verified.authid == session.identity.authid
    if not is_same or verified.identity.issuer != token.issuer:
        return TokenProblem.AUTHID
    return verified.identity if context.account is not None else TokenProblem.STAGE_USER


def _refused(session: Session, received: Call, error: str, message: str) -> Outcome:
    answer = Error(TYPE_CODES[Call], received.request, {}, error, Payload((message,)))
    return Outcome(session, (Post(answer),))
