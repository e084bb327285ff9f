"""The topic that alarms notify."""

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from signalbox.aws.doctor.calls import PATIENCE, call

if TYPE_CHECKING:
    import boto3

MISSING_TOPIC = ("NotFound", "NotFoundException")


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
