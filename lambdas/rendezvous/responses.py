"""Responses with the default headers of upstream's broker."""

from collections.abc import Mapping
from http import HTTPStatus

from lambdas.shared import http
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, TEXT


def response(
    body: str = "",
    *,
    status: HTTPStatus = HTTPStatus.OK,
    content_type: str = TEXT,
    headers: Mapping[str, str] = CROSS_ORIGIN,
) -> http.Response:
    """Return a response; the default headers are upstream's headers for every response except its small pages."""
    return http.response(body, status=status, content_type=content_type, headers=headers)
