"""The clients of the rendezvous benchmark: upstream's if Go is available, else Signalbox's with the same steps."""

import json
import os
import secrets
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from benchmarks.shared.sides import Side
from signalbox.clients.rendezvous.client import SqsRendezvous
from signalbox.clients.rendezvous.simulator import sample_answer, sample_offer
from signalbox.errors import RejectedError, UnavailableError
from signalbox.rendezvous.wire.nat import Nat
from signalbox.rendezvous.wire.offer import offer_body

if TYPE_CHECKING:
    from mypy_boto3_sqs.client import SQSClient

LONGEST_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Exchange:
    """The result of one rendezvous at its client; `inside_ms` is the time from the sent offer to the queued reply."""

    client_ms: float
    inside_ms: float | None
    error: str
    is_right: bool
    """True if an answer arrived and is the proxy's answer to this offer."""
    calls: Mapping[str, int]


Clients = Callable[[Side, int, int], list[Exchange]]
"""Execute rendezvous at a side; the parameters are the side, their number and the number at a time."""


def real_clients(program: Path) -> Clients:
    """Return the clients that run upstream's code."""

    def exchange(side: Side, count: int, at_once: int) -> list[Exchange]:
        offers = _offers(count)
        done = subprocess.run(
            [str(program), "-queue", side.client_queue_url, "-at-once", str(at_once)],
            env=_environment(side),
            input="".join(f"{offer}\n" for offer in offers),
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_SECONDS,
        )
        if done.returncode:
            raise UnavailableError(f"upstream's client failed: {done.stderr.strip()[-300:]}")
        return [_exchange(json.loads(line), offers) for line in done.stdout.splitlines()]

    return exchange


def _offers(count: int) -> list[str]:
    return [sample_offer(secrets.token_hex(8)) for _ in range(count)]


def _environment(side: Side) -> dict[str, str]:
    return {
        "PATH": os.defpath,
        "AWS_ENDPOINT_URL": side.endpoint_url,
        "AWS_EC2_METADATA_DISABLED": "true",
        "SNOWFLAKE_SQSCREDS": side.encoded_credentials,
    }


def _exchange(result: Mapping[str, Any], offers: list[str]) -> Exchange:
    expected = json.loads(sample_answer(offers[result["index"]]))["sdp"]
    return Exchange(
        client_ms=result["client_ms"],
        inside_ms=result["inside_ms"],
        error=result["error"],
        is_right=result["answer"] == expected,
        calls=result["calls"],
    )


def our_clients(side: Side, count: int, at_once: int) -> list[Exchange]:
    """Execute rendezvous with Signalbox's client library."""
    sqs = side.session().client("sqs")
    with ThreadPoolExecutor(at_once) as threads:
        return list(threads.map(lambda offer: _exchange_ours(sqs, side, offer), _offers(count)))


@dataclass(slots=True)
class _Observer:
    """An SQS client that records the calls and times of one rendezvous."""

    inner: "SQSClient"
    sent_at: float = 0
    arrived_at: float | None = None
    calls: Counter[str] = field(default_factory=Counter)

    @property
    def exceptions(self) -> Any:  # noqa: ANN401 - boto3's own
        return self.inner.exceptions

    def send_message(self, **arguments: Any) -> Any:  # noqa: ANN401 - boto3's own
        self.calls["SendMessage"] += 1
        self.sent_at = time.time()
        return self.inner.send_message(**arguments)

    def get_queue_url(self, **arguments: Any) -> Any:  # noqa: ANN401 - boto3's own
        self.calls["GetQueueUrl"] += 1
        return self.inner.get_queue_url(**arguments)

    def receive_message(self, **arguments: Any) -> Any:  # noqa: ANN401 - boto3's own
        self.calls["ReceiveMessage"] += 1
        received = self.inner.receive_message(**arguments, MessageSystemAttributeNames=["SentTimestamp"])
        for message in received.get("Messages", ()):
            self.arrived_at = int(message["Attributes"]["SentTimestamp"]) / 1000
        return received


def _exchange_ours(sqs: "SQSClient", side: Side, offer: str) -> Exchange:
    observer = _Observer(sqs)
    answer, error, started = "", "", time.monotonic()
    try:
        rendezvous = SqsRendezvous(cast("SQSClient", observer), side.queue_url)
        answer = rendezvous.exchange(offer_body(offer, Nat.UNRESTRICTED)).session_description
    except (RejectedError, UnavailableError) as problem:
        error = str(problem)
    inside = None if observer.arrived_at is None else (observer.arrived_at - observer.sent_at) * 1000
    return Exchange(
        client_ms=(time.monotonic() - started) * 1000,
        inside_ms=inside,
        error=error,
        is_right=answer == sample_answer(offer),
        calls=observer.calls,
    )
