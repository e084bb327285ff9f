"""Rule: the chain of invocations that a trace header carries, and where it ends."""

import contextvars
import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from signalbox.local.emulator.weather.calls import Answer, Call, Forward
from signalbox.local.emulator.weather.rules import CHAIN_LENGTH

TRACE_HEADER = "x-amzn-trace-id"  # SDKs send it from functions since 2021, and SQS keeps it with the message
FIELD = "Lineage"
SENDS = ("SendMessage", "SendMessageBatch")
# The trace header of the call that sends messages, in the task of that call.
SENT_WITH: contextvars.ContextVar[str] = contextvars.ContextVar("sent_with", default="")


@dataclass(frozen=True, slots=True)
class Lineage:
    """How often each function ran in one chain of requests, by the function's short digest."""

    counts: Mapping[str, int]

    @classmethod
    def parse(cls, header: str) -> "Lineage":
        """Return the lineage of a trace header: `Root=…;Lineage=digest:count|digest:count`."""
        fields = dict(part.partition("=")[::2] for part in header.split(";"))
        pairs = (entry.partition(":")[::2] for entry in fields.get(FIELD, "").split("|") if entry)
        return cls({function: int(count) for function, count in pairs if count.isdigit()})

    def of(self, function: str) -> int:
        """Return how often the function of this name ran."""
        return self.counts.get(digest(function), 0)

    def after(self, function: str) -> "Lineage":
        """Return the lineage of the calls that the function makes."""
        return Lineage({**self.counts, digest(function): self.of(function) + 1})

    def header(self) -> str:
        """Return a trace header with this lineage."""
        chain = "|".join(f"{function}:{count}" for function, count in self.counts.items())
        return f"Root=1-{int(time.time()):08x}-{secrets.token_hex(12)};Sampled=0;{FIELD}={chain}"


def digest(function: str) -> str:
    """Return the short digest of a function's name."""
    return hashlib.sha256(function.encode()).hexdigest()[:8]


def lineage_of(event: Any, function: str) -> Lineage:  # noqa: ANN401 - any event
    """Return the longest chain of a function that an event with messages continues; other events begin one."""
    return max(_lineages(event), key=lambda lineage: lineage.of(function), default=Lineage({}))


def _lineages(event: Any) -> Iterable[Lineage]:  # noqa: ANN401 - any event
    records = event.get("Records") if isinstance(event, Mapping) else None
    for record in records if isinstance(records, list) else ():
        header = record.get("attributes", {}).get("AWSTraceHeader") if isinstance(record, Mapping) else None
        if header:
            yield Lineage.parse(header)


def is_looping(lineage: Lineage, function: str) -> bool:
    """Return whether the next invocation of the function is stopped."""
    return lineage.of(function) >= CHAIN_LENGTH


class TraceHeaders:
    """Keeps the trace header of a call that sends messages for the messages, as SQS does."""

    async def answer(self, call: Call, forward: Forward) -> Answer:
        """Forward the call with its header in `SENT_WITH`."""
        header = call.headers.get(TRACE_HEADER, "")
        if call.service != "sqs" or call.action not in SENDS or FIELD not in header:
            return await forward(call)
        token = SENT_WITH.set(header)
        try:
            return await forward(call)
        finally:
            SENT_WITH.reset(token)


def with_trace_header(attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the system attributes of a message that is being sent, with the call's trace header if they lack one."""
    header = SENT_WITH.get()
    return {"AWSTraceHeader": header, **attributes} if header else dict(attributes)
