"""The flow of live: a log is written, a client gets its past, and then each new line."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import groupby
from statistics import median
from typing import TypeVar

from signalbox.clients.live.client import LiveClient, RequestUnconfirmed
from signalbox.clients.live.cursor import PatternCursor, ReceivedEvent
from signalbox.clients.live.session import ConnectionLost, Login
from signalbox.clients.web_socket import connector
from signalbox.flows.trial import Trial, WrongResult, expect
from signalbox.live.wamp.messages import Payload
from signalbox.live.wamp.options import LastEvents
from signalbox.live.wamp.patterns import TopicPattern
from signalbox.verify.patience import RECEIVE_SECONDS

T = TypeVar("T")
CAPABILITY = "live"
BEFORE, AFTER = 20, 10  # lines before the client joins, and new lines after that


def follow_log(trial: Trial, topic: str, *, pattern: TopicPattern, writer: Login, reader: LiveClient) -> None:
    """Publish the lines of a topic, and follow it from its beginning; afterwards the reader is still subscribed."""
    journal = trial.journal
    with live_client(trial, writer) as publisher:

        def publish(number: int) -> None:
            line = f"line {number}: aligned {number * 512} reads"
            confirmed(trial, lambda: publisher.publish(topic, Payload((line,))))

        with journal.step(CAPABILITY, "events are published") as timing:
            for number in range(BEFORE):
                with timing.measured():
                    publish(number)
            timing.detail = f"{BEFORE} lines to {topic}"
        with journal.step(CAPABILITY, "a later client gets the past") as timing:
            reader.follow(PatternCursor(pattern, LastEvents(2 * BEFORE)))
            past = [_number(event) for event in reader.backfill()]
            expect(distinct(past) == list(range(BEFORE)), f"the backfill has {past}")
            timing.detail = f"{BEFORE} old lines, each once and in order"
        with journal.step(CAPABILITY, "events are published and received") as timing:
            for number in range(BEFORE, BEFORE + AFTER):
                with timing.measured():
                    publish(number)
                    found = _next(reader, after=number - 1)
                expect(found == number, f"event {number} arrived as {found}")
            lag = median(timing.latencies) * 1000
            timing.detail = (
                f"{AFTER} new lines, each once and in order; {lag:.0f} ms from publishing to receiving (median)"
            )
    trial.meter.note("exchange", "publication", BEFORE + AFTER)
    trial.meter.note("history", "event", 2 * (BEFORE + AFTER))
    trial.meter.count("websocket", "message", 2 * BEFORE + 4 * AFTER)


def live_client(trial: Trial, login: Login) -> LiveClient:
    """Return a client of the stage."""
    return LiveClient(connector(trial.deployment.websocket_url), login)


def confirmed(trial: Trial, request: Callable[[], T]) -> T:
    """Return the result of a request that is repeated when its reply is lost: connections end now and then."""
    done: list[T] = []

    def is_confirmed() -> bool:
        with suppress(RequestUnconfirmed, ConnectionLost):
            done.append(request())
        return bool(done)

    trial.wait_until(is_confirmed, "a request has a reply", seconds=RECEIVE_SECONDS)
    return done[0]


def next_event(client: LiveClient) -> ReceivedEvent:
    """Return the next event. Raises `WrongResult` if none arrives."""
    event = client.receive(RECEIVE_SECONDS)
    if event is None:
        raise WrongResult(f"no event arrived within {RECEIVE_SECONDS:g} s")
    return event


def line_number(line: str) -> int:
    """Return the number of a line."""
    return int(line.split()[1].removesuffix(":"))


def distinct(numbers: Sequence[int]) -> list[int]:
    """Return the numbers without repetitions of the one before: a publication is repeated when its reply is lost."""
    return [number for number, _ in groupby(numbers)]


def _next(client: LiveClient, *, after: int) -> int:
    """Return the number of the next event, without repetitions of the last one whose reply was lost."""
    while (number := _number(next_event(client))) == after:
        pass
    return number


def _number(event: ReceivedEvent) -> int:
    return line_number(str(event.payload.arguments[0]))
