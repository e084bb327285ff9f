"""The stage that a replay works on: its clients, its records, and where messages go."""

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from glue_jobs.shared.lake import Lake, session
from signalbox.aws.exchange.exchanges import DynamoExchanges, DynamoQueues
from signalbox.aws.history.replay_records import S3Records
from signalbox.aws.shared.queue_sender import SqsQueueSender
from signalbox.exchange.messages.replayed_messages import OriginalMessage, replayed_copy, replayed_publication
from signalbox.exchange.model.bindings import DeclaredName
from signalbox.exchange.model.names import StageNames
from signalbox.exchange.routing.resender import Resender
from signalbox.history.replay_state import LARGEST_CLAIM, InvalidReplay, ReplayId
from signalbox.messages import Message
from signalbox.queues import is_fifo
from signalbox.sarracenia.rights.names import parse_exchange_name, parse_queue_name
from signalbox.sending import MAXIMUM_ENTRIES

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table
    from mypy_boto3_s3.client import S3Client
    from mypy_boto3_sqs.client import SQSClient

Writer = Callable[[OriginalMessage], Message]


class Place:
    """The stage, with clients that are made when they are needed first."""

    def __init__(self, given: Mapping[str, str]) -> None:
        """Take the job's arguments."""
        self.given, self.region = given, given["region"]
        prefix = given["exchange_prefix"]
        self.names = StageNames(given["stage"], "" if prefix == "-" else prefix)

    @cached_property
    def lake(self) -> Lake:
        """The Iceberg tables; Spark starts here."""
        return Lake(session("replay"), self.given["database"])

    @cached_property
    def records(self) -> S3Records:
        """The records of replays."""
        return S3Records(self.s3, self.given["bucket"], self.given["prefix"])

    @cached_property
    def s3(self) -> "S3Client":
        """S3, which has the records."""
        return boto3.client("s3", region_name=self.region)

    @cached_property
    def sqs(self) -> "SQSClient":
        """SQS for what may be asked twice."""
        return boto3.client("sqs", region_name=self.region)

    @cached_property
    def sqs_once(self) -> "SQSClient":
        """SQS for what may be asked once only."""
        return boto3.client("sqs", region_name=self.region, config=Config(retries={"total_max_attempts": 1}))

    @cached_property
    def sender(self) -> str:
        """Who sends, as SQS knows him: the group on exchanges that keep the order of each publisher."""
        return boto3.client("sts", region_name=self.region).get_caller_identity()["UserId"]

    @cached_property
    def threads(self) -> ThreadPoolExecutor:
        """Threads for calls that need not follow one another; more than a claim has would have nothing to do."""
        return ThreadPoolExecutor(LARGEST_CLAIM // MAXIMUM_ENTRIES)

    @property
    def table(self) -> "Table":
        """The table of exchanges and queues."""
        return boto3.resource("dynamodb", region_name=self.region).Table(self.given["exchange_table"])

    def queue_url(self, name: str) -> str:
        """Return a queue's URL."""
        return self.sqs.get_queue_url(QueueName=name)["QueueUrl"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where messages go, and how they are written for it."""

    place: Place
    name: str
    replay_id: ReplayId

    def writer(self) -> Writer:
        """Return what makes a message of an original. Raises `InvalidReplay` when nothing is declared by this name."""
        return self._for_exchange() if self.name.startswith("x") else self._for_queue()

    def resender(self) -> Resender:
        """Return what sends to the queue behind it."""
        queue = self.place.names.queue(self.name)
        # A call that nobody answered is made again only where that cannot make two messages of one.
        sqs = self.place.sqs if is_fifo(queue) else self.place.sqs_once
        sender = SqsQueueSender(sqs, self.place.queue_url(queue).removesuffix(queue))
        return Resender(sender, queue, time.sleep, self.place.threads.map)

    def _for_exchange(self) -> Writer:
        exchange = DynamoExchanges(self.place.table).find(parse_exchange_name(self.name))
        if exchange is None:
            raise InvalidReplay(f"exchange {self.name!r} is not declared: `signalbox exchange declare {self.name}`")
        order_by, sender = exchange.order_by, self.place.sender if exchange.order_by else ""
        return lambda original: replayed_publication(original, self.replay_id, order_by=order_by, sender=sender)

    def _for_queue(self) -> Writer:
        queue = DynamoQueues(self.place.table).find(DeclaredName(parse_queue_name(self.name)))
        if queue is None:
            raise InvalidReplay(f"queue {self.name!r} is not declared: `signalbox queue declare {self.name}`")
        ttl = queue.settings.message_ttl

        def copy(original: OriginalMessage) -> Message:
            expires_at = None if ttl is None else datetime.now(UTC) + ttl
            return replayed_copy(original, self.replay_id, into=self.name, expires_at=expires_at)

        return copy
