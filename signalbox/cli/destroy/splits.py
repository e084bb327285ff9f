"""The splits of a stage that is removed: their sessions end, and their consumers get the original queues back."""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from signalbox.errors import UnavailableError

if TYPE_CHECKING:
    import boto3

    from signalbox.clients.control import ControlClient

# A consumer empties its temporary queues first; a killed session ends after its heartbeat.
SECONDS, PAUSE_SECONDS = 900, 2.0


def sessions(session: "boto3.Session", table: str) -> Iterator[tuple[str, str]]:
    """Yield the target and name of each session, and of each split without sessions that has not ended.

    There are none if the table is gone: an earlier removal deleted it after the last split had ended.
    """
    from signalbox.aws.shared.dynamodb import DynamoTable
    from signalbox.aws.splitting.splits import DynamoSplits
    from signalbox.splitting.ports import UnreadableSplit

    client = session.client("dynamodb")
    with suppress(client.exceptions.ResourceNotFoundException):
        for found in DynamoSplits(DynamoTable(client, table)).every():
            if isinstance(found, UnreadableSplit):
                yield found.target, "(a split of another version)"
            else:
                names = [str(one.session_id) for one in found.split.sessions] or ["(ending)"]
                yield from ((str(found.split.target), name) for name in names)


def end_all(session: "boto3.Session", outputs: Mapping[str, str], *, seconds: float = SECONDS) -> None:
    """End every session and wait until no split is left. Raises `UnavailableError` when that takes too long."""
    from signalbox.clients.control import ControlClient
    from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
    from signalbox.control.protocol import CommandRejected

    deadline = time.monotonic() + seconds
    control = ControlClient(session.client("sqs"), outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])
    while splits := _splits(control):
        if time.monotonic() > deadline:
            targets = ", ".join(split["target"] for split in splits)
            raise UnavailableError(
                f"splits of {targets} have not ended after {seconds:g} s: `signalbox split status` shows the "
                "reason, such as messages that no consumer reads; then run this command again"
            )
        for split in splits:
            for one in split["sessions"]:
                request = SessionRequest(split["target"], one["session"], "signalbox destroy", None)
                with suppress(CommandRejected):  # it has ended since the status
                    SessionClient(control, request).stop()
        time.sleep(PAUSE_SECONDS)


def _splits(control: "ControlClient") -> list[dict[str, Any]]:
    status = control.ask("status", {})
    return list(status["splits"]) if isinstance(status, dict) else []
