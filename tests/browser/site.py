"""The page on loopback as its function serves it, with its policy, for a router in memory."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from lambdas.live import page
from signalbox.exchange.model.issuers import Issuer
from signalbox.live.admin import pages


@contextmanager
def serving(websocket_url: str, *realms: str, issuers: Sequence[Issuer] = ()) -> Iterator[str]:
    """Serve the page's files, with issuers of all realms; return its address."""
    of_realms = [(realm, issuer) for realm in realms for issuer in issuers]

    class StubbedClient(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = pages.file_name(urlsplit(self.path).path) or ""
            file = page._files().get(name)
            is_config = name == "config.json"
            body = pages.config(websocket_url, realms, of_realms) if is_config else file.body if file else ""
            policy = pages.content_policy(websocket_url, issuers, name=name)
            self.send_response(200 if body else 404)
            for header, value in pages.headers(websocket_url, policy).items():
                self.send_header(header, value)
            self.send_header("Content-Type", pages.JSON if is_config else file.content_type if file else "text/plain")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), StubbedClient)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/live/"
    finally:
        server.shutdown()
        server.server_close()


def shown(document: object) -> str:
    """Return a document as JSON."""
    return json.dumps(document)
