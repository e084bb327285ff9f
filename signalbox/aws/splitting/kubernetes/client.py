"""The client of one cluster's API server: TLS by the cluster's own CA, time-outs, bounded retries and answers."""

import json
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from socket import socket
from typing import Any
from urllib.parse import urlencode, urlsplit

from urllib3 import PoolManager, Retry, Timeout
from urllib3.exceptions import HTTPError, MaxRetryError

from signalbox.aws.splitting.kubernetes.access import ApiAddress, ClusterAccess
from signalbox.aws.splitting.kubernetes.answers import ClusterCall, answer, is_object
from signalbox.aws.splitting.kubernetes.api import FIELD_MANAGER, ClusterRefused, ClusterUnavailable, PatchKind

# A function that runs for 30 s makes a few calls; a cluster that does not answer is called again by the next run.
TIMEOUT = Timeout(connect=2.0, read=5.0)  # seconds; the second is the longest pause between two packets
RETRIED_STATUSES = (429, 500, 502, 503, 504)
BACKOFF_SECONDS, LONGEST_WAIT_SECONDS = 0.2, 2.0
CALL_SECONDS = 15.0  # of a whole call with its repetitions, for a server that sends a byte now and then
# A list of 500 pods has about 5 MB.
LARGEST_ANSWER_BYTES = 8 << 20
APPLY = "application/apply-patch+yaml"  # JSON is YAML
GET, PATCH = "GET", "PATCH"
USER_AGENT = "signalbox"


class _Retries(Retry):
    """Retries that wait no longer than a function can, whatever `Retry-After` says."""

    def get_retry_after(self, response: Any) -> float | None:  # noqa: ANN401 - urllib3 1 and 2 name it differently
        """Return the seconds of the server's `Retry-After`, within the limit."""
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, LONGEST_WAIT_SECONDS)


# A patch that is not idempotent is sent once: whether the first was executed is unknown.
RETRIES = _Retries(
    total=2,
    connect=1,
    read=1,
    status=2,
    redirect=0,
    other=0,
    allowed_methods={GET, PATCH},
    status_forcelist=RETRIED_STATUSES,
    backoff_factor=BACKOFF_SECONDS,
    raise_on_status=False,
    raise_on_redirect=False,
)
ONCE = _Retries(total=1, connect=1, read=0, status=0, redirect=0, other=0, raise_on_status=False)


class _Trust(ssl.SSLContext):
    """A TLS context for one host; urllib3 1, which some runtimes of Lambda have, gives it no name of an IP address."""

    host: str
    until: float

    def wrap_socket(self, sock: socket, *_: object, **__: object) -> ssl.SSLSocket:
        """Return a connection to the host."""
        return super().wrap_socket(sock, server_hostname=self.host)


class _BoundedSocket(ssl.SSLSocket):
    """A connection that reads until the call of its context is over."""

    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:  # noqa: ANN401 - ssl's
        """Read into a buffer, as `SSLSocket` does."""
        if isinstance(self.context, _Trust) and time.monotonic() >= self.context.until:
            raise TimeoutError("the answer takes too long")
        return super().recv_into(buffer, nbytes, flags)


@dataclass(frozen=True, slots=True)
class _Request:
    """One HTTP request of a call."""

    method: str
    query: Mapping[str, str]
    retries: Retry = RETRIES
    content_type: str = ""
    document: object = None

    @property
    def headers(self) -> dict[str, str]:
        """Return the headers without the token."""
        headers = {"Accept": "application/json", "User-Agent": USER_AGENT}
        return headers | {"Content-Type": self.content_type} if self.content_type else headers

    @property
    def body(self) -> bytes | None:
        """Return the body, if it has one."""
        return json.dumps(self.document).encode() if self.content_type else None


@dataclass(slots=True)
class ClusterClient:
    """`KubernetesApi` of one cluster.

    When the connection fails or the token is refused, both are read anew, and a call is repeated once if they changed.
    """

    cluster: str
    access: ClusterAccess
    timeout: Timeout = TIMEOUT
    _pool: tuple[ApiAddress, PoolManager, _Trust] | None = field(default=None, init=False)

    def get(self, path: str, **query: str) -> Mapping[str, Any] | None:
        """Return an object or a list; None if there is none (404)."""
        call = ClusterCall(self.cluster, "get" if is_object(path) else "list", path)
        status, body = self._send(call, _Request(GET, query))
        return None if status == HTTPStatus.NOT_FOUND else answer(call, status, body, self.access.remedies)

    def apply(self, path: str, document: Mapping[str, Any], *, force: bool = False) -> Mapping[str, Any]:
        """Apply fields on the server, as `FIELD_MANAGER`, and return the object. Raises `FieldConflict`."""
        query = {"fieldManager": FIELD_MANAGER, "force": str(force).lower()}
        return self._patched(path, _Request(PATCH, query, RETRIES, APPLY, document))

    def patch(self, path: str, document: Mapping[str, Any] | list[Any], *, kind: PatchKind) -> Mapping[str, Any]:
        """Patch an object and return it. With `metadata.resourceVersion`, only that version is patched."""
        # Whether a patch without an answer was executed is unknown, and a JSON patch may not be executed twice.
        retries = ONCE if kind is PatchKind.JSON else RETRIES
        return self._patched(path, _Request(PATCH, {"fieldManager": FIELD_MANAGER}, retries, kind.value, document))

    def _patched(self, path: str, request: _Request) -> Mapping[str, Any]:
        call = ClusterCall(self.cluster, "patch", path)
        status, body = self._send(call, request)
        return answer(call, status, body, self.access.remedies)

    def _send(self, call: ClusterCall, request: _Request) -> tuple[int, bytes]:
        status, body = self._over_connection(call, request, self.access.token())
        if status == HTTPStatus.UNAUTHORIZED:
            return self._over_connection(call, request, self.access.token(again=True))
        return status, body

    def _over_connection(self, call: ClusterCall, request: _Request, token: str) -> tuple[int, bytes]:
        connection = self.access.connection()
        try:
            return self._exchange(connection, call, request, token)
        except (ClusterUnavailable, ClusterRefused):
            newest = self.access.connection(again=True)
            if newest == connection:
                raise
        return self._exchange(newest, call, request, token)

    def _exchange(self, connection: ApiAddress, call: ClusterCall, request: _Request, token: str) -> tuple[int, bytes]:
        url = connection.endpoint.rstrip("/") + call.path + (f"?{urlencode(request.query)}" if request.query else "")
        try:
            response = self._pool_of(connection, call).request(
                request.method,
                url,
                body=request.body,
                headers=request.headers | {"Authorization": f"Bearer {token}"},
                retries=request.retries,
                redirect=False,
                preload_content=False,
            )
            try:
                body = response.read(LARGEST_ANSWER_BYTES + 1, decode_content=True)
            finally:
                response.close() if response.length_remaining else response.release_conn()
        except HTTPError as error:
            raise self._without_answer(error, connection, call) from None  # its text repeats this one
        if len(body) > LARGEST_ANSWER_BYTES:
            raise ClusterRefused(f"{call}: the answer has more than {LARGEST_ANSWER_BYTES >> 20} MiB")
        return response.status, body

    def _pool_of(self, connection: ApiAddress, call: ClusterCall) -> PoolManager:
        if self._pool is None or self._pool[0] != connection:
            context = _Trust(ssl.PROTOCOL_TLS_CLIENT)  # verifies the certificate and the host's name
            context.sslsocket_class = _BoundedSocket
            context.host = urlsplit(connection.endpoint).hostname or ""
            try:
                # Not `create_default_context`, which from Python 3.13 on is strict: EKS's own CA has no key identifier
                # (https://github.com/kubernetes-client/python/issues/2394).
                context.load_verify_locations(cadata=connection.ca)
            except (ssl.SSLError, ValueError, TypeError) as error:
                text = f"{call}: the CA is no certificate in PEM: {self.access.remedies.untrusted}"
                raise ClusterRefused(text) from error
            pool = PoolManager(1, ssl_context=context, timeout=self.timeout)
            self._pool = (connection, pool, context)
        self._pool[2].until = time.monotonic() + CALL_SECONDS
        return self._pool[1]

    def _without_answer(
        self, error: HTTPError, connection: ApiAddress, call: ClusterCall
    ) -> ClusterRefused | ClusterUnavailable:
        cause = error.reason if isinstance(error, MaxRetryError) and error.reason else error
        detail = cause.args[0] if cause.args else cause
        if isinstance(detail, ssl.SSLCertVerificationError):
            remedy = self.access.remedies.untrusted
            return ClusterRefused(f"{call}: {connection.endpoint} is not trusted: {detail.verify_message}; {remedy}")
        remedy = self.access.remedies.unreachable
        return ClusterUnavailable(f"{call}: no answer from {connection.endpoint} ({type(cause).__name__}); {remedy}")
