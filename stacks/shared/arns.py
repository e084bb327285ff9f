"""ARNs of what a stage does not make itself, in its own account and region."""

from aws_cdk import Aws


def queue_arn(name: str) -> str:
    """Return the ARN of a queue of the stage's own account and region, or of those that a pattern names."""
    return arn("sqs", name)


def arn(service: str, resource: str) -> str:
    """Return the ARN of something in the stage's own account and region."""
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"
