"""A new queue is not usable for a second, and a deleted name for a minute; ListQueues and counters are old."""

from tests.fakes.clock import Seconds
from tests.fault_injection.queue_names import RecentQueues
from tests.fault_injection.stale_views import STALE_SECONDS, StaleViews
from tests.local.emulator.fault_injection.service import Service

URL = "http://127.0.0.1:4566/000000000000/orders"
COUNTER = "ApproximateNumberOfMessages"


def test_a_repeated_create_does_not_make_a_queue_new():
    clock, service = Seconds(), Service({"QueueUrl": URL})
    rule = RecentQueues(clock)
    service.answer(rule, "sqs", "CreateQueue", QueueName="orders")
    clock.now += 2
    service.answer(rule, "sqs", "CreateQueue", QueueName="orders")

    assert service.answer(rule, "sqs", "SendMessage", QueueUrl=URL).is_success


def test_failed_calls_change_no_names():
    clock, service = Seconds(), Service(status=400)
    rule = RecentQueues(clock)
    service.answer(rule, "sqs", "CreateQueue", QueueName="orders")
    service.answer(rule, "sqs", "DeleteQueue", QueueUrl=URL)
    service.status = 200

    assert service.answer(rule, "sqs", "SendMessage", QueueUrl=URL).is_success
    assert service.answer(rule, "sqs", "CreateQueue", QueueName="orders").is_success


def test_other_services_have_no_new_queues():
    clock, service = Seconds(), Service({"QueueUrl": URL})
    rule = RecentQueues(clock)
    service.answer(rule, "sqs", "CreateQueue", QueueName="orders")

    assert service.answer(rule, "dynamodb", "GetItem", TableName="orders").is_success


def test_lists_lack_a_new_queue_and_have_a_deleted_one_for_some_seconds():
    clock, service = Seconds(), Service({"QueueUrl": URL})
    rule = StaleViews(clock)
    service.answer(rule, "sqs", "CreateQueue", QueueName="orders")
    service.document = {"QueueUrls": [URL, URL + "-old"]}

    assert service.answer(rule, "sqs", "ListQueues").document() == {"QueueUrls": [URL + "-old"]}
    clock.now += STALE_SECONDS
    assert service.answer(rule, "sqs", "ListQueues").document() == {"QueueUrls": [URL, URL + "-old"]}

    service.answer(rule, "sqs", "DeleteQueue", QueueUrl=URL)
    service.document = {}
    assert service.answer(rule, "sqs", "ListQueues").document() == {"QueueUrls": [URL]}
    assert service.answer(rule, "sqs", "ListQueues", QueueNamePrefix="other").document() == {"QueueUrls": []}
    assert service.answer(rule, "sqs", "ListQueues", NextToken="1").document() == {"QueueUrls": []}
    clock.now += STALE_SECONDS
    assert service.answer(rule, "sqs", "ListQueues").document() == {"QueueUrls": []}


def test_a_list_never_has_more_queues_than_requested():
    clock, service = Seconds(), Service()
    rule = StaleViews(clock)
    service.answer(rule, "sqs", "DeleteQueue", QueueUrl=URL)
    service.document = {"QueueUrls": [URL + "-old"]}

    assert service.answer(rule, "sqs", "ListQueues", MaxResults=1).document() == {"QueueUrls": [URL + "-old"]}


def test_counters_are_some_seconds_old_and_other_attributes_are_not():
    clock, service = Seconds(), Service({"Attributes": {COUNTER: "0", "Policy": "a"}})
    rule = StaleViews(clock)
    service.answer(rule, "sqs", "GetQueueAttributes", QueueUrl=URL)
    service.document = {"Attributes": {COUNTER: "7", "Policy": "b"}}

    assert _attributes(service, rule, clock, after=STALE_SECONDS - 0.5) == {COUNTER: "0", "Policy": "b"}
    assert _attributes(service, rule, clock, after=0.5) == {COUNTER: "7", "Policy": "b"}


def test_counters_of_other_queues_and_other_counters_are_counted():
    clock, service = Seconds(), Service({"Attributes": {COUNTER: "0"}})
    rule = StaleViews(clock)
    service.answer(rule, "sqs", "GetQueueAttributes", QueueUrl=URL)
    service.document = {"Attributes": {COUNTER: "7"}}

    assert service.answer(rule, "sqs", "GetQueueAttributes", QueueUrl=URL + "-2").document() == service.document
    service.document = {"Attributes": {COUNTER: "7", COUNTER + "Delayed": "1"}}
    assert service.answer(rule, "sqs", "GetQueueAttributes", QueueUrl=URL).document() == service.document


def _attributes(service: Service, rule: StaleViews, clock: Seconds, *, after: float) -> dict[str, str]:
    clock.now += after
    return service.answer(rule, "sqs", "GetQueueAttributes", QueueUrl=URL).document()["Attributes"]
