"""Answers the calls that `session` passes on: topics, the overview of the stage, and the pictures of reports."""

import logging
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from lambdas.live import overview_wiring, wiring
from lambdas.live.batches import Record, dead_letter, failed_messages, redeliver
from lambdas.shared import instance
from lambdas.shared.poison import poison_of
from lambdas.shared.records import in_flight, messages_of
from signalbox.history.event import HistoryEvent
from signalbox.live.model.state import ConnectionId
from signalbox.live.outbox.overview_calls import InvalidOverviewCall, OverviewCall
from signalbox.live.procedures.overview_service import OverviewService
from signalbox.messages import Message

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the messages that stay in flight: of each connection the first that failed, and all behind it."""
    instance.begin(context)
    return in_flight(_answer_calls(event["Records"]))


def _answer_calls(records: Sequence[Record]) -> list[str]:
    """Answer calls of several connections at a time; write history before the messages are deleted."""
    events: list[HistoryEvent] = []  # appending to a list is thread-safe
    poison = poison_of(records, lambda record: OverviewCall.parse(record["body"]))
    # Clients are made before the threads start.
    answer = partial(_answer_in_order, overview_wiring.service(), events, poison)
    try:
        return failed_messages(answer, records)
    finally:
        instance.record(events)


def _answer_in_order(
    service: OverviewService,
    events: list[HistoryEvent],
    poison: Mapping[str, str],
    arrived: tuple[ConnectionId, list[Record]],
) -> list[str]:
    messages, began = messages_of(arrived[1]), instance.CLOCK.now()
    for number, message in enumerate(messages):
        if number and instance.is_late():
            redeliver(arrived[1][number:], "LIVE_OVERVIEW_URL", since=began)
            return [one.message_id for one in messages[number:]]
        if not _is_done(service, events, message, poison.get(message.message_id)):
            return [one.message_id for one in messages[number:]]
    return []


def _is_done(service: OverviewService, events: list[HistoryEvent], message: Message, poison: str | None) -> bool:
    try:
        _answer(service, message, poison)
    except InvalidOverviewCall as problem:
        event = dead_letter(message, problem, wiring.ordered_dead_letters(), holder="the overview queue")
        events.extend([event] if event else [])
        return event is not None
    except Exception:
        logger.exception("call %s was not answered", message.message_id)
        return False  # a failure of one connection must not fail the others
    return True


def _answer(service: OverviewService, message: Message, poison: str | None) -> None:
    if poison is not None:
        raise InvalidOverviewCall(poison)
    service.answer(message.body)
