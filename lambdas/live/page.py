"""Serves the live page: its files, its configuration and the health check."""

from collections.abc import Iterable
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lambdas.live import page_wiring
from lambdas.shared import instance
from lambdas.shared.http import Request, Response, response
from signalbox.exchange.model.issuers import Issuer
from signalbox.exchange.model.records import ExchangeRecord
from signalbox.live.admin import pages
from signalbox.sarracenia.rights.names import InvalidExchangeName, parse_exchange_name

FOLDER = Path(__file__).parents[2] / "web"  # packaged next to the code


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return the file of the request's path, `config.json` or the stage's health."""
    request = Request.parse(event)
    if request.path.endswith("/health"):
        return _health()
    name = pages.file_name(request.path)
    if name is None:
        return _answer(status=HTTPStatus.PERMANENT_REDIRECT, Location=f"live/{pages.FIRST_PAGE}")
    if name == "config.json":
        return _answer(_config(request.query.get("realm", "")), content_type=pages.JSON)
    return _file(name, request.headers.get("if-none-match", ""))


def _config(realm: str) -> str:
    """Return the realms that strangers may know, all or none, and the issuers of these or of the named realm."""
    if instance.settings().text("PAGE_LISTS_REALMS") == "yes":
        live = page_wiring.live_exchanges().get()
        return pages.config(_websocket_url(), [exchange.name for exchange in live], _issuers(live))
    return pages.config(_websocket_url(), [], _issuers(_named(realm)))


def _named(realm: str) -> list[ExchangeRecord]:
    """Return the exchange with a name, if it exists."""
    try:
        found = page_wiring.exchanges().find(parse_exchange_name(realm))
    except InvalidExchangeName:
        return []
    return [found] if found else []


def _issuers(exchanges: Iterable[ExchangeRecord]) -> list[tuple[str, Issuer]]:
    return [(exchange.name, issuer) for exchange in exchanges if exchange.live for issuer in exchange.live.issuers]


def _file(name: str, if_none_match: str) -> Response:
    file = _files().get(name)
    if file is None:
        return _answer("not found\n", status=HTTPStatus.NOT_FOUND)
    content_policy = None
    if file.is_document:
        issuers = [issuer for _, issuer in _issuers(page_wiring.live_exchanges().get())]
        content_policy = pages.content_policy(_websocket_url(), issuers, name=name)
        file = file.with_policy(content_policy)
    if file.is_known(if_none_match):
        return _answer(status=HTTPStatus.NOT_MODIFIED, content_policy=content_policy, ETag=file.etag)
    return _answer(file.body, content_type=file.content_type, content_policy=content_policy, ETag=file.etag)


def _health() -> Response:
    problems = page_wiring.health().problems()
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return _answer(pages.health(problems), status=status, content_type=pages.JSON, **{"Cache-Control": "no-store"})


def _answer(
    body: str = "",
    *,
    status: HTTPStatus = HTTPStatus.OK,
    content_type: str = "text/plain",
    content_policy: str | None = None,
    **headers: str,
) -> Response:
    given = {**pages.headers(_websocket_url(), content_policy), **headers}
    return response(body, status=status, content_type=content_type, headers=given)


@cache
def _files() -> dict[str, pages.File]:
    """Return the files by their paths below the folder; no other path can be requested."""
    names = [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*")) if path.is_file()]
    read = {name: pages.File.of(name, (FOLDER / name).read_text()) for name in names}
    return {name: file for name, file in read.items() if file}


def _websocket_url() -> str:
    return instance.settings().text("LIVE_WEBSOCKET_URL")
