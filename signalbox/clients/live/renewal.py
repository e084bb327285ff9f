"""The renewal of a session's token in place, without another connection."""

from dataclasses import dataclass
from typing import Self

from signalbox.clients.identity.provider import ProviderUnavailable
from signalbox.clients.identity.tokens import TokenSource, seconds_to_renewal
from signalbox.clients.live.session import ClientSession, refusal
from signalbox.errors import RejectedError
from signalbox.live.wamp import uris
from signalbox.live.wamp.messages import Call, Error, Payload, RequestId

RENEW = "signalbox.session.renew"
RETRY_SECONDS = 10.0


class RenewalRefused(RejectedError):
    """Raised when the router refuses a new token for an open session; the text has the reason."""


@dataclass(slots=True)
class Renewal:
    """When to renew the token of an open session, and the request that does. Times are those of the client's clock.

    `due_at` is None for a token whose end is not readable: its session is opened anew when the router ends it.
    """

    source: TokenSource
    due_at: float | None
    request: RequestId | None = None

    @classmethod
    def of(cls, source: TokenSource, token: str, *, now: float, epoch: float) -> Self:
        """Return the renewal of a session that was joined with a token."""
        return cls(source, _due_at(token, now=now, epoch=epoch))

    def begin(self, session: ClientSession, *, now: float, epoch: float) -> None:
        """If it is time, send a new token. Raises `ConnectionLost` and what the source raises if it is final."""
        if self.due_at is None or now < self.due_at:
            return
        soonest = self.due_at = now + RETRY_SECONDS  # also if no reply arrives
        try:
            token = self.source()
        except ProviderUnavailable:  # the present token is valid for a while
            return
        self.request = session.send_request(lambda request: Call(request, {}, RENEW, Payload((token,))))
        due_at = _due_at(token, now=now, epoch=epoch)
        self.due_at = None if due_at is None else max(due_at, soonest)

    def finish(self, session: ClientSession, *, now: float) -> None:
        """Handle the reply, if it has arrived. Raises `RenewalRefused` if another try would be refused, too."""
        reply = None if self.request is None else session.replies.pop(self.request, None)
        if reply is None:
            return
        self.request = None
        if isinstance(reply, Error):
            if reply.error != uris.UNAVAILABLE:
                raise RenewalRefused(f"the router refuses the renewed token: {refusal(reply)}; sign in again")
            self.due_at = now + RETRY_SECONDS


def _due_at(token: str, *, now: float, epoch: float) -> float | None:
    left = seconds_to_renewal(token, now=epoch)
    return None if left is None else now + left
