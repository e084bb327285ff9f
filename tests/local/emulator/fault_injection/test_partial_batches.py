"""Batches fail for some of their entries, which the service does not carry out."""

import pytest

from tests.fault_injection.calls import Wire
from tests.fault_injection.chance import Chance
from tests.fault_injection.partial_batches import PartialBatches
from tests.local.emulator.fault_injection.service import FixedChance, Service

RULE = PartialBatches(FixedChance())  # type: ignore[arg-type] - fails the first entry of each batch
ENTRIES = [{"Id": name} for name in "abc"]


def test_keys_are_left_unread_with_the_settings_of_their_table():
    service = Service({"Responses": {}, "UnprocessedKeys": {"t": {"Keys": [0], "ConsistentRead": True}}})
    keys = {"t": {"Keys": [1, 2], "ConsistentRead": True}}

    document = service.answer(RULE, "dynamodb", "BatchGetItem", RequestItems=keys).document()

    assert service.calls[0].parameters["RequestItems"] == {"t": {"Keys": [2], "ConsistentRead": True}}
    assert document["UnprocessedKeys"] == {"t": {"Keys": [0, 1], "ConsistentRead": True}}


def test_records_of_a_stream_fail_in_their_places():
    responses = [{"RecordId": "2"}, {"RecordId": "3"}]
    service = Service({"FailedPutCount": 0, "RequestResponses": responses})

    document = service.answer(RULE, "firehose", "PutRecordBatch", Records=[1, 2, 3]).document()

    assert service.calls[0].parameters["Records"] == [2, 3]
    assert document["FailedPutCount"] == 1
    assert document["RequestResponses"][0]["ErrorCode"] == "ServiceUnavailableException"
    assert document["RequestResponses"][1:] == responses


@pytest.mark.parametrize(
    ("service", "action", "parameters"),
    [
        ("sqs", "SendMessageBatch", {"Entries": ENTRIES[:1]}),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {"t": [1]}}),
        ("dynamodb", "BatchGetItem", {"RequestItems": {"t": {"Keys": [1]}}}),
        ("firehose", "PutRecordBatch", {"Records": [1]}),
        ("sqs", "SendMessage", {}),
    ],
)
def test_a_call_with_one_entry_does_not_fail_in_part(service, action, parameters):
    answering = Service({"a": 1})

    assert answering.answer(RULE, service, action, **parameters).document() == {"a": 1}
    assert answering.calls[0].parameters == parameters


@pytest.mark.parametrize(
    ("service", "action", "parameters"),
    [
        ("sqs", "SendMessageBatch", {"Entries": ENTRIES}),
        ("dynamodb", "BatchWriteItem", {"RequestItems": {"t": [1, 2]}}),
        ("firehose", "PutRecordBatch", {"Records": [1, 2]}),
    ],
)
def test_an_error_of_the_service_stays(service, action, parameters):
    answering = Service({"__type": "x"}, status=400)

    assert answering.answer(RULE, service, action, **parameters).document() == {"__type": "x"}


def test_batches_of_the_query_protocol_and_most_others_are_left_alone():
    service = Service()

    service.answer(RULE, "sqs", "SendMessageBatch", wire=Wire.QUERY, Entries=ENTRIES)
    service.answer(PartialBatches(FixedChance(hits=False)), "sqs", "SendMessageBatch", Entries=ENTRIES)

    assert [call.parameters["Entries"] for call in service.calls] == [ENTRIES, ENTRIES]


def test_some_entries_are_always_carried_out():
    rule, service = PartialBatches(Chance(1)), Service()

    for _ in range(500):
        service.answer(rule, "sqs", "SendMessageBatch", Entries=ENTRIES)

    sizes = [len(call.parameters["Entries"]) for call in service.calls]
    assert set(sizes) == {1, 2, 3}
    assert sizes.count(3) > 400
