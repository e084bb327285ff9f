"""A web server on loopback with files, ranges, redirections and failures."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

Response = bytes | int | str


@dataclass
class Web:
    """The server's responses by path: a file's content, an error status, or the target of a redirection.

    The responses of a list are returned one after the other; the last one is repeated.
    """

    files: dict[str, Response | list[Response]]
    supports_ranges: bool = True
    requested: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(files: dict[str, Response | list[Response]], *, supports_ranges: bool = True) -> Iterator[Web]:
    web = Web(files, supports_ranges)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            web.requested.append(self.path)
            found = web.files.get(unquote(self.path)[1:], 404)
            if isinstance(found, list):
                found = found.pop(0) if len(found) > 1 else found[0]
            if isinstance(found, bytes):
                self._file(found)
                return
            self.send_response(found if isinstance(found, int) else 302)
            if isinstance(found, str):
                self.send_header("Location", found)
            self.end_headers()

        def _file(self, found: bytes):
            byte_range = self.headers.get("Range")
            if byte_range and web.supports_ranges:
                start, end = map(int, byte_range.removeprefix("bytes=").split("-"))
                found = found[start : end + 1]
            self.send_response(206 if byte_range and web.supports_ranges else 200)
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    web.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield web
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
