"""A queue is not created again with other tags, and an account has five calls about tags a second."""

import pytest

from tests.fakes.clock import Seconds
from tests.fault_injection.queue_tags import QueueTags
from tests.local.emulator.fault_injection.service import Service, code

URL = "http://127.0.0.1:4566/000000000000/orders"


@pytest.mark.parametrize(
    ("existing", "given", "expected"),
    [
        (None, {"a": "1"}, "made"),
        ({"a": "1"}, {"a": "1"}, "made"),
        ({"a": "1"}, {}, "made"),
        ({"a": "1"}, {"a": "2"}, "QueueNameExists"),
        ({}, {"a": "1"}, "QueueNameExists"),
    ],
    ids=["new", "same", "none given", "other", "of a queue without tags"],
)
def test_a_queue_is_not_created_again_with_other_tags(existing, given, expected):
    rule, service = QueueTags(Seconds(), {"orders": existing}.get), Service({"QueueUrl": URL})

    answer = service.answer(rule, "sqs", "CreateQueue", QueueName="orders", tags=given)

    assert ("made" if answer.is_success else code(answer)) == expected


def test_the_sixth_call_about_tags_within_a_second_is_refused():
    clock, service = Seconds(), Service()
    rule = QueueTags(clock, {}.get)

    codes = [service.answer(rule, "sqs", "ListQueueTags", QueueUrl=URL).status for _ in range(6)]
    clock.now += 1
    again = service.answer(rule, "sqs", "TagQueue", QueueUrl=URL)

    assert codes == [200, 200, 200, 200, 200, 403]
    assert again.is_success
