"""Commands: the queue that takes them, and how they reach the function that obeys."""

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.shared.function import Function
from stacks.shared.queue import DeadLetterQueue, Queue, Redrive

# A command is a few calls to AWS; what takes longer is carried on by the next one.
TIMEOUT_SECONDS = 30
# A command whose function was killed comes again after this; its client waits for a minute before it asks again.
VISIBILITY = Duration.seconds(40)
# One command is one call, so that a slow one delays nobody's; a target is worked on by one at a time anyway.
BATCH = 1
CONCURRENCY = 10
RECEIVES = 5
# Nobody waits that long for a reply, and the schedule brings everything to its end without commands.
RETENTION = Duration.hours(1)


def command_queue(scope: Construct, *, queue_name: str, dead_letters: DeadLetterQueue, key: kms.IKey) -> Queue:
    """Make a queue that takes commands, under a name that people's policies name."""
    return Queue(
        scope,
        "Commands",
        queue_name=queue_name,
        key=key,
        visibility=VISIBILITY,
        retention=RETENTION,
        redrive=Redrive(queue=dead_letters, maximum_receives=RECEIVES),
    )


def obey(function: Function, queue: Queue) -> None:
    """Have a function called with the commands of a queue."""
    function.add_event_source_mapping(
        "Commands",
        event_source_arn=queue.queue_arn,
        batch_size=BATCH,
        report_batch_item_failures=True,
        max_concurrency=CONCURRENCY,
    )
