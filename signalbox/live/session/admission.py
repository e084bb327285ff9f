"""The admission of Arvados' clients, which send their token when they connect: it is verified once and not stored."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from signalbox.live.arvados.tokens import StageToken, stage_token
from signalbox.live.session.connection import NOT_FOUND, UNAUTHORIZED, Refusal
from signalbox.live.session.handshake import MAXIMUM_FAILURES
from signalbox.live.session.ports import Accounts, RealmAccess
from signalbox.live.session.state import Account, Dialect, Session
from signalbox.live.wamp.authentication import AuthMethod, Credentials, Identity
from signalbox.live.wamp.messages import SessionId
from signalbox.sarracenia.rights.names import ExchangeName

NO_REALM = Refusal(NOT_FOUND, "no realm of this stage is for Arvados: signalbox exchange declare NAME.fifo --arvados")
WRONG_TOKEN = Refusal(UNAUTHORIZED, "wrong token: expected v2/USER/SECRET with the secret of a user of this stage")


@dataclass(frozen=True, slots=True)
class AdmissionService:
    """Admits new connections to the realm of Arvados' clients; `realm` returns its name, or None."""

    realm: Callable[[], ExchangeName | None]
    accounts: Accounts
    random_id: Callable[[], int]

    def admit(self, session: Session, token: str) -> Session | Refusal:
        """Return the session of a new connection with its identity, or the refusal of its token.

        A right secret is always accepted, whatever wrong ones others have sent in the user's name.
        """
        realm = self.realm()
        if realm is None:
            return NO_REALM
        known = replace(session, dialect=Dialect.ARVADOS, realm=realm, session=SessionId(self.random_id()))
        parsed = stage_token(token)
        return WRONG_TOKEN if parsed is None else self._of_user(known, realm, parsed)

    def _of_user(self, session: Session, realm: ExchangeName, token: StageToken) -> Session | Refusal:
        access = self.accounts.access(realm, token.user, now=session.opened_at)
        if access.live is None or not access.live.arvados:
            return NO_REALM
        account = _verified(token, access)
        if account is None:
            if access.failures < MAXIMUM_FAILURES:
                self.accounts.count_failure(token.user, now=session.opened_at)
            return WRONG_TOKEN
        return replace(session, identity=Identity(account.name, account.role, AuthMethod.TICKET))


def _verified(token: StageToken, access: RealmAccess) -> Account | None:
    """Return the account whose secret a token has; it takes as long for a user that does not exist."""
    credentials = access.account.credentials if access.account else Credentials.decoy(token.user, pepper="")
    return access.account if credentials.accepts_ticket(token.secret) else None
