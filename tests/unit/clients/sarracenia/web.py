"""A web server on loopback, with files, parts, redirections and failures."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import unquote

Answer = bytes | int | str


@dataclass
class Web:
    """What the server has; a status is what it answers instead of a file, a text where it redirects to.

    Of several answers, each is given once, the last for ever.
    """

    files: dict[str, Answer | list[Answer]]
    knows_parts: bool = True
    asked: list[str] = field(default_factory=list)
    url: str = ""


@contextmanager
def serving(files: dict[str, Answer | list[Answer]], *, knows_parts: bool = True) -> Iterator[Web]:
    web = Web(files, knows_parts)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            web.asked.append(self.path)
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
            wanted = self.headers.get("Range")
            if wanted and web.knows_parts:
                start, end = map(int, wanted.removeprefix("bytes=").split("-"))
                found = found[start : end + 1]
            self.send_response(206 if wanted and web.knows_parts else 200)
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
