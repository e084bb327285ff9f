"""Takes offers from clients that come by HTTP or through an AMP cache, and holds them until there is a reply."""

from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.shared.http import Request, Response, response
from signalbox.aws.rendezvous.policy import policy_of
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import client_address
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, NOT_FOUND, NOT_FOUND_HEADERS
from signalbox.rendezvous.rules.client_service import CallDesk
from signalbox.rendezvous.rules.states import ClientId, Method, Rendezvous, State
from signalbox.rendezvous.wire import amp
from signalbox.rendezvous.wire.offer import MAXIMUM_BODY_BYTES, Offer, OfferRejectedError, is_legacy
from signalbox.rendezvous.wire.reply import Reply, error_reply, legacy_reply
from signalbox.rendezvous.wire.sdp import SessionDescription, best_candidate_address

AMP_PREFIX = "/amp/client/"


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return the reply in the form of the way that the client came."""
    request = Request.parse(event)
    if request.is_preflight:
        return response()
    if request.path.startswith("/amp/"):
        return _amp(request)
    if len(request.body) > MAXIMUM_BODY_BYTES:
        return _refused(request, f"{len(request.body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
    if is_legacy(request.body):
        return _legacy(request)
    return response(_reply(request, request.body, method=Method.HTTP))


def _amp(request: Request) -> Response:
    if f"{request.path}/" == AMP_PREFIX:
        return response(status=HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": AMP_PREFIX})
    if not request.path.startswith(AMP_PREFIX):
        return response(NOT_FOUND, status=HTTPStatus.NOT_FOUND, headers=NOT_FOUND_HEADERS)
    try:
        reply = _reply(request, amp.decode_path(request.path.removeprefix(AMP_PREFIX)), method=Method.AMP)
    except amp.InvalidAmpPath as error:
        wiring.record_bad_input(Method.AMP, request_id=request.request_id, reason=str(error))
        reply = error_reply(str(error))
    headers = {**CROSS_ORIGIN, "Cache-Control": amp.CACHE_CONTROL}
    return response(amp.armor(reply), content_type=amp.CONTENT_TYPE, headers=headers)


def _refused(request: Request, reason: str) -> Response:
    wiring.record_bad_input(Method.HTTP, request_id=request.request_id, reason=reason)
    return response(status=HTTPStatus.BAD_REQUEST)


def _legacy(request: Request) -> Response:
    try:
        nat = request.headers.get("snowflake-nat-type", "")
        offer = Offer.parse_legacy(request.body, wiring.bridges(), nat_header=nat)
    except OfferRejectedError as error:
        return _refused(request, error.text)
    reply = legacy_reply(Reply.parse(_served(request, offer, method=Method.HTTP).encode()))
    return response(reply.body, status=HTTPStatus(reply.status))


def _reply(request: Request, body: bytes, *, method: Method) -> str:
    try:
        offer = Offer.parse(body, wiring.bridges())
    except OfferRejectedError as error:
        wiring.record_bad_input(method, request_id=request.request_id, reason=error.text)
        return error_reply(error.text)
    return _served(request, offer, method=method)


def _served(request: Request, offer: Offer, *, method: Method) -> str:
    # No queue name has a colon, so no SQS client can come across the record of an HTTP client.
    client_id = ClientId(f"{method}:{request.request_id}")
    record = _desk().serve(offer, client_id=client_id, method=method, country=_country(request, offer, method))
    _record(record)
    return record.reply or ""


def _country(request: Request, offer: Offer, method: Method) -> str:
    if method is Method.AMP:  # the request comes from the cache; the client itself is in its offer
        sdp = SessionDescription.parse(offer.session_description).sdp
        return wiring.country_of()(best_candidate_address(sdp))
    return wiring.country_of()(client_address(request.headers, socket_address=request.source_ip))


def _record(record: Rendezvous) -> None:
    now = wiring.CLOCK.now()
    if record.state is State.ANSWERED:
        return  # the function that took the answer has recorded it
    if record.state is State.REFUSED:
        wiring.recorder().record([events.offer(record, "denied", at=now)])
    else:
        wiring.recorder().record([events.timeout(record, at=now)])


@cache
def _desk() -> CallDesk:
    return CallDesk(
        offers=wiring.offers(),
        matchmaker=wiring.matchmaker(),
        clock=wiring.CLOCK,
        bridges=wiring.bridges(),
        policy=policy_of(wiring.settings()),
    )
