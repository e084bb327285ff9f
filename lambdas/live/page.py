"""Serves the live page: its files, its configuration and the health check."""

from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

from lambdas.live import page_wiring
from lambdas.shared import instance
from lambdas.shared.http import Request, Response, response
from signalbox.live.admin import pages

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
        return _answer(pages.config(_websocket_url(), _listed_realms()), content_type=pages.JSON)
    return _file(name, request.headers.get("if-none-match", ""))


def _listed_realms() -> list[str]:
    """Return the realms that strangers may know: all, or none."""
    if instance.settings().text("PAGE_LISTS_REALMS") != "yes":
        return []
    return [exchange.name for exchange in page_wiring.exchanges().every() if exchange.live]


def _file(name: str, if_none_match: str) -> Response:
    file = _files().get(name)
    if file is None:
        return _answer("not found\n", status=HTTPStatus.NOT_FOUND)
    if file.is_known(if_none_match):
        return _answer(status=HTTPStatus.NOT_MODIFIED, ETag=file.etag)
    return _answer(file.body, content_type=file.content_type, ETag=file.etag)


def _health() -> Response:
    problems = page_wiring.health().problems()
    status = HTTPStatus.SERVICE_UNAVAILABLE if problems else HTTPStatus.OK
    return _answer(pages.health(problems), status=status, content_type=pages.JSON, **{"Cache-Control": "no-store"})


def _answer(
    body: str = "", *, status: HTTPStatus = HTTPStatus.OK, content_type: str = "text/plain", **headers: str
) -> Response:
    given = {**pages.headers(_websocket_url()), **headers}
    return response(body, status=status, content_type=content_type, headers=given)


@cache
def _files() -> dict[str, pages.File]:
    """Return the files by their paths below the folder; no other path can be requested."""
    names = [path.relative_to(FOLDER).as_posix() for path in sorted(FOLDER.rglob("*")) if path.is_file()]
    read = {name: pages.File.of(name, (FOLDER / name).read_text()) for name in names}
    return {name: file for name, file in read.items() if file}


def _websocket_url() -> str:
    return instance.settings().text("LIVE_WEBSOCKET_URL")
