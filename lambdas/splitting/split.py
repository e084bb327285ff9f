"""The function `split`: forwards messages of split queues to sessions and to the deployed consumer."""

import logging
import random
from collections.abc import Collection
from datetime import timedelta
from functools import cache, partial
from typing import Any, Protocol

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lambdas.shared import instance
from lambdas.shared.poison import fail_if_stuck
from lambdas.shared.records import in_flight, messages_of
from lambdas.shared.threads import parallel_map
from lambdas.splitting import wiring
from signalbox.aws.splitting.locks import DynamoLedger, DynamoQueueUses
from signalbox.aws.splitting.objects import S3ObjectMetadata
from signalbox.aws.splitting.splits import DynamoSplits
from signalbox.errors import SignalboxError, UnavailableError
from signalbox.filters.languages import Languages
from signalbox.kept.objects import NotKept
from signalbox.queues import QueueName
from signalbox.splitting.forwarding.batch_sender import BatchSender
from signalbox.splitting.forwarding.decider import RECORD_AGE, Decider, FilterLimits, SplitUnknown
from signalbox.splitting.forwarding.splitter import Splitter
from signalbox.splitting.forwarding.use_recorder import UseRecorder
from signalbox.splitting.model.records import UnreadableRecord

logger = logging.getLogger(__name__)

# The share of the function's timeout that all filters may use: sending ten messages to ten queues needs the rest.
FILTER_SHARE = 0.5
# The share of it in which messages of a group are begun after the half in which failed calls are repeated.
SENDING_SHARE = 0.25
# The share of it in which S3 calls begin, and how long each may take to connect and to answer: messages are forwarded
# without metadata while S3 does not answer.
PATIENCE = 0.1
# A call of DynamoDB that hangs or is refused fails within the time-out, so that the function can stop the forwarding.
IN_TIME = Config(retries={"mode": "standard", "total_max_attempts": 3}, connect_timeout=1, read_timeout=1)


class Context(Protocol):
    """Lambda's context of an invocation."""

    @property
    def invoked_function_arn(self) -> str:
        """Return the ARN of this function."""


def handler(event: dict[str, Any], context: Context) -> dict[str, Any]:
    """Return the records that could not be forwarded and stay in flight.

    Raises `UnavailableError` when none was forwarded, for the fifth time, and the errors of services, which raise the
    alarm on errors.
    """
    instance.begin(context)
    records = event["Records"]
    original = QueueName(records[0]["eventSourceARN"].rpartition(":")[2])
    messages = messages_of(records)
    try:
        forwarded = _splitter().forward(messages, original)
    except (UnavailableError, BotoCoreError, ClientError) as error:
        logger.exception("%d messages of queue %s stay in flight", len(messages), original)
        _stop_forwarding(str(records[0]["eventSourceARN"]), context.invoked_function_arn)
        if not isinstance(error, SplitUnknown | UnreadableRecord | NotKept):
            raise
        return _left_in_flight(records, [message.message_id for message in messages])
    for session in forwarded.cancelled:
        logger.warning("session %s is ended: its filters were stopped or cannot be read", session)
    return _left_in_flight(records, forwarded.not_done)


def _stop_forwarding(queue_arn: str, function_arn: str) -> None:
    """Stop receiving messages that cannot be forwarded: each receive counts for the redrive policy of their owner.

    `control` starts it again when it has read the record.
    """
    from signalbox.aws.splitting.forwarders import LambdaForwarders  # noqa: PLC0415 - rarely used

    prefix, colon, name = queue_arn.rpartition(":")
    try:
        LambdaForwarders(instance.functions(), function_arn, prefix + colon).stop(QueueName(name))
    except SignalboxError:
        logger.exception("messages of queue %s are received again", name)


def _left_in_flight(records: list[dict[str, Any]], left: Collection[str]) -> dict[str, Any]:
    fail_if_stuck(records, left)
    return in_flight(left)


@cache
def _splitter() -> Splitter:
    timeout = timedelta(seconds=instance.settings().number("SPLIT_TIMEOUT_SECONDS"))
    table, now = instance.table("SPLIT_TABLE", IN_TIME), instance.CLOCK.now
    uses = UseRecorder(DynamoQueueUses(table), now)
    limits = FilterLimits(Languages(), total=timeout * FILTER_SHARE, settle=timeout + RECORD_AGE)
    objects = S3ObjectMetadata(
        partial(wiring.s3, timeout * PATIENCE),
        wiring.buckets(),
        instance.CLOCK,
        random.random,
        patience=timeout * PATIENCE,
        parallel_map=parallel_map,
    )
    latest = -(timeout * SENDING_SHARE).total_seconds()
    sender = BatchSender(
        wiring.sender(),
        uses,
        wiring.dead_letters(),
        DynamoLedger(table),
        wiring.queues(),
        now,
        is_late=lambda: instance.seconds_left() < latest,
    )
    return Splitter(
        Decider(DynamoSplits(table), uses, limits, now, objects), wiring.kept(), sender, instance.record, now
    )
