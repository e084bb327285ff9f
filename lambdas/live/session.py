"""Does what clients ask for, one after the other; and remembers those of which nothing is heard any more."""

import logging
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import partial
from typing import Any

from lambdas.live import session_wiring, wiring
from lambdas.live.dead_letters import put_aside
from lambdas.shared.records import in_flight, messages_of
from lambdas.shared.threads import parallel_map
from signalbox.aws.live.inbox import InvalidTimer, timed_connection
from signalbox.aws.shared.dead_letters import SqsDeadLetters
from signalbox.errors import RejectedError
from signalbox.live.session.inbox import InvalidTold
from signalbox.live.session.inbox_processor import Arrival, Conversation
from signalbox.live.session.ports import SessionPorts
from signalbox.live.session.state import ConnectionId, Elapsed, FrameId, Lost

SWEEP = "sweep"
Record = dict[str, Any]

logger = logging.getLogger(__name__)


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Return the messages that stay in flight; for the task of the schedule, how many connections are overdue."""
    if "Records" in event:
        records = event["Records"]
        return in_flight(_timed(records) if _are_timers(records) else _heard(records))
    if event["task"] == SWEEP:
        return {"lost": _sweep()}
    raise RejectedError(f"unknown task {event['task']!r}; known: {SWEEP}")


def _are_timers(records: list[Record]) -> bool:
    name = records[0]["eventSourceARN"].rpartition(":")[2]
    return bool(name == wiring.settings().text("LIVE_TIMERS_URL").rpartition("/")[2])


def _heard(records: Iterable[Record]) -> list[str]:
    """Hear what stands in inboxes, of several connections at a time; write down what happened before it is off them."""
    by_connection: dict[ConnectionId, list[Record]] = {}
    for record in records:
        by_connection.setdefault(ConnectionId(record["attributes"]["MessageGroupId"]), []).append(record)
    converse = partial(_conversed, session_wiring.ports())  # clients are not to be made by several threads
    try:
        return [message for failed in parallel_map(converse, by_connection.items()) for message in failed]
    finally:
        session_wiring.write_down()


def _conversed(ports: SessionPorts, arrived: tuple[ConnectionId, list[Record]]) -> list[str]:
    """Return the messages of a connection that must come again: the first that failed, and all behind it."""
    connection, records = arrived
    done = 0
    while done < len(records):
        try:
            for _ in Conversation(ports, connection).hear(map(_arrival, records[done:])):
                done += 1
        except InvalidTold as problem:
            if not _is_put_aside(records[done], problem, wiring.ordered_dead_letters(), holder="an inbox"):
                break
            done += 1
        except Exception:
            logger.exception("message %s of an inbox was not handled", records[done]["messageId"])
            break  # one connection must not take others along
    return [record["messageId"] for record in records[done:]]


def _is_put_aside(record: Record, problem: RejectedError, letters: SqsDeadLetters, *, holder: str) -> bool:
    (message,) = messages_of([record])
    buried = put_aside(message, problem, letters, holder=holder)
    if buried is not None:
        session_wiring.ports().record([buried])
    return buried is not None


def _arrival(record: Record) -> Arrival:
    sent_at = datetime.fromtimestamp(int(record["attributes"]["SentTimestamp"]) / 1000, UTC)
    connection = ConnectionId(record["attributes"]["MessageGroupId"])
    return Arrival(FrameId(record["messageId"]), connection, record["body"], sent_at)


def _timed(records: Iterable[Record]) -> list[str]:
    try:
        # One that fails has failed all of them, and they come again: being told twice is fine.
        return [record["messageId"] for record in records if not _is_told(record)]
    finally:
        session_wiring.write_down()


def _is_told(record: Record) -> bool:
    try:
        connection = timed_connection(record["body"])
    except InvalidTimer as problem:
        letters = session_wiring.timer_dead_letters()
        return _is_put_aside(record, problem, letters, holder="the queue of timers")
    wiring.inbox().tell(connection, Elapsed(), request=record["messageId"])
    return True


def _sweep() -> int:
    now = wiring.CLOCK.now()
    lost = list(wiring.sessions().overdue(now=now))
    for connection in lost:
        wiring.inbox().tell(connection, Lost(), request=f"sweep-{now:%Y%m%d%H%M}")
    return len(lost)
