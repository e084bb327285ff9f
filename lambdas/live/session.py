"""Processes the inboxes of connections, forwards expired timers, and signals the end of overdue connections."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from lambdas.live import session_wiring, wiring
from lambdas.live.batches import Record, dead_letter, failed_messages, redeliver
from lambdas.shared import instance
from lambdas.shared.poison import poison_of
from lambdas.shared.records import in_flight, messages_of
from signalbox.aws.live.inbox import InvalidTimer, timed_connection
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import RejectedError
from signalbox.live.model.state import ConnectionId, Elapsed, FrameId, Lost
from signalbox.live.ports import SessionPorts
from signalbox.live.session.inbox import InvalidInboxMessage, readings
from signalbox.live.session.inbox_processor import Arrival, InboxProcessor, OutOfTime
from signalbox.messages import moment

SWEEP = "sweep"

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """Return the messages that stay in flight; for the scheduled task, the number of overdue connections."""
    instance.begin(context)
    if "Records" in event:
        records = event["Records"]
        return in_flight(_forward_timers(records) if _are_timers(records) else _process_inboxes(records))
    if event["task"] == SWEEP:
        return {"lost": _sweep()}
    raise RejectedError(f"unknown task {event['task']!r}; known: {SWEEP}")


def _are_timers(records: list[Record]) -> bool:
    name = records[0]["eventSourceARN"].rpartition(":")[2]
    return bool(name == instance.settings().text("LIVE_TIMERS_URL").rpartition("/")[2])


def _process_inboxes(records: Sequence[Record]) -> list[str]:
    """Process inboxes, of several connections at a time; write history before the messages are deleted."""
    poison = poison_of(records, lambda record: readings(record["body"]))
    # boto3 clients are made before the threads start
    process = partial(_process_inbox, session_wiring.ports(), poison)
    try:
        return failed_messages(process, records)
    finally:
        session_wiring.write_history()


def _process_inbox(
    ports: SessionPorts, poison: Mapping[str, str], arrived: tuple[ConnectionId, list[Record]]
) -> list[str]:
    """Return the messages of a connection that stay in flight: the first that failed, and all behind it."""
    connection, records = arrived
    began, done = instance.CLOCK.now(), 0
    while done < len(records):
        try:
            processor = InboxProcessor(ports, session_wiring.tokens(), connection, instance.is_late)
            for _ in processor.process(_arrival(one, poison) for one in records[done:]):
                done += 1
        except InvalidInboxMessage as problem:
            if not _is_dead_lettered(records[done], problem, wiring.ordered_dead_letters(), holder="an inbox"):
                break
            done += 1
        except OutOfTime:
            redeliver(records[done:], "LIVE_INBOX_URL", since=began)
            break
        except Exception:
            logger.exception("message %s of an inbox was not processed", records[done]["messageId"])
            break  # a failure of one connection must not fail the others
    return [record["messageId"] for record in records[done:]]


def _is_dead_lettered(record: Record, problem: RejectedError, dead_letters: SqsDeadLetters, *, holder: str) -> bool:
    (message,) = messages_of([record])
    event = dead_letter(message, problem, dead_letters, holder=holder)
    if event is not None:
        session_wiring.ports().record([event])
    return event is not None


def _arrival(record: Record, poison: Mapping[str, str]) -> Arrival:
    sent_at = moment(record["attributes"]["SentTimestamp"])
    connection = ConnectionId(record["attributes"]["MessageGroupId"])
    frame = record["messageId"]
    return Arrival(FrameId(frame), connection, record["body"], sent_at, poison.get(frame))


def _forward_timers(records: Iterable[Record]) -> list[str]:
    try:
        # A failure fails the whole batch, which is received again: a second signal is harmless.
        return [record["messageId"] for record in records if not _is_forwarded(record)]
    finally:
        session_wiring.write_history()


def _is_forwarded(record: Record) -> bool:
    try:
        connection = timed_connection(record["body"])
    except InvalidTimer as problem:
        dead_letters = wiring.ordered_dead_letters()
        return _is_dead_lettered(record, problem, dead_letters, holder="the queue of timers")
    wiring.inbox().notify(connection, Elapsed(), request=record["messageId"])
    return True


def _sweep() -> int:
    now = instance.CLOCK.now()
    lost = list(wiring.sessions().overdue(now=now))
    for connection in lost:
        wiring.inbox().notify(connection, Lost(), request=f"sweep-{now:%Y%m%d%H%M}")
    return len(lost)
