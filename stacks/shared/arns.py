"""ARNs in the stage's account and region of resources that the stack does not create."""

from aws_cdk import Aws


def queue_arn(name: str) -> str:
    """Return the ARN of a queue, or of all queues that match a name pattern."""
    return arn("sqs", name)


def arn(service: str, resource: str) -> str:
    """Return the ARN of a resource in the stage's account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"
