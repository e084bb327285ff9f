"""Takes a proxy's answer and hands it to the client that waits for it."""

from functools import cache
from http import HTTPStatus
from typing import Any

from lambdas.rendezvous import wiring
from lambdas.shared.http import Request, Response, response
from signalbox.aws.rendezvous.queues import QueueGone
from signalbox.history.event import HistoryEvent
from signalbox.rendezvous.reporting import events
from signalbox.rendezvous.reporting.client_address import party_hash
from signalbox.rendezvous.rules.answer_service import AnswerDesk
from signalbox.rendezvous.rules.states import Rendezvous
from signalbox.rendezvous.wire.proxy import InvalidProxyMessage, ProxyAnswer, answer_response


def handler(event: dict[str, Any], _context: object) -> Response:
    """Return whether the answer was wanted, byte for byte as upstream's broker writes it."""
    request = Request.parse(event)
    if request.is_preflight:
        return response()
    try:
        answer = ProxyAnswer.parse(request.body)
    except InvalidProxyMessage as error:
        wiring.record_bad_input("answer", request_id=request.request_id, reason=str(error))
        return response(status=HTTPStatus.BAD_REQUEST)
    record = _take(answer)
    if record is None:
        _record(_event("client_gone", sid=answer.sid))
    else:
        _record(_event("success", sid=answer.sid, record=record), events.answer(record, at=wiring.CLOCK.now()))
    return response(answer_response(accepted=record is not None))


def _take(answer: ProxyAnswer) -> Rendezvous | None:
    try:
        return _desk().take(answer)
    except QueueGone:
        return None  # the client has left, and somebody has deleted its queue


def _event(outcome: str, *, sid: str, record: Rendezvous | None = None) -> HistoryEvent:
    now = wiring.CLOCK.now()
    sid_hash = party_hash(sid, key=wiring.statistics().key(now.date()))
    return events.proxy_answer(outcome, at=now, sid_hash=sid_hash, record=record)


def _record(*recorded: HistoryEvent) -> None:
    wiring.recorder().record(recorded)


@cache
def _desk() -> AnswerDesk:
    return AnswerDesk(wiring.offers(), wiring.client_queues(), wiring.broker_queue(), wiring.CLOCK)
