"""What WAMP's procedures about sessions answer (advanced profile, «Session Meta API»), and who subscribed to what."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from signalbox.documents import shown
from signalbox.errors import RejectedError
from signalbox.live.log.history_request import InvalidArgument
from signalbox.live.procedures import subscription_meta
from signalbox.live.procedures.subscription_meta import Subscription
from signalbox.live.session.ports import Member, Store
from signalbox.live.session.state import Killed, Session
from signalbox.live.wamp.messages import Payload, SessionId
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.live.wamp.uris import parse_procedure
from signalbox.sarracenia.rights.names import ExchangeName

KILLED = "wamp.close.killed"


class NoSuchSession(RejectedError):
    """Raised when a session is asked for that the realm does not have, or that must not end itself so."""


@dataclass(frozen=True, slots=True)
class Members:
    """The sessions of a realm, as one of them asks for them; `kill` has another one end."""

    store: Store
    realm: ExchangeName
    asking: Session
    kill: Callable[[Member, Killed], None]

    def count(self, payload: Payload) -> Payload:
        """Return how many sessions there are, of all roles or of those that are named."""
        return Payload((len(self._of_roles(payload)),))

    def ids(self, payload: Payload) -> Payload:
        """Return the ids of the sessions."""
        return Payload(([member.listener.session for member in self._of_roles(payload)],))

    def details(self, payload: Payload) -> Payload:
        """Return who a session is. Raises `NoSuchSession`."""
        member = self._member(payload)
        identities = [session.identity for session in self.store.sessions.find_all([member.connection])]
        if not identities or identities[0] is None:
            raise NoSuchSession("there is no such session any more")
        return Payload(({"session": member.listener.session, **identities[0].details},))

    def killed(self, payload: Payload) -> Payload:
        """Have another session end. Raises `NoSuchSession`."""
        member = self._member(payload)
        if member.connection == self.asking.connection:
            raise NoSuchSession("a session cannot end itself so: say GOODBYE")
        reason = _text(payload, "reason") or KILLED
        parse_procedure(reason)  # a URI like any other
        self.kill(member, Killed(reason, _text(payload, "message") or ""))
        return Payload()

    def subscriptions(self, now: datetime) -> list[Subscription]:
        """Return all subscriptions of the realm; since when there are is only told of one (`described`)."""
        sessions: dict[TopicPattern, set[SessionId]] = {}
        members = self.store.roster.every(self.realm)
        found = self.store.sessions.find_all(member.connection for member in members)
        for number, session in [(one.listener.session, one) for one in found if one.listener]:
            for pattern in session.subscriptions.values():
                sessions.setdefault(pattern, set()).add(number)
        return [Subscription(pattern, now, frozenset(found)) for pattern, found in sessions.items()]

    def subscription(self, pattern: TopicPattern) -> list[Subscription]:
        """Return one subscription, if somebody has it."""
        attached = self.store.watchers.attached(self.realm, pattern)
        created = [one.created_at for one in attached]
        return [Subscription(pattern, min(created), frozenset(one.session for one in attached))] if attached else []

    def described(self, payload: Payload, now: datetime) -> list[Subscription]:
        """Return the subscription whose id is asked for, if somebody has it."""
        wanted = payload.arguments[:1]
        found = [one for one in self.subscriptions(now) if (one.pattern.subscription_id,) == wanted]
        return [precise for one in found for precise in self.subscription(one.pattern)]

    def _of_roles(self, payload: Payload) -> list[Member]:
        members = self.store.roster.every(self.realm)
        roles = payload.arguments[0] if payload.arguments else None
        if roles is None:
            return list(members)
        if not isinstance(roles, list) or not all(isinstance(role, str) for role in roles):
            raise InvalidArgument(f"arguments[0]: expected a list of roles, not {shown(roles)}")
        return [member for member in members if member.listener.authrole in roles]

    def _member(self, payload: Payload) -> Member:
        wanted = payload.arguments[0] if payload.arguments else None
        if not isinstance(wanted, int) or isinstance(wanted, bool):
            raise InvalidArgument(f"arguments[0]: expected the id of a session, not {shown(wanted)}")
        found = self.store.roster.find(self.realm, SessionId(wanted))
        if found is None:
            raise NoSuchSession("there is no such session")
        return found


def _text(payload: Payload, name: str) -> str | None:
    value = payload.keywords.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidArgument(f"{name}: expected a text, not {shown(value)}")
    return value


PROCEDURES: Mapping[str, Callable[[Members, Payload], Payload]] = {
    "wamp.session.count": Members.count,
    "wamp.session.list": Members.ids,
    "wamp.session.get": Members.details,
    "wamp.session.kill": Members.killed,
}


def subscriptions_for(procedure: str, payload: Payload, members: Members, *, now: datetime) -> list[Subscription]:
    """Return what a procedure about subscriptions has to know, and where it can be told, no more than that."""
    if procedure == "wamp.subscription.lookup":
        return members.subscription(subscription_meta.wanted(payload))
    if procedure == "wamp.subscription.get":
        return members.described(payload, now)
    return members.subscriptions(now)
