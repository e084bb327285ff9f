"""SQS for the messages that API Gateway's template and the stage's function send."""

from tests.fakes.aws import aws, sqs

__all__ = ["aws", "sqs"]
