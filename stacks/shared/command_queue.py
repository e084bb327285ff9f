"""Control queues, and their event source mappings to the control functions."""

from aws_cdk import Duration
from aws_cdk import aws_kms as kms
from constructs import Construct

from stacks.shared.function import Function
from stacks.shared.queue import DeadLetterQueue, Queue, Redrive

# A command makes a few calls to AWS; longer work continues in a following command.
TIMEOUT_SECONDS = 30
# A command of a killed function is received again after this time; its client waits one minute for a reply.
VISIBILITY = Duration.seconds(40)
# One command an invocation: a slow command delays no other; a lock serializes the work on one target.
BATCH = 1
CONCURRENCY = 10
RECEIVES = 5
# No client waits longer for a reply, and the schedule finishes all work without commands.
RETENTION = Duration.hours(1)


def command_queue(scope: Construct, *, queue_name: str, dead_letters: DeadLetterQueue, key: kms.IKey) -> Queue:
    """Create a control queue under a fixed name, which policies of users contain."""
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
    """Create the event source mapping from a control queue to a function."""
    function.add_event_source_mapping(
        "Commands",
        event_source_arn=queue.queue_arn,
        batch_size=BATCH,
        report_batch_item_failures=True,
        max_concurrency=CONCURRENCY,
    )
