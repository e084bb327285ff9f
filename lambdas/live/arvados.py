"""The part of `$connect` for Arvados' clients; other connections do not load it."""

import secrets
from functools import cache

from lambdas.live import wiring
from lambdas.shared import instance
from signalbox.aws.exchange.exchanges import DynamoExchanges
from signalbox.aws.live.accounts import DynamoAccounts
from signalbox.aws.live.arvados_cluster import ArvadosUsers
from signalbox.aws.live.issuers import IssuerKeys
from signalbox.aws.live.json_documents import JsonDocuments
from signalbox.aws.live.tokens import JwtVerifier
from signalbox.live.model.events import Cause, refused
from signalbox.live.model.state import Admitted, FrameId, Session
from signalbox.live.session.admission import AdmissionService
from signalbox.live.session.connection import Refusal
from signalbox.live.wamp.codec import MAXIMUM_ID


def admitted(session: Session, token: str, *, request: str) -> Refusal | None:
    """Open the session of a client with the right token, or record and return its refusal."""
    known = _admissions().admit(session, token)
    if isinstance(known, Refusal):
        instance.record([refused(session, Cause(FrameId(request), session.opened_at), known.problem)])
        return known
    wiring.sessions().open(known)
    wiring.inbox().notify(session.connection, Admitted(), request=request)
    return None


@cache
def _admissions() -> AdmissionService:
    exchanges = instance.table("EXCHANGE_TABLE")
    documents = JsonDocuments(instance.is_local(), instance.seconds_left)
    return AdmissionService(
        realm=DynamoExchanges(exchanges).arvados_realm,
        # No challenge is sent, so the salt of an unknown user is not seen and needs no secret.
        accounts=DynamoAccounts(wiring.table(), exchanges, pepper=""),
        tokens=JwtVerifier(IssuerKeys(documents)),
        cluster=ArvadosUsers(documents),
        random_id=lambda: secrets.randbelow(MAXIMUM_ID) + 1,
    )
