"""The queues and functions whose metrics are the activity of a stage, by capability."""

import json
from collections.abc import Iterable, Mapping

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs

# `overview`, which gets the names in a variable, cannot name itself; the others do no work of their capability.
LEFT_OUT = ("page", "sweep", "receive", "overview")


def activity_sources(
    queues: Mapping[str, Iterable[sqs.IQueue]], functions: Mapping[str, Mapping[str, lambda_.IFunction]]
) -> str:
    """Return the names of queues and functions by capability as JSON."""
    return json.dumps(
        {
            capability: {
                "queues": [queue.queue_name for queue in queues[capability]],
                "functions": [one.function_name for name, one in found.items() if name not in LEFT_OUT],
            }
            for capability, found in functions.items()
        },
        separators=(",", ":"),
    )
