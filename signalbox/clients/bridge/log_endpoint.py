"""The log endpoint of an Arvados cluster (since 2.7), read with urllib3, which botocore needs as well."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from signalbox.errors import RejectedError
from signalbox.live.bridge.log_reader import LogAbsent, LogsUnavailable

if TYPE_CHECKING:
    import urllib3

CONNECTIONS = 16
CONNECT_SECONDS, READ_SECONDS = 5.0, 15.0
MAXIMUM_LISTING = 200_000  # bytes; a file takes about 750
OK, PARTIAL, LISTED, NOT_SATISFIABLE = 200, 206, 207, 416
UNAUTHORIZED, NOT_FOUND = 401, 404
_RESPONSE = re.compile(r"<D:response>(.*?)</D:response>", re.DOTALL)
_HREF = re.compile(r"<D:href>([^<]*)</D:href>")
_LENGTH = re.compile(r"<D:getcontentlength>(\d{1,15})</D:getcontentlength>")


class TokenRefused(RejectedError):
    """Raised when the cluster refuses the token with which logs are read."""


@dataclass(frozen=True, slots=True)
class LogEndpoint:
    """Implementation of `LogFiles`. `token` is in no error and no log."""

    api: str
    pool: "urllib3.PoolManager"
    token: str

    @classmethod
    def of(cls, api: str, token: str) -> "LogEndpoint":
        """Return the endpoint of a cluster's API."""
        import urllib3  # noqa: PLC0415 - not for commands that do not read logs

        timeout = urllib3.Timeout(connect=CONNECT_SECONDS, read=READ_SECONDS)
        return cls(api.rstrip("/"), urllib3.PoolManager(maxsize=CONNECTIONS, timeout=timeout, retries=False), token)

    def sizes(self, request: str, container: str) -> Mapping[str, int]:
        """Return the sizes of a container's log files by name. Raises `LogAbsent`."""
        status, _, body = self._ask("PROPFIND", request, container, limit=MAXIMUM_LISTING, headers={"Depth": "1"})
        if status != LISTED:
            raise LogsUnavailable(f"the list of a log has status {status}")
        return dict(_files(body.decode("utf-8", "replace")))

    def read(self, request: str, container: str, name: str, *, begin: int, limit: int) -> bytes:
        """Return at most `limit` bytes of a file from a place on."""
        headers = {"Range": f"bytes={begin}-{begin + limit - 1}"}
        status, given, body = self._ask("GET", request, f"{container}/{quote(name)}", limit=limit, headers=headers)
        if status == NOT_SATISFIABLE:  # nothing is behind this place
            return b""
        # An empty file has no range; a whole file or another range would be published again.
        if not (status == PARTIAL and given.startswith(f"bytes {begin}-")) and not (status == OK and not begin):
            raise LogsUnavailable(f"a part of a log has status {status} and the range {given[:80]!r}")
        return body

    def _ask(
        self, method: str, request: str, path: str, *, limit: int, headers: Mapping[str, str]
    ) -> tuple[int, str, bytes]:
        """Return the status, the range and the body of an answer."""
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - as above

        url = f"{self.api}/arvados/v1/container_requests/{request}/log/{path}"
        url += "/" if method == "PROPFIND" else ""
        known = {"Authorization": f"Bearer {self.token}", "Accept-Encoding": "identity"}
        try:
            answer = self.pool.request(method, url, headers={**known, **headers}, preload_content=False, redirect=False)
            try:
                body = answer.read(limit)
            finally:
                # A connection with unread bytes cannot be used again.
                (answer.close if answer.length_remaining else answer.release_conn)()
        except HTTPError as error:
            raise LogsUnavailable(f"the log endpoint does not answer: {type(error).__name__}") from error
        if answer.status == UNAUTHORIZED:
            raise TokenRefused("the cluster refuses the token with which logs are read")
        if answer.status == NOT_FOUND:
            raise LogAbsent("the log does not exist, or the token may not read it")
        return answer.status, answer.headers.get("Content-Range", ""), body


def _files(text: str) -> "list[tuple[str, int]]":
    """Return the names and sizes in a list; folders have no length."""
    found = [(_HREF.search(one), _LENGTH.search(one)) for one in _RESPONSE.findall(text)]
    return [
        (unquote(unescape(href[1])).rpartition("/")[2], int(length[1])) for href, length in found if href and length
    ]
