"""A failed test on a stage shows the stage's dead letters."""

import secrets

import pytest

from signalbox.cli.shared.deployment import Deployment
from tests.integration.shared.dead_letters import dead_letter_lines

pytestmark = pytest.mark.emulator


def test_a_line_has_the_reason_and_the_body_of_a_dead_letter(deployment: Deployment):
    body, sqs = f"unreadable {secrets.token_hex(8)}", deployment.session().client("sqs")
    url = deployment.outputs["LiveDeadLetterQueueUrl"]
    sqs.purge_queue(QueueUrl=url)
    reason = {"Reason": {"DataType": "String", "StringValue": "not JSON"}}
    sqs.send_message(QueueUrl=url, MessageBody=body, MessageAttributes=reason)

    lines = list(dead_letter_lines(deployment))

    assert f"  not JSON: {body}" in lines
    assert "LiveDeadLetterQueueUrl: 1" in lines
    sqs.purge_queue(QueueUrl=url)  # other tests count dead letters
