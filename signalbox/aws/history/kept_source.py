"""Kept messages as the source of a replay: a stored selection fixes which, and in which order."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Generic, TypeVar

from botocore.exceptions import ClientError

from signalbox.aws.shared.errors import translate_read_errors
from signalbox.history.replay_run import SourceMessage
from signalbox.history.replay_state import InvalidReplay, ReplayId, ReplayProgress
from signalbox.kept.objects import KeptReader, read_batch
from signalbox.kept.selection import KeptSelection
from signalbox.messages import Message, MessageId

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client

Item = TypeVar("Item")
NO_LONGER_KEPT = "it is no longer kept"


@dataclass(frozen=True, slots=True)
class S3KeptSelections:
    """The stored selections of kept messages, next to the records of their replays; a selection is never replaced."""

    s3: "S3Client"
    bucket: str
    prefix: str

    def save(self, replay_id: ReplayId, selection: KeptSelection) -> str:
        """Store a selection; return its name. Raises `EffectFailed`."""
        with translate_read_errors(_description(replay_id)):
            self.s3.put_object(
                Bucket=self.bucket,
                Key=self._key(replay_id, selection.digest),
                Body=selection.text.encode(errors="surrogatepass"),
                ContentType="application/json",
            )
        return selection.digest

    def load(self, replay_id: ReplayId, name: str) -> KeptSelection:
        """Return a selection. Raises `InvalidReplay` if it has expired, and `EffectFailed`."""
        with translate_read_errors(_description(replay_id)):
            try:
                found = self.s3.get_object(Bucket=self.bucket, Key=self._key(replay_id, name))
            except ClientError as error:
                if error.response["Error"]["Code"] == "NoSuchKey":
                    raise InvalidReplay(
                        f"the list of messages of replay {str(replay_id)!r} has expired: start a new replay"
                    ) from error
                raise
            text = found["Body"].read()
        return KeptSelection.parse(text.decode(errors="surrogatepass"))

    def _key(self, replay_id: ReplayId, name: str) -> str:
        return f"{self.prefix}{replay_id}.kept-{name}.json"


@dataclass(slots=True)
class KeptSource(Generic[Item]):
    """`ReplaySource` of a selection, from `position` on; the item of a message that is no longer kept is None."""

    reader: KeptReader
    selection: KeptSelection
    position: int
    read: Callable[[Message], Item]
    _left: Iterator[tuple[str, MessageId]] | None = field(default=None, init=False)
    _key: str = field(default="", init=False)
    _messages: Mapping[MessageId, Message] = field(default_factory=dict, init=False)

    @property
    def is_repeatable(self) -> bool:
        """True: a selection never changes."""
        return True

    def take(self, count: int, progress: ReplayProgress) -> Sequence[SourceMessage[Item | None]]:  # noqa: ARG002 - used by queues
        """Return the next messages, oldest first. Raises `EffectFailed`."""
        if self._left is None:
            every = ((key, message_id) for key, ids in self.selection.ids.items() for message_id in ids)
            self._left = islice(every, self.position, None)
        return [SourceMessage(message_id, self._item(key, message_id)) for key, message_id in islice(self._left, count)]

    def discard(self, origins: Collection[str]) -> None:
        """Do nothing: a replay does not change what is kept."""

    def _item(self, key: str, message_id: MessageId) -> Item | None:
        if key != self._key:
            text = self.reader.read(key)
            messages = () if text is None else read_batch(text)
            # Of two copies with one id in an object, the first was selected; both have one body.
            self._key, self._messages = key, {one.message_id: one for one in messages}
        message = self._messages.get(message_id)
        return None if message is None else self.read(message)


def _description(replay_id: ReplayId) -> str:
    return f"the list of messages of replay {str(replay_id)!r}"
