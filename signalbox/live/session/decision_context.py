"""The context of decisions on messages: ids, and what the realm and the user's rights are."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from signalbox.exchange.model.records import LiveSettings
from signalbox.live.arvados.cluster import not_of_cluster
from signalbox.live.arvados.requests import SubscribeRequest
from signalbox.live.identity.compact import is_compact_jwt
from signalbox.live.identity.tokens import TokenIdentity, TokenProblem, TokenRefusal, TokenVerifier
from signalbox.live.model.state import DecisionContext, FrameId, Realm, Received, RightsChanged, Session, SessionState
from signalbox.live.ports import RealmAccess, SessionPorts
from signalbox.live.procedures.session_meta import RENEW
from signalbox.live.rights.settling import RIGHTS_KEPT_SECONDS
from signalbox.live.session.inbox import InboxMessage
from signalbox.live.wamp.authentication import AuthMethod
from signalbox.live.wamp.messages import Authenticate, Call, Hello, PublicationId, Publish, SessionId, Subscribe
from signalbox.live.wamp.patterns import MatchPolicy
from signalbox.sarracenia.rights.names import (
    ExchangeName,
    InvalidExchangeName,
    InvalidUserName,
    UserName,
    parse_exchange_name,
    parse_user_name,
)

# A renewal is stored and posted within this time, or else the message is processed again later.
RENEWAL_MARGIN = timedelta(seconds=5)
ACCESS_KEPT = timedelta(seconds=RIGHTS_KEPT_SECONDS)


@dataclass(slots=True)
class ContextReader:
    """Reads the contexts of one connection's messages; the access of its user is kept as long as rights are."""

    ports: SessionPorts
    tokens: TokenVerifier
    _access: RealmAccess | None = None
    _read_at: datetime | None = None

    def forget(self) -> None:
        """Forget the access of the session's user, so that it is read again."""
        self._access = None

    def read(self, message: InboxMessage, session: Session, *, frame: FrameId, now: datetime) -> DecisionContext:
        """Return the context of a message that was sent at `now`, in a session before it."""
        context = DecisionContext(
            now=now,
            session=SessionId(self.ports.random_id()),
            publication=PublicationId(self.ports.random_id()),
            nonce=self.ports.nonce(),
            size_bytes=message.size_bytes,
            frame=frame,
        )
        if isinstance(message.received, Hello) and session.state is SessionState.OPEN:
            return self._join_context(context, message.received)
        if _adds_pattern(message.received, session):
            context = replace(context, room=self._room(session))
        if session.realm is None or not _depends_on_rights(message.received):
            return context
        access = self.access(session, now)
        if access.live is None:
            return context
        realm = Realm(session.realm, self.ports.pepper)
        token = _token_in(message.received, session, access.live)
        if token is not None:
            return self._token_context(replace(context, realm=realm), session, token, access.live)
        return replace(context, realm=realm, account=access.account, failures=access.failures)

    def _room(self, session: Session) -> int:
        if session.realm is None or session.listener is None:
            return 0
        find = self.ports.subscribers.known.room
        return find(session.realm, session.listener.authid, is_anonymous=session.is_anonymous)

    def _token_context(
        self, context: DecisionContext, session: Session, text: str, live: LiveSettings
    ) -> DecisionContext:
        """Return the context of a token: the result of its verification, and the account of its user."""
        # Not the time of the message: the writer of the outbox must read the new token before the old one is over.
        if session.token is not None and session.token.is_over(self.ports.now() + RENEWAL_MARGIN):
            return replace(context, token=TokenRefusal(TokenProblem.LATE))
        verified = not_of_cluster(self.tokens.verify(text, live.issuers), live)
        if isinstance(verified, TokenRefusal) or session.realm is None:
            return replace(context, token=verified)
        user = UserName(verified.authid)
        ended_at = self.ports.store.accounts.tokens_ended_at(session.realm, user)
        if ended_at is not None and (verified.issued_at is None or verified.issued_at < ended_at):
            return replace(context, token=TokenRefusal(TokenProblem.ENDED))
        access = self._find_access(session.realm, user, context.now, verified.identity)
        self.forget()  # the renewal may still be refused
        return replace(context, token=verified, account=access.account)

    def _join_context(self, context: DecisionContext, hello: Hello) -> DecisionContext:
        name = _exchange_name(hello.realm)
        if name is None:
            return context
        access = self._find_access(name, _user_name(hello.details.get("authid")), context.now)
        if access.live is None:
            return context
        anonymous = access.live.anonymous if _may_be_anonymous(hello) else None
        account = self._find_access(name, anonymous, context.now, is_anonymous=True).account if anonymous else None
        realm = Realm(name, self.ports.pepper, account, has_issuers=bool(access.live.issuers))
        return replace(context, realm=realm, account=access.account)

    def access(self, session: Session, now: datetime) -> RealmAccess:
        """Return the access of the session's user, which is at most as old as rights may be."""
        if self._access is None or self._read_at is None or self.ports.now() - self._read_at >= ACCESS_KEPT:
            self._read_at = self.ports.now()
            name = session.identity.authid if session.identity else None
            user = _user_name(name) if session.token is None or name is None else UserName(name)
            found = (
                RealmAccess(None, None)
                if session.realm is None
                else self._find_access(session.realm, user, now, session.token, is_anonymous=session.is_anonymous)
            )
            credentials = found.account.credentials if found.account else None
            is_admitted = found.live is not None and session.is_admitted(found.live, credentials)
            self._access = found if is_admitted else replace(found, account=None)
        return self._access

    def _find_access(
        self,
        realm: ExchangeName,
        user: UserName | None,
        now: datetime,
        token: TokenIdentity | None = None,
        *,
        is_anonymous: bool = False,
    ) -> RealmAccess:
        return self.ports.store.accounts.access(realm, user, now=now, token=token, is_anonymous=is_anonymous)


def _token_in(received: Received, session: Session, live: LiveSettings) -> str | None:
    """Return the token of a message that a realm's issuers are asked about, or None."""
    if isinstance(received, Authenticate):
        return received.signature if live.issuers and is_compact_jwt(received.signature) else None
    if not isinstance(received, Call) or received.procedure != RENEW or session.token is None:
        return None
    argument = received.payload.arguments[0] if received.payload.arguments else None
    return argument if isinstance(argument, str) else None


def _adds_pattern(received: Received, session: Session) -> bool:
    if isinstance(received, SubscribeRequest):
        return not session.log_subscriptions
    return isinstance(received, Subscribe) and received.options.get("match") not in (None, MatchPolicy.EXACT.value)


def _depends_on_rights(received: Received) -> bool:
    return isinstance(received, Authenticate | Subscribe | Publish | Call | RightsChanged)


def _may_be_anonymous(hello: Hello) -> bool:
    methods = hello.details.get("authmethods")
    return not isinstance(methods, list) or not methods or AuthMethod.ANONYMOUS.value in methods


def _exchange_name(text: str) -> ExchangeName | None:
    try:
        return parse_exchange_name(text)
    except InvalidExchangeName:
        return None


def _user_name(text: object) -> UserName | None:
    try:
        return parse_user_name(text) if isinstance(text, str) else None
    except InvalidUserName:
        return None
