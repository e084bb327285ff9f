"""The answers of Arvados' log endpoint (3.2.1), as measured with its own controller, keep-web and crunch-run."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from threading import RLock
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

CORS = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Content-Range"}
PREFLIGHT = {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Headers": "Authorization, Content-Type, Range, Depth, Destination, If, Lock-Token, "
    "Overwrite, Timeout, Cache-Control",
    "Access-Control-Max-Age": "86400",
}
METHODS = ("GET", "HEAD", "OPTIONS", "PROPFIND")
PATH = re.compile(r"/arvados/v1/container_requests/([a-z0-9-]{27})/log(?:/([a-z0-9-]{27})(?:/([^/?]*))?)?/?")
RANGE = re.compile(r"bytes=(\d*)-(\d*)")
NO_OVERLAP = b"invalid range: failed to overlap\n"
TUNNEL_DOWN = b'{"errors":["container is running but tunnel is down"]}'


class State(Enum):
    """The state of a container, as far as the endpoint's answers depend on it."""

    QUEUED = "Queued"
    LOCKED = "Locked"
    RUNNING = "Running"
    GONE = "running, its node is lost"
    COMPLETE = "Complete"
    CANCELLED = "Cancelled"
    TRASHED = "Complete, its log is trashed"


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP response."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(slots=True)
class ContainerLog:
    """The log of a container: what crunch-run holds in memory, and what the last save put into Keep.

    With `has_tunnel`, each request that reaches crunch-run adds a line to crunch-run.txt.
    """

    request: str
    container: str
    state: State = State.QUEUED
    files: dict[str, bytes] = field(default_factory=dict)
    saved: dict[str, bytes] = field(default_factory=dict)
    has_tunnel: bool = False
    tunnels: int = 0

    @property
    def is_live(self) -> bool:
        return self.state in (State.RUNNING, State.GONE)

    def write(self, name: str, text: bytes) -> None:
        """Append to a file, which appears with its first bytes."""
        self.files[name] = self.files.get(name, b"") + text

    def save(self) -> None:
        """Save the files to Keep, as crunch-run does before Running, each half hour and at the end."""
        self.saved = dict(self.files)

    def end(self, state: State = State.COMPLETE) -> None:
        """Save, and end in a state."""
        self.save()
        self.state = state

    def lose_node(self) -> None:
        """Lose crunch-run and what it has not saved."""
        self.state, self.files = State.GONE, {}

    def visible(self) -> Mapping[str, bytes]:
        return self.files if self.is_live else self.saved


@dataclass(slots=True)
class LogEndpoint:
    """The endpoint of a cluster; `tokens` maps each token to the requests that it may read, or to None for all."""

    tokens: dict[str, frozenset[str] | None]
    logs: dict[str, ContainerLog] = field(default_factory=dict)
    has_keep_web: bool = True
    records: Callable[[str, str], Answer | None] = lambda *_: None
    requests: Counter[str] = field(default_factory=Counter)
    bytes_sent: Counter[str] = field(default_factory=Counter)
    per_container: Counter[str] = field(default_factory=Counter)
    lock: RLock = field(default_factory=RLock)

    def add(self, log: ContainerLog) -> ContainerLog:
        """Add a container's log."""
        self.logs[log.container] = log
        return log

    def answer(self, method: str, path: str, headers: Mapping[str, str]) -> Answer:
        """Return the answer to a request; names of headers are in lower case."""
        with self.lock:
            self.requests[method] += 1
            record = self.records(method, path) if _token(headers) in self.tokens else None
            answer = record or self._answered(method, path, headers)
            self.bytes_sent[method] += len(answer.body)
            return answer

    def _answered(self, method: str, path: str, headers: Mapping[str, str]) -> Answer:
        if method not in METHODS:
            return Answer(405, CORS)
        found = PATH.fullmatch(path.partition("?")[0])
        if found is None:
            return Answer(404, CORS, b'{"errors":["API endpoint not found"]}')
        if method == "OPTIONS":
            return Answer(200, PREFLIGHT)
        request, container, name = found.groups()
        if (token := _token(headers)) not in self.tokens:
            return Answer(401, {**CORS, "WWW-Authenticate": 'Basic realm="collections"'})
        readable = self.tokens[token]
        log = self._log(request, container)
        if log is None or (readable is not None and request not in readable):
            return Answer(404, CORS, b'{"errors":["//railsapi.internal/arvados/v1/container_requests: 404 Not Found"]}')
        self.per_container[log.container] += 1
        answer = self._of_log(log, method, container, unquote(name or ""), headers)
        return Answer(answer.status, {**CORS, **answer.headers}, answer.body if method != "HEAD" else b"")

    def _log(self, request: str, container: str | None) -> ContainerLog | None:
        of_request = [one for one in self.logs.values() if one.request == request]
        return next((one for one in reversed(of_request) if container in (None, one.container)), None)

    def _of_log(  # noqa: PLR0911 - one answer for each state
        self, log: ContainerLog, method: str, container: str | None, name: str, headers: Mapping[str, str]
    ) -> Answer:
        if log.state in (State.QUEUED, State.LOCKED):
            if container is not None:
                return Answer(404)
            return Answer(207, {}, _listing(log, {})) if method == "PROPFIND" else Answer(405)
        if log.is_live and container is not None:
            return self._of_crunch_run(log, method, name, headers)
        if not self.has_keep_web:
            return Answer(502)
        if log.state is State.TRASHED:
            return Answer(404)
        if not name:
            return Answer(207, {}, _listing(log, log.saved)) if method == "PROPFIND" else _index(log)
        return _file(log, name, method, headers)

    def _of_crunch_run(self, log: ContainerLog, method: str, name: str, headers: Mapping[str, str]) -> Answer:
        if log.state is State.GONE:
            return Answer(503, {"Content-Type": "application/json"}, TUNNEL_DOWN)
        if method == "HEAD" or (not name and method == "GET"):
            return Answer(405)
        answer = _file(log, name, method, headers) if name else Answer(207, {}, _listing(log, log.files))
        if log.has_tunnel:
            log.tunnels += 1
            log.write("crunch-run.txt", line(f"tunnel connection {log.tunnels}: read: connection reset by peer"))
        return answer


def line(text: str, at: datetime | None = None) -> bytes:
    """Return a line of a log with its time, RFC 3339 with nine digits."""
    return f"{at or datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%f}000Z {text}\n".encode()


def _token(headers: Mapping[str, str]) -> str:
    kind, _, token = headers.get("authorization", "").partition(" ")
    return token if kind in ("Bearer", "OAuth2") else ""


def _file(log: ContainerLog, name: str, method: str, headers: Mapping[str, str]) -> Answer:
    content = log.visible().get(name)
    if content is None:
        return Answer(404)
    etag = f'"{0 if log.is_live else 1:x}{len(content):x}"'
    known = {"Accept-Ranges": "bytes", "Content-Type": "text/plain; charset=utf-8", "ETag": etag}
    if method == "PROPFIND":
        return Answer(207, {}, _listing(log, {name: content}))
    if headers.get("if-none-match") == etag:
        return Answer(304, known)
    return _ranged(content, headers.get("range"), known)


def _ranged(content: bytes, given: str | None, known: Mapping[str, str]) -> Answer:
    size, found = len(content), RANGE.fullmatch(given or "")
    if given is None or (given == "bytes=0-" and not content):
        return Answer(200, known, content)
    if "," in given:
        return Answer(206, {**known, "Content-Type": "multipart/byteranges; boundary=x"}, content)
    if found is None or not any(found.groups()):
        return Answer(416, {"Content-Type": "text/plain; charset=utf-8"}, b"invalid range\n")
    first, last = found.groups()
    begin = int(first) if first else max(size - int(last), 0)
    end = min(int(last) if first and last else size - 1, size - 1)
    if first and begin >= size:
        return Answer(416, {"Content-Range": f"bytes */{size}"}, NO_OVERLAP)
    return Answer(206, {**known, "Content-Range": f"bytes {begin}-{end}/{size}"}, content[begin : end + 1])


def _index(log: ContainerLog) -> Answer:
    return Answer(200, {"Content-Type": "text/html"}, "".join(f"<a>{name}</a>" for name in log.saved).encode())


def _listing(log: ContainerLog, files: Mapping[str, bytes]) -> bytes:
    base = f"/arvados/v1/container_requests/{log.request}/log/{log.container}/"
    parts = "".join(_responses(base, files))
    return f'<?xml version="1.0" encoding="UTF-8"?><D:multistatus xmlns:D="DAV:">{parts}</D:multistatus>'.encode()


def _responses(base: str, files: Mapping[str, bytes]) -> Iterator[str]:
    collection = '<D:resourcetype><D:collection xmlns:D="DAV:"/></D:resourcetype>'
    yield _response(base, f"{collection}<D:displayname></D:displayname>")
    for name, content in files.items():
        yield _response(
            base + quote(name),
            f"<D:resourcetype></D:resourcetype><D:displayname>{escape(name)}</D:displayname>"
            f"<D:getcontentlength>{len(content)}</D:getcontentlength>"
            "<D:getlastmodified>Thu, 26 Nov 2026 04:00:00 GMT</D:getlastmodified>"
            f'<D:getetag>"{len(content):x}"</D:getetag>{LOCKS}',
        )


# Go's WebDAV library lists the locks that a file supports: 750 bytes for each file.
LOCKS = (
    '<D:supportedlock><D:lockentry xmlns:D="DAV:"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/>'
    "</D:locktype></D:lockentry></D:supportedlock><D:getcontenttype>text/plain; charset=utf-8</D:getcontenttype>"
)


def _response(href: str, properties: str) -> str:
    return (
        f"<D:response><D:href>{href}</D:href><D:propstat><D:prop>{properties}</D:prop>"
        "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
    )
