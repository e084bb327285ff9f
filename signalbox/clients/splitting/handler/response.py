"""The outcome of a batch: which messages Lambda deletes after an invocation, and which stay in the queue."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from signalbox.errors import RejectedError

FAILURES, IDENTIFIER = "batchItemFailures", "itemIdentifier"


class InvalidBatchResponse(RejectedError):
    """Raised when a function's response does not have the form of a partial batch response."""


@dataclass(frozen=True, slots=True)
class InvocationEnd:
    """The end of an invocation: a response as JSON text, or an error."""

    response: str = "null"
    error: str | None = None


@dataclass(frozen=True, slots=True)
class BatchOutcome:
    """The ids of a batch's messages, in its order; those in `kept` follow a failed message of their group."""

    deleted: tuple[str, ...]
    failed: tuple[str, ...]
    kept: tuple[str, ...] = ()
    reason: str | None = None


def batch_outcome(
    invocation: InvocationEnd, messages: Sequence[Mapping[str, Any]], *, reports_failures: bool
) -> BatchOutcome:
    """Return the outcome of each message; an error or an invalid response fails the whole batch.

    `reports_failures`: the mapping has the response type `ReportBatchItemFailures`; otherwise responses are ignored.
    """
    ids = tuple(message["MessageId"] for message in messages)
    if invocation.error is not None:
        return BatchOutcome((), ids, reason=invocation.error)
    if not reports_failures:
        return BatchOutcome(ids, ())
    try:
        failed = failed_items(invocation.response, ids)
    except InvalidBatchResponse as error:
        return BatchOutcome((), ids, reason=str(error))
    kept = _later_of_failed_groups(messages, failed)
    deleted = tuple(one for one in ids if one not in failed and one not in kept)
    return BatchOutcome(deleted, tuple(one for one in ids if one in failed), kept)


def failed_items(response: str, ids: Collection[str]) -> frozenset[str]:
    """Return the ids that a response reports as failed. Raises `InvalidBatchResponse`.

    Lambda takes a batch as failed for an invalid JSON response, an identifier that is empty, null, of another key or of
    no message in the batch, and as successful for an empty or missing response or list:
    https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#sqs-batchfailurereporting-conditions
    """
    failures = _failures(response)
    return frozenset(_identifier(one, ids) for one in failures)


def _failures(response: str) -> Sequence[object]:
    try:
        value = json.loads(response or "null")
    except ValueError as error:
        raise InvalidBatchResponse("the response is not JSON") from error
    if value is None:
        return ()
    if not isinstance(value, dict):
        raise InvalidBatchResponse(f"the response is no object with {FAILURES!r}: {_short(value)}")
    failures = value.get(FAILURES)
    if failures is None:
        return ()
    if not isinstance(failures, list):
        raise InvalidBatchResponse(f"{FAILURES!r} is not a list: {_short(failures)}")
    return failures


def _identifier(failure: object, ids: Collection[str]) -> str:
    identifier = failure.get(IDENTIFIER) if isinstance(failure, dict) else None
    if not isinstance(identifier, str) or not identifier:
        raise InvalidBatchResponse(f"an entry of {FAILURES!r} has no {IDENTIFIER!r}: {_short(failure)}")
    if identifier not in ids:
        raise InvalidBatchResponse(f"{IDENTIFIER} {identifier[:100]!r} is no message of the batch")
    return identifier


def _later_of_failed_groups(messages: Sequence[Mapping[str, Any]], failed: Collection[str]) -> tuple[str, ...]:
    groups, kept = set(), []
    for message in messages:
        group = message.get("Attributes", {}).get("MessageGroupId") if is_ordered(message) else None
        if message["MessageId"] in failed:
            groups.add(group)
        elif group is not None and group in groups:
            kept.append(message["MessageId"])
    return tuple(kept)


def is_ordered(message: Mapping[str, Any]) -> bool:
    """Return whether a message is of a FIFO queue: a standard queue's may have a group too, without order."""
    return "SequenceNumber" in message.get("Attributes", {})


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 100 else f"{text[:100]}…"  # noqa: PLR2004 - enough to recognise it
