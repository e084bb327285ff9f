"""Changes of the visibility time-out in SQS."""

from datetime import timedelta

from signalbox.aws.shared.batch_calls import hide


def test_messages_are_received_again_at_once_or_after_their_timeout(sqs, caplog) -> None:
    url = sqs.create_queue(QueueName="queue")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="body")
    (message,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert not sqs.receive_message(QueueUrl=url).get("Messages")

    hide(sqs, url, {message["ReceiptHandle"]: timedelta(0)})

    (again,) = sqs.receive_message(QueueUrl=url)["Messages"]
    assert again["MessageId"] == message["MessageId"]
    hide(sqs, url + "x", {again["ReceiptHandle"]: timedelta(0)})
    assert f"1 messages keep the visibility timeout of {url}x" in caplog.text
