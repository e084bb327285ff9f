"""What a function's response means for its batch."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signalbox.clients.splitting.handler.response import BatchOutcome, InvocationEnd, batch_outcome


def batch(*ids: str, groups: str = "") -> list[dict[str, Any]]:
    """Return messages of a standard queue, or of a FIFO queue with a group for each."""
    if not groups:
        return [{"MessageId": one} for one in ids]
    return [
        {"MessageId": one, "Attributes": {"MessageGroupId": group, "SequenceNumber": "1"}}
        for one, group in zip(ids, groups, strict=True)
    ]


def failures(*ids: object) -> InvocationEnd:
    return InvocationEnd(json.dumps({"batchItemFailures": [{"itemIdentifier": one} for one in ids]}))


def test_an_error_fails_the_whole_batch():
    outcome = batch_outcome(InvocationEnd(error="ValueError: no"), batch("a", "b"), reports_failures=True)

    assert outcome == BatchOutcome((), ("a", "b"), reason="ValueError: no")


def test_without_the_response_type_a_response_is_ignored():
    assert batch_outcome(failures("a"), batch("a", "b"), reports_failures=False) == BatchOutcome(("a", "b"), ())


def test_reported_messages_stay_and_the_others_are_deleted():
    assert batch_outcome(failures("b"), batch("a", "b", "c"), reports_failures=True) == BatchOutcome(("a", "c"), ("b",))


# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html#sqs-batchfailurereporting-conditions
@pytest.mark.parametrize("response", ["", "null", "{}", '{"batchItemFailures": null}', '{"batchItemFailures": []}'])
def test_an_empty_response_is_a_complete_success(response):
    assert batch_outcome(InvocationEnd(response), batch("a"), reports_failures=True) == BatchOutcome(("a",), ())


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        ("{", "the response is not JSON"),
        ('"done"', "the response is no object with 'batchItemFailures': \"done\""),
        ('{"batchItemFailures": "a"}', "'batchItemFailures' is not a list: \"a\""),
        ('{"batchItemFailures": ["a"]}', "an entry of 'batchItemFailures' has no 'itemIdentifier': \"a\""),
        ('{"batchItemFailures": [{"itemIdentifier": ""}]}', "has no 'itemIdentifier'"),
        ('{"batchItemFailures": [{"itemIdentifier": null}]}', "has no 'itemIdentifier'"),
        ('{"batchItemFailures": [{"messageId": "a"}]}', "has no 'itemIdentifier'"),
        ('{"batchItemFailures": [{"itemIdentifier": "x"}]}', "itemIdentifier 'x' is no message of the batch"),
        ('{"batchItemFailures": "' + "x" * 200 + '"}', "x…"),
    ],
)
def test_an_invalid_response_is_a_complete_failure(response, reason):
    outcome = batch_outcome(InvocationEnd(response), batch("a", "b"), reports_failures=True)

    assert (outcome.deleted, outcome.failed) == ((), ("a", "b"))
    assert reason in str(outcome.reason)


def test_later_messages_of_a_failed_group_are_kept():
    messages = batch("a1", "b1", "a2", "b2", "a3", groups="ababa")

    outcome = batch_outcome(failures("a2"), messages, reports_failures=True)

    assert outcome == BatchOutcome(("a1", "b1", "b2"), ("a2",), kept=("a3",))


def test_a_group_of_a_standard_queue_has_no_order():
    messages = [{"MessageId": one, "Attributes": {"MessageGroupId": "tenant"}} for one in "ab"]

    assert batch_outcome(failures("a"), messages, reports_failures=True) == BatchOutcome(("b",), ("a",))


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=10), st.data())
def test_every_message_has_one_outcome_and_no_group_is_overtaken(groups, data):
    messages = batch(*map(str, range(len(groups))), groups="".join(groups))
    reported = data.draw(st.sets(st.sampled_from([one["MessageId"] for one in messages])))

    outcome = batch_outcome(failures(*reported), messages, reports_failures=True)

    every = [*outcome.deleted, *outcome.failed, *outcome.kept]
    assert sorted(every) == sorted(one["MessageId"] for one in messages)
    assert set(outcome.failed) == reported
    for one in messages:
        earlier = [other for other in messages if int(other["MessageId"]) < int(one["MessageId"])]
        same = [other["MessageId"] for other in earlier if other["Attributes"] == one["Attributes"]]
        assert one["MessageId"] not in outcome.deleted or not reported.intersection(same)
