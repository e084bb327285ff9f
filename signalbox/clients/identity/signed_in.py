"""A signed-in user: gives a fresh token at any time, by refresh token or by another sign-in."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from signalbox.clients.identity.device import DeviceCode, sign_in
from signalbox.clients.identity.provider import ErrorAnswer, Provider, ProviderUnavailable, SignInRefused
from signalbox.clients.identity.sign_ins import SignIn, SignIns
from signalbox.clients.identity.tokens import TokenRequest, seconds_to_renewal


@dataclass(slots=True)
class SignedIn:
    """A source of tokens: the first one may need the user, who is shown a code; later ones do not.

    `token` raises `SignInRefused` when the user must sign in again and has been signed in before in this process.
    """

    asked: TokenRequest
    sign_ins: SignIns
    show: Callable[[DeviceCode], object]
    sleep: Callable[[float], object] = time.sleep
    now: Callable[[], float] = time.time
    _token: str | None = None
    _provider: Provider | None = field(default=None, repr=False)

    def token(self) -> str:
        """Return a token that is not about to end.

        Raises `SignInRefused`, `ProviderUnavailable` and `InvalidProvider`.
        """
        if self._token is None:
            self._token = self._renewed() or self._new()
        elif (seconds_to_renewal(self._token, now=self.now()) or 0) <= 0:
            renewed = self._renewed()
            if renewed is None:
                raise SignInRefused("the sign-in has ended: run the command again to sign in")
            self._token = renewed
        return self._token

    def _renewed(self) -> str | None:
        """Return a token by the stored refresh token; None if there is none or the provider does not accept it."""
        with self.sign_ins.locked():
            refresh_token = self.sign_ins.find(self.asked)
            if refresh_token is None:
                return None
            grant = {"grant_type": "refresh_token", "refresh_token": refresh_token, **self.asked.fields}
            del grant["scope"]  # that of the sign-in (RFC 6749, 6)
            answer = self._endpoint().request("token_endpoint", grant)
            if not isinstance(answer, ErrorAnswer):
                return self._kept(answer)
            if answer.code != "invalid_grant":
                raise SignInRefused(f"{self.asked.issuer} renews no token: {answer.description or answer.code}")
            self.sign_ins.remove(self.asked)  # it has expired, was revoked, or its user has gone
            return None

    def _new(self) -> str:
        answer = sign_in(self._endpoint(), self.asked, self.show, sleep=self.sleep)
        with self.sign_ins.locked():
            return self._kept(answer)

    def _kept(self, answer: dict[str, Any]) -> str:
        """Store the refresh token of an answer, if it has one, and return the token."""
        refresh_token = answer.get("refresh_token")
        if isinstance(refresh_token, str):
            self.sign_ins.put(self.asked, refresh_token)
        return self.asked.token_of(answer)

    def _endpoint(self) -> Provider:
        if self._provider is None:
            self._provider = Provider.discover(self.asked.issuer)
        return self._provider


def sign_out(sign_ins: SignIns, signed_in: SignIn) -> bool:
    """Forget a sign-in, and revoke its refresh token (RFC 7009); return whether the provider has confirmed that."""
    with sign_ins.locked():
        sign_ins.remove(signed_in.asked)
    fields = {"token": signed_in.refresh_token, "token_type_hint": "refresh_token"}
    try:
        provider = Provider.discover(signed_in.asked.issuer)
        if "revocation_endpoint" not in provider.endpoints:
            return False
        answer = provider.request("revocation_endpoint", {**fields, "client_id": signed_in.asked.client_id})
    except ProviderUnavailable:
        return False
    return not isinstance(answer, ErrorAnswer)
