"""The stage of a replay with its clients and records, and the destination of the messages."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from glue_jobs.shared.lake import Lake, spark_session
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.history.firehose import DeliveryStream
from signalbox.aws.history.replay_records import S3ReplayRecords
from signalbox.aws.shared.dynamodb import DynamoTable
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.exchange.messages.replayed_messages import (
    OriginalMessage,
    Replayable,
    replayed_copy,
    replayed_message,
    replayed_publication,
)
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.routing.resender import Resender
from signalbox.history.replay_state import MAX_CLAIM_SIZE, InvalidReplay, ReplayId
from signalbox.messages import Message
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import parse_exchange_name, parse_queue_name
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sqs.client import SQSClient

MessageBuilder = Callable[[Replayable], Message]


class ReplayStage:
    """The stage of a replay; clients are created at their first use."""

    def __init__(self, arguments: Mapping[str, str]) -> None:
        """Initialize with the job's arguments."""
        self.arguments, self.region = arguments, arguments["region"]
        prefix = arguments["exchange_prefix"]
        self.names = StageNames(arguments["stage"], "" if prefix == "-" else prefix)

    @cached_property
    def lake(self) -> Lake:
        """The Iceberg tables; the first use starts Spark."""
        return Lake(spark_session("replay"), self.arguments["database"])

    @cached_property
    def records(self) -> S3ReplayRecords:
        """The store of replay records."""
        return S3ReplayRecords(self.s3, self.arguments["bucket"], self.arguments["prefix"])

    @cached_property
    def s3(self) -> "S3Client":
        """The S3 client for the records."""
        return boto3.client("s3", region_name=self.region)

    @cached_property
    def stream(self) -> DeliveryStream:
        """The delivery stream of the history's events."""
        return DeliveryStream(boto3.client("firehose", region_name=self.region), self.arguments["stream"])

    @cached_property
    def sqs(self) -> "SQSClient":
        """The SQS client for idempotent calls, which botocore may retry."""
        return boto3.client("sqs", region_name=self.region)

    @cached_property
    def sqs_once(self) -> "SQSClient":
        """The SQS client for calls that must not be retried."""
        return boto3.client("sqs", region_name=self.region, config=Config(retries={"total_max_attempts": 1}))

    @cached_property
    def sender(self) -> str:
        """The SenderId of this job's role, the message group on exchanges that keep the order of each publisher."""
        return boto3.client("sts", region_name=self.region).get_caller_identity()["UserId"]

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for independent calls, as many as a claim has batches."""
        return ThreadPoolExecutor(MAX_CLAIM_SIZE // MAXIMUM_ENTRIES)

    @property
    def table(self) -> DynamoTable:
        """The DynamoDB table of exchanges and queues."""
        return DynamoTable(boto3.client("dynamodb", region_name=self.region), self.arguments["exchange_table"])

    def queue_url(self, name: str) -> str:
        """Return a queue's URL."""
        return self.sqs.get_queue_url(QueueName=name)["QueueUrl"]


@dataclass(frozen=True, slots=True)
class Destination:
    """The exchange or queue that receives a replay's messages."""

    stage: ReplayStage
    name: str
    replay_id: ReplayId

    def message_builder(self) -> MessageBuilder:
        """Return the builder of messages from originals. Raises `InvalidReplay` if `name` is not declared."""
        write = self._for_exchange() if self.name.startswith("x") else self._for_queue()

        def message(original: Replayable) -> Message:
            if isinstance(original, OriginalMessage):
                return write(original)
            return replayed_message(original, self.replay_id, into=self.name)

        return message

    def resender(self) -> Resender:
        """Return the sender to the destination's queue."""
        queue = self.stage.names.queue(self.name)
        # A call without a response is repeated only where that cannot duplicate a message.
        sqs = self.stage.sqs if is_fifo(queue) else self.stage.sqs_once
        sender = SqsQueueSender(sqs, self.stage.queue_url(queue).removesuffix(queue))
        return Resender(sender, queue, time.sleep, self.stage.threads.map)

    def _for_exchange(self) -> Callable[[OriginalMessage], Message]:
        exchange = DynamoExchanges(self.stage.table).find(parse_exchange_name(self.name))
        if exchange is None:
            raise InvalidReplay(f"exchange {self.name!r} is not declared: `signalbox exchange declare {self.name}`")
        order_by, sender = exchange.order_by, self.stage.sender if exchange.order_by else ""
        return lambda original: replayed_publication(original, self.replay_id, order_by=order_by, sender=sender)

    def _for_queue(self) -> Callable[[OriginalMessage], Message]:
        queue = DynamoQueues(self.stage.table).find(DeclaredName(parse_queue_name(self.name)))
        if queue is None:
            raise InvalidReplay(f"queue {self.name!r} is not declared: `signalbox queue declare {self.name}`")
        ttl, group_by = queue.settings.message_ttl, queue.settings.group_by

        def copy(original: OriginalMessage) -> Message:
            expires_at = None if ttl is None else datetime.now(UTC) + ttl
            return replayed_copy(original, self.replay_id, into=self.name, expires_at=expires_at, group_by=group_by)

        return copy
