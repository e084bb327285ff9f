"""The start of sessions: HELLO, and AUTHENTICATE if the client is challenged."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from signalbox.documents import Problems, Section
from signalbox.live.identity.tokens import TokenProblem, TokenRefusal, VerifiedToken
from signalbox.live.log.events import rfc3339
from signalbox.live.model.effects import CountFailure, Enter, Post
from signalbox.live.model.state import Account, DecisionContext, Outcome, Realm, Session, SessionState, token_deadline
from signalbox.live.procedures.table import FEATURES
from signalbox.live.session.closing import aborted
from signalbox.live.wamp import uris
from signalbox.live.wamp.authentication import (
    PROVIDER,
    AuthMethod,
    Identity,
    StoredSecret,
    challenge_text,
    chosen_method,
)
from signalbox.live.wamp.features import AGENT, roles
from signalbox.live.wamp.messages import Authenticate, Challenge, Hello, Welcome
from signalbox.live.wamp.uris import InvalidUri, parse_procedure

# Of a user, within about a minute: further ones are not counted, so that a storm does not write to one item.
MAXIMUM_FAILURES = 20
NO_REALM = (
    "there is no such realm: realms are the exchanges declared with 'signalbox exchange declare NAME.fifo --live'"
)
WRONG = {
    AuthMethod.TICKET: "wrong name or ticket",
    AuthMethod.WAMPCRA: "wrong authid or secret, or a secret without wampcra",
}
TOO_OFTEN = f", more than {MAXIMUM_FAILURES} times within a minute: correct it, or try again later"
# Also for users without a secret and for unknown ones: the answer to HELLO must not reveal which users exist.
BY_SECRET = frozenset({AuthMethod.TICKET, AuthMethod.WAMPCRA})
# Of a HELLO, which a stranger may send: these texts are in the record that each frame of the session writes.
MAXIMUM_AUTHID, MAXIMUM_FEATURES, MAXIMUM_FEATURE = 255, 30, 50
HOW_TO_JOIN = f"join with a name (authid), and by {AuthMethod.TICKET} or {AuthMethod.WAMPCRA}"


@dataclass(frozen=True, slots=True)
class _JoinRequest:
    """The details of HELLO that identify the client."""

    authid: str
    methods: tuple[str, ...]
    features: frozenset[str]
    problems: tuple[str, ...]


def greeted(session: Session, received: Hello, context: DecisionContext) -> Outcome:
    """Join a client to a realm, challenge it, or abort the session."""
    try:
        parse_procedure(received.realm)
    except InvalidUri:
        return aborted(session, uris.INVALID_URI, "the realm is not a URI")
    request = _join_request(received.details)
    if request.problems:
        return aborted(session, uris.PROTOCOL_VIOLATION, "; ".join(request.problems))
    if context.realm is None:
        return aborted(session, uris.NO_SUCH_REALM, NO_REALM)
    named = replace(session, realm=context.realm.name, features=request.features)
    return _identified(named, request, context.realm, context)


def _identified(session: Session, request: _JoinRequest, realm: Realm, context: DecisionContext) -> Outcome:
    # A token names its user itself.
    of_tokens = frozenset({AuthMethod.TICKET} if realm.has_issuers else ())
    known = BY_SECRET if request.authid else of_tokens
    anonymous = frozenset({AuthMethod.ANONYMOUS} if realm.anonymous else ())
    method = chosen_method(request.methods, accepted=known | anonymous)
    if method is None:
        is_anonymous = not request.authid or set(request.methods) == {AuthMethod.ANONYMOUS}
        reason = uris.AUTHENTICATION_REQUIRED if is_anonymous else uris.NO_MATCHING_AUTH_METHOD
        return aborted(session, reason, HOW_TO_JOIN)
    if method is AuthMethod.ANONYMOUS and realm.anonymous is not None:
        return _joined(session, realm.anonymous, method, context)
    credentials = _credentials(context.account, realm, authid=request.authid)
    return _challenged(session, credentials, Identity(request.authid, "", method), context)


def _challenged(session: Session, credentials: StoredSecret, identity: Identity, context: DecisionContext) -> Outcome:
    waiting = replace(session, state=SessionState.CHALLENGED, session=context.session, identity=identity)
    method = identity.method
    if method is AuthMethod.TICKET:
        return Outcome(waiting, (Post(Challenge(method.value, {})),))
    challenge = challenge_text(identity, session=context.session, nonce=context.nonce, now=context.now)
    extra = {"challenge": challenge, **credentials.challenge_extra}
    return Outcome(replace(waiting, challenge=challenge), (Post(Challenge(method.value, extra)),))


def authenticated(session: Session, received: Authenticate, context: DecisionContext) -> Outcome:
    """Join a client with the right signature, or abort the session; unknown users and wrong secrets get one answer.

    The right signature is always accepted. Secrets are too random to be guessed at any rate, and refusing a user after
    some wrong ones would let any stranger lock the user out.
    """
    if context.realm is None or session.identity is None:
        return aborted(session, uris.NO_SUCH_REALM, "there is no such realm any more")
    authid, method = session.identity.authid, session.identity.method
    if context.token is not None and method is AuthMethod.TICKET:
        return _authenticated_by_token(session, session.identity, context.token, context)
    credentials = _credentials(context.account, context.realm, authid=authid)
    is_right = _is_right(received.signature, credentials, method, challenge=session.challenge)
    if context.account is None or not is_right:
        is_often = context.failures >= MAXIMUM_FAILURES
        refused = aborted(session, uris.AUTHENTICATION_FAILED, WRONG[method] + (TOO_OFTEN if is_often else ""))
        return replace(refused, effects=(CountFailure(authid), *refused.effects))
    return _joined(session, context.account, method, context)


def _authenticated_by_token(
    session: Session, requested: Identity, token: VerifiedToken | TokenRefusal, context: DecisionContext
) -> Outcome:
    if isinstance(token, VerifiedToken) and context.account is not None and requested.authid in ("", token.authid):
        ends = replace(session, token=token.identity, deadline=token_deadline(token.identity, now=context.now))
        return _joined(ends, context.account, requested.method, context, provider=token.provider)
    problem = token.problem if isinstance(token, TokenRefusal) else TokenProblem.AUTHID
    if isinstance(token, VerifiedToken) and context.account is None:
        problem = TokenProblem.STAGE_USER
    # Not counted against a name: every client can send wrong tokens for any.
    refused = aborted(session, token_error(problem), problem.text)
    return replace(refused, effects=(refused_token(problem), *refused.effects))


def _is_right(given_signature: str, credentials: StoredSecret, method: AuthMethod, *, challenge: str) -> bool:
    if method is AuthMethod.TICKET:
        return credentials.accepts_ticket(given_signature)
    return credentials.accepts_signature(given_signature, challenge=challenge)


def _joined(
    session: Session, account: Account, method: AuthMethod, context: DecisionContext, *, provider: str = PROVIDER
) -> Outcome:
    if not account.rights.are_any:
        return aborted(session, uris.NOT_AUTHORIZED, "this user has no rights in this realm")
    identity = Identity(account.name, account.role, method, provider)
    session_id = session.session or context.session
    secret = account.credentials.digest if method in BY_SECRET and session.token is None else ""
    joined = replace(
        session, state=SessionState.JOINED, session=session_id, identity=identity, challenge="", secret=secret
    )
    # `_at` is an extension: a client that reconnects before its first event requests the events since then.
    stage = {"realm": session.realm, "roles": roles(FEATURES), "agent": AGENT}
    details = {**stage, **identity.details, "_at": rfc3339(context.now)}
    entering = [Enter(joined.listener)] if joined.listener else []
    return Outcome(joined, (Post(Welcome(session_id, details)), *entering))


def token_error(problem: TokenProblem) -> str:
    """Return the error URI for a refused token."""
    is_temporary = problem is TokenProblem.UNAVAILABLE
    return uris.UNAVAILABLE if is_temporary else uris.AUTHENTICATION_FAILED


def refused_token(problem: TokenProblem) -> CountFailure:
    """Return the effect that records a refused token, without its claims."""
    return CountFailure("", f"token: {problem.word}")


def _join_request(details: Mapping[str, object]) -> _JoinRequest:
    problems = Problems()
    section = Section.of(details, "details", problems)
    methods = section.texts("authmethods") or (AuthMethod.ANONYMOUS.value,)
    authid = section.text("authid") or ""
    if len(authid) > MAXIMUM_AUTHID:
        section.problem("authid", f"{len(authid)} characters; at most {MAXIMUM_AUTHID} are allowed")
    return _JoinRequest(authid, methods, frozenset(_features(details)), tuple(problems.found))


def _features(details: Mapping[str, object]) -> list[str]:
    """Return the announced subscriber features; malformed announcements are ignored."""
    found: object = details
    for name in ("roles", "subscriber", "features"):
        found = found.get(name) if isinstance(found, Mapping) else None
    names = found.items() if isinstance(found, Mapping) else ()
    return [name for name, can in names if can is True and len(name) <= MAXIMUM_FEATURE][:MAXIMUM_FEATURES]


def _credentials(account: Account | None, realm: Realm, *, authid: str) -> StoredSecret:
    return account.credentials if account else StoredSecret.decoy(authid, pepper=realm.pepper)
