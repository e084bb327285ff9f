"""The messages that wait in the dead-letter queues of a stage."""

from collections.abc import Iterator

from signalbox.cli.shared.deployment import Deployment

QUEUE_OUTPUTS = "DeadLetterQueueUrl"  # how the names of their stack outputs end
SHOWN, SHOWN_CHARACTERS = 10, 300


def dead_letter_lines(deployment: Deployment) -> Iterator[str]:
    """Yield a line for each dead-letter queue with its number of messages, and one for each of up to ten of them."""
    sqs = deployment.session().client("sqs")
    for output, url in deployment.outputs.items():
        if not output.endswith(QUEUE_OUTPUTS):
            continue
        count = ["ApproximateNumberOfMessages"]
        waiting = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=count)["Attributes"][count[0]]
        yield f"{output}: {waiting}"
        received = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=SHOWN, VisibilityTimeout=0, MessageAttributeNames=["All"]
        )
        for letter in received.get("Messages", ()):
            reason = letter.get("MessageAttributes", {}).get("Reason", {}).get("StringValue", "received too often")
            yield f"  {reason}: {letter['Body'][:SHOWN_CHARACTERS]}"
