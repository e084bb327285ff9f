"""The notification of many sessions by their inboxes, ten in a call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from signalbox.aws.live.inbox import deduplication_id
from signalbox.aws.shared.batch_calls import send_batch
from signalbox.aws.shared.errors import translate_read_errors
from signalbox.aws.shared.settings import BACKOFF
from signalbox.backoff import Backoff
from signalbox.errors import EffectFailed
from signalbox.live.model.state import ConnectionId, Signal
from signalbox.live.session.inbox import signal_body
from signalbox.parallel import ParallelMap, serial_map
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef


@dataclass(frozen=True, slots=True)
class SqsSessionNotifier:
    """`SessionNotifier` over the queue of inboxes."""

    sqs: "SQSClient"
    queue_url: str
    parallel_map: ParallelMap = serial_map
    backoff: Backoff = BACKOFF

    def notify_all(self, connections: Sequence[ConnectionId], signal: Signal, *, request: str) -> None:
        """Append a signal to the inbox of each connection; the same request twice is one signal.

        Raises `EffectFailed`, after which some inboxes may have it.
        """
        body, every = signal_body(signal), sorted(set(connections))  # a call has one message of a group at most
        calls = [every[start : start + MAXIMUM_ENTRIES] for start in range(0, len(every), MAXIMUM_ENTRIES)]
        with translate_read_errors("the queue of inboxes"):
            failed = sum(self.parallel_map(lambda call: self._failed(call, body, request), calls))
        if failed:
            raise EffectFailed(f"{failed} of {len(every)} connections were not notified")

    def _failed(self, connections: Sequence[ConnectionId], body: str, request: str) -> int:
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {
                "Id": str(number),
                "MessageBody": body,
                "MessageGroupId": connection,
                "MessageDeduplicationId": deduplication_id(connection, request),
            }
            for number, connection in enumerate(connections)
        ]
        return len(send_batch(self.sqs, self.queue_url, entries, backoff=self.backoff)[1])
