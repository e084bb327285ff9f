"""The function `clients`: the door of clients over HTTP and of AMP caches; it holds each offer until the reply."""

from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.rendezvous import page, wiring
from lambdas.rendezvous.responses import response
from lambdas.shared import instance, shutdown
from lambdas.shared.http import Request, Response
from signalbox.rendezvous.model.states import ClientId, OfferState, RendezvousMethod, RendezvousRecord
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import client_address
from signalbox.rendezvous.reporting.pages import CROSS_ORIGIN, NOT_FOUND, NOT_FOUND_HEADERS
from signalbox.rendezvous.rules.client_service import ClientService
from signalbox.rendezvous.wire import amp
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage
from signalbox.rendezvous.wire.offer import MAXIMUM_BODY_BYTES, Offer, is_legacy
from signalbox.rendezvous.wire.reply import ClientReply, error_reply, legacy_status
from signalbox.rendezvous.wire.sdp import best_candidate_address

PATH, AMP, AMP_PREFIX = "/client", "/amp/", "/amp/client/"

shutdown.before_end(wiring.flush)


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return the reply to an offer in the form of the client's request, current, legacy or AMP, or a page."""
    request = Request.parse(event)
    is_amp = request.path.startswith(AMP)
    if not is_amp and request.path != PATH:
        return page.respond(request)
    if request.is_preflight:
        return response()
    if is_amp:
        return _amp(request)
    if len(request.body) > MAXIMUM_BODY_BYTES:
        return _refused(request, f"{len(request.body)} bytes are too many; at most {MAXIMUM_BODY_BYTES} are allowed")
    if is_legacy(request.body):
        return _legacy(request)
    return response(_reply(request, request.body, method=RendezvousMethod.HTTP))


def _amp(request: Request) -> Response:
    if f"{request.path}/" == AMP_PREFIX:
        return response(status=HTTPStatus.TEMPORARY_REDIRECT, headers={"Location": AMP_PREFIX})
    if not request.path.startswith(AMP_PREFIX):
        return response(NOT_FOUND, status=HTTPStatus.NOT_FOUND, headers=NOT_FOUND_HEADERS)
    try:
        reply = _reply(request, amp.decode_path(request.path.removeprefix(AMP_PREFIX)), method=RendezvousMethod.AMP)
    except InvalidMessage as error:
        wiring.record_bad_input(RendezvousMethod.AMP, request_id=request.request_id, reason=str(error))
        reply = error_reply(str(error))
    headers = {**CROSS_ORIGIN, "Cache-Control": amp.CACHE_CONTROL}
    return response(amp.armor(reply), content_type=amp.CONTENT_TYPE, headers=headers)


def _refused(request: Request, reason: str) -> Response:
    wiring.record_bad_input(RendezvousMethod.HTTP, request_id=request.request_id, reason=reason)
    return response(status=HTTPStatus.BAD_REQUEST)


def _legacy(request: Request) -> Response:
    try:
        nat = request.headers.get("snowflake-nat-type", "")
        offer = Offer.parse_legacy(request.body, wiring.bridges(), nat_header=nat)
    except InvalidMessage as error:
        return _refused(request, str(error))
    reply = ClientReply.parse(_served(request, offer, method=RendezvousMethod.HTTP).encode())
    return response(reply.answer, status=HTTPStatus(legacy_status(reply)))


def _reply(request: Request, body: bytes, *, method: RendezvousMethod) -> str:
    try:
        offer = Offer.parse(body, wiring.bridges())
    except InvalidMessage as error:
        wiring.record_bad_input(method, request_id=request.request_id, reason=str(error))
        return error_reply(str(error))
    return _served(request, offer, method=method)


def _served(request: Request, offer: Offer, *, method: RendezvousMethod) -> str:
    # A queue name cannot contain a colon, so no SQS client has the client id of an HTTP client.
    client_id = ClientId(f"{method}:{request.request_id}")
    record = _service().serve(offer, client_id=client_id, method=method, country=_country(request, offer, method))
    _record(record)
    return record.reply or ""


def _country(request: Request, offer: Offer, method: RendezvousMethod) -> str:
    if method is RendezvousMethod.AMP:  # the request comes from the cache; the offer contains the client's address
        return wiring.country_lookup()(best_candidate_address(offer.sdp))
    return wiring.country_lookup()(client_address(request.headers, socket_address=request.source_ip))


def _record(record: RendezvousRecord) -> None:
    now = instance.CLOCK.now()
    if record.state is OfferState.ANSWERED:
        return  # the function `answer` has recorded it
    if record.state is OfferState.REFUSED:
        wiring.recorder().record([events.offer(record, "denied", at=now)])
    else:
        wiring.recorder().record([events.timeout(record, at=now)])


@cache
def _service() -> ClientService:
    return ClientService(wiring.offers(), wiring.paces(), instance.CLOCK, wiring.policy())
