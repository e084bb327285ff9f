"""The part `poll` of the function `proxies`: it returns an offer that fits to a polling proxy, or none."""

import random
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.rendezvous.responses import response
from lambdas.shared import instance
from lambdas.shared.http import Request, Response
from signalbox.networks import network_number
from signalbox.rendezvous.model.states import RendezvousRecord
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import client_address, keyed_hash
from signalbox.rendezvous.rules.pacer import Pacer
from signalbox.rendezvous.rules.poll_service import PollResult, PollService
from signalbox.rendezvous.wire.errors import InvalidMessage
from signalbox.rendezvous.wire.proxy import INCORRECT_RELAY, MATCH, NO_MATCH, ProxyPoll, poll_response
from signalbox.rendezvous.wire.relay import is_relay_allowed

HOUR, MILLISECOND = timedelta(hours=1), timedelta(milliseconds=1)


def respond(event: dict[str, Any]) -> Response:
    """Return the response to a poll, byte for byte as upstream's broker does."""
    request = Request.parse(event)
    if request.is_preflight:
        return response()
    try:
        poll = ProxyPoll.parse(request.body)
    except InvalidMessage as error:
        wiring.record_bad_input("proxy", request_id=request.request_id, reason=str(error))
        return response(status=HTTPStatus.BAD_REQUEST)
    if not is_relay_allowed(poll.relay_pattern, instance.settings().text("ALLOWED_RELAY_PATTERN")):
        _record(request, poll, "relay_rejected")
        return response(poll_response(INCORRECT_RELAY, next_poll=HOUR // MILLISECOND))
    result = _service().serve(poll, network=network_number(request.source_ip))
    _record(request, poll, "matched" if result.match else "idle", match=result.match)
    return response(_body(result))


def _body(result: PollResult) -> str:
    next_poll, match = result.interval // MILLISECOND, result.match
    if match is None:
        return poll_response(NO_MATCH, next_poll=next_poll)
    offer, relay_url = match.session_description, match.relay_url
    return poll_response(MATCH, next_poll=next_poll, offer=offer, nat=match.nat, relay_url=relay_url)


def _record(request: Request, poll: ProxyPoll, outcome: str, *, match: RendezvousRecord | None = None) -> None:
    now = instance.CLOCK.now()
    key = wiring.statistics().key(now.date())
    address = client_address(request.headers, socket_address=request.source_ip)
    event = events.proxy_poll(
        poll,
        outcome,
        at=now,
        sid_hash=keyed_hash(poll.sid, key=key),
        client_address_hash=keyed_hash(address, key=key) if address else None,
        country=wiring.country_lookup()(address),
        client_id=match.client_id if match else None,
    )
    wiring.recorder().record([event])


@cache
def _service() -> PollService:
    return PollService(
        offers=wiring.offers(),
        pacer=Pacer(wiring.paces(), wiring.policy()),
        clock=instance.CLOCK,
        random=random.random,
        policy=wiring.policy(),
    )
