"""Follows a queue of announcements: handles what comes and what failed before, and tells what becomes of it."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Protocol

from signalbox.cli.shared.output import print_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import say
from signalbox.clients.sarracenia.downloader import Done, Downloader, swept
from signalbox.clients.sarracenia.sources import SOURCES
from signalbox.clients.sarracenia.subscriber import PROBLEMS, Outcome, Received, Result, Subscriber
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.subscription.filters import Accepted, Filter

if TYPE_CHECKING:
    import boto3

    from signalbox.clients.exchange.consumer import ReceivedMessage
    from signalbox.clients.sarracenia.subscriber_store import State

WAIT_SECONDS = 20
ERASE = "\r\x1b[2K"  # back to the beginning of the terminal's line, and all of it away
SECONDS_BETWEEN_CLEANINGS = 300  # sr3's housekeeping


class Source(Protocol):
    """Where messages come from: a consumer of a queue."""

    def receive(self, *, wait_seconds: int) -> "list[ReceivedMessage]":
        """Return messages, at least one if any comes in time."""
        ...

    def ack(self, *taken: "ReceivedMessage") -> None:
        """Say that messages are done."""
        ...


def fetching(
    directory: Path | None, wanted: Filter, session: "Callable[[], boto3.Session]"
) -> Callable[[Announcement, Accepted], Done | None]:
    """Return what is done with a file: it is put into a directory, or without one nothing is."""
    if directory is None:
        return lambda _told, _accepted: None
    from signalbox.clients.sarracenia.object_source import s3_source

    downloader = Downloader(directory, {**SOURCES, "s3": s3_source(session)})
    for place in {"", wanted.directory or "", *(rule.directory or "" for rule in wanted.rules)}:
        swept(directory / place, now=datetime.now(UTC))
    return lambda told, accepted: downloader.carry_out(told, directory=accepted.directory)


@dataclass(frozen=True, slots=True)
class Shown:
    """Tells what becomes of messages: a line each, problems apart, and on a terminal how it stands."""

    as_json: bool
    is_live: bool = field(default_factory=lambda: sys.stderr.isatty())  # noqa: PLW0108 - not the stream of the import

    def result(self, result: Result) -> None:
        """Tell of one."""
        self.status("")
        if self.as_json:
            print_line(json.dumps(result.as_document()))
            sys.stdout.flush()
            return
        told = result.announcement
        where = result.received.routing_key if told is None else f"{told.base_url} {told.path}"
        text = f"{result.outcome}  {where}{f'  ({result.reason})' if result.reason else ''}"
        printable = text.encode(errors="backslashreplace").decode()
        if result.outcome in PROBLEMS:
            say(printable)
        else:
            print_line(printable)
            sys.stdout.flush()

    def status(self, text: str) -> None:
        """Show how it stands, in place of what was shown before."""
        # Not by rich, which would take what is printed for programs to the terminal, too, and break it into lines.
        if self.is_live:
            sys.stderr.write(ERASE + text[: get_terminal_size().columns - 1])
            sys.stderr.flush()


@dataclass(slots=True)
class Following:
    """Handles messages until a signal comes, or until there were so many."""

    source: Source
    state: "State"
    subscriber: Subscriber
    count: int | None = None
    counts: Counter[Outcome] = field(default_factory=Counter)
    wait_seconds: int = WAIT_SECONDS
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    _cleaned_at: datetime | None = None
    _ending: Ending = field(default_factory=Ending)

    def run(self, shown: Shown) -> None:
        """Run to the end, and tell how it went."""
        with self._ending.awaited():
            while not self._is_over():
                self._clean()
                self._retry(shown)
                self._receive(shown)
        shown.status("")
        say(self._summary("ended"))

    def _is_over(self) -> bool:
        return self._ending.is_due or (self.count is not None and self._handled() >= self.count)

    def _handled(self) -> int:
        # What will be tried again is counted when it is done, or given up.
        return self.counts.total() - self.counts[Outcome.FAILED]

    def _clean(self) -> None:
        ttl, now = self.subscriber.limits.duplicates_ttl, self.now()
        is_due = self._cleaned_at is None or now - self._cleaned_at >= timedelta(seconds=SECONDS_BETWEEN_CLEANINGS)
        if ttl is not None and is_due:
            self.state.forget(before=now - ttl)
            self._cleaned_at = now

    def _retry(self, shown: Shown) -> None:
        while not self._is_over() and (claimed := self.state.claim(now=self.now())) is not None:
            shown.status(self._summary("tries again"))
            failed = claimed.failed
            result = self.subscriber.handle(failed.received, now=self.now(), earlier_attempts=failed.attempts)
            self.state.finish(claimed)
            self._tell(result, shown)

    def _receive(self, shown: Shown) -> None:
        if self._is_over():
            return
        shown.status(self._summary("idle"))
        taken: Sequence[ReceivedMessage] = ()
        with self._ending.waiting():
            taken = self.source.receive(wait_seconds=self._patience())
        done: list[ReceivedMessage] = []
        try:
            for one in taken:
                if self._is_over():
                    return  # the consumer gives back what is left
                shown.status(self._summary("receives"))
                self._tell(self.subscriber.handle(_received(one), now=self.now()), shown)
                done.append(one)
        finally:
            self.source.ack(*done)

    def _patience(self) -> int:
        """Return how long to wait for messages: not longer than until something is tried again."""
        due_at = self.state.next_due()
        left = self.wait_seconds if due_at is None else (due_at - self.now()).total_seconds()
        return min(self.wait_seconds, max(1, round(left)))

    def _tell(self, result: Result, shown: Shown) -> None:
        self.counts[result.outcome] += 1
        shown.result(result)

    def _summary(self, state: str) -> str:
        told = [f"{count} {outcome}" for outcome, count in self.counts.items() if outcome != Outcome.FAILED]
        waiting = self.state.waiting()
        return f"{state}: {', '.join(told) or 'nothing yet'}" + (f"; {waiting} to be tried again" if waiting else "")


def _received(taken: "ReceivedMessage") -> Received:
    delivered = taken.delivered
    return Received(delivered.body, delivered.headers, delivered.exchange, delivered.key)
