"""Sign-in on another device: the device authorization grant (RFC 8628)."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from signalbox.clients.identity.provider import (
    ErrorAnswer,
    InvalidProvider,
    Provider,
    ProviderUnavailable,
    SignInRefused,
)
from signalbox.clients.identity.tokens import TokenRequest

GRANT = "urn:ietf:params:oauth:grant-type:device_code"
INTERVAL_SECONDS = 5.0  # of RFC 8628, 3.2, if the provider names none; also what `slow_down` adds, 3.5
REFUSALS = {
    "access_denied": "the sign-in was refused at the provider: start again, and approve it there",
    "expired_token": "the code has expired: start again, and approve it sooner",
}


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a user needs to sign in on another device."""

    url: str
    user_code: str
    complete_url: str | None
    expires_in_seconds: float


def sign_in(
    provider: Provider,
    asked: TokenRequest,
    show: Callable[[DeviceCode], object],
    *,
    sleep: Callable[[float], object] = time.sleep,
) -> dict[str, Any]:
    """Show a code to the user, and return the answer of the token endpoint once the user has approved it.

    Raises `SignInRefused`, `ProviderUnavailable` and `InvalidProvider`.
    """
    started = provider.request("device_authorization_endpoint", asked.fields)
    if isinstance(started, ErrorAnswer):
        raise SignInRefused(f"{provider.issuer} issues no device code: {started.description or started.code}")
    try:
        code = DeviceCode(
            str(started["verification_uri"]),
            str(started["user_code"]),
            started.get("verification_uri_complete"),
            float(started["expires_in"]),
        )
        interval = float(started.get("interval", INTERVAL_SECONDS))
        grant = {"grant_type": GRANT, "device_code": str(started["device_code"]), "client_id": asked.client_id}
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidProvider(f"{provider.issuer} sends a device code without {error}") from error
    show(code)
    left = code.expires_in_seconds
    while left > 0:
        sleep(interval)
        left -= interval
        answer = _poll(provider, grant)
        if isinstance(answer, dict):
            return answer
        interval = _next_interval(answer, interval)
    raise SignInRefused(REFUSALS["expired_token"])


def _poll(provider: Provider, grant: dict[str, str]) -> dict[str, Any] | ErrorAnswer | None:
    """Return the answer of the token endpoint, or None if it could not be reached."""
    try:
        return provider.request("token_endpoint", grant)
    except ProviderUnavailable:
        return None


def _next_interval(answer: ErrorAnswer | None, interval: float) -> float:
    """Return the pause before the next poll (RFC 8628, 3.5). Raises `SignInRefused` for a final answer."""
    if answer is None:
        return interval * 2
    if answer.code == "authorization_pending":
        return interval
    if answer.code == "slow_down":
        return interval + INTERVAL_SECONDS
    raise SignInRefused(REFUSALS.get(answer.code) or f"the sign-in failed: {answer.description or answer.code}")
