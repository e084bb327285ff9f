"""The splits of a stage that is removed: their sessions end, and their consumers get the original queues back."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

import boto3

from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.cli.destroy.plan import Item
from signalbox.clients.control import ControlClient
from signalbox.clients.splitting.sessions import SessionClient, SessionRequest
from signalbox.control.protocol import CommandRejected
from signalbox.errors import UnavailableError
from signalbox.splitting.ports import UnreadableSplit

# A consumer empties its temporary queues first; a killed session ends after its heartbeat.
SECONDS, PAUSE_SECONDS = 900, 2.0
ENDING, UNREADABLE = "(ending)", "(a split of another version)"


def sessions(session: boto3.Session, table: str) -> Iterator[tuple[str, str]]:
    """Yield the target and name of each session, and of each split without sessions that has not ended.

    There are none if the table is gone: an earlier removal deleted it after the last split had ended.
    """
    client = session.client("dynamodb")
    with suppress(client.exceptions.ResourceNotFoundException):
        for found in DynamoSplits(DynamoTable(client, table)).every():
            if isinstance(found, UnreadableSplit):
                yield found.target, UNREADABLE
            else:
                names = [str(one.session_id) for one in found.split.sessions] or [ENDING]
                yield from ((str(found.split.target), name) for name in names)


def end_all(
    session: boto3.Session,
    outputs: Mapping[str, str],
    found: Callable[[], Iterable[Item]],
    *,
    seconds: float = SECONDS,
) -> None:
    """End every session and wait until none is found. Raises `UnavailableError` when that takes too long."""
    deadline = time.monotonic() + seconds
    control = ControlClient(session.client("sqs"), outputs["SplitControlQueueUrl"], outputs["SplitReplyQueueUrl"])
    while items := list(found()):
        if time.monotonic() > deadline:
            targets = ", ".join(sorted({item.identifier for item in items}))
            raise UnavailableError(
                f"splits of {targets} have not ended after {seconds:g} s: `signalbox split status` shows the "
                "reason, such as messages that no consumer reads; then run this command again"
            )
        for item in items:
            if item.name not in (ENDING, UNREADABLE):
                request = SessionRequest(item.identifier, item.name, "signalbox destroy", None)
                with suppress(CommandRejected):  # it has ended since
                    SessionClient(control, request).stop()
        time.sleep(PAUSE_SECONDS)
