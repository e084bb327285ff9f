"""The part `answer` of the function `proxies`: it delivers a proxy's answer to the waiting client."""

from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.rendezvous.responses import response
from lambdas.shared import instance
from lambdas.shared.http import Request, Response
from signalbox.aws.rendezvous.queues import QueueGone
from signalbox.history.event import HistoryEvent
from signalbox.networks import network_number
from signalbox.rendezvous.model.states import RendezvousRecord
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import keyed_hash
from signalbox.rendezvous.rules.answer_service import AnswerService
from signalbox.rendezvous.wire.errors import InvalidMessage
from signalbox.rendezvous.wire.proxy import ProxyAnswer, answer_response


def respond(event: dict[str, Any]) -> Response:
    """Return the response to an answer, byte for byte as upstream's broker does."""
    request = Request.parse(event)
    if request.is_preflight:
        return response()
    try:
        answer = ProxyAnswer.parse(request.body)
    except InvalidMessage as error:
        wiring.record_bad_input("answer", request_id=request.request_id, reason=str(error))
        return response(status=HTTPStatus.BAD_REQUEST)
    record = _accept(answer, network_number(request.source_ip))
    if record is None:
        _record(_event("client_gone", sid=answer.sid))
    else:
        _record(_event("success", sid=answer.sid, record=record), events.answer(record, at=instance.CLOCK.now()))
    return response(answer_response(accepted=record is not None))


def _accept(answer: ProxyAnswer, network: int | None) -> RendezvousRecord | None:
    try:
        return _service().accept(answer, network=network)
    except QueueGone:
        return None  # the client has left, and its queue was deleted


def _event(outcome: str, *, sid: str, record: RendezvousRecord | None = None) -> HistoryEvent:
    now = instance.CLOCK.now()
    sid_hash = keyed_hash(sid, key=wiring.statistics().key(now.date()))
    return events.proxy_answer(outcome, at=now, sid_hash=sid_hash, record=record)


def _record(*recorded: HistoryEvent) -> None:
    wiring.recorder().record(recorded)


@cache
def _service() -> AnswerService:
    return AnswerService(
        wiring.offers(), wiring.client_queues(), wiring.broker_queue(), instance.CLOCK, wiring.policy()
    )
