"""How sessions begin: HELLO, and AUTHENTICATE where it is asked for."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from signalbox.documents import Problems, Section
from signalbox.live.log.events import rfc3339
from signalbox.live.session.closing import aborted
from signalbox.live.session.effects import Enter, NoteFailure, Post
from signalbox.live.session.state import Account, Circumstances, Outcome, Realm, Session, State
from signalbox.live.wamp import error_uris
from signalbox.live.wamp.authentication import AuthMethod, Credentials, Identity, challenge_text, chosen_method
from signalbox.live.wamp.features import AGENT, ROLES
from signalbox.live.wamp.messages import Authenticate, Challenge, Hello, Welcome
from signalbox.live.wamp.uris import InvalidUri, parse_procedure
from signalbox.sarracenia.rights.permissions import Role

# Of a user, within about a minute. Secrets have more randomness than anybody could try through, whatever the rate.
MAXIMUM_FAILURES = 20
NO_REALM = (
    "there is no such realm: realms are the exchanges declared with 'signalbox exchange declare NAME.fifo --live'"
)
HOW_TO_JOIN = f"join with an authid, and by {AuthMethod.TICKET} or {AuthMethod.WAMPCRA}"


@dataclass(frozen=True, slots=True)
class _Wish:
    """What HELLO's details say of who wants to join."""

    authid: str
    methods: tuple[str, ...]
    features: frozenset[str]
    problems: tuple[str, ...]


def greeted(session: Session, heard: Hello, given: Circumstances) -> Outcome:
    """Decide who may join a realm at once, and who has to show first who it is."""
    try:
        parse_procedure(heard.realm)
    except InvalidUri:
        return aborted(session, error_uris.INVALID_URI, "the realm is not a URI")
    wish = _wish(heard.details)
    if wish.problems:
        return aborted(session, error_uris.PROTOCOL_VIOLATION, "; ".join(wish.problems))
    if given.realm is None:
        return aborted(session, error_uris.NO_SUCH_REALM, NO_REALM)
    named = replace(session, realm=given.realm.name, features=wish.features)
    return _identified(named, wish, given.realm, given)


def _identified(session: Session, wish: _Wish, realm: Realm, given: Circumstances) -> Outcome:
    credentials = _credentials(given.account, realm, authid=wish.authid)
    known = credentials.methods if wish.authid else frozenset()
    anonymous = frozenset({AuthMethod.ANONYMOUS} if realm.anonymous else ())
    method = chosen_method(wish.methods, accepted=known | anonymous)
    if method is None:
        is_nobody = not wish.authid or set(wish.methods) == {AuthMethod.ANONYMOUS}
        reason = error_uris.AUTHENTICATION_REQUIRED if is_nobody else error_uris.NO_MATCHING_AUTH_METHOD
        return aborted(session, reason, HOW_TO_JOIN)
    if method is AuthMethod.ANONYMOUS and realm.anonymous is not None:
        return _joined(session, realm.anonymous, method, given)
    return _challenged(session, credentials, method, wish.authid, given)


def _challenged(
    session: Session, credentials: Credentials, method: AuthMethod, authid: str, given: Circumstances
) -> Outcome:
    role = given.account.role if given.account else Role.SUBSCRIBER
    identity = Identity(authid, role, method)
    waiting = replace(session, state=State.CHALLENGED, session=given.session, identity=identity)
    if method is AuthMethod.TICKET:
        return Outcome(waiting, (Post(Challenge(method.value, {})),))
    challenge = challenge_text(identity, session=given.session, nonce=given.nonce, now=given.now)
    extra = {"challenge": challenge, **credentials.challenge_extra}
    return Outcome(replace(waiting, challenge=challenge), (Post(Challenge(method.value, extra)),))


def authenticated(session: Session, heard: Authenticate, given: Circumstances) -> Outcome:
    """Decide whether a client is who it said it is. Unknown users and wrong secrets are told alike."""
    if given.realm is None or session.identity is None:
        return aborted(session, error_uris.NO_SUCH_REALM, "there is no such realm any more")
    authid = session.identity.authid
    if given.failures >= MAXIMUM_FAILURES:
        return aborted(session, error_uris.AUTHENTICATION_FAILED, "too many wrong secrets: try again in a minute")
    credentials = _credentials(given.account, given.realm, authid=authid)
    is_right = _is_right(heard.signature, credentials, session.identity.method, challenge=session.challenge)
    if given.account is None or not is_right:
        refused = aborted(session, error_uris.AUTHENTICATION_FAILED, "this authid and secret do not go together")
        return replace(refused, effects=(NoteFailure(authid), *refused.effects))
    return _joined(session, given.account, session.identity.method, given)


def _is_right(given_signature: str, credentials: Credentials, method: AuthMethod, *, challenge: str) -> bool:
    if method is AuthMethod.TICKET:
        return credentials.accepts_ticket(given_signature)
    return credentials.accepts_signature(given_signature, challenge=challenge)


def _joined(session: Session, account: Account, method: AuthMethod, given: Circumstances) -> Outcome:
    if not account.rights.are_any:
        return aborted(session, error_uris.NOT_AUTHORIZED, "nothing in this realm is open to this user")
    identity = Identity(account.name, account.role, method)
    session_id = session.session or given.session
    joined = replace(session, state=State.JOINED, session=session_id, identity=identity, challenge="")
    # Ours: what a client that has seen nothing yet asks for when it comes back is what was published since.
    details = {"realm": session.realm, "roles": ROLES, "agent": AGENT, **identity.details, "_at": rfc3339(given.now)}
    entering = [Enter(joined.listener)] if joined.listener else []
    return Outcome(joined, (Post(Welcome(session_id, details)), *entering))


def _wish(details: Mapping[str, object]) -> _Wish:
    problems = Problems()
    section = Section.of(details, "details", problems)
    methods = section.texts("authmethods") or (AuthMethod.ANONYMOUS.value,)
    authid = section.text("authid") or ""
    return _Wish(authid, methods, frozenset(_features(details)), tuple(problems.found))


def _features(details: Mapping[str, object]) -> list[str]:
    """Return what the subscriber's role can; what is not said in the right way is not said."""
    found: object = details
    for name in ("roles", "subscriber", "features"):
        found = found.get(name) if isinstance(found, Mapping) else None
    return [name for name, can in found.items() if can is True] if isinstance(found, Mapping) else []


def _credentials(account: Account | None, realm: Realm, *, authid: str) -> Credentials:
    return account.credentials if account else Credentials.decoy(authid, pepper=realm.pepper)
