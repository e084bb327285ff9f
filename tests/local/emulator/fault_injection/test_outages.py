"""A service that the file names is away; all others answer."""

import json
from pathlib import Path

import pytest

from tests.fault_injection.calls import Wire
from tests.fault_injection.outages import AWAY, Outages
from tests.local.emulator.fault_injection.service import Service, code

CALLS = {
    "dynamodb": ("dynamodb", "PutItem", Wire.JSON, 500),
    "sqs sends": ("sqs", "SendMessageBatch", Wire.JSON, 500),
    "kms": ("sqs", "ReceiveMessage", Wire.JSON, 400),
    "connections": ("execute-api", "POST /local/@connections/c", Wire.REST_JSON, 500),
    "eks": ("eks", "GET /clusters/demo", Wire.REST_JSON, 500),
}


def outages(folder: Path, *away: str, encrypted: bool = True) -> Outages:
    file = folder / "outages.json"
    file.write_text(json.dumps(away))
    return Outages(file, lambda _queue: encrypted)


@pytest.mark.parametrize("name", AWAY)
def test_the_calls_of_a_service_that_is_away_fail_and_are_not_carried_out(tmp_path, name):
    service = Service()

    for called, (of, action, wire, status) in CALLS.items():
        rule = outages(tmp_path, name, encrypted=called == "kms")
        answer = service.answer(rule, of, action, wire=wire, QueueUrl="x/q")
        assert answer.status == (status if called == name else 200), called

    assert len(service.calls) == len(AWAY) - 1


def test_without_the_file_every_service_answers(tmp_path):
    rule = Outages(tmp_path / "outages.json", lambda _queue: True)

    assert Service().answer(rule, "dynamodb", "PutItem").status == 200


@pytest.mark.parametrize(("action", "encrypted"), [("DeleteMessage", True), ("SendMessage", False)])
def test_what_needs_no_key_is_done_without_it(tmp_path, action, encrypted):
    assert Service().answer(outages(tmp_path, "kms", encrypted=encrypted), "sqs", action, QueueUrl="x/q").status == 200


def test_the_key_itself_cannot_be_used(tmp_path):
    assert code(Service().answer(outages(tmp_path, "kms"), "kms", "Decrypt")) == "KMSInternalException"
    answer = Service().answer(outages(tmp_path, "kms"), "sqs", "SendMessage", QueueUrl="x/q")
    assert answer.headers["x-amzn-query-error"] == "KMS.InvalidStateException;Sender"
