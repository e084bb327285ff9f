"""The queues that are event sources of functions in an app."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs


def queues_of(functions: Sequence[lambda_.IFunction]) -> list[sqs.IQueue]:
    """Return the queues whose messages the functions get. Raises `ValueError` for a function without any."""
    return [queue for function in functions for queue in _queues(function)]


def _queues(function: lambda_.IFunction) -> list[sqs.IQueue]:
    mappings = [one for one in function.node.find_all() if isinstance(one, lambda_.CfnEventSourceMapping)]
    arns = {one.event_source_arn for one in mappings}
    known = [one for one in Stack.of(function).node.root.node.find_all() if isinstance(one, sqs.Queue)]
    found: list[sqs.IQueue] = [queue for queue in known if queue.queue_arn in arns]
    if not found:
        raise ValueError(f"{function.node.path} has no queue of the app as event source: give Splitting its `queues`")
    return found
