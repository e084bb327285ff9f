"""The page on loopback as its function serves it, with its policy, for a router in memory."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from urllib.parse import urlsplit

from lambdas.live import page
from signalbox.exchange.model.issuers import Issuer
from signalbox.live.admin import pages
from tests.fakes import http_endpoint
from tests.fakes.http_endpoint import Handler


@contextmanager
def serving(websocket_url: str, *realms: str, issuers: Sequence[Issuer] = ()) -> Iterator[str]:
    """Serve the page's files, with issuers of all realms; return its address."""
    of_realms = [(realm, issuer) for realm in realms for issuer in issuers]

    class Site(Handler):
        def respond(self) -> None:
            name = pages.file_name(urlsplit(self.path).path) or ""
            file = page._files().get(name)
            is_config = name == "config.json"
            body = pages.config(websocket_url, realms, of_realms) if is_config else file.body if file else ""
            policy = pages.content_policy(websocket_url, issuers, name=name)
            content_type = pages.JSON if is_config else file.content_type if file else "text/plain"
            headers = {**pages.headers(websocket_url, policy), "Content-Type": content_type}
            self.answer(body, status=200 if body else 404, headers=headers)

    with http_endpoint.serving(Site) as url:
        yield f"{url}/live/"


def shown(document: object) -> str:
    """Return a document as JSON."""
    return json.dumps(document)
