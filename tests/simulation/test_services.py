"""The simulated SQS and DynamoDB answer as the stand-ins of AWS do: the same calls, and the same answers."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from tests.fakes.aws import BACKENDS, aws, make_split_table  # noqa: F401 - fixtures
from tests.simulation import clients
from tests.simulation.calls import Calls
from tests.simulation.dynamodb import SimulatedDynamoDb
from tests.simulation.kernel import Kernel
from tests.simulation.sqs import SimulatedSqs
from tests.simulation.table import Index, Table

# What services choose, or what only some of them return.
CHOSEN = (
    "ResponseMetadata",
    "ReceiptHandle",
    "QueueUrl",
    "SequenceNumber",
    "ConsumedCapacity",
    "ScannedCount",
    "ItemCollectionMetrics",
)
FOLLOWS = "MD5"  # from what is compared

Service = Callable[..., Any]


@dataclass
class Pair:
    """A stand-in of AWS and the simulation of the same service, whose answers must be equal."""

    real: Any
    simulated: Service

    def __call__(self, operation: str, **request: Any) -> tuple[Any, Any]:
        """Make a call of both, and return their answers, or the codes of their errors."""
        real, simulated = (_outcome(one, operation, _of(one, request)) for one in (self._real, self.simulated))
        assert _shown(simulated) == _shown(real), f"{operation} {request}"
        return real, simulated

    def _real(self, operation: str, request: dict[str, Any]) -> Any:
        return self.real._make_api_call(operation, request)


@dataclass(frozen=True)
class Each:
    """A value that differs: of the stand-in, and of the simulation."""

    real: Any
    simulated: Any


def _of(service: Any, request: Any) -> Any:
    if isinstance(request, Each):
        return request.real if getattr(service, "__name__", "") == "_real" else request.simulated
    if isinstance(request, dict):
        return {name: _of(service, value) for name, value in request.items()}
    return [_of(service, one) for one in request] if isinstance(request, list) else request


def _outcome(service: Any, operation: str, request: dict[str, Any]) -> Any:
    try:
        return service(operation, request)
    except ClientError as error:
        reasons = [one["Code"] for one in error.response.get("CancellationReasons", [])]
        return {"error": type(error).__name__, **({"reasons": reasons} if reasons else {})}


def _shown(answer: Any) -> Any:
    """Return an answer without what services choose; ids of messages are compared as far as they are equal."""
    if isinstance(answer, dict):
        kept = {name: value for name, value in answer.items() if name not in CHOSEN and not name.startswith(FOLLOWS)}
        # Some services leave out what is empty.
        return {name: "id" if name == "MessageId" else _shown(value) for name, value in kept.items() if value}
    return [_shown(one) for one in answer] if isinstance(answer, list) else answer


@pytest.fixture(params=BACKENDS)
def calls(aws: None) -> Calls:  # noqa: F811 - a fixture
    kernel = Kernel(1)
    made = Calls(kernel)
    made.services |= {"sqs": SimulatedSqs(kernel), "dynamodb": SimulatedDynamoDb(kernel)}
    return made


def _pair(service: str, calls: Calls) -> Pair:
    client = boto3.client(service)  # type: ignore[call-overload]
    return Pair(client, lambda operation, request: clients.make_api_call(calls, client, operation, request))


class TestQueues:
    @pytest.fixture
    def sqs(self, calls: Calls) -> Pair:
        return _pair("sqs", calls)

    def made(self, sqs: Pair, name: str, **attributes: str) -> Each:
        real, simulated = sqs("CreateQueue", QueueName=name, Attributes=attributes)
        return Each(real["QueueUrl"], simulated["QueueUrl"])

    def received(self, sqs: Pair, url: Each, **options: Any) -> list[Each]:
        """Receive messages of both, and return their receipt handles."""
        names = ["ApproximateReceiveCount"]
        request = {"QueueUrl": url, "MaxNumberOfMessages": 10, "AttributeNames": names, **options}
        real, simulated = (one.get("Messages", []) for one in sqs("ReceiveMessage", **request))
        return [Each(one["ReceiptHandle"], other["ReceiptHandle"]) for one, other in zip(real, simulated, strict=True)]

    def test_a_queue_is_made_once(self, sqs: Pair) -> None:
        url = self.made(sqs, "q", VisibilityTimeout="20")
        self.made(sqs, "q", VisibilityTimeout="20")
        sqs("CreateQueue", QueueName="q", Attributes={"VisibilityTimeout": "21"})
        sqs("GetQueueUrl", QueueName="other")
        sqs("DeleteQueue", QueueUrl=url)
        sqs("SendMessage", QueueUrl=url, MessageBody="late")

    def test_a_received_message_is_hidden_until_it_is_deleted_or_shown(self, sqs: Pair) -> None:
        url = self.made(sqs, "q")
        attributes = {"a": {"DataType": "String", "StringValue": "1"}}
        sqs("SendMessage", QueueUrl=url, MessageBody="one", MessageAttributes=attributes)
        (first,) = self.received(sqs, url, MessageAttributeNames=["All"])
        assert self.received(sqs, url) == []
        self.counted(sqs, url)

        sqs("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=first, VisibilityTimeout=0)
        (second,) = self.received(sqs, url)
        sqs("DeleteMessage", QueueUrl=url, ReceiptHandle=second)

        self.counted(sqs, url)

    def counted(self, sqs: Pair, url: Each) -> None:
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        sqs("GetQueueAttributes", QueueUrl=url, AttributeNames=names)

    def test_a_group_waits_for_its_messages_in_flight(self, sqs: Pair) -> None:
        url = self.made(sqs, "q.fifo", FifoQueue="true")
        for number, group in enumerate(("g", "g", "h")):
            self.send_ordered(sqs, url, group, str(number))
        (first,) = self.received(sqs, url, MaxNumberOfMessages=1)
        assert len(self.received(sqs, url)) == 1  # of the other group

        sqs("DeleteMessage", QueueUrl=url, ReceiptHandle=first)

        assert len(self.received(sqs, url)) == 1

    def test_a_repeated_message_is_not_stored_again(self, sqs: Pair) -> None:
        url = self.made(sqs, "q.fifo", FifoQueue="true")
        (_, first), (_, second) = (self.send_ordered(sqs, url, "g", "same") for _ in range(2))

        assert first["MessageId"] == second["MessageId"]  # moto returns a new one
        assert len(self.received(sqs, url)) == 1

    def send_ordered(self, sqs: Pair, url: Each, group: str, deduplication_id: str) -> tuple[Any, Any]:
        ordering = {"MessageGroupId": group, "MessageDeduplicationId": deduplication_id}
        return sqs("SendMessage", QueueUrl=url, MessageBody=deduplication_id, **ordering)

    def test_batches_have_one_to_ten_entries_with_ids(self, sqs: Pair) -> None:
        url = self.made(sqs, "q")
        entries = [{"Id": str(number), "MessageBody": "body"} for number in range(11)]
        sqs("SendMessageBatch", QueueUrl=url, Entries=entries[:10])
        sqs("SendMessageBatch", QueueUrl=url, Entries=entries)
        sqs("SendMessageBatch", QueueUrl=url, Entries=[entries[0], entries[0]])

        handles = self.received(sqs, url)
        deleted = [{"Id": str(number), "ReceiptHandle": handle} for number, handle in enumerate(handles)]
        sqs("DeleteMessageBatch", QueueUrl=url, Entries=deleted)

        self.counted(sqs, url)

    @pytest.mark.parametrize("suffix", ["", ".fifo"])
    def test_a_message_that_was_received_too_often_moves_to_its_dead_letter_queue(self, sqs: Pair, suffix: str) -> None:
        fifo = {"FifoQueue": "true"} if suffix else {}
        dead = self.made(sqs, f"dead{suffix}", **fifo)
        url, redrive = self.made(sqs, f"q{suffix}", **fifo), self.redriving(sqs, dead, most=2)
        sqs("SetQueueAttributes", QueueUrl=url, Attributes={"RedrivePolicy": redrive})
        for number in ("first", "second") if suffix else ():
            self.send_ordered(sqs, url, "g", number)
        if not suffix:
            sqs("SendMessage", QueueUrl=url, MessageBody="first")

        for _ in range(2):
            (handle,) = self.received(sqs, url, MaxNumberOfMessages=1)
            sqs("ChangeMessageVisibility", QueueUrl=url, ReceiptHandle=handle, VisibilityTimeout=0)

        assert len(self.received(sqs, url)) == bool(suffix)
        assert len(self.received(sqs, dead, AttributeNames=[])) == 1

    def redriving(self, sqs: Pair, dead: Each, *, most: int) -> Each:
        """Return the redrive policies to a queue of both."""
        arns = [
            one("GetQueueAttributes", {"QueueUrl": url, "AttributeNames": ["QueueArn"]})["Attributes"]["QueueArn"]
            for one, url in ((sqs._real, dead.real), (sqs.simulated, dead.simulated))
        ]
        real, simulated = (json.dumps({"deadLetterTargetArn": arn, "maxReceiveCount": most}) for arn in arns)
        return Each(real, simulated)

    @pytest.mark.parametrize(("suffix", "answer"), [("", {"error": "OverLimit"}), (".fifo", {})])
    def test_a_queue_with_the_most_messages_in_flight_gives_no_more(
        self, sqs: Pair, calls: Calls, suffix: str, answer: Any
    ) -> None:
        """No stand-in has a limit; https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/."""
        url = self.made(sqs, f"q{suffix}", **({"FifoQueue": "true"} if suffix else {}))
        calls.services["sqs"].queues[f"q{suffix}"].most_in_flight = 1  # type: ignore[attr-defined]
        for number in ("1", "2"):
            order = {"MessageGroupId": number, "MessageDeduplicationId": number} if suffix else {}
            sqs("SendMessage", QueueUrl=url, MessageBody=number, **order)
        self.received(sqs, url, MaxNumberOfMessages=1)

        assert _outcome(sqs.simulated, "ReceiveMessage", {"QueueUrl": url.simulated}) == answer


A, ONE, TWO = {"S": "a"}, {"N": "1"}, {"N": "2"}


def _key(sort: str, partition: str = "p") -> dict[str, Any]:
    return {"pk": {"S": partition}, "sk": {"S": sort}}


class TestTables:
    @pytest.fixture
    def table(self, calls: Calls) -> Service:
        make_split_table()
        calls.services["dynamodb"].tables["Splits"] = Table(  # type: ignore[attr-defined]
            "Splits", "pk", "sk", {"by_kind": Index("kind", "pk")}
        )
        pair = _pair("dynamodb", calls)
        return lambda operation, **request: pair(operation, TableName="Splits", **request)

    @pytest.mark.parametrize(
        "condition",
        [
            "attribute_not_exists(pk)",
            "attribute_exists(n) AND n = :one",
            "n <> :one OR NOT n < :two",
            "n BETWEEN :one AND :two",
            "n IN (:two, :a)",
            "begins_with(t, :a) AND size(t) = :two",
            "gone = :one OR n = :two",
            "contains(l, :one) AND (m.x = :a OR m.y = :a)",
            "l[0] = :one AND l[1] = :one",
        ],
    )
    def test_conditions_hold_for_the_same_items(self, table: Service, condition: str) -> None:
        item = {"n": ONE, "t": {"S": "ab"}, "l": {"L": [ONE]}, "m": {"M": {"x": A}}}
        table("PutItem", Item=_key("full") | item)
        used = {name: value for name, value in {":one": ONE, ":two": TWO, ":a": A}.items() if name in condition}
        given: dict[str, Any] = {"ExpressionAttributeValues": used} if used else {}
        for sort in ("full", "empty"):
            table("PutItem", Item=_key(sort) | item, ConditionExpression=condition, ReturnValues="ALL_OLD", **given)
            table("GetItem", Key=_key(sort), ConsistentRead=True)

    @pytest.mark.parametrize(
        "update",
        [
            "SET n = n + :one, t = if_not_exists(t, :a)",
            "SET #n = if_not_exists(#n, :one) REMOVE t, gone",
            "ADD n :one, fresh :two SET u = n",
            "SET l = list_append(l, :l), m.y = :one REMOVE m.x",
            "ADD s :s",
            "DELETE s :s",
        ],
    )
    @pytest.mark.parametrize("returned", ["ALL_NEW", "ALL_OLD"])
    def test_updates_change_the_same_attributes(self, table: Service, update: str, returned: str) -> None:
        item = {"n": TWO, "t": A, "l": {"L": [ONE]}, "m": {"M": {"x": A}}, "s": {"SS": ["x", "y"]}}
        table("PutItem", Item=_key("k") | item)
        values = {":one": ONE, ":two": TWO, ":a": A, ":l": {"L": [A]}, ":s": {"SS": ["y"]}}
        used = {
            name: value
            for name, value in values.items()
            if f"{name}," in update.replace(" ", ",").replace(")", ",") + ","
        }
        names: dict[str, Any] = {"ExpressionAttributeNames": {"#n": "n"}} if "#n" in update else {}

        table(
            "UpdateItem",
            Key=_key("k"),
            UpdateExpression=update,
            ExpressionAttributeValues=used,
            ReturnValues=returned,
            **names,
        )
        table("GetItem", Key=_key("k"), ConsistentRead=True)

    @pytest.mark.parametrize(
        "condition", ["sk > :x", "sk <= :x", "sk BETWEEN :x AND :y", "begins_with(sk, :x)", "sk = :x"]
    )
    @pytest.mark.parametrize("forward", [True, False])
    def test_queries_return_the_same_pages(self, table: Service, condition: str, *, forward: bool) -> None:
        for number in range(12):
            table("PutItem", Item=_key(f"{number:02}") | {"n": {"N": str(number)}})
        values = {":p": {"S": "p"}, ":x": {"S": "0"}, ":y": {"S": "1"}}
        used = {name: value for name, value in values.items() if name == ":p" or name in condition}
        request = {
            "KeyConditionExpression": f"pk = :p AND {condition}",
            "ExpressionAttributeValues": used,
            "ScanIndexForward": forward,
            "Limit": 7,  # no page ends with the last item, where only moto says that it does
            "ConsistentRead": True,
        }
        start: dict[str, Any] = {}
        for _ in range(5):
            real, _ = table("Query", **request, **start)
            if "LastEvaluatedKey" not in real:
                break
            start = {"ExclusiveStartKey": real["LastEvaluatedKey"]}

    def test_an_index_has_the_items_with_its_key(self, table: Service) -> None:
        table("PutItem", Item=_key("a") | {"kind": A})
        table("PutItem", Item=_key("b"))
        table(
            "Query",
            IndexName="by_kind",
            KeyConditionExpression="kind = :k",
            ExpressionAttributeValues={":k": A},
            ProjectionExpression="pk, sk",
        )

    def test_a_transaction_does_all_or_nothing(self, calls: Calls, table: Service) -> None:
        both = _pair("dynamodb", calls)
        table("PutItem", Item=_key("there"))
        for sort in ("there", "new"):
            unless = {"ConditionExpression": "attribute_not_exists(pk)"}
            put = {"Put": {"TableName": "Splits", "Item": _key(sort), **unless}}
            other = {"Put": {"TableName": "Splits", "Item": _key("other") | {"of": {"S": sort}}}}
            both("TransactWriteItems", TransactItems=[other, put])
            table("GetItem", Key=_key("other"), ConsistentRead=True)

    def test_batches_write_and_read(self, calls: Calls, table: Service) -> None:
        both = _pair("dynamodb", calls)
        puts = [{"PutRequest": {"Item": _key(f"{number}")}} for number in range(3)]
        both("BatchWriteItem", RequestItems={"Splits": puts})
        both("BatchWriteItem", RequestItems={"Splits": [{"DeleteRequest": {"Key": _key("1")}}]})
        table(
            "Query", KeyConditionExpression="pk = :p", ExpressionAttributeValues={":p": {"S": "p"}}, ConsistentRead=True
        )
        keys = {"Keys": [_key("2"), _key("9")], "ConsistentRead": True}
        both("BatchGetItem", RequestItems={"Splits": keys})
