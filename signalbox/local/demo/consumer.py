"""Consumers for the demo and the tests: a deployed function that records its messages, and a local reader."""

import io
import json
import threading
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import boto3
from botocore.exceptions import ClientError

from signalbox.errors import UnavailableError
from signalbox.queues import FIFO_SUFFIX, QueueName, is_fifo

if TYPE_CHECKING:
    from mypy_boto3_lambda.literals import RuntimeType
    from mypy_boto3_sqs.literals import QueueAttributeNameType
    from mypy_boto3_sqs.type_defs import DeleteMessageBatchRequestEntryTypeDef


T = TypeVar("T")

SOURCE = Path(__file__).with_name("recording_consumer.py")
RUNTIME: "RuntimeType" = "python3.12"
READY_SECONDS = 30
VISIBILITY_SECONDS = 6
FUNCTION_SECONDS = 6
POLICY = "consumer"
# IAM is eventually consistent: for some seconds Lambda cannot assume a new role.
ROLE_SECONDS = 60
NEW_ROLE = ("InvalidParameterValueException",)
EXISTING = ("ResourceInUseException", "EntityAlreadyExists", "ResourceConflictException")
MISSING = (
    "ResourceNotFoundException",
    "NoSuchEntity",
    "AWS.SimpleQueueService.NonExistentQueue",
    "QueueDoesNotExist",
)


@dataclass(frozen=True, slots=True)
class Receipt:
    """A received message; `moment_ns`, in nanoseconds since 1970, orders receipts."""

    moment_ns: int
    body: str
    queue: QueueName


@dataclass(frozen=True, slots=True)
class DeployedConsumer:
    """A function `name` that reads `queues`, and the table of its receipts, which has the same name."""

    session: boto3.Session
    name: str
    queues: Mapping[QueueName, str]
    """URLs by name."""

    @classmethod
    def deploy(
        cls,
        session: boto3.Session,
        name: str,
        queues: Sequence[QueueName],
        *,
        temporary_prefix: str,
        visibility_seconds: int = VISIBILITY_SECONDS,
    ) -> "DeployedConsumer":
        """Create the queues, the table, the role, the function and its mappings, unless they exist."""
        made = {queue: make_queue(session, queue, visibility_seconds=visibility_seconds) for queue in queues}
        consumer = cls(session, name, made)
        consumer._make_table()
        consumer._make_role([*queues, f"{temporary_prefix}*"])
        consumer._make_function()
        for queue in queues:
            consumer._map(queue)
        return consumer

    @property
    def target(self) -> str:
        """The consumer's name in the commands of splitting."""
        return f"lambda/{self.name}"

    def registry(self) -> dict[str, object]:
        """Return the document that registers its queues; the id of a queue is its name without `.fifo`."""
        queues = {
            name.removesuffix(FIFO_SUFFIX): {
                "queueType": "SQS",
                "nameSource": {"eventSource": name, "envVar": variable_of(name)},
            }
            for name in self.queues
        }
        return {
            "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
            "kind": "MirrordWorkloadQueueRegistry",
            "metadata": {"name": self.name},
            "spec": {"queues": queues, "consumer": {"name": self.name, "workloadType": "Lambda"}},
        }

    def received(self) -> list[Receipt]:
        """Return all receipts, ordered by time."""
        pages = self.session.client("dynamodb").get_paginator("scan").paginate(TableName=self.name, ConsistentRead=True)
        items = (item for page in pages for item in page["Items"])
        receipts = (
            Receipt(int(item["pk"]["S"].split("#")[0]), item["body"]["S"], QueueName(item["queue"]["S"]))
            for item in items
        )
        return sorted(receipts, key=lambda one: one.moment_ns)

    def mappings(self) -> dict[str, str]:
        """Return the states of its event source mappings by queue name."""
        pages = (
            self.session.client("lambda").get_paginator("list_event_source_mappings").paginate(FunctionName=self.name)
        )
        found = (one for page in pages for one in page["EventSourceMappings"])
        return {one["EventSourceArn"].rpartition(":")[2]: one["State"] for one in found}

    def remove(self) -> None:
        """Delete mappings, function, role, table and queues; missing ones do no harm."""
        session = self.session
        lambda_, iam, sqs = session.client("lambda"), session.client("iam"), session.client("sqs")
        for uuid in self._mapping_ids():
            _unless_missing(lambda uuid=uuid: lambda_.delete_event_source_mapping(UUID=uuid))  # type: ignore[misc]
        _unless_missing(lambda: lambda_.delete_function(FunctionName=self.name))
        _unless_missing(lambda: iam.delete_role_policy(RoleName=self.name, PolicyName=POLICY))
        _unless_missing(lambda: iam.delete_role(RoleName=self.name))
        _unless_missing(lambda: session.client("dynamodb").delete_table(TableName=self.name))
        for url in self.queues.values():
            _unless_missing(lambda url=url: sqs.delete_queue(QueueUrl=url))  # type: ignore[misc]

    def _arn(self, queue: QueueName) -> str:
        """Return a queue's ARN, or nothing: SQS may not know a new queue for a second."""
        sqs = self.session.client("sqs")
        try:
            found = sqs.get_queue_attributes(QueueUrl=self.queues[queue], AttributeNames=["QueueArn"])
        except sqs.exceptions.QueueDoesNotExist:
            return ""
        return found["Attributes"]["QueueArn"]

    def _mapping_ids(self) -> list[str]:
        lambda_ = self.session.client("lambda")
        try:
            pages = lambda_.get_paginator("list_event_source_mappings").paginate(FunctionName=self.name)
            return [one["UUID"] for page in pages for one in page["EventSourceMappings"]]
        except lambda_.exceptions.ResourceNotFoundException:
            return []

    def _make_table(self) -> None:
        dynamodb = self.session.client("dynamodb")
        _unless_existing(
            lambda: dynamodb.create_table(
                TableName=self.name,
                KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
        )
        dynamodb.get_waiter("table_exists").wait(TableName=self.name)

    def _make_role(self, readable: Sequence[str]) -> None:
        iam = self.session.client("iam")
        trust = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
        _unless_existing(lambda: iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=_policy(trust)))
        reading = {
            "Effect": "Allow",
            "Action": [
                "sqs:ReceiveMessage",
                "sqs:DeleteMessage",
                "sqs:GetQueueAttributes",
                "sqs:ChangeMessageVisibility",
            ],
            "Resource": [f"arn:aws:sqs:*:*:{name}" for name in readable],
        }
        writing = {
            "Effect": "Allow",
            "Action": ["dynamodb:BatchWriteItem", "dynamodb:PutItem"],
            "Resource": f"arn:aws:dynamodb:*:*:table/{self.name}",
        }
        iam.put_role_policy(RoleName=self.name, PolicyName=POLICY, PolicyDocument=_policy(reading, writing))

    def _make_function(self) -> None:
        lambda_ = self.session.client("lambda")
        role = self.session.client("iam").get_role(RoleName=self.name)["Role"]["Arn"]
        _once_role_is_known(
            lambda: lambda_.create_function(
                FunctionName=self.name,
                Runtime=RUNTIME,
                Handler="index.handler",
                Role=role,
                Code={"ZipFile": _package()},
                Timeout=FUNCTION_SECONDS,
                Environment={"Variables": {"RECORD_TABLE": self.name}},
            )
        )
        lambda_.get_waiter("function_active_v2").wait(FunctionName=self.name)

    def _map(self, queue: QueueName) -> None:
        if queue in self.mappings():
            return
        lambda_ = self.session.client("lambda")
        arn = wait_until(lambda: self._arn(queue), f"queue {queue} exists")
        _once_role_is_known(
            lambda: lambda_.create_event_source_mapping(EventSourceArn=arn, FunctionName=self.name, BatchSize=10)
        )
        wait_until(lambda: self.mappings().get(queue) == "Enabled", f"{self.name} reads {queue}")


@dataclass(frozen=True, slots=True)
class LocalConsumer:
    """A consumer on a developer's machine: a thread for each queue receives and records messages."""

    session: boto3.Session
    queue_urls: Sequence[str]
    received: list[Receipt] = field(default_factory=list)
    _stopping: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def reading(self) -> Iterator["LocalConsumer"]:
        """Read until the block ends."""
        threads = [threading.Thread(target=self._read, args=(url,), daemon=True) for url in self.queue_urls]
        for thread in threads:
            thread.start()
        try:
            yield self
        finally:
            self._stopping.set()
            for thread in threads:
                thread.join()

    def _read(self, url: str) -> None:
        sqs = self.session.client("sqs")
        queue = QueueName(url.rpartition("/")[2])
        while not self._stopping.is_set():
            try:
                found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", [])
            except sqs.exceptions.QueueDoesNotExist:
                return  # the split session has ended
            for message in found:
                self.received.append(Receipt(time.time_ns(), message["Body"], queue))
            entries: list[DeleteMessageBatchRequestEntryTypeDef] = [
                {"Id": str(number), "ReceiptHandle": one["ReceiptHandle"]} for number, one in enumerate(found)
            ]
            while entries:
                failed = sqs.delete_message_batch(QueueUrl=url, Entries=entries).get("Failed", [])
                again = {one["Id"] for one in failed if not one["SenderFault"]}
                entries = [entry for entry in entries if entry["Id"] in again]


def variable_of(queue: QueueName) -> str:
    """Return the name of the environment variable with the queue's name."""
    return queue.removesuffix(FIFO_SUFFIX).upper().replace("-", "_") + "_QUEUE"


def wait_until(look: Callable[[], T], what: str, *, seconds: float = READY_SECONDS) -> T:
    """Call `look` until its result is true, and return the result.

    Raises `UnavailableError` with the statement `what` if that takes longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise UnavailableError(f"not within {seconds:g} s: {what}")
        time.sleep(0.1)
    return found


def make_queue(session: boto3.Session, name: QueueName, *, visibility_seconds: int) -> str:
    """Create a queue unless it exists; return its URL when it can be used."""
    attributes: dict[QueueAttributeNameType, str] = {"VisibilityTimeout": str(visibility_seconds)}
    if is_fifo(name):
        attributes["FifoQueue"] = "true"
    sqs = session.client("sqs")
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]

    def is_usable() -> bool:
        try:
            return bool(sqs.get_queue_url(QueueName=name))
        except sqs.exceptions.QueueDoesNotExist:  # a new queue takes a second
            return False

    wait_until(is_usable, f"{name} is usable")
    return url


def _package() -> bytes:
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w") as archive:
        archive.writestr("index.py", SOURCE.read_text())
    return package.getvalue()


def _policy(*statements: Mapping[str, object]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


def _unless_existing(make: Callable[[], object]) -> None:
    _except(make, EXISTING)


def _unless_missing(delete: Callable[[], object]) -> None:
    _except(delete, MISSING)


def _once_role_is_known(make: Callable[[], object]) -> None:
    wait_until(lambda: _except(lambda: _unless_existing(make), NEW_ROLE), "the role is known", seconds=ROLE_SECONDS)


def _except(call: Callable[[], object], codes: Sequence[str]) -> bool:
    """Make a call; return False if it fails with one of these codes."""
    try:
        call()
    except ClientError as error:
        if error.response["Error"]["Code"] not in codes:
            raise
        return False
    return True
