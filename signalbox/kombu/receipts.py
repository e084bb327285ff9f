"""The unacknowledged messages of a connection: acknowledgements by tens, releases, and prolonged invisibility."""

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from signalbox.aws.shared.visibility import change_visibility
from signalbox.kombu.names import Namespace
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

    from signalbox.kombu.consumers import ChannelConsumer

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class ChannelReceipt:
    """The receipt of a message that was received for a channel, and for one of its consumers unless it was fetched."""

    queue_url: str
    handle: str
    channel: object
    consumer: "ChannelConsumer | None" = None


@dataclass(slots=True)
class Receipts:
    """The receipts of unacknowledged messages, by delivery tag. Thread-safe.

    SQS hides each message for `hold_seconds` at a time. `changed` is notified when a consumer may receive more. `names`
    are those of the connection.
    """

    sqs: "SQSClient"
    names: Namespace
    hold_seconds: int
    changed: threading.Condition
    _held: dict[int, ChannelReceipt] = field(default_factory=dict)
    _done: list[ChannelReceipt] = field(default_factory=list)
    _tags: Iterator[int] = field(default_factory=lambda: count(1))
    _deleting: threading.Lock = field(default_factory=threading.Lock)

    def add(self, receipt: ChannelReceipt) -> int:
        """Hold a message; return its delivery tag."""
        with self.changed:
            tag = next(self._tags)
            self._held[tag] = receipt
            return tag

    def of_channel(self, channel: object, *, up_to: float = float("inf")) -> list[int]:
        """Return the tags of the messages of a channel, or of all channels."""
        with self.changed:
            return [tag for tag, one in self._held.items() if channel in (None, one.channel) and tag <= up_to]

    def ack(self, tags: Iterable[int]) -> None:
        """Acknowledge messages: SQS deletes them a moment later, up to ten with a call."""
        with self.changed:
            self._done += self._taken(tags)
            self.changed.notify_all()

    def release(self, tags: Iterable[int]) -> None:
        """Make messages available to all consumers at once."""
        with self.changed:
            found = self._taken(tags)
            self.changed.notify_all()
        self._change_visibility(found, seconds=0)

    def settle(self, channel: object = None) -> None:
        """Delete the acknowledged messages and release the others of a channel, or of all channels."""
        held = self.of_channel(channel)
        try:
            self.flush()
        except (BotoCoreError, ClientError) as error:
            logger.warning("acknowledged messages are not deleted, and come again: %s", error)
        self.release(held)

    def notify(self) -> None:
        """Wake the threads that wait for a change."""
        with self.changed:
            self.changed.notify_all()

    def extend(self) -> None:
        """Prolong the invisibility of all messages; SQS refuses that 12 hours after a receive."""
        with self.changed:
            held = list(self._held.values())
        self._change_visibility(held, seconds=self.hold_seconds)

    def flush(self) -> None:
        """Delete the acknowledged messages. Raises boto3's errors; the next call repeats what may succeed then."""
        with self._deleting:
            with self.changed:
                done, self._done = self._done, []
            try:
                while done:
                    part = [one for one in done if one.queue_url == done[0].queue_url][:MAXIMUM_ENTRIES]
                    failed = self._delete(part)
                    # At the end, so that they do not hold up the others.
                    done = [*(one for one in done if one not in part), *failed]
                    if failed:
                        text = f"SQS failed for {len(failed)} messages"
                        raise ClientError({"Error": {"Code": "InternalError", "Message": text}}, "DeleteMessageBatch")
            finally:
                self._done += done

    def flush_until(self, closed: threading.Event) -> None:
        """Delete acknowledged messages at once, until the connection is closed."""
        while not closed.is_set():
            with self.changed:
                self.changed.wait_for(lambda: self._done or closed.is_set())
            try:
                self.flush()
            except (BotoCoreError, ClientError) as error:
                # The messages stay invisible meanwhile only if they are held; at worst they come again.
                logger.warning("acknowledged messages are not deleted yet: %s", error)
                closed.wait(1)

    def _taken(self, tags: Iterable[int]) -> list[ChannelReceipt]:
        found = [one for one in (self._held.pop(tag, None) for tag in tags) if one is not None]
        for one in found:
            if one.consumer is not None:
                one.consumer.unsettled -= 1
        return found

    def _delete(self, part: Sequence[ChannelReceipt]) -> list[ChannelReceipt]:
        """Delete messages of one queue; return those for which SQS failed by its own fault."""
        entries: Any = [{"Id": str(number), "ReceiptHandle": one.handle} for number, one in enumerate(part)]
        reply = self.sqs.delete_message_batch(QueueUrl=part[0].queue_url, Entries=entries)
        failures = reply.get("Failed", ())
        for one in failures:
            if one["SenderFault"]:
                logger.warning("an acknowledged message of %s comes again: %s", part[0].queue_url, one["Code"])
        return [part[int(one["Id"])] for one in failures if not one["SenderFault"]]

    def _change_visibility(self, receipts: Sequence[ChannelReceipt], *, seconds: int) -> None:
        for url in dict.fromkeys(one.queue_url for one in receipts):
            handles = [one.handle for one in receipts if one.queue_url == url]
            try:
                change_visibility(self.sqs, url, handles, seconds=seconds)
            except (BotoCoreError, ClientError) as error:
                logger.warning("messages of %s become visible when their time is over: %s", url, error)
