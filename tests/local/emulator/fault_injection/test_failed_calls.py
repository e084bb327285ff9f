"""1 in 100 calls is throttled or fails, before or after it was carried out."""

import pytest

from tests.fault_injection.calls import Wire
from tests.fault_injection.chance import Chance
from tests.fault_injection.failed_calls import FailedCalls
from tests.local.emulator.fault_injection.service import FixedChance, Service, code


def faults(*misses: str, hits: bool = True, encrypted: bool = False) -> FailedCalls:
    return FailedCalls(FixedChance(hits=hits, misses=misses), lambda _queue: encrypted)


def test_most_calls_are_carried_out():
    service = Service({"a": 1})

    assert service.answer(faults(hits=False), "sqs", "SendMessage").document() == {"a": 1}


def test_a_throttled_call_is_not_carried_out():
    service = Service()

    assert code(service.answer(faults(), "dynamodb", "PutItem")) == "ThrottlingException"
    assert service.calls == []


@pytest.mark.parametrize("action", ["SendMessage", "SendMessageBatch", "ReceiveMessage"])
def test_a_call_that_needs_the_key_of_its_queue_gets_kmss_throttling(action):
    answer = Service().answer(faults(encrypted=True), "sqs", action, QueueUrl="x/y")

    assert answer.headers["x-amzn-query-error"] == "KMS.ThrottlingException;Sender"


@pytest.mark.parametrize(("action", "encrypted"), [("DeleteMessage", True), ("SendMessage", False)])
def test_a_call_that_needs_no_key_gets_sqss_throttling(action, encrypted):
    assert code(Service().answer(faults(encrypted=encrypted), "sqs", action)) == "RequestThrottled"


def test_a_server_error_of_sqs_may_come_after_the_call_was_carried_out():
    service = Service()

    assert service.answer(faults("throttled calls"), "sqs", "SendMessage").status == 500
    assert len(service.calls) == 1
    assert service.answer(faults("throttled calls", "server errors"), "sqs", "SendMessage").status == 500
    assert len(service.calls) == 1


def test_the_servers_own_error_is_not_replaced():
    service = Service(status=400)

    assert service.answer(faults("throttled calls"), "sqs", "SendMessage").status == 400


@pytest.mark.parametrize(
    ("name", "action", "wire"), [("iam", "CreateUser", Wire.QUERY), ("sqs", "DeleteMessage", Wire.JSON)]
)
def test_a_server_error_of_a_call_that_cannot_be_repeated_comes_before(name, action, wire):
    service = Service()

    assert service.answer(faults("throttled calls"), name, action, wire=wire).status == 500
    assert service.calls == []


def test_the_same_seed_refuses_the_same_calls():
    def statuses(seed: int) -> list[int]:
        rule, service = FailedCalls(Chance(seed), lambda _queue: True), Service()
        return [service.answer(rule, "sqs", "SendMessage").status for _ in range(2000)]

    assert statuses(3) == statuses(3) != statuses(4)
    assert set(statuses(1)) == {200, 400, 403, 500}
