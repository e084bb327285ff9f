"""Sample offers and a simulated proxy for tests, measurements and the demo, without WebRTC."""

import base64
import hashlib
import json
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Protocol

from signalbox.errors import UnavailableError
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.proxy import PollResponse, ProxyAnswer, ProxyPoll, answer_body, poll_body
from signalbox.rendezvous.wire.sdp import sdp_of

# Reserved for documentation by RFC 5737 (3849 for IPv6).
CLIENT_ADDRESS = "192.0.2.10"
PROXY_ADDRESS = "198.51.100.7"
RELAY_PATTERN = "snowflake.torproject.net$"

REQUEST_SECONDS = 30.0  # the response timeout of upstream's proxy (proxy/lib/snowflake.go)
WAIT_SECONDS, WAIT_TRIES = 0.2, 300
READ_LIMIT_BYTES = 100_000

_SDP = """\
v=0
o=- {session} 1742392234 IN IP4 0.0.0.0
s=-
t=0 0
a=msid-semantic:WMS *
a=fingerprint:sha-256 {fingerprint}
a=extmap-allow-mixed
a=group:BUNDLE 0
m=application 9 UDP/DTLS/SCTP webrtc-datachannel
c=IN IP4 0.0.0.0
a=setup:{setup}
a=mid:0
a=sendrecv
a=sctp-port:5000
a=max-message-size:1073741823
a=ice-ufrag:{ufrag}
a=ice-pwd:{password}
a=candidate:3769337065 1 udp 2130706431 {address} {port} typ host ufrag {ufrag}
a=candidate:3769337065 2 udp 2130706430 {address} {port} typ host ufrag {ufrag}
a=candidate:2139127655 1 udp 2130706175 2001:db8::10 {port} typ host ufrag {ufrag}
a=candidate:842163049 1 udp 1694498815 {address} {port} typ srflx raddr 0.0.0.0 rport {port} ufrag {ufrag}
a=candidate:842163049 2 udp 1694498814 {address} {port} typ srflx raddr 0.0.0.0 rport {port} ufrag {ufrag}
a=end-of-candidates
"""


def sample_offer(seed: str, *, address: str = CLIENT_ADDRESS) -> str:
    """Return a client's session description, which is a function of `seed`; its `offer_body` has about 1.25 kB."""
    return _description("offer", seed, setup="actpass", address=address)


def sample_answer(offer: str, *, address: str = PROXY_ADDRESS) -> str:
    """Return the session description of the answer of the proxy at `address` to this offer.

    Raises `InvalidMessage` if the offer is invalid.
    """
    sdp_of(offer)
    return _description("answer", offer, setup="active", address=address)


def _description(kind: str, seed: str, *, setup: str, address: str) -> str:
    digest = hashlib.sha256(seed.encode()).digest()
    sdp = _SDP.format(
        session=int.from_bytes(digest[:8], "big") >> 1,
        fingerprint=digest.hex(":").upper(),
        setup=setup,
        ufrag=digest[:8].hex(),
        password=digest[8:24].hex(),
        address=address,
        port=49152 + int.from_bytes(digest[24:26], "big") % 16384,  # RFC 6335: the dynamic ports
    )
    return json.dumps({"type": kind, "sdp": sdp.replace("\n", "\r\n")}, separators=(",", ":"))


class BrokerUnreachableError(UnavailableError):
    """Raised when the broker does not respond in time, or with a status other than 200."""


class HttpPost(Protocol):
    """A function that sends one HTTP POST."""

    def __call__(self, url: str, body: bytes, *, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
        """Return the body of a response with status 200. Raises `BrokerUnreachableError`."""


def post(url: str, body: bytes, *, headers: Mapping[str, str], timeout_seconds: float) -> bytes:
    """Send a POST with the content type of upstream's browser proxy and return the body of the response."""
    headers = {"Content-Type": "text/plain;charset=UTF-8", **headers}
    return _read(urllib.request.Request(url, data=body, headers=headers, method="POST"), timeout_seconds)  # noqa: S310 (the caller's own URL)


def available_proxies(base_url: str) -> int:
    """Return the number of proxies on the broker's page /debug."""
    page = _read(urllib.request.Request(f"{base_url.rstrip('/')}/debug"), REQUEST_SECONDS).decode()  # noqa: S310 (as above)
    return int(page.splitlines()[0].rpartition(" ")[2])


def wait_for_proxy(base_url: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Wait until the broker knows a proxy; without a recent poll an offer is denied at once.

    Raises `BrokerUnreachableError` when it knows none after a minute.
    """
    for _ in range(WAIT_TRIES):
        if available_proxies(base_url):
            return
        sleep(WAIT_SECONDS)
    raise BrokerUnreachableError(f"the broker at {base_url} knows no proxy")


def _read(request: urllib.request.Request, timeout_seconds: float) -> bytes:
    try:
        with urllib.request.urlopen(request, timeout=timeout_seconds) as response:  # noqa: S310 (as above)
            if response.status == HTTPStatus.OK:
                return bytes(response.read(READ_LIMIT_BYTES))
            raise BrokerUnreachableError(f"{_name(request)} returned status {response.status}; expected 200")
    except OSError as error:  # includes urllib's errors: refused, closed, timed out, or a status of 400 and more
        raise BrokerUnreachableError(f"{_name(request)} failed: {error}") from error


def _name(request: urllib.request.Request) -> str:
    return f"{request.get_method()} {request.full_url}"


def new_session_id() -> str:
    """Return a proxy's session id: 16 random bytes in base64 without padding."""
    return base64.b64encode(secrets.token_bytes(16)).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class ServeResult:
    """The result of one poll; `accepted` is the broker's response to the answer, or None if no answer was sent."""

    sid: str
    response: PollResponse
    accepted: bool | None = None


@dataclass(frozen=True, slots=True)
class ProxySimulator:
    """A simulated proxy that polls the broker at `base_url`, the URL before `proxy` and `answer`.

    `relay_pattern` None simulates a proxy without relay patterns; a silent one receives an offer and never answers.
    `comes_from` is the address in its X-Forwarded-For header, `address` the one in its session descriptions.
    """

    base_url: str
    nat: Nat = Nat.UNRESTRICTED
    proxy_type: str = "standalone"
    relay_pattern: str | None = RELAY_PATTERN
    is_silent: bool = False
    address: str = PROXY_ADDRESS
    comes_from: str | None = None
    post: HttpPost = post
    sleep: Callable[[float], None] = time.sleep
    new_session_id: Callable[[], str] = new_session_id

    def serve_once(self) -> ServeResult:
        """Poll once and, if there is a client, answer its offer unless silent.

        Raises `BrokerUnreachableError`, or `InvalidMessage` for an invalid response.
        """
        sid = self.new_session_id()
        response = self.poll_once(sid)
        if self.is_silent or not response.is_match:
            return ServeResult(sid, response)
        return ServeResult(sid, response, accepted=self.answer(sid, offer=response.offer))

    def serve(self) -> ServeResult:
        """Poll again and again, for a minute or until there is a client, and return the result of the last poll.

        A real proxy waits for longer between its polls, as the broker demands.
        """
        served = self.serve_once()
        for _ in range(WAIT_TRIES):
            if served.response.is_match:
                break
            self.sleep(WAIT_SECONDS)
            served = self.serve_once()
        return served

    def poll_once(self, sid: str) -> PollResponse:
        """Send one poll and return the response."""
        poll = ProxyPoll(sid, self.proxy_type, self.nat, clients=0, relay_pattern=self.relay_pattern)
        return PollResponse.parse(self._post("proxy", poll_body(poll)))

    def answer(self, sid: str, *, offer: str) -> bool:
        """Send the answer to an offer; return whether its client still waits."""
        body = answer_body(ProxyAnswer(sid=sid, answer=sample_answer(offer, address=self.address)))
        return bool(json.loads(self._post("answer", body)) == {"Status": "success"})

    def _post(self, path: str, body: str) -> bytes:
        headers = {"X-Forwarded-For": self.comes_from} if self.comes_from else {}
        url = f"{self.base_url.rstrip('/')}/{path}"
        return self.post(url, body.encode(), headers=headers, timeout_seconds=REQUEST_SECONDS)
