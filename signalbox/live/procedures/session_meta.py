"""The `wamp.session.*` procedures (WAMP advanced profile, «Session Meta API»)."""

from signalbox.documents import shown
from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.events import rfc3339
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.model.state import KILLED, Killed
from signalbox.live.ports import Member
from signalbox.live.procedures.calls import CallContext, NoSuchSession
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.uris import parse_procedure
from signalbox.sarracenia.rights.names import UserName

MAXIMUM_MESSAGE = 500  # characters of a killed session's GOODBYE


def count(context: CallContext, payload: Payload) -> Payload:
    """Return the number of sessions in the realm, of all roles or of the roles in the first argument."""
    return Payload((len(_members(context, payload)),))


def list_ids(context: CallContext, payload: Payload) -> Payload:
    """Return the ids of the sessions in the realm, of all roles or of the roles in the first argument."""
    return Payload(([member.listener.session for member in _members(context, payload)],))


def get(context: CallContext, payload: Payload) -> Payload:
    """Return the details of a session. Raises `NoSuchSession`."""
    member = _member(context, payload)
    identities = [session.identity for session in context.ports.store.sessions.find_all([member.connection])]
    if not identities or identities[0] is None:
        raise NoSuchSession("there is no such session any more")
    return Payload(({"session": member.listener.session, **identities[0].details},))


def kill(context: CallContext, payload: Payload) -> Payload:
    """End another session, with the keywords `reason` and `message`. Raises `NoSuchSession`.

    The client must not join again with the token that it has, even if it closes the connection before the signal.
    """
    member = _member(context, payload)
    if member.connection == context.session.connection:
        raise NoSuchSession("a session cannot kill itself: send GOODBYE")
    reason = _text(payload, "reason") or KILLED
    parse_procedure(reason)  # a URI like any other
    killed = Killed(reason, (_text(payload, "message") or "")[:MAXIMUM_MESSAGE])
    user, accounts = UserName(member.listener.authid), context.ports.store.accounts
    accounts.end_tokens(context.realm, user, now=context.cause.at)
    request = f"{context.cause.frame}:{context.call.request}"
    context.ports.store.sessions.kill(member.connection, killed)  # now, whatever waits in the inbox
    context.ports.inbox.notify(member.connection, killed, request=request)
    return Payload()


def _members(context: CallContext, payload: Payload) -> list[Member]:
    members = context.members()
    roles = payload.arguments[0] if payload.arguments else None
    if roles is None:
        return list(members)
    if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
        raise InvalidArgument(f"arguments[0]: expected a list of roles, not {shown(roles)}")
    return [member for member in members if member.listener.authrole in roles]


def _member(context: CallContext, payload: Payload) -> Member:
    session = payload.arguments[0] if payload.arguments else None
    if not isinstance(session, int) or isinstance(session, bool):
        raise InvalidArgument(f"arguments[0]: expected the id of a session, not {shown(session)}")
    found = context.ports.store.realm_sessions.find(context.realm, SessionId(session))
    if found is None:
        raise NoSuchSession("there is no such session")
    return found


def _text(payload: Payload, name: str) -> str | None:
    value = payload.keywords.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgument(f"{name}: expected a text, not {shown(value)}")
    return value and value.encode(errors="replace").decode()  # DynamoDB refuses a lone surrogate


RENEW = "signalbox.session.renew"


def renewed(token: TokenIdentity, payload: Payload) -> Payload:
    """Return the expiry of the new token; the session's machine has verified and stored it."""
    del payload
    return Payload((), {"expires_at": rfc3339(token.expires_at)})
