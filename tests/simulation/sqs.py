"""Simulated SQS: its operations, by the names that botocore gives them."""

import json
from typing import Any

from tests.simulation.kernel import Kernel
from tests.simulation.queue import SimulatedQueue, received
from tests.simulation.services import ACCOUNT, REGION, Answer, Refusal, Request, arn_of

URL = f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/"
NAME_IS_FREE_AFTER = 60.0
NEW_FOR = 1.0
MISSING = ("AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist")
MOST_ENTRIES, LARGEST_BATCH = 10, 1_048_576


class SimulatedSqs:
    """The queues of one account and region."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.queues: dict[str, SimulatedQueue] = {}
        self.made: list[SimulatedQueue] = []
        self.deleted_at: dict[str, float] = {}

    def __call__(self, operation: str, request: Request) -> Answer:
        method = getattr(self, f"_{operation}", None)
        if method is None:
            raise NotImplementedError(f"SQS {operation}")
        answer: Answer = method(request)
        return answer

    def queue(self, url: str, *, is_used: bool = False) -> SimulatedQueue:
        """Return a queue; a new one may be unknown for a second."""
        queue = self.queues.get(url.rpartition("/")[2])
        if queue is None:
            raise Refusal(MISSING[0], "The specified queue does not exist.", name=MISSING[1])
        is_new = self.kernel.now - queue.created_at < NEW_FOR
        if is_used and is_new and self.kernel.is_faulty("a new queue is unknown", self.kernel.rates.unknown_queue):
            raise Refusal(MISSING[0], "The specified queue does not exist.", name=MISSING[1])
        return queue

    def wait(self, url: str, longest: float) -> float:
        """Let the current task wait for a message of a queue; return for how long. Raises `Refusal`."""
        return self.queue(url).wait(longest)

    # Queues.

    def _CreateQueue(self, request: Request) -> Answer:  # noqa: N802 - the names are those of the operations
        name, attributes = request["QueueName"], dict(request.get("Attributes") or {})
        existing = self.queues.get(name)
        if existing is not None:
            self._refuse_other(existing, attributes, request.get("tags"))
            return {"QueueUrl": URL + name}
        if self.kernel.now - self.deleted_at.get(name, float("-inf")) < NAME_IS_FREE_AFTER:
            raise Refusal("AWS.SimpleQueueService.QueueDeletedRecently", name="QueueDeletedRecently")
        self._check_redrive(name, attributes)
        self.queues[name] = SimulatedQueue(self.kernel, name, attributes, request.get("tags") or {}, self.queues)
        self.made.append(self.queues[name])
        return {"QueueUrl": URL + name}

    def _refuse_other(self, queue: SimulatedQueue, attributes: dict[str, str], tags: dict[str, str] | None) -> None:
        others = {name for name, value in attributes.items() if not _is_same(queue.setting(name), value)}
        if others or (tags and tags != queue.tags):
            message = f"A queue already exists with the same name and a different value for {sorted(others)}"
            raise Refusal("QueueAlreadyExists", message, name="QueueNameExists")

    def _check_redrive(self, name: str, attributes: dict[str, str]) -> None:
        if not attributes.get("RedrivePolicy"):
            return
        target = json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"].rpartition(":")[2]
        if target not in self.queues:
            raise Refusal("InvalidParameterValue", "The dead-letter queue does not exist")
        allowed = json.loads(self.queues[target].given.get("RedriveAllowPolicy") or "{}")
        permission = allowed.get("redrivePermission", "allowAll")
        sources = allowed.get("sourceQueueArns", [])
        if permission == "denyAll" or (permission == "byQueue" and arn_of("sqs", name) not in sources):
            raise Refusal("InvalidParameterValue", "the dead-letter queue does not allow this source")

    def _DeleteQueue(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"])
        del self.queues[queue.name]
        self.deleted_at[queue.name] = self.kernel.now
        return {}

    def _GetQueueUrl(self, request: Request) -> Answer:  # noqa: N802
        return {"QueueUrl": URL + self.queue(request["QueueName"]).name}

    def _ListQueues(self, request: Request) -> Answer:  # noqa: N802
        prefix, start = request.get("QueueNamePrefix", ""), request.get("NextToken", "")
        names = sorted(name for name in self.queues if name.startswith(prefix) and name > start)
        most = request.get("MaxResults", 1000)
        answer: Answer = {"QueueUrls": [URL + name for name in names[:most]]} if names else {}
        return answer | ({"NextToken": names[most - 1]} if len(names) > most else {})

    def _ListQueueTags(self, request: Request) -> Answer:  # noqa: N802
        tags = self.queue(request["QueueUrl"]).tags
        return {"Tags": dict(tags)} if tags else {}

    def _TagQueue(self, request: Request) -> Answer:  # noqa: N802
        self.queue(request["QueueUrl"]).tags |= request["Tags"]
        return {}

    def _ListDeadLetterSourceQueues(self, request: Request) -> Answer:  # noqa: N802
        target = arn_of("sqs", self.queue(request["QueueUrl"]).name)
        urls = [URL + name for name, queue in self.queues.items() if target in queue.setting("RedrivePolicy")]
        return {"queueUrls": urls}

    def _SetQueueAttributes(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"])
        self._check_redrive(queue.name, request["Attributes"])
        queue.given |= request["Attributes"]
        queue.modified_at = self.kernel.now
        return {}

    def _GetQueueAttributes(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"], is_used=True)
        counts = queue.counts()
        found = {
            **{name: queue.setting(name) for name in ("VisibilityTimeout", "MessageRetentionPeriod", "DelaySeconds")},
            **queue.given,
            "QueueArn": arn_of("sqs", queue.name),
            "ApproximateNumberOfMessages": str(counts.visible),
            "ApproximateNumberOfMessagesNotVisible": str(counts.in_flight),
            "ApproximateNumberOfMessagesDelayed": str(counts.delayed),
            "CreatedTimestamp": str(int(queue.created_at)),
            "LastModifiedTimestamp": str(int(queue.modified_at)),
        }
        wanted = request.get("AttributeNames") or ()
        chosen = found if "All" in wanted else {name: found[name] for name in wanted if name in found}
        return {"Attributes": chosen} if chosen else {}

    def _PurgeQueue(self, request: Request) -> Answer:  # noqa: N802
        self.queue(request["QueueUrl"]).messages.clear()
        return {}

    # Messages.

    def _SendMessage(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"], is_used=True)
        if self.kernel.now < queue.refuses_until:
            raise Refusal("KMS.DisabledException", "the key of the queue is disabled", name="KmsDisabled")
        if size_of(request) > int(queue.setting("MaximumMessageSize")):
            raise Refusal("InvalidParameterValue", "One or more parameters are invalid: the message is too long")
        task = self.kernel.current
        message = queue.send(request, sender=task.process if task else None)
        ordered = {"SequenceNumber": f"{message.number:020}"} if queue.is_fifo else {}
        return {"MessageId": message.id, "MD5OfMessageBody": "", **ordered}

    def _SendMessageBatch(self, request: Request) -> Answer:  # noqa: N802
        entries = _entries(request)
        if sum(map(size_of, entries)) > LARGEST_BATCH:
            raise Refusal("AWS.SimpleQueueService.BatchRequestTooLong", name="BatchRequestTooLong")
        url = request["QueueUrl"]
        if self.kernel.now < self.queue(url, is_used=True).refuses_until:
            raise Refusal("KMS.DisabledException", "the key of the queue is disabled", name="KmsDisabled")

        def send(entry: Request) -> Answer:
            if self.kernel.is_faulty("an entry of a batch is not sent", self.kernel.rates.unprocessed):
                raise Refusal("InternalError", status=500)
            return self._SendMessage({"QueueUrl": url, **entry})

        return _each(entries, send)

    def _ReceiveMessage(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"], is_used=True)
        visibility = request.get("VisibilityTimeout")
        if queue.is_full and not queue.is_fifo and not request.get("WaitTimeSeconds"):
            raise Refusal("OverLimit", "Too many messages in flight", status=403, name="OverLimit")
        messages = queue.receive(request.get("MaxNumberOfMessages", 1), visibility=visibility)
        return {"Messages": [_asked(received(queue, one), request) for one in messages]} if messages else {}

    def _DeleteMessage(self, request: Request) -> Answer:  # noqa: N802
        self.queue(request["QueueUrl"]).delete(request["ReceiptHandle"])
        return {}

    def _DeleteMessageBatch(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"])
        return _each(_entries(request), lambda entry: queue.delete(entry["ReceiptHandle"]) or {})

    def _ChangeMessageVisibility(self, request: Request) -> Answer:  # noqa: N802
        self.queue(request["QueueUrl"]).hide(request["ReceiptHandle"], request["VisibilityTimeout"])
        return {}

    def _ChangeMessageVisibilityBatch(self, request: Request) -> Answer:  # noqa: N802
        queue = self.queue(request["QueueUrl"])
        return _each(
            _entries(request), lambda entry: queue.hide(entry["ReceiptHandle"], entry["VisibilityTimeout"]) or {}
        )


def _entries(request: Request) -> list[Any]:
    entries = list(request["Entries"])
    if not entries:
        raise Refusal("AWS.SimpleQueueService.EmptyBatchRequest", name="EmptyBatchRequest")
    if len(entries) > MOST_ENTRIES:
        raise Refusal("AWS.SimpleQueueService.TooManyEntriesInBatchRequest", name="TooManyEntriesInBatchRequest")
    if len({entry["Id"] for entry in entries}) < len(entries):
        raise Refusal("AWS.SimpleQueueService.BatchEntryIdsNotDistinct", name="BatchEntryIdsNotDistinct")
    return entries


def _each(entries: list[Any], do: Any) -> Answer:
    answer: Answer = {"Successful": [], "Failed": []}
    for entry in entries:
        try:
            answer["Successful"].append({"Id": entry["Id"], **do(entry)})
        except Refusal as refusal:
            failure = {"Id": entry["Id"], "Code": refusal.code, "SenderFault": refusal.status < 500}
            answer["Failed"].append(failure | {"Message": refusal.message})
    return {name: entries for name, entries in answer.items() if entries}


def size_of(entry: Request) -> int:
    """Return the bytes of a message with its attributes."""
    size = len(entry["MessageBody"].encode(errors="surrogatepass"))
    for name, value in (entry.get("MessageAttributes") or {}).items():
        text = value.get("StringValue", "")
        size += len(name) + len(value["DataType"]) + len(text.encode(errors="surrogatepass"))
        size += len(value.get("BinaryValue", b""))
    return size


def _asked(message: Answer, request: Request) -> Answer:
    system = request.get("MessageSystemAttributeNames") or request.get("AttributeNames") or ()
    found = dict(message)
    attributes = found.pop("Attributes")
    chosen = attributes if "All" in system else {name: attributes[name] for name in system if name in attributes}
    if chosen:
        found["Attributes"] = chosen
    names = request.get("MessageAttributeNames") or ()
    given = found.pop("MessageAttributes", {})
    kept = given if {"All", ".*"} & set(names) else {name: given[name] for name in names if name in given}
    return found | ({"MessageAttributes": kept} if kept else {})


def _is_same(existing: str, given: str) -> bool:
    if existing == given:
        return True
    try:
        return bool(json.loads(existing) == json.loads(given))
    except ValueError:
        return False
