"""Announces what is found, once or as it changes: prints it, or sends it with a progress bar."""

import json
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Protocol

from signalbox.cli.shared.output import print_error, print_line
from signalbox.cli.shared.signals import Ending
from signalbox.cli.shared.stage import say
from signalbox.clients.exchange.publisher import PublishRequest as Publication
from signalbox.clients.sarracenia.checksums import contents_of
from signalbox.clients.sarracenia.tree_walk import Watch, absolute, walk
from signalbox.errors import SignalboxError
from signalbox.sarracenia.formats.posts import Found, Post, Posting
from signalbox.sarracenia.rights.names import ExchangeName

if TYPE_CHECKING:
    from signalbox.clients.exchange.client import ExchangeClient

RANDOM_IDENTITIES = 10_000
REST = 10  # after a look, for this many times as long as it took, so that large trees do not take a whole processor


class Posts(Protocol):
    """Where messages go."""

    @property
    def prints(self) -> bool:
        """Say whether each message is printed, so that a bar would be in the way."""
        ...

    def take(self, posts: Iterable[Post]) -> Iterator[str | None]:
        """Take messages; yield of each what is wrong with it, or None."""
        ...


@dataclass(frozen=True, slots=True)
class PrintedPosts:
    """Prints messages."""

    as_json: bool
    prints: bool = True

    def take(self, posts: Iterable[Post]) -> Iterator[str | None]:
        """Print messages as they come."""
        for post in posts:
            print_line(json.dumps(post.as_document()) if self.as_json else shown(post))
            sys.stdout.flush()
            yield None


@dataclass(frozen=True, slots=True)
class SentPosts:
    """Publishes messages."""

    client: "ExchangeClient"
    exchange: ExchangeName
    as_json: bool

    @property
    def prints(self) -> bool:
        """Say whether each message is printed."""
        return self.as_json

    def take(self, posts: Iterable[Post]) -> Iterator[str | None]:
        """Publish messages, and tell of each that is."""
        publications = (Publication(post.routing_key, post.body, post.headers) for post in posts)
        for posted in self.client.publish_all(self.exchange, publications):
            post = Post(self.exchange, posted.request.routing_key, posted.request.body, posted.request.headers)
            if posted.message_id is None:
                yield f"{shown(post)}: {posted.problem or 'SQS does not say what became of it'}"
                continue
            if self.as_json:
                print_line(json.dumps({**post.as_document(), "message_id": posted.message_id}))
                sys.stdout.flush()
            yield None


def shown(post: Post) -> str:
    """Return a message for people."""
    text = f"{post.exchange}  {post.routing_key}  {post.body}"
    return text.encode(errors="backslashreplace").decode()


@dataclass(slots=True)
class Run:
    """One run of the command; `problems` are how many paths or messages could not be announced."""

    posting: Posting
    paths: tuple[str, ...]
    recursive: bool
    watches: bool
    existing: bool
    seconds_between: float
    problems: int = 0
    announced: int = 0
    _pending: list[Found] = field(default_factory=list)

    def carry_out(self, posts: Posts) -> None:
        """Announce what there is, or what changes until a signal comes."""
        if self.watches:
            self._watch(posts)
            return
        shows = sys.stderr.isatty() and not posts.prints
        with _progress(self._found) if shows else nullcontext(self._found()) as found:
            self._take(posts, found)
        if shows:
            say(f"{self.announced} messages announced")

    def _watch(self, posts: Posts) -> None:
        watch, ending = Watch(), Ending()
        if not self.existing:
            watch.start(self._found())
        say(f"looks for changes every {self.seconds_between:g} s")
        with ending.awaited():
            while not ending.is_due:
                started = time.monotonic()
                self._pending += watch.changes(self._found())
                self._take_pending(posts)
                took = time.monotonic() - started
                with ending.waiting():
                    time.sleep(max(self.seconds_between, REST * took))
        say(f"{self.announced} messages announced")

    def _take_pending(self, posts: Posts) -> None:
        """Announce what changed; what cannot be sent now is announced later, some of it twice."""
        try:
            self._take(posts, self._pending)
        except _unavailable() as error:
            say(f"cannot announce now, and tries again: {error}")
        else:
            self._pending.clear()

    def _found(self) -> Iterator[Found]:
        root = self.posting.root
        except_for = None if root is None else absolute(root)
        return walk(self.paths, recursive=self.recursive, except_for=except_for, may_be_missing=self.watches)

    def _take(self, posts: Posts, found: Iterable[Found]) -> None:
        for problem in posts.take(self._posts(found)):
            if problem is None:
                self.announced += 1
            else:
                self._tell(problem)

    def _posts(self, found: Iterable[Found]) -> Iterator[Post]:
        for one in found:
            try:
                contents = contents_of(one, self.posting)
                chance = random.randrange(RANDOM_IDENTITIES)  # noqa: S311 - as sr3's; nothing is kept secret by it
                told = self.posting.announcements(one, contents, now=datetime.now(UTC), random=chance)
                yield from [self.posting.post(each) for each in told]
            except SignalboxError as error:
                self._tell(str(error))

    def _tell(self, problem: str) -> None:
        self.problems += 1
        print_error(problem)


def _unavailable() -> tuple[type[Exception], ...]:
    from botocore.exceptions import BotoCoreError, ClientError

    from signalbox.errors import UnavailableError

    return (UnavailableError, BotoCoreError, ClientError)


@contextmanager
def _progress(found: Callable[[], Iterator[Found]]) -> Iterator[Iterable[Found]]:
    """Give what is found, and show on a terminal how much of it is announced."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("announcing"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield bar.track(found(), total=sum(1 for _ in found()))
