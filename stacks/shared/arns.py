"""ARNs in the stage's account and region of resources that the stack does not create, and URLs of queues."""

from aws_cdk import Aws


def queue_arn(name: str) -> str:
    """Return the ARN of a queue, or of all queues that match a name pattern."""
    return arn("sqs", name)


def queue_url(queue_arn: str) -> str:
    """Return the URL of the queue with an ARN, which may name another account."""
    _, _, _, region, account, name = queue_arn.split(":")
    return f"https://sqs.{region}.{Aws.URL_SUFFIX}/{account}/{name}"


def arn(service: str, resource: str) -> str:
    """Return the ARN of a resource in the stage's account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"
