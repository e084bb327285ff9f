"""Rule: batches of SQS, DynamoDB and Firehose fail for some of their entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.fault_injection.calls import Answer, Forward, ServiceCall, Wire
from tests.fault_injection.chance import Chance

PARTIAL_ODDS = 20

RULE = "partial batches"
SQS_BATCHES = ("SendMessageBatch", "DeleteMessageBatch", "ChangeMessageVisibilityBatch")
Entries = list[Any]


@dataclass(frozen=True, slots=True)
class PartialBatches:
    """Withholds entries of batches from the services, and names them in the answers as failed."""

    chance: Chance

    async def answer(self, call: ServiceCall, forward: Forward) -> Answer:
        """Return the answer of the batch with the entries that failed."""
        withhold = WITHHOLDING.get((call.service, call.action))
        if withhold is None or call.wire is not Wire.JSON:
            return await forward(call)
        if not self.chance.is_one_in(PARTIAL_ODDS, RULE, call.action):
            return await forward(call)
        return await withhold(self, call, forward)

    def _parted(self, entries: Sequence[Any], action: str) -> tuple[Entries, Entries]:
        """Return the entries that are carried out, at least one, and the others, at least one."""
        failed = 1 + self.chance.pick(len(entries) - 1, RULE, action)
        order = self.chance.shuffled(list(range(len(entries))), RULE, action)
        lost = set(order[:failed])
        return (
            [entry for index, entry in enumerate(entries) if index not in lost],
            [entry for index, entry in enumerate(entries) if index in lost],
        )

    async def sqs(self, call: ServiceCall, forward: Forward) -> Answer:
        """Fail entries of a batch of messages."""
        entries = call.parameters.get("Entries", [])
        if len(entries) < 2:
            return await forward(call)
        done, failed = self._parted(entries, call.action)
        answer = await forward(call.with_parameters(Entries=done))
        if not answer.is_success:
            return answer
        document = answer.document()
        failures = [
            {"Id": entry["Id"], "SenderFault": False, "Code": "InternalError", "Message": "Try again."}
            for entry in failed
        ]
        return answer.with_document({**document, "Failed": [*document.get("Failed", []), *failures]})

    async def writes(self, call: ServiceCall, forward: Forward) -> Answer:
        """Leave writes of DynamoDB unprocessed."""
        items = [(table, write) for table, writes in call.parameters["RequestItems"].items() for write in writes]
        if len(items) < 2:
            return await forward(call)
        done, failed = self._parted(items, call.action)
        answer = await forward(call.with_parameters(RequestItems=by_table(done)))
        return with_unprocessed(answer, "UnprocessedItems", by_table(failed))

    async def reads(self, call: ServiceCall, forward: Forward) -> Answer:
        """Leave keys of DynamoDB unread."""
        requests: Mapping[str, Any] = call.parameters["RequestItems"]
        keys = [(table, key) for table, request in requests.items() for key in request["Keys"]]
        if len(keys) < 2:
            return await forward(call)
        done, failed = self._parted(keys, call.action)
        answer = await forward(call.with_parameters(RequestItems=with_keys(requests, done)))
        return with_unprocessed(answer, "UnprocessedKeys", with_keys(requests, failed))

    async def firehose(self, call: ServiceCall, forward: Forward) -> Answer:
        """Fail records of a delivery stream."""
        records = call.parameters["Records"]
        if len(records) < 2:
            return await forward(call)
        done, failed = self._parted(list(enumerate(records)), call.action)
        answer = await forward(call.with_parameters(Records=[record for _, record in done]))
        if not answer.is_success:
            return answer
        document = answer.document()
        responses = dict(zip((index for index, _ in done), document["RequestResponses"], strict=True))
        error = {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}
        responses |= {index: error for index, _ in failed}
        count = document.get("FailedPutCount", 0) + len(failed)
        in_order = [responses[index] for index in range(len(records))]
        return answer.with_document({**document, "FailedPutCount": count, "RequestResponses": in_order})


WITHHOLDING = {
    **{("sqs", action): PartialBatches.sqs for action in SQS_BATCHES},
    ("dynamodb", "BatchWriteItem"): PartialBatches.writes,
    ("dynamodb", "BatchGetItem"): PartialBatches.reads,
    ("firehose", "PutRecordBatch"): PartialBatches.firehose,
}


def by_table(entries: Sequence[tuple[str, Any]]) -> dict[str, Entries]:
    """Return entries by their tables."""
    tables: dict[str, Entries] = {}
    for table, entry in entries:
        tables.setdefault(table, []).append(entry)
    return tables


def with_keys(requests: Mapping[str, Any], keys: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the requests of a BatchGetItem with these keys; tables without a key are left out."""
    return {table: {**requests[table], "Keys": chosen} for table, chosen in by_table(keys).items()}


def with_unprocessed(answer: Answer, name: str, unprocessed: Mapping[str, Any]) -> Answer:
    """Return the answer of a batch with more unprocessed entries."""
    if not answer.is_success or not unprocessed:
        return answer
    document = answer.document()
    merged = dict(document.get(name, {}))
    for table, entries in unprocessed.items():
        if name == "UnprocessedKeys":
            merged[table] = {**entries, "Keys": [*merged.get(table, {}).get("Keys", []), *entries["Keys"]]}
        else:
            merged[table] = [*merged.get(table, []), *entries]
    return answer.with_document({**document, name: merged})
