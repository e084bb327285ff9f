"""The run of `signalbox post`: announces entries once or as they change, printed or published."""

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from signalbox.cli.shared.output import print_error, print_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import say
from signalbox.clients.exchange.publisher import PublishRequest as Publication
from signalbox.clients.sarracenia.checksums import read_contents
from signalbox.clients.sarracenia.tree_walk import TreeWatch, absolute, walk
from signalbox.errors import SignalboxError
from signalbox.sarracenia.formats.posts import AnnouncementMessage, FileEntry, PostSettings
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

RANDOM_IDENTITIES = 10_000
REST_FACTOR = 10  # the pause after a walk is at least this many times its duration, to limit the use of the processor


class MessageSink(Protocol):
    """Receives messages."""

    @property
    def is_printing(self) -> bool:
        """Return whether each message is printed, which excludes a progress bar."""
        ...

    @property
    def is_dry(self) -> bool:
        """Return whether messages are not sent."""
        ...

    def send(self, messages: Iterable[AnnouncementMessage]) -> Iterator[str | None]:
        """Send messages; yield for each its problem, or None."""
        ...


@dataclass(frozen=True, slots=True)
class PrintingSink:
    """Prints messages."""

    as_json: bool
    is_printing: bool = True
    is_dry: bool = True

    def send(self, messages: Iterable[AnnouncementMessage]) -> Iterator[str | None]:
        """Print each message."""
        for message in messages:
            print_line(json.dumps(message.as_document()) if self.as_json else message_line(message))
            sys.stdout.flush()
            yield None


@dataclass(frozen=True, slots=True)
class PublishingSink:
    """Publishes messages to an exchange; `as_json` also prints them."""

    client: "ExchangeClient"
    exchange: ExchangeName
    as_json: bool
    is_dry: bool = False

    @property
    def is_printing(self) -> bool:
        """Return whether each message is printed."""
        return self.as_json

    def send(self, messages: Iterable[AnnouncementMessage]) -> Iterator[str | None]:
        """Publish messages, and print those that are published."""
        publications = (Publication(one.routing_key, one.body, one.headers) for one in messages)
        for posted in self.client.publish_all(self.exchange, publications):
            message = AnnouncementMessage(
                self.exchange, posted.request.routing_key, posted.request.body, posted.request.headers
            )
            if posted.message_id is None:
                yield f"{message_line(message)}: {posted.problem or 'SQS returned no result for it'}"
                continue
            if self.as_json:
                print_line(json.dumps({**message.as_document(), "message_id": posted.message_id}))
                sys.stdout.flush()
            yield None


def message_line(message: AnnouncementMessage) -> str:
    """Return a message as a line of text, with unprintable characters escaped."""
    text = f"{message.exchange}  {message.routing_key}  {message.body}"
    return text.encode(errors="backslashreplace").decode()


@dataclass(slots=True)
class PostRun:
    """One run of the command; `problems` counts the paths and messages that could not be announced."""

    settings: PostSettings
    paths: tuple[str, ...]
    recursive: bool
    watches: bool
    existing: bool
    seconds_between: float
    problems: int = 0
    announced: int = 0
    _pending: list[FileEntry] = field(default_factory=list)

    def run(self, sink: MessageSink) -> None:
        """Announce all entries once, or with `watches` changes until a signal arrives."""
        if self.watches:
            self._watch(sink)
            return
        shows = sys.stderr.isatty() and not sink.is_printing
        with _progress(self._entries) if shows else nullcontext(self._entries()) as entries:
            self._send(sink, entries)
        self._say_count(sink)
        self._say_unread()

    def _watch(self, sink: MessageSink) -> None:
        watch, ending = TreeWatch(), Ending()
        if not self.existing:
            watch.start(self._entries())
        say(f"looks for changes every {self.seconds_between:g} s")
        with ending.awaited():
            while not ending.is_due:
                started = time.monotonic()
                self._pending += watch.changes(self._entries())
                self._send_pending(sink)
                took = time.monotonic() - started
                with ending.waiting():
                    time.sleep(max(self.seconds_between, REST_FACTOR * took))
        self._say_count(sink)
        ending.exit_if_interrupted()

    def _say_count(self, sink: MessageSink) -> None:
        messages = f"{self.announced} message{'' if self.announced == 1 else 's'}"
        say(f"{messages} printed, none sent" if sink.is_dry else f"{messages} announced to {self.settings.exchange}")

    def _say_unread(self) -> None:
        """Name the directories that were announced without their contents."""
        folders = [] if self.recursive else [path for path in self.paths if Path(path).is_dir()]
        if folders:
            say(f"without what is in {', '.join(folders)}: --recursive announces it too")

    def _send_pending(self, sink: MessageSink) -> None:
        """Announce pending changes; after an outage they are announced again, some of them twice."""
        try:
            self._send(sink, self._pending)
        except _unavailable() as error:
            say(f"cannot announce now, and tries again: {error}")
        else:
            self._pending.clear()

    def _entries(self) -> Iterator[FileEntry]:
        root = self.settings.root
        except_for = None if root is None else absolute(root)
        return walk(self.paths, recursive=self.recursive, except_for=except_for, may_be_missing=self.watches)

    def _send(self, sink: MessageSink, entries: Iterable[FileEntry]) -> None:
        for problem in sink.send(self._messages(entries)):
            if problem is None:
                self.announced += 1
            else:
                self._report(problem)

    def _messages(self, entries: Iterable[FileEntry]) -> Iterator[AnnouncementMessage]:
        for one in entries:
            try:
                contents = read_contents(one, self.settings)
                chance = random.randrange(RANDOM_IDENTITIES)  # noqa: S311 - as sr3 does; not for security
                announcements = self.settings.announcements(one, contents, now=datetime.now(UTC), random=chance)
                yield from [self.settings.message(announcement) for announcement in announcements]
            except SignalboxError as error:
                self._report(str(error))

    def _report(self, problem: str) -> None:
        self.problems += 1
        print_error(problem)


def _unavailable() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError

    from signalbox.errors import UnavailableError

    return (UnavailableError, BotoCoreError, ClientError)


@contextmanager
def _progress(entries: Callable[[], Iterator[FileEntry]]) -> Iterator[Iterable[FileEntry]]:
    """Yield the entries while a progress bar shows the number announced."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("announcing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar.track(entries(), total=sum(1 for _ in entries()))
