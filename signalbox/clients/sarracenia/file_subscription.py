"""A subscription to announced files: declares its queue, prepares its directory and handles its messages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from signalbox.clients.sarracenia.downloader import Downloader, DownloadOutcome, delete_stale_files
from signalbox.clients.sarracenia.message_loop import MessageLoop, ResultDisplay, StopRequest
from signalbox.clients.sarracenia.object_source import s3_source
from signalbox.clients.sarracenia.sources import SOURCES
from signalbox.clients.sarracenia.subscriber import Subscriber
from signalbox.clients.sarracenia.subscriber_store import open_store
from signalbox.sarracenia.formats.announcement import Announcement
from signalbox.sarracenia.rights.names import parse_queue_name, sqs_name
from signalbox.sarracenia.subscription.filters import Accepted, FileFilter
from signalbox.sarracenia.subscription.limits import Limits

if TYPE_CHECKING:
    import boto3

    from signalbox.clients.exchange.client import ExchangeClient


@dataclass(frozen=True, slots=True)
class QueueDeclaration:
    """The exchange, binding patterns and settings of a queue; None leaves a setting unchanged."""

    exchange: str
    patterns: Sequence[str]
    expires: timedelta | None = None
    message_ttl: timedelta | None = None
    prefetch: int | None = None

    def declare(self, client: "ExchangeClient", queue: str) -> Mapping[str, Any]:
        """Declare the queue; return the stage's description of it."""
        return client.declare_queue(queue, expires=self.expires, message_ttl=self.message_ttl, prefetch=self.prefetch)

    def bind(self, client: "ExchangeClient", queue: str) -> Iterator[str]:
        """Bind the queue by each pattern; yield each pattern once it is bound."""
        for pattern in self.patterns:
            client.bind(self.exchange, queue, pattern)
            yield pattern


@dataclass(frozen=True, slots=True)
class FileSubscription:
    """The settings of a subscription; without `directory` files are not downloaded. Raises `InvalidQueueName`."""

    queue: str
    file_filter: FileFilter
    limits: Limits
    directory: Path | None
    state_directory: Path
    prefetch: int | None = None
    count: int | None = None
    """The number of messages after which the subscription ends; None for no end."""

    def __post_init__(self) -> None:
        parse_queue_name(self.queue)

    @property
    def state_file(self) -> Path:
        """Return the path of the subscription's store."""
        return self.state_directory / f"{sqs_name(self.queue)}.sqlite"

    @contextmanager
    def opened(
        self,
        client: "ExchangeClient",
        session: "Callable[[], boto3.Session]",
        display: ResultDisplay,
        stop: StopRequest,
    ) -> Iterator[MessageLoop]:
        """Open the store and the queue's consumer; yield the loop that handles the messages.

        `session` is called when the first file is fetched from S3.
        """
        action = file_action(self.directory, self.file_filter, session)
        with open_store(self.state_file) as store, client.consumer(self.queue, prefetch=self.prefetch) as consumer:
            subscriber = Subscriber(action, store, store, self.file_filter, self.limits)
            yield MessageLoop(consumer, store, subscriber, display, stop, self.count)


def file_action(
    directory: Path | None, file_filter: FileFilter, session: "Callable[[], boto3.Session]"
) -> Callable[[Announcement, Accepted], DownloadOutcome | None]:
    """Return the action on accepted announcements: download into a directory, or without one nothing.

    Deletes stale incomplete files from all directories of the filter.
    """
    if directory is None:
        return lambda _announced, _accepted: None
    downloader = Downloader(directory, {**SOURCES, "s3": s3_source(session)})
    for name in {"", file_filter.directory or "", *(rule.directory or "" for rule in file_filter.rules)}:
        delete_stale_files(directory / name, now=datetime.now(UTC))
    return lambda announced, accepted: downloader.apply(announced, directory=accepted.directory)
