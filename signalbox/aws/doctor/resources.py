"""Resources outside the stage that a deployment meets."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.doctor.calls import PATIENCE, call
from signalbox.doctor.resources import NamedQueue
from signalbox.queues import STAGE_TAG

if TYPE_CHECKING:
    import boto3

MISSING_TOPIC = ("NotFound", "NotFoundException")


def queue(session: "boto3.Session", name: str, *, owner: str | None = None) -> NamedQueue | None:
    """Return a queue of this account, or of the account `owner`, or None. Raises the errors of `call`."""
    sqs = session.client("sqs", config=PATIENCE)
    with call("sqs:GetQueueUrl"):
        try:
            url = sqs.get_queue_url(QueueName=name, **({"QueueOwnerAWSAccountId": owner} if owner else {}))["QueueUrl"]
        except sqs.exceptions.QueueDoesNotExist:
            return None
    if owner:
        return NamedQueue(name, None)
    with call("sqs:ListQueueTags"):
        return NamedQueue(name, sqs.list_queue_tags(QueueUrl=url).get("Tags", {}).get(STAGE_TAG))


def topic_exists(session: "boto3.Session", arn: str) -> bool:
    """Return whether an SNS topic exists. Raises the errors of `call`."""
    with call("sns:GetTopicAttributes"):
        sns = session.client("sns", region_name=arn.split(":")[3], config=PATIENCE)
        try:
            sns.get_topic_attributes(TopicArn=arn)
        except ClientError as error:
            if error.response["Error"]["Code"] in MISSING_TOPIC:
                return False
            raise
    return True
