"""A failed test on a stage shows the stage's dead letters."""

import secrets

import pytest

from signalbox.clients.deployment import Deployment
from tests.integration.shared.dead_letters import dead_letter_lines

pytestmark = pytest.mark.emulator


def test_a_line_has_the_queue_the_reason_and_the_body_of_a_dead_letter(deployment: Deployment):
    body, sqs = f"unreadable {secrets.token_hex(8)}", deployment.session().client("sqs")
    of_live = deployment.outputs["LiveOrderedDeadLetterQueueUrl"]
    of_an_exchange = sqs.create_queue(QueueName=f"trial_{secrets.token_hex(4)}-dlq")["QueueUrl"]
    reason = {"Reason": {"DataType": "String", "StringValue": "not JSON"}}
    sqs.purge_queue(QueueUrl=of_live)
    of_group = {"MessageGroupId": "g", "MessageDeduplicationId": body[-16:]}
    sqs.send_message(QueueUrl=of_live, MessageBody=body, MessageAttributes=reason, **of_group)
    sqs.send_message(QueueUrl=of_an_exchange, MessageBody=body)

    lines = list(dead_letter_lines(deployment))

    sqs.delete_queue(QueueUrl=of_an_exchange)
    names = [url.rpartition("/")[2] for url in (of_live, of_an_exchange)]
    assert sorted(line for line in lines if line.startswith(tuple(names))) == sorted(
        [f"{names[0]}: not JSON: {body}", f"{names[1]}: no reason: received too often: {body}"]
    )
