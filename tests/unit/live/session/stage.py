"""A realm with users, and a connection to it, for tests of the session machine."""

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from signalbox.live.model.effects import Effect, Post
from signalbox.live.model.state import Account, ConnectionId, DecisionContext, Outcome, Realm, Received, Session, opened
from signalbox.live.rights.grants import Grant, Rights
from signalbox.live.session.machine import receive
from signalbox.live.wamp.authentication import StoredSecret
from signalbox.live.wamp.messages import Hello, Message, PublicationId, SessionId
from signalbox.live.wamp.patterns import MatchPolicy, TopicPattern
from signalbox.sarracenia.rights.names import ExchangeName, UserName
from signalbox.sarracenia.rights.permissions import Ownership, Right, Role

NOW = datetime(2026, 11, 21, 20, 0, tzinfo=UTC)
REALM = ExchangeName("xs_arvados.fifo")
SESSION = SessionId(9129137332)
PUBLICATION = PublicationId(4429313566)
SECRET = "secret!!!"


def account(name: str, role: Role, *grants: Grant, with_key: bool = True) -> Account:
    rights = Rights.in_realm(REALM, user=UserName(name), role=role, ownership=Ownership.STRICT, grants=grants)
    credentials = StoredSecret.of(SECRET, salt="salt", with_key=with_key)
    return Account(UserName(name), role, credentials, rights)


def open_to(prefix: str, *rights: Right) -> tuple[Grant, ...]:
    return tuple(
        Grant(right, TopicPattern.parse(prefix, MatchPolicy.PREFIX)) for right in rights or (Right.READ, Right.WRITE)
    )


ADMIN = account("root", Role.ADMIN)
JOE = account("joe", Role.SUBSCRIBER, *open_to("open."))
WITHOUT_RIGHTS = account("nobody", Role.SUBSCRIBER)
ANONYMOUS = account("anonymous", Role.SUBSCRIBER, *open_to("open.", Right.READ))
CLOSED_REALM = Realm(REALM, pepper="pepper")
OPEN_REALM = replace(CLOSED_REALM, anonymous=ANONYMOUS)
ROLES = {"subscriber": {"features": {"subscription_revocation": True}}, "publisher": {}}
HELLO = Hello("xs_arvados.fifo", {"roles": ROLES})


@dataclass(slots=True)
class Connection:
    """A connection with its session, and the context of its next decision."""

    session: Session = field(default_factory=lambda: opened(ConnectionId("c"), now=NOW))
    context: DecisionContext = field(
        default_factory=lambda: DecisionContext(NOW, SESSION, PUBLICATION, "nonce", OPEN_REALM, account=JOE)
    )

    def receive(self, received: Received) -> Outcome:
        outcome = receive(self.session, received, self.context)
        self.session = outcome.session
        return outcome

    def replies(self, received: Received) -> list[Message]:
        return posted(self.receive(received).effects)

    def wait(self, seconds: float) -> None:
        self.context = replace(self.context, now=self.context.now + timedelta(seconds=seconds))


def joined(user: Account = JOE, *, user_agent: str = "") -> Connection:
    """Return a connection whose user has joined without a secret."""
    connection = Connection(session=opened(ConnectionId("c"), now=NOW, user_agent=user_agent))
    connection.context = replace(connection.context, realm=replace(CLOSED_REALM, anonymous=user), account=user)
    connection.receive(HELLO)
    return connection


def posted(effects: tuple[Effect, ...]) -> list[Message]:
    return [effect.message for effect in effects if isinstance(effect, Post)]
