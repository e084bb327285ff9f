"""`signalbox.session.renew`: a session goes on with a new token of its user."""

from signalbox.live.identity.tokens import TokenIdentity
from signalbox.live.log.events import rfc3339
from signalbox.live.wamp.messages import Payload

RENEW = "signalbox.session.renew"


def renewed(token: TokenIdentity, payload: Payload) -> Payload:
    """Return the expiry of the new token; the session's machine has verified and stored it."""
    del payload
    return Payload((), {"expires_at": rfc3339(token.expires_at)})
