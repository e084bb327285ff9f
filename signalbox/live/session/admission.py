"""The admission of Arvados' clients, which send their token when they connect: it is verified once and not stored."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime

from signalbox.live.arvados.cluster import ClusterUsers, is_cluster_token, not_of_cluster, verified_user
from signalbox.live.arvados.tokens import StageToken, stage_token
from signalbox.live.identity.compact import is_compact_jwt
from signalbox.live.identity.tokens import TokenProblem, TokenRefusal, TokenVerifier, VerifiedToken
from signalbox.live.model.state import Account, Dialect, Session
from signalbox.live.ports import Accounts, RealmAccess
from signalbox.live.session.connection import NOT_FOUND, UNAUTHORIZED, UNAVAILABLE, Refusal
from signalbox.live.session.handshake import MAXIMUM_FAILURES
from signalbox.live.wamp.authentication import AuthMethod, Identity, StoredSecret
from signalbox.live.wamp.messages import SessionId
from signalbox.sarracenia.rights.names import ExchangeName, UserName

NO_REALM = Refusal(
    NOT_FOUND, "no realm of this stage is for Arvados: signalbox exchange declare NAME.fifo --arvados", "no realm"
)
WRONG_TOKEN = Refusal(
    UNAUTHORIZED, "wrong token: expected v2/USER/SECRET of a user of the stage, or a JWT of one of the realm's issuers"
)
AWAY = (TokenProblem.UNAVAILABLE, TokenProblem.CLUSTER_AWAY)


@dataclass(frozen=True, slots=True)
class AdmissionService:
    """Admits new connections to the realm of Arvados' clients; `realm` returns its name, or None."""

    realm: Callable[[], ExchangeName | None]
    accounts: Accounts
    tokens: TokenVerifier
    cluster: ClusterUsers
    random_id: Callable[[], int]

    def admit(self, session: Session, token: str) -> Session | Refusal:
        """Return the session of a new connection with its identity, or the refusal of its token.

        A right token is always accepted, whatever wrong ones others have sent in the user's name.
        """
        realm = self.realm()
        if realm is None:
            return NO_REALM
        known = replace(session, dialect=Dialect.ARVADOS, realm=realm, session=SessionId(self.random_id()))
        live = self.accounts.access(realm, None, now=session.opened_at).live
        if live is None or not live.arvados:
            return NO_REALM
        if live.arvados_api and is_cluster_token(token):
            return self._of_verified_user(known, realm, self._cluster_user(live.arvados_api, token, session.opened_at))
        parsed = stage_token(token)
        if parsed is not None:
            return self._of_stage_user(known, realm, parsed)
        if not is_compact_jwt(token):
            return WRONG_TOKEN
        return self._of_verified_user(known, realm, not_of_cluster(self.tokens.verify(token, live.issuers), live))

    def _cluster_user(self, api: str, token: str, now: datetime) -> VerifiedToken | TokenRefusal:
        found = self.cluster.find(api, token)
        return TokenRefusal(found) if isinstance(found, TokenProblem) else verified_user(found, api=api, now=now)

    def _of_stage_user(self, session: Session, realm: ExchangeName, token: StageToken) -> Session | Refusal:
        access = self.accounts.access(realm, token.user, now=session.opened_at)
        account = _verified(token, access)
        if account is not None:
            identity = Identity(account.name, account.role, AuthMethod.TICKET)
            return replace(session, identity=identity, secret=account.credentials.digest)
        if access.failures < MAXIMUM_FAILURES:
            self.accounts.count_failure(token.user, now=session.opened_at)
        return WRONG_TOKEN

    def _of_verified_user(
        self, session: Session, realm: ExchangeName, verified: VerifiedToken | TokenRefusal
    ) -> Session | Refusal:
        if isinstance(verified, TokenRefusal):
            return _refusal(verified.problem)
        user = UserName(verified.authid)
        if self._is_ended(realm, user, verified):
            return _refusal(TokenProblem.ENDED)
        account = self.accounts.access(realm, user, now=session.opened_at, token=verified.identity).account
        if account is None:
            return _refusal(TokenProblem.STAGE_USER)
        identity = Identity(account.name, account.role, AuthMethod.TICKET, verified.provider)
        return replace(session, identity=identity, token=verified.identity)

    def _is_ended(self, realm: ExchangeName, user: UserName, token: VerifiedToken) -> bool:
        """Return whether a session of the user was ended by an administrator after the token was issued."""
        ended_at = self.accounts.tokens_ended_at(realm, user)
        return ended_at is not None and (token.issued_at is None or token.issued_at < ended_at)


def _verified(token: StageToken, access: RealmAccess) -> Account | None:
    """Return the account whose secret a token has; it takes as long for a user that does not exist."""
    credentials = access.account.credentials if access.account else StoredSecret.decoy(token.user, pepper="")
    return access.account if credentials.accepts_ticket(token.secret) else None


def _refusal(problem: TokenProblem) -> Refusal:
    status = UNAVAILABLE if problem in AWAY else UNAUTHORIZED
    return Refusal(status, problem.text, f"token: {problem.word}")
