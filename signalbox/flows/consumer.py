"""Consumers of splitting: a deployed function that records its messages, and a local reader."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, TypeVar

import boto3

from signalbox.errors import UnavailableError
from signalbox.queues import FIFO_SUFFIX, QueueName, is_fifo
from signalbox.verify.patience import MAPPING_SECONDS

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import DeleteMessageBatchRequestEntryTypeDef

T = TypeVar("T")

SOURCE, TEMPLATE = (Path(__file__).with_name(name) for name in ("recording_consumer.py", "consumer.json"))
VISIBILITY_SECONDS = 6
FUNCTION_SECONDS = 6


@dataclass(frozen=True, slots=True)
class Receipt:
    """A received message; `moment_ns`, in nanoseconds since 1970, orders receipts."""

    moment_ns: int
    body: str
    queue: QueueName


@dataclass(frozen=True, slots=True)
class DeployedConsumer:
    """A stack `name` with a function that reads `queues`, and a table of its receipts; both have the same name."""

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
        """Create the stack unless it exists; queues whose names begin with `temporary_prefix` can be read, too."""
        cloudformation, sqs = session.client("cloudformation"), session.client("sqs")
        template = _template(name, queues, f"{temporary_prefix}*", visibility_seconds=visibility_seconds)
        with suppress(cloudformation.exceptions.AlreadyExistsException):
            cloudformation.create_stack(StackName=name, TemplateBody=template, Capabilities=["CAPABILITY_NAMED_IAM"])
        cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
        consumer = cls(session, name, {queue: sqs.get_queue_url(QueueName=queue)["QueueUrl"] for queue in queues})
        reading = dict.fromkeys(queues, "Enabled")
        wait_until(lambda: consumer.mappings().items() >= reading.items(), f"{name} reads {', '.join(queues)}")
        return consumer

    @property
    def target(self) -> str:
        """The consumer's name in the commands of splitting."""
        return f"lambda/{self.name}"

    def registry(self) -> dict[str, object]:
        """Return the document that registers its queues; the id of a queue is its name without `.fifo`.

        Raises `ValueError` for two queues with the same id.
        """
        queues = {
            name.removesuffix(FIFO_SUFFIX): {
                "queueType": "SQS",
                "nameSource": {"eventSource": name, "envVar": variable_of(name)},
            }
            for name in self.queues
        }
        if len(queues) < len(self.queues):
            raise ValueError(f"two queues have the same name without {FIFO_SUFFIX}: {list(self.queues)}")
        return {
            "apiVersion": "queues.mirrord.metalbear.co/v1alpha",
            "kind": "MirrordWorkloadQueueRegistry",
            "metadata": {"name": self.name},
            "spec": {"queues": queues, "consumer": {"name": self.name, "workloadType": "Lambda"}},
        }

    def libraries(self) -> dict[str, str]:
        """Return the versions of the runtime's libraries."""
        answer = self.session.client("lambda").invoke(FunctionName=self.name, Payload=b"{}")
        return dict(json.loads(answer["Payload"].read()))

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
        return {one["EventSourceArn"].rpartition(":")[2]: one["State"] for one in self._mappings()}

    def remove(self) -> None:
        """Delete the stack, and mappings that a split has made; a missing stack does no harm."""
        lambda_, cloudformation = self.session.client("lambda"), self.session.client("cloudformation")
        for mapping in self._mappings():
            with suppress(lambda_.exceptions.ResourceNotFoundException):
                lambda_.delete_event_source_mapping(UUID=mapping["UUID"])
        cloudformation.delete_stack(StackName=self.name)
        cloudformation.get_waiter("stack_delete_complete").wait(StackName=self.name, WaiterConfig={"Delay": 1})

    def _mappings(self) -> list[Any]:
        lambda_ = self.session.client("lambda")
        with suppress(lambda_.exceptions.ResourceNotFoundException):
            pages = lambda_.get_paginator("list_event_source_mappings").paginate(FunctionName=self.name)
            return [one for page in pages for one in page["EventSourceMappings"]]
        return []


def _template(name: str, queues: Sequence[QueueName], temporary: str, *, visibility_seconds: int) -> str:
    """Return the CloudFormation template of a consumer: that of the file, with each queue and its mapping."""
    readable = [f"arn:aws:sqs:*:*:{queue}" for queue in (*queues, temporary)]
    values = {"name": name, "readable": json.dumps(readable), "code": json.dumps(SOURCE.read_text())}
    template = json.loads(Template(TEMPLATE.read_text()).substitute(values, timeout=FUNCTION_SECONDS))
    for number, queue in enumerate(queues):
        fifo = {"FifoQueue": True} if is_fifo(queue) else {}
        source = {"Fn::GetAtt": [f"Queue{number}", "Arn"]}
        template["Resources"] |= {
            f"Queue{number}": _resource("SQS::Queue", QueueName=queue, VisibilityTimeout=visibility_seconds, **fifo),
            f"Mapping{number}": _resource(
                "Lambda::EventSourceMapping", EventSourceArn=source, FunctionName={"Ref": "Function"}, BatchSize=10
            ),
        }
    return json.dumps(template)


def _resource(kind: str, **properties: object) -> dict[str, object]:
    return {"Type": f"AWS::{kind}", "Properties": properties}


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


def wait_until(look: Callable[[], T], what: str, *, seconds: float = MAPPING_SECONDS) -> T:
    """Call `look` until its result is true, and return the result.

    Raises `UnavailableError` with the statement `what` if that takes longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (found := look()):
        if time.monotonic() > deadline:
            raise UnavailableError(f"this did not happen within {seconds:g} s: {what}")
        time.sleep(0.1)
    return found
