"""The function `proxies`: the door of proxies, which responds to polls and answers as upstream's broker does."""

import random
from datetime import timedelta
from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.rendezvous import page, wiring
from lambdas.rendezvous.responses import response
from lambdas.shared import instance, shutdown
from lambdas.shared.http import Request, Response
from signalbox.aws.rendezvous.queues import QueueGone
from signalbox.networks import network_number
from signalbox.rendezvous.model.states import RendezvousRecord
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import client_address, keyed_hash
from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.rules.pacer import Pacer
from signalbox.rendezvous.rules.poll_service import PollService
from signalbox.rendezvous.wire import proxy
from signalbox.rendezvous.wire.gojson.scanner import InvalidMessage

HOUR, MILLISECOND = timedelta(hours=1), timedelta(milliseconds=1)

shutdown.before_end(wiring.flush)


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return the response to a request of a proxy."""
    request = Request.parse(event)
    respond = ROUTES.get(request.path)
    if respond is None:
        return page.respond(request)
    if request.is_preflight:
        return response()
    try:
        return response(respond(request))
    except InvalidMessage as error:
        source = request.path.removeprefix("/")
        wiring.record_bad_input(source, request_id=request.request_id, reason=str(error))
        return response(status=HTTPStatus.BAD_REQUEST)


def _poll(request: Request) -> str:
    """Return an offer that fits to a polling proxy, or none."""
    poll = proxy.ProxyPoll.parse(request.body)
    if not proxy.is_relay_allowed(poll.relay_pattern, instance.settings().text("ALLOWED_RELAY_PATTERN")):
        _record_poll(request, poll, "relay_rejected")
        return proxy.poll_response(proxy.INCORRECT_RELAY, next_poll=HOUR // MILLISECOND)
    result = _polls().serve(poll, network=_keyed_network(request))
    next_poll, match = result.interval // MILLISECOND, result.match
    _record_poll(request, poll, "matched" if match else "idle", match=match)
    if match is None:
        return proxy.poll_response(proxy.NO_MATCH, next_poll=next_poll)
    offer, relay_url = match.session_description, match.relay_url
    return proxy.poll_response(proxy.MATCH, next_poll=next_poll, offer=offer, nat=match.nat, relay_url=relay_url)


def _keyed_network(request: Request) -> int | None:
    """Return a number of the sender's network under the day's key, so that no sender chooses its group."""
    network, day = network_number(request.source_ip), instance.CLOCK.now().date()
    return None if network is None else int(keyed_hash(str(network), key=wiring.statistics().key(day)), 16)


def _answer(request: Request) -> str:
    """Deliver a proxy's answer to the waiting client."""
    answer = proxy.ProxyAnswer.parse(request.body)
    try:
        record = _answers().accept(answer, network=network_number(request.source_ip))
    except QueueGone:
        record = None  # the client has left, and its queue was deleted
    _record_answer(answer, record)
    return proxy.answer_response(accepted=record is not None)


ROUTES = {"/proxy": _poll, "/answer": _answer}


def _record_poll(
    request: Request, poll: proxy.ProxyPoll, outcome: str, *, match: RendezvousRecord | None = None
) -> None:
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


def _record_answer(answer: proxy.ProxyAnswer, record: RendezvousRecord | None) -> None:
    now = instance.CLOCK.now()
    sid_hash = keyed_hash(answer.sid, key=wiring.statistics().key(now.date()))
    outcome = "success" if record else "client_gone"
    recorded = [events.proxy_answer(outcome, at=now, sid_hash=sid_hash, record=record)]
    if record is not None:
        recorded.append(events.answer(record, at=now))
    wiring.recorder().record(recorded)


@cache
def _polls() -> PollService:
    return PollService(
        offers=wiring.offers(),
        pacer=Pacer(wiring.paces(), wiring.policy()),
        clock=instance.CLOCK,
        random=random.random,
        policy=wiring.policy(),
    )


@cache
def _answers() -> AnswerService:
    return AnswerService(
        wiring.offers(), wiring.client_queues(), wiring.broker_queue(), instance.CLOCK, wiring.policy()
    )
