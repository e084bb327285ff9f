"""Patch: Firehose buffers records and delivers many in one object, as on AWS.

MiniStack delivers each record as an object of its own, converted to Parquet, before PutRecordBatch returns: a call
takes two seconds when twenty callers wait.
"""

import contextvars
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from signalbox.local.emulator.patches.patch import Patch, original

DELIVER = "ministack.services.firehose:_deliver_records_to_s3"
STATE = "ministack.services.firehose:get_state"
DELIVERY_SECONDS = 3.0  # the buffering interval; on AWS it is a setting of the delivery stream

Entry = dict[str, Any]  # a delivery stream, or a destination of one, as MiniStack keeps it
Record = tuple[str, bytes]  # id and data
Deliver = Callable[[Entry, Entry, list[Record]], None]


@dataclass(frozen=True, slots=True)
class PendingRecords:
    """The data for one destination of a delivery stream, with the account and region of the first call."""

    stream: Entry
    destination: Entry
    context: contextvars.Context
    data: list[bytes]


class DeliveryBuffer:
    """Firehose's buffer: records by destination."""

    def __init__(self, deliver: Deliver) -> None:
        self._deliver = deliver
        self._lock = threading.Lock()
        self._pending: dict[tuple[str, str], PendingRecords] = {}

    def put(self, stream: Entry, destination: Entry, records: list[Record]) -> None:
        """Buffer records; takes the arguments of MiniStack's own delivery."""
        with self._lock:
            key = (stream["arn"], destination["id"])
            if key not in self._pending:
                self._pending[key] = PendingRecords(stream, destination, contextvars.copy_context(), [])
            self._pending[key].data.extend(data for _, data in records)

    def flush(self) -> None:
        """Deliver all buffered records, as one record for each destination."""
        with self._lock:
            flushed, self._pending = self._pending, {}
        for pending in flushed.values():
            records = [("gathered", b"".join(pending.data))]
            pending.context.run(self._deliver, pending.stream, pending.destination, records)

    def flush_forever(self, every_seconds: float) -> None:
        """Flush again and again until the process ends."""
        while True:
            time.sleep(every_seconds)
            self.flush()


def flushing(get_state: Callable[[], Entry], buffer: DeliveryBuffer) -> Callable[[], Entry]:
    """Return a `get_state`, which an emulator calls when it ends, that delivers what is buffered first."""

    def flush_and_get_state() -> Entry:
        buffer.flush()
        return get_state()

    return flush_and_get_state


def _replacements() -> Mapping[str, object]:
    buffer = DeliveryBuffer(original(DELIVER))
    threading.Thread(target=buffer.flush_forever, args=(DELIVERY_SECONDS,), daemon=True).start()
    return {DELIVER: buffer.put, STATE: flushing(original(STATE), buffer)}


PATCH = Patch(sources={DELIVER: "1f7d459024276df3", STATE: "7eee8e2afb143f27"}, replacements=_replacements)
