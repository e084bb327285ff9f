"""The time to write history events: the adapter and boto3 with a local endpoint that responds immediately."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3

from benchmarks.shared.figures import Summary, summary
from signalbox.aws.history.firehose import DeliveryStream, FirehoseHistory, Overflow
from signalbox.history.event import HistoryEvent

CALLS = 300
BATCHES = (1, 10, 100)


@dataclass(frozen=True, slots=True)
class Writing:
    """Wall-clock and processor milliseconds of a call with `events` events, without network and Firehose."""

    events: int
    milliseconds: Summary
    processor_milliseconds: Summary


def measure() -> Iterator[Writing]:
    """Yield the times of each batch size."""
    with _endpoint() as url:
        firehose = boto3.client(
            "firehose", endpoint_url=url, region_name="eu-central-1", aws_access_key_id="a", aws_secret_access_key="b"
        )
        history = FirehoseHistory(DeliveryStream(firehose, "events"), Overflow(lambda: boto3.client("sqs"), ""))
        for size in BATCHES:
            history.write(_events(size))
            calls = [_timed(history, _events(size)) for _ in range(CALLS)]
            clock, processor = (summary(times) for times in zip(*calls, strict=True))
            yield Writing(size, clock, processor)  # type: ignore[arg-type]  # never empty


def _timed(history: FirehoseHistory, events: list[HistoryEvent]) -> tuple[float, float]:
    began, began_working = time.perf_counter(), time.thread_time()
    history.write(events)
    return (time.perf_counter() - began) * 1000, (time.thread_time() - began_working) * 1000


def _events(count: int) -> list[HistoryEvent]:
    return [
        HistoryEvent(
            event_id=f"routed:{number}:q_orders:delivered",
            occurred_at=datetime.now(UTC),
            capability="exchange",
            kind="routed",
            outcome="delivered",
            message_id=f"{number:032x}",
            topic="shop.3.orders.17",
            sequence=number,
            source="events.fifo",
            destination="q_orders",
            size_bytes=1234,
            latency_ms=12,
            attempt=1,
        )
        for number in range(count)
    ]


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # the response in one packet

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"FailedPutCount": 0, "RequestResponses": [{"RecordId": "1"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def _endpoint() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
